"""Records with named fields as documents, whatever file they come from: CSV, JSON, Parquet.

Fields are recognised by the names that corpora use. A question is a heading, never evidence:
only the answer is quoted. Exam questions with their options and retrieval judgements
are no corpus at all, and are recognised so that a test set never becomes evidence. Of any other
table with a header, as a formulary, each row is a document: "drug: Ibuprofen; max daily: 1.2 g".

CSV and TSV have a header and are UTF-8 or GB18030. Parquet needs the extra `parquet`.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO

from osler.errors import MalformedSource
from osler.sources.formats.containers import Unreadable, require_package
from osler.sources.formats.json_lines import text_in
from osler.sources.formats.reading import (
    date_in,
    extension_of,
    id_of,
    lines_of,
    names_in,
    on_disk,
    plain_head,
    year_in,
)
from osler.sources.formats.sections import sections_of, without_noise
from osler.sources.formats.table_rows import (
    IS_NAME,
    PlacedRow,
    TableParser,
    column_name,
    read_table,
)
from osler.sources.formats.wikis import parse_heading
from osler.sources.records import Document, Drop, Record, Section
from osler.text import is_cjk, language_of, make_slug, one_line, split_sentences


def _list_words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_ID = _list_words("id _id docid doc_id pmid pmcid pageid uuid chunk_id wikipedia_id 编号 序号")
_OF_SETS = names_in("_id doc_id")
"""Ids of BEIR and ir_datasets, which judge papers by their title where there is no abstract."""
_TITLE = _list_words("title wikipedia_title headline 标题 题目")
_TEXT = _list_words(
    "text content contents body abstract passage article extract clean_text document 内容 正文"
)
_QUESTION = _list_words("question ask query instruction prompt 问题 提问 问")
_INPUT = _list_words("input")
_ANSWER = _list_words("answer output response long_answer completion 回答 答案 答")
_GROUP = _list_words("department section category topic subject 科室 类别 分类")
_URL, _LICENCE = _list_words("url link source_url"), _list_words("licence license")
_YEAR = _list_words("year date published publication_date")

_EXAM = names_in(
    "option options choices opa opb cop answer_idx answerid correct_answer fakeanswer positive"
    " negative distractors gold qrels final_decision exam_type exam_class snippets adv_texts"
    " gold_answer ground_truth injected_text judgement relevance"
) | {"incorrect answer", "correct answer"}
_LONGEST_HEADING = 300
_OF_PATIENTS = names_in(
    "subject_id hadm_id stay_id icustay_id patient patient_id patientid patientunitstayid"
    " person_id hospitalization_id encounter encounter_id mrn nhs_number ssn birthdate"
    " date_of_birth dob 住院号 病历号 患者 患者姓名 病人 姓名 身份证号"
)


def is_corpus(names: Iterable[str]) -> bool:
    """Whether records with these fields hold text to be searched."""
    fields = set(map(_fold_name, names))
    has_text = bool(fields & {*_TEXT}) or bool(fields & {*_QUESTION} and fields & {*_ANSWER})
    return has_text and not fields & _EXAM


def is_table(names: Iterable[str]) -> bool:
    """Whether records with these fields are rows of a table that may be evidence: every column has
    a name, and they are neither of patients nor to test with, nor answers without a question."""
    listed = [_fold_name(name) for name in names]
    fields = set(listed)
    # Of two that a row tells alike, one would be lost.
    told = set(map(column_name, listed))
    named = len(told) == len(listed) > 1 and all(map(IS_NAME.search, listed))
    return (
        named
        and not fields & {*_EXAM, *_OF_PATIENTS, *_ANSWER}
        and not all(map(_is_reference, listed))
    )


def _is_reference(name: str) -> bool:
    return name.endswith("id") or name in {"score", "rank", "iteration", "label"}


def read_rows(
    names: Sequence[str], rows: Iterable[PlacedRow | Drop], keys: Sequence[str] = ()
) -> Iterator[Record]:
    """What rows with these fields become: documents of their text, or else of all their cells,
    named by `keys` or by what tells the first rows apart.

    Raises `MalformedSource` where the table has none of a key's name.
    """
    if keys or not is_corpus(names):
        yield from read_table(names, rows, keys)
        return
    for one in rows:
        yield one if isinstance(one, Drop) else record_of(one.cells, one.where, one.identifier)


def is_exam(names: Iterable[str]) -> bool:
    """Whether records with these fields are questions or judgements to test with."""
    fields = set(map(_fold_name, names))
    return bool(fields & _EXAM) and bool(fields & {*_QUESTION, *_ANSWER, *_TEXT, "id"})


def wanted_fields(names: Iterable[str]) -> list[str]:
    """The names of fields that `record_of` reads, out of these."""
    read = _ID + _TITLE + _TEXT + _QUESTION + _INPUT + _ANSWER + _GROUP + _URL + _LICENCE + _YEAR
    return [name for name in names if _fold_name(name) in read]


def record_of(row: Mapping[str, Any], where: str, identifier: str) -> Record:
    """A row as a document. `identifier` stands where the row has none of its own."""
    fields = {_fold_name(name): value for name, value in row.items()}
    question = _first_field(fields, _QUESTION)
    text = _first_field(fields, _ANSWER if question else _TEXT + _ANSWER)
    title = one_line(_first_field(fields, _TITLE))
    if not text and not question and fields.keys() & _OF_SETS:
        text = title
    if not text:
        return Drop(where, "empty answer" if question else "no text")
    if question:
        question = one_line(f"{question} {_first_field(fields, _INPUT)}".removeprefix("<user>:"))
    title = title or _shorten_question(question)
    group = one_line(_first_field(fields, _GROUP))
    heading = _shorten_question(question)
    path = tuple(part for part in (group, heading if heading != title else "") if part)
    # An id beside a question often names the dialogue or article that several came from.
    name = "" if question else _first_field(fields, _ID)
    return Document(
        id=make_slug(name or identifier),
        name=name,
        title=title,
        sections=(Section(text, path),),
        language=language_of(text),
        year=year_in(_first_field(fields, _YEAR)),
        date=date_in(_first_field(fields, _YEAR)),
        url=_first_field(fields, _URL),
        kind="question and answer" if question else "",
        licence=one_line(_first_field(fields, _LICENCE)),
    )


def _fold_name(name: object) -> str:
    return str(name).strip().lstrip("\ufeff").casefold()


def _first_field(fields: dict[str, Any], names: tuple[str, ...]) -> str:
    return next(filter(None, (text_in(fields, name) for name in names)), "")


def _shorten_question(question: str) -> str:
    """A question as a heading: whole, or its first sentences and a mark that there is more."""
    if len(question) <= _LONGEST_HEADING:
        return question
    ends = [end for _, end in split_sentences(question[:_LONGEST_HEADING])][:-1]
    return f"{question[: ends[-1] if ends else _LONGEST_HEADING - 1].rstrip()}…"


_DELIMITERS = {".csv": ",", ".tsv": "\t"}


class CsvRows(TableParser):
    name = "csv"

    def matches(self, name: str, head: bytes) -> bool:
        header = read_header(name, head) if extension_of(name) in _DELIMITERS else []
        return is_corpus(header) or is_table(header)

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        """A document for each row, in constant memory; a row that cannot be parsed is a drop."""
        rows = _Rows(stream, name)
        names = next(rows, None)
        if isinstance(names, list):
            yield from read_rows(names, _place_rows(rows, names, name), self._keys)


def _place_rows(rows: _Rows, names: list[str], file: str) -> Iterator[PlacedRow | Drop]:
    base = id_of(file)
    for row in rows:
        where = f"{file}:{rows.line}"
        if isinstance(row, str):
            yield Drop(where, row)
        elif any(map(str.strip, row[len(names) :])):  # "1,200 mg" without quotation marks
            yield Drop(where, "malformed row")
        elif row:
            yield PlacedRow(dict(zip(names, row, strict=False)), where, f"{base}-{rows.line}")


def read_header(name: str, head: bytes) -> list[str]:
    """The names in the first line of `head`; [] where it is not a table."""
    line, has_end, _ = plain_head(head).partition(b"\n")
    if not has_end or b"\0" in line:
        return []
    try:
        text = line.decode(_guess_encoding(line))
    except UnicodeDecodeError:
        return []
    delimiter = _DELIMITERS.get(extension_of(name), ",")
    try:
        return next(csv.reader([text], delimiter=delimiter), [])
    except csv.Error:
        return []


def _guess_encoding(line: bytes) -> str:
    """UTF-8 where the bytes of a whole line are valid, else GB18030."""
    try:
        line.decode("utf-8-sig")
    except UnicodeDecodeError:
        return "gb18030"
    return "utf-8-sig"


class _Rows(Iterator["list[str] | str"]):
    """Each row, or the reason of a drop; `line` is the line that it began on.

    A quotation that does not end with its cell, or never, costs the line that it began on: those
    behind it are read again. In a tab-separated file its mark is then a character, as it is of one
    that goes on over tabs and lines.
    """

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self.line = 0
        self._read = 0
        self._problem = ""
        self._encoding = ""
        self._lines = lines_of(stream, name)
        self._taken: list[bytes] = []
        """Lines of the present row."""
        self._again = deque[bytes]()
        self._delimiter = _DELIMITERS.get(extension_of(name), ",")
        self._reader = self._new_reader()

    def __next__(self) -> list[str] | str:
        self.line, self._problem = self._read + 1, ""
        self._taken.clear()
        has_tabs = self._delimiter == "\t"
        with suppress(csv.Error):  # also of a field of more than 128 KiB
            row = next(self._reader)
            if not (has_tabs and any("\t" in cell and "\n" in cell for cell in row)):
                return self._problem or row
        text = self._go_back()
        return self._problem or (text.split("\t") if has_tabs else "malformed row")

    def _new_reader(self) -> Iterator[list[str]]:
        return csv.reader(self._decode_lines(), delimiter=self._delimiter, strict=True)

    def _go_back(self) -> str:
        """Goes back behind the first line of the present row, and returns that one."""
        first, *others = self._taken
        self._again.extendleft(reversed(others))
        self._read -= len(others)
        self._reader, self._problem = self._new_reader(), ""
        return self._decode_line(first).rstrip("\r\n")

    def _decode_lines(self) -> Iterator[str]:
        while line := self._again.popleft() if self._again else next(self._lines, b""):
            self._read += 1
            self._taken.append(line)
            yield self._decode_line(line)

    def _decode_line(self, line: bytes) -> str:
        if not line.isascii() and not self._encoding:
            self._encoding = _guess_encoding(line)
        try:
            text = line.decode(self._encoding or "utf-8-sig")
        except UnicodeDecodeError:
            self._problem = "not UTF-8" if self._encoding == "utf-8-sig" else "not GB18030"
            text = line.decode("ascii", "replace")
        if self._encoding == "gb18030" and not any(map(is_cjk, text)) and not line.isascii():
            # GB18030 gives a meaning to nearly any bytes: believed only where it is Chinese.
            self._problem = "neither UTF-8 nor GB18030"
        return text.replace("\0", "")


# Rows in memory at a time; an article has up to 2 MB.
_ROWS = 64
# A column that names one value many times unfolds to any size: characters that a file may have,
# and how many for each of its bytes.
_ALWAYS_ALLOWED, _HIGHEST_RATIO = 64 * 2**20, 200


class Parquet(TableParser):
    name = "parquet"

    def matches(self, name: str, head: bytes) -> bool:
        return head.startswith(b"PAR1")

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        require_package("pyarrow", "parquet", name)
        # The table of contents stands at the end of the file.
        with on_disk(stream, ".parquet") as path:
            yield from _read_records(path, name, self._keys)


def _read_records(path: Path, name: str, keys: Sequence[str]) -> Iterator[Record]:
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path) as file:
            names = file.schema_arrow.names
        if not (is_corpus(names) or is_table(names)):
            yield Drop(name, "no column of text")
            return
        for record in read_rows(names, _parquet_rows(path, name, names), keys):
            yield _with_headings(record) if isinstance(record, Document) else record
    except (ArrowException, OSError, ValueError) as error:
        raise MalformedSource(
            f"{name} is not a whole Parquet file: {error}", fix="fetch it again"
        ) from error


def _parquet_rows(path: Path, name: str, names: Sequence[str]) -> Iterator[PlacedRow]:
    from pyarrow.parquet import ParquetFile

    base, number = id_of(name), 0
    left = max(_ALWAYS_ALLOWED, _HIGHEST_RATIO * path.stat().st_size)
    has_text = is_corpus(names)
    columns = wanted_fields(names) if has_text else [*names]
    with ParquetFile(path) as file:
        texts = [leaf.path for leaf in file.schema if leaf.physical_type == "BYTE_ARRAY"]
    # Repeated values stay one, until their row is read.
    with ParquetFile(path, pre_buffer=False, buffer_size=2**16, read_dictionary=texts) as file:
        for batch in file.iter_batches(batch_size=_ROWS, columns=columns):
            for at in range(batch.num_rows):
                cells = batch.slice(at, 1).to_pylist()[0].items()
                row = {name: cell_text(value, "\n" if has_text else ", ") for name, value in cells}
                left -= sum(map(len, row.values()))
                if left < 0:
                    fix = "unpack it yourself if you trust it"
                    raise Unreadable(name, "decompression bomb", fix=fix)
                number += 1
                yield PlacedRow(row, f"{name}: row {number}", f"{base}-{number}")


def cell_text(value: Any, between: str) -> str:
    """A value of any type as text, `between` the items of a list; "" for bytes and nothing."""
    if isinstance(value, dict):
        value = [(name, one) for name, one in value.items() if one is not None]
    if isinstance(value, list):
        return between.join(filter(None, (cell_text(one, between) for one in value)))
    if isinstance(value, tuple):  # of a dictionary
        return f"{value[0]}: {cell_text(value[1], between)}"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return str(value).removesuffix(" 00:00:00")
    if isinstance(value, Decimal):
        return f"{value:f}"  # str() writes small ones as 1E-7
    return "" if value is None or isinstance(value, bytes) else str(value)


def _with_headings(document: Document) -> Document:
    """The document with heading lines of a wiki ("== Causes ==") made into paths."""
    (section,) = document.sections
    if section.path or "\n==" not in f"\n{section.text}":
        return document
    sections, _ = without_noise(sections_of(section.text, parse_heading))
    return replace(document, sections=sections) if sections else document
