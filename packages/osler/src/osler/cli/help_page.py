"""The pages of `--help` in Chinese: words from the list, lines by the width of their characters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from unicodedata import east_asian_width

from typer._click.formatting import HelpFormatter

from osler.cli.words import say

if TYPE_CHECKING:
    from typer._click.exceptions import UsageError

_HAN, _OPENS, _ENDS = (
    r"\u2e80-\u9fff\uf900-\ufaff",
    "（《「『【〔“‘",
    "，。；：！？、）》」』】〕”’…",
)
UNIT = re.compile(
    rf"[{_OPENS}]*(?:[^\s{_HAN}{_OPENS}{_ENDS}]+|[{_HAN}])?(?:[{_ENDS}]|\[R?\d+\])*\s*"
)
"""What stays on one line: a number, a foreign word or a sign, with the punctuation and the marks
that must not part from it."""
# What typer writes after the words of an option: its default, its range, that it is required.
_EXTRAS = re.compile(r"(?P<words>.*?)\s*\[(?P<extras>[^\[\]]*|default: .*)\]", re.DOTALL)


class ChineseFormatter(HelpFormatter):
    """What click writes, in Chinese."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        super().write_usage(prog, say_usage(args), prefix or "用法：")

    def write_heading(self, heading: str) -> None:
        self.write(f"{'':>{self.current_indent}}{say(heading)}：\n")

    def write_text(self, text: str) -> None:
        indent = " " * self.current_indent
        paragraphs = (say(" ".join(one.split())) for one in text.split("\n\n"))
        folded = ("\n".join(fold_text(one, self.width, indent)) for one in paragraphs)
        self.write("\n\n".join(folded) + "\n")

    def write_dl(
        self, rows: Sequence[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        told = [(say_usage(first), _say_option(second)) for first, second in rows]
        column = min(max(count_columns(first) for first, _ in told), col_max) + col_spacing
        for first, second in told:
            lines = [*fold_text(second, self.width - column - self.current_indent)]
            space = column - count_columns(first)
            if space < col_spacing:
                lines, space = ["", *lines], 0
            pad = "\n" + " " * (self.current_indent + column)
            self.write(f"{'':>{self.current_indent}}{first}{'':>{space}}{pad.join(lines)}\n")


def say_usage(words: str) -> str:
    """The names of what an option takes, as in `--path <path>`; values to choose from stay."""
    return re.sub(r"<[^<>|]+>|\[OPTIONS\]|\[ARGS\]|COMMAND", lambda one: say(one[0]), words)


def _say_option(words: str) -> str:
    found = _EXTRAS.fullmatch(words)
    if found is None:
        return say(words)
    extras = "；".join(map(say, found["extras"].split("; ")))
    return f"{say(found['words'])}[{extras}]"


def count_columns(text: str) -> int:
    """Columns of a terminal that a text takes."""
    return sum(2 if east_asian_width(one) in "WF" else 1 for one in text)


def fold_text(text: str, width: int, indent: str = "") -> Iterator[str]:
    """The text in lines of so many columns."""
    line = indent
    for piece in UNIT.findall(text):
        if count_columns(line) + count_columns(piece.rstrip()) > width and line.strip():
            yield line.rstrip()
            line = indent + piece.lstrip()
        else:
            line += piece
    yield line.rstrip()


def describe_usage(error: UsageError) -> str:
    """A command line that cannot be, in Chinese."""
    told = f"osler：{say(error.format_message())}\n"
    if error.ctx is None:
        return told
    path = error.ctx.command_path
    return f"{error.ctx.get_usage()}\n帮助：{path} {error.ctx.help_option_names[0]}\n{told}"
