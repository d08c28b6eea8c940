"""From flags, environment and files to one `Settings`, remembering where each value is from."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from platformdirs import user_config_dir

from osler.app.config.merge import Layer, Loaded, did_you_mean, merged
from osler.app.config.settings import allowed, is_section
from osler.errors import BadConfig

PREFIX = "OSLER__"
FILE_NAME = "osler.toml"

_REFERENCE = re.compile(r"\$(?:\$|\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\})")
_HEADER = re.compile(r"^\s*\[\s*([\w.\"'-]+)\s*\]")
_KEY = re.compile(r"^\s*[\"']?([\w-]+)[\"']?\s*=")


def user_file() -> Path:
    return Path(user_config_dir("osler", appauthor=False)) / FILE_NAME


def presets() -> dict[str, str]:
    """Name to TOML text of the presets that come with Osler."""
    found = files("osler.app").joinpath("presets").iterdir()
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
) -> Loaded:
    """One `Settings` from all layers; `file` takes the place of `cwd/osler.toml`.

    `flags` are by dotted key, with the value `None` for "not given". Raises
    `BadConfig` (`UnknownStrategy` for a strategy) that names file, line, key and fix.
    """
    layers = list(_layers(flags, cwd=cwd, env=env, preset=preset, file=file))
    return merged(layers, presets=tuple(presets()))


def _layers(
    flags: Mapping[str, object],
    *,
    cwd: Path,
    env: Mapping[str, str],
    preset: str | None,
    file: Path | None,
) -> Iterator[Layer]:
    """Farthest first."""
    if preset is not None:
        yield _preset_layer(preset, env)
    if (user := user_file()).is_file():
        yield _file_layer(user, env)
    if file is not None:
        yield _file_layer(cwd / file, env)
    elif (cwd / FILE_NAME).is_file():
        yield _file_layer(cwd / FILE_NAME, env)
    yield _environment_layer(env)
    given = {key: value for key, value in flags.items() if value is not None}
    yield Layer("command line", given)


def _preset_layer(name: str, env: Mapping[str, str]) -> Layer:
    known = presets()
    if name not in known:
        raise BadConfig(
            f"no preset {name!r}",
            fix=f"{did_you_mean(name, list(known))}presets: {', '.join(known)}",
        )
    return _toml_layer(known[name], f"preset {name}", env)


def _file_layer(path: Path, env: Mapping[str, str]) -> Layer:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadConfig(
            f"cannot read {path}: {error.strerror}", fix="name a file that exists with --config"
        ) from error
    except UnicodeDecodeError as error:
        raise BadConfig(
            f"{path} is not UTF-8 text (byte {error.start})", fix="save it as UTF-8"
        ) from error
    return _toml_layer(text, str(path), env)


def _toml_layer(text: str, name: str, env: Mapping[str, str]) -> Layer:
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadConfig(f"{name}: not TOML: {error}", fix="mend that place") from error
    places = {key: f"{name}:{line}" for key, line in _lines(text).items()}
    values = {
        key: _substituted(value, env, places.get(key, name), key)
        for key, value in _flattened(tables)
    }
    return Layer(name, values, places)


def _environment_layer(env: Mapping[str, str]) -> Layer:
    names = {
        name.removeprefix(PREFIX).lower().replace("__", "."): name
        for name in sorted(env)
        if name.startswith(PREFIX)
    }
    values: dict[str, object] = {key: env[name] for key, name in names.items()}
    return Layer("environment", values, {key: f"${name}" for key, name in names.items()})


def _flattened(tables: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    for name, value in tables.items():
        if name == "roles" and isinstance(value, dict):
            for role, keys in value.items():
                yield from _flattened({f"roles.{role}": keys})
        elif isinstance(value, dict) and (is_section(name) or name not in allowed("")):
            yield from ((f"{name}.{key}", inner) for key, inner in value.items())
            if not value:
                yield name, value
        else:
            yield name, value


def _lines(text: str) -> dict[str, int]:
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


def _substituted(value: object, env: Mapping[str, str], place: str, key: str) -> object:
    """`${NAME}`, `${NAME:-default}`, `$$`; after parsing, so no value changes the structure."""
    if isinstance(value, list):
        return [_substituted(item, env, place, key) for item in value]
    if not isinstance(value, str):
        return value

    def replaced(match: re.Match[str]) -> str:
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

    return _REFERENCE.sub(replaced, value)
