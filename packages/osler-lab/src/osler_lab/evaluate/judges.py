"""Model judges for what no formula decides: rubric marks, correctness, entailment.

Each judgement is asked greedily, since it must repeat, held to its form where the model takes a
grammar, and paid for by the run that it is given. What cannot be read is asked
for once more; what could not be read twice is `None` and noted in the run, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp
from pathlib import Path
from typing import TypeVar

from osler.errors import MalformedOutput, MalformedSource
from osler.llm.core.ask import Speaker, score_all
from osler.llm.core.base import Completion, LanguageModel, Likelihood, Message, Sampling
from osler.llm.core.grammar import Grammar, Node, alt, seq
from osler.llm.reading.verdicts import (
    after_reasoning,
    read_letter,
    read_verdict,
    verdict_grammar,
)
from osler.prompts import RenderedPrompt, render_prompt, render_question_prompt
from osler.trace import Event, FormSolved, FormsPlanned, Noted, Run
from osler.types import Language, Question
from osler_lab.evaluate.datasets.base import csv_records, required_cells
from osler_lab.evaluate.metrics.choice import Entailment
from osler_lab.evaluate.record import SampleKey

DIMENSIONS = ("relevance", "completeness", "proficiency", "interpretability")


@dataclass(frozen=True, slots=True)
class Rating:
    """Marks of one rater for one answer."""

    key: SampleKey
    rater: str
    marks: tuple[tuple[str, int], ...]
    """Dimension and mark; those that do not apply are left out."""


def read_ratings(path: Path) -> list[Rating]:
    """Reads a CSV with strategy, task, id, rater and the four dimensions.

    Raises `MalformedSource` naming file and line for a mark that is not 1 to 5, a missing
    column, or an answer that one rater rated twice.
    """
    ratings, seen = [], set[tuple[SampleKey, str]]()
    for row in csv_records(path):
        *parts, rater = required_cells(path, row, "strategy", "task", "id", "rater")
        key = SampleKey(*parts)
        # Two marks of one rater for one answer are a mistake of the sheet, not a mean.
        if (key, rater) in seen:
            raise MalformedSource(f"{path.parent / row.place}: {rater} rated it before")
        seen.add((key, rater))
        marks = tuple(
            (name, _parse_mark(path, row.place, word))
            for name in DIMENSIONS
            if (word := row.optional_text(name)) not in ("", "-")
        )
        ratings.append(Rating(key, rater, marks))
    return ratings


def _parse_mark(path: Path, place: str, word: str) -> int:
    if word not in ("1", "2", "3", "4", "5"):
        raise MalformedSource(f"{path.parent / place}: {word!r} is not a mark from 1 to 5")
    return int(word)


T = TypeVar("T")

TOKENS = 1_000
"""Tokens of a judgement with its reasons; what the model thinks before it has its own allowance."""
UNREAD = "a verdict could not be read: "
"""What the note of such a one begins with."""


def judge_sampling(tokens: int = TOKENS, *, seed: int = 0) -> Sampling:
    """The sampling of every judge; `tokens` where the settings allow for more."""
    return Sampling(0.0, max(tokens, TOKENS), seed=seed, top=0)


async def ask_judge(
    judge: Speaker,
    prompt: RenderedPrompt,
    parse: Callable[[Completion], T],
    run: Run,
    *,
    grammar: Grammar | None = None,
) -> T | None:
    """The judgement; `None` where it could not be read twice, which is noted with the reply."""
    try:
        return await judge.ask(prompt, parse, run, grammar=grammar, repairs=1)
    except MalformedOutput as error:
        run.emit(Noted(f"{UNREAD}{error.message}"))
        return None


def unread_verdicts(run: Run) -> tuple[str, ...]:
    """The verdicts of a run that could not be read: what was expected, and the reply."""
    notes = (event.text for event in run.events if isinstance(event, Noted))
    return tuple(note.removeprefix(UNREAD) for note in notes if note.startswith(UNREAD))


REASONING = 400
"""Characters that a judge may reason, under a grammar."""
NO_DOCUMENTS = DIMENSIONS[:3]
"""The dimensions of an answer that rests on no document (Omni-RAG Table 5 prints "-" there)."""

_MARKS = re.compile(r"<marks>([^<]*)", re.IGNORECASE)
# Entails, contradicts, neither: as the prompt has them.
_RELATIONS = "ABC"


@dataclass(frozen=True)
class Judge:
    """Model that gives marks, grades answers and scores entailment."""

    model: LanguageModel
    constrains: bool = False
    """Whether it takes a grammar."""

    async def give_marks(
        self,
        question: Question,
        reference: str,
        prediction: str,
        documents: Sequence[str],
        run: Run,
    ) -> dict[str, int] | None:
        """Marks an answer by Omni-RAG's rubric (E.12): 1 to 5 by dimension."""
        prompt = render_question_prompt(
            "evaluate/rate",
            question,
            reference=reference,
            prediction=prediction,
            documents=list(documents),
        )
        wanted = DIMENSIONS if documents else NO_DOCUMENTS
        return await self._ask_model(
            prompt, lambda reply: parse_marks(reply.text, wanted), marks_grammar(wanted), run
        )

    async def is_right(
        self, question: Question, golds: Sequence[str], prediction: str, run: Run
    ) -> bool | None:
        """Grades an answer against the golds: LLM accuracy (KAG-Thinker Table 8)."""
        prompt = render_question_prompt(
            "evaluate/right", question, golds=list(golds), prediction=prediction
        )
        return await self._ask_verdict(prompt, run)

    async def is_consistent(
        self, question: Question, first: str, second: str, run: Run
    ) -> bool | None:
        """Says whether two solution processes are consistent (KAG-Thinker §4.4)."""
        prompt = render_question_prompt("evaluate/consistent", question, first=first, second=second)
        return await self._ask_verdict(prompt, run)

    async def _ask_verdict(self, prompt: RenderedPrompt, run: Run) -> bool | None:
        grammar = verdict_grammar(reason=REASONING)
        return await self._ask_model(prompt, lambda reply: read_verdict(reply.text), grammar, run)

    async def score_entailment(
        self, text: str, sentence: str, run: Run, language: Language = "en"
    ) -> Entailment | None:
        """Scores how far the text entails the sentence, and how far it contradicts it.

        Probabilities where the model scores, as an NLI model gives; else 0 or 1 as it says.
        """
        prompt = render_prompt("evaluate/entails", language, text=text, sentence=sentence)
        if not isinstance(self.model, Likelihood):
            grammar = Grammar("relation", seq("<answer>", alt(*_RELATIONS), "</answer>"))
            relation = await self._ask_model(
                prompt, lambda reply: read_letter(reply.text, _RELATIONS), grammar, run
            )
            return (
                None
                if relation is None
                else Entailment(float(relation == "A"), float(relation == "B"))
            )
        # The three letters are scored right after the opened tag, each as a whole continuation.
        begun = [Message("user", prompt.text), Message("assistant", "<answer>")]
        scored = await score_all(
            self.model, begun, _RELATIONS, run, role="judge", prompt=prompt.identity
        )
        entails, contradicts, _ = (exp(sum(t.logprob for t in one.tokens)) for one in scored)
        return Entailment(entails, contradicts)

    async def _ask_model(
        self, prompt: RenderedPrompt, parse: Callable[[Completion], T], grammar: Grammar, run: Run
    ) -> T | None:
        judge = Speaker(self.model, "judge", judge_sampling(), self.constrains)
        return await ask_judge(judge, prompt, parse, run, grammar=grammar)


