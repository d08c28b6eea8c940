"""`retrieve`: queries are turned, candidates put in order, and a search without it is as before."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from osler.errors import ModelError
from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import VectorMemory
from osler.retrieve.experts.cards import CARD, WEIGHTS, ExpertCard, render_card
from osler.retrieve.experts.linear import LinearModel
from osler.retrieve.experts.searching import (
    FEATURES,
    QueryMap,
    SearchExpert,
    SearchRelevance,
    is_letter,
    measure_candidates,
)
from osler.retrieve.experts.shelf import open_expert
from osler.retrieve.hybrid import HybridRetriever
from osler.retrieve.relevance import OverlapRelevance, WordRelevance
from osler.retrieve.rerank import reranker_text
from osler.testing.scripted import HashingEncoder
from osler.train.experts.linear import tensors_of, write_safetensors

SIZE = HashingEncoder().dimension
TEXTS = {
    "gout": ("Gout", "Colchicine relieves an attack of gout within two days."),
    "asthma": ("Asthma", "Salbutamol opens the airways within minutes."),
    "scurvy": ("Scurvy", "Vitamin C is given by mouth for three months."),
    "tea": ("Tea", "Tea is a drink that many take when an attack of thirst comes."),
}
LETTER = "Dear doctor, my father is ill. An attack came again. He was told it is scurvy. Help us."


def shelve(folder: Path, weights: tuple[float, float, float], *, turn: int | None = None) -> None:
    """An expert of these weights that moves each query towards one axis, or not at all."""
    shift = np.zeros(SIZE, np.float32)
    if turn is not None:
        shift[turn] = 50.0
    zeros = np.zeros(3)
    order = LinearModel(zeros, zeros + 1, np.array([weights]), np.zeros(1))
    folder.mkdir()
    small = {"down": np.zeros((2, SIZE), np.float16), "up": np.zeros((SIZE, 2), np.float16)}
    tensors: dict[str, NDArray[Any]] = {**tensors_of(order), **small, "shift": shift}
    write_safetensors(tensors, folder / WEIGHTS)
    card = ExpertCard(
        name="retrieve",
        question="?",
        family="search",
        replaces="-",
        languages=("en",),
        made="-",
        seed=0,
        date="2026-11-22",
        split="0" * 64,
        weights=hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest(),
        features=FEATURES,
    )
    (folder / CARD).write_text(render_card(card), encoding="utf-8")


def expert_of(folder: Path, *weights: float, turn: int | None = None) -> SearchExpert:
    shelve(folder, (weights[0], weights[1], weights[2]), turn=turn)
    return SearchExpert(open_expert("retrieve", folder))


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    folder = tmp_path / "texts"
    folder.mkdir()
    for id, (title, text) in TEXTS.items():
        (folder / f"{id}.md").write_text(f"# {title}\n\n{text}\n", encoding="utf-8")
    with KnowledgeBase.create(tmp_path / "kb") as made:
        made.add([folder], source="book")
        made.build(HashingEncoder())
        yield made


def test_a_map_is_worked_by_hand() -> None:
    down, up = np.array([[1.0, 0.0]], np.float32), np.array([[0.0], [2.0]], np.float32)
    turned = QueryMap(down, up, np.array([0.0, 1.0], np.float32)).turn_queries(
        np.array([[1.0, 0.0], [0.0, 1.0]], np.float32)
    )
    # (1, 0) + 2 * 1 * (0, 1) + (0, 1) = (1, 3); (0, 1) + (0, 1) = (0, 2).
    assert turned.tolist() == [pytest.approx([1 / 10**0.5, 3 / 10**0.5]), pytest.approx([0, 1])]


def test_candidates_bear_three_numbers() -> None:
    rows = measure_candidates(
        [0.8, 0.5], [2.0, 4.0], ["Scurvy", "Tea and scones"], {"scurvy": 3.0, "tea": 1.0}
    )
    # Both of "tea", "scones": half named, a quarter of the letter's weight.
    np.testing.assert_allclose(rows, [[0.8, 0.5, 0.75], [0.5, 1.0, 0.5 * 0.25]])
    plain = measure_candidates([0.8], [0.0], ["Scurvy"], {})
    np.testing.assert_allclose(plain, [[0.8, 0.0, 0.0]])
    assert measure_candidates([], [], [], {}).shape == (0, 3)


@pytest.mark.parametrize(
    ("question", "letter"), [("What is gout?", False), (LETTER, True), ("", False)]
)
def test_a_question_of_several_sentences_is_a_letter(question: str, letter: bool) -> None:
    assert is_letter(question) is letter


async def test_the_order_is_that_of_the_weights(kb: KnowledgeBase, tmp_path: Path) -> None:
    query = "What relieves an attack of gout?"
    by_words = expert_of(tmp_path / "w", 0.0, 4.0, 0.0)
    hits = await HybridRetriever(kb, HashingEncoder(), expert=by_words).search(query, k=4)
    assert [hit.passage.title for hit in hits][:2] == ["Gout", "Tea"]
    assert [hit.rank for hit in hits] == [1, 2, 3, 4][: len(hits)]
    assert hits[0].score == pytest.approx(1 / (1 + np.exp(-4)))
    against = expert_of(tmp_path / "a", 0.0, -4.0, 0.0)
    last = await HybridRetriever(kb, HashingEncoder(), expert=against).search(query, k=4)
    assert last[-1].passage.title == "Gout"


async def test_in_a_letter_the_heading_that_is_named_counts(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    expert = expert_of(tmp_path / "h", 0.0, 0.0, 9.0)
    found = HybridRetriever(kb, HashingEncoder(), expert=expert)
    assert (await found.search(LETTER, k=1))[0].passage.title == "Scurvy"
    scores = {hit.score for hit in await found.search("An attack of scurvy", k=4)}
    assert scores == {0.5}, "no letter, so the headings are not looked at"


async def test_turned_queries_find_other_passages(kb: KnowledgeBase, tmp_path: Path) -> None:
    query, encoder = "colchicine relieves gout", HashingEncoder()
    (target,) = encoder.encode(
        ["Asthma\nSalbutamol opens the airways within minutes."], kind="passage"
    )
    axis = int(np.argmax(target))
    plain = await HybridRetriever(kb, encoder, expert=expert_of(tmp_path / "p", 1, 0, 0)).search(
        query, k=1
    )
    turned = await HybridRetriever(
        kb, encoder, expert=expert_of(tmp_path / "t", 1, 0, 0, turn=axis)
    ).search(query, k=4)
    assert plain[0].passage.title == "Gout"
    nearest = max(
        TEXTS.values(),
        key=lambda one: encoder.encode([f"{one[0]}\n{one[1]}"], kind="passage")[0][axis],
    )
    assert turned[0].passage.title == nearest[0]


async def test_a_pool_is_ordered_as_one_search(kb: KnowledgeBase, tmp_path: Path) -> None:
    query, encoder = "What relieves an attack of gout?", VectorMemory(HashingEncoder())
    expert = expert_of(tmp_path / "e", 3.0, 2.0, 5.0)
    hits = await HybridRetriever(kb, encoder, expert=expert).search(query, k=4)
    words = WordRelevance(kb.term_rarity)
    pool = SearchRelevance(expert, encoder, words, kb.term_rarity, OverlapRelevance())
    texts = [reranker_text(hit.passage) for hit in hits]
    scores = await pool.relevance(query, texts)
    assert sorted(scores, reverse=True) == list(scores)
    assert await pool.relevance(query, []) == ()


def test_another_kind_of_expert_is_refused(tmp_path: Path) -> None:
    shelve(tmp_path / "x", (1.0, 1.0, 1.0))
    card = (tmp_path / "x" / CARD).read_text().replace('family = "search"', 'family = "linear"')
    (tmp_path / "x" / CARD).write_text(card)
    with pytest.raises(ModelError, match="made for another search"):
        SearchExpert(open_expert("retrieve", tmp_path / "x"))
