"""Settings: what can be set, where a value comes from, and how it is shown.

Order, nearest first: flags, environment (`OSLER__SECTION__KEY`), `./osler.toml`,
the user's file, a preset, the defaults. Only `wiring` and the command line read them.
"""

from osler.config.baselines import Baseline
from osler.config.hub import Embedder, RerankerSettings
from osler.config.layers import load, presets, user_file
from osler.config.merge import DEFAULT, Loaded
from osler.config.serving import Serve
from osler.config.settings import (
    ROLES,
    STRATEGIES,
    AnswerSettings,
    BudgetSettings,
    Cot,
    Direct,
    KagThinker,
    Kb,
    Model,
    OmniRag,
    Rag,
    Retrieve,
    Role,
    Runs,
    SamplingSettings,
    Settings,
    Strategy,
    TcRag,
)
from osler.config.show import dump, flat, template, write_template
from osler.config.unified import Unified

__all__ = [
    "DEFAULT",
    "ROLES",
    "STRATEGIES",
    "AnswerSettings",
    "Baseline",
    "BudgetSettings",
    "Cot",
    "Direct",
    "Embedder",
    "KagThinker",
    "Kb",
    "Loaded",
    "Model",
    "OmniRag",
    "Rag",
    "RerankerSettings",
    "Retrieve",
    "Role",
    "Runs",
    "SamplingSettings",
    "Serve",
    "Settings",
    "Strategy",
    "TcRag",
    "Unified",
    "dump",
    "flat",
    "load",
    "presets",
    "template",
    "user_file",
    "write_template",
]
