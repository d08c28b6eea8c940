"""Forms looked up in a real graph: one hop, nearly spelt names, conditions, a walk (§3.4)."""

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from osler.errors import SourceUnavailable
from osler.graph.items import Definition, Item, Name, Relation, SemanticType
from osler.graph.store import Graph
from osler.methods.kag.hybrid import (
    FormsAsQueries,
    FormsAsWords,
    HybridGraph,
    QueriesAsForms,
    condition_values,
)
from osler.methods.kag.logical_forms import Constraint, Retrieval, SpoNode, constraint_holds
from osler.types import Passage
from osler_lab.testing.scripted import ScriptedRetriever

SCURVY, TEA, CITRUS, GUMS, ACID = "D:scurvy", "D:tea", "D:citrus", "D:gums", "D:acid"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    made = Graph.create(tmp_path / "kb")
    names = {SCURVY: "scurvy", ACID: "ascorbic acid", CITRUS: "citrus fruit"}
    items: list[Item] = [
        *(Name(id, text) for id, text in names.items()),
        *(Name(id, text) for id, text in {TEA: "tea", GUMS: "gum bleeding"}.items()),
        Definition(SCURVY, "A disease of too little ascorbic acid."),
        *(SemanticType(id, "Food") for id in (TEA, CITRUS)),
        SemanticType(ACID, "Vitamin"),
        Relation(SCURVY, "treated_by", ACID, note="since: 1747, adults"),
        Relation(SCURVY, "treated_by", CITRUS, note="since: 1601, sailors"),
        Relation(SCURVY, "causes", GUMS),
        Relation(CITRUS, "found_in", TEA),
        *(Name(f"N:{n}", n) for n in ("90", "20")),
        Relation(ACID, "dose", "N:90"),
        Relation(CITRUS, "dose", "N:20"),
    ]
    made.add(items)
    made.load_arrays()
    return made


def form(
    s: str, p: str, o: str = "", kind: str = "", *constraints: Constraint, subject: str = "disease"
) -> Retrieval:
    return Retrieval(
        SpoNode("s1", subject, s), SpoNode("p1", p), SpoNode("o1", kind, o), constraints
    )


async def found(graph: Graph, asked: Retrieval) -> list[str]:
    hits = await HybridGraph(graph).find_form(asked, k=5)
    return [hit.passage.text for hit in hits]


async def test_the_answer_is_one_hop_away_by_the_predicate_in_words(graph: Graph) -> None:
    texts = await found(graph, form("scurvy", "treated by"))
    assert texts == [
        "Relation: (scurvy, treated_by, ascorbic acid).",
        "Relation: (scurvy, treated_by, citrus fruit).",
    ]


