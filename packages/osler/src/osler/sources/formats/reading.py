"""Helpers of the parsers: whole small files, their text, and names made of paths."""

from __future__ import annotations

import html
import json
import re
import shutil
import tempfile
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import date
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from osler.errors import MalformedSource
from osler.text import is_cjk, language_of, make_slug, one_line, split_sentences

LARGEST = 16 * 2**20
"""Bytes of a file that is one document and is therefore read as a whole."""
MOST_AUTHORS = 50
"""Of one work; a consortium's paper may name thousands."""
LONGEST_LINE = 8 * 2**20
"""Bytes of a line of a text format; no published one has more."""

# Endings of compression and archives: they are no part of a name or a format.
_SUFFIXES = frozenset({".gz", ".bz2", ".tar", ".tgz", ".tbz2", ".zip"})
_WORD = re.compile(r"[^\W\d_]+")
_LONGEST_TITLE = 100
_MONTH_NAMES = "jan feb mar apr may jun jul aug sep oct nov dec"
_MONTHS = {name: n for n, name in enumerate(_MONTH_NAMES.split(), start=1)}
# Not of an issue of two months, "2020 Jan-Feb".
_DATE = re.compile(
    r"(?<!\d)((?:1[89]|20)\d\d)(?:\s*[-/.年 ]\s*|(?=\d{4}(?!\d)))(\d{1,2}|[A-Za-z]{3,9}+)"
    r"(?:\s*[-/.月 ]?\s*(\d{1,2}))?(?!\d|\s*[-–/]\s*[A-Za-z\d])"
)
_RAISED = str.maketrans("0123456789+-−–", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻")
_POWER = re.compile(r"[-−–+.,;/\s]*+[0-9][-−–+.,;/\s0-9]*+")
_SUPERSCRIPT = re.compile(r"<sup\b[^<>]{0,200}>([^<>]{0,40})</sup\s*>", re.IGNORECASE)
_ATTRIBUTES = r"""(?:\s+[\w:.-]{1,60}\s*=\s*(?:"[^"<>]{0,999}"|'[^'<>]{0,999}'))*+\s*+/?>"""
_TAG = re.compile(rf"</?[A-Za-z][\w:.-]{{0,40}}+{_ATTRIBUTES}")
_LINE_TAG = rf"</?(?:p|div|br|li|ul|ol|h\d|tr|sec|title|list|list-item)\b{_ATTRIBUTES}"
_LINE_TAGS = re.compile(rf"{_LINE_TAG}(?:\s*+{_LINE_TAG})*+\s*+", re.IGNORECASE)
_YEAR = re.compile(r"(?<!\d)(?:1[89]|20)\d\d(?!\d)")


def read_whole(stream: BinaryIO, name: str, limit: int = 0) -> bytes:
    """All bytes of a file of at most `limit` (0: 16 MiB); `MalformedSource` for a larger one."""
    limit = limit or LARGEST
    data = stream.read(limit + 1)
    if len(data) > limit:
        raise too_large(name, limit)
    return data


def read_parts(stream: BinaryIO, name: str) -> Iterator[bytes]:
    """The text in parts of at most 16 MiB, cut between paragraphs, lines or words; raises
    `TooLarge` where there is no such place in a part."""
    limit = LARGEST
    data = stream.read(limit + 1)
    while len(data) > limit:
        cuts = (data.rfind(mark, limit // 2, limit) for mark in (b"\n\n", b"\n", b" "))
        cut = next((at for at in cuts if at > 0), 0)
        if not cut:
            raise too_large(name, limit)
        yield data[:cut]
        data = data[cut:] + stream.read(limit + 1 - len(data) + cut)
    yield data


class TooLarge(MalformedSource):
    """A file that is one document, and larger than one may be."""


def too_large(name: str, limit: int) -> TooLarge:
    return TooLarge(
        f"{name} is larger than {limit // 2**20} MiB and one document",
        fix="split it into one file a chapter",
    )


def lines_of(stream: BinaryIO, name: str) -> Iterator[bytes]:
    """The lines with their ends; raises `MalformedSource` for one of more than 8 MiB."""
    while line := stream.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise MalformedSource(
                f"{name} has a line of more than {LONGEST_LINE // 2**20} MiB",
                fix="check that it has the format of its name",
            )
        yield line


def utf8_lines(stream: BinaryIO, name: str) -> Iterator[str]:
    """The lines without their ends; raises `MalformedSource` for one that is not UTF-8."""
    for line in lines_of(stream, name):
        try:
            yield line.decode("utf-8-sig").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise MalformedSource(
                f"{name} is not UTF-8 text", fix=f"iconv -t utf-8 {name} and add that"
            ) from error


@contextmanager
def on_disk(stream: BinaryIO, suffix: str) -> Iterator[Path]:
    """The content as a temporary file, for libraries that need random access."""
    with tempfile.TemporaryDirectory(prefix="osler-") as folder:
        path = Path(folder) / f"content{suffix}"
        with path.open("wb") as file:
            shutil.copyfileobj(stream, file, 2**20)
        yield path


def read_json_file(stream: BinaryIO, name: str, limit: int = 0) -> Any:
    """The value of a JSON file of at most `limit` bytes (0: 16 MiB).

    Raises `MalformedSource` for other text, and for a larger file.
    """
    try:
        return json.loads(decode_text(read_whole(stream, name, limit), name))
    except (ValueError, RecursionError) as error:
        raise MalformedSource(f"{name} is not JSON", fix="fetch it again") from error


def decode_text(data: bytes, name: str) -> str:
    """Text in UTF-8, UTF-16 with its mark, or GB18030; raises `MalformedSource` otherwise.

    GB18030 gives a meaning to almost any bytes, so it is believed only where the
    outcome is Chinese.
    """
    is_wide = data.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
    if b"\0" in data and not is_wide:
        raise MalformedSource(f"{name} is not a text file", fix="convert it to UTF-8 text")
    for encoding in ("utf-16",) if is_wide else ("utf-8-sig", "gb18030"):
        with suppress(UnicodeDecodeError):
            text = data.decode(encoding)
            if encoding != "gb18030" or language_of(text) == "zh":
                return text
    raise MalformedSource(
        f"{name} is neither UTF-8 nor GB18030 text", fix=f"iconv -t utf-8 {name} and add that"
    )


def plain_head(head: bytes) -> bytes:
    """A file's first bytes without a UTF-8 mark and white space before them."""
    return head.removeprefix(BOM_UTF8).lstrip()


def utf8_head(head: bytes) -> bytes:
    """A file's first bytes as UTF-8 where they are UTF-16 with its mark, else as they are."""
    if not head.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return head
    # The head may end within a character.
    text = head.decode("utf-16", errors="ignore")
    return head if text.lstrip().startswith("<?xml") else text.encode(errors="ignore")


def names_in(text: str) -> frozenset[str]:
    """The names that a text lists, with spaces between: for tables of tags and fields."""
    return frozenset(text.split())


def extension_of(name: str) -> str:
    """Lower-cased extension without compression: "books.tar.gz!a/B.MD.gz" gives ".md"."""
    return _strip_compression(name).suffix.lower()


def title_of(name: str) -> str:
    """A title made of the file's own name: "a/heart_failure.md.gz" gives "heart failure"."""
    path = _strip_compression(name)
    return path.name.removesuffix(path.suffix).replace("_", " ").strip()


def id_of(name: str) -> str:
    """An identifier from the file's place below what was added.

    The name of the added folder itself (the first part of `name`) is no part of it: the
    identifier stays the same when the folder is moved or renamed. An archive counts as
    a folder of its name.
    """
    archive, _, member = name.rpartition("!")
    places = (
        [_below_root(archive), _strip_compression(member)] if archive else [_below_root(member)]
    )
    return make_slug("-".join(str(place.with_suffix("")) for place in places))


def author_name(family: str, given: str) -> str:
    """A name as citations write it, "Smith JA"; a Chinese one whole."""
    family, given = one_line(family), one_line(given)
    if not (family and given):
        return family or given
    if is_cjk(family[0]):
        return f"{family}{given}"
    words = _WORD.findall(given)
    # "JA" are initials already, "Jo" and "JOHN" are not.
    told = "".join(word if word.isupper() and len(word) <= 3 else word[0] for word in words)
    return f"{family} {told.upper()}" if told else family


def inverted_name(written: str) -> str:
    """The name of an author written "Smith, John A."; without a comma it stays as it is."""
    family, _, given = written.partition(",")
    return author_name(family, given)


def id_of_record(where: str) -> str:
    """An identifier from the place of a record that bears none: "a/snippets.jsonl:17"."""
    name, _, number = where.rpartition(":")
    return f"{id_of(name)}-{number}"


def first_words(text: str) -> str:
    """The first sentence of a text, or as many words of it as a title has, with a mark."""
    line = one_line(text[: _LONGEST_TITLE * 2])
    ends = [end for _, end in split_sentences(line)]
    if ends and ends[0] <= _LONGEST_TITLE:
        return line[: ends[0]].rstrip("。. ")
    cut = line.rfind(" ", _LONGEST_TITLE // 2, _LONGEST_TITLE)
    return f"{line[: cut if cut > 0 else _LONGEST_TITLE].rstrip()}…"


def raise_digits(text: str) -> str:
    """A superscript of digits in Unicode's, that it does not run into a number before it: "10⁹"."""
    return text.translate(_RAISED) if _POWER.fullmatch(text) else text


def raise_marked(text: str) -> str:
    """The text with `<sup>…</sup>` as `raise_digits` writes it."""
    return _SUPERSCRIPT.sub(lambda match: raise_digits(html.unescape(match[1])), text)


def plain_markup(text: str) -> str:
    """The text without the tags and entities of HTML or JATS that stand in a field of plain text.

    "p<a and b>" is no tag: those have nothing but attributes behind their name.
    """
    if "<" in text:
        text = raise_marked(text.replace("<jats:", "<").replace("</jats:", "</"))
        text = _LINE_TAGS.sub("\n", text)
    return html.unescape(_TAG.sub("", text))


def year_in(text: str) -> int | None:
    """The first year from 1800 to 2099 that stands in `text`."""
    match = _YEAR.search(text)
    return int(match.group()) if match else None


def date_in(text: str) -> str:
    """Month or day behind the first year in `text`, as "2024-03" or "2024-03-15"; "" for none."""
    year_at = _YEAR.search(text) or _DATE.search(text)  # in 20240315 no year stands by itself
    match = _DATE.match(text, year_at.start()) if year_at else None
    if match is None:
        return ""
    year, month, day = match.groups()
    number = int(month) if month.isdecimal() else _MONTHS.get(month[:3].casefold(), 0)
    try:
        known = date(int(year), number, int(day or 1))
    except ValueError:
        return ""
    return known.isoformat() if day else known.isoformat()[:7]


def _below_root(name: str) -> PurePosixPath:
    path = _strip_compression(name)
    return PurePosixPath(*path.parts[1:]) if len(path.parts) > 1 else path


def _strip_compression(name: str) -> PurePosixPath:
    path = PurePosixPath(name.replace("\\", "/").rpartition("!")[2] or "file")
    while path.suffix.lower() in _SUFFIXES:
        path = path.with_suffix("")
    return path
