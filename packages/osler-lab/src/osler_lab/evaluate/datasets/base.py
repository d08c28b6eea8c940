"""Shared parts of the data set readers: rows with their place, and counts of rejected rows.

A row that cannot be a sample is counted under its reason, and the first place of each reason
is kept. A file that cannot be read at all is an error that names file and line.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any, Literal, NamedTuple

from osler.errors import MalformedSource
from osler.text import clean_text
from osler.types import LETTERS, Language
from osler_lab.evaluate.record import Kind, Sample


class UnusableRow(Exception):
    """Raised for a row that is no sample; its text is the reason under which it is counted."""


@dataclass(frozen=True, slots=True)
class DatasetRow:
    """Record of a file, with its place there."""

    place: str
    """Place such as "file.json:12" or "file.json[12]"."""
    number: int
    """Number of the record in its file, from 0."""
    data: Mapping[str, Any]

    def text_of(self, *keys: str) -> str:
        """Returns the first of these fields that holds text, cleaned. Raises `UnusableRow`."""
        for key in keys:
            value = self.data.get(key)
            if (
                _is_given(value)
                and not isinstance(value, bool)
                and (text := clean_text(str(value)))
            ):
                return text
        raise UnusableRow(f"no {keys[0]!r}")

    def optional_text(self, key: str) -> str:
        """Returns the field as text; empty where it is absent, null or no text."""
        value = self.data.get(key)
        return clean_text(str(value)) if _is_given(value) else ""

    def object_of(self, key: str) -> Mapping[str, object]:
        """Returns the field, which is a JSON object. Raises `UnusableRow`."""
        value = self.data.get(key)
        if not isinstance(value, dict):
            raise UnusableRow(f"no {key!r}")
        return value

    def texts_of(self, key: str) -> tuple[str, ...]:
        """Flattens a field that holds one text, a list of them, or a list of such lists."""
        return tuple(dict.fromkeys(text for text in _flatten_values(self.data.get(key)) if text))

    def lists_of(self, key: str) -> tuple[tuple[str, ...], ...]:
        """Returns the texts of each item of a list, without items that have none."""
        listed = self.data.get(key)
        items = listed if isinstance(listed, list) else [listed]
        return tuple(filter(None, (tuple(filter(None, _flatten_values(one))) for one in items)))

    def tags_of(self, **keys: str) -> tuple[tuple[str, str], ...]:
        """Makes tags of the fields under these keys, by tag; empty fields make none."""
        named = ((tag, self.optional_text(key)) for tag, key in keys.items())
        return tuple((tag, text) for tag, text in named if text)


def _is_given(value: Any) -> bool:
    """Whether a field says something: JSON readers also let NaN and Infinity pass."""
    return isinstance(value, str | int) or (isinstance(value, float) and isfinite(value))


def _flatten_values(value: Any) -> Iterator[str]:
    if isinstance(value, list | tuple):
        for inner in value:
            yield from _flatten_values(inner)
    elif _is_given(value):
        yield clean_text(str(value))


@dataclass(frozen=True, slots=True)
class DroppedRows:
    """Rows that are no samples, for one reason."""

    count: int
    first: str
    """Place of the first of them."""


@dataclass(frozen=True)
class LoadedDataset:
    """A data set as it was found."""

    name: str
    samples: tuple[Sample, ...]
    rows: int
    """Records that were read; `samples` and `dropped` together."""
    dropped: Mapping[str, DroppedRows] = field(default_factory=dict)
    """Rejected rows by reason."""
    digest: str = ""
    """SHA-256 over the files, so that a result names its data."""


Rows = Callable[[Sequence[Path]], Iterator[DatasetRow]]


class DatasetReader(NamedTuple):
    """How the files of a data set become samples."""

    rows: Rows
    sample: Callable[[DatasetRow, str], Sample]
    """A row and the task's name → a sample. Raises `UnusableRow`."""


@dataclass(frozen=True)
class DataSet:
    """One entry of `sets.toml`, which says what its keys mean."""

    name: str
    about: str
    kind: Kind
    files: tuple[str, ...]
    reader: DatasetReader
    origin: str
    licence: str
    language: Language = "en"
    graded: bool = True
    split: Literal["train", "dev", "test", ""] = ""
    """Empty = not split."""
    published: int = 0
    """0 = not told."""
    packaged: bool = False
    """Whether its files come with Osler."""

    def load(self, folder: Path) -> LoadedDataset:
        """Reads the whole set. Raises `MalformedSource` for files that cannot be read."""
        return self.read([folder / name for name in self.files])

    def read(self, paths: Sequence[Path]) -> LoadedDataset:
        """Reads the set from files named by hand, in the order of `files`."""
        samples, seen, reasons = [], set[str](), dict[str, DroppedRows]()
        total = 0
        for row in self.reader.rows(paths):
            total += 1
            try:
                sample = self.reader.sample(row, self.name)
                # Every reader's samples pass the same checks, so readers need none of their own.
                _check_gold(sample, self.graded)
                if sample.id in seen:
                    raise UnusableRow("id seen before")
            except UnusableRow as error:
                known = reasons.get(str(error), DroppedRows(0, row.place))
                reasons[str(error)] = DroppedRows(known.count + 1, known.first)
                continue
            seen.add(sample.id)
            samples.append(sample)
        if not samples:
            raise _empty_set_error(self.name, paths, total, reasons)
        return LoadedDataset(self.name, tuple(samples), total, reasons, _digest_files(paths))


def _empty_set_error(
    name: str, paths: Sequence[Path], total: int, reasons: Mapping[str, DroppedRows]
) -> MalformedSource:
    """Error for a set without a single sample, listing the reasons."""
    why = "; ".join(f"{d.count} × {reason} (first at {d.first})" for reason, d in reasons.items())
    summary = f"{total} rows, no sample: {why}" if total else "no rows"
    return MalformedSource(
        f"{', '.join(map(str, paths))}: {summary}", fix=f"give the files of {name} as published"
    )


