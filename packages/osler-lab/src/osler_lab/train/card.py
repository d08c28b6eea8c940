"""Card of a data set in the form of the Hugging Face hub: front matter, then a description."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from osler.errors import BadRun, translate_os_errors
from osler.text import language_of
from osler_lab.train.record import CARD, DATA, DpoRecord, Kind, RecordSize, read_records, size_of

FACTS = "recipe.json"
# The size categories of the hub's front matter.
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (10**6, "100K<n<1M"))
_FORMS: dict[Kind, str] = {
    "sft": '{"id", "messages": [{"role", "content"}, …], "completion", "meta"}',
    "dpo": '{"id", "messages": [{"role", "content"}, …], "chosen", "rejected", "meta"}',
}


@dataclass
class RecordSummary:
    """Summary of the records of a folder."""

    kind: Kind = "sft"
    size: RecordSize = field(default_factory=RecordSize)
    tasks: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)


def summarize_records(folder: Path) -> RecordSummary:
    """Raises `BadRun` for a folder without records, or with both kinds."""
    summary = RecordSummary()
    for record in read_records(folder):
        summary.kind = "dpo" if isinstance(record, DpoRecord) else "sft"
        summary.size += size_of(record.messages, *record.replies)
        summary.tasks[str(record.meta.get("task", "unnamed"))] += 1
        # The last message holds the question; the system's line may be in another language.
        summary.languages[language_of(record.messages[-1].content)] += 1
    return summary


def size_category(records: int) -> str:
    """Size category of the hub for this number of records."""
    return next((word for most, word in _SIZES if records < most), "n>1M")


def keep_facts(folder: Path, facts: dict[str, Any]) -> None:
    """Writes the facts that the card lists."""
    text = json.dumps(facts, ensure_ascii=False, indent=1)
    (folder / FACTS).write_text(f"{text}\n", encoding="utf-8")


def write_card(folder: Path) -> str:
    """Writes the card of a folder's records; returns its text. Raises `BadRun` without records.

    Its licence is "other": the records hold questions of the sets named in them, whose own terms
    hold.
    """
    summary = summarize_records(folder)
    title = f"Source plans to learn ({summary.kind.upper()})"
    front, facts = _front_matter(summary, title), _card_facts(folder)
    text = f"{front}\n# {title}\n\n{_about_section(summary)}\n{_made_of(facts)}"
    with translate_os_errors(f"{folder / CARD} cannot be written", BadRun):
        (folder / CARD).write_text(text, encoding="utf-8")
    return text


def _card_facts(folder: Path) -> dict[str, Any]:
    path = folder / FACTS
    if not path.exists():
        return {}
    try:
        facts: dict[str, Any] = json.loads(path.read_bytes())
    except ValueError as error:
        raise BadRun(f"{path} is damaged: {error}", fix="write the data set again") from error
    return facts


def _front_matter(summary: RecordSummary, title: str) -> str:
    return "\n".join(
        [
            "---",
            # JSON strings are YAML strings, so quotes and colons in a title do no harm.
            f"pretty_name: {json.dumps(title, ensure_ascii=False)}",
            "license: other",
            f"language: [{', '.join(sorted(summary.languages))}]",
            "task_categories: [text-generation]",
            f"size_categories: [{size_category(summary.size.records)}]",
            f"tags: [medical, retrieval, source-planning, {summary.kind}]",
            "configs:",
            "- config_name: default",
            f"  data_files: {DATA}",
            "---",
            "",
        ]
    )


def _about_section(summary: RecordSummary) -> str:
    size = summary.size
    rows = "\n".join(f"| {task} | {n:,} |" for task, n in sorted(summary.tasks.items()))
    return (
        f"{size.records:,} records, each `{_FORMS[summary.kind]}`.\n"
        f"About {size.prompt:,} tokens of prompts and {size.reply:,} of replies; the longest"
        f" record has about {size.longest:,}.\n\n"
        f"| Task | Records |\n|---|--:|\n{rows}\n\n"
        "The questions are those of the tasks named here, whose own terms hold.\n"
    )


def _made_of(facts: dict[str, Any]) -> str:
    if not facts:
        return ""
    rows = "\n".join(f"| {name} | {_format_cell(value)} |" for name, value in facts.items())
    return f"\n## How it was made\n\n| What | Value |\n|---|---|\n{rows}\n"


def _format_cell(value: object) -> str:
    if isinstance(value, str):
        text = value
    elif isinstance(value, list) and all(isinstance(one, str) for one in value):
        text = ", ".join(value)
    else:
        text = json.dumps(value, ensure_ascii=False)
    return text.replace("|", "\\|").replace("\n", " ") or "-"
