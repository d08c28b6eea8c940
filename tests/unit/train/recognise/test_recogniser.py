"""A recogniser learns a small language of invented names, and links what it finds."""

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from osler.errors import BadConfig, ModelMissing
from osler.graph.items import Name, Relation
from osler.graph.store import Graph
from osler.retrieve.graph import MentionRetriever
from osler.train.recognise import StrictScores, loop
from osler.train.recognise.corpus import MarkedEntity, MarkedText
from osler.train.recognise.link import FOLDER, RecognisedNames, load_recogniser
from osler.train.recognise.loop import (
    RecogniserRecipe,
    TrainedRecogniser,
    prepare_texts,
    train_recogniser,
)
from osler.train.recognise.recogniser import SpanRecogniser

pytestmark = pytest.mark.torch

FRAMES = (
    "{drug} helps in {disease} .",
    "Patients with {disease} were given {drug} twice .",
    "No {disease} was seen after {drug} and {drug} .",
    "The ward was quiet and the window was open .",
    "{disease} and {disease} are not the same .",
    "服用{zdrug}后{zdisease}好转。",
    "{zdisease}患者不宜使用{zdrug}。",
    "病房很安静，窗户开着。",
)
KINDS = {"drug": "Drug", "disease": "Disease", "zdrug": "Drug", "zdisease": "Disease"}


def invented(kind: str, chance: random.Random) -> str:
    """A name that means nothing: its kind is in its ending."""
    if kind.startswith("z"):
        body = "".join(chance.choice("甲乙丙丁戊己庚辛壬癸") for _ in range(chance.randint(2, 3)))
        return body + chance.choice("素片" if kind == "zdrug" else "症炎")
    body = "".join(
        chance.choice("bdfgklmnprtvz") + chance.choice("aeiou") for _ in range(chance.randint(2, 3))
    )
    ending = chance.choice(("xin", "zole") if kind == "drug" else ("itis", "osis"))
    return body + ending + (" gravis" if kind == "disease" and chance.random() < 0.3 else "")


def corpus(n: int, seed: int) -> list[MarkedText]:
    chance = random.Random(seed)
    return [sentence(chance.choice(FRAMES), chance) for _ in range(n)]


def sentence(frame: str, chance: random.Random) -> MarkedText:
    text, entities = "", []
    rest = frame
    while "{" in rest:
        before, _, rest = rest.partition("{")
        kind, _, rest = rest.partition("}")
        text += before
        name = invented(kind, chance)
        entities.append(MarkedEntity(len(text), len(text) + len(name), KINDS[kind]))
        text += name
    return MarkedText(text + rest, tuple(entities))


@pytest.fixture(scope="module")
def trained() -> TrainedRecogniser:
    recipe = RecogniserRecipe(epochs=12, width=32, seed=1)
    return train_recogniser(prepare_texts(corpus(300, 0), recipe, corpus(80, 1)), recipe)


def test_recogniser_finds_names_absent_from_its_training_data(trained: TrainedRecogniser) -> None:
    assert trained.scores.micro.gold > 80
    assert trained.scores.micro.f1 > 0.9
    assert {name: one.f1 > 0.9 for name, one in trained.scores.types.items()} == {
        "Disease": True,
        "Drug": True,
    }
    losses = [epoch.loss for epoch in trained.epochs]
    assert losses[-1] < losses[0] / 4


