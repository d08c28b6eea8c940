"""A plan is searched at once, told in order, read by any reader, and kept in a file."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from osler.answer.written import WrittenComposer
from osler.errors import BadRun, SourceUnavailable
from osler.llm.core.base import Sampling
from osler.methods.omni.dossier import SavedPlan, parse_saved_plan, read_saved_plan, save_plan
from osler.methods.omni.plan import DroppedQuery, Query, SourcePlan
from osler.methods.omni.planners import Proposal, SourcePlanner
from osler.methods.omni.planners.single import GivenPlan
from osler.methods.omni.retriever import (
    PlannedRetriever,
    interleave_hits,
    missing_sources,
    order_results,
)
from osler.methods.omni.solver import OmniRag, Reader
from osler.retrieve import LookupResult
from osler.retrieve.pooled import PooledOrder
from osler.retrieve.relevance import OverlapRelevance
from osler.settings import OmniRagSettings, load
from osler.sources.catalogue import BOOK, GRAPH, GUIDELINE, WIKI
from osler.trace import (
    Budget,
    Noted,
    PassagesOrdered,
    Retrieved,
    Run,
    Searched,
    SourcesPlanned,
    list_read_passages,
)
from osler.types import Grounding, Halt, Hit, Passage, Question
from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever

QUESTION = Question("q", "Which drug is given first in anaphylaxis?")
CHOICE = replace(QUESTION, options=("adrenaline", "aspirin"))
SAID = "Adrenaline is given first in anaphylaxis. [1]"


def passage(
    source: str, n: int, text: str = "Adrenaline is given first in anaphylaxis."
) -> Passage:
    return Passage(f"{source}:d#{n}", text, source, "Anaphylaxis")


def hits(*passages: Passage) -> LookupResult:
    return LookupResult(tuple(Hit(p, 1 / n, n, "q", p.source) for n, p in enumerate(passages, 1)))


@dataclass
class Down:
    async def search(self, query: str, *, k: int) -> list[Hit]:
        raise SourceUnavailable("the disk is gone")


@dataclass
class Meeting:
    """Answers only when as many searches are under way as are wanted."""

    barrier: asyncio.Barrier

    async def search(self, query: str, *, k: int) -> list[Hit]:
        await asyncio.wait_for(self.barrier.wait(), 5)
        return list(hits(passage(BOOK, 0)).hits)


PLAN = SourcePlan((Query(BOOK, "b1"), Query(BOOK, "b2"), Query(WIKI, "w")))


async def test_all_queries_are_asked_at_once_and_told_in_the_order_of_the_plan() -> None:
    meeting, run = Meeting(asyncio.Barrier(3)), Run()
    found = await PlannedRetriever({BOOK: meeting, WIKI: meeting}).gather_results(PLAN, run)
    assert list(found) == list(PLAN.queries)
    told = [e.query for e in run.events if isinstance(e, Searched)]
    assert told == [e.query for e in run.events if isinstance(e, Retrieved)] == ["b1", "b2", "w"]
    assert run.usage.searches == 3


async def test_a_source_that_is_down_is_told_and_the_others_go_on() -> None:
    run, book = Run(), ScriptedRetriever({"": [passage(BOOK, 0)]})
    found = await PlannedRetriever({BOOK: book, WIKI: Down()}).gather_results(PLAN, run)
    assert [bool(result.hits) for result in found.values()] == [True, True, False]
    assert missing_sources(found) == ("wiki: the disk is gone",)
    failed = [event.failed for event in run.events if isinstance(event, Retrieved)]
    assert failed == [(), (), ("the disk is gone",)]


@dataclass
class DownOnce:
    """Down at the first search, up from then on."""

    searches: int = 0

    async def search(self, query: str, *, k: int) -> list[Hit]:
        self.searches += 1
        if self.searches == 1:
            raise SourceUnavailable("the disk is busy")
        return list(hits(passage(BOOK, 0)).hits)


async def test_a_search_that_failed_is_tried_again_and_one_that_was_answered_is_not() -> None:
    book = DownOnce()
    searched, plan = PlannedRetriever({BOOK: book}), SourcePlan((Query(BOOK, "b"),))
    first = await searched.gather_results(plan, Run())
    assert [result.failed for result in first.values()] == ["the disk is busy"]
    second = await searched.gather_results(plan, Run(), known=first)
    assert [len(result.hits) for result in second.values()] == [1]
    assert await searched.gather_results(plan, Run(), known=second) == second
    assert book.searches == 2


async def test_a_source_that_is_not_there_is_as_one_that_is_down() -> None:
    found = await PlannedRetriever({}).gather_results(SourcePlan((Query(BOOK, "b"),)), Run())
    assert missing_sources(found) == ("book: there is no source book (there are: none)",)


async def test_queries_beyond_the_budget_are_left_out_and_noted() -> None:
    run = Run(budget=Budget(searches=2))
    book = ScriptedRetriever({"": [passage(BOOK, 0)]})
    found = await PlannedRetriever({BOOK: book, WIKI: book}).gather_results(PLAN, run)
    assert [query.text for query in found] == ["b1", "b2"]
    assert "1 of 3 queries were not asked" in next(
        event.text for event in run.events if isinstance(event, Noted)
    )


async def test_the_graph_gives_a_definition_and_ten_relations() -> None:
    graph = ScriptedRetriever({"": [passage(GRAPH, n) for n in range(20)]})
    plan = SourcePlan((Query(GRAPH, "dose", "adrenaline, racemic"),))
    found = await PlannedRetriever({GRAPH: graph}).gather_results(plan, Run())
    assert graph.asked == ["adrenaline, racemic , dose"]
    assert len(next(iter(found.values())).hits) == 11


async def test_the_preset_reads_all_that_three_queries_of_a_source_find(tmp_path: Path) -> None:
    preset = load({}, cwd=tmp_path, env={}, preset="omni-rag").settings.strategy
    assert isinstance(preset, OmniRagSettings)
    found = {
        Query(GRAPH, "dose", f"drug {term}"): hits(
            *[passage(GRAPH, 20 * term + n) for n in range(11)]
        )
        for term in range(3)
    }
    read = await order_results(QUESTION.text, found, preset.per_source, None)
    assert len(read) == 3 * (1 + 10), "three definitions, each with ten relations"


ORDER = PooledOrder(OverlapRelevance())
ELSEWHERE = (
    passage(BOOK, 0, "Iron is a metal."),
    passage(GUIDELINE, 0, "Tea is a drink."),
    passage(WIKI, 0, "Which drug is a drug?"),
    passage(WIKI, 1),
)


async def read_passages(order: PooledOrder | None) -> list[str]:
    """The documents that the reader is shown, of three sources of which the last one answers."""
    sources = {
        name: ScriptedRetriever({"": [one for one in ELSEWHERE if one.source == name]})
        for name in (BOOK, GUIDELINE, WIKI)
    }
    plan = SourcePlan(tuple(Query(name, QUESTION.text) for name in sources))
    model = ScriptedModel([SAID])
    solver = replace(omni(model, Fixed(Proposal(plan)), **sources), order=order)
    run = Run()
    await solver.solve(QUESTION, run)
    asked = model.seen[0][-1].content
    read = sorted((one.text for one in ELSEWHERE), key=asked.index)
    told = [event.passages for event in run.events if isinstance(event, PassagesOrdered)]
    texts = {one.id: one.text for one in ELSEWHERE}
    assert [texts[id] for ids in told for id in ids] == read
    return read


async def test_the_passage_that_answers_is_read_first_whichever_source_found_it() -> None:
    answers = "Adrenaline is given first in anaphylaxis."
    assert (await read_passages(ORDER))[0] == answers
    assert (await read_passages(None))[-1] == answers


async def test_one_order_reads_the_best_even_where_one_source_has_them_all() -> None:
    """Two sources, two passages each: all four that are read may be of the one that answers."""
    answers = [passage(WIKI, n) for n in range(4)]
    others = [passage(BOOK, n, "Iron is a metal.") for n in range(4)]
    found = {
        Query(BOOK, "b"): hits(*others),
        Query(WIKI, "w"): hits(*answers),
        Query(GUIDELINE, "g"): LookupResult((), "down"),
    }
    read = await order_results(QUESTION.text, found, 2, ORDER)
    assert [hit.passage.source for hit in read] == [WIKI] * 4


@pytest.mark.parametrize("order", [None, ORDER])
async def test_what_was_read_is_told_apart_from_what_was_found(order: PooledOrder | None) -> None:
    sources = {
        name: ScriptedRetriever({"": [passage(name, n) for n in range(4)]})
        for name in (BOOK, GUIDELINE, WIKI)
    }
    plan = SourcePlan(tuple(Query(name, QUESTION.text) for name in sources))
    solver = omni(ScriptedModel([SAID]), Fixed(Proposal(plan)), **sources)
    run = Run()
    await replace(solver, per_source=2, order=order).solve(QUESTION, run)
    found = [hit.passage for one in run.events if isinstance(one, Retrieved) for hit in one.hits]
    assert (len(found), len(list_read_passages(run.events))) == (12, 6)


async def test_what_one_query_alone_has_found_keeps_its_order() -> None:
    """Its retriever has read more than words: there is nothing to merge."""
    first, second = passage(BOOK, 0, "Iron is a metal."), passage(BOOK, 1)
    found = {Query(BOOK, "b"): hits(first, second), Query(WIKI, "w"): LookupResult((), "")}
    read = await order_results(QUESTION.text, found, 2, ORDER)
    assert [hit.passage.id for hit in read] == [first.id, second.id]


def test_evidence_takes_turns_and_keeps_to_the_budget_of_each_source() -> None:
    b = [passage(BOOK, n) for n in range(4)]
    w = [passage(WIKI, n) for n in range(3)]
    found = {
        Query(BOOK, "b1"): hits(b[0], b[1], b[2]),
        Query(BOOK, "b2"): hits(b[1], b[3]),
        Query(WIKI, "w"): hits(*w),
    }
    ids = [hit.passage.id for hit in interleave_hits(found, 3)]
    assert ids == ["book:d#0", "book:d#1", "wiki:d#0", "book:d#3", "wiki:d#1", "wiki:d#2"]
    assert [hit.passage.id for hit in interleave_hits(found, 1)] == ["book:d#0", "wiki:d#0"]


@dataclass(frozen=True)
class Fixed:
    proposal: Proposal

    async def plan(self, question: Question, run: Run) -> Proposal:
        return self.proposal


def omni(model: ScriptedModel, planner: SourcePlanner, **sources: object) -> OmniRag:
    held = {name: found for name, found in sources.items() if found is not None}
    reader = Reader(model, WrittenComposer(), Sampling())
    return OmniRag(planner, PlannedRetriever(held), reader)  # type: ignore[arg-type]


def book() -> ScriptedRetriever:
    return ScriptedRetriever({"": [passage(BOOK, 0)]})


async def test_the_answer_rests_on_what_the_plan_found_and_what_was_dropped_is_told() -> None:
    run, model = Run(), ScriptedModel([SAID])
    proposal = Proposal(
        SourcePlan((Query(BOOK, "b"),)), dropped=(DroppedQuery(BOOK, "x", "no query"),)
    )
    solution = await omni(model, Fixed(proposal), book=book()).solve(QUESTION, run)
    assert solution.halt is Halt.CONVERGED
    assert solution.answer.grounding is Grounding.GROUNDED
    assert solution.why == "read 1 passages from book"
    (planned,) = [event for event in run.events if isinstance(event, SourcesPlanned)]
    assert planned.dropped == ("book: 'x' (no query)",)
    asked = model.seen[0][-1].content
    assert "using the # Retrieved Documents" in asked
    assert "[1] (book) Anaphylaxis: Adrenaline" in asked
    assert "only one option" not in asked


async def test_options_are_asked_for_where_there_are_some() -> None:
    model = ScriptedModel([f"{SAID} <answer>A</answer>"])
    solver = omni(model, Fixed(Proposal(SourcePlan((Query(BOOK, "b"),)))), book=book())
    solution = await solver.solve(CHOICE, Run())
    assert solution.answer.option == "A"
    assert "<answer>A/B/C/…</answer> (only one option can be chosen)" in model.seen[0][-1].content


async def test_an_option_that_cannot_be_read_is_asked_for_once_more_and_the_draft_stays() -> None:
    model = ScriptedModel([SAID, "Sure: the answer is (A)."])
    solver = omni(model, Fixed(Proposal(SourcePlan((Query(BOOK, "b"),)))), book=book())
    solution = await solver.solve(CHOICE, Run())
    model.finish()
    assert solution.answer.option == "A"
    assert solution.answer.evidence
    assert [message.role for message in model.seen[1]] == ["user", "assistant", "user"]


async def test_an_option_that_stays_unread_is_asked_for_no_third_time() -> None:
    model = ScriptedModel([SAID, "I stand by it."])
    solver = omni(model, Fixed(Proposal(SourcePlan((Query(BOOK, "b"),)))), book=book())
    solution = await solver.solve(CHOICE, Run())
    model.finish()
    assert solution.answer.option is None


async def test_the_answer_says_which_source_was_missing() -> None:
    plan = SourcePlan((Query(BOOK, "b"), Query(WIKI, "w")))
    solver = omni(ScriptedModel([SAID]), Fixed(Proposal(plan)), book=book(), wiki=Down())
    solution = await solver.solve(QUESTION, Run())
    assert solution.answer.statements
    assert solution.answer.note.endswith("Not searched: wiki: the disk is gone.")
    chinese = omni(ScriptedModel([]), Fixed(Proposal(plan)), book=Down(), wiki=Down())
    assert solution.why == "read 1 passages from book; down: wiki"
    silent = await chinese.solve(Question("z", "首选什么药物？", language="zh"), Run())
    assert silent.halt is Halt.NO_EVIDENCE
    assert "未能检索：book: the disk is gone; wiki" in silent.answer.note
    assert "a source was down" in silent.why


async def test_a_plan_of_nothing_is_read_without_documents_and_is_never_grounded() -> None:
    model = ScriptedModel(["Adrenaline."])
    solution = await omni(model, Fixed(Proposal(SourcePlan()))).solve(QUESTION, Run())
    assert "Retrieved Documents" not in model.seen[0][-1].content
    assert solution.answer.grounding is Grounding.UNGROUNDED
    assert solution.why == "no source needed"


async def test_where_nothing_is_found_nobody_is_asked() -> None:
    empty = omni(ScriptedModel([]), Fixed(Proposal(PLAN)), book=ScriptedRetriever({}), wiki=None)
    solution = await empty.solve(QUESTION, Run())
    assert solution.halt is Halt.NO_EVIDENCE


async def test_a_budget_without_room_for_a_search_never_reads_without_documents() -> None:
    solver = omni(ScriptedModel([]), Fixed(Proposal(PLAN)), book=book(), wiki=book())
    run = Run(budget=Budget(searches=1))
    run.spend(replace(run.usage, searches=1))
    solution = await solver.solve(QUESTION, run)
    assert solution.halt is Halt.BUDGET
    assert not solution.answer.statements


def stored() -> SavedPlan:
    found = {Query(BOOK, "b1"): hits(passage(BOOK, 0)), Query(WIKI, "w"): LookupResult((), "down")}
    return save_plan(
        PLAN, (BOOK, WIKI, "notes"), found, question=QUESTION, planner="prompting, m", snapshot="s"
    )


async def test_a_plan_and_its_documents_are_stored_once_and_read_by_several_readers(
    tmp_path: Path,
) -> None:
    file = tmp_path / "plan.json"
    file.write_text(stored().document, encoding="utf-8")
    again = read_saved_plan(file)
    assert again == stored()
    assert again.plan_reading.plan == PLAN
    for reply in (SAID, "Adrenaline, I think."):
        finder = ScriptedRetriever({})
        solver = omni(ScriptedModel([reply]), GivenPlan(again), book=finder)
        solution = await solver.solve(QUESTION, Run())
        assert solution.answer.statements
        assert finder.asked == ["b2"]  # the others are in the file
        assert "Not searched: wiki: there is no source wiki" in solution.answer.note


def test_an_edited_plan_keeps_what_it_still_asks() -> None:
    edited = replace(stored(), plan="<book> b1 ; new </book>")
    assert [query.text for query in edited.plan_reading.plan.queries] == ["b1", "new"]
    assert [query.text for query in edited.results_by_query] == ["b1"]


def test_a_plan_without_a_source_neither_asks_nor_reads_it() -> None:
    left = stored().without_source(BOOK)
    assert {query.source for query in left.plan_reading.plan.queries} == {WIKI}
    assert {each.source for each in left.results} == {WIKI}
    assert left.sources == (WIKI, "notes")


def test_a_plan_written_by_hand_may_ask_more_and_sources_of_one_s_own(tmp_path: Path) -> None:
    file = tmp_path / "plan.txt"
    file.write_text("<book> a ; b ; c ; d ; … </book>\n<my notes> e </my notes>", encoding="utf-8")
    made = read_saved_plan(file)
    assert [query.wire for query in made.plan_reading.plan.queries] == ["a", "b", "c", "d", "e"]
    assert made.sources == (BOOK, "my notes")
    assert made.dropped == ("book: '…' (no query)",)


@pytest.mark.parametrize("text", ["", "ask a book", '{"plan": 3}', "{"])
def test_a_file_without_a_plan_is_refused_with_what_one_looks_like(
    text: str, tmp_path: Path
) -> None:
    file = tmp_path / "plan"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(BadRun, match="osler plan"):
        read_saved_plan(file)
    with pytest.raises(BadRun, match="cannot be read"):
        read_saved_plan(tmp_path / "absent")


def test_an_empty_tag_is_a_plan() -> None:
    assert parse_saved_plan("<book></book>").plan_reading.plan == SourcePlan()
    assert parse_saved_plan(f"<{GUIDELINE}> x </{GUIDELINE}>").sources == (GUIDELINE,)
