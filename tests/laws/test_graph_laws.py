"""Laws of graphs: chains in words are read back, and what is fused comes apart again."""

from __future__ import annotations

import tempfile
from pathlib import Path

from graph_readings import parse_chain, triples_of
from hypothesis import given, settings
from hypothesis import strategies as st
from merges import list_merges

from osler.graph import fusion
from osler.graph.chains import find_chains_from
from osler.graph.derive import normalize_name
from osler.graph.items import (
    ChainStep,
    ConceptChain,
    ConceptMapping,
    Item,
    Name,
    Relation,
    verbalise_chain,
)
from osler.graph.store import Graph

TEXT = st.text(min_size=0, max_size=12) | st.sampled_from(
    ["a —b→ c", " ←x— ", "\\", "\\—", "(a, b)"]
)
STEPS = st.lists(st.tuples(TEXT, st.booleans(), TEXT), min_size=1, max_size=4)


@given(TEXT, STEPS)
def test_a_chain_in_words_parses_back_to_its_triples(
    first: str, steps: list[tuple[str, bool, str]]
) -> None:
    names = (first, *(name for _, _, name in steps))
    chain = ConceptChain(
        names, names, tuple(ChainStep(said, ahead) for said, ahead, _ in steps), 1.0
    )
    assert parse_chain(verbalise_chain(chain)) == triples_of(chain)


@given(st.text())
def test_the_normal_form_is_stable(text: str) -> None:
    assert normalize_name(normalize_name(text)) == normalize_name(text)


VOCABULARIES, LOCALS = st.sampled_from("ABC"), st.integers(0, 3)
IDS = st.builds("{}:{}".format, VOCABULARIES, LOCALS)
IDENTIFIERS = [f"{vocabulary}:{number}" for vocabulary in "ABC" for number in range(4)]
GRAPHS = st.tuples(
    st.lists(
        st.builds(Name, IDS, st.sampled_from(["fever", "cough", "糖尿病", "x"]), rank=st.just(0)),
        min_size=1,
        max_size=12,
    ),
    st.lists(st.builds(Relation, IDS, st.sampled_from(["r", "s"]), IDS), max_size=8),
    st.lists(st.builds(ConceptMapping, IDS, IDS, st.just("sssom")), max_size=6),
)


def content(graph: Graph) -> list[object]:
    """All that can be read of it."""
    concepts: list[object] = [graph.get_concept(id) for id in IDENTIFIERS]
    edges: list[object] = [graph.find_neighbours([id]) for id in IDENTIFIERS]
    arrays: list[object] = [(name, array.tolist()) for name, array in graph.load_arrays().items()]
    return [*concepts, *edges, *arrays, graph.find_exact("fever")]


@settings(max_examples=25, deadline=None)
@given(GRAPHS)
def test_what_is_said_of_relations_parses_back_to_what_was_stated(
    made: tuple[list[Name], list[Relation], list[ConceptMapping]],
) -> None:
    names, relations, _ = made
    with tempfile.TemporaryDirectory() as folder, Graph.create(Path(folder)) as graph:
        graph.add([*names, *relations])
        called = {id: concept.name for id in IDENTIFIERS if (concept := graph.get_concept(id))}
        stated = {
            (called[one], said, called[two])
            for one, said, two, *_ in relations
            if one in called and two in called and one != two
        }
        said = [chain for id in called for chain in find_chains_from(graph, id, hops=1, k=100)]
        assert {parse_chain(verbalise_chain(chain))[0] for chain in said} == stated
        assert all(len(parse_chain(verbalise_chain(chain))) == 1 for chain in said)


@settings(max_examples=40, deadline=None)
@given(GRAPHS)
def test_fusing_and_separating_is_the_identity(
    made: tuple[list[Name], list[Relation], list[ConceptMapping]],
) -> None:
    facts: list[Item] = [fact for part in made for fact in part]
    with tempfile.TemporaryDirectory() as folder, Graph.create(Path(folder)) as graph:
        graph.add(facts)
        before = content(graph)
        done = fusion.fuse_concepts(graph)
        merges = list_merges(graph)
        assert len(merges) == done.merges
        for merge in merges:
            one, other = graph.get_concept(merge.one), graph.get_concept(merge.other)
            assert one is not None
            assert one == other
        assert fusion.fuse_concepts(graph).merges == done.merges  # fusing twice is fusing once
        fusion.separate_concepts(graph)
        assert list_merges(graph) == []
        assert content(graph) == before
