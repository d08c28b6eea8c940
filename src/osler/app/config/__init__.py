"""Settings: what can be set, where a value comes from, and how it is shown.

Order, nearest first: flags, environment (`OSLER__SECTION__KEY`), `./osler.toml`,
the user's file, a preset, the defaults. Only `wiring` and the command line read them.
"""

from osler.app.config.baselines import Baseline
from osler.app.config.hub import Embedder, RerankerSettings
from osler.app.config.layers import load, presets, user_file
from osler.app.config.merge import DEFAULT, Loaded
from osler.app.config.models import ROLES, Model, Role, SamplingSettings
from osler.app.config.serving import Serve
from osler.app.config.settings import AnswerSettings, BudgetSettings, Kb, Retrieve, Runs, Settings
from osler.app.config.show import dump, flat, template, write_template
from osler.app.config.strategies import (
    STRATEGIES,
    Cot,
    Direct,
    KagThinker,
    OmniRag,
    Rag,
    Strategy,
    TcRag,
)
from osler.app.config.unified import Unified

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
