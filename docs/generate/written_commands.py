"""Whether the commands that a page shows exist, with the options that it gives them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from typing import Any

from verb_pages import command_line

BLOCK = re.compile(r"^```(?:sh|console)\n(.*?)^```|`(osler [^`\n]+)`", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(?:\$ )?(?:OSLER__\S+ )?osler (.+)")


def mistakes(markdown: str) -> Iterator[str]:
    """Each unknown verb or option, with the command that has it."""
    for block in BLOCK.finditer(markdown):
        for line in (block[1] or block[2]).replace("\\\n", " ").splitlines():
            if found := COMMAND.match(line):
                yield from (f"{wrong} in `{line}`" for wrong in _mistakes(_words(found[1])))


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:  # a quote that goes on in the next line
        return line.split()


@cache
def _command() -> Any:
    return command_line()


def _mistakes(words: list[str]) -> Iterator[str]:
    command, options = _command(), {"--help", "-h"}
    for number, word in enumerate(words):
        below = getattr(command, "commands", {})
        options |= {opt for one in command.params for opt in (*one.opts, *one.secondary_opts)}
        if word in below:
            command = below[word]
        elif word.startswith("-") and word != "-":
            if word.partition("=")[0] not in options:
                yield f"no option {word}"
        elif number == 0 and re.fullmatch(r"[a-z-]+", word):
            yield f"no verb {word}"
