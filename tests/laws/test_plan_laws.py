"""Laws of Omni-RAG's source plan and its wire form."""

import os
import random

from derivations import grammar_texts
from hypothesis import example, given
from hypothesis import strategies as st

from osler.llm.core.ask import Speaker
from osler.methods.omni.plan import (
    MOST,
    Query,
    SourcePlan,
    parse_source_plan,
    render_source_plan,
    source_plan_grammar,
)
from osler.methods.omni.planners import SourceDescription
from osler.methods.omni.planners.feedback import BEST, DocumentJudge
from osler.methods.omni.planners.single import (
    OriginalQuestion,
    Prompting,
    Proposer,
    Query2Doc,
    TermExtractor,
)
from osler.sources.catalogue import GRAPH, SOURCES
from osler.trace import Asked, Run, from_line, to_line
from osler.types import Question
from osler_lab.testing.scripted import KeyedModel

HOSTILE = st.sampled_from(
    [
        *("{search_query0}", "search_query1: x", "medical_term0", "(Use ; to separate", "</graph>"),
        *("<book>", "< BOOK >", "＜wiki＞", "a , , b", "Diabetes Mellitus, Type 2", "1,2-x", " , "),
        *("；", "，", "none", "N/A", "无", "…", "- a", "1. a", "search_{query0", "<bo\u200bok>"),
        *("p < 0.05 > q", "<search_query0book>", "x" * 295 + " medical_term12y", "\ud800", "a\nb"),
    ]
)
TEXT = st.lists(st.one_of(st.text(max_size=8), HOSTILE), max_size=4).map("".join)


@st.composite
def queries(draw: st.DrawFn) -> Query | None:
    """A query made from any text, where something is left of it."""
    source = draw(st.sampled_from(SOURCES))
    try:
        return Query.of(source, draw(TEXT), draw(TEXT) if source == GRAPH else "")
    except ValueError:
        return None


PLANS = st.lists(queries(), max_size=8).map(lambda qs: SourcePlan.of(q for q in qs if q))


@given(PLANS)
@example(SourcePlan((Query("book", "(Use , to separate)"),)))
def test_what_is_written_is_read_back_whole(plan: SourcePlan) -> None:
    reading = parse_source_plan(render_source_plan(plan), at_most=8)
    assert reading.plan == plan
    assert not reading.dropped
    assert not reading.missing


@given(PLANS)
def test_every_tag_is_written_once_in_the_order_of_the_sources(plan: SourcePlan) -> None:
    text = render_source_plan(plan)
    places = [text.index(mark) for source in SOURCES for mark in (f"<{source}>", f"</{source}>")]
    assert places == sorted(places)


REPLIES = st.lists(
    st.one_of(
        st.text(max_size=20),
        HOSTILE,
        st.sampled_from([m for s in SOURCES for m in (f"<{s}>", f"</{s}>", f"<{s.upper()} >")]),
        st.just(" ; "),
    ),
    max_size=30,
).map("".join)


@given(REPLIES)
def test_no_reply_breaks_the_reader_and_no_source_gets_more_than_three(reply: str) -> None:
    reading = parse_source_plan(reply)
    for source in SOURCES:
        assert len(reading.plan.of_source(source)) <= MOST
    assert parse_source_plan(render_source_plan(reading.plan)).plan == reading.plan


@given(grammar_texts(source_plan_grammar(longest=12)))
def test_what_the_grammar_lets_through_is_read_with_every_tag(reply: str) -> None:
    reading = parse_source_plan(reply)
    assert not reading.missing
    assert {dropped.why for dropped in reading.dropped} <= {"no query", "said before"}


@given(PLANS)
def test_reading_one_source_s_tags_leaves_the_others_out(plan: SourcePlan) -> None:
    reading = parse_source_plan(render_source_plan(plan), sources=[GRAPH], at_most=8)
    assert reading.plan.queries == plan.of_source(GRAPH)


REPLIES_TRIED = int(os.environ.get("OSLER_REPLIES", "150"))
"""Random replies that a planner is given; 10,000 where there is time."""
PIECES = [
    *(f"<{source}>" for source in SOURCES),
    *(f"</{source}>" for source in SOURCES),
    *("<graph", "< BOOK >", "＜wiki＞", "<notes>", "</notes>", "<book/>", "<plan>", "</"),
    *(" ; ", ";", "；", " , ", "，", "\n", "\n\n", " ", "{", "}"),
    *("{search_query0}", "medical_term1", "(Use ; to separate the queries, 0 to 3 queries)"),
    *("Diabetes Mellitus, Type 2", "1,25-dihydroxyvitamin D", "p < 0.05", "高血压", "none", "\0"),
    *("warfarin dose", "INR", "\ud800", "\u202e", "x" * 400, "<passage>", "<term>", "</term>"),
    *("<score>", "3", "9", "</score>", "<suggestion>", "</suggestion>", "Score: 4"),
]


async def test_no_random_reply_breaks_a_planner_and_no_source_gets_more_than_three() -> None:
    chance = random.Random(20261121)
    offers = (*map(SourceDescription, SOURCES), SourceDescription("notes", ("Ward rules",)))
    question = Question("q", "Which drug is first?")
    for _ in range(REPLIES_TRIED):
        reply = "".join(chance.choices(PIECES, k=chance.randint(0, 25)))
        speaker = Speaker(KeyedModel({"": [reply]}), "planner")
        run, terms = Run(), TermExtractor(speaker)
        for planner in (
            Prompting(Proposer(speaker, offers)),
            OriginalQuestion(terms, offers),
            Query2Doc(speaker, terms, offers),
        ):
            proposal = await planner.plan(question, run)
            for offer in offers:
                assert len(proposal.plan.of_source(offer.name)) <= MOST
            names = [offer.name for offer in offers]
            assert (
                parse_source_plan(render_source_plan(proposal.plan, names), sources=names).plan
                == proposal.plan
            )
        assert (
            0
            <= (await DocumentJudge(speaker).evaluate_documents(question, {}, offers, run)).score
            <= BEST
        )
        told = [event for event in run.events if not isinstance(event, Asked)]  # not the reply
        assert [from_line(to_line(event)) for event in told] == told
