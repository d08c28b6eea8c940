"""The source plan as models really write it (Omni-RAG App. E.2, E.7)."""

import pytest

from osler.errors import MalformedOutput
from osler.methods.omni.plan import (
    WRITTEN,
    DroppedQuery,
    Query,
    SourcePlan,
    expect_source_plan,
    parse_source_plan,
    render_source_plan,
    source_plan_grammar,
)
from osler.methods.omni.planners.single import parse_terms
from osler.sources.catalogue import BOOK, GRAPH, GUIDELINE, RESEARCH, SOURCES, WIKI
from osler.trace import PlannedQuery

GOLDEN = (
    "<book> q0 ; q1 </book>\n\n<guideline></guideline>\n\n<research>q</research>\n\n<wiki></wiki>"
    "\n\n<graph>Diabetes Mellitus, Type 2 , first-line drug ; metformin , contraindications</graph>"
)
PLAN = SourcePlan(
    (
        Query(BOOK, "q0"),
        Query(BOOK, "q1"),
        Query(RESEARCH, "q"),
        Query(GRAPH, "first-line drug", "Diabetes Mellitus, Type 2"),
        Query(GRAPH, "contraindications", "metformin"),
    )
)


def queries(reply: str, source: str = BOOK) -> list[str]:
    return [query.wire for query in parse_source_plan(reply).plan.of_source(source)]


def test_the_golden_string_is_read_whole() -> None:
    reading = parse_source_plan(GOLDEN)
    assert reading.plan == PLAN
    assert not reading.dropped
    assert not reading.missing


def test_source_plan_is_written_as_in_the_paper() -> None:
    assert render_source_plan(PLAN) == GOLDEN.replace("<research>q</", "<research> q </").replace(
        "<graph>D", "<graph> D"
    ).replace("contraindications</", "contraindications </")
    assert source_plan_grammar().accepts(render_source_plan(PLAN))


def test_the_plan_of_nothing_has_five_empty_tags() -> None:
    empty = "\n\n".join(f"<{source}></{source}>" for source in SOURCES)
    assert render_source_plan(SourcePlan()) == empty
    assert parse_source_plan(empty).plan == SourcePlan()


def test_the_event_counts_the_queries_of_each_source_from_nought() -> None:
    assert PLAN.planned_queries[:3] == (
        PlannedQuery(BOOK, 0, "q0"),
        PlannedQuery(BOOK, 1, "q1"),
        PlannedQuery(RESEARCH, 0, "q"),
    )
    assert PLAN.planned_queries[4] == PlannedQuery(GRAPH, 1, "metformin , contraindications")


@pytest.mark.parametrize(
    ("reply", "read"),
    [
        ("<BOOK> q0 ; q1 </Book>", ["q0", "q1"]),
        ("< book > q0 </ book >", ["q0"]),
        ("＜book＞华法林；胺碘酮＜/book＞", ["华法林", "胺碘酮"]),
        ("<book> q0 ; q1\n<guideline> g </guideline>", ["q0", "q1"]),  # unclosed
        ("<book> q0 </wiki>", ["q0"]),  # closed by another's
        ("<book> q0 ; q1\n\nThese queries ask for dose and risk.", ["q0", "q1"]),
        ("<book>\n1. warfarin dose\n2. 1,25-dihydroxyvitamin D\n</book>",
         ["warfarin dose", "1,25-dihydroxyvitamin D"]),
        ("<book> {search_query0} ; INR </book>", ["INR"]),
        ("<book> search_query0: INR ; medical_term1 </book>", ["INR"]),
        ("<book> INR (Use ; to separate the queries, 0 to 3 queries) </book>", ["INR"]),
        ("<book>None</book>", []),
        ("<book>不需要。</book>", []),
        ("<book/> q0", []),
        ("<book> age < 65 and BMI > 30 </book>", ["age < 65 and BMI > 30"]),
        ("<book> a </book> and again <book> b ; A </book>", ["a", "b"]),
        ("<book> a </book> A better plan: <book> b </book>", ["b"]),
        ("First: <book> a ; b ; c </book>\n<guideline> g </guideline>\n\nFinal plan:\n"
         "<book> d </book>\n<guideline></guideline>", ["d"]),
        ("<book> a </book>\n<guideline></guideline>\nThe form:\n<book> {search_query0} </book>\n"
         "<guideline></guideline>", ["a"]),
        ('```json\n{"book": ["q0", "q1"], "guideline": [],}\n```', ["q0", "q1"]),
        ("**book**: q0 ; q1\n**guideline**: none", ["q0", "q1"]),
        ("- **Book:**\n  - q0\n  - q1\n- **Guideline:** none", ["q0", "q1"]),
        ("I need no plan.", []),
    ],
)  # fmt: skip
def test_source_plan_is_read_in_the_forms_that_models_write(reply: str, read: list[str]) -> None:
    assert queries(reply) == read