async def test_a_name_that_the_graph_lacks_falls_back_to_the_nearest_without_any_extra(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rapidfuzz", None)
    texts = await found(graph, form("the scurvy", "treated by"))
    assert texts[0] == "Relation: (scurvy, treated_by, ascorbic acid)."
    assert await found(graph, form("zorblaxine", "treated by")) == []


async def test_of_names_that_share_words_the_one_with_the_nearest_vector_is_first(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rapidfuzz", None)
    lacking = [f"scurvy of type {n}" for n in range(4)]
    graph.add([item for n, name in enumerate(lacking) for item in (Name(f"D:{n}", name),)])
    graph.add([Relation("D:3", "treated_by", ACID)])
    graph.load_arrays()

    class Vectors:
        async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
            return tuple(float(text.endswith("3")) for text in texts)

    near = HybridGraph(graph, likeness=Vectors())
    hits = await near.find_form(form("severe scurvy of sailors", "treated by"), k=1)
    assert hits[0].passage.text == "Relation: (scurvy of type 3, treated_by, ascorbic acid)."


async def test_a_type_narrows_it_and_one_that_nothing_has_does_not(graph: Graph) -> None:
    assert await found(graph, form("scurvy", "treated by", kind="vitamin")) == [
        "Relation: (scurvy, treated_by, ascorbic acid)."
    ]
    assert len(await found(graph, form("scurvy", "treated by", kind="planet"))) == 2


async def test_a_misspelt_name_is_found(graph: Graph) -> None:
    assert "ascorbic acid" in (await found(graph, form("scurvvy", "treated by")))[0]


async def test_a_predicate_in_other_words_gives_all_relations(graph: Graph) -> None:
    assert len(await found(graph, form("scurvy", "remedy"))) == 3


async def test_without_a_subject_it_is_asked_from_the_object(graph: Graph) -> None:
    asked = form("", "treated by", "citrus fruit", subject="illness")
    assert await found(graph, asked) == ["Relation: (scurvy, treated_by, citrus fruit)."]
    assert await found(graph, form("", "treated by")) == []


@pytest.mark.parametrize(
    ("constraint", "kept"),
    [
        (Constraint("o", "dose", ">", "50"), ["ascorbic acid"]),
        (Constraint("o", "dose", "<=", "20 mg"), ["citrus fruit"]),
        (Constraint("o", "name", "!=", "Citrus fruit"), ["ascorbic acid"]),
        (Constraint("o", "type", "in", ("food", "drink")), ["citrus fruit"]),
        (Constraint("s", "causes", "=", "gum bleeding"), ["ascorbic acid", "citrus fruit"]),
        (Constraint("s", "causes", "=", "fever"), []),
        (Constraint("o", "colour", "=", "red"), ["ascorbic acid", "citrus fruit"]),
        (Constraint("p", "since", "=", "1747"), ["ascorbic acid"]),
        (Constraint("p", "since", "<", "1700"), ["citrus fruit"]),
        # Nobody says that citrus fruit is not for adults: it stays, behind.
        (Constraint("p", "group", "=", "adults"), ["ascorbic acid", "citrus fruit"]),
        (Constraint("p", "group", "=", "sailors"), ["citrus fruit", "ascorbic acid"]),
        (Constraint("p", "dose", "=", "500 mg"), ["ascorbic acid", "citrus fruit"]),
    ],
)
async def test_a_condition_that_the_graph_contradicts_removes_an_answer(
    graph: Graph, constraint: Constraint, kept: list[str]
) -> None:
    texts = await found(graph, form("scurvy", "treated by", "", "", constraint))
    assert [text.removesuffix(").").rpartition(", ")[2] for text in texts] == kept


async def test_texts_that_name_what_is_near_come_first(graph: Graph) -> None:
    far = Passage("book:far#0", "Nothing of the kind.", "book", "Far")
    near = Passage("book:near#0", "Scurvy and gum bleeding end with ascorbic acid.", "book", "N")
    texts = ScriptedRetriever({"": [far, near]})
    hits = await HybridGraph(graph, texts).find_form(form("scurvy", "treated by"), k=4)
    ids = [hit.passage.id for hit in hits]
    assert ids.index(near.id) < ids.index(far.id)
    assert any(id.startswith("graph:") for id in ids[:2])


async def test_a_form_goes_through_a_plain_retriever_s_door(graph: Graph) -> None:
    through = QueriesAsForms(FormsAsQueries(HybridGraph(graph)))
    asked = form("scurvy", "treated by", "", "", Constraint("o", "dose", ">", "50"))
    direct = await HybridGraph(graph).find_form(asked, k=5)
    assert await through.find_form(asked, k=5) == direct


async def test_what_is_no_form_is_told_as_a_source_that_failed(graph: Graph) -> None:
    with pytest.raises(SourceUnavailable, match="no form"):
        await FormsAsQueries(HybridGraph(graph)).search("who?", k=3)


async def test_without_a_graph_the_form_is_asked_in_words() -> None:
    fact = Passage("graph:a#0", "scurvy", "graph", "scurvy")
    texts = ScriptedRetriever({"": [fact]})
    hits = await FormsAsWords(texts).find_form(form("scurvy", "treated by", kind="vitamin"), k=3)
    assert [hit.passage for hit in hits] == [fact]
    assert texts.asked == ["scurvy , treated by vitamin"]


@pytest.mark.parametrize(
    ("comparison", "wanted", "value", "true"),
    [
        ("=", "Fever", "fever", True),
        ("=", "16 kg", "16.0 kg", True),
        ("=", "16 kg", "16 g", False),
        ("!=", "fever", "cough", True),
        ("<", "18", "17 years", True),
        (">=", "18", "17", False),
        (">", "many", "17", False),
        ("in", ("a", "b"), "B", True),
    ],
)
def test_values_are_compared_as_numbers_or_as_words(
    comparison: str, wanted: str | tuple[str, ...], value: str, true: bool
) -> None:
    assert constraint_holds(Constraint("o", "x", comparison, wanted), value) is true  # type: ignore[arg-type]


def test_conditions_are_read_from_the_brackets_that_extraction_writes() -> None:
    constraint = Constraint("p", "degree of burn", "=", "II")
    note = "book:burns#3 (children, degree of burn: II)"
    assert condition_values(note, constraint) == ["II"]
    assert condition_values("book:burns#3 (adults)", constraint) == []
