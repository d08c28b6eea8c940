"""Judges: by gold documents, by a model in words, by reader and reranker."""

import asyncio
from collections.abc import Sequence

import pytest

from osler.answer.written import WrittenComposer
from osler.llm.core.ask import Speaker
from osler.llm.core.base import Sampling
from osler.llm.reading.verdicts import numbers_grammar
from osler.methods.omni.solver import Reader
from osler.trace import Run
from osler.types import Question
from osler_lab.evaluate.record import Gold, Sample
from osler_lab.testing.scripted import KeyedModel, ScriptedModel
from osler_lab.train.spo.explore import ExploredCase, SearchedQuery, TrainingCase
from osler_lab.train.spo.judge import (
    GoldDocuments,
    GoldMissing,
    JudgingSignal,
    LLMJudge,
    QueryVerdict,
    ReaderGain,
    RerankSignal,
    better_half,
    by_list,
    by_set,
    judge_case,
    most_calls,
)

QUESTION = Question("q", "Which drug is given first?", ("adrenaline", "aspirin"))
CASE = TrainingCase(Sample("t", "choice", QUESTION, Gold(("A",))), ("d1",))


def explored(*found: Sequence[str], case: TrainingCase = CASE) -> ExploredCase:
    """Queries of book; passages are named as "d1#0", and say their name."""
    queries = tuple(
        SearchedQuery("book", f"query {n}", tuple(f"book:{id}" for id in ids))
        for n, ids in enumerate(found)
    )
    passages = {id: f"text of {id}" for query in queries for id in query.found}
    return ExploredCase(case, queries, passages)


def said(signal: JudgingSignal, over: ExploredCase) -> list[bool | None]:
    return [verdict.positive for verdict in asyncio.run(judge_case(signal, over)).verdicts]


def speaker(model: ScriptedModel | KeyedModel) -> Speaker:
    return Speaker(model, "judge", Sampling(0.0, top=0))


def test_the_better_half_is_read_rounded_up() -> None:
    assert [better_half("abcd"), better_half("abc"), better_half("a"), better_half("")] == [
        ("a", "b"), ("a", "b"), ("a",), ()
    ]  # fmt: skip


def test_a_gold_document_in_the_better_half_makes_a_query_positive() -> None:
    over = explored(["d1#0", "d2#0"], ["d2#0", "d1#3"], [])
    verdicts = asyncio.run(judge_case(GoldDocuments(), over)).verdicts
    assert [verdict.positive for verdict in verdicts] == [True, False, False]


def test_without_gold_documents_there_is_no_such_verdict() -> None:
    over = explored(["d1#0"], case=TrainingCase(CASE.sample))
    with pytest.raises(GoldMissing, match="t/q names no gold documents"):
        asyncio.run(judge_case(GoldDocuments(), over))


def test_those_documents_come_first_that_decide_most() -> None:
    """d2 was found by three queries: it is judged first, and being positive decides them; then
    d3, which only the last query found, is all that is left."""
    over = explored(["d1#0", "d2#0", "x#0", "x#1"], ["d2#0", "y#0"], ["d2#0"], ["d3#0"]).queries
    asked: list[str] = []

    async def decide(read: tuple[str, ...]) -> list[bool]:
        asked.extend(read)
        return [id == "book:d2#0" for id in read]

    said, count = asyncio.run(by_list(over, decide, 1))
    assert said == [True, True, True, False]
    assert (asked, count) == (["book:d2#0", "book:d3#0"], 2)


def test_a_model_judges_a_set_once_however_its_documents_stand() -> None:
    over = explored(["a#0", "b#0", "x#0", "x#1"], ["b#0", "a#0", "y#0"], ["c#0"], [])
    model = ScriptedModel(["Both say so. <answer>yes</answer>", "<answer>no</answer>"])
    signal = LLMJudge(speaker(model), "set")
    assert said(signal, over) == [True, True, False, False]
    assert "text of book:a#0\n\ntext of book:b#0\n\nHint" in model.seen[0][-1].content
    model.finish()


def test_a_judge_that_cannot_be_read_says_neither() -> None:
    replies = ["perhaps"] * 3
    assert said(LLMJudge(speaker(ScriptedModel(replies)), "set"), explored(["a#0"])) == [None]


def test_a_document_that_cannot_be_read_does_not_hide_one_that_supports() -> None:
    over = explored(["a#0", "b#0", "x#0", "y#0"]).queries

    async def decide(read: tuple[str, ...]) -> list[bool | None]:
        return [True if id == "book:b#0" else None for id in read]

    assert asyncio.run(by_list(over, decide, 1)) == ([True], 2)


def test_all_prompts_of_a_case_begin_alike() -> None:
    """Up to the documents, so that a prefix cache reads question and gold answer once."""
    model = ScriptedModel(["<answer>no</answer>"] * 2)
    said(LLMJudge(speaker(model), "set"), explored(["a#0"], ["b#0"]))
    first, second = (messages[-1].content for messages in model.seen)
    head = first.index("text of")
    assert first[:head] == second[:head]
    assert "A. adrenaline\n\n# Documents" in first[:head]


def test_without_a_gold_answer_no_model_is_asked() -> None:
    case = TrainingCase(Sample("t", "long", Question("q", "Why?"), Gold()))
    with pytest.raises(GoldMissing, match="t/q has no gold answer"):
        said(LLMJudge(speaker(ScriptedModel([]))), explored(["a#0"], case=case))


class Scores:
    """Relevance by what a text says of itself."""

    def __init__(self, **scores: float) -> None:
        self.scores, self.asked = scores, list[tuple[str, int]]()

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        self.asked.append((query, len(texts)))
        return tuple(self.scores.get(text.rpartition(":")[2].split("#")[0], 0.0) for text in texts)


