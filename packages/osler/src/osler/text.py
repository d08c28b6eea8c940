"""Text processing for English and Chinese: cleaning, words, sentences, identifiers.

All but the readers of files that come with Osler, which stand last, are pure and never raise on any
string. They use rules, not models, so that sentences and words are the same on every machine.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from html import escape
from typing import Any

from osler.types import Language

_HAN = (
    "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0002a6df\U0002a700-\U0002fa1f\U00030000-\U000323af"
)
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufffe\uffff]")
_CJK = re.compile(f"[{_HAN}]")
_LETTER = re.compile(r"[^\W\d_]")
_WORD = re.compile(rf"[{_HAN}]+|\d+(?:\.\d+)+|(?:(?![{_HAN}])[^\W_])+")

_WORD_WITHOUT_HAN = re.compile(r"\d+(?:\.\d+)+|[^\W_]+")

_NEWLINE = re.compile("\r\n?|[\x0b\x0c\u0085\u2028\u2029]")
# Control characters, and characters without a glyph: they carry hidden instructions
# (zero width, bidirectional, tag block, variation selectors) or break storage
# (NUL, lone surrogates), and never a meaning that a reader could check.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\ud800-\udfff\ufe00-\ufe0f\ufeff\U000e0000-\U000e01ef]"
)
_HALF = re.compile("[\ud800-\udfff]")
_WIDE_SPACE = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_LINE_END = re.compile(r"(?<![ \t])[ \t]++(?=\n)")
_GAP = re.compile(r"\n{3,}")

_NOT_SLUG = re.compile(r"[^\w.\-]+")
_LONGEST_SLUG = 100


def is_cjk(char: str) -> bool:
    """Whether `char` is a Han character; Chinese punctuation and kana are not."""
    return _CJK.fullmatch(char) is not None


def has_cjk(text: str) -> bool:
    """Whether any character is a Han character."""
    return _CJK.search(text) is not None


def language_of(text: str) -> Language:
    """Chinese when at least a fifth of the letters are Han characters, else English."""
    if text.isascii() or _CJK.search(text) is None:
        return "en"
    han = len(_CJK.findall(text))
    letters = len(_LETTER.findall(text))
    return "zh" if han >= 0.2 * letters else "en"


def clean_text(text: str) -> str:
    """Cleans text; every parser's output passes through it. Idempotent.

    Line ends become newlines and special spaces plain spaces; removed are invisible, bidirectional
    and control characters (except newline and tab), spaces at line ends, repeated empty lines,
    and white space around the text.
    """
    if text.isprintable():  # nearly every text: no line ends, no spaces but the plain one
        return (text if text.isascii() else _INVISIBLE.sub("", text)).strip()
    text = _INVISIBLE.sub("", _NEWLINE.sub("\n", text))
    text = _LINE_END.sub("", _WIDE_SPACE.sub(" ", text))
    return _GAP.sub("\n\n", text).strip()


def join_surrogates(text: str) -> str:
    """Makes text encodable: joins adjacent surrogate halves and replaces lone ones by U+FFFD.

    Idempotent.
    """
    if text.isascii() or _HALF.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def join_all_surrogates(value: Any) -> Any:
    """Applies `join_surrogates` to every string of a JSON value, whose escapes may be half a
    pair."""
    if isinstance(value, str):
        return join_surrogates(value)
    if isinstance(value, list):
        return [join_all_surrogates(one) for one in value]
    if isinstance(value, dict):
        return {join_all_surrogates(key): join_all_surrogates(one) for key, one in value.items()}
    return value


def one_line(text: str) -> str:
    """Cleans text and collapses white space to single spaces: for titles, headings, names."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    return " ".join(clean_text(text).split())


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, its cells cleaned to one line each."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_escape_cell, line))} |" for line in lines)


def _escape_cell(text: str) -> str:
    return one_line(text).replace("|", "\\|")


def make_slug(text: str) -> str:
    """Makes an identifier of letters (any script), digits, `.`, `_` and `-`; idempotent, never
    empty.

    Other characters become "-". A text that leaves nothing, or is longer than 100
    characters, ends in a hash of itself, so that different texts stay different.
    """
    kept = _NOT_SLUG.sub("-", unicodedata.normalize("NFC", text)).strip("-")
    if kept.strip(".") and len(kept) <= _LONGEST_SLUG:
        return kept
    # surrogatepass: file names may contain lone surrogates.
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{kept[: _LONGEST_SLUG - 17].strip('-.')}-{digest}".lstrip("-")


def split_words(text: str) -> list[str]:
    """Lower-cased words and numbers in order; in Chinese, single characters and pairs.

    "CD4 1.5 糖尿病" gives cd4, 1.5, 糖, 糖尿, 尿, 尿病, 病.
    """
    # NFKC folds full-width letters and digits, common in Chinese texts.
    folded = unicodedata.normalize("NFKC", text).lower()
    if folded.isascii() or _CJK.search(folded) is None:
        return _WORD_WITHOUT_HAN.findall(folded)
    found: list[str] = []
    for word in _WORD.findall(folded):
        if word[0] >= "\u3005" and is_cjk(word[0]):
            found += _unigrams_and_bigrams(word)
        else:
            found.append(word)
    return found


def _unigrams_and_bigrams(run: str) -> Iterator[str]:
    for i, char in enumerate(run):
        yield char
        if i + 1 < len(run):
            yield run[i : i + 2]


def word_set(text: str) -> frozenset[str]:
    """The words of a list that is written as one text."""
    return frozenset(text.split())


