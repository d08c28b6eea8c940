"""Every question of a set asked in each way, into a log that a stopped run goes on from.

A line of the log is one question in one way: the quotes, the outcome, how sure, and whether the
quotes are right. The default way goes through `osler.ask` with plain settings; what the gate
weighed is kept beside it on the dev half, so that its weights can be fitted without asking again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from natural.bases import open_base
from natural.questions import (
    SETS,
    Half,
    NaturalPlaces,
    NaturalQuestion,
    NaturalSet,
    places_of,
)
from natural.rules import SimpleRules
from osler.answer.checks import AskedFacts, failed_checks
from osler.answer.gate import EvidenceGate
from osler.answer.sentences import judged_text
from osler.build import Parts
from osler.build.composers import evidence_gate
from osler.build.resource_cache import ResourceCache
from osler.runs.answering import ask
from osler.settings import Settings
from osler.settings.models import ModelSettings
from osler.settings.settings import AnswerSettings
from osler.types import Answer, Hit, Question
from osler_lab.jobs.runner import Progress

Way = Literal["default", "model", "off", "cosine", "bm25"]
WAYS: Mapping[Way, str] = {
    "default": "as Osler answers",
    "model": "by the quotes that the model of osler.toml picks",
    "off": "without the judge",
    "cosine": "the best cosine among ten passages",
    "bm25": "BM25's first passage",
}
Outcome = Literal["answer", "nearest", "refused"]
_WEIGHED = 24
"""Sentences whose scores are kept."""


@dataclass(frozen=True, slots=True)
class AskedRow:
    """One question in one way."""

    set: str
    way: str
    id: str
    answerable: bool | None
    outcome: Outcome
    first: bool
    """Whether the first quote is right."""
    any: bool
    """Whether a quote is right."""
    sure: float | None = None
    quotes: Sequence[tuple[str, str]] = ()
    """Id of the passage, and the text."""
    weighed: Sequence[Mapping[str, Any]] = field(default=())
    """Of the sentences that the gate read: cosine, logit, failed checks, right or not."""


@dataclass(frozen=True)
class NaturalLog:
    """The rows of a folder, one file for each set and half."""

    folder: Path

    def read(self, name: str, half: Half) -> list[AskedRow]:
        """The rows so far; a line that was cut off by a stop is left out."""
        path = self._file(name, half)
        if not path.is_file():
            return []
        lines = path.read_text(encoding="utf-8").split("\n")
        return [AskedRow(**json.loads(line)) for line in lines[:-1]]

    def append(self, row: AskedRow, half: Half) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._file(row.set, half).open("a", encoding="utf-8") as out:
            out.write(json.dumps(asdict(row), ensure_ascii=False) + "\n")

    def _file(self, name: str, half: Half) -> Path:
        return self.folder / f"{name}-{half}.jsonl"


@dataclass(frozen=True)
class NaturalTrial:
    """What is asked, of which data, and where it is written."""

    at: NaturalPlaces
    log: NaturalLog
    half: Half
    limit: int | None = None
    keeps_weighed: bool = False
    answer: AnswerSettings = field(default_factory=AnswerSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    """What picks quotes in the way `model`."""

    def questions_of(self, one: NaturalSet) -> list[NaturalQuestion]:
        """The set's questions in this half, at most `limit`, evenly from all."""
        found = one.read(self.at, self.half)
        if self.limit is None or len(found) <= self.limit:
            return found
        return [found[at * len(found) // self.limit] for at in range(self.limit)]

    async def run(
        self, sets: Sequence[str], ways: Sequence[Way], progress: Progress | None = None
    ) -> None:
        """Asks what the log lacks."""
        for name in sets:
            one = SETS[name]
            known = {(row.way, row.id) for row in self.log.read(name, self.half)}
            settings = open_base(one.base, self.at, self.answer, progress)
            settings = settings.model_copy(update={"model": self.model})
            questions = self.questions_of(one)
            asked = [(way, q) for way in ways for q in questions]
            missing = [(way, q) for way, q in asked if (way, q.id) not in known]
            if not missing:
                continue
            asker = NaturalAsker(one.name, settings, self.keeps_weighed)
            try:
                for number, (way, question) in enumerate(missing, 1):
                    self.log.append(await asker.ask(way, question), self.half)
                    if progress is not None:
                        progress(f"{name}, {way}", number, len(missing))
            finally:
                asker.close()


class NaturalAsker:
    """Asks questions of one base in several ways; opens each thing once."""

    def __init__(self, name: str, settings: Settings, keeps_weighed: bool) -> None:
        self.name, self.settings, self.keeps_weighed = name, settings, keeps_weighed
        self._cache = ResourceCache(settings)
        self._rules: SimpleRules | None = None
        self._parts: dict[Way, Parts] = {}

    def close(self) -> None:
        self._cache.close()

    async def ask(self, way: Way, question: NaturalQuestion) -> AskedRow:
        """Asks one question in one way."""
        if way in ("cosine", "bm25"):
            return await self._ask_rule(way, question)
        parts = await self._parts_of(way)
        settings = self._settings_of(way)
        asked = Question(question.id, question.text, language=question.language)
        finished = await ask(settings, asked, parts=parts)
        answer = finished.solution.answer if finished.solution else Answer()
        quotes = [(one.passage.id, one.quote) for one in answer.evidence]
        right = [question.is_right(one.quote, places_of(one.passage)) for one in answer.evidence]
        weighed: Sequence[Mapping[str, Any]] = ()
        if self.keeps_weighed and way == "default":
            hits = await parts.retriever("rag", parts.sources).search(question.text, k=10)
            weighed = await weigh(evidence_gate(settings, parts), question, hits)
        return AskedRow(
            self.name,
            way,
            question.id,
            question.answerable,
            outcome_of(answer),
            any(right[:1]),
            any(right),
            answer.sureness.probability if answer.sureness else None,
            quotes,
            weighed,
        )

    def _settings_of(self, way: Way) -> Settings:
        judge = way if way in ("off", "model") else "judge"
        model = {**self.settings.model.model_dump(), "writes": "no"} if way == "model" else {}
        changes = {
            "runs": {"keep": False},
            "answer": {**self.settings.answer.model_dump(), "judge": judge},
            "model": model,
        }
        return Settings.model_validate({**self.settings.model_dump(), **changes})

    async def _parts_of(self, way: Way) -> Parts:
        """The parts of a way, made once."""
        if way not in self._parts:
            self._parts[way] = await self._cache.parts_for(self._settings_of(way))
        return self._parts[way]

    async def _ask_rule(self, way: Way, question: NaturalQuestion) -> AskedRow:
        held = await self._cache.open_knowledge()
        if self._rules is None:
            self._rules = SimpleRules(held.kb, held.encoder)
        rule: Callable[[str], list[tuple[str, str]]] = (
            self._rules.best_sentences if way == "cosine" else self._rules.first_passage
        )
        quotes = rule(question.text)
        right = [question.is_right(quote, places_of(held.kb.get(id))) for id, quote in quotes]
        outcome: Outcome = "answer" if quotes else "refused"
        return AskedRow(
            self.name,
            way,
            question.id,
            question.answerable,
            outcome,
            any(right[:1]),
            any(right),
            None,
            quotes,
        )


def outcome_of(answer: Answer) -> Outcome:
    """Answer, nearest, or refused, by what the evidence is used as."""
    if not answer.evidence:
        return "refused"
    return "nearest" if all(one.use == "nearest" for one in answer.evidence) else "answer"


async def weigh(
    gate: EvidenceGate, question: NaturalQuestion, hits: Sequence[Hit]
) -> list[Mapping[str, Any]]:
    """What the gate knows of each of the first sentences that it could read."""
    facts = AskedFacts(gate.reader.read(question.text))
    found = await gate.read_best(facts, hits, _WEIGHED)
    texts = [judged_text(one).to_line() for one in found]
    judged = await gate.judge.relevance(question.text, texts) if gate.judge else [0.0] * len(found)
    return [
        {
            "relevance": round(one.relevance, 4),
            "judged": round(logit, 4),
            "failed": failed_checks(facts, one, gate.checks),
            "right": question.is_right(one.text, places_of(one.hit.passage)),
            "rank": one.hit.rank,
            "passage": one.hit.passage.id,
            "text": one.text[:200],
        }
        for one, logit in zip(found, judged, strict=True)
    ]
