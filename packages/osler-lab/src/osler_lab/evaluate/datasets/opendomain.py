"""Open-domain and multi-hop questions: the seven sets of KAG-Thinker §4.1, in all their files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from osler.sources.formats.json_lines import items_at
from osler.types import Question
from osler_lab.evaluate.datasets.base import (
    DatasetReader,
    DatasetRow,
    UnusableRow,
    hash_id,
    json_rows,
)
from osler_lab.evaluate.record import Gold, Sample


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
    "flashrag": DatasetReader(json_rows, flashrag_sample),
    "hotpotqa": DatasetReader(json_rows, hotpot_sample),
    "musique": DatasetReader(json_rows, musique_sample),
    "listed": DatasetReader(json_rows, listed_sample),
}
