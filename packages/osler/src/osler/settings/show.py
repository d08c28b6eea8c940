"""Settings as text: what is in force and why, and the commented file of `osler init`."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from pathlib import Path

from osler.errors import BadConfig, translate_os_errors
from osler.settings.fields import NONE, SettingsSection
from osler.settings.merge import LoadedSettings, dotted_keys
from osler.settings.settings import Settings, is_section
from osler.settings.strategies import STRATEGIES

_HEAD = """\
# osler.toml: settings of Osler. Every key is shown with its default, commented out:
# take the # away to set it. Values may use ${NAME}, ${NAME:-default} and $$.
# Flags and OSLER__SECTION__KEY come before this file.
"""


def flatten_settings(settings: Settings) -> dict[str, object]:
    """Every value by dotted key, as plain JSON values."""
    tree = settings.model_dump(mode="json")
    return {key: _value_at(tree, key) for key in dotted_keys(settings)}


def render_settings(loaded: LoadedSettings, *, origin: bool = False) -> str:
    """The settings in force as TOML; with `origin`, where each value comes from."""
    blocks: dict[str, list[str]] = {}
    for key, value in flatten_settings(loaded.settings).items():
        section, _, name = key.rpartition(".")
        line = f"{name} = {_format_toml(value)}"
        mark = f"  # {loaded.origins[key]}" if origin else ""
        blocks.setdefault(section, []).append(f"{line}{mark}")
    parts = ["\n".join([f"[{name}]"] * bool(name) + lines) for name, lines in blocks.items()]
    return "\n\n".join(parts) + "\n"


def render_template(settings: Settings | None = None) -> str:
    """A commented `osler.toml` that, commented or not, loads to the defaults."""
    settings = settings or Settings()
    values = flatten_settings(settings)
    lines = [_HEAD, *_key_lines(settings, "", values), ""]
    for name in type(settings).model_fields:
        if name == "roles":
            lines += _role_lines(settings)
        elif is_section(name):
            lines += [*_comment_lines(type(settings).model_fields[name].description), f"[{name}]"]
            lines += _key_lines(getattr(settings, name), f"{name}.", values)
            lines += _other_strategies(settings) if name == "strategy" else []
            lines.append("")
    return "\n".join(lines)


def write_template(path: Path, *, overwrite: bool = False) -> None:
    """Writes the template. Raises `BadConfig` when the file exists or cannot be written."""
    fix = "name a place that you may write to"
    with translate_os_errors(f"cannot write {path}", BadConfig, fix):
        try:
            with path.open("w" if overwrite else "x", encoding="utf-8") as out:
                out.write(render_template())
        except FileExistsError as error:
            raise BadConfig(f"{path} already exists", fix="--force overwrites it") from error


def _key_lines(section: SettingsSection, prefix: str, values: dict[str, object]) -> Iterator[str]:
    for name, field in type(section).model_fields.items():
        if f"{prefix}{name}" not in values:
            continue
        if name == "kind" and prefix == "strategy.":
            yield from (f'# "{kind}": {model.__doc__}' for kind, model in STRATEGIES.items())
        yield from _comment_lines(field.description)
        yield f"#{name} = {_format_toml(values[f'{prefix}{name}'])}"


def _role_lines(settings: Settings) -> Iterator[str]:
    """A table for each role; its keys are those of [model], and are shown once."""
    yield from _comment_lines(f"{type(settings.roles).__doc__} Keys are those of [model]; what a")
    yield from _comment_lines(
        'table below does not set is as in [model]: [roles.judge] with name = "m"'
    )
    yield from _comment_lines(
        "alone asks another model of the same server. Nothing else is ever asked."
    )
    for role, field in type(settings.roles).model_fields.items():
        yield from ("", *_comment_lines(field.description), f"#[roles.{role}]")
    yield ""


def _comment_lines(text: str | None) -> list[str]:
    return textwrap.wrap(text or "", 98, initial_indent="# ", subsequent_indent="# ")


def _other_strategies(settings: Settings) -> Iterator[str]:
    for name, model in STRATEGIES.items():
        keys = [key for key in model.model_fields if key != "kind"]
        if keys and name != settings.strategy.kind:
            yield f'# With kind = "{name}", only: {", ".join(keys)}.'


def _value_at(tree: dict[str, object], key: str) -> object:
    found: object = tree
    for part in key.split("."):
        found = found[part] if isinstance(found, dict) else None
    return found


def _format_toml(value: object) -> str:
    """A TOML value; JSON's strings, numbers and lists are TOML's."""
    if value is None:
        return f'"{NONE}"'
    if isinstance(value, str):
        return json.dumps(value.replace("$", "$$"), ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value, ensure_ascii=False)
