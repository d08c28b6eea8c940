"""Depth solving: search, focus, reason, until the sub-problem is answered (KAG-Thinker §3.1.2)."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Protocol

from osler.errors import MalformedOutput
from osler.llm.core.ask import Speaker
from osler.llm.core.base import Completion
from osler.llm.reading.verdicts import numbers_grammar, read_numbers
from osler.methods.kag.boundary import Boundary
from osler.methods.kag.focus import Focuser
from osler.methods.kag.logical_forms import PlanStep, Retrieval, SubAnswer
from osler.methods.kag.parse import answer_or_text, boxed_grammar, read_search, search_grammar
from osler.prompts import render_prompt
from osler.retrieve import LookupResult, look_up, rrf, tell_order
from osler.retrieve.naming import names_in
from osler.sources.catalogue import GRAPH
from osler.text import one_line
from osler.trace import Focused, Noted, Run
from osler.types import Hit, Language, Retriever

NOT_DRAWN: dict[Language, str] = {
    "en": "The references seemed to suffice, but no answer could be drawn from them.",
    "zh": "资料看似充分，但无法从中得出答案。",
}
"""The reason for a further search when focusing said yes and reasoning found no answer."""
# Searches in a row that find nothing new, after which no further one is asked for.
_IDLE = 2
TEMPLATES = frozenset(
    {
        "what to look up",
        "...",
        "…",
        "要查找的内容",
        "in which town was anna holm born?",
        "甲出生在哪个城市？",
    }
)
"""Placeholders and examples of search prompts, which small models copy."""


class FormRetriever(Protocol):
    """A retriever that takes logical forms (a graph); text retrievers take the words (§3.1.1)."""

    async def find_form(self, form: Retrieval, *, k: int) -> list[Hit]:
        """The best `k` hits for the target of `form`, whose subject has a name where it is known.

        Raises `SourceUnavailable`.
        """


class PassageFinder(Protocol):
    """A search that chooses its own sources and reports to the run."""

    async def find_passages(
        self, words: str, language: Language, run: Run, *, k: int
    ) -> LookupResult:
        """The best hits for `words`, at most `k`. Raises `BudgetExceeded`."""


class Depth(Protocol):
    """The solver of one Retrieval of a plan: `DepthSolver`, or a replacement."""

    async def solve(
        self, step: PlanStep, question: str, known: Sequence[str], language: Language, run: Run
    ) -> SubAnswer:
        """Solves a step: `question` is its text with references filled in, `known` earlier results.

        Raises `BudgetExceeded`.
        """


@dataclass(frozen=True)
class DepthSolver:
    """KAG-Thinker's depth solving (§3.1.2)."""

    speaker: Speaker
    retriever: Retriever
    boundary: Boundary
    focuser: Focuser
    graph: FormRetriever | None = None
    sources: tuple[str, ...] = ()
    k: int = 3
    """Passages of one search (§4.1, §5.1)."""
    turns: int = 10
    """Searches for one sub-problem, at most (the released code's value)."""
    finder: PassageFinder | None = None
    """Replaces `retriever`, for example with a source plan for each search."""
    fresh: bool = False
    """Whether a further search reads only passages that no earlier one has brought: the next best
    stand in the place of those that were read."""
    selector: RelationSelector | None = None
    """Chooses among relations that no predicate matches; `None`: the nearest are read."""

    async def solve(
        self, step: PlanStep, question: str, known: Sequence[str], language: Language, run: Run
    ) -> SubAnswer:
        # §3.2: the model's own knowledge first, retrieval only beyond its boundary.
        verdict = await self.boundary.assess(step.n, question, language, run)
        if verdict and verdict.known:
            return SubAnswer(
                step.n, question, verdict.answer, own=True, confidence=verdict.probability
            )
        seen: dict[str, Hit] = {}
        searched: list[list[Hit]] = []
        asked: list[str] = []
        search, reason, idle = step, "", 0
        for turn in range(1, self.turns + 1):
            # The step's own question has its references filled in; later searches are complete
            # texts.
            words = question if search is step else search.question
            asked.append(words)
            read = seen if self.fresh else {}
            result = await self._look_up(search, words, language, run, read)
            fresh = [hit for hit in result if hit.passage.id not in seen]
            seen.update((hit.passage.id, hit) for hit in fresh)
            searched.append(fresh)
            idle = 0 if fresh or turn == 1 else idle + 1
            if idle:
                run.emit(Noted(f"step {step.n}: nothing new was found for {words!r}"))
            # The same passages would be judged the same way again; other words may find others.
            if idle == _IDLE:
                break
            if not idle:
                # §3.3, focusing: do these references suffice?
                focus = await self.focuser.focus(question, result, language, run)
                run.emit(Focused(step.n, turn, focus.enough, focus.reason))
                reason = focus.reason
                if focus.enough:
                    reason = NOT_DRAWN[language]
                    relevant = [result[i] for i in focus.relevant]
                    # §3.3, reasoning: over the relevant references alone.
                    if text := await self.reason_answer(question, relevant, known, language, run):
                        return SubAnswer(step.n, question, text, tuple(relevant))
            # Who was cut while thinking, or declines, will be so again.
            if run.unsaid or run.exhausted_bound or turn == self.turns:
                break
            # §3.1.2: a new logical form for what is still missing; a repeated one ends the loop.
            following = await self._next_step(question, asked, reason, language, run)
            # A reply that asks for no search is the answer (the released executor).
            if isinstance(following, str) and following:
                return SubAnswer(step.n, question, following, _share_places(searched, self.k))
            if not isinstance(following, PlanStep) or following.question in asked:
                break
            search = following
        # Nothing was sure: what the best of it says, or nothing at all.
        hits = _share_places(searched, self.k)
        text = ""
        if hits and not run.unsaid:
            text = await self.reason_answer(question, hits, known, language, run)
        return SubAnswer(step.n, question, text, hits if text else ())

    async def _look_up(
        self, step: PlanStep, words: str, language: Language, run: Run, read: Collection[str]
    ) -> list[Hit]:
        """Searches texts by the words and the graph by the form, and fuses both (§3.4); passages
        whose ids are in `read` are left out where there are others."""
        found, most = await self._search_both(step, words, language, run, self.k + len(read))
        chosen = [hit for hit in found if hit.passage.id not in read][:most] or found[:most]
        # A finder's searches find more than it gives.
        if self.finder is not None or len(chosen) < len(found):
            tell_order(chosen, run)
        return chosen

    async def _search_both(
        self, step: PlanStep, words: str, language: Language, run: Run, k: int
    ) -> tuple[list[Hit], int]:
        """What texts, `k` of them, and the graph say, and how much of it is read."""
        result = await self._search_texts(words, language, run, k)
        if self.graph is None or not isinstance(step.action, Retrieval):
            return list(result.hits), self.k
        forms = (step.action, *step.others)
        by_form = await self._search_forms(self.graph, forms, words, language, run)
        # The graph's ranking goes first: of equal fused scores its statement is the more exact.
        rankings = [part.hits for part in (*by_form, result)]
        return _fuse_hits(rankings), (1 + len(forms)) * self.k

    async def _search_texts(self, words: str, language: Language, run: Run, k: int) -> LookupResult:
        if self.finder is not None:
            return await self.finder.find_passages(words, language, run, k=k)
        return await look_up(self.retriever, words, run, k=k, sources=self.sources)

    async def _search_forms(
        self,
        graph: FormRetriever,
        forms: Sequence[Retrieval],
        words: str,
        language: Language,
        run: Run,
    ) -> list[LookupResult]:
        results = []
        k = max(self.k, OFFERED) if self.selector else self.k
        for form in forms:
            found = await look_up(BoundFormRetriever(graph, form), words, run, k=k)
            if found.hits and not _names_subject(form, found.hits):
                run.emit(Noted(f"{form.s.name!r} is not in the graph: nearest names are looked up"))
            if self.selector:
                kept = await self.selector.select(form, words, found.hits, language, run)
                found = replace(found, hits=tuple(kept[: self.k]))
            results.append(found)
        return results

    async def reason_answer(
        self,
        question: str,
        hits: Sequence[Hit],
        known: Sequence[str],
        language: Language,
        run: Run,
    ) -> str:
        """The answer that the references support; "" when they support none."""
        prompt = render_prompt(
            "kag/solve",
            language,
            references=self.focuser.list_references(question, hits),
            question=question,
            known=list(known),
        )
        try:
            return await self.speaker.ask(prompt, answer_or_text, run, grammar=boxed_grammar())
        except MalformedOutput as error:
            run.emit(Noted(f"no answer to {question!r}: {error.message}"))
            return ""

    async def _next_step(
        self, question: str, asked: Sequence[str], reason: str, language: Language, run: Run
    ) -> PlanStep | str | None:
        """A new logical form for the missing knowledge; the answer where the reply is one; `None`
        when it is neither."""
        prompt = render_prompt(
            "kag/search", language, question=question, asked=list(asked), reason=reason
        )
        names = names_in(question)
        try:
            return await self.speaker.ask(
                prompt, _search_or_answer, run, grammar=search_grammar(names=names)
            )
        except MalformedOutput as error:
            run.emit(Noted(f"no further search: {error.message}"))
            return None


