"""Running text with heading lines, as sections under heading paths."""

from __future__ import annotations

from collections.abc import Callable

from osler.sources.records import Section
from osler.text import clean_text

Heading = tuple[int, str]
"""Level (1 = outermost) and text."""


class HeadingPath:
    """The headings above the present line, outermost first."""

    def __init__(self) -> None:
        self._open: list[Heading] = []

    def enter_heading(self, level: int, heading: str) -> None:
        """Enters a heading: those of the same or a deeper level end. "" only ends them."""
        self._open = [above for above in self._open if above[0] < level]
        if heading:
            self._open.append((level, heading))

    @property
    def path(self) -> tuple[str, ...]:
        return tuple(heading for _, heading in self._open)


def sections_of(
    text: str,
    heading_of: Callable[[str], Heading | None],
    finish: Callable[[str], str] = clean_text,
) -> tuple[Section, ...]:
    """The text between heading lines; a heading with nothing under it makes no section.

    `heading_of` says what heading a line is, if any; `finish` makes the final text
    of a section out of its lines.
    """
    sections: list[Section] = []
    outline, lines = HeadingPath(), list[str]()

    def close_section() -> None:
        if body := finish("\n".join(lines)):
            sections.append(Section(body, outline.path))
        lines.clear()

    for line in text.split("\n"):
        if (heading := heading_of(line)) is None:
            lines.append(line)
        else:
            close_section()
            outline.enter_heading(*heading)
    close_section()
    return tuple(sections)