def test_rafe_asks_for_a_rerank_score_over_the_threshold() -> None:
    scores = Scores(a=2.4, b=2.3)
    over = explored(["a#0", "x#0"], ["b#0"], ["a#0"], [])
    verdicts = asyncio.run(judge_case(RerankSignal(scores, "m"), over)).verdicts
    assert [v.positive for v in verdicts] == [True, False, True, False]
    assert scores.asked == [("Which drug is given first?\nA. adrenaline\nB. aspirin", 2)]


def test_trainable_asks_whether_the_reader_gets_better() -> None:
    """Alone the reader says B, which is wrong; with d1 A; with d2 nothing better."""
    model = KeyedModel(
        {
            "text of book:d1#0": ["The first. [1] <answer>A</answer>"],
            "text of book:d2#0": ["The second. [1] <answer>B</answer>"],
            "Which drug": ["I think it is B. <answer>B</answer>"],
        }
    )
    reader = Reader(model, WrittenComposer(), Sampling(0.0, top=0))
    verdicts = asyncio.run(
        judge_case(ReaderGain(reader), explored(["d1#0"], ["d2#0"], ["d1#0"], []))
    )
    assert [v.positive for v in verdicts.verdicts] == [True, False, True, False]
    assert verdicts.asked == 3


def test_both_units_agree_where_a_set_supports_exactly_if_one_of_its_documents_does() -> None:
    over = explored(["a#0", "b#0", "x#0"], ["b#0"], ["g#0", "b#0", "x#0"], ["g#0"], []).queries

    async def decide(read: tuple[str, ...]) -> bool:
        return "book:g#0" in read

    async def decide_each(read: tuple[str, ...]) -> list[bool]:
        return [id == "book:g#0" for id in read]

    sets, by_sets = asyncio.run(by_set(over, decide))
    lists, by_lists = asyncio.run(by_list(over, decide_each))
    assert sets == lists == [False, False, True, True, False]
    assert (by_sets, by_lists) == (4, 1)


def test_at_most_every_set_is_judged_once_or_every_ten_documents() -> None:
    over = explored(["a#0", "x#0"], ["a#0", "x#0"], ["b#0"], [])
    assert (most_calls(over, "set"), most_calls(over, "list")) == (2, 1)
    wide = explored(*([f"d{n}#0"] for n in range(11)))
    assert (most_calls(wide, "set"), most_calls(wide, "list")) == (11, 2)


def test_a_judge_has_a_run_of_its_own() -> None:
    run = Run()
    found, asked = asyncio.run(GoldDocuments().judge(explored(["d1#0"]), run))
    assert (found, asked) == ([QueryVerdict("book", "query 0", True)], 1)


def test_a_list_of_documents_is_judged_at_once_and_each_by_itself() -> None:
    """Three queries found b: it stands first; x and y lie in the latter halves."""
    over = explored(["a#0", "b#0", "x#0", "y#0"], ["b#0"], ["c#0", "b#0", "x#0"], [])
    model = ScriptedModel(["The second says so. <answer>2</answer>"])
    assert said(LLMJudge(speaker(model)), over) == [True, False, False, False]
    prompt = model.seen[0][-1].content
    assert "[1] text of book:b#0\n\n[2] text of book:a#0\n\n[3] text of book:c#0\n\nHint" in prompt


def test_a_list_that_cannot_be_read_says_neither() -> None:
    model = ScriptedModel(["<answer>4</answer>"] * 3)
    assert said(LLMJudge(speaker(model)), explored(["a#0"], ["b#0"])) == [None, None]


def test_lists_end_when_every_query_is_decided() -> None:
    over = explored(*(["s#0", f"d{n}#0"] for n in range(30))).queries
    shown: list[tuple[str, ...]] = []

    async def decide(read: tuple[str, ...]) -> list[bool]:
        shown.append(read)
        return [id == "book:s#0" for id in read]

    found, asked = asyncio.run(by_list(over, decide))
    assert (set(found), asked, len(shown[0])) == ({True}, 1, 1)  # of two, one is the better half


def test_the_grammar_allows_what_is_read() -> None:
    held = numbers_grammar(3, 100)
    for reply in ("<answer>1, 3</answer>", "<answer>none</answer>", "Why.\n<answer>2</answer>"):
        assert held.accepts_prefix(reply)
    assert not held.accepts_prefix("<answer>4")


EXPLORED = explored(["d1#0", "d2#0"], ["d1#0"])
MANNERS = {
    "fenced": "```\n<answer>1</answer>\n```",
    "bold": "**Answer:** 1",
    "closing words": "<answer>1</answer>\n\nLet me know if I can help further!",
    "JSON": 'Here: {"answer": [1]}',
}


@pytest.mark.parametrize("manner", MANNERS)
async def test_a_judge_by_lists_is_read_in_one_call_in_every_manner(manner: str) -> None:
    model = KeyedModel({"": [MANNERS[manner]]})
    judged = await judge_case(LLMJudge(Speaker(model, "judge")), EXPLORED)
    assert {verdict.positive for verdict in judged.verdicts} >= {True}
    assert None not in {verdict.positive for verdict in judged.verdicts}
    assert (judged.usage.calls, judged.unread) == (judged.asked, ())


async def test_a_verdict_that_cannot_be_read_is_asked_again_once_and_told_with_the_reply() -> None:
    model = KeyedModel({"": ["It depends."]})
    judged = await judge_case(LLMJudge(Speaker(model, "judge")), EXPLORED)
    assert judged.usage.calls == 2 * judged.asked
    assert all("got 'It depends.'" in unread for unread in judged.unread)
    assert len(judged.unread) == judged.asked