def _share_places(searched: Sequence[Sequence[Hit]], k: int) -> tuple[Hit, ...]:
    """The best `k` of all searches in turn, those of the last search first: what was found before
    did not suffice."""
    places = zip_longest(*reversed(searched))
    return tuple(hit for rank in places for hit in rank if hit is not None)[:k]


def _fuse_hits(rankings: Sequence[Sequence[Hit]]) -> list[Hit]:
    """The hits of all rankings by reciprocal ranks, each passage once."""
    first = {hit.passage.id: hit for ranking in reversed(rankings) for hit in reversed(ranking)}
    return [first[id] for id, _ in rrf([[hit.passage.id for hit in r] for r in rankings])]


def _names_subject(form: Retrieval, hits: Sequence[Hit]) -> bool:
    """Whether what was found is of the form's own subject, and not of one that is named nearly
    so."""
    name = form.s.name.casefold()
    texts = (f"{hit.passage.heading} {hit.passage.text}" for hit in hits)
    return not name or any(name in text.casefold() for text in texts)


_NO_SEARCH = re.compile(
    r"\bno (?:further|other|more) (?:search|quer)"
    r"|\bnothing (?:else|more|further) to (?:look|search)"
    r"|(?:没有|无需|不需要)(?:其他|更多|进一步|再)[^。]{0,4}(?:检索|搜索)",
    re.IGNORECASE,
)
"""Says that there is nothing to search for, and so answers nothing."""


