"""Searches for questions that a knowledge base answers, and for the same without their subject.

The knowledge base is that of `searches`, and beside it the answers to patients' letters (LiveQA as
Omni-RAG has it). A question is there with what the search finds. It is absent with what the search
finds once every passage about its subject is taken away by script: gold documents and those that
name it; of MedQuAD by the page's names, synonyms and concepts of UMLS, of the others by the names
and the rarest word of the question.
"""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import BinaryIO, cast

from osler.evaluate.datasets.base import read_json
from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import Encoder
from osler.retrieve.entity_names import ReadText, fold_words
from osler.retrieve.experts.searching import RETRIEVE, SearchExpert
from osler.retrieve.experts.shelf import open_expert
from osler.retrieve.hybrid import HybridRetriever
from osler.retrieve.naming import NAMED, NamingRelevance
from osler.sources.formats.safe_xml import iterate_elements, text_of
from osler.text import one_line
from osler.train.experts.pair_questions import MEDQUAD, find_data_file
from osler.train.experts.searches import SearchQuestion, document_name
from osler.types import Hit, Passage, Question

LETTERS = "letters"
_LETTER_FILES = ("train_long.json", "dev_long.json")
_LIVEQA_FILE = "TREC-2017-LiveQA-Medical-Test-Questions-w-summaries.xml"
_MEDQUAD_FILE = "MedQuAD_xml.tar.gz"
READ, DEPTH = 10, 80
"""Passages that a question is answered from, and that are searched where some are taken away."""
_NAME = 4
"""Letters of a name by which passages are taken away, at least."""


@dataclass(frozen=True)
class EvidenceCase:
    """A question with what was found for it."""

    asked: SearchQuestion
    absent: bool
    hits: tuple[Hit, ...]

    @property
    def question(self) -> Question:
        return Question(self.asked.id, self.asked.text)

    @property
    def has_gold(self) -> bool:
        """Whether a gold document was found."""
        return any(map(self.is_gold, self.hits))

    def is_gold(self, hit: Hit) -> bool:
        return document_name(hit.passage) in self.asked.gold


@dataclass(frozen=True)
class SubjectNames:
    """Names of MedQuAD's pages, each with its synonyms and those of the same concepts."""

    groups: Mapping[str, frozenset[str]]
    """By the page's own name, in lower case."""

    def names_of(self, asked: SearchQuestion) -> frozenset[str]:
        own = (one.partition(":")[2] for one in asked.documents)
        return frozenset[str]().union(*(self.groups.get(name, frozenset()) for name in own))


def read_subject_names(data: Path) -> SubjectNames:
    """Names, synonyms and concepts of all pages; empty where the archive is not below `data`."""
    by_name: dict[str, set[str]] = {}
    by_concept: dict[str, set[str]] = {}
    concepts: dict[str, set[str]] = {}
    for focus, names, cuis in _read_annotations(data):
        by_name.setdefault(focus.casefold(), set()).update(names)
        concepts.setdefault(focus.casefold(), set()).update(cuis)
        for cui in cuis:
            by_concept.setdefault(cui, set()).update(names)
    return SubjectNames(
        {
            focus: frozenset(names).union(*(by_concept[cui] for cui in concepts[focus]))
            for focus, names in by_name.items()
        }
    )


def _read_annotations(data: Path) -> Iterator[tuple[str, set[str], set[str]]]:
    path = find_data_file(data, _MEDQUAD_FILE)
    if path is None:
        return
    with tarfile.open(path) as packed:
        for member in packed:
            stream = packed.extractfile(member) if member.name.endswith(".xml") else None
            if stream is None:
                continue
            for page in iterate_elements(cast(BinaryIO, stream), member.name, ("Document",)):
                focus = text_of(page.find("Focus"))
                names = {focus, *(text_of(one) for one in page.iter("Synonym"))}
                yield focus, names, {text_of(one) for one in page.iter("CUI")}


def read_letters(data: Path) -> tuple[list[SearchQuestion], dict[str, str]]:
    """Patients' letters with the texts of their answers, without those of LiveQA's test.

    Those of the set's own train file are for training, those of its dev file for dev.
    """
    tested = _tested_letters(data)
    letters: list[SearchQuestion] = []
    answers: dict[str, str] = {}
    seen: set[str] = set()
    for name in _LETTER_FILES:
        path = find_data_file(data, name)
        for row in read_json(path) if path is not None else ():
            text, words = one_line(row["question"]), _only_words(row["question"])
            if row["name"] != "liveqa" or words in seen or any(one in words for one in tested):
                continue
            seen.add(words)
            part = name.partition("_")[0]
            id = f"{LETTERS}:{part}:{row['id']}"
            letters.append(SearchQuestion(id, text, LETTERS, (id,), frozenset({row["id"]})))
            answers[row["id"]] = one_line(row["gold"])
    return letters, answers


def _tested_letters(data: Path) -> set[str]:
    path = find_data_file(data, _LIVEQA_FILE)
    if path is None:
        return set()
    with path.open("rb") as stream:
        found = [
            _only_words(text_of(one.find("Original-Question/MESSAGE")))[:80]
            for one in iterate_elements(stream, path.name, ("NLM-QUESTION",))
        ]
    return {one for one in found if one}


def _only_words(text: str) -> str:
    return re.sub(r"\W+", " ", text.casefold()).strip()


def add_letters(kb: KnowledgeBase, answers: Mapping[str, str], folder: Path) -> None:
    """Adds the letters' answers to a knowledge base that lacks them."""
    path = folder / "letters.jsonl"
    lines = (
        json.dumps({"id": id, "title": "", "content": text}) + "\n" for id, text in answers.items()
    )
    if answers and not path.exists():
        path.write_text("".join(lines), encoding="utf-8")
        kb.add([path], source="web")


@cache
def packaged_search() -> SearchExpert:
    """The expert `retrieve` that comes with Osler, with which the gate will be used."""
    return SearchExpert(open_expert(RETRIEVE))


@dataclass(frozen=True)
class CaseFinder:
    """Makes the two cases of each question."""

    kb: KnowledgeBase
    encoder: Encoder
    names: SubjectNames
    answers: Mapping[str, str]
    """Of letters, by document."""

    @cached_property
    def _naming(self) -> NamingRelevance:
        return NamingRelevance(self.kb.term_rarity)

    async def find_cases(self, asked: SearchQuestion) -> list[EvidenceCase]:
        search = HybridRetriever(self.kb, self.encoder, expert=packaged_search())
        found = await search.search(asked.text, k=DEPTH)
        other = [hit for hit in found if not self._is_about(asked, hit.passage)]
        return [
            EvidenceCase(asked, absent, tuple(hits[:READ]))
            for absent, hits in ((False, found), (True, other))
        ]

    def _is_about(self, asked: SearchQuestion, passage: Passage) -> bool:
        if document_name(passage) in asked.gold:
            return True
        if asked.source == MEDQUAD:
            return names_subject(passage, self.names.names_of(asked))
        if asked.source == LETTERS:
            said = {*fold_words(asked.text)}
            for document in asked.gold:
                said.update(fold_words(self.answers[document]))
            title = fold_words(passage.title)
            return bool(title) and said.issuperset(title)
        text = f"{passage.heading}. {passage.text}"
        return self._naming.score_texts(asked.text, [text])[0] >= NAMED


def names_subject(passage: Passage, names: Iterable[str]) -> bool:
    """Whether heading or text has one of these names."""
    read = ReadText(f"{passage.heading} . {passage.text}")
    return any(len(name) >= _NAME and read.has_name(name) for name in names)