_CLOSING = "\"'”’)\\]）」』】》"
# Possessive, and begun only where a run of stops begins: linear on a page of dots.
_STOP = re.compile(
    # Western: the stop, what closes around it, reference marks ("[3,4]"), then a space.
    rf"(?<![.!?])(?P<latin>[.!?]++)[{_CLOSING}]*+(?:\[\d[\d,–\- ]{{0,20}}\])*(?=\s|$)"
    # Chinese needs no space after it; "．" is a stop only after a Han character.
    rf"|(?:[。！？；]|(?<=[{_HAN}])．)+[{_CLOSING}]*"
    r"|\n+"
)
_ABBREVIATIONS = word_set(
    "e.g i.e cf vs v viz al approx ca resp fig figs eq eqs ref refs nos vol pp ed eds ch"
    " dr drs prof mr mrs ms st sr mt pt pts gen col capt lt sgt rev hon dept univ"
    " sp spp var subsp avg temp wt ht hx dx tx rx sx fx"
    " jan feb mar apr jun jul aug sep sept oct nov dec"
)
# These may also end a sentence; they do when a capital follows.
_OFTEN_LAST = word_set(
    "etc a.m p.m u.s u.k u.s.a ph.d m.d m.p.h b.c a.d min max sec hr hrs yr yrs mo wk"
    " incl est inc ltd co jr i.v i.m s.c p.o b.i.d t.i.d q.i.d"
)
# After these a single capital is a name's last part ("vitamin C."), not an initial.
_BEFORE_A_LETTER = word_set(
    "vitamin hepatitis group type class grade stage factor protein table figure panel appendix"
    " influenza streptococcus arm cohort phase category schedule option step"
)
_SPACE = re.compile(r"\s*")
_TOKEN_BEFORE = re.compile(r"(\S+)$")
_NEXT_WORD = re.compile(r"\s*[\"'“‘(\[（]*(\w[\w-]*)?")
_ENUMERATION = re.compile(r"(?:\d{1,3}|[ivxIVX]{1,5}|[A-Za-z])(?:\.\d{1,3})*")


def split_sentences(text: str) -> list[tuple[int, int]]:
    """Spans of the sentences in order, without the white space around them.

    Every character other than white space lies in exactly one span. Line breaks and the Chinese
    stops 。！？； end a sentence; a full stop does not after an abbreviation, an initial or a list
    number, nor before a plain lower-case word.
    """
    spans: list[tuple[int, int]] = []
    start = _skip_space(text, 0)
    for stop in _STOP.finditer(text):
        if stop.group("latin") is None or _ends_here(text, start, stop):
            _add_trimmed(spans, text, start, stop.end())
            start = _skip_space(text, stop.end())
    _add_trimmed(spans, text, start, len(text))
    return spans


def _skip_space(text: str, start: int) -> int:
    found = _SPACE.match(text, start)
    return found.end() if found else start


def _add_trimmed(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    piece = text[start:end]
    left = len(piece) - len(piece.lstrip())
    if left < len(piece):
        spans.append((start + left, start + len(piece.rstrip())))


def _ends_here(text: str, start: int, stop: re.Match[str]) -> bool:
    """Whether the Western stop `stop` ends the sentence whose first word is at `start`."""
    if set(stop["latin"]) != {"."}:
        return True
    follows = _NEXT_WORD.match(text, stop.end(), stop.end() + 60)
    word = (follows[1] if follows else None) or ""
    if word.islower() and word.replace("-", "").isalpha():
        return False
    # A window, so that a text without any sentence end costs linear time.
    before = text[max(start, stop.start() - 60) : stop.start()]
    token = _TOKEN_BEFORE.search(before)
    if token is None:
        return True
    bare = token[1].lstrip("\"'“‘([（")
    if bare.lower() in _OFTEN_LAST or (bare.lower() == "no" and word[:1].isdigit()):
        return not word or word[0].isupper()
    if bare.lower() in _ABBREVIATIONS or _is_initial(bare, before[: token.start()]):
        return False
    # By places: to look at the text from `start` on at each stop would cost quadratic time.
    is_first = start >= stop.start() - len(bare)
    return not (is_first and _ENUMERATION.fullmatch(bare))


def _is_initial(token: str, before: str) -> bool:
    if not re.fullmatch(r"(?:[A-Z]\.)*[A-Z]", token):
        return False
    previous = (before.split() or [""])[-1].lstrip("(\"'")
    return previous.lower() not in _BEFORE_A_LETTER and (not previous or previous[0].isupper())


def suggest_word(word: str, known: Iterable[str]) -> str:
    """A hint for a fix, "did you mean 'x'? ", where a known word is near; else empty."""
    near = get_close_matches(word, list(known), 1)
    return f"did you mean {near[0]!r}? " if near else ""


def escape_controls(text: str) -> str:
    """`text` without what a terminal would obey instead of show; line breaks and tabs stay."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def escape_markdown(text: str) -> str:
    """Without what Markdown would obey: a title is shown, never a link or an image."""
    flat = escape(" ".join(text.split()), quote=False)  # not every reader takes "\\<" for text
    return "".join(f"\\{c}" if c in "[]()!*_`\\" else c for c in flat)


def read_packaged(package: str, name: str) -> str:
    """The text of a file that comes with Osler, beside the modules of the package."""
    from importlib.resources import files  # takes as long as all else in this module

    return files(package).joinpath(name).read_text(encoding="utf-8")


def read_packaged_table(package: str, name: str) -> dict[str, Any]:
    """The tables of a TOML file that comes with Osler."""
    return tomllib.loads(read_packaged(package, name))


def load_plugins(group: str) -> dict[str, Any]:
    """What the installed packages bring as entry points of a group, by name."""
    from importlib.metadata import entry_points

    return {entry.name: entry.load() for entry in entry_points(group=group)}