def marks_grammar(dimensions: Sequence[str]) -> Grammar:
    """Grammar of `<marks>relevance 4, completeness 3</marks>`, after some reasoning."""
    parts: list[Node | str] = []
    for name in dimensions:
        parts += [", " if parts else "<marks>", f"{name} ", alt(*"12345")]
    return Grammar("marks", after_reasoning(seq(*parts, "</marks>"), REASONING))


def parse_marks(reply: str, dimensions: Sequence[str]) -> dict[str, int]:
    """Reads the last `<marks>`, else the whole reply.

    Raises `MalformedOutput` unless every dimension has one mark from 1 to 5.
    """
    line = (_MARKS.findall(reply) or [reply])[-1]
    marked = {
        name: re.findall(rf"{name}\W*([0-9]+(?:\.[0-9]+)?)", line, re.IGNORECASE)
        for name in dimensions
    }
    if any(marks not in ([digit] for digit in "12345") for marks in marked.values()):
        expected = f"<marks>{', '.join(f'{name} N' for name in dimensions)}</marks>, N from 1 to 5"
        raise MalformedOutput(reply, expected=expected)
    return {name: int(marks[0]) for name, marks in marked.items()}


Shape = tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class SolutionProcess:
    """Solution process as the judge sees it, with its shape."""

    text: str
    shape: Shape


def process_of_events(events: Sequence[Event], option: str, text: str) -> SolutionProcess:
    """Extracts the solution process from the events of a stored run."""
    lines: list[str] = []
    shape: Shape = ()
    for event in events:
        if isinstance(event, FormsPlanned):
            # A plan made anew replaces the earlier one: the last shape is that of the answer.
            shape = tuple((node.fn, node.needs) for node in event.nodes)
            lines += [f"Step{n.n}: {n.step}\nAction{n.n}: {n.action}" for n in event.nodes]
        elif isinstance(event, FormSolved):
            lines.append(f"#{event.n} {event.answer or 'unknown'}")
    lines.append(" ".join(filter(None, (option, text))))
    return SolutionProcess("\n".join(line for line in lines if line), shape)
