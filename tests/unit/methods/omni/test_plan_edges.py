"""Texts that are no query, and the graph's own form of one."""

from osler.methods.omni.plan import source_plan_grammar
from osler.methods.omni.planners import queries_of
from osler.sources.catalogue import BOOK, GRAPH


def test_a_text_of_nothing_leaves_the_others() -> None:
    queries = queries_of(BOOK, ["  ", "adrenaline", "", "aspirin"])
    assert [query.wire for query in queries] == ["adrenaline", "aspirin"]


def test_the_graph_alone_is_asked_by_a_term() -> None:
    plain, by_term = ("<{0}> adrenaline </{0}>", "<{0}> anaphylaxis , adrenaline </{0}>")
    book, graph = source_plan_grammar([BOOK]), source_plan_grammar([GRAPH])
    assert book.accepts(plain.format(BOOK))
    assert graph.accepts(by_term.format(GRAPH))
    assert not graph.accepts(plain.format(GRAPH))
