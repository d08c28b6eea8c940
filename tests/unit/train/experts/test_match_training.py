"""The encoder `match`: what it learns of a teacher, and a training that can be stopped."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from osler.errors import ModelError
from osler.retrieve.experts.cards import ExpertCard, render_card
from osler.retrieve.experts.judge import JudgedText
from osler.retrieve.experts.matching import MatchEncoder
from osler.retrieve.experts.shelf import BASE, ShelvedExpert
from osler.train.experts.folder import write_shards
from osler.train.experts.judge_cases import LABELLED, JudgedCase
from osler.train.experts.pair_questions import BIOASQ
from osler.train.experts.row_training import train_rows
from osler.train.experts.students import MatchModel, MatchRecipe, text_of
from osler.train.experts.tuned_models import Machine

DRUGS = {"gout": "colchicine", "asthma": "steroids", "uveitis": "drops", "scurvy": "vitamin C"}
CASES = [
    JudgedCase(
        f"how is {name} treated?",
        BIOASQ if name == "scurvy" else LABELLED,
        (JudgedText("It is rare.", name), JudgedText(f"{name} is treated with {drug}.", name)),
        (0.0, 1.0),
        name,
        taught=(-3.0, 3.0),
    )
    for name, drug in DRUGS.items()
]
TINY = MatchRecipe(steps=4, rows=3, texts=3)


def test_a_sentence_is_read_under_its_heading() -> None:
    assert text_of(JudgedText("It is rare.", "gout")) == "gout. It is rare."
    assert text_of(JudgedText("It  is\nrare.")) == "It is rare."


def weights_of(model: MatchModel) -> np.ndarray:
    return np.concatenate([one.ravel() for _, one in sorted(model.export_deltas().items())])


@pytest.mark.torch
def test_a_training_that_was_stopped_ends_with_the_same_weights(tmp_path: Path) -> None:
    class Stopped(Exception):
        pass

    def stop_at(stage: str, done: int, total: int | None) -> None:
        if done == 3:
            raise Stopped

    whole = train_rows(MatchModel(TINY, Machine()), CASES, tmp_path / "whole")
    with pytest.raises(Stopped):
        train_rows(
            MatchModel(TINY, Machine()), CASES, tmp_path / "cut", progress=stop_at, keep_each=2
        )
    again = train_rows(MatchModel(TINY, Machine()), CASES, tmp_path / "cut", keep_each=2)
    np.testing.assert_array_equal(weights_of(again), weights_of(whole))
    with pytest.raises(ModelError, match="other settings"):
        train_rows(MatchModel(replace(TINY, steps=5), Machine()), CASES, tmp_path / "cut")


@pytest.mark.torch
def test_the_student_learns_what_answers_and_its_graph_says_the_same(tmp_path: Path) -> None:
    recipe = MatchRecipe(steps=40, rows=4, texts=3, rate=2e-4)
    model = train_rows(MatchModel(recipe, Machine()), CASES, tmp_path / "work")
    hashes = write_shards(model.export_deltas(), tmp_path / "match")
    card = ExpertCard(
        name="match",
        question="near?",
        family="encoder",
        replaces="the cosine",
        languages=("en",),
        made="by hand",
        seed=0,
        date="2026-01-01",
        split="0",
        base=BASE,
        weights=hashes[0],
        further=tuple(hashes[1:]),
    )
    (tmp_path / "match" / "card.toml").write_text(render_card(card))
    encoder = MatchEncoder(ShelvedExpert(tmp_path / "match", card))
    texts = [case.question for case in CASES] + [
        text_of(text) for case in CASES for text in case.texts
    ]
    vectors = encoder.encode(texts, kind="passage")
    wanted = model.read_texts(texts, 110).detach().numpy()
    # What is shipped is the change in three bits a number, run in eight.
    assert (vectors * wanted).sum(1).min() > 0.97
    asked, said = vectors[:4], vectors[4:]
    for number in range(4):
        rare, treated = said[2 * number : 2 * number + 2] @ asked[number]
        assert treated > rare


def test_an_expert_of_another_family_is_no_encoder(tmp_path: Path) -> None:
    from osler.retrieve.experts.shelf import open_expert

    with pytest.raises(ModelError, match="is no encoder"):
        MatchEncoder(open_expert("judge"))
