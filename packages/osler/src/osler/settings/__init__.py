"""Settings: what can be set, where a value comes from, and how it is shown.

Order, nearest first: flags, environment (`OSLER__SECTION__KEY`), `./osler.toml`,
the user's file, a preset, the defaults. Only `osler.build` and the interfaces read them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from osler.settings.layers import DEFAULT, LoadedSettings, load, read_presets, user_file
    from osler.settings.models import (
        ROLES,
        EmbedderSettings,
        ModelSettings,
        RerankerSettings,
        Role,
        SamplingSettings,
    )
    from osler.settings.plugins import MethodFacts, PluginSettings, find_plugins
    from osler.settings.sections import (
        BudgetSettings,
        RetrieveSettings,
        RunsSettings,
        ServeSettings,
    )
    from osler.settings.settings import (
        AnswerSettings,
        KbSettings,
        Settings,
    )
    from osler.settings.show import (
        flatten_settings,
        render_settings,
        render_template,
        write_template,
    )
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

_HOME = {
    name: module
    for module, names in {
        "settings": "AnswerSettings KbSettings Settings",
        "strategies": "AutoSettings CotSettings DirectSettings KagThinkerSettings "
        "OmniRagSettings RagSettings STRATEGIES Strategy TcRagSettings "
        "USUAL_STRATEGY UnifiedSettings",
        "sections": "BudgetSettings RetrieveSettings RunsSettings ServeSettings",
        "layers": "DEFAULT LoadedSettings load read_presets user_file",
        "models": "EmbedderSettings ModelSettings ROLES RerankerSettings Role SamplingSettings",
        "plugins": "MethodFacts PluginSettings find_plugins",
        "show": "flatten_settings render_settings render_template write_template",
    }.items()
    for name in names.split()
}
"""Name → module. Loaded when first used, so that a package that brings a strategy may import
`osler.settings.plugins` while its own strategies are being looked for."""


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
