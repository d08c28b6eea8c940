"""From flags, environment and files to one `Settings`, remembering where each value is from.

Layers are laid over each other: each key is checked where it stands, the nearest value is kept.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from platformdirs import user_config_dir
from pydantic import ValidationError

from osler.errors import BadConfig, UnknownStrategy, read_settings_text
from osler.settings.models import ROLES
from osler.settings.settings import Settings, allowed_keys, is_section, section_names
from osler.settings.strategies import STRATEGIES, USUAL_STRATEGY
from osler.text import suggest_word

DEFAULT = "default"


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
    # A role's key that nothing sets is that of [model].
    origins = {
        key: places.get(key, "as [model]" if key.startswith("roles.") else DEFAULT)
        for key in dotted_keys(settings)
    }
    return LoadedSettings(settings, origins)


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
    of_preset = f"that is a preset, --preset {kind}; " if kind in presets else ""
    hint = of_preset or suggest_word(str(kind), tuple(STRATEGIES))
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


PREFIX = "OSLER__"
FILE_NAME = "osler.toml"
LOCAL_HOME = ".osler"
"""The home that `make ask` makes in its folder; found from there without being named."""

_REFERENCE = re.compile(r"\$(?:\$|\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\})")
_HEADER = re.compile(r"^\s*\[\s*([\w.\"'-]+)\s*\]")
_KEY = re.compile(r"^\s*[\"']?([\w-]+)[\"']?\s*=")


def user_file() -> Path:
    return Path(user_config_dir("osler", appauthor=False)) / FILE_NAME


def read_presets() -> dict[str, str]:
    """Name to TOML text of the presets that come with Osler."""
    found = files("osler.settings").joinpath("presets").iterdir()
    return {
        entry.name.removesuffix(".toml"): entry.read_text(encoding="utf-8")
        for entry in sorted(found, key=lambda entry: entry.name)
        if entry.name.endswith(".toml")
    }


def load(
    flags: Mapping[str, object],
    *,
    cwd: Path,
    env: Mapping[str, str],
    preset: str | None = None,
    file: Path | None = None,
    strategy: str = USUAL_STRATEGY,
) -> LoadedSettings:
    """One `Settings` from all layers; `file` takes the place of `cwd/osler.toml`.

    `flags` are by dotted key, with the value `None` for "not given"; `strategy` holds where no
    layer names one. Raises `BadConfig` (`UnknownStrategy` for a strategy) that names file, line,
    key and fix.
    """
    usual = SettingsLayer(DEFAULT, {"strategy.kind": strategy})
    layers = [usual, *_read_layers(flags, cwd=cwd, env=env, preset=preset, file=file)]
    return merge_layers(layers, presets=tuple(read_presets()))


def _read_layers(
    flags: Mapping[str, object],
    *,
    cwd: Path,
    env: Mapping[str, str],
    preset: str | None,
    file: Path | None,
) -> Iterator[SettingsLayer]:
    """Farthest first."""
    if preset is not None:
        yield _read_preset(preset, env)
    if (user := user_file()).is_file():
        yield _read_file(user, env)
    if (cwd / LOCAL_HOME / "kb").is_dir():
        yield SettingsLayer(f"the folder {LOCAL_HOME}", {"home": LOCAL_HOME})
    if file is not None:
        yield _read_file(cwd / file, env)
    elif (cwd / FILE_NAME).is_file():
        yield _read_file(cwd / FILE_NAME, env)
    yield _read_environment(env)
    given = {key: value for key, value in flags.items() if value is not None}
    yield SettingsLayer("command line", given)


def _read_preset(name: str, env: Mapping[str, str]) -> SettingsLayer:
    known = read_presets()
    if name not in known:
        raise BadConfig(
            f"no preset {name!r}",
            fix=f"{suggest_word(name, known)}presets: {', '.join(known)}",
        )
    return _parse_toml(known[name], f"preset {name}", env)


def _read_file(path: Path, env: Mapping[str, str]) -> SettingsLayer:
    text = read_settings_text(path, fix="name a file that exists with --config")
    return _parse_toml(text, str(path), env)


def _parse_toml(text: str, name: str, env: Mapping[str, str]) -> SettingsLayer:
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadConfig(f"{name}: not TOML: {error}", fix="correct that line") from error
    places = {key: f"{name}:{line}" for key, line in _find_lines(text).items()}
    values = {
        key: _substitute_variables(value, env, places.get(key, name), key)
        for key, value in _flatten_tables(tables)
    }
    return SettingsLayer(name, values, places)


def _read_environment(env: Mapping[str, str]) -> SettingsLayer:
    names = {
        name.removeprefix(PREFIX).lower().replace("__", "."): name
        for name in sorted(env)
        if name.startswith(PREFIX)
    }
    values: dict[str, object] = {key: env[name] for key, name in names.items()}
    return SettingsLayer("environment", values, {key: f"${name}" for key, name in names.items()})


def _flatten_tables(tables: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    for name, value in tables.items():
        if name == "roles" and isinstance(value, dict):
            for role, keys in value.items():
                yield from _flatten_tables({f"roles.{role}": keys})
        # An unknown table is flattened too, so that the complaint names its keys.
        elif isinstance(value, dict) and (is_section(name) or name not in allowed_keys("")):
            yield from ((f"{name}.{key}", inner) for key, inner in value.items())
            if not value:
                yield name, value
        else:
            yield name, value


def _find_lines(text: str) -> dict[str, int]:
    """Line number of each `section.key`, as far as it is written in the usual way."""
    section = ""
    found: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            section = header.group(1)
            found.setdefault(section, number)
        elif key := _KEY.match(line):
            dotted = f"{section}.{key.group(1)}" if section else key.group(1)
            found.setdefault(dotted, number)
    return found


def _substitute_variables(value: object, env: Mapping[str, str], place: str, key: str) -> object:
    """`${NAME}`, `${NAME:-default}`, `$$`; after parsing, so no value changes the structure."""
    if isinstance(value, list):
        return [_substitute_variables(item, env, place, key) for item in value]
    if not isinstance(value, str):
        return value

    def replace_match(match: re.Match[str]) -> str:
        name, default = match.group("name"), match.group("default")
        if name is None:
            return "$"
        if name in env:
            return env[name]
        if default is None:
            raise BadConfig(
                f"{place}: {key} uses ${{{name}}}, which is not set",
                fix=f"set {name}, or write ${{{name}:-default}}",
            )
        return default

    return _REFERENCE.sub(replace_match, value)
