"""Layers laid over each other: each key checked where it stands, the nearest value kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from osler.errors import BadConfig, UnknownStrategy
from osler.settings.models import ROLES
from osler.settings.settings import Settings, allowed_keys, is_section, section_names
from osler.settings.strategies import STRATEGIES, USUAL_STRATEGY
from osler.text import suggest_word

DEFAULT = "default"
FOLLOWS = "as [model]"


@dataclass(frozen=True)
class LoadedSettings:
    """The settings, and for each "section.key" where its value comes from."""

    settings: Settings
    origins: dict[str, str]


@dataclass(frozen=True)
class SettingsLayer:
    """Values that come from one place, by dotted key."""

    name: str
    values: Mapping[str, object]
    places: Mapping[str, str] = field(default_factory=dict)
    """Where a key stands, where that is more exact than `name`."""

    def locate_key(self, key: str) -> str:
        return self.places.get(key, self.name)


def merge_layers(layers: Sequence[SettingsLayer], *, presets: Sequence[str] = ()) -> LoadedSettings:
    """One `Settings` from layers, farthest first. Raises `BadConfig`, `UnknownStrategy`."""
    values: dict[str, object] = {}
    places: dict[str, str] = {}
    for layer in layers:
        if (kind := layer.values.get("strategy.kind")) is not None:
            _check_strategy(kind, layer, presets)
            # Else k = 3 of a preset for kag-thinker would hold for rag, which was asked for.
            _forget_other_strategy(values, places, kind)
        strategy = str(kind or values.get("strategy.kind", USUAL_STRATEGY))
        for key, value in layer.values.items():
            _check_key(key, value, strategy, layer)
            values[key], places[key] = value, layer.locate_key(key)
    settings = _validate_values(values, places)
    return LoadedSettings(
        settings, {key: places.get(key, _default_origin(key)) for key in dotted_keys(settings)}
    )


def dotted_keys(settings: Settings) -> Iterator[str]:
    """Every key there is, as "section.key", in the order of the models.

    The keys of a role only where it has a model of its own.
    """
    for name in type(settings).model_fields:
        if name == "roles":
            own = [role for role in ROLES if getattr(settings.roles, role) is not None]
            yield from (f"roles.{role}.{key}" for role in own for key in allowed_keys("model"))
        elif is_section(name):
            yield from (f"{name}.{key}" for key in type(getattr(settings, name)).model_fields)
        else:
            yield name


def _default_origin(key: str) -> str:
    return FOLLOWS if key.startswith("roles.") else DEFAULT


def _forget_other_strategy(values: dict[str, object], places: dict[str, str], kind: object) -> None:
    """Drops values that farther layers set for another strategy."""
    if values.get("strategy.kind", USUAL_STRATEGY) == kind:
        return
    for key in [key for key in values if key.startswith("strategy.")]:
        del values[key], places[key]


def _check_strategy(kind: object, layer: SettingsLayer, presets: Sequence[str]) -> None:
    if isinstance(kind, str) and kind in STRATEGIES:
        return
    known = f"known: {', '.join(STRATEGIES)}"
    if kind in presets:
        hint = f"that is a preset, --preset {kind}; "
    else:
        hint = suggest_word(str(kind), tuple(STRATEGIES))
    place = layer.locate_key("strategy.kind")
    raise UnknownStrategy(f"{place}: unknown strategy {kind!r}", fix=hint + known)


def _check_key(key: str, value: object, strategy: str, layer: SettingsLayer) -> None:
    section, _, name = key.rpartition(".")
    place = layer.locate_key(key)
    if section and not is_section(section):
        sections = section_names()
        raise BadConfig(
            f"{place}: unknown section [{section}]",
            fix=f"{suggest_word(section, sections)}sections: {', '.join(sections)}",
        )
    if is_section(key) and not isinstance(value, dict):
        below = f"roles.{ROLES[0]}" if key == "roles" else key
        raise BadConfig(
            f"{place}: {key} is a section, not a value", fix=f"write its keys below [{below}]"
        )
    keys = allowed_keys(section, strategy)
    if name not in keys:
        raise BadConfig(
            f"{place}: unknown key {name!r} {_allowed_keys(section, strategy)}",
            fix=_suggest_kind(section, name)
            or f"{suggest_word(name, keys)}allowed: {', '.join(keys)}",
        )


def _suggest_kind(section: str, name: str) -> str:
    """The strategies that have such a key, where it is one of a strategy."""
    having = [
        kind for kind in STRATEGIES if section == "strategy" and name in allowed_keys(section, kind)
    ]
    return f"set strategy.kind too; {name} belongs to {', '.join(having)}" if having else ""


def _allowed_keys(section: str, strategy: str) -> str:
    if section == "strategy":
        return f'in [strategy] with kind = "{strategy}"'
    return f"in [{section}]" if section else "outside any section"


def _validate_values(values: Mapping[str, object], places: Mapping[str, str]) -> Settings:
    nested: dict[str, Any] = {}
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        if section:
            table = nested
            for part in section.split("."):
                table = table.setdefault(part, {})
            table[name] = value
        elif not is_section(name):
            nested[name] = value
    if "strategy" in nested:
        nested["strategy"].setdefault("kind", USUAL_STRATEGY)
    try:
        return Settings.model_validate(nested)
    except ValidationError as error:
        wrong = "; ".join(_describe_error(item, places) for item in error.errors())
        raise BadConfig(wrong, fix="`osler init` writes every key with its meaning") from error


def _describe_error(item: Any, places: Mapping[str, str]) -> str:
    """A complaint of pydantic's, with the place the value comes from."""
    path = [str(part) for part in item["loc"] if part not in STRATEGIES]
    if path[0] == "roles":
        path[:2] = [".".join(path[:2])]
    # pydantic puts this before the words of a validator.
    message = item["msg"].removeprefix("Value error, ")
    if len(path) == 1 and is_section(path[0]):
        places_of_section = [at for key, at in places.items() if key.startswith(f"{path[0]}.")]
        return f"{(places_of_section or [DEFAULT])[0]}: [{path[0]}]: {message}"
    key = ".".join(path[:2]) if is_section(path[0]) else path[0]
    return f"{places.get(key, DEFAULT)}: {key}: {message} (it is {item['input']!r})"
