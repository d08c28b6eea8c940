"""Line breaks of Chinese text, which Rich breaks anywhere: in "2.5" and before a mark or stop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.containers import Lines
from rich.text import Text

from osler.cli.help_page import UNIT
from osler.text import has_cjk


class WrappedText(Text):
    """A text of which a line that has Chinese breaks between signs and words."""

    def wrap(self, console: Console, width: int, **how: Any) -> Lines:
        if how.get("no_wrap") or self.no_wrap or not has_cjk(self.plain):
            return super().wrap(console, width, **how)
        lines = Lines()
        for line in self.split(allow_blank=True):
            line.expand_tabs(how.get("tab_size", 8))
            parts = line.divide(find_breaks(line.plain, width))
            for part in parts:
                part.rstrip_end(width)
            lines.extend(parts)
        return lines


def find_breaks(text: str, width: int) -> Iterator[int]:
    """Where the lines of a text begin, but the first, in `width` columns."""
    filled = 0
    for unit in filter(lambda one: one[0], UNIT.finditer(text)):
        word, at = unit[0].rstrip(), unit.start()
        if filled and filled + cell_len(word) > width:
            yield at
            filled = 0
        for piece in chop_cells(word, width)[:-1]:  # a word longer than a line
            at += len(piece)
            yield at
            filled = 0
        filled += cell_len(text[at : unit.end()])
