"""`osler kb get --label A --label B`: the labels of drugs side by side, section by section.

Verbatim: nothing is chosen, shortened or judged. Each label is headed by its set id, version and
day, which are its citation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from osler.cli.kb import open_kb
from osler.cli.session import CliSession
from osler.cli.tables import plain_text
from osler.retrieve.labels import DrugLabel, FoundLabels, find_labels, shared_headings
from osler.text import escape_controls
from osler.types import Passage

if TYPE_CHECKING:
    from osler.settings import Settings

_TOLD = 8
"""Other labels of a drug that are told by their ids; of the rest the number."""
_NONE = "(no such section)"


def show_labels(
    here: CliSession, settings: Settings, names: Sequence[str], wanted: Sequence[str]
) -> None:
    """Shows the sections of the drugs' labels whose headings hold a word of `wanted`, or all.

    Raises `UnknownPassage` for a name that no label bears.
    """
    from osler.audit.entries import record_reading
    from osler.reports import LabelsSideBySide

    with open_kb(settings) as kb:
        found = [find_labels(kb, name, settings.access.may_open) for name in names]
    headings = shared_headings(found, wanted)
    read = [one.id for each in found for h in headings for one in each.sections.get(h, ())]
    record_reading(settings, "get", " | ".join(names), read)
    here.show_result(
        Group(_draw_table(found, headings), *map(_draw_others, found)),
        LabelsSideBySide.of(found, headings).model_dump(mode="json"),
    )


def _draw_table(found: Sequence[FoundLabels], headings: Sequence[str]) -> Table:
    table = Table(show_lines=True)
    for one in found:
        table.add_column(plain_text(_cite_label(one.shown)), ratio=1, overflow="fold")
    for heading in headings:
        table.add_row(*(_draw_cell(heading, one.sections.get(heading, [])) for one in found))
    return table


def _cite_label(label: DrugLabel) -> str:
    day = f", effective {label.effective}" if label.effective else ""
    return f"{label.title}\n{label.code}{day}"


def _draw_cell(heading: str, passages: Sequence[Passage]) -> Text:
    drawn, section = Text(heading, style="bold"), heading
    if not passages:
        return drawn.append(f"\n{_NONE}", style="not bold italic")
    for one in passages:
        if one.locator.section not in {section, heading}:
            drawn.append(f"\n{escape_controls(one.locator.section)}", style="not bold italic")
        section = one.locator.section
        drawn.append(f"\n{escape_controls(one.text)}", style="not bold")
    return drawn


def _draw_others(found: FoundLabels) -> Text:
    """The further labels that bear a name."""
    if not found.others:
        return Text()
    listed = ", ".join(f"{label.title} {label.document}" for label in found.others[:_TOLD])
    left = len(found.others) - _TOLD
    more = f" and {left:,} more" if left > 0 else ""
    return plain_text(f"further labels of {found.name}: {listed}{more}")