def test_the_texts_that_are_reported_on_chose_no_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best epoch on the test texts would be measured too well."""
    measured: list[tuple[MarkedText, ...]] = []
    honest = loop.measure_recogniser

    def listen(recogniser: SpanRecogniser, texts: Sequence[MarkedText]) -> StrictScores:
        measured.append(tuple(texts))
        return honest(recogniser, texts)

    monkeypatch.setattr(loop, "measure_recogniser", listen)
    recipe = RecogniserRecipe(epochs=3, width=16, seed=1)
    for test in (corpus(20, 1), None):
        measured.clear()
        prepared = prepare_texts(corpus(60, 0), recipe, test)
        made = train_recogniser(prepared, recipe)
        assert measured == [prepared.development] * 3 + [prepared.test]
        told = {one.text for one in prepared.development}
        assert test or told.isdisjoint(one.text for one in prepared.test)
        assert made.scores.micro.gold == sum(len(one.entities) for one in prepared.test)


def test_too_few_texts_choose_no_epoch_and_the_last_one_stands() -> None:
    texts = [MarkedText("a b c d e", (MarkedEntity(0, 7, "X"),))] * 9
    recipe = RecogniserRecipe(epochs=2, width=16)
    prepared = prepare_texts(texts, recipe, texts)
    assert (prepared.development, prepared.texts) == ((), 9)
    assert train_recogniser(prepared, recipe).recogniser.facts["epoch"] == 2


def found(recogniser: SpanRecogniser, text: str) -> list[tuple[str, str]]:
    return [
        (text[one.entity.start : one.entity.end], one.entity.type)
        for one in recogniser.find_entities(text)
    ]


def test_names_are_found_in_both_languages_and_at_their_places(trained: TrainedRecogniser) -> None:
    made = trained.recogniser
    assert found(made, "Patients with bolafitis gravis were given rudexin twice .") == [
        ("bolafitis gravis", "Disease"),
        ("rudexin", "Drug"),
    ]
    assert found(made, "服用甲乙素后丙丁炎好转。") == [("甲乙素", "Drug"), ("丙丁炎", "Disease")]
    assert found(made, "") == found(made, "   ") == []


def test_a_long_text_is_read_in_windows(trained: TrainedRecogniser) -> None:
    names = [f"Patients with bolafitis were given rudexin {n} times ." for n in range(60)]
    assert len(found(trained.recogniser, " ".join(names))) == 120


def test_several_texts_give_what_each_gives_alone(trained: TrainedRecogniser) -> None:
    texts = [one.text for one in corpus(40, 5)]
    every = trained.recogniser.find_all(texts)
    assert [[f.entity for f in each] for each in every] == [
        [f.entity for f in trained.recogniser.find_entities(text)] for text in texts
    ]
    assert all(0.5 < f.confidence < 1 for each in every for f in each)


def test_a_saved_recogniser_finds_the_same(trained: TrainedRecogniser, tmp_path: Path) -> None:
    trained.recogniser.save(tmp_path)
    again = SpanRecogniser.load(tmp_path)
    texts = [one.text for one in corpus(40, 5)]
    assert again.find_all(texts) == trained.recogniser.find_all(texts)
    assert again.facts["f1"] == round(trained.scores.micro.f1, 4)


def test_the_same_seed_gives_the_same_weights() -> None:
    recipe = RecogniserRecipe(epochs=1, width=8, seed=3)
    texts = corpus(30, 0)
    one, other = (
        train_recogniser(prepare_texts(texts, recipe), recipe).recogniser for _ in range(2)
    )
    assert all(
        a.equal(b)
        for a, b in zip(one.net.state_dict().values(), other.net.state_dict().values(), strict=True)
    )


def test_a_damaged_or_absent_recogniser_says_what_makes_one(
    trained: TrainedRecogniser, tmp_path: Path
) -> None:
    with pytest.raises(ModelMissing, match=r"holds no recogniser.*osler train recogniser"):
        SpanRecogniser.load(tmp_path)
    trained.recogniser.save(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"cut short")
    with pytest.raises(ModelMissing, match=r"model\.safetensors is damaged"):
        SpanRecogniser.load(tmp_path)
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"format": 9}), encoding="utf-8")
    with pytest.raises(ModelMissing, match="format 9"):
        SpanRecogniser.load(tmp_path)
    config.write_text("{}", encoding="utf-8")
    with pytest.raises(ModelMissing, match=r"config\.json is damaged"):
        SpanRecogniser.load(tmp_path)


def nested_corpus(n: int, seed: int) -> list[MarkedText]:
    """ "bolafitis of the left KAMO": the organ lies within the disease."""
    chance, texts = random.Random(seed), []
    for _ in range(n):
        organ = invented("drug", chance).upper()
        name = f"{invented('disease', chance)} of the left {organ}"
        text = f"There was {name} again ."
        end = 10 + len(name)
        texts.append(
            MarkedText(
                text,
                (MarkedEntity(10, end, "Disease"), MarkedEntity(end - len(organ), end, "Organ")),
            )
        )
    return texts


def test_names_within_names_are_learnt() -> None:
    recipe = RecogniserRecipe(epochs=12, width=32)
    made = train_recogniser(
        prepare_texts(nested_corpus(120, 0), recipe, nested_corpus(30, 1)), recipe
    )
    assert made.recogniser.nested
    assert made.scores.micro.f1 > 0.9
    assert made.scores.micro.gold == 60


@pytest.mark.parametrize(
    ("texts", "test", "message"),
    [
        ([MarkedText("nothing here")] * 3, None, "no entity is marked in the texts"),
        (corpus(20, 0), [MarkedText("nothing here")], "in the 1 texts held out"),
    ],
)
def test_data_without_entities_is_refused_before_training(
    texts: Sequence[MarkedText], test: Sequence[MarkedText] | None, message: str
) -> None:
    with pytest.raises(BadConfig, match=message):
        prepare_texts(texts, RecogniserRecipe(), test)


def test_what_no_span_of_units_can_be_is_counted() -> None:
    long = " ".join(["word"] * 30)
    ends = "It ends here. Another begins."
    texts = [
        MarkedText(
            f"{long} rudexin", (MarkedEntity(0, len(long), "X"), MarkedEntity(151, 154, "X"))
        ),
        MarkedText(ends, (MarkedEntity(8, 21, "X"),)),
    ]
    found = prepare_texts(texts * 2, RecogniserRecipe(longest=8), corpus(3, 0)).dropped
    assert found == {
        "longer than 8 units": 2,
        "it begins or ends within a word": 2,
        "it goes on after a sentence's end": 2,
    }


def test_a_name_is_as_long_as_names_were_and_half_as_long_again() -> None:
    texts = [MarkedText("a b c d e", (MarkedEntity(0, 7, "X"),))] * 9
    assert prepare_texts(texts, RecogniserRecipe(), texts).shape.longest == 7
    assert prepare_texts(texts, RecogniserRecipe(longest=5), texts).shape.longest == 5


def names(*pairs: tuple[str, str]) -> list[Name | Relation]:
    return [*(Name(id, name) for id, name in pairs), Relation(pairs[0][0], "near", pairs[1][0])]


def test_what_is_recognised_is_led_to_concepts(trained: TrainedRecogniser, tmp_path: Path) -> None:
    pytest.importorskip("rapidfuzz", reason="names spelt otherwise need the extra graph")
    text = "Patients with bolafitis were given rudexin twice ."
    with Graph.create(tmp_path) as graph:
        graph.add(names(("T:1", "Bolafittis"), ("T:2", "rudexin"), ("T:3", "Patients")))
        alone = RecognisedNames(graph, trained.recogniser, alone=True).find_mentions(text)
        assert [(text[m.start : m.end], m.concepts) for m in alone] == [
            ("bolafitis", ("T:1",)),
            ("rudexin", ("T:2",)),
        ]
        both = RecognisedNames(graph, trained.recogniser).find_mentions(text)
        assert [m.concepts[0] for m in both] == ["T:3", "T:1", "T:2"]


def test_a_recognised_name_stands_for_the_names_within_it_and_gives_way_to_longer_ones(
    trained: TrainedRecogniser, tmp_path: Path
) -> None:
    pytest.importorskip("rapidfuzz", reason="names spelt otherwise need the extra graph")
    text = "Patients with bolafitis gravis were given rudexin twice ."
    with Graph.create(tmp_path) as graph:
        graph.add(names(("T:1", "Bolafittis gravis"), ("T:2", "gravis"), ("T:3", "rudexin twice")))
        made = RecognisedNames(graph, trained.recogniser).find_mentions(text)
        assert [(text[m.start : m.end], m.concepts) for m in made] == [
            ("bolafitis gravis", ("T:1",)),
            ("rudexin twice", ("T:3",)),
        ]


async def test_a_knowledge_base_s_recogniser_links_queries(
    trained: TrainedRecogniser, tmp_path: Path
) -> None:
    text = "Patients with bolafitis were given rudexin twice ."
    with Graph.create(tmp_path) as graph:
        graph.add(names(("T:1", "rudexin"), ("T:2", "Bolafittis")))
        assert load_recogniser(tmp_path, graph) is None
        trained.recogniser.save(tmp_path / FOLDER)
        made = load_recogniser(tmp_path, graph)
        hits = await MentionRetriever(graph, made).search(text, k=5)
        assert [hit.passage.id for hit in hits] == ["graph:T:2#mention", "graph:T:1#mention"]
