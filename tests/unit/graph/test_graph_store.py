"""A graph in one file: what is put in is found again, by identifier, by name and by neighbour."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from osler.errors import KnowledgeBaseMismatch, KnowledgeBaseMissing, UnknownPassage
from osler.graph.chains import find_chains_between, find_chains_from, rank_nearest
from osler.graph.items import ConceptMapping, Definition, Name, Relation, SemanticType, Stream
from osler.graph.store import Graph
from osler.sources.records import Drop

FACTS = (
    Relation("T:1", "treats", "T:2", "SRC", "PMID:1", "f:1"),
    Name("T:1", "Metformin", "MSH", 0),
    Name("T:1", "metformin hydrochloride", "NCI"),
    Name("T:1", "二甲双胍", "ZH", 2, "zh"),
    Name("T:2", "Diabetes Mellitus, Type 2", "MSH", 0),
    Name("T:2", "T2DM"),
    Name("T:3", "Lactic acidosis", "MSH", 0),
    SemanticType("T:1", "Drug"),
    Definition("T:1", "From HPO.", "HPO"),
    Definition("T:1", "From elsewhere.", "AAA"),
    Definition("T:1", "From MeSH.", "MSH"),
    Relation("T:1", "may_cause", "T:3", "SRC"),
    Relation("T:3", "seen_with", "T:2", "SRC"),
    ConceptMapping("T:2", "X:9", "SRC"),
)


def test_what_was_added_is_counted(tmp_path: Path) -> None:
    with Graph.create(tmp_path) as graph:
        added = graph.add(FACTS)
        assert (added.concepts, added.names, added.definitions) == (3, 6, 3)
        assert (added.relations, added.mappings, added.drops) == (3, 1, ())
        info = graph.get_info()
        assert (info.concepts, info.names, info.relations) == (3, 6, 3)
        assert dict(info.predicates) == {"treats": 1, "may_cause": 1, "seen_with": 1}


def test_adding_the_same_again_changes_nothing(graph: Graph) -> None:
    before = graph.get_info()
    again = graph.add(FACTS)
    assert (again.concepts, again.names, again.definitions, again.relations) == (0, 0, 0, 0)
    after = graph.get_info()
    assert (after.concepts, after.names, after.relations) == (
        before.concepts,
        before.names,
        before.relations,
    )


def test_a_concept_has_its_names_types_and_definitions_in_order(graph: Graph) -> None:
    concept = graph.get_concept("T:1")
    assert concept is not None
    assert concept.names == ("Metformin", "metformin hydrochloride", "二甲双胍")
    assert concept.types == ("Drug",)
    assert [source for source, _ in concept.definitions] == ["MSH", "HPO", "AAA"]
    assert graph.get_concept("T:99") is None


@pytest.mark.parametrize(
    ("text", "id", "how"),
    [
        ("Metformin", "T:1", "exact"),
        ("METFORMIN", "T:1", "normal"),
        ("二甲双胍", "T:1", "exact"),
        ("diabetes mellitus type 2", "T:2", "normal"),
        ("ｔ２ｄｍ", "T:2", "normal"),
    ],
)
def test_a_name_is_found_whatever_its_case_width_and_punctuation(
    graph: Graph, text: str, id: str, how: str
) -> None:
    (match,) = graph.find_exact(text)
    assert (match.concept, match.how) == (id, how)


def test_an_unknown_name_is_nothing(graph: Graph) -> None:
    assert graph.find_exact("aspirin") == []
    assert graph.find_exact("") == []
    assert graph.find_exact("\ud800'; DROP TABLE name; --") == []


def test_neighbours_go_both_ways_or_one(graph: Graph) -> None:
    def seen(**how: object) -> set[tuple[str, str, str]]:
        return {e.triple for e in graph.find_neighbours(["T:3"], **how)}  # type: ignore[arg-type]

    out = ("Lactic acidosis", "seen_with", "Diabetes Mellitus, Type 2")
    into = ("Metformin", "may_cause", "Lactic acidosis")
    assert seen() == {out, into}
    assert seen(direction="out") == {out}
    assert seen(direction="in") == {into}
    assert seen(predicates=["may_cause"]) == {into}
    assert seen(predicates=["unheard_of"]) == set()
    assert len(graph.find_neighbours(["T:3"], limit=1)) == 1
    assert graph.find_neighbours(["T:99"]) == []


def test_relation_without_its_concepts_is_dropped_with_its_line(tmp_path: Path) -> None:
    stream: Stream = (
        Name("T:1", "one"),
        Name("T:2", " \u200b "),
        Relation("T:1", "is_a", "T:404", where="f.tsv:7"),
        Definition("T:404", "text", where="f.tsv:8"),
        Definition("T:1", "", where="f.tsv:10"),
        SemanticType("T:404", "Drug", where="f.tsv:9"),
        Drop("f.tsv:3", "malformed row"),
    )
    with Graph.create(tmp_path) as graph:
        added = graph.add(stream)
    assert dict(added.drops) == {
        "malformed row": 1,
        "name without text or id": 1,
        "definition without text": 1,
        "definition of an unknown concept": 1,
        "type of an unknown concept": 1,
        "relation with an unknown end": 1,
    }
    places = {drop.reason: drop.where for drop in added.examples}
    assert places["relation with an unknown end"] == "f.tsv:7: T:404"
    assert added.concepts == 1


@pytest.mark.parametrize(
    "name", ["SAB", "NULL", "a'b\"c; DROP TABLE edge", "%_", "a,b | c\td", "+"]
)
def test_sql_and_markup_in_a_concept_name_stay_text(tmp_path: Path, name: str) -> None:
    with Graph.create(tmp_path) as graph:
        graph.add([Name("X:" + name, name), Name("Y", "other"), Relation("Y", name, "X:" + name)])
        (match,) = graph.find_exact(name)
        (edge,) = graph.find_neighbours([match.concept])
        assert edge.predicate == " ".join(name.split())
        assert edge.subject == "Y"


def test_a_stream_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    def broken() -> Iterator[Name]:
        yield Name("T:1", "one")
        raise RuntimeError("cut")

    with Graph.create(tmp_path) as graph:
        with pytest.raises(RuntimeError):
            graph.add(broken())
        assert graph.get_info().concepts == 0
        assert graph.add([Name("T:1", "one")]).concepts == 1


def test_passages_open_by_their_ids(graph: Graph) -> None:
    concept = graph.get_concept("T:1")
    assert concept is not None
    definition = graph.definition_passages(concept)[0]
    assert definition is not None
    assert definition.text == "Definition: From MeSH."
    assert graph.get_passage("graph:T:1#def") == definition
    for edge in graph.find_neighbours(["T:1"]):
        passage = graph.relation_passage(concept, edge)
        assert graph.get_passage(passage.id) == passage
    for bad in ("graph:T:1#rel-0", "graph:T:9#def", "graph:T:2#def", "book:x#1", "", "graph:T:1"):
        with pytest.raises(UnknownPassage):
            graph.get_passage(bad)


def test_a_folder_without_a_graph_and_a_file_that_is_none_are_named(tmp_path: Path) -> None:
    with pytest.raises(KnowledgeBaseMissing):
        Graph.open(tmp_path)
    (tmp_path / "graph.sqlite").write_bytes(b"not a database at all" * 100)
    with pytest.raises(KnowledgeBaseMismatch):
        Graph.open(tmp_path)


def test_many_threads_read_while_one_writes(graph: Graph) -> None:
    def ask(_: int) -> int:
        assert graph.find_exact("T2DM")
        assert len(graph.load_arrays()["heads"]) >= 4
        return len(graph.find_neighbours(["T:1"]))

    def write() -> None:
        for number in range(6):
            graph.add([Name(f"W:{number}", f"written {number}")])

    with ThreadPoolExecutor(8) as pool:
        writer = pool.submit(write)
        assert set(pool.map(ask, range(60))) == {2}
        writer.result()
    assert graph.get_info().concepts == 3 + 6


def test_the_derived_file_is_made_anew_when_it_is_old_cut_or_gone(graph: Graph) -> None:
    first = len(graph.load_arrays()["to"])
    file = graph.folder / "graph.arrays"
    whole = file.read_bytes()
    for damage in (b"", whole[:100], b"x" * 500, whole[:-1]):
        file.write_bytes(damage)
        with Graph.open(graph.folder) as again:
            assert len(again.load_arrays()["to"]) == first
    graph.add([Name("T:4", "four"), Relation("T:4", "is_a", "T:1")])
    assert len(graph.load_arrays()["to"]) == first + 2


def test_cycles_are_relations_like_any_other(tmp_path: Path) -> None:
    ring = ["X:0", "X:1", "X:2"]
    facts = [Name(id, f"ring {id}") for id in ring]
    turns = [Relation(one, "is_a", ring[(n + 1) % 3]) for n, one in enumerate(ring)]
    with Graph.create(tmp_path) as graph:
        added = graph.add([*facts, *turns, Relation("X:1", "is_a", "X:0")])
        assert (added.relations, added.drops) == (4, ())
        assert {chain.concepts for chain in find_chains_between(graph, "X:0", "X:2", hops=4)} == {
            ("X:0", "X:2"),
            ("X:0", "X:1", "X:2"),
        }
        assert {len(chain.concepts) for chain in find_chains_from(graph, "X:0", hops=4, k=50)} == {
            2,
            3,
        }
        assert sum(share for _, share in rank_nearest(graph, ["X:0"])) <= 1
