r"""Verdicts of judges and self-checks: yes or no, letters, and the numbers of documents.

<answer>yes</answer>                     Omni-RAG App. E.4
<answer>\\boxed{True}</answer>            KAG-Thinker Table 3

A verdict stands in a tag, a box, JSON ({"verdict": "yes"}), behind its name ("**Answer**: Yes"),
alone on the last line, or first. Whatever stands around it, the last of the first of these shapes
that holds one is the verdict: a model that corrects itself does so at the end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from osler.errors import MalformedOutput
from osler.llm.core.grammar import Grammar, Node, alt, free_text, maybe, repeat, seq
from osler.llm.core.spans import boxed_spans, strip_types
from osler.llm.reading.json_replies import json_values

T = TypeVar("T")

# Also a closing tag first, as in the paper's own sample (KAG-Thinker Table 4), and none at the end:
# then the verdict ends with its line.
_TAG = r"(?:answer|verdict|judge?ment|final_answer)"
_TAGGED = re.compile(
    rf"<\s*/?\s*{_TAG}\s*>(?P<inside>(?:(?!<\s*/?\s*{_TAG}\s*>).)*?)(?:<\s*/?\s*{_TAG}\s*>)"
    rf"|<\s*{_TAG}\s*>(?P<open>[^<\n]*)",
    re.IGNORECASE | re.DOTALL,
)
_KEYS = ("answer", "verdict", "judgement", "judgment", "result", "choice", "option", "final_answer")
_KEYS_ZH = ("答案", "结论", "判断", "选项")
_NAMED = re.compile(
    r"(?:\b(?:answer|verdict|judge?ment|conclusion)|答案|结论|判断)"
    r"[\s*_`\"'”」]*(?:\bis\b|:|：|=|是|为)([^\n]*)",
    re.IGNORECASE,
)
_DRESS = r"[\s\"'“”‘’「」*_`#>（(\[【{$\\:：.。!！-]*"
_NO_WORDS = (
    r"(?:no(?!\s+(?:doubt|problem|question))|false|incorrect|wrong|bad|fail(?:ed|s)?)(?![a-z])"
    r"|不(?![仅但过管论])|否|错(?!综)|无法|假(?![设如])|差(?![不异别])"
)
# "Good question." and "对于这个问题" only begin like a yes.
_YES_WORDS = (
    r"(?:yes|true|correct|pass(?:ed|es)?)(?![a-z])"
    r"|(?:right|good)(?=[^\S\n]*(?:$|[^\w ,，]|(?:because|since|enough)\b))"
    r"|(?:(?:是|对|正确|真)的?|能够?|可以)(?=$|[^\w/])|(?:能够?|可以)(?=回答|确定|得出)|好(?=$|[^\w/,，])"
)
_WORD = re.compile(
    rf"{_DRESS}(?:(?:text|mathrm|mathbf)\s*\{{)?{_DRESS}(?:it\s+is\s+|that\s+is\s+)?"
    rf"(?:(?P<no>(?:not\s+(?:correct|true|right|good))(?![a-z])|{_NO_WORDS})|(?P<yes>{_YES_WORDS}))",
    re.IGNORECASE,
)
# The question's own "yes/no", repeated.
_BOTH = re.compile(
    r"\W*(?:yes|true|是|pass|good)\s*(?:/|or|或)\s*(?:no|false|否|fail|bad)\b", re.IGNORECASE
)
_NONE = re.compile(
    r"\W*(?:none|no|0|无|没有)?(?: of (?:them|the (?:documents|above)))?\W*", re.IGNORECASE
)
_LABEL = r"(?:documents?|passages?|references?|nos?\.|numbers?|文档|资料|第)?\s*"
_NUMBER = rf"{_LABEL}[\[【(#]*\d{{1,3}}[\])】]*"
_TO = r"[\])】]*[ \t]*(?:[-–—~～至到]|to\b)[ \t]*[\[【(#]*"
_NUMBERS = re.compile(
    rf"\W*{_NUMBER}(?:(?:\s*(?:,|，|、|;|and|和|&)+\s*|\s*(?=[\[【])|{_TO}){_NUMBER})*"
    r"[\s\])】}*_`.。篇号]*",
    re.IGNORECASE,
)
_RANGE = re.compile(rf"(\d+)(?:{_TO}(\d+))?", re.IGNORECASE)
_ROW_KEY = r"(?<!\d)(\d{1,3})[\"'”\])）*]*\s*(?:[:：=→]|->)"
_ROW = re.compile(
    rf"{_ROW_KEY}(.*?)(?=[,;；\s]*[\"'“\[(（*\-]*(?:statement|陈述|语句)?\s*{_ROW_KEY}|\Z)",
    re.IGNORECASE | re.DOTALL,
)
"""A row's number and what is said of it, up to the next."""
_LONE = re.compile(r"[\s*_`>#$-]*(.*?)[\s*_`$]*")
_TALK = 40
"""Characters of a last line that may be a verdict alone."""


def read_verdict(reply: str) -> bool:
    """Reads yes, true, good or pass against no, false, bad or fail; English and Chinese.

    Raises `MalformedOutput` when neither is said, or the question's own "yes/no" is repeated.
    """
    return _first_read(reply, _yes_or_no, "<answer>yes</answer> or <answer>no</answer>")


def read_numbers(reply: str, count: int) -> list[bool]:
    """Reads, for each of `count` documents, whether the verdict names it; as `read_order`."""
    named = read_order(reply, count)
    return [n in named for n in range(1, count + 1)]


