"""quality.toml: what was measured, one part a script, each figure with its interval and n.

`write_figures` writes a file of `scoreboard/figures`, with a value for each question.
"""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from osler_lab.evaluate.intervals import Estimate

FILE = Path(__file__).with_name("quality.toml")
COLUMNS = ["table", "set", "row", "measure", "n", "hits", "value", "low", "high"]
COLUMNS += ["opponent", "source", "values"]
_HEAD = """\
# Quality on real data, written by the scripts that are named; never by hand.
# A figure is [value, lower, upper end of the 95 % interval, n].
"""


def figure(estimate: Estimate) -> list[float | int]:
    """An estimate as the file holds it."""
    return [*(round(x, 4) for x in (estimate.value, estimate.low, estimate.high)), estimate.n]


def write_figures(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes such a file as `scoreboard/figures` has; columns that a row lacks stay empty."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def join_values(values: Sequence[float]) -> str:
    """The values of one row as the file holds them."""
    return " ".join(f"{value:.3g}" for value in values)


def store(part: str, table: Mapping[str, Any], file: Path = FILE) -> None:
    """Puts one part (plain values and tables of them) in the place of the former one."""
    held = tomllib.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    parts = {**held, part: table}
    blocks = ["\n".join(_lines((name,), parts[name])) for name in sorted(parts)]
    file.write_text("\n\n".join([_HEAD.rstrip(), *blocks]) + "\n", encoding="utf-8")


def _lines(path: tuple[str, ...], table: Mapping[str, Any]) -> list[str]:
    plain = {name: value for name, value in table.items() if not isinstance(value, Mapping)}
    made = [f"[{'.'.join(map(_key, path))}]"] if plain else []
    made += [f"{_key(name)} = {_value(value)}" for name, value in plain.items()]
    for name, value in table.items():
        if isinstance(value, Mapping):
            made += ["", *_lines((*path, name), value)] if made else _lines((*path, name), value)
    return made


def _key(name: str) -> str:
    plain = name.replace("-", "").replace("_", "")
    return name if plain.isascii() and plain.isalnum() else _value(name)


def _value(value: object) -> str:
    """Of text, numbers, truth and lists of these."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)