@pytest.mark.parametrize(
    ("reply", "term", "text"),
    [
        ("<graph>1,2-dichloroethane , toxicity</graph>", "1,2-dichloroethane", "toxicity"),
        ("<graph>Diabetes Mellitus, Type 2</graph>", "Diabetes Mellitus, Type 2", ""),
        ("<graph>高血压，首选药物</graph>", "高血压", "首选药物"),
        ("<graph> gout , drugs , dose </graph>", "gout", "drugs , dose"),
        ('{"graph": [{"query": "dose", "why": "risk", "term": "gout"}]}', "gout", "dose"),
        ('{"graph": [{"search_query0": "dose", "medical_term0": "gout"}]}', "gout", "dose"),
        ('{"graph": [{"drug": "gout", "about": "dose"}]}', "gout", "dose"),
    ],
)
def test_a_graph_query_is_split_at_its_first_separator(reply: str, term: str, text: str) -> None:
    (query,) = parse_source_plan(reply).plan.queries
    assert (query.term, query.text) == (term, text)


def test_the_fourth_query_is_dropped_and_said_so() -> None:
    reading = parse_source_plan("<wiki> a ; b ; c ; d ; B </wiki>")
    assert [q.text for q in reading.plan.of_source(WIKI)] == ["a", "b", "c"]
    assert reading.dropped == (
        DroppedQuery(WIKI, "d", "more than 3"),
        DroppedQuery(WIKI, "B", "said before"),
    )


def test_six_queries_are_read_where_six_are_asked_for() -> None:
    """Exploration asks for six a source (Omni-RAG §4.2.1)."""
    assert (
        len(parse_source_plan("<wiki> a ; b ; c ; d ; e ; f ; g </wiki>", at_most=6).plan.queries)
        == 6
    )


def test_what_is_no_query_is_dropped_and_said_so() -> None:
    reading = parse_source_plan("<book> … ; none </book><graph>none , x</graph>")
    assert reading.plan == SourcePlan()
    assert [(d.source, d.text) for d in reading.dropped] == [
        (BOOK, "…"),
        (BOOK, "none"),
        (GRAPH, "none , x"),
    ]


def test_a_query_without_end_is_cut_and_said_so() -> None:
    reading = expect_source_plan(f"<book> {'word ' * 100}</book>")
    assert len(reading.plan.queries[0].text) <= WRITTEN
    assert reading.dropped[0].why.endswith("cut")


def test_a_missing_tag_is_told_from_an_empty_one() -> None:
    assert parse_source_plan("<book></book>").missing == (GUIDELINE, RESEARCH, WIKI, GRAPH)


def test_a_reply_without_any_tag_is_asked_for_again() -> None:
    with pytest.raises(MalformedOutput, match="a tag for each source"):
        expect_source_plan("Iron deficiency anaemia is a condition where there is a lack of iron.")
    assert expect_source_plan("<book></book>").plan == SourcePlan()


def test_sources_of_ones_own_have_tags_too() -> None:
    plan = SourcePlan.of([Query.of("notes", "a;b"), Query.of(BOOK, "c")])
    assert [query.source for query in plan.queries] == [BOOK, "notes"]
    assert (
        parse_source_plan(render_source_plan(plan, ["notes", BOOK]), sources=["notes", BOOK]).plan
        == plan
    )
    with pytest.raises(ValueError, match="the plan queries an unknown source: notes"):
        render_source_plan(plan)


@pytest.mark.parametrize(
    ("source", "text", "term"),
    [
        (BOOK, "", ""),
        (BOOK, "a ; b", ""),
        (BOOK, "a\nb", ""),
        (BOOK, "<book>", ""),
        (BOOK, "a", "term"),
        (GRAPH, "a", ""),
        (GRAPH, "a", "x , y"),
    ],
)
def test_what_the_wire_form_cannot_say_is_no_query(source: str, text: str, term: str) -> None:
    with pytest.raises(ValueError, match=r"no query|cannot say"):
        Query(source, text, term)


def test_a_plan_out_of_order_or_with_doubles_is_no_plan() -> None:
    for wrong in ([Query(WIKI, "a"), Query(BOOK, "b")], [Query(BOOK, "a"), Query(BOOK, "A")]):
        with pytest.raises(ValueError, match="distinct and ordered"):
            SourcePlan(tuple(wrong))


@pytest.mark.parametrize(
    ("reply", "terms"),
    [
        ("<term>term0 , term1</term>", ("term0", "term1")),
        ("<term>Diabetes Mellitus, Type 2 , metformin</term>",
         ("Diabetes Mellitus, Type 2", "metformin")),
        ("<term>metformin, insulin</term>", ("metformin", "insulin")),
        ("<term>1,25-dihydroxyvitamin D</term>", ("1,25-dihydroxyvitamin D",)),
        ("<terms>高血压、糖尿病</terms>", ("高血压", "糖尿病")),
        ("<term>高血压，糖尿病", ("高血压", "糖尿病")),
        ("As <term>x</term>: <term>a , A , b , c , d</term>", ("a", "b", "c")),
    ],
)  # fmt: skip
def test_terms_are_read(reply: str, terms: tuple[str, ...]) -> None:
    assert parse_terms(reply) == terms


@pytest.mark.parametrize("reply", ["", "metformin", "<term></term>", "<term> , </term>"])
def test_no_terms_are_malformed(reply: str) -> None:
    with pytest.raises(MalformedOutput):
        parse_terms(reply)