def _check_gold(sample: Sample, graded: bool) -> None:
    """Raises `UnusableRow` for gold that the question does not offer."""
    question, gold = sample.question, sample.gold
    if sample.kind in ("choice", "choices"):
        if len(question.options) < 2:
            raise UnusableRow("fewer than two options")
        if not gold.letters:
            raise UnusableRow("no gold option")
        if not set(gold.letters) <= set(question.letters):
            raise UnusableRow("gold outside the options")
        if sample.kind == "choice" and len(gold.letters) != 1:
            raise UnusableRow("more than one gold option")
    elif graded and not gold.texts:
        raise UnusableRow("no gold answer")


def _digest_files(paths: Sequence[Path]) -> str:
    """SHA-256 over the files; equal bytes in the same order are the same data."""
    whole = hashlib.sha256()
    for path in paths:
        # A digest of digests: bytes cannot move from one file to the next unnoticed.
        whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


def read_text(path: Path) -> str:
    """Reads the file's text, from gzip where it is that. Raises `MalformedSource`."""
    try:
        raw = path.read_bytes()
        # gzip's magic number: the content decides, since users unpack files and keep the name.
        if raw[:2] == b"\x1f\x8b":
            raw = gzip.decompress(raw)
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise MalformedSource(
            f"{path}:{line}: not UTF-8 text (byte {error.start})", fix="save the file as UTF-8"
        ) from error
    except (OSError, EOFError, zlib.error) as error:
        raise MalformedSource(
            f"{path} cannot be read: {error}", fix="name the folder of the data with --data"
        ) from error


def read_json(path: Path) -> Any:
    """Reads a JSON document. Raises `MalformedSource` naming file and line."""
    return _parse_json(path, read_text(path))


def _parse_json(path: Path, text: str, line: int = 0) -> Any:
    """`line`: the one that the text is; 0 = it is the whole file."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise MalformedSource(
            f"{path}:{line or error.lineno}: not JSON: {error.msg}",
            fix="give the file as published",
        ) from error
    except RecursionError as error:
        place = f"{path}:{line}" if line else path
        raise MalformedSource(f"{place}: nested too deeply to be data") from error


def make_row(path: Path, number: int, value: Any, *, line: int | None = None) -> DatasetRow:
    """Makes a row; a value that is not a JSON object has no fields, and is counted as such."""
    place = f"{path.name}:{line}" if line is not None else f"{path.name}[{number}]"
    return DatasetRow(place, number, value if isinstance(value, dict) else {})


def json_records(path: Path, *keys: str) -> Iterator[DatasetRow]:
    """Yields records of a JSON array, of the array under `keys`, or of JSON Lines.

    Raises `MalformedSource` naming file and line.
    """
    text = read_text(path)
    if not text.strip():
        return
    # An array begins with a bracket; a brace without wanted keys is a line of JSON Lines.
    if text.lstrip()[:1] == "{" and not keys:
        # Only "\n" ends a line: JSON strings may hold the other line ends of Unicode.
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                yield make_row(path, number - 1, _parse_json(path, line, number), line=number)
        return
    document = read_json(path)
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    if not isinstance(document, list):
        where = ".".join(keys) or "the document"
        raise MalformedSource(f"{path}: {where} should be a list", fix="give the file as published")
    for number, value in enumerate(document):
        yield make_row(path, number, value)


def csv_records(path: Path, *, columns: Sequence[str] = ()) -> Iterator[DatasetRow]:
    """Yields rows of a CSV file; `columns` names them where the file has no header."""
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""), columns or None)
    try:
        for number, values in enumerate(reader):
            yield make_row(path, number, dict(values), line=reader.line_num)
    except csv.Error as error:
        raise MalformedSource(f"{path}:{reader.line_num}: not CSV: {error}") from error


def required_cells(path: Path, row: DatasetRow, *names: str) -> tuple[str, ...]:
    """Returns these cells of a user's CSV. Raises `MalformedSource` for an empty one."""
    cells = tuple(map(row.optional_text, names))
    if "" in cells:
        raise MalformedSource(f"{path.parent / row.place}: no {names[cells.index('')]!r}")
    return cells


def yes_or_no(path: Path, row: DatasetRow, word: str) -> bool:
    """Reads a verdict. Raises `MalformedSource` for a word other than yes and no."""
    if word not in ("yes", "no"):
        raise MalformedSource(f"{path.parent / row.place}: {word!r} is neither yes nor no")
    return word == "yes"


def chain_files(read: Callable[[Path], Iterator[DatasetRow]]) -> Rows:
    """Makes a reader of all files, one after the other, from a reader of one."""

    def rows(paths: Sequence[Path]) -> Iterator[DatasetRow]:
        for path in paths:
            yield from read(path)

    return rows


json_rows = chain_files(json_records)
"""The rows of JSON arrays or JSON Lines, as they stand."""


def hash_id(*parts: str) -> str:
    """Makes an id for a record that has none: the start of a hash of its content."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def options_by_letter(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns option texts in order of their letters; empty ones at the end are dropped.

    Raises `UnusableRow` for letters that do not run on, or an empty option before a full one.
    """
    letters = sorted(options)
    if "".join(letters) != LETTERS[: len(letters)]:
        raise UnusableRow("options are not A, B, C, …")
    texts = [clean_text(str(options[letter] or "")) for letter in letters]
    while texts and not texts[-1]:
        texts.pop()
    if not all(texts):
        raise UnusableRow("an option without text")
    return tuple(texts)
