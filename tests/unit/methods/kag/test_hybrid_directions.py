"""A relation is found from both of its ends, and told by the concept that was asked about."""

from pathlib import Path

from osler.graph.items import Name, Relation
from osler.graph.store import Graph
from osler.methods.kag.hybrid import HybridGraph
from osler.methods.kag.logical_forms import Retrieval, SpoNode

SCURVY, ACID = "D:scurvy", "D:acid"


async def test_a_relation_is_told_by_the_concept_that_was_asked_about(tmp_path: Path) -> None:
    with Graph.create(tmp_path / "kb") as graph:
        graph.add(
            [
                Name(SCURVY, "scurvy"),
                Name(ACID, "ascorbic acid"),
                Relation(SCURVY, "treated_by", ACID),
            ]
        )
        graph.load_arrays()
        told = {}
        for name in ("scurvy", "ascorbic acid"):
            form = Retrieval(SpoNode("s1", "", name), SpoNode("p1", "treated by"), SpoNode("o1"))
            (hit,) = await HybridGraph(graph).find_form(form, k=1)
            told[name] = hit.passage
    assert {passage.text for passage in told.values()} == {
        "Relation: (scurvy, treated_by, ascorbic acid)."
    }
    assert {name: passage.title for name, passage in told.items()} == {
        "scurvy": "scurvy",
        "ascorbic acid": "ascorbic acid",
    }
