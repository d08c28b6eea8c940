"""Settings as text: what is in force and why, the commented file of `osler init`, and keys that a
command writes into a file; every other line stays as it is.
"""

from __future__ import annotations

import ast
import inspect
import io
import json
import re
import textwrap
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

from osler.errors import BadConfig, translate_os_errors
from osler.llm.core.cache import write_whole
from osler.settings.fields import NONE, SettingsSection
from osler.settings.layers import LoadedSettings, dotted_keys
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


def render_template() -> str:
    """A commented `osler.toml` that, commented or not, loads to the defaults."""
    settings = Settings()
    values = flatten_settings(settings)
    lines = [_HEAD, *_key_lines(settings, "", values), ""]
    for name in type(settings).model_fields:
        if name == "roles":
            lines += _role_lines(settings)
        elif is_section(name):
            lines += [*_comment_lines(describe_fields(type(settings))[name]), f"[{name}]"]
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
    for name, description in describe_fields(type(section)).items():
        if f"{prefix}{name}" not in values:
            continue
        if name == "kind" and prefix == "strategy.":
            yield from (f'# "{kind}": {model.__doc__}' for kind, model in STRATEGIES.items())
        yield from _comment_lines(description)
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
    for role, description in describe_fields(type(settings.roles)).items():
        yield from ("", *_comment_lines(description), f"#[roles.{role}]")
    yield ""


@cache
def describe_fields(section: type[SettingsSection]) -> dict[str, str]:
    """What each field is for: its `Field(description=…)`, else the text below it."""
    below: dict[str, str] = {}
    for model in reversed(section.mro()):
        if issubclass(model, SettingsSection):
            (tree,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
            assert isinstance(tree, ast.ClassDef)  # noqa: S101
            for field, text in pairwise(tree.body):
                if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                    below[ast.unparse(field.target)] = inspect.cleandoc(
                        ast.literal_eval(text.value)
                    )
    return {
        name: field.description or below.get(name, "")
        for name, field in section.model_fields.items()
    }


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


_TABLE = re.compile(r"^\s*\[")


def write_keys(
    path: Path, section: str, values: Mapping[str, object], *, comment_out: Collection[str] = ()
) -> list[str]:
    """Sets keys of a section, in place of those that stand there; returns their lines.

    `comment_out`: keys of [strategy] that are commented out. Raises `BadConfig` where the file
    cannot be read or written.
    """
    new_lines = [
        f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()
    ]
    fix = "name another file with --config"
    try:
        text = path.read_bytes().decode("utf-8-sig") if path.exists() else ""
        line_end = "\r\n" if "\r\n" in text else "\n"
        lines = _comment_out([*_split_statements(text.replace("\r\n", "\n"))], comment_out)
        new_text = "\n".join(_replace_keys(lines, section, values, new_lines)) + "\n"
        # Line edits of a TOML file: parsed before it replaces the old one.
        if not _is_toml(new_text):
            fix = f"write the keys that it has of this section below [{section}]"
            raise BadConfig(f"cannot write {path}: it sets them in another form", fix=fix)
        # Written beside and moved: a full disk leaves the settings as they were.
        with write_whole(path) as draft:
            draft.write_text(new_text, encoding="utf-8", newline=line_end)
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfig(f"cannot write {path}: {error}", fix=fix) from error
    return new_lines


def _is_toml(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _split_statements(text: str) -> Iterator[str]:
    """The lines of a TOML file; the lines of one value in one."""
    held = ""
    for line in io.StringIO(text):
        held += line
        if _is_toml(held):
            yield held.removesuffix("\n")
            held = ""
    if held:
        yield held.removesuffix("\n")


def _find_table(lines: Sequence[str], section: str) -> range | None:
    """Line numbers of a table below its header."""
    header = re.compile(rf"^\s*\[\s*{section}\s*\]")
    start = next((i for i, line in enumerate(lines) if header.match(line)), None)
    if start is None:
        return None
    later = (i for i in range(start + 1, len(lines)) if _TABLE.match(lines[i]))
    return range(start + 1, next(later, len(lines)))


def _comment_out(lines: Sequence[str], keys: Collection[str]) -> list[str]:
    within = _find_table(lines, "strategy") or ()
    return [
        f"#{line}".replace("\n", "\n#")
        if i in within and line.partition("=")[0].strip() in keys
        else line
        for i, line in enumerate(lines)
    ]


def _replace_keys(
    lines: list[str], section: str, keys: Collection[str], told: list[str]
) -> list[str]:
    """The lines with the table's keys as told; its comments stay, and so do those after it."""
    found = _find_table(lines, section)
    if found is None:
        gap = [""] if lines and lines[-1].strip() else []
        return [*lines, *gap, f"[{section}]", *told]
    left = dict(zip(keys, told, strict=True))
    kept: list[str] = []
    for line in (lines[i] for i in found):
        bare = line.lstrip(" #\t")
        key = bare.partition("=")[0].strip()
        # A key that stands there, commented out or not, gives way: its comment stays above it.
        if key not in keys or not _is_toml(bare):
            kept.append(line)
        elif key in left:
            kept.append(left.pop(key) + _remark_behind(bare))
    return [*lines[: found.start], *left.values(), *kept, *lines[found.stop :]]


def _remark_behind(statement: str) -> str:
    """The comment at the end of a key's value, with the gap before it."""
    marks = (at for at, letter in enumerate(statement) if letter == "#")
    value = next((statement[:at] for at in marks if _is_toml(statement[:at])), statement)
    return statement[len(value.rstrip()) :].rstrip()
