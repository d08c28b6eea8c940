"""Records with named fields as documents, whatever file they come from: CSV, JSON, Parquet.

Fields are recognised by the names that corpora use. A question is a heading, never evidence:
only the answer is quoted. Exam questions with their options and retrieval judgements
are no corpus at all, and are recognised so that a test set never becomes evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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


def is_corpus(names: Iterable[str]) -> bool:
    """Whether records with these fields hold text to be searched."""
    fields = set(map(_fold_name, names))
    has_text = bool(fields & {*_TEXT}) or bool(fields & {*_QUESTION} and fields & {*_ANSWER})
    return has_text and not fields & _EXAM


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
