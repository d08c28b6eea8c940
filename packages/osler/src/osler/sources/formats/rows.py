"""Records with named fields as documents, whatever file they come from: CSV, JSON, Parquet.

Fields are recognised by the names that corpora use. A question is a heading, never evidence:
only the answer is quoted. Exam questions with their options and retrieval judgements
are no corpus at all, and are recognised so that a test set never becomes evidence. Of any other
table with a header, as a formulary, each row is a document: "drug: Ibuprofen; max daily: 1.2 g".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from osler.sources.formats.json_lines import text_in
from osler.sources.formats.reading import year_in
from osler.sources.records import Document, Drop, Record, Section
from osler.text import language_of, make_slug, one_line, split_sentences


def _list_words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_ID = _list_words("id _id docid doc_id pmid pmcid pageid uuid chunk_id wikipedia_id 编号 序号")
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

_EXAM = frozenset(
    _list_words(
        "option options choices opa opb cop answer_idx answerid correct_answer fakeanswer positive"
        " negative distractors gold qrels final_decision exam_type exam_class snippets adv_texts"
        " gold_answer ground_truth injected_text"
    )
) | {"incorrect answer", "correct answer", "judgement", "relevance"}
_LONGEST_HEADING = 300
_KEY = _list_words(
    "drug drug_name medicine medication generic generic_name ingredient test analyte name item 药品"
    " 药名 药品名称 通用名 药物 检验项目 项目 项目名称 名称"
)
"""Columns by which a row of a table is called; else it is the first."""
_OF_PATIENTS = frozenset(
    _list_words(
        "subject_id hadm_id stay_id icustay_id patient patient_id patientid patientunitstayid"
        " person_id hospitalization_id encounter encounter_id mrn nhs_number ssn birthdate"
        " date_of_birth dob 住院号 病历号 患者 患者姓名 病人 姓名 身份证号"
    )
)
_IS_NAME = re.compile(r"[^\W\d]")


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
    named = len(fields) == len(listed) > 1 and all(map(_IS_NAME.search, listed))
    return (
        named
        and not fields & {*_EXAM, *_OF_PATIENTS, *_ANSWER}
        and not all(map(_is_reference, listed))
    )


def _is_reference(name: str) -> bool:
    return name.endswith("id") or name in {"score", "rank", "iteration", "label"}


def row_reader(names: Iterable[str]) -> Callable[[Mapping[str, Any], str, str], Record]:
    """What makes a document of a row with these fields: of its text, or of all its cells."""
    return record_of if is_corpus(names) else table_row


def table_row(row: Mapping[str, Any], where: str, identifier: str) -> Record:
    """A row of a table as one sentence, every cell behind its column's name. `identifier` is the
    table's name and the row's number."""
    cells = {one_line(name.lstrip("\ufeff").replace("_", " ")): text_in(row, name) for name in row}
    filled = {name: one_line(text) for name, text in cells.items() if text}
    keys = [name for name in filled if name.casefold().replace(" ", "_") in _KEY]
    key = next(iter(keys or filled), "")
    if len(filled) < 2 or not _IS_NAME.search(filled[key]):
        return Drop(where, "no text")
    text = "; ".join(f"{name}: {cell}" for name, cell in filled.items())
    table = one_line(identifier.rpartition("-")[0].replace("_", " "))
    return Document(
        id=make_slug(identifier),
        title=filled[key],
        sections=(Section(text, (table,) if table else ()),),
        language=language_of(text),
        kind="table",
    )


def is_exam(names: Iterable[str]) -> bool:
    """Whether records with these fields are questions or judgements to test with."""
    fields = set(map(_fold_name, names))
    return bool(fields & _EXAM) and bool(fields & {*_QUESTION, *_ANSWER, *_TEXT, "id"})


def wanted_fields(names: Iterable[str]) -> list[str]:
    """The names of fields that `record_of` reads, out of these."""
    known = {
        *_ID,
        *_TITLE,
        *_TEXT,
        *_QUESTION,
        *_INPUT,
        *_ANSWER,
        *_GROUP,
        *_URL,
        *_LICENCE,
        *_YEAR,
    }
    return [name for name in names if _fold_name(name) in known]


def record_of(row: Mapping[str, Any], where: str, identifier: str) -> Record:
    """A row as a document. `identifier` stands where the row has none of its own."""
    fields = {_fold_name(name): value for name, value in row.items()}
    question = _first_field(fields, _QUESTION)
    text = (
        _first_field(fields, _ANSWER)
        if question
        else _first_field(fields, _TEXT) or _first_field(fields, _ANSWER)
    )
    if not text:
        return Drop(where, "empty answer" if question else "no text")
    if question:
        question = one_line(f"{question} {_first_field(fields, _INPUT)}".removeprefix("<user>:"))
    title = one_line(_first_field(fields, _TITLE)) or _shorten_question(question)
    group = one_line(_first_field(fields, _GROUP))
    heading = _shorten_question(question)
    path = tuple(part for part in (group, heading if heading != title else "") if part)
    return Document(
        # An id beside a question often names the dialogue or article that several came from.
        id=make_slug(identifier if question else _first_field(fields, _ID) or identifier),
        title=title,
        sections=(Section(text, path),),
        language=language_of(text),
        year=year_in(_first_field(fields, _YEAR)),
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
