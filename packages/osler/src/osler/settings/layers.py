"""From flags, environment and files to one `Settings`, remembering where each value is from."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from platformdirs import user_config_dir

from osler.errors import BadConfig, read_settings_text
from osler.settings.merge import DEFAULT, LoadedSettings, SettingsLayer, merge_layers
from osler.settings.settings import allowed_keys, is_section
from osler.settings.strategies import USUAL_STRATEGY
from osler.text import suggest_word

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