def _search_or_answer(reply: Completion) -> PlanStep | str:
    """A search, or an answer in its place (§3.1.2)."""
    if "<search" in reply.text:
        search = read_search(reply.text)
        if one_line(search.question).casefold().strip(" .。") in TEMPLATES:
            raise MalformedOutput(reply.text, expected="a search of its own words")
        return search
    return "" if _NO_SEARCH.search(reply.text) else answer_or_text(reply)


@dataclass(frozen=True)
class BoundFormRetriever:
    """A form lookup behind the `Retriever` interface; the query text only labels the event."""

    graph: FormRetriever
    form: Retrieval

    async def search(self, query: str, *, k: int) -> list[Hit]:
        return await self.graph.find_form(self.form, k=k)


OFFERED = 15
"""Relations that are offered at once (KAG's top k)."""


@dataclass(frozen=True)
class RelationSelector:
    """Asks one model which relations of the graph help."""

    speaker: Speaker

    async def select(
        self, form: Retrieval, question: str, hits: Sequence[Hit], language: Language, run: Run
    ) -> list[Hit]:
        """The hits without the relations that the model leaves out.

        All of them where there is nothing to choose: a single relation, or one whose predicate is
        the one asked for; and where the reply names none that can be read.
        """
        offered = [hit for hit in hits if _is_relation(hit)][:OFFERED]
        if len(offered) < 2 or any(_has_predicate(form, hit) for hit in offered):
            return list(hits)
        prompt = render_prompt(
            "kag/select",
            language,
            question=question,
            relations=[hit.passage.text.removeprefix("Relation: ") for hit in offered],
        )
        try:
            chosen = await self.speaker.ask(
                prompt,
                lambda reply: read_numbers(reply.text, len(offered)),
                run,
                grammar=numbers_grammar(len(offered), self.speaker.reasoning),
            )
        except MalformedOutput as error:
            run.emit(Noted(f"relations of {form.s.name!r} are read unchosen: {error.message}"))
            return list(hits)
        kept = {hit.passage.id for hit, yes in zip(offered, chosen, strict=True) if yes}
        return [hit for hit in hits if not _is_relation(hit) or hit.passage.id in kept]


def _is_relation(hit: Hit) -> bool:
    return hit.passage.source == GRAPH and "#rel-" in hit.passage.id


def _has_predicate(form: Retrieval, hit: Hit) -> bool:
    asked = (form.p.type or form.p.name).replace("_", " ").casefold()
    return bool(asked) and f", {asked}, " in hit.passage.text.replace("_", " ").casefold()
