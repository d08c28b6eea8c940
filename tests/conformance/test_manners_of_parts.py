"""What asks a model apart from answering meets the manners too: extraction, SPO data, and the
judges of answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from manner_table import MANNERS
from mannered_runs import IRON, QUESTION, TEA, connect_mannered, run_mannered
from manners import Manners

from osler.answer.confirming import StatementChecker
from osler.answer.picking import QuotePicker
from osler.answer.sentences import QuoteCandidate
from osler.build.models import LoadedModel
from osler.extract.items import Entity, EntityRelation, KnowledgePoint, Unit
from osler.extract.model import ModelExtractor
from osler.llm.core.ask import Speaker
from osler.methods.omni.planners import SourceDescription
from osler.trace import Run
from osler.types import Authorship, Grounding, Hit
from osler_lab.evaluate.judges import Judge
from osler_lab.evaluate.record import Gold, Sample
from osler_lab.train.spo.explore import ExpertExplorer, ExploredCase, SearchedQuery, TrainingCase
from osler_lab.train.spo.judge import LLMJudge
from osler_lab.train.spo.judge import Unit as JudgedUnit

SAID = "Oral iron treats iron deficiency anaemia."


async def extract_items(ready: LoadedModel) -> None:
    wanted: tuple[Unit, ...] = ("entities", "relations", "points", "summary")
    extractor = ModelExtractor(ready.model, wanted=wanted, constrains=ready.constrains)
    (outcome,) = await extractor.extract([IRON])
    assert not outcome.failed, outcome.failed
    found = outcome.found.items
    assert {one.name for one in found if isinstance(one, Entity)} == {
        "Oral iron",
        "iron deficiency anaemia",
    }
    assert [one.object for one in found if isinstance(one, EntityRelation)] == [
        "iron deficiency anaemia"
    ]
    assert [one.content for one in found if isinstance(one, KnowledgePoint)] == [SAID]


async def explore_queries(ready: LoadedModel) -> None:
    speaker = Speaker(ready.model, "planner", constrains=ready.constrains)
    offers = (SourceDescription("book"), SourceDescription("wiki"))
    queries = await ExpertExplorer(speaker).queries(QUESTION, offers, Run())
    assert {query.source for query in queries} == {"book", "wiki"}
    assert {query.wire for query in queries} == {"iron deficiency anaemia treatment"}


def explored() -> ExploredCase:
    case = TrainingCase(Sample("own", "short", QUESTION, Gold((), ("oral iron",))))
    queries = (
        SearchedQuery("book", "iron treatment", (IRON.id, TEA.id)),
        SearchedQuery("book", "tea", (TEA.id,)),
    )
    return ExploredCase(case, queries, {one.id: f"{one.title}: {one.text}" for one in (IRON, TEA)})


async def judge_queries(ready: LoadedModel) -> None:
    units: tuple[JudgedUnit, ...] = ("set", "list")
    for unit in units:
        judge = LLMJudge(Speaker(ready.model, "judge", constrains=ready.constrains), unit)
        verdicts, _ = await judge.judge(explored(), Run())
        assert [one.positive for one in verdicts] == [True, False], unit


async def judge_answers(ready: LoadedModel) -> None:
    judge = Judge(ready.model, ready.constrains)
    for said, mark in ((SAID, 5), ("Leeches.", 1)):
        marks = await judge.give_marks(QUESTION, SAID, said, [IRON.text], Run())
        assert marks is not None
        assert set(marks.values()) == {mark}
        assert await judge.is_right(QUESTION, ["oral iron"], said, Run()) is (mark == 5)


async def pick_quotes(ready: LoadedModel) -> None:
    picker = QuotePicker(Speaker(ready.model, "reader", constrains=ready.constrains))
    tea, iron = (
        QuoteCandidate(Hit(one, 1.0, 1, "q", "book"), 0, len(text), 0.5)
        for one, text in ((TEA, TEA.text), (IRON, SAID))
    )
    assert await picker.pick_quotes(QUESTION, [tea, iron], Run()) == [iron]
    assert await picker.pick_quotes(QUESTION, [tea], Run()) == []


async def confirm_statements(ready: LoadedModel) -> None:
    checker = StatementChecker(Speaker(ready.model, "reader", constrains=ready.constrains))
    told = [TEA.text, IRON.text]
    said = [SAID, "Leeches treat iron deficiency anaemia."]
    assert await checker.find_bearing(QUESTION, said, told, Run()) == [[1], []]
    assert await checker.find_bearing(QUESTION, said[:1], told[:1], Run()) == [[]]


PARTS = {
    "statements": (confirm_statements, 2),
    "quotes": (pick_quotes, 2),
    "extraction": (extract_items, 4),
    "SPO queries": (explore_queries, 1),
    "SPO verdicts": (judge_queries, 3),
    "judges of answers": (judge_answers, 4),
}


@pytest.mark.parametrize("manner", MANNERS)
@pytest.mark.parametrize("part", PARTS)
async def test_what_is_asked_for_is_read_in_any_manner(part: str, manner: str) -> None:
    check, calls = PARTS[part]
    async with connect_mannered(MANNERS[manner]) as (ready, place):
        before = len(place.bodies_of("/v1/chat/completions"))
        await check(ready)
        asked = len(place.bodies_of("/v1/chat/completions")) - before
    assert asked <= max(1.3 * calls, calls + 1)


async def test_a_judge_that_is_cut_while_thinking_is_unread_and_never_a_guess() -> None:
    async with connect_mannered(Manners(thinking="text", thought_tokens=9000)) as (ready, _):
        judge = Judge(ready.model, ready.constrains)
        assert await judge.give_marks(QUESTION, SAID, SAID, [IRON.text], Run()) is None
        verdicts, _ = await LLMJudge(Speaker(ready.model, "judge")).judge(explored(), Run())
        assert [one.positive for one in verdicts] == [None, None]


@pytest.mark.parametrize(
    "strategy", ["auto", "rag", "tc-rag", "kag-thinker", "omni-rag", "unified"]
)
async def test_a_model_that_may_not_write_picks_the_quotes_of_every_method(
    strategy: str, tmp_path: Path
) -> None:
    done = await run_mannered(
        {"kind": strategy},
        Manners(),
        tmp_path,
        model={"writes": "no"},
        answer={"judge": "model"},
    )
    answer = done.solution.answer
    assert [one.text for one in answer.statements] == [IRON.text]
    assert "chose which sentences answer" in answer.note
    assert answer.grounding is Grounding.GROUNDED


@pytest.mark.parametrize(
    "strategy", ["auto", "rag", "tc-rag", "kag-thinker", "omni-rag", "unified"]
)
async def test_a_model_that_writes_confirms_the_statements_of_every_method(
    strategy: str, tmp_path: Path
) -> None:
    done = await run_mannered({"kind": strategy}, Manners(), tmp_path, answer={"confirm": "model"})
    answer = done.solution.answer
    assert answer.authorship is Authorship.WRITTEN
    assert "read whether the cited passages bear each statement out" in answer.note
    assert all(one.cites for one in answer.statements if SAID in one.text)
    assert {one.passage.text for one in answer.evidence} == {IRON.text}
