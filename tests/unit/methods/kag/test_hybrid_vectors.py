"""Names linked and relations chosen by vectors and by a model; a walk that brings in passages
(KAG-Thinker §3.4)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from osler.graph.items import Item, Name, Relation
from osler.graph.lookup import FILE, NameVectors
from osler.graph.store import Graph
from osler.kb.encoders.base import Kind
from osler.llm.core.ask import Speaker
from osler.methods.kag.boundary import NoBoundary
from osler.methods.kag.depth import DepthSolver, RelationSelector
from osler.methods.kag.focus import Focuser
from osler.methods.kag.hybrid import HybridGraph
from osler.methods.kag.logical_forms import PlanStep, Retrieval, SpoNode
from osler.retrieve.relevance import EncoderRelevance
from osler.trace import Noted, Run
from osler.types import Passage
from osler_lab.testing.scripted import HashingEncoder, KeyedModel, ScriptedRetriever

if TYPE_CHECKING:
    from osler.kb.encoders.base import Vectors

ALIKE = {"insufficiency": "failure", "renal": "kidney", "remedy": "treated", "cure": "treated"}
TREATED = "Relation: (renal failure, treated_by, dialysis)."


class Meaning(HashingEncoder):
    """Near in meaning where the words are; it knows a few words that mean the same."""

    identity = "meaning-64"

    def encode(self, texts: Sequence[str], *, kind: Kind) -> Vectors:
        plain = [" ".join(ALIKE.get(word, word) for word in text.lower().split()) for text in texts]
        return super().encode(plain, kind=kind)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    names = {"D:1": "renal failure", "D:2": "heart failure", "D:3": "dialysis", "D:4": "oedema"}
    made = Graph.create(tmp_path / "kb")
    items: list[Item] = [Name(id, text) for id, text in names.items()]
    items += [
        Relation("D:1", "treated_by", "D:3"),
        Relation("D:2", "leads_to", "D:4"),
        Relation("D:1", "leads_to", "D:4"),
    ]
    made.add(items)
    made.load_arrays()
    return made


def form(s: str, p: str) -> Retrieval:
    return Retrieval(SpoNode("s1", "disease", s), SpoNode("p1", p), SpoNode("o1"))


async def test_a_name_in_other_words_is_found_by_its_vector(graph: Graph) -> None:
    vectors = HybridGraph(graph, names=NameVectors(graph, Meaning()))
    asked = form("kidney insufficiency", "treated by")
    hits = await vectors.find_form(asked, k=1)
    assert [hit.passage.text for hit in hits] == [TREATED]
    assert await HybridGraph(graph).find_form(asked, k=1) == []


def test_a_name_below_the_threshold_is_not_linked(graph: Graph) -> None:
    vectors = NameVectors(graph, Meaning())
    assert [match.concept for match in vectors.find_near("kidney failure", k=3, least=0.8)] == [
        "D:1"
    ]
    assert vectors.find_near("liver failure", k=3, least=0.8) == []
    (near, other) = vectors.find_near("liver failure", k=3, least=0.4)
    assert (near.how, near.concept, other.concept) == ("near", "D:1", "D:2")


def test_vectors_of_names_are_kept_until_the_graph_changes(graph: Graph) -> None:
    made = NameVectors(graph, Meaning())
    assert made.build() == 4
    assert (graph.folder / FILE).is_file()
    graph.add([Name("D:5", "kidney stone")])
    assert made.find_near("renal stone", k=1, least=0.9)[0].concept == "D:5"


def test_a_large_graph_is_linked_by_vectors_once_they_were_made(graph: Graph) -> None:
    vectors = NameVectors(graph, Meaning(), most=3)
    assert vectors.find_near("kidney failure", k=1, least=0.8) == []
    assert vectors.build() == 4
    assert vectors.find_near("kidney failure", k=1, least=0.8) != []


async def test_where_no_predicate_fits_the_relations_with_near_vectors_are_read(
    graph: Graph,
) -> None:
    asked = form("renal failure", "remedy")
    everything = await HybridGraph(graph).find_form(asked, k=5)
    assert len(everything) == 2
    near = HybridGraph(graph, likeness=EncoderRelevance(Meaning()))
    hits = await near.find_form(asked, k=5)
    assert hits[0].passage.text == TREATED


async def test_the_walk_brings_in_a_passage_that_no_word_of_the_form_finds(graph: Graph) -> None:
    reached = Passage("book:reached#0", "Dialysis is done three times a week.", "book", "R")
    off = Passage("book:off#0", "Peritonitis has other causes.", "book", "Off")
    top = Passage("book:top#0", "Renal failure is an illness.", "book", "Top")
    texts = ScriptedRetriever({"renal failure": [top], "dialysis": [reached, off]})
    hits = await HybridGraph(graph, texts).find_form(form("renal failure", "treated by"), k=4)
    ids = [hit.passage.id for hit in hits]
    assert reached.id in ids
    assert top.id in ids
    assert off.id not in ids  # it was found by the name, and does not name it


async def test_the_best_text_keeps_the_last_place_of_the_walk(graph: Graph) -> None:
    told = [
        Passage(f"book:{n}#0", f"Dialysis, renal failure and oedema: {n}.", "book", "N")
        for n in range(3)
    ]
    top = Passage("book:top#0", "Creatinine rises.", "book", "Top")
    texts = ScriptedRetriever({"renal failure": [top, *told]})
    hits = await HybridGraph(graph, texts).find_form(form("renal failure", "treated by"), k=3)
    ranked = [hit.passage.id for hit in hits]
    assert top.id not in ranked[:2]
    found = await HybridGraph(graph, texts)._text_passages(
        form("renal failure", "treated by"), ["D:1"], 2
    )
    assert [passage.id for passage in found] == [told[0].id, top.id]


SUFFICES = "<answer>Yes</answer><reason>They say it.</reason>"


@pytest.mark.parametrize(
    ("reply", "kept", "noted"),
    [
        ("Only the first helps.\n<answer>1</answer>", 1, False),
        ("None helps. <answer>none</answer>", 0, False),
        ("I am not sure about that.", 2, True),
    ],
)
async def test_a_model_chooses_among_relations_that_no_predicate_matches(
    graph: Graph, reply: str, kept: int, noted: bool
) -> None:
    model = KeyedModel(
        {
            "relations of a knowledge graph": [reply],
            "According to the question and references": [SUFFICES],
            "": [r"<answer>\boxed{dialysis}</answer>"],
        }
    )
    speaker, run = Speaker(model, "reader"), Run()
    nowhere = ScriptedRetriever({})
    solver = DepthSolver(
        speaker,
        nowhere,
        NoBoundary(),
        Focuser(speaker),
        HybridGraph(graph),
        turns=1,
        selector=RelationSelector(speaker),
    )
    step = PlanStep(1, "What helps in renal failure?", form("renal failure", "remedy"))
    answer = await solver.solve(step, step.question, (), "en", run)
    assert len(answer.hits) == kept
    said = [event.text for event in run.events if isinstance(event, Noted)]
    assert any("unchosen" in text for text in said) is noted


async def test_a_relation_with_the_predicate_asked_for_is_not_put_to_a_model(graph: Graph) -> None:
    model = KeyedModel({})
    hits = await HybridGraph(graph).find_form(form("renal failure", "treated by"), k=5)
    chosen = RelationSelector(Speaker(model, "reader"))
    asked = form("renal failure", "treated by")
    assert await chosen.select(asked, "What helps?", hits, "en", Run()) == hits
    assert model.asked == []
