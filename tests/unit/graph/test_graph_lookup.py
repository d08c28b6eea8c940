"""Names that are misspelt, and names inside a text."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from osler.errors import CapabilityMissing
from osler.graph.derive import normalize_name, unit_spans
from osler.graph.items import Name, Relation
from osler.graph.link import Dictionary, Recogniser
from osler.graph.lookup import Lookup
from osler.graph.store import Graph

NAMES = {
    "T:1": ("Diabetes Mellitus, Type 2", "T2DM", "2型糖尿病"),
    "T:2": ("Diabetes Mellitus",),
    "T:3": ("Lactic acidosis", "乳酸酸中毒"),
    "T:4": ("Escherichia coli", "E. coli"),
    "T:5": ("糖尿病",),
    "T:6": ("fever", "发热"),
    "T:7": ("Fever",),
    "T:8": ("fever cough",),
    "T:9": ("of",),
}


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Graph]:
    with Graph.create(tmp_path) as graph:
        graph.add([Name(id, name) for id, names in NAMES.items() for name in names])
        yield graph


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("diabets mellitus", "T:2"),
        ("lactic acidosys", "T:3"),
        ("acidosis lactic", "T:3"),
        ("escherichai coli", "T:4"),
        ("二型糖尿病", "T:5"),
        ("乳酸酸中独", "T:3"),
        ("fevver", "T:6"),
    ],
)
def test_a_misspelt_name_finds_its_concept(graph: Graph, text: str, id: str) -> None:
    found = Lookup(graph).find(text)
    assert id in [match.concept for match in found[:2]]
    assert all(match.how == "fuzzy" for match in found)
    assert [m.score for m in found] == sorted((m.score for m in found), reverse=True)


def test_a_right_name_is_never_guessed_at(graph: Graph) -> None:
    (match,) = Lookup(graph).find("diabetes mellitus")
    assert (match.concept, match.how) == ("T:2", "normal")
    assert Lookup(graph).find("zzzzqqq") == []
    assert Lookup(graph).find("diabets mellitus", fuzzy=False) == []
    assert Lookup(graph).find("") == []


def test_the_look_up_sees_what_is_added_later(graph: Graph) -> None:
    lookup = Lookup(graph)
    assert lookup.find("hypothyroidsm") == []
    graph.add([Name("T:20", "hypothyroidism")])
    (match,) = lookup.find("hypothyroidsm")
    assert match.concept == "T:20"


def test_exact_look_up_needs_no_extra_and_fuzzy_names_it(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rapidfuzz", None)
    assert Lookup(graph).find("T2DM")
    assert Dictionary(graph).find_mentions("a fever")
    with pytest.raises(CapabilityMissing, match="rapidfuzz") as raised:
        Lookup(graph).find("feverr")
    assert 'pip install "osler[graph]"' in raised.value.fix


def found(graph: Graph, text: str, **how: Any) -> list[tuple[str, tuple[str, ...]]]:
    recogniser: Recogniser = Dictionary(graph, **how)
    return [(text[m.start : m.end], m.concepts) for m in recogniser.find_mentions(text)]


def test_the_longest_name_wins_in_english_and_chinese(graph: Graph) -> None:
    assert found(graph, "Diabetes mellitus type 2, not diabetes mellitus.") == [
        ("Diabetes mellitus type 2", ("T:1",)),
        ("diabetes mellitus", ("T:2",)),
    ]
    assert found(graph, "患者有2型糖尿病，曾乳酸酸中毒、糖尿病。") == [
        ("2型糖尿病", ("T:1",)),
        ("乳酸酸中毒", ("T:3",)),
        ("糖尿病", ("T:5",)),
    ]


def test_an_ambiguous_name_names_all(graph: Graph) -> None:
    assert found(graph, "FEVER") == [("FEVER", ("T:6", "T:7"))]


def test_a_name_does_not_go_over_the_end_of_a_sentence(graph: Graph) -> None:
    both = ("fever cough", ("T:8",))
    assert found(graph, "fever, cough")[0][1] == both[1]
    assert [name for name, _ in found(graph, "He has fever. Cough too.")] == ["fever"]
    assert [name for name, _ in found(graph, "发热。2型糖尿病")] == ["发热", "2型糖尿病"]
    assert found(graph, "an E. coli infection") == [("E. coli", ("T:4",))]


def test_small_words_and_ignored_ones_are_no_mentions(graph: Graph) -> None:
    assert found(graph, "of all") == []
    assert found(graph, "a fever", ignored=frozenset({"fever"})) == []


@pytest.mark.parametrize("text", ["", " ", "\ud800\0", "。。。", "ﬁ" * 10, "İ" * 5, "a" * 100_000])
def test_any_text_can_be_searched_for_mentions(graph: Graph, text: str) -> None:
    assert found(graph, text) == []


def test_an_empty_graph_finds_nothing(tmp_path: Path) -> None:
    with Graph.create(tmp_path) as graph:
        assert found(graph, "fever") == []
        assert Lookup(graph).find("feverr") == []


def test_places_of_units_are_places_in_the_text() -> None:
    text = "Ｔ２ 型İ糖-尿 Straße"
    for unit, start, end in unit_spans(text):
        assert normalize_name(text[start:end]) == normalize_name(unit)


def test_relations_of_a_hub_are_chosen_by_their_words(graph: Graph) -> None:
    many = [Name(f"H:{n}", f"thing number {n}") for n in range(300)]
    hub = [Relation("T:2", "has_part", f"H:{n}") for n in range(300)]
    graph.add([*many, *hub, Relation("T:2", "may_cause", "T:3")])
    lookup = Lookup(graph)
    best = lookup.find_related("T:2", "what may it cause", most=5)
    assert ("Diabetes Mellitus", "may_cause", "Lactic acidosis") in [e.triple for e in best]
    assert len(best) == 5
    assert "thing number 217" in [e.object_name for e in lookup.find_related("T:2", "217", most=3)]
    assert lookup.find_related("T:404", "x", most=3) == []
