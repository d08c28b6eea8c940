"""`term , query` of the graph source: definition first, then the relations that suit the query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from osler.errors import SourceUnavailable
from osler.graph.items import Definition, Name, Relation, SemanticType
from osler.graph.store import Graph
from osler.retrieve.graph import RELATIONS, GraphRetriever, find_forms, split_query

FACTS = (
    Name("T:1", "Metformin", "MSH", 0),
    Name("T:1", "dimethylbiguanide", "NCI"),
    Definition("T:1", "From NCI.", "NCI"),
    Definition("T:1", "From MeSH.", "MSH"),
    Name("T:2", "Diabetes, Type 2", "MSH", 0),
    Name("T:3", "Lactic acidosis", "MSH", 0),
    Name("T:4", "Kidney", "MSH", 0),
    Name("T:5", "孤立", "MSH", 0, "zh"),
    SemanticType("T:3", "Finding"),
    SemanticType("T:2", "Disease"),
    Relation("T:1", "may_treat", "T:2", "SRC"),
    Relation("T:1", "may_cause", "T:3", "SRC"),
    Relation("T:4", "excretes", "T:1", "SRC"),
)


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Graph]:
    with Graph.create(tmp_path) as graph:
        many = [Name(f"X:{n}", f"item {n}") for n in range(30)]
        graph.add([*FACTS, *many, *(Relation("T:1", "listed_with", f"X:{n}") for n in range(30))])
        yield graph


async def test_the_definition_comes_first_then_the_relations_that_suit_the_query(
    graph: Graph,
) -> None:
    hits = await GraphRetriever(graph).search("metformin , risk of lactic acidosis", k=10)
    assert [hit.passage.text for hit in hits[:2]] == [
        "Definition: From MeSH.",
        "Relation: (Metformin, may_cause, Lactic acidosis).",
    ]
    assert [hit.rank for hit in hits] == list(range(1, 11))
    assert {hit.source for hit in hits} == {"graph"}
    assert hits[0].passage.title == "Metformin/dimethylbiguanide"
    for hit in hits:
        assert graph.get_passage(hit.passage.id) == hit.passage


DRUG = (
    Name("DRUGBANK:DB1", "Ourdrug", "DRUGBANK", 0),
    Name("DRUGBANK:DB2", "Seconddrug", "DRUGBANK", 0),
    Definition("DRUGBANK:DB1", "A drug of ours.", "DRUGBANK"),
    Definition("DRUGBANK:DB1", "For hypertension in adults.", "DRUGBANK indication"),
    Definition("DRUGBANK:DB1", "It blocks a calcium channel.", "DRUGBANK mechanism-of-action"),
    Definition(
        "DRUGBANK:DB1",
        " ".join(f"Sentence {n} of toxicity." for n in range(100)),
        "DRUGBANK toxicity",
    ),
    Relation(
        "DRUGBANK:DB1", "interacts_with", "DRUGBANK:DB2", "DRUGBANK", "Ourdrug may raise the level."
    ),
    Relation("DRUGBANK:DB1", "has_target", "DRUGBANK:DB2", "DRUGBANK", "inhibitor"),
)


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("mechanism of action", "Mechanism of action: It blocks a calcium channel."),
        ("indication", "Indication: For hypertension in adults."),
    ],
)
async def test_each_section_of_a_drug_s_record_is_a_passage_found_by_what_is_asked(
    graph: Graph, asked: str, text: str
) -> None:
    graph.add(DRUG)
    hits = await GraphRetriever(graph).search(f"Ourdrug , {asked}", k=3)
    assert hits[0].passage.text == "Definition: A drug of ours."
    assert hits[1].passage.text == text
    for hit in hits:
        assert graph.get_passage(hit.passage.id) == hit.passage


async def test_a_long_section_is_several_passages_and_loses_nothing(graph: Graph) -> None:
    graph.add(DRUG)
    hits = await GraphRetriever(graph).search("Ourdrug , toxicity", k=20)
    parts = [h.passage for h in hits if h.passage.text.startswith("Toxicity: ")]
    assert len(parts) == 3
    assert all(len(part.text) <= 1000 for part in parts)
    told = " ".join(part.text for part in parts)
    assert all(f"Sentence {n} of toxicity." in told for n in range(100))
    for part in parts:
        assert graph.get_passage(part.id) == part


async def test_the_text_of_an_interaction_follows_its_relation(graph: Graph) -> None:
    graph.add(DRUG)
    hits = await GraphRetriever(graph).search("Ourdrug , interacts with Seconddrug", k=10)
    texts = [hit.passage.text for hit in hits]
    assert "Relation: (Ourdrug, interacts_with, Seconddrug). Ourdrug may raise the level." in texts
    assert "Relation: (Ourdrug, has_target, Seconddrug)." in texts


async def test_the_wire_text_is_the_paper_s(graph: Graph) -> None:
    (finding,) = await GraphRetriever(graph).find_definitions("Metformin", "kidney excretion")
    assert len(finding.relations) == RELATIONS
    lines = finding.wire.split("\n")
    assert lines[0] == "Definition: From MeSH."
    assert lines[1].startswith("Relation: (Kidney, excretes, Metformin); (")
    assert lines[1].endswith(").")


async def test_a_relation_may_be_stated_from_the_other_end(graph: Graph) -> None:
    hits = await GraphRetriever(graph).search("kidney , what does it excrete", k=5)
    assert [hit.passage.text for hit in hits] == ["Relation: (Kidney, excretes, Metformin)."]


async def test_a_term_with_a_comma_is_one_term(graph: Graph) -> None:
    assert split_query("Diabetes, Type 2 , drugs") == ("Diabetes, Type 2", "drugs")
    assert split_query("二甲双胍，副作用") == ("二甲双胍", "副作用")
    (hit,) = await GraphRetriever(graph).search("Diabetes, Type 2 , drugs", k=5)
    assert hit.passage.text == "Relation: (Metformin, may_treat, Diabetes, Type 2)."


@pytest.mark.parametrize(
    "query", ["unheard of , drugs", "metfornin , drugs", "", " , ", "孤立 , 药"]
)
async def test_an_unknown_term_and_one_without_relations_give_nothing(
    graph: Graph, query: str
) -> None:
    assert await GraphRetriever(graph).search(query, k=5) == []


async def test_a_misspelt_term_is_found_when_that_is_allowed(graph: Graph) -> None:
    hits = await GraphRetriever(graph, fuzzy=True).search("metfornin , drugs", k=5)
    assert hits[0].passage.text == "Definition: From MeSH."


async def test_a_free_question_is_searched_for_names(graph: Graph) -> None:
    hits = await GraphRetriever(graph).search("Does metformin cause lactic acidosis?", k=4)
    texts = [hit.passage.text for hit in hits]
    assert "Relation: (Metformin, may_cause, Lactic acidosis)." in texts
    assert await GraphRetriever(graph).search("Does it rain?", k=4) == []


class Backwards:
    """A relevance that prefers what has the greater last word."""

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        ordered = sorted(texts, key=lambda text: text.split()[-1])
        return tuple(float(ordered.index(text)) for text in texts)


async def test_another_relevance_may_rank(graph: Graph) -> None:
    (finding,) = await GraphRetriever(graph, Backwards()).find_definitions("Metformin", "anything")
    assert finding.relations[0][0].object_name == "Lactic acidosis"


class Recorder:
    """Prefers what is listed last, and keeps what it was asked to weigh."""

    def __init__(self) -> None:
        self.weighed: list[str] = []

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        self.weighed = list(texts)
        return tuple(map(float, range(len(texts))))


async def test_fifty_relations_are_weighed_and_ten_of_them_are_kept(graph: Graph) -> None:
    graph.add([Name(f"Y:{n}", f"thing {n}") for n in range(60)])
    graph.add([Relation("T:2", "goes_with", f"Y:{n}") for n in range(60)])
    recorder = Recorder()
    (finding,) = await GraphRetriever(graph, recorder).find_definitions("Diabetes, Type 2", "x")
    kept = [edge.object_name for edge, _ in finding.relations]
    assert len(kept) == RELATIONS == 10
    assert "thing 48" in kept


async def test_a_graph_that_is_gone_is_not_an_empty_one(graph: Graph, tmp_path: Path) -> None:
    retriever = GraphRetriever(graph)
    graph.close()
    (tmp_path / "graph.sqlite").unlink()
    with pytest.raises(SourceUnavailable):
        await retriever.search("metformin , drugs", k=3)


async def test_a_form_is_answered_by_one_hop_with_the_predicate_in_other_words(
    graph: Graph,
) -> None:
    (hit,) = await find_forms(graph, "metformin", "may cause", target_type="finding")
    assert (hit.answer, hit.edge.predicate) == ("Lactic acidosis", "may_cause")
    (back,) = await find_forms(graph, "Lactic acidosis", "cause")
    assert back.answer == "Metformin"
    treats = await find_forms(graph, "metformin", "treat")
    assert [hit.answer for hit in treats] == ["Diabetes, Type 2"]
    assert await find_forms(graph, "metformin", "may cause", target_type="Disease, rare") == []
    assert await find_forms(graph, "unheard of", "may cause") == []
    assert await find_forms(graph, "metformin", "synthesised by") == []
