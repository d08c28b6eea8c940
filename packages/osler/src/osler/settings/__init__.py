"""Settings: what can be set, where a value comes from, and how it is shown.

Order, nearest first: flags, environment (`OSLER__SECTION__KEY`), `./osler.toml`,
the user's file, a preset, the defaults. Only `wiring` and the command line read them.
"""

from osler.settings.hub import EmbedderSettings, RerankerSettings
from osler.settings.layers import load, read_presets, user_file
from osler.settings.merge import DEFAULT, LoadedSettings
from osler.settings.models import ROLES, ModelSettings, Role, SamplingSettings
from osler.settings.plugins import MethodFacts, PluginSettings, find_plugins
from osler.settings.retrieval import RetrieveSettings
from osler.settings.runs import BudgetSettings, RunsSettings
from osler.settings.serving import ServeSettings
from osler.settings.settings import (
    AnswerSettings,
    KbSettings,
    Settings,
)
from osler.settings.show import flatten_settings, render_settings, render_template, write_template
from osler.settings.strategies import (
    STRATEGIES,
    USUAL_STRATEGY,
    AutoSettings,
    CotSettings,
    DirectSettings,
    KagThinkerSettings,
    OmniRagSettings,
    RagSettings,
    Strategy,
    TcRagSettings,
    UnifiedSettings,
)

__all__ = [
    "DEFAULT",
    "ROLES",
    "STRATEGIES",
    "USUAL_STRATEGY",
    "AnswerSettings",
    "AutoSettings",
    "BudgetSettings",
    "CotSettings",
    "DirectSettings",
    "EmbedderSettings",
    "KagThinkerSettings",
    "KbSettings",
    "LoadedSettings",
    "MethodFacts",
    "ModelSettings",
    "OmniRagSettings",
    "PluginSettings",
    "RagSettings",
    "RerankerSettings",
    "RetrieveSettings",
    "Role",
    "RunsSettings",
    "SamplingSettings",
    "ServeSettings",
    "Settings",
    "Strategy",
    "TcRagSettings",
    "UnifiedSettings",
    "find_plugins",
    "flatten_settings",
    "load",
    "read_presets",
    "render_settings",
    "render_template",
    "user_file",
    "write_template",
]
