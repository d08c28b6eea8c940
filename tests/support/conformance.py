"""Conformance kits: subclass, give a fixture, inherit the tests.

    class TestMyRetriever(RetrieverKit):
        @pytest.fixture
        def retriever(self) -> Retriever:
            return MyRetriever(...)

A kit asks only what the Protocol promises, so whatever passes it can stand wherever
the Protocol is asked for. pytest collects the subclasses, not the kits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from math import isfinite
from typing import ClassVar

import pytest

from osler.llm.core.base import (
    BatchLikelihood,
    LanguageModel,
    Likelihood,
    Message,
    Sampling,
    TokenScore,
)
from osler.trace import (
    Answered,
    Budget,
    Run,
    RunCancelled,
    Solver,
    Started,
    from_line,
    to_line,
)
from osler.types import Grounding, Halt, Question, Relevance, Retriever

ASKED = [Message("user", "Name one vitamin.")]
ASKED_IN_CHINESE = [Message("user", "请说出一种维生素。")]
BEGUN = [*ASKED, Message("assistant", "One vitamin is")]
LISTS = [
    [Message("user", "Count on."), Message("assistant", begun)]
    for begun in ("1, 2, 3,", "a, b, c,", "Monday, Tuesday,")
]


class RetrieverKit:
    """Needs the fixtures `retriever` and `query`, a query that finds at least two passages."""

    async def test_hits_come_best_first_with_ranks_from_one(
        self, retriever: Retriever, query: str
    ) -> None:
        hits = await retriever.search(query, k=5)
        assert len(hits) >= 2
        assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
        assert [h.score for h in hits] == sorted((h.score for h in hits), reverse=True)

    async def test_never_more_than_k_and_no_passage_twice(
        self, retriever: Retriever, query: str
    ) -> None:
        for k in (1, 2, 50):
            ids = [hit.passage.id for hit in await retriever.search(query, k=k)]
            assert len(ids) <= k
            assert len(set(ids)) == len(ids)

    async def test_fewer_hits_are_the_first_of_more(self, retriever: Retriever, query: str) -> None:
        many = [hit.passage.id for hit in await retriever.search(query, k=10)]
        few = [hit.passage.id for hit in await retriever.search(query, k=2)]
        assert few == many[:2]

    async def test_the_same_query_finds_the_same(self, retriever: Retriever, query: str) -> None:
        assert await retriever.search(query, k=5) == await retriever.search(query, k=5)

    async def test_a_hit_tells_which_query_found_it(self, retriever: Retriever, query: str) -> None:
        assert {hit.query for hit in await retriever.search(query, k=5)} == {query}

    async def test_a_query_of_nothing_finds_nothing_and_does_not_fail(
        self, retriever: Retriever
    ) -> None:
        for empty in ("", "   ", "?!", "\n"):
            assert len(await retriever.search(empty, k=3)) <= 3


class RelevanceKit:
    """Needs the fixture `scorer`."""

    async def test_one_score_a_text_in_order(self, scorer: Relevance) -> None:
        texts = ["Iron treats anaemia.", "The train leaves.", "Iron treats anaemia."]
        scores = await scorer.relevance("What treats anaemia?", texts)
        assert len(scores) == 3
        assert scores[0] == scores[2] > scores[1]

    async def test_no_texts_no_scores(self, scorer: Relevance) -> None:
        assert await scorer.relevance("anything", []) == ()


class LanguageModelKit:
    """Needs the fixture `model`; it may answer whatever it likes, but at least 12 times.

    What a double or a server does not do is said by the subclass, and not asked of it:
    `limited`, that it holds to `max_tokens`; `seeded`, that a seed gives the same reply again.
    """

    limited: ClassVar[bool] = True
    seeded: ClassVar[bool] = True

    def test_its_name_is_stable(self, model: LanguageModel) -> None:
        assert model.name == model.name != ""

    @pytest.mark.parametrize("asked", [ASKED, ASKED_IN_CHINESE, BEGUN])
    async def test_a_reply_s_tokens_tile_its_text(
        self, model: LanguageModel, asked: Sequence[Message]
    ) -> None:
        reply = await model.complete(asked, Sampling(max_tokens=8))
        if reply.tokens:
            _tokens_tile(reply.text, reply.tokens)
        assert reply.usage.calls == 1
        assert reply.finish in {"stop", "length"}

    async def test_no_log_probabilities_where_none_are_wanted(self, model: LanguageModel) -> None:
        reply = await model.complete(ASKED, Sampling(max_tokens=4, top=0))
        assert reply.tokens == ()

    async def test_a_reply_that_was_cut_says_so(self, model: LanguageModel) -> None:
        if not self.limited:
            pytest.skip("it does not hold to max_tokens")
        reply = await model.complete(ASKED, Sampling(max_tokens=2, temperature=0))
        assert reply.finish == "length"
        assert reply.usage.completion_tokens in {0, 2}

    async def test_the_same_seed_says_the_same(self, model: LanguageModel) -> None:
        if not self.seeded:
            pytest.skip("its seeds promise nothing")
        sampling = Sampling(max_tokens=8, temperature=1.0, seed=5)
        first, again = [await model.complete(ASKED, sampling) for _ in range(2)]
        assert first.text == again.text

    async def test_requests_at_once_do_not_mix(self, model: LanguageModel) -> None:
        """Each continues its own list, and no two of these lists go on alike."""
        sampling = Sampling(max_tokens=6, temperature=0)
        alone = [(await model.complete(asked, sampling)).text for asked in LISTS]
        together = await asyncio.gather(*(model.complete(asked, sampling) for asked in LISTS))
        for mine, reply in zip(alone, together, strict=True):
            others = {text for text in alone if text != mine}
            assert reply.text not in others
            if reply.tokens:
                _tokens_tile(reply.text, reply.tokens)

    async def test_a_cancelled_call_ends_at_once_and_harms_no_other(
        self, model: LanguageModel
    ) -> None:
        """One that was quicker than its cancellation has ended too."""
        call = asyncio.create_task(model.complete(ASKED, Sampling(max_tokens=64)))
        await asyncio.sleep(0)
        call.cancel()
        done, _ = await asyncio.wait([call], timeout=1)
        assert done == {call}
        assert call.cancelled() or not call.exception()
        assert (await model.complete(ASKED, Sampling(max_tokens=4, top=0))).usage.calls == 1


class LikelihoodKit:
    """Needs the fixture `scorer`, a model that scores."""

    @pytest.mark.parametrize("context", ["A vitamin:", ASKED, BEGUN])
    @pytest.mark.parametrize("text", ["ascorbic acid", "抗坏血酸，即维生素C。", "🩺 10 µg"])
    async def test_the_tokens_tile_the_given_text(
        self, scorer: Likelihood, context: Sequence[Message] | str, text: str
    ) -> None:
        """Chinese and signs are made of tokens that are only part of a character."""
        scored = await scorer.score(context, text)
        _tokens_tile(text, scored.tokens)
        assert scored.usage.scored_tokens == len(scored.tokens)
        assert any(token.logprob < 0 for token in scored.tokens)

    async def test_the_same_text_scores_the_same(self, scorer: Likelihood) -> None:
        first, again = [await scorer.score("A vitamin:", " C") for _ in range(2)]
        assert [t.logprob for t in first.tokens] == [t.logprob for t in again.tokens]

    async def test_scores_at_once_do_not_mix(self, scorer: Likelihood) -> None:
        texts = ("ascorbic acid", " C", "抗坏血酸，即维生素C。")
        together = await asyncio.gather(*(scorer.score("A vitamin:", text) for text in texts))
        for text, scored in zip(texts, together, strict=True):
            _tokens_tile(text, scored.tokens)


class BatchLikelihoodKit(LikelihoodKit):
    """Needs the fixture `batch`, a model that weighs several texts at once, and `scorer`."""

    async def test_one_result_a_text_in_order_whatever_the_others(
        self, batch: BatchLikelihood
    ) -> None:
        texts = ["ascorbic acid", "抗坏血酸", "ascorbic oxide"]
        every = await batch.score_all(ASKED, texts)
        turned = await batch.score_all(ASKED, texts[::-1])
        assert len(every) == len(texts)
        for text, one, other in zip(texts, every, turned[::-1], strict=True):
            _tokens_tile(text, one.tokens)
            assert [t.logprob for t in one.tokens] == [t.logprob for t in other.tokens]

    async def test_no_texts_no_results(self, batch: BatchLikelihood) -> None:
        assert await batch.score_all("A vitamin:", []) == ()


class SolverKit:
    """Needs the fixtures `solver` and `question`."""

    async def test_it_ends_with_an_answer_that_keeps_its_word(
        self, solver: Solver, question: Question
    ) -> None:
        solution = await solver.solve(question, Run())
        answer = solution.answer
        assert solution.why
        assert answer.option is None or answer.option in question.letters
        for citation in answer.citations:
            quote = answer.evidence[citation.number - 1]
            assert quote.quote in quote.passage.text
        if solution.halt in (Halt.NO_EVIDENCE, Halt.REFUSED):
            assert answer.grounding is Grounding.ABSTAINED

    async def test_its_events_survive_the_log_and_the_frame_is_left_to_the_run(
        self, solver: Solver, question: Question
    ) -> None:
        run = Run()
        await solver.solve(question, run)
        assert [from_line(to_line(event)) for event in run.events] == run.events
        assert not [e for e in run.events if isinstance(e, Started | Answered)]

    async def test_what_it_spent_is_what_the_run_spent(
        self, solver: Solver, question: Question
    ) -> None:
        run = Run()
        solution = await solver.solve(question, run)
        assert solution.usage == run.usage

    @pytest.mark.parametrize("calls", [0, 1, 2, 5])
    async def test_calls_are_a_bound_that_ends_it_with_what_it_has(
        self, solver: Solver, question: Question, calls: int
    ) -> None:
        run = Run(budget=Budget(calls=calls))
        solution = await solver.solve(question, run)
        assert run.usage.calls <= calls
        if run.spent:
            assert solution.halt is Halt.BUDGET
            assert run.spent in solution.why

    @pytest.mark.parametrize("searches", [0, 1])
    async def test_searches_are_a_bound_that_ends_it_with_what_it_has(
        self, solver: Solver, question: Question, searches: int
    ) -> None:
        run = Run(budget=Budget(searches=searches))
        solution = await solver.solve(question, run)
        assert run.usage.searches <= searches
        assert not run.spent or solution.halt is Halt.BUDGET

    @pytest.mark.parametrize("after", [0, 2])
    async def test_a_cancelled_run_stops_at_its_next_event(
        self, solver: Solver, question: Question, after: int
    ) -> None:
        def stop_after(event: object) -> None:
            if len(run.events) > after:
                run.cancel()

        run = Run(sink=stop_after)
        try:
            await solver.solve(question, run)
        except RunCancelled:
            assert len(run.events) == after + 1
        else:
            assert len(run.events) <= after + 1

    async def test_a_run_leaves_the_solver_as_it_was(
        self, solver: Solver, question: Question
    ) -> None:
        before = repr(solver)
        await solver.solve(question, Run())
        assert repr(solver) == before


def _tokens_tile(text: str, tokens: Sequence[TokenScore]) -> None:
    """Every character is some token's, in order; tokens of one character share its span."""
    for token in tokens:
        assert 0 <= token.start < token.end <= len(text)
        assert token.text == text[token.start : token.end]
        assert isfinite(token.logprob)
        assert token.logprob <= 0
    assert [t.start for t in tokens] == sorted(t.start for t in tokens)
    assert {i for t in tokens for i in range(t.start, t.end)} == set(range(len(text)))
