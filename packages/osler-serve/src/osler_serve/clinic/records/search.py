"""Finds patients similar to a described one: by codes, by names of diagnoses, else by words.

Searches the source `emr` and no other (TC-RAG App. 8.5, "Electronic Medical Record Database
Search"); a hit is the summary of a patient's record, which opens like any passage.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from osler.errors import BadQuestion
from osler.kb.base import KnowledgeBase
from osler.retrieve import source_errors
from osler.settings import Settings
from osler.sources.catalogue import EMR
from osler.text import split_words
from osler.types import Hit, Passage, Retriever
from osler_serve.clinic.records import codes
from osler_serve.clinic.records.codes import Code, CodeSystem
from osler_serve.clinic.records.crosswalk import Crosswalk
from osler_serve.clinic.records.patient import OLDEST
from osler_serve.clinic.records.patient_document import PatientProfile, coded_lines, profile_of
from osler_serve.clinic.records.similar import Cohort, SimilarPatient

FINDER = "patients"

_AGE = re.compile(
    r"(?<![\d.])(\d{1,3})\s*(?:-\s*)?(?:years?[\s-]*old|y/?o\b|yo\b|岁|歲|(?-i:[FM])\b)|\bage[d:]?\s*(\d{1,3})\b",
    re.IGNORECASE,
)
_SEXES = (
    (
        "female",
        re.compile(r"\b(?:female|woman|girl)\b|(?-i:(?:(?<=\d)|y/?o )\s?F\b)|女", re.IGNORECASE),
    ),
    ("male", re.compile(r"\b(?:male|man|boy)\b|(?-i:(?:(?<=\d)|y/?o )\s?M\b)|男", re.IGNORECASE)),
)
# Upper bound on words of a diagnosis's name in a query.
_LONGEST_NAME = 12


@dataclass(frozen=True)
class PatientMatch:
    """A similar patient with the reasons."""

    passage: Passage
    """The summary of the record."""
    similar: SimilarPatient


@dataclass(frozen=True)
class _LoadedPatients:
    snapshot: str
    cohort: Cohort
    names: dict[tuple[str, ...], Code]
    """Code by the words of a diagnosis as the records name it."""


@dataclass
class PatientIndex:
    """The patients of a knowledge base for comparison; loaded at the first search and after a
    build."""

    kb: KnowledgeBase
    walk: Crosswalk | None = None
    target: CodeSystem = CodeSystem.ICD9
    _loaded: _LoadedPatients | None = None
    _loading: threading.Lock = field(default_factory=threading.Lock)

    def nearest_patients(self, query: PatientProfile, *, k: int) -> list[PatientMatch]:
        """The `k` most similar patients. Blocks. Raises `SourceUnavailable`."""
        with source_errors(self.kb, (EMR,)):
            similar = self.load_snapshot().cohort.find_nearest(query, k=k)
            return [PatientMatch(self.kb.get(each.id), each) for each in similar]

    def load_snapshot(self) -> _LoadedPatients:
        with self._loading:
            snapshot = self.kb.snapshot
            # Reloaded after a build; the lock keeps concurrent first searches from loading twice.
            if self._loaded is None or self._loaded.snapshot != snapshot:
                self._loaded = self._load_patients(snapshot)
            return self._loaded

    def read_profile(self, text: str) -> PatientProfile:
        """Reads a patient's profile from a text: codes, else names of diagnoses; age and sex.

        A line that consists of a code alone counts in any spelling.
        """
        found = frozenset((*codes.found_in(text), *_code_lines(text)))
        return profile_in(text, found or frozenset(self._named_diagnoses(text)))

    def _load_patients(self, snapshot: str) -> _LoadedPatients:
        profiles: list[PatientProfile] = []
        names: dict[tuple[str, ...], Code] = {}
        for passages in self.kb.read_documents(EMR):
            profiles.append(profile_of(passages[0].id, passages, passages[0].title))
            for code, called in coded_lines(passages):
                if called:
                    names.setdefault(tuple(split_words(called)[: _LONGEST_NAME + 1]), code)
        return _LoadedPatients(snapshot, Cohort(profiles, self.walk, self.target), names)

    def _named_diagnoses(self, text: str) -> Iterable[Code]:
        """Diagnoses whose whole name occurs in the text; of nested names the longer."""
        names, said = self.load_snapshot().names, split_words(text)
        at = 0
        while at < len(said):
            # Longest match first, as in dictionary lookup of names.
            for length in range(min(_LONGEST_NAME, len(said) - at), 0, -1):
                if code := names.get(tuple(said[at : at + length])):
                    yield code
                    at += length - 1
                    break
            at += 1


@dataclass(frozen=True)
class SimilarPatients:
    """A `Retriever` of patients: by diagnoses where the query has any, else by its words."""

    patients: PatientIndex
    by_words: Retriever
    """Over the source `emr`."""

    async def search(self, query: str, *, k: int) -> list[Hit]:
        found = await asyncio.to_thread(self._nearest_hits, query, k)
        return found or await self.by_words.search(query, k=k)

    def _nearest_hits(self, query: str, k: int) -> list[Hit]:
        with source_errors(self.patients.kb, (EMR,)):
            profile = self.patients.read_profile(query)
        if not profile.codes:
            return []
        found = self.patients.nearest_patients(profile, k=k)
        return [
            Hit(each.passage, each.similar.score, rank, query, FINDER)
            for rank, each in enumerate(found, 1)
        ]


def _code_lines(text: str) -> Iterable[Code]:
    for line in text.splitlines():
        with suppress(BadQuestion):
            yield codes.parse_code(line.strip(" \t,;-"))


def profile_in(text: str, found: frozenset[Code]) -> PatientProfile:
    """A profile of these codes with the age and sex in the text: "a 65-year-old man",
    "女，65岁"."""
    age = _AGE.search(text)
    told = int(age[1] or age[2]) if age else None
    sex = next((name for name, pattern in _SEXES if pattern.search(text)), "")
    return PatientProfile("query", found, None if told is None else min(told, OLDEST), sex)


def open_patients(settings: Settings, kb: KnowledgeBase) -> PatientIndex:
    """The patients of the knowledge base, compared in the vocabulary that is set.

    Raises `MalformedSource` for a map of codes that is none.
    """
    maps = settings.emr.maps
    walk = Crosswalk.read_files(maps) if maps else None
    return PatientIndex(kb, walk, CodeSystem(settings.emr.target))
