"""Settings: what can be set, where a value comes from, and how it is shown.

Order, nearest first: flags, environment (`OSLER__SECTION__KEY`), `./osler.toml`,
the user's file, a preset, the defaults. Only `osler.build` and the interfaces read them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from osler.settings.layers import DEFAULT as DEFAULT
    from osler.settings.layers import LoadedSettings as LoadedSettings
    from osler.settings.layers import load as load
    from osler.settings.layers import read_presets as read_presets
    from osler.settings.layers import user_file as user_file
    from osler.settings.models import ROLES as ROLES
    from osler.settings.models import EmbedderSettings as EmbedderSettings
    from osler.settings.models import ModelSettings as ModelSettings
    from osler.settings.models import RerankerSettings as RerankerSettings
    from osler.settings.models import Role as Role
    from osler.settings.models import SamplingSettings as SamplingSettings
    from osler.settings.plugins import MethodFacts as MethodFacts
    from osler.settings.plugins import PluginSettings as PluginSettings
    from osler.settings.plugins import find_plugins as find_plugins
    from osler.settings.sections import BudgetSettings as BudgetSettings
    from osler.settings.sections import RetrieveSettings as RetrieveSettings
    from osler.settings.sections import RunsSettings as RunsSettings
    from osler.settings.sections import ServeSettings as ServeSettings
    from osler.settings.settings import AnswerSettings as AnswerSettings
    from osler.settings.settings import KbSettings as KbSettings
    from osler.settings.settings import Settings as Settings
    from osler.settings.show import flatten_settings as flatten_settings
    from osler.settings.show import render_settings as render_settings
    from osler.settings.show import render_template as render_template
    from osler.settings.show import write_template as write_template
    from osler.settings.strategies import STRATEGIES as STRATEGIES
    from osler.settings.strategies import USUAL_STRATEGY as USUAL_STRATEGY
    from osler.settings.strategies import AutoSettings as AutoSettings
    from osler.settings.strategies import CotSettings as CotSettings
    from osler.settings.strategies import DirectSettings as DirectSettings
    from osler.settings.strategies import KagThinkerSettings as KagThinkerSettings
    from osler.settings.strategies import OmniRagSettings as OmniRagSettings
    from osler.settings.strategies import RagSettings as RagSettings
    from osler.settings.strategies import Strategy as Strategy
    from osler.settings.strategies import TcRagSettings as TcRagSettings
    from osler.settings.strategies import UnifiedSettings as UnifiedSettings

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
