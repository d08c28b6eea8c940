"""A run through the real wiring that is recorded, kept as a file and replayed, event by event."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log
from pathlib import Path
from typing import Any

import pytest

from osler.build import Parts
from osler.build.live import record_parts, replay_parts
from osler.build.models import LoadedModel
from osler.build.strategies import build_solver
from osler.llm.core.base import Completion, LanguageModel, Message, Sampling, Scored, TokenScore
from osler.llm.recording.tape import Tape
from osler.retrieve.relevance import OverlapRelevance
from osler.settings import STRATEGIES, Role, Settings
from osler.trace import Noted, Run, Solver, to_line
from osler.types import Answer, Passage, Question, Relevance, Solution, Usage
from osler_lab.baselines.self_rag import TOKENS
from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever, TextOnly

OVERLAP = OverlapRelevance()


@dataclass
class Unsure(ScriptedModel):
    """A script in which some tokens were less likely than the others."""

    low: Mapping[str, float] | None = None

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        said = await ScriptedModel.complete(self, messages, sampling)
        low = self.low or {}
        tokens = [
            replace(t, logprob=log(low.get(t.text.strip(), self.probability))) for t in said.tokens
        ]
        return replace(said, tokens=tuple(tokens))


@dataclass
class ReflectingModel(Unsure):
    """A script to which each reflection token of Self-RAG is one token, as to its checkpoints."""

    weights: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """Probability of a reflection token after a context that holds the words before it."""

    async def score(self, context: Sequence[Message] | str, text: str) -> Scored:
        if text not in REFLECTIONS:
            return await super().score(context, text)
        assert not isinstance(context, str)
        assert context[0].role == "raw"
        said = context[0].content
        told = [p for (words, token), p in self.weights.items() if token == text and words in said]
        value = told[0] if told else self.scores.get(text, self.probability)
        return Scored((TokenScore(text, 0, len(text), log(value)),), Usage(calls=1))


REFLECTIONS = {token for tokens in TOKENS.values() for token in tokens}


@dataclass
class Played:
    solution: Solution
    run: Run
    model: ScriptedModel
    queries: list[str]

    @property
    def asked(self) -> list[str]:
        """The last words of each prompt, where the model goes on."""
        return [messages[-1].content for messages in self.model.seen]


class Hiding(TextOnly):
    """What `play` wants of a script, without its likelihoods."""

    @property
    def seen(self) -> list[object]:
        return list(self.script.seen)

    def finish(self) -> None:
        self.script.finish()


def notes(played: Played) -> list[str]:
    return [event.text for event in played.run.events if isinstance(event, Noted)]


def cited(answer: Answer) -> set[str]:
    """Ids of the passages that the answer's citations point at."""
    return {answer.evidence[each.number - 1].passage.id for each in answer.citations}


Play = Callable[..., Awaitable[Played]]


def passage(id: str, text: str, title: str = "") -> Passage:
    return Passage(f"wiki:{id}#0", text, "wiki", title or id)


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Runs a strategy over a script, and again from its tape: the same, byte for byte.

    `strategy` may name fields of the method as well, which no setting changes.
    """

    async def played(
        strategy: Mapping[str, object],
        question: Question,
        model: ScriptedModel,
        found: Mapping[str, Sequence[Passage]],
        *,
        relevance: Relevance = OVERLAP,
        writes: str = "yes",
    ) -> Played:
        known = STRATEGIES[str(strategy["kind"])].model_fields
        chosen = {name: value for name, value in strategy.items() if name in known}
        # The searches that are counted are the method's own, not the composer's for twins.
        answer = {"consistent": False}
        settings = Settings.model_validate(
            {"home": tmp_path, "strategy": chosen, "model": {"writes": writes}, "answer": answer}
        )
        own = {name: value for name, value in strategy.items() if name not in known}
        retriever = ScriptedRetriever(dict(found))
        parts = parts_of(model, retriever, relevance)
        tape, run = Tape(), Run()
        solver = _with_fields(build_solver(settings, record_parts(parts, tape)), own)
        solution = await solver.solve(question, run)
        model.finish()
        path = tmp_path / "tape.jsonl"
        path.write_text("".join(f"{line}\n" for line in tape.to_lines()), encoding="utf-8")
        again = Run()
        names: dict[Role, str] = {"reader": model.name}
        kept = replay_parts(Tape.read(path), names, parts.sources, "")
        replayed = _with_fields(build_solver(settings, kept), own)
        assert await replayed.solve(question, again) == solution
        assert list(map(to_line, again.events)) == list(map(to_line, run.events))
        return Played(solution, run, model, retriever.asked)

    return played


def _with_fields(solver: Any, own: Mapping[str, object]) -> Solver:
    """The method with these fields, its own or those of its sensor or protocol."""
    for name, value in own.items():
        holders = (one for one in ("sensor", "protocol") if hasattr(solver, one))
        if hasattr(solver, name):
            solver = replace(solver, **{name: value})
        else:
            holder = next(holders)
            changed = replace(getattr(solver, holder), **{name: value})
            solver = replace(solver, **{holder: changed})
    found: Solver = solver
    return found


def parts_of(
    model: LanguageModel, retriever: ScriptedRetriever, relevance: Relevance = OVERLAP
) -> Parts:
    return Parts(
        {"reader": LoadedModel(model)},
        lambda name, sources: retriever,
        relevance,
        OverlapRelevance(),
        ("wiki",),
    )
