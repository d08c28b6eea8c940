"""Reading the option that a text chose: one letter, or several.

Omni-RAG's program takes the first `<answer>`, else a leading letter, else "Answer: X". Here the
tags are read first, then boxes, JSON, what is stated in words, and at last a letter alone on the
last line; of one shape every occurrence is
read, since models echo the form that they were given. Where the readings of a shape name
different letters, nothing is read: a guess between them would be ours, not the model's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from osler.llm.core.spans import boxed_spans, strip_types
from osler.llm.reading.verdicts import json_verdicts, lone_last_line
from osler.text import word_set
from osler.types import Question

Letters = frozenset[str]

_MARKS = r"[\s*_`\"'“”‘’「」『』()（）\[\]［］【】{}$]*"
# A letter, or a run of capitals ("ABD"), that is no part of a word: "C-reactive", "I'd".
_RUN = rf"{_MARKS}(?:[A-Z]+|[a-z])(?![A-Za-z0-9])(?!['’-]\w){_MARKS}"
_JOIN = r"(?:[,，、/;；&+]|(?i:and|or)\b|和|与|或|及)"
_LIST = re.compile(rf"{_RUN}(?:(?:\s*{_JOIN})+{_RUN})*")
# Within tags and boxes a space joins letters too.
_LOOSE_LIST = re.compile(rf"{_RUN}(?:(?:\s*{_JOIN})*{_RUN})*")
_WORD = re.compile(r"[A-Za-z]+")
_JOINERS = frozenset({"AND", "OR"})

# One that is never closed ends with its line: what comes later is talk.
_TAG = re.compile(r"<answer>(?:([^<]*)</|\s*([^<\n]*))", re.IGNORECASE)
_TEMPLATE = re.compile(r"…|\.\.\.?\s*$")
_SLASHES = re.compile(r"\W*[A-Za-z](?:\s*/\s*[A-Za-z])+\W*")

# "BE" in capitals are two letters.
_LINK = (
    r"(?:[\s*_:：=]|is\b|are\b|(?-i:be\b)|would\b|should\b|option\b|choice\b|letter\b"
    r"|是|为|应|该|选|项)"
)
_NAMED = re.compile(
    r"(?:\banswers?[\s*_]*(?::|：|=|is\b|are\b|would\b|should\b)"
    r"|\b(?:correct|right|best)\s+(?:option|choice)s?[\s*_]*(?::|：|=|is\b|are\b)"
    r"|(?<!not )(?<!n't )\b(?:choose|select|pick)\b"
    r"|(?:答案|正确选项)[\s*_]*(?:是|为|应|选|:|：)"
    r"|(?<![不勿未没别可])选(?!项)择?)"
    rf"{_LINK}*",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\s*(?:错|不|is\s+(?:wrong|incorrect|not)\b|isn't\b|are\s+(?:wrong|not)\b)")
_LABEL = re.compile(rf"{_MARKS}(?:(?i:option|choice)\b|选项)?")
# What may follow "A" where it is a letter and no article.
_GOES_ON = frozenset({"is", "are", "because", "since", "as", "for", "due", "but", "which", "with"})
# And what follows other letters that begin no name ("C peptide", "B超").
_GOES_ON_TOO = _GOES_ON | word_set(
    "and or not rather over in on from by per given based according if that it this these the he"
    " she they we you while so thus then would should can may has was were seems only alone here"
    " option"
)
_GOES_ON_ZH = "项选是为因由正对错不和与或及即更最可应才故而能"
# Behind a wording: "5 mg" is not what "5 mg/kg" chooses.
_ENDS = re.compile(
    r"\s*(?:$|[.,:](?!\d)|[;!?)\]*_`\"'”’」。，；：！？、）】(（\[<]"
    r"|(?:and|or|is|are|because|since|as|which|due|but)\b|[和与或及])|检查|治疗"
)
_REPLY = re.compile(r"\W*(?:yes|no|maybe|true|false)(?=[.,;:!])", re.IGNORECASE)
_LEAD = re.compile(rf"^{_MARKS}[A-Za-z]\s*[).,:、：．）]", re.MULTILINE)
_AFTER_LEAD = ".,:;、：．。，；)）]］】*"


def written_option(text: str, question: Question) -> str | None:
    """The letter that a text chose; `None` where it names none that is offered, or two.

    Read are `<answer>B</answer>`, a box, "The correct option is (B)", "答案：B。", a leading
    "B." and a text that is an option's letter or its whole wording.
    """
    letters = Letters().union(*_readings(text, question))
    return next(iter(letters)) if len(letters) == 1 else None


def written_options(text: str, question: Question) -> tuple[str, ...]:
    """The letters that a text chose when several may be right: "ABD", "A、B", "A and D".

    In the order of the question; empty when none is named, one that is not offered, or the
    same shape names different sets.
    """
    readings = set(_readings(text, question))
    chosen = readings.pop() if len(readings) == 1 else Letters()
    return tuple(letter for letter in question.letters if letter in chosen)


def named_option(text: str, question: Question) -> str | None:
    """The letter of the one option whose wording stands in the text, in whole words.

    An option that contains the wording of another counts alone where the other stands only
    within it. `None` for none, and where two are named.
    """
    # Longest first, each blanked once it is found: "iron and folate" does not name "iron".
    left, found = " ".join(text.casefold().split()), list[str]()
    for letter, option in sorted(question.lettered, key=lambda pair: -len(pair[1])):
        words = " ".join(option.casefold().split())
        if words and (pattern := _whole_words(words)).search(left):
            left = pattern.sub("\n", left)
            found.append(letter)
    return found[0] if len(found) == 1 else None


def _whole_words(words: str) -> re.Pattern[str]:
    # Only Latin words have an edge; Chinese is written without spaces.
    first = r"(?<![a-z0-9])" if words[0].isascii() else ""
    last = r"(?![a-z0-9])" if words[-1].isascii() else ""
    return re.compile(first + re.escape(words) + last)


def _worded(text: str, question: Question) -> Letters:
    """The options with whose wordings a text begins: "adrenaline", "iron and folate"."""
    lettered = {_fold(option): letter for letter, option in question.lettered}
    patterns = {words: _whole_words(words) for words in sorted(lettered, key=len, reverse=True)}
    left, found = _fold(text).lstrip(" *_`\"'“‘「『([（［【{$:："), set[str]()
    while words := next((w for w, one in patterns.items() if w and one.match(left)), ""):
        left = left[len(words) :]
        if not _ENDS.match(left):
            break
        found.add(lettered[words])
        joined = re.match(rf"\s*{_JOIN}+\s*", left)
        left = left[joined.end() :] if joined else ""
    return Letters(found)


def _fold(text: str) -> str:
    return re.sub(r"[\s‐‑–-]+", " ", text.casefold()).strip()


def _readings(text: str, question: Question) -> list[Letters]:
    """What the first shape that can be read says, once for each of its occurrences."""
    for shape in (_tagged, _boxed, _in_json, _stated, _alone):
        if found := [letters for letters in shape(text, question) if letters]:
            return found
    return []


Shape = Callable[[str, Question], Iterator[Letters]]


def _tagged(text: str, question: Question) -> Iterator[Letters]:
    contents = [match[1] or match[2] or "" for match in _TAG.finditer(text)]
    plain = [content for content in contents if not _TEMPLATE.search(content)]
    # "A/B/C/D" beside another answer is the form that the prompt showed.
    chosen = [content for content in plain if not _SLASHES.fullmatch(content)] or plain
    for content in chosen:
        yield _read_content(content, question)


def _boxed(text: str, question: Question) -> Iterator[Letters]:
    for box in boxed_spans(text):
        yield _read_content(strip_types(text, box), question)


def _in_json(text: str, question: Question) -> Iterator[Letters]:
    for said in json_verdicts(text):
        yield _read_content(said, question)


def _alone(text: str, question: Question) -> Iterator[Letters]:
    """Letters that stand alone on the last line."""
    line = lone_last_line(text) or ""
    if _LOOSE_LIST.fullmatch(line):
        yield _letters_at(_LOOSE_LIST, line, question)


def _read_content(content: str, question: Question) -> Letters:
    """The letters within a tag or a box, or the options whose wordings it holds."""
    if not _LOOSE_LIST.fullmatch(content) and (letters := _worded(content, question)):
        return letters
    if letters := _letters_at(_LOOSE_LIST, content, question):
        return letters
    return Letters().union(*_boxed(content, question), *_stated(content, question))


def _stated(text: str, question: Question) -> Iterator[Letters]:
    """What is stated in words: "Answer: B", a leading "B.", or nothing but a letter or option."""
    for named in _NAMED.finditer(text):
        rest = text[named.end() :]
        yield _letters_at(_LIST, rest, question) or _worded(rest, question)
    # Several lines that begin with letters list the options.
    if len(_LEAD.findall(text)) < 2:
        yield _leading_letters(text, question)
    said = text.strip(" \n\t*_`\"'.。").casefold()
    yield Letters(letter for letter, option in question.lettered if said == option.casefold())
    if reply := _REPLY.match(text):
        yield _worded(reply.group(), question)


def _leading_letters(text: str, question: Question) -> Letters:
    label = _LABEL.match(text)
    rest = text[label.end() :] if label else text
    match = _LIST.match(rest)
    if match is None:
        return Letters()
    after = rest[match.end() :]
    ends = match.group().rstrip().endswith(tuple(_AFTER_LEAD)) or after[:1] in _AFTER_LEAD
    return _letters_at(_LIST, rest, question) if ends or not after.strip() else Letters()


def _letters_at(pattern: re.Pattern[str], text: str, question: Question) -> Letters:
    """The letters of a list at the start of a text; empty unless all of them are offered."""
    match = pattern.match(text)
    if match is None or _DENIED.match(text, match.end()):
        return Letters()
    runs = [run for run in _WORD.findall(match.group()) if run.upper() not in _JOINERS]
    after = text[match.end() :]
    # Within tags words may follow that are the option's in another order.
    within = pattern is _LOOSE_LIST
    if _begins_a_phrase(runs, match.group(), after, within) and not _is_led(runs, after, question):
        return Letters()
    singles = [letter for run in runs for letter in run]
    found = {_offered(letter, question) for letter in singles}
    return Letters() if None in found else Letters(filter(None, found))


def _begins_a_phrase(runs: list[str], said: str, after: str, within: bool) -> bool:
    """Whether what was taken for a letter is a word: "a drug", "A patient", "C peptide", "B超"."""
    if said[-1].isalpha():
        return "一" <= after[:1] <= "鿿" and after[0] not in _GOES_ON_ZH
    last, word = runs[-1], _WORD.match(after)
    if word is None:
        return last == "A" and not within and after[:1].isdigit()
    if last.islower():
        return True
    bare = not within and said[-2:-1].isalpha() and len(last) == 1
    doubtful = last in ("A", "I") or len(last) > 1
    goes_on = _GOES_ON if doubtful else _GOES_ON_TOO
    return (doubtful or bare) and word.group().islower() and word.group() not in goes_on


def _is_led(runs: list[str], after: str, question: Question) -> bool:
    """Whether the words behind a letter begin as its own option does: "B adrenaline"."""
    letter = _offered(runs[-1], question)
    own = _fold(question.option_text(letter)) if letter else "?"
    first = own.split(" ")[0] if own.isascii() else own[:1]
    return letter == runs[-1] and _fold(after).startswith(first)


def _offered(letter: str, question: Question) -> str | None:
    # Beyond Z the options go on with a: there the case says which is meant.
    return next((one for one in (letter, letter.upper()) if one in question.letters), None)
