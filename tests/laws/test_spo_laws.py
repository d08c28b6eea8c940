"""Laws of §4.2.3: what a positive and a negative plan may hold."""

import asyncio
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from osler.methods.omni.plan import SourcePlan, parse_source_plan, render_source_plan
from osler.sources.catalogue import SOURCES
from osler.types import Question
from osler_lab.evaluate.record import Gold, Sample
from osler_lab.train.spo.explore import SearchedQuery, TrainingCase
from osler_lab.train.spo.judge import (
    JudgedCase,
    QueryVerdict,
    better_half,
    by_list,
    by_set,
)
from osler_lab.train.spo.recipe import case_random, plan_pair

CASE = TrainingCase(Sample("t", "long", Question("q", "Why?"), Gold()))
NAMES = SOURCES[:4]


@st.composite
def judgements(draw: st.DrawFn) -> JudgedCase:
    queries = draw(
        st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 8)), unique=True, max_size=30)
    )
    said = st.sampled_from([True, False, None])
    verdicts = [QueryVerdict(source, f"query {n}", draw(said)) for source, n in queries]
    return JudgedCase(CASE, tuple(verdicts))


def held(judged: JudgedCase, way: bool, source: str) -> set[str]:
    return {v.wire for v in judged.verdicts if (v.source, v.positive) == (source, way)}


@given(judgements(), st.integers(0, 99), st.integers(1, 4))
def test_a_plan_holds_only_queries_judged_its_way_as_many_as_there_are_up_to_three(
    judged: JudgedCase, seed: int, most: int
) -> None:
    pair = plan_pair(judged, case_random(seed, "q"), sources=NAMES, at_most=most)
    for (way, plan), source in product(((True, pair.positive), (False, pair.negative)), NAMES):
        chosen = {query.wire for query in plan.of_source(source)}
        known = held(judged, way, source)
        assert chosen <= known
        assert len(chosen) == min(most, len(known))


@given(judgements(), st.integers(0, 99))
def test_no_query_stands_in_both_plans_and_a_pair_is_whole_when_both_have_queries(
    judged: JudgedCase, seed: int
) -> None:
    pair = plan_pair(judged, case_random(seed, "q"), sources=NAMES)
    assert not set(pair.positive.queries) & set(pair.negative.queries)
    said = {verdict.positive for verdict in judged.verdicts}
    assert pair.whole == ({True, False} <= said)


@given(judgements(), st.integers(0, 99))
def test_same_verdicts_and_same_seed_give_the_same_pair(judged: JudgedCase, seed: int) -> None:
    first, second = (plan_pair(judged, case_random(seed, "q"), sources=NAMES) for _ in range(2))
    assert first == second


@given(judgements(), st.integers(0, 9), st.sampled_from(NAMES))
def test_what_is_judged_of_a_source_that_is_left_out_changes_no_plan_s_sources(
    judged: JudgedCase, seed: int, out: str
) -> None:
    rest = tuple(name for name in NAMES if name != out)
    pair = plan_pair(judged, case_random(seed, "q"), sources=rest)
    assert {query.source for query in (*pair.positive.queries, *pair.negative.queries)} <= {*rest}


@given(judgements(), st.integers(0, 9))
def test_a_plan_reads_back_as_it_is_shown(judged: JudgedCase, seed: int) -> None:
    plan: SourcePlan = plan_pair(judged, case_random(seed, "q"), sources=NAMES).positive
    assert parse_source_plan(render_source_plan(plan, NAMES), sources=NAMES).plan == plan


found = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8)


@given(st.lists(found, max_size=10), st.sets(st.sampled_from("abcdefgh")))
def test_judging_documents_gives_what_judging_sets_gives_and_no_document_is_judged_twice(
    lists: list[list[str]], gold: set[str]
) -> None:
    """For a judge to whom a set supports what one of its documents supports."""
    queries = [SearchedQuery("book", str(n), tuple(ids)) for n, ids in enumerate(lists)]
    asked: list[str] = []

    async def decide(read: tuple[str, ...]) -> bool:
        return bool(gold & set(read))

    async def each(read: tuple[str, ...]) -> list[bool]:
        asked.extend(read)
        return [id in gold for id in read]

    sets, _ = asyncio.run(by_set(queries, decide))
    lists_say, _ = asyncio.run(by_list(queries, each, 3))
    assert lists_say == sets
    assert len(set(asked)) == len(asked)
    assert set(asked) <= {id for ids in lists for id in better_half(ids)}
