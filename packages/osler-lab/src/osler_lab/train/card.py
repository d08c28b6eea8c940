"""Cards of data sets and models in the form of the Hugging Face hub: front matter, then text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from osler.errors import BadRun, translate_os_errors
from osler.llm.core.cache import write_whole
from osler_lab.train.record import CARD

# The size categories of the hub's front matter.
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (10**6, "100K<n<1M"))


def write_card(folder: Path, head: Mapping[str, Any], title: str, *parts: str) -> None:
    """Writes `README.md`: `head` as front matter, the title, and the parts with blank lines
    between. Raises `BadRun` where it cannot be written."""
    # JSON is YAML, so quotes and colons do no harm; one key a line keeps it readable.
    front = "\n".join(f"{key}: {json.dumps(v, ensure_ascii=False)}" for key, v in head.items())
    text = "\n\n".join((f"---\n{front}\n---", f"# {title}", *parts))
    with (
        translate_os_errors(f"{folder / CARD} cannot be written", BadRun),
        write_whole(folder / CARD) as draft,
    ):
        draft.write_text(f"{text}\n", encoding="utf-8")


def data_head(records: int, data: str) -> dict[str, Any]:
    """What the hub wants to know of any data set: its size, and its one file."""
    size = next((word for most, word in _SIZES if records < most), "n>1M")
    files = [{"split": "train", "path": data}]
    return {
        "size_categories": [size],
        "configs": [{"config_name": "default", "data_files": files}],
    }


def render_rows(rows: Iterable[tuple[str, object]]) -> str:
    """A table of names and values."""
    lines = (f"| {name} | {_format_cell(value)} |" for name, value in rows)
    return "\n".join(("| | |", "|---|---|", *lines))


def _format_cell(value: object) -> str:
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        value = ", ".join(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.replace("|", "\\|").replace("\n", " ") or "–"
