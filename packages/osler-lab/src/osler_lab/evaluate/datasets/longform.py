"""Questions with reference texts: LiveQA, MedicationQA, ExpertQA, Omni-RAG's; open-domain sets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

from osler.errors import MalformedSource, OslerError, require_extra
from osler.sources.formats.json_lines import items_at
from osler.text import clean_text, language_of, one_line
from osler.types import LETTERS, Question
from osler_lab.evaluate.datasets.base import (
    DatasetReader,
    DatasetRow,
    UnusableRow,
    hash_id,
    json_rows,
)
from osler_lab.evaluate.record import Gold, Sample

if TYPE_CHECKING:
    from lxml import etree

_OPTION = re.compile(r"^([A-Za-z])\. (.+)$")
_ASKS = re.compile(r"\s*(?:You need to choose|Choose) one among the following options:?\s*$")


def liveqa_rows(paths: Sequence[Path]) -> Iterator[DatasetRow]:
    """Reads NLM-QUESTION elements of TREC 2017 LiveQA. Raises `MalformedSource`."""
    from lxml import etree

    # No entities, no network: data sets come from anywhere, and XML may read local files.
    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    for path in paths:
        try:
            root = etree.parse(str(path), parser).getroot()
        except (OSError, etree.XMLSyntaxError) as error:
            raise MalformedSource(f"{path}: not XML: {error}") from error
        for number, element in enumerate(root.iter("NLM-QUESTION")):
            place = f"{path.name}:{element.sourceline}"
            yield DatasetRow(place, number, _liveqa_fields(element))


def _liveqa_fields(element: etree._Element) -> dict[str, object]:
    def all_of(path: str) -> list[str]:
        return [one_line("".join(map(str, node.itertext()))) for node in element.findall(path)]

    # The two published files nest the answers differently.
    answers = all_of("ReferenceAnswers/RefAnswer/ANSWER") or all_of(".//ANSWER")
    return {
        "qid": element.get("qid") or element.get("questionid"),
        "subject": " ".join(all_of("Original-Question/SUBJECT")),
        "message": " ".join(all_of("Original-Question/MESSAGE")),
        "paraphrase": " ".join(all_of("NIST-PARAPHRASE")),
        "summary": " ".join(all_of("NLM-Summary")),
        "answers": answers,
        "urls": all_of("ReferenceAnswers/RefAnswer/AnswerURL"),
        "type": ",".join(all_of("ANNOTATIONS/TYPE")),
    }


def liveqa_sample(row: DatasetRow, task: str) -> Sample:
    """Asks as the consumer wrote it: the message, or the subject if there is no message."""
    question = Question(row.text_of("qid"), row.text_of("message", "subject", "paraphrase"))
    gold = Gold((), row.texts_of("answers"), row.texts_of("urls"))
    tags = row.tags_of(subject="subject", paraphrase="paraphrase", summary="summary", type="type")
    return Sample(task, "long", question, gold, tags)


_MEDICATION = ("Question", "Focus (Drug)", "Question Type", "Answer", "Section Title", "URL")


def medication_rows(paths: Sequence[Path]) -> Iterator[DatasetRow]:
    """The sheet of MedInfo 2019. Raises `OslerError` without the extra xlsx."""
    with require_extra("xlsx", "MedicationQA is an Excel workbook", OslerError):
        import openpyxl
        from openpyxl.utils.exceptions import InvalidFileException
    for path in paths:
        try:
            with closing(openpyxl.load_workbook(path, read_only=True, data_only=True)) as book:
                rows = [*book.active.iter_rows(values_only=True)]
        except (OSError, KeyError, ValueError, BadZipFile, InvalidFileException) as error:
            raise MalformedSource(f"{path}: not an Excel workbook: {error}") from error
        head = tuple(str(cell or "").strip() for cell in (rows or [()])[0])
        if missing := [name for name in _MEDICATION[:4] if name not in head]:
            raise MalformedSource(f"{path}: its first row lacks {missing}")
        for number, cells in enumerate(rows[1:]):
            if any(cell is not None for cell in cells):
                data = dict(zip(head, cells, strict=False))
                yield DatasetRow(f"{path.name} row {number + 2}", number, data)


def medication_sample(row: DatasetRow, task: str) -> Sample:
    """Makes a sample; a question may stand on several rows, so the id holds the row number."""
    text = row.text_of("Question")
    question = Question(f"{hash_id(text)}-{row.number + 2}", text)
    gold = Gold((), (row.text_of("Answer"),), row.texts_of("URL"))
    tags = (
        ("focus", row.optional_text("Focus (Drug)")),
        ("type", row.optional_text("Question Type")),
    )
    return Sample(task, "long", question, gold, tags)


def expert_sample(row: DatasetRow, task: str) -> Sample:
    """Reads ExpertQA: the gold is the answer as an expert revised it, one for each system."""
    answers = row.data.get("answers")
    systems = answers.values() if isinstance(answers, dict) else ()
    revised = [clean_text(str(a.get("revised_answer_string") or "")) for a in systems]
    text = row.text_of("question")
    field = row.data.get("metadata")
    tags = tuple((k, str(v)) for k, v in field.items()) if isinstance(field, dict) else ()
    question = Question(hash_id(text), text, language=language_of(text))
    return Sample(task, "long", question, Gold((), tuple(filter(None, revised))), tags)


def omnirag_sample(row: DatasetRow, task: str) -> Sample:
    """Reads Omni-RAG's own records: options stand in the question, the gold is a letter."""
    id, text, name = row.text_of("id"), row.text_of("question"), row.optional_text("name")
    tags = (("set", name),)
    # Omni-RAG's files mark open-ended records by `long`; all others have a letter.
    if row.data.get("long") is True:
        question = Question(id, text, language=language_of(text))
        return Sample(task, "long", question, Gold((), (row.text_of("gold"),)), tags)
    stem, options = inline_options(text)
    question = Question(id, stem, options, language_of(stem))
    return Sample(task, "choice", question, Gold((row.text_of("gold"),)), tags)


