"""A recogniser learns a small language of invented names, and links what it finds."""

import json
import random
from pathlib import Path

import pytest

from osler.errors import ModelMissing
from osler.graph.items import Name, Relation
from osler.graph.store import Graph
from osler.retrieve.graph_mentions import (
    RECOGNISER,
    MentionRetriever,
    NamedEntity,
    RecognisedNames,
    TokenClassifier,
    open_recogniser,
)

pytestmark = pytest.mark.torch
pytest.importorskip("torch")
pytest.importorskip("transformers")
from train_recogniser import (  # noqa: E402  # it imports torch
    MarkedText,
    read_marked,
    strict_f1,
    train_recogniser,
)

FRAMES = (
    "{drug} helps in {disease} .",
    "Patients with {disease} were given {drug} twice .",
    "No {disease} was seen after {drug} and {drug} .",
    "The ward was quiet and the window was open .",
)
ENDINGS = {"drug": ("xin", "zole"), "disease": ("itis", "osis")}
TEXT = "Patients with bolafitis were given rudexin twice ."


def invented(kind: str, chance: random.Random) -> str:
    """A name that means nothing: its kind is in its ending."""
    parts = (
        chance.choice("bdfgklmnprtvz") + chance.choice("aeiou") for _ in range(chance.randint(2, 3))
    )
    return "".join(parts) + chance.choice(ENDINGS[kind])


def sentence(chance: random.Random) -> MarkedText:
    text, entities, rest = "", [], chance.choice(FRAMES)
    while "{" in rest:
        before, _, rest = rest.partition("{")
        kind, _, rest = rest.partition("}")
        text, name = text + before, invented(kind, chance)
        entities.append(NamedEntity(len(text), len(text) + len(name), kind))
        text += name
    return MarkedText(text + rest, tuple(entities))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch

    torch.set_num_threads(1)
    chance, folder = random.Random(0), tmp_path_factory.mktemp("kb") / RECOGNISER
    texts = [sentence(chance) for _ in range(48)]
    train_recogniser(texts, folder, epochs=3, batch=8, rate=3e-4)
    return folder


@pytest.fixture(scope="module")
def classifier(folder: Path) -> TokenClassifier:
    return TokenClassifier(folder)


def test_recogniser_finds_names_absent_from_its_training_data(classifier: TokenClassifier) -> None:
    chance = random.Random(1)
    texts = [sentence(chance) for _ in range(40)]
    assert sum(len(one.entities) for one in texts) > 50
    assert strict_f1([classifier.find_entities(one.text) for one in texts], texts) > 0.9


def test_names_are_found_at_their_places_and_long_texts_are_read_whole(
    classifier: TokenClassifier,
) -> None:
    found = [(TEXT[one.start : one.end], one.type) for one in classifier.find_entities(TEXT)]
    assert found == [("bolafitis", "disease"), ("rudexin", "drug")]
    assert classifier.find_entities("  ") == []
    long = classifier.find_entities(" ".join([TEXT] * 40))
    assert len({one.start for one in long}) >= 76  # of 80


def names(*pairs: tuple[str, str]) -> list[Name | Relation]:
    return [*(Name(id, name) for id, name in pairs), Relation(pairs[0][0], "near", pairs[1][0])]


async def test_what_is_recognised_is_led_to_concepts(folder: Path) -> None:
    pytest.importorskip("rapidfuzz", reason="names spelt otherwise need the extra graph")
    with Graph.create(folder.parent) as graph:
        graph.add(names(("T:1", "rudexin"), ("T:2", "Bolafittis"), ("T:3", "Patients")))
        made = open_recogniser(graph)
        assert made is not None
        found = made.find_mentions(TEXT)
        assert [(TEXT[m.start : m.end], m.concepts) for m in found] == [
            ("Patients", ("T:3",)),
            ("bolafitis", ("T:2",)),
            ("rudexin", ("T:1",)),
        ]
        hits = await MentionRetriever(graph, made).search(TEXT, k=5)
        assert [hit.passage.id for hit in hits][1:] == ["graph:T:2#mention", "graph:T:1#mention"]


def test_a_recognised_name_stands_for_those_within_it_and_gives_way_to_longer_ones(
    classifier: TokenClassifier, tmp_path: Path
) -> None:
    with Graph.create(tmp_path) as graph:
        graph.add(names(("T:1", "Bolafitis"), ("T:2", "itis"), ("T:3", "rudexin twice")))
        assert open_recogniser(graph) is None
        found = RecognisedNames(graph, classifier).find_mentions(TEXT)
        assert [(TEXT[m.start : m.end], m.concepts) for m in found] == [
            ("bolafitis", ("T:1",)),
            ("rudexin twice", ("T:3",)),
        ]


def test_a_folder_without_a_model_is_told(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing, match=r"no config\.json"):
        TokenClassifier(tmp_path)


def test_marked_texts_are_read_with_both_kinds_of_ends(tmp_path: Path) -> None:
    own = {"text": "a gout", "entities": [{"start": 2, "end": 6, "type": "D"}]}
    cmeee = {"text": "a gout", "entities": [{"start_idx": 2, "end_idx": 5, "type": "D"}]}
    file = tmp_path / "x.jsonl"
    file.write_text(f"{json.dumps(own)}\n{json.dumps(cmeee)}\n")
    assert read_marked(file) == [MarkedText("a gout", (NamedEntity(2, 6, "D"),))] * 2


def test_strict_f1_is_that_worked_by_hand() -> None:
    gold = [MarkedText("x", (NamedEntity(0, 4, "D"), NamedEntity(6, 9, "D"))), MarkedText("y")]
    found = [[NamedEntity(0, 4, "D"), NamedEntity(6, 9, "E")], [NamedEntity(1, 2, "D")]]
    assert strict_f1(found, gold) == pytest.approx(2 * 1 / 5)
