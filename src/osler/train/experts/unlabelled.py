"""Questions that nobody labelled, with sentences of what a search by words found for them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from osler.errors import BadConfig
from osler.kb.base import KnowledgeBase
from osler.retrieve.asked import QuestionReader
from osler.retrieve.experts.judge import JudgedText
from osler.retrieve.hybrid import LexicalRetriever
from osler.retrieve.words import content_terms
from osler.text import split_sentences
from osler.train.experts.judge_cases import SHORTEST, UNLABELLED, JudgedCase, digest_of, text_at
from osler.train.experts.pair_questions import MEDQUAD
from osler.train.experts.searches import document_name
from osler.train.experts.splits import DataSplit, hash_of
from osler.types import Passage

QUESTIONS = "questions_unlabelled.txt"
"""Name of the file beside the split, one question a line."""
_SEARCHED, _PASSAGES, _TEXTS = 20, 10, 20
"""Passages that are searched for, and that are read where they are not held out; sentences of a
question."""


def read_unlabelled(path: Path, kb: KnowledgeBase, split: DataSplit) -> list[JudgedCase]:
    """The questions of the file with sentences that may answer them.

    Pages of the split's test part are left out. Raises `BadConfig` where the file is not there.
    """
    if not path.is_file():
        raise BadConfig(f"{path} is not there", fix="give the split of the benchmarks")
    asked = path.read_text(encoding="utf-8").splitlines()
    found = asyncio.run(_search_questions(asked, kb, split))
    return [one for one in found if one.texts]


async def _search_questions(
    asked: Sequence[str], kb: KnowledgeBase, split: DataSplit
) -> list[JudgedCase]:
    reader = QuestionReader()
    search = LexicalRetriever(kb, reader=reader)
    cases = []
    for question in asked:
        hits = await search.search(question, k=_SEARCHED)
        passages = [one.passage for one in hits if not _is_held_out(one.passage, split)]
        rarity = kb.term_rarity(content_terms(reader.read(question).full))
        texts = _choose_sentences(passages[:_PASSAGES], rarity)
        document = f"question {digest_of(question)}"
        cases.append(JudgedCase(question, UNLABELLED, texts, (), document))
    return cases


def _is_held_out(passage: Passage, split: DataSplit) -> bool:
    name = document_name(passage)
    return "test" in {split.parts.get(hash_of(one)) for one in (name, f"{MEDQUAD}:{name}")}


def _choose_sentences(
    passages: Sequence[Passage], rarity: Mapping[str, float]
) -> tuple[JudgedText, ...]:
    """The sentences whose words tell most of the question's, under their headings."""
    found = [
        text_at(passage, start, end)
        for passage in passages
        for start, end in split_sentences(passage.text)
        if end - start >= SHORTEST
    ]
    told = {
        text: sum(rarity.get(one, 0) for one in content_terms(f"{text.heading} {text.sentence}"))
        for text in found
    }
    return tuple(sorted(told, key=lambda text: -told[text])[:_TEXTS])
