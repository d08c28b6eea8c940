"""Finds the names in a question without a model, for models too small to extract them."""

from __future__ import annotations

import re

from osler.retrieve.words import STOP_CHARACTERS, STOP_WORDS
from osler.text import is_cjk

_QUOTED = re.compile(r"[\"“”«「『《]([^\"“”«»「」『』《》]{2,60})[\"“”»」』》]")
_WORD = re.compile(r"[^\W_][\w'’.&/-]*")
MARKS = "'’\"[]<>\n"
"""Characters that would end a quoted name."""
# Words that may stand inside a name, not at its ends.
_LINKS = frozenset(
    ["of", "the", "de", "la", "le", "du", "van", "von", "and", "&", "for", "da", "di"]
)
# First words of questions that begin no name.
_ASKING = STOP_WORDS | {"who", "whom", "whose"}
# Upper bound on names.
_MOST = 12


def names_in(question: str) -> tuple[str, ...]:
    """Possible subjects of a question, as spelt there: quoted texts, else runs of capitalised
    words, else runs of content words. The longest first; none with a character that ends a name in
    a logical form."""
    found = [match[1].strip() for match in _QUOTED.finditer(question)]
    found = found or _capitalised_runs(question) or _content_runs(question)
    # "A and B" may be one name or two: offer both readings.
    found += [part for name in found for part in name.split(" and ") if part != name]
    kept = [name for name in dict.fromkeys(found) if not set(name) & set(MARKS)]
    return tuple(sorted(kept, key=lambda name: -len(name))[:_MOST])


def _capitalised_runs(question: str) -> list[str]:
    """Runs of words that begin with a capital or a digit; the question's first word alone is no
    name."""
    runs: list[str] = []
    run: list[re.Match[str]] = []

    def close_run() -> None:
        while run and run[-1][0] in _LINKS:
            run.pop()
        if run and not (len(run) == 1 and run[0][0].casefold() in STOP_WORDS):
            runs.append(_trim_name(question[run[0].start() : run[-1].end()]))
        run.clear()

    for word in _WORD.finditer(question):
        apart = run and question[run[-1].end() : word.start()].strip()
        if apart:
            close_run()
        opens = word[0][0].isupper() or (run and word[0][0].isdigit())
        first_of_all = word.start() == 0 and word[0].casefold() in _ASKING
        if (opens and not first_of_all) or (run and word[0] in _LINKS):
            run.append(word)
        else:
            close_run()
    close_run()
    return [each for each in runs if each]


def _trim_name(name: str) -> str:
    return re.sub(r"['’]s?$", "", name).rstrip(".,")


def _content_runs(question: str) -> list[str]:
    """Runs of content words; Chinese is cut at function characters."""
    runs: list[str] = []
    for part in re.split(r"[^\w\s'’-]+", question):
        if any(map(is_cjk, part)):
            runs += re.split(f"[{''.join(sorted(STOP_CHARACTERS))}\\s]+", part)
            continue
        run: list[str] = []
        for word in [*part.split(), "the"]:
            if word.casefold() not in STOP_WORDS:
                run.append(word)
            elif run:
                runs.append(_trim_name(" ".join(run)))
                run = []
    return [run for run in runs if len(run) > 1]
