"""Depth solving: search, focus, reason, until the sub-problem is answered (KAG-Thinker §3.1.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from osler.errors import MalformedOutput
from osler.methods.kag.boundary import Boundary
from osler.methods.kag.boxed import boxed_grammar
from osler.methods.kag.focus import Focus, Focuser
from osler.methods.kag.grammar import search_grammar
from osler.methods.kag.logical_forms import PlanStep, Retrieval
from osler.methods.kag.parse import read_search
from osler.methods.kag.speaker import Speaker, reply_answer
from osler.prompts import render_prompt
from osler.retrieve.fuse import rrf
from osler.retrieve.lookup import LookupResult, look_up
from osler.trace import Focused, Noted, Run
from osler.types import Hit, Language, Retriever


@dataclass(frozen=True, slots=True)
class SubAnswer:
    """What a step came to."""

    n: int
    question: str
    """With the answers it refers to filled in."""
    text: str
    """Empty when it was not answered."""
    hits: tuple[Hit, ...] = ()
    """The passages it rests on; empty for the model's own knowledge and for reasoning."""
    own: bool = False
    """Answered out of the model's own head."""
    confidence: float | None = None
    unsure: str = ""
    """Why nothing stood: the answer is the best there was. Empty when it is sure."""

    @property
    def prompt_line(self) -> str:
        """As later prompts show it."""
        return f"#{self.n} {self.question} {self.text or 'unknown'}"


class FormRetriever(Protocol):
    """What looks a Retrieval up by its form: a graph. Text retrievers take the words (F-KT-01)."""

    async def find_form(self, form: Retrieval, *, k: int) -> list[Hit]:
        """The best hits for the target of `form`, whose subject is named where it is known.

        Raises `SourceUnavailable`.
        """
        ...


class PassageFinder(Protocol):
    """A search that decides by itself where to look, and tells the run."""

    async def find_passages(
        self, words: str, language: Language, run: Run, *, k: int
    ) -> LookupResult:
        """The best hits for `words`, at most `k`. Raises `BudgetExceeded`."""
        ...


class Depth(Protocol):
    """What answers one Retrieval of a plan: `DepthSolver`, or another part in its place."""

    async def solve(
        self, step: PlanStep, question: str, known: Sequence[str], language: Language, run: Run
    ) -> SubAnswer:
        """`question` is the step's with references filled in; `known` are the lines before it.

        Raises `BudgetExceeded`.
        """
        ...


@dataclass(frozen=True)
class DepthSolver:
    """KAG-Thinker's own."""

    speaker: Speaker
    retriever: Retriever
    boundary: Boundary
    focuser: Focuser
    graph: FormRetriever | None = None
    sources: tuple[str, ...] = ()
    k: int = 3
    """Passages of one search (§4.1, §5.1)."""
    turns: int = 10
    """Searches for one sub-problem, at most (F-KT-32: the released value)."""
    finder: PassageFinder | None = None
    """In the place of `retriever`: a source plan for each search, say."""

    async def solve(
        self, step: PlanStep, question: str, known: Sequence[str], language: Language, run: Run
    ) -> SubAnswer:
        verdict = await self.boundary.assess(step.n, question, language, run)
        if verdict and verdict.known:
            return SubAnswer(
                step.n, question, verdict.answer, own=True, confidence=verdict.probability
            )
        seen: dict[str, Hit] = {}
        asked: list[str] = []
        search = step
        for turn in range(1, self.turns + 1):
            words = question if search is step else search.question
            asked.append(words)
            found = await self._look_up(search, words, language, run)
            fresh = [hit for hit in found if hit.passage.id not in seen]
            seen.update((hit.passage.id, hit) for hit in fresh)
            focus = await self.focuser.focus(question, found, language, run)
            run.emit(Focused(step.n, turn, focus.enough, focus.reason))
            if focus.enough:
                relevant = [found[i] for i in focus.relevant]
                if text := await self.reason_answer(question, relevant, known, language, run):
                    return SubAnswer(step.n, question, text, tuple(relevant))
            if run.exhausted_bound or turn == self.turns:
                break
            following = await self._next_step(question, asked, focus, language, run)
            if following is None or following.question in asked:
                break
            search = following
        # Nothing was sure: what the best of it says, or nothing at all.
        hits = tuple(seen.values())[: self.k]
        text = await self.reason_answer(question, hits, known, language, run) if hits else ""
        return SubAnswer(step.n, question, text, hits if text else ())

    async def _look_up(self, step: PlanStep, words: str, language: Language, run: Run) -> list[Hit]:
        """By the words in text, by the form in a graph; both fused (F-KT-01, F-KT-43)."""
        if self.finder is not None:
            found = await self.finder.find_passages(words, language, run, k=self.k)
        else:
            found = await look_up(self.retriever, words, run, k=self.k, sources=self.sources)
        if self.graph is None or not isinstance(step.action, Retrieval):
            return list(found.hits)
        by_form = await look_up(BoundFormRetriever(self.graph, step.action), words, run, k=self.k)
        hits = {hit.passage.id: hit for hit in (*found.hits, *by_form.hits)}
        rankings = [[hit.passage.id for hit in part.hits] for part in (by_form, found)]
        return [hits[id] for id, _ in rrf(rankings)][: 2 * self.k]

    async def reason_answer(
        self,
        question: str,
        hits: Sequence[Hit],
        known: Sequence[str],
        language: Language,
        run: Run,
    ) -> str:
        """The answer that the references give; "" where they do not say."""
        prompt = render_prompt(
            "kag/solve",
            language,
            references=self.focuser.list_references(question, hits),
            question=question,
            known=list(known),
        )
        try:
            return await self.speaker.ask(prompt, reply_answer, run, grammar=boxed_grammar())
        except MalformedOutput as error:
            run.emit(Noted(f"no answer to {question!r}: {error.message}"))
            return ""

    async def _next_step(
        self, question: str, asked: Sequence[str], focus: Focus, language: Language, run: Run
    ) -> PlanStep | None:
        """A new logical form for what is missing; `None` when the model has none."""
        prompt = render_prompt(
            "kag/search", language, question=question, asked=list(asked), reason=focus.reason
        )
        try:
            return await self.speaker.ask(
                prompt, lambda reply: read_search(reply.text), run, grammar=search_grammar()
            )
        except MalformedOutput as error:
            run.emit(Noted(f"no further search: {error.message}"))
            return None


@dataclass(frozen=True)
class BoundFormRetriever:
    """A search by form, as a retriever: the words are only what the event shows."""

    graph: FormRetriever
    form: Retrieval

    async def search(self, query: str, *, k: int) -> list[Hit]:
        return await self.graph.find_form(self.form, k=k)
