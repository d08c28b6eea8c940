"""Articles of an encyclopaedia describe the concepts that have their titles."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from merges import list_merges

from osler.graph import fusion
from osler.graph.fusion import LONGEST, DescriptionReport, describe_concepts
from osler.graph.items import Definition, Name, Relation
from osler.graph.store import Graph
from osler.types import Passage


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Graph]:
    with Graph.create(tmp_path) as graph:
        graph.add(
            [
                Name("UMLS:C1", "Aspirin", rank=0),
                Name("UMLS:C1", "acetylsalicylic acid"),
                Name("UMLS:C2", "糖尿病", rank=0),
                Name("UMLS:C3", "cold", rank=0),
                Name("UMLS:C4", "cold", rank=0),
                Name("UMLS:C5", "Mercury", rank=0),
                Name("UMLS:C6", "ASA", rank=0),
                Definition("UMLS:C5", "A metal.", "MSH"),
                Name("DRUGBANK:DB1", "Acetylsalicylic Acid", "DRUGBANK", 0),
                Name("DRUGBANK:DB2", "quicksilver", "DRUGBANK", 0),
                Name("DRUGBANK:DB2", "mercury", "DRUGBANK", 1),
                Name("DRUGBANK:DB3", "unheard of", "DRUGBANK", 0),
                Name("DRUGBANK:DB4", "Cold", "DRUGBANK", 0),
                Name("DRUGBANK:DB5", "ASA", "DRUGBANK", 0),
                Definition("DRUGBANK:DB1", "Relieves pain.", "DRUGBANK indication"),
                Relation("DRUGBANK:DB1", "interacts_with", "DRUGBANK:DB2"),
            ]
        )
        yield graph


def article(title: str, text: str) -> tuple[Passage, ...]:
    return (Passage(id=f"wiki:{title}#0", text=text, source="wiki", title=title),)


def test_an_article_describes_the_one_concept_with_its_title(graph: Graph) -> None:
    long = "It is a drug. " + "It is used much. " * 60
    articles = [
        article("ASPIRIN", long),
        article("糖尿病", "糖尿病是一种慢性病。它很常见。"),
        article("Cold", "It is cold."),
        article("Mercury (element)", "Mercury is a metal."),
        article("Umbrella", "It keeps the rain off."),
        (),
    ]
    assert describe_concepts(graph, articles) == DescriptionReport(3, 1, 1)
    assert describe_concepts(graph, articles) == DescriptionReport(0, 1, 1)
    aspirin = graph.get_concept("UMLS:C1")
    assert aspirin is not None
    ((source, text),) = aspirin.definitions
    assert source == "wiki:ASPIRIN#0"
    assert text.startswith("It is a drug. It is used")
    assert len(text) <= LONGEST
    assert text.endswith(".")
    mercury = graph.get_concept("UMLS:C5")
    assert mercury is not None
    assert [source for source, _ in mercury.definitions] == ["MSH", "wiki:Mercury (element)#0"]


def test_a_drug_is_the_concept_with_its_name_or_synonym_and_the_rest_is_reported(
    graph: Graph,
) -> None:
    done = fusion.attach_vocabulary(graph, "DRUGBANK")
    assert done.merges == 2
    assert done.unmatched == (
        ("DRUGBANK:DB3", "unheard of"),
        ("DRUGBANK:DB4", "Cold"),
        ("DRUGBANK:DB5", "ASA"),  # three letters are too few
    )
    assert done.ambiguous == 1
    aspirin = graph.get_concept("UMLS:C1")
    assert aspirin is not None
    assert aspirin.definitions == (("DRUGBANK indication", "Relieves pain."),)
    assert [edge.object for edge in graph.find_neighbours(["UMLS:C1"])] == ["UMLS:C5"]
    hows = {(merge.one, merge.other): (merge.how, merge.why) for merge in list_merges(graph)}
    assert hows == {
        ("UMLS:C1", "DRUGBANK:DB1"): ("name", "Acetylsalicylic Acid"),
        ("UMLS:C5", "DRUGBANK:DB2"): ("synonym", "mercury"),
    }
    assert fusion.attach_vocabulary(graph, "DRUGBANK").merges == 0
    assert fusion.separate_concepts(graph) == 2
    assert [edge.object for edge in graph.find_neighbours(["UMLS:C1"])] == []