def inline_options(text: str) -> tuple[str, tuple[str, ...]]:
    """A question and the options that its last lines list as "A. …", then "a. …" after Z.

    Raises `UnusableRow` where they do not run on from A.
    """
    lines = text.split("\n")
    options = []
    # Read from the end, since the stem may itself hold lines like "A. …".
    while lines and (match := _OPTION.match(lines[-1].strip())):
        options.append((match.group(1), clean_text(match.group(2))))
        lines.pop()
    options.reverse()
    if "".join(letter for letter, _ in options) != LETTERS[: len(options)] or not options:
        raise UnusableRow("options are not A, B, C, …")
    stem = _ASKS.sub("", "\n".join(lines)).strip()
    return stem, tuple(option for _, option in options)


def flashrag_sample(row: DatasetRow, task: str) -> Sample:
    """FlashRAG's layout: id, question, golden_answers[]. NQ, TriviaQA, PopQA, Bamboogle …"""
    metadata = row.data.get("metadata")
    details: Mapping[str, Any] = metadata if isinstance(metadata, Mapping) else {}
    support = (str(details["s_wiki_title"]),) if _has_key(details, "s_wiki_title") else ()
    tags = (("prop", str(details["prop"])),) if _has_key(details, "prop") else ()
    question = Question(row.text_of("id"), row.text_of("question"))
    return Sample(task, "short", question, Gold((), row.texts_of("golden_answers"), support), tags)


def hotpot_sample(row: DatasetRow, task: str) -> Sample:
    """Reads HotpotQA and 2Wiki as published: _id, answer, supporting_facts [[title, sentence]]."""
    titles = [str(fact[0]) for fact in items_at(row.data, "supporting_facts") if fact]
    support = tuple(dict.fromkeys(titles))
    question = Question(row.text_of("_id", "id"), row.text_of("question"))
    tags = row.tags_of(type="type", level="level")
    return Sample(task, "short", question, Gold((), (row.text_of("answer"),), support), tags)


def musique_sample(row: DatasetRow, task: str) -> Sample:
    """Reads MuSiQue as published: aliases count as answers; paragraphs say which support them."""
    if row.data.get("answerable") is False:
        raise UnusableRow("not answerable")
    titles = [
        str(paragraph["title"])
        for paragraph in items_at(row.data, "paragraphs")
        if _has_key(paragraph, "title") and paragraph.get("is_supporting")
    ]
    # The answer itself comes first: it is what a judge is shown as gold.
    answers = tuple(dict.fromkeys((row.text_of("answer"), *row.texts_of("answer_aliases"))))
    gold = Gold((), answers, tuple(dict.fromkeys(titles)))
    question = Question(row.text_of("id"), row.text_of("question"))
    return Sample(task, "short", question, gold, (("hops", question.id[:4]),))


def listed_sample(row: DatasetRow, task: str) -> Sample:
    """Reads plain lists (R1-Searcher, HippoRAG), whose answers may be numbers."""
    text = row.text_of("question")
    # `idx` counts the rows of one file; the hash keeps ids apart between files.
    id = row.optional_text("id") or f"{row.text_of('idx')}-{hash_id(text)}"
    # 2Wiki's evidence: triples, whose subjects are documents.
    triples = items_at(row.data, "evidence")
    support = tuple(dict.fromkeys(str(one[0]) for one in triples if one and isinstance(one, list)))
    tags = row.tags_of(type="question_type")
    return Sample(
        task, "short", Question(id, text), Gold((), row.texts_of("answer"), support), tags
    )


def _has_key(value: Any, key: str) -> bool:
    return isinstance(value, Mapping) and value.get(key) not in (None, "")


READERS: dict[str, DatasetReader] = {
    "liveqa": DatasetReader(liveqa_rows, liveqa_sample),
    "medicationqa": DatasetReader(medication_rows, medication_sample),
    "expertqa": DatasetReader(json_rows, expert_sample),
    "omnirag": DatasetReader(json_rows, omnirag_sample),
    "flashrag": DatasetReader(json_rows, flashrag_sample),
    "hotpotqa": DatasetReader(json_rows, hotpot_sample),
    "musique": DatasetReader(json_rows, musique_sample),
    "listed": DatasetReader(json_rows, listed_sample),
}