def read_order(reply: str, count: int) -> list[int]:
    """Reads which of `count` documents the verdict names, from 1, in its order, each once.

    Raises `MalformedOutput` if absent, or for a number that no document has.
    """

    form = f"<answer>1, 3</answer> of documents 1 to {count}, or <answer>none</answer>"
    # Without any shape a number in the text is no verdict.
    return _first_read(reply, lambda said: _read_list(said, count), form, plain=False)


def read_table(reply: str, rows: int, count: int) -> list[list[int]]:
    """Reads, for each of `rows` lines "2: 1, 3", which of `count` documents it names, from 1.

    Of two lines of one row the later counts. Raises `MalformedOutput` if one is absent or names
    what is not there.
    """

    def read_rows(said: str) -> list[list[int]] | None:
        found = {int(match[1]): _read_list(match[2], count) for match in _ROW.finditer(said)}
        named = [found.get(row) for row in range(1, rows + 1)]
        return None if None in named else [one for one in named if one is not None]

    form = f"<answer>, a line for each of 1 to {rows} (1: 2, 3 or 1: none), </answer>"
    return _first_read(reply, read_rows, f"{form}; documents are 1 to {count}")


def _read_list(said: str, count: int) -> list[int] | None:
    said = said.replace("*", "")
    if _NONE.fullmatch(said):
        return [] if said.strip() else None
    ranges = _RANGE.findall(said) if _NUMBERS.fullmatch(said) else []
    numbers = (n for first, last in ranges for n in range(int(first), int(last or first) + 1))
    named = list(dict.fromkeys(numbers))
    return named if named and set(named) <= set(range(1, count + 1)) else None


def read_letter(reply: str, letters: str) -> str:
    """Reads one of `letters`. Raises `MalformedOutput`."""
    other = rf"\s*(?:,|、|or\b|and\b|或|和)\s*[{letters}]\b"
    lone = re.compile(rf"{_DRESS}(?:text\s*\{{)?([{letters}])(?![A-Za-z0-9'’]|{other})[^/]*")
    nothing_else = re.fullmatch(rf"\W*[{letters}]\W*", reply) is not None

    def read_one(said: str) -> str | None:
        match = lone.fullmatch(said.strip())
        return match[1] if match else None

    form = f"<answer>{letters[0]}</answer> with one of {', '.join(letters)}"
    return _first_read(reply, read_one, form, plain=nothing_else)


def stated_values(reply: str) -> Iterator[str]:
    """What the reply's shapes hold, the surest shape first, and of each the last first."""
    tagged = [match["inside"] or match["open"] or "" for match in _TAGGED.finditer(reply)]
    yield from reversed([each for each in tagged if each.strip()])
    yield from reversed([strip_types(reply, box) for box in boxed_spans(reply)])
    yield from reversed(list(json_verdicts(reply)))
    yield from reversed(_NAMED.findall(reply))
    if (lone := lone_last_line(reply)) is not None:
        yield lone


def json_verdicts(reply: str) -> Iterator[str]:
    """The values of the keys that name a verdict, in the JSON objects of a reply."""
    for value in json_values(reply):
        if not isinstance(value, Mapping):
            continue
        for key, said in value.items():
            if str(key).strip().casefold().replace(" ", "_") in (*_KEYS, *_KEYS_ZH):
                yield _value_words(said)


def lone_last_line(reply: str) -> str | None:
    """The last line without its dress, where it may be a verdict alone; else None."""
    lines = [line for line in reply.splitlines() if line.strip(" \t*_`-")]
    match = _LONE.fullmatch(lines[-1]) if len(lines) > 1 else None
    return match[1] if match and 0 < len(match[1]) <= _TALK else None


def _value_words(value: object) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(str, value)) or "none"
    return str(value)


def _first_read(
    reply: str, read: Callable[[str], T | None], expected: str, *, plain: bool = True
) -> T:
    """What `read` reads of the surest shape; `plain`: at last of the reply's beginning."""
    for said in (*stated_values(reply), *([reply] if plain else [])):
        if (found := read(said)) is not None:
            return found
    raise MalformedOutput(reply, expected=expected)


def _yes_or_no(said: str) -> bool | None:
    match = _WORD.match(said)
    return None if match is None or _BOTH.match(said) else match["yes"] is not None


def verdict_grammar(*, boxed: bool = False, reason: int = 0) -> Grammar:
    """Makes the grammar of a verdict. `boxed`: KAG-Thinker's form; `reason`: characters of
    reasoning that may come first.
    """
    words = (r"\boxed{True}", r"\boxed{False}") if boxed else ("yes", "no")
    verdict = seq("<answer>", alt(*words), "</answer>")
    return Grammar("verdict", after_reasoning(verdict, reason))


def numbers_grammar(count: int, reason: int) -> Grammar:
    """Grammar of the replies that `read_numbers` reads, after some reasoning."""
    return Grammar("numbers", after_reasoning(seq("<answer>", _list(count), "</answer>"), reason))


def table_grammar(rows: int, count: int, reason: int) -> Grammar:
    """Grammar of the replies that `read_table` reads, after some reasoning."""
    lines = [seq(f"{row}: ", _list(count), "\n") for row in range(1, rows + 1)]
    return Grammar("table", after_reasoning(seq("<answer>\n", *lines, "</answer>"), reason))


def _list(count: int) -> Node:
    number = alt(*map(str, range(1, count + 1)))
    named = seq(number, repeat(seq(", ", number), 0, count - 1)) if count > 1 else number
    return alt(named, "none")


def after_reasoning(answer: Node, longest: int) -> Node:
    """Allows a line of up to `longest` characters before the answer."""
    return seq(maybe(free_text(longest, without="<"), "\n"), answer) if longest else answer
