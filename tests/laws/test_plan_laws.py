"""Laws of Omni-RAG's source plan and its wire form."""

from hypothesis import example, given
from hypothesis import strategies as st

from osler.omni.plan import MOST, Query, SourcePlan, grammar, parse, render
from osler.testing.derivations import derivations
from osler.types import GRAPH, SOURCES

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
    reading = parse(render(plan), at_most=8)
    assert reading.plan == plan
    assert not reading.dropped
    assert not reading.missing


@given(PLANS)
def test_every_tag_is_written_once_in_the_order_of_the_sources(plan: SourcePlan) -> None:
    text = render(plan)
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
    reading = parse(reply)
    for source in SOURCES:
        assert len(reading.plan.of_source(source)) <= MOST
    assert parse(render(reading.plan)).plan == reading.plan


@given(derivations(grammar(longest=12)))
def test_what_the_grammar_lets_through_is_read_with_every_tag(reply: str) -> None:
    reading = parse(reply)
    assert not reading.missing
    assert {dropped.why for dropped in reading.dropped} <= {"no query", "said before"}


@given(PLANS)
def test_reading_one_source_s_tags_leaves_the_others_out(plan: SourcePlan) -> None:
    reading = parse(render(plan), sources=[GRAPH], at_most=8)
    assert reading.plan.queries == plan.of_source(GRAPH)
