"""The expert `supports`: its fit against scikit-learn, and a whole training."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from natural.published import hash_of, read_split
from numpy.typing import NDArray
from train_supports import fit_linear, read_claims, train_supports

from osler.retrieve.experts.cards import open_expert
from osler.retrieve.experts.supporting import LinearModel
from osler_lab.testing.scripted import HashingEncoder

LogisticRegression = pytest.importorskip("sklearn.linear_model").LogisticRegression

CHANCE = np.random.default_rng(4)
ROWS = CHANCE.normal(size=(300, 5)) * [1, 10, 0.1, 1, 1] + [0, 5, 0, 0, 3]
ROWS[:, 4] = 3.0  # a feature that never changes must do no harm


def drawn_classes() -> list[int]:
    pull = (ROWS[:, :1] * [2.0, -1.0]) + CHANCE.gumbel(size=(300, 2))
    return [int(one) for one in pull.argmax(1)]


def fit(ridge: float = 1.0, weights: NDArray[np.float64] | None = None) -> LinearModel:
    counts = np.ones(300) if weights is None else weights
    return fit_linear(ROWS, CLASSES, ridge=ridge, weights=counts)


CLASSES = drawn_classes()


def test_the_logistic_fit_is_scikit_learn_s() -> None:
    ours = fit(2.0)
    scaled = (ROWS - ours.mean) / ours.scale
    theirs = LogisticRegression(C=1 / 2.0, tol=1e-10, max_iter=1000).fit(scaled, CLASSES)
    np.testing.assert_allclose(ours.weights, theirs.coef_, atol=1e-3)
    np.testing.assert_allclose(
        ours.predict_shares(ROWS), theirs.predict_proba(scaled)[:, 1], atol=1e-3
    )


def test_weights_of_rows_count_like_repeated_rows() -> None:
    twice = np.ones(300)
    twice[:100] = 2
    weighted = fit(weights=twice)
    rows = (np.vstack([ROWS, ROWS[:100]]) - weighted.mean) / weighted.scale
    repeated = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000).fit(
        rows, CLASSES + CLASSES[:100]
    )
    np.testing.assert_allclose(weighted.weights, repeated.coef_, atol=1e-3)


def test_a_class_without_a_row_does_not_break_the_fit() -> None:
    model = fit_linear(ROWS, [0] * 300, ridge=10.0, weights=np.ones(300))
    assert model.predict_shares(ROWS).max() < 0.05


def claim(n: int) -> dict[str, Any]:
    """A yes/no question whose evidence has a null finding where the answer is no."""
    word = ("yes", "no", "yes")[n % 3]
    said = {
        "yes": "It was effective and improved survival.",
        "no": "There was no significant difference.",
    }[word]
    return {
        "QUESTION": f"Does treatment {n} help?",
        "CONTEXTS": [said],
        "LABELS": ["RESULTS"],
        "LONG_ANSWER": said,
        "final_decision": word,
    }


@pytest.fixture
def data(tmp_path: Path) -> Path:
    claims = {str(n): claim(n) for n in range(60)}
    (tmp_path / "ori_pqal_rest.json").write_text(json.dumps(claims))
    parts: dict[str, list[str]] = {"train": [], "dev": [], "test": []}
    for n in range(60):
        part = "test" if n % 4 == 0 else "dev" if n % 10 == 1 else "train"
        parts[part] += [hash_of(f"pubmedqa:{n}"), hash_of(f"PMID:{n}")]
    (tmp_path / "split.json").write_text(json.dumps(parts))
    return tmp_path


def test_it_is_trained_measured_and_no_test_question_is_learnt_from(data: Path) -> None:
    """Test questions whose answers are turned round leave the weights as they are."""
    split, encoder = data / "split.json", HashingEncoder()
    card = train_supports(data, data / "one", encoder, split)
    assert open_expert("supports", data / "one").card == card
    accuracy = {one.on: one for one in card.figures}["test: pubmedqa"]
    assert accuracy.expert.value > 0.8 > accuracy.rule_figure.value
    held = read_split(split).choose_items(read_claims(data), "test")
    claims = json.loads((data / "ori_pqal_rest.json").read_text())
    for one in held:
        claims[one.id.partition(":")[2]]["final_decision"] = "yes"
    (data / "ori_pqal_rest.json").write_text(json.dumps(claims))
    again = train_supports(data, data / "two", encoder, split)
    assert len(held) > 10
    assert again.weights == card.weights
    assert again.figures != card.figures
