"""Keys that a command writes into a settings file; every other line stays as it is."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from osler.errors import BadConfig
from osler.llm.core.cache import write_whole

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
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        lines = _comment_out(text.splitlines(), "strategy", comment_out)
        new_text = "\n".join(_replace_keys(lines, section, values, new_lines)) + "\n"
        # Line edits of a TOML file: parsed before it replaces the old one.
        tomllib.loads(new_text)
        # Written beside and moved: a full disk leaves the settings as they were.
        with write_whole(path) as draft:
            draft.write_text(new_text, encoding="utf-8")
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadConfig(
            f"cannot write {path}: {error}", fix="name another file with --config"
        ) from error
    return new_lines


def _find_table(lines: Sequence[str], section: str) -> range | None:
    """Line numbers of a table below its header."""
    header = re.compile(rf"^\s*\[\s*{section}\s*\]")
    start = next((i for i, line in enumerate(lines) if header.match(line)), None)
    if start is None:
        return None
    later = (i for i in range(start + 1, len(lines)) if _TABLE.match(lines[i]))
    return range(start + 1, next(later, len(lines)))


def _comment_out(lines: Sequence[str], section: str, keys: Collection[str]) -> list[str]:
    within = _find_table(lines, section) or ()
    return [
        f"#{line}" if i in within and line.partition("=")[0].strip() in keys else line
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
        key = line.split("=")[0].strip(" #\t")
        # A key that stands there, commented out or not, gives way: its comment stays above it.
        if key not in keys:
            kept.append(line)
        elif key in left:
            kept.append(left.pop(key))
    return [*lines[: found.start], *left.values(), *kept, *lines[found.stop :]]
