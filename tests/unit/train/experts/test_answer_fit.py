"""Linear models over the pair logit and the cues: an order first, then probabilities."""

from collections.abc import Sequence

import numpy as np
import pytest

from osler.errors import ModelError
from osler.retrieve.experts.answer_cues import CUES, FEATURES, join_features
from osler.retrieve.experts.answering import CHEAP, JOINED, TextPair
from osler.retrieve.experts.linear import LinearModel
from osler.train.experts.answer_fit import fit_order, fit_tensors, neutral_tensors
from osler.train.experts.pair_evaluation import PairCase

CHANCE = np.random.default_rng(4)


def cases_of(count: int, texts: int) -> list[PairCase]:
    pairs = tuple(TextPair(str(n)) for n in range(texts))
    return [PairCase(str(n), "Why?", pairs, "page" if n % 3 else "near") for n in range(count)]


def rows_of(count: int, texts: int, level: float = 0.0) -> list[np.ndarray]:
    """Two features; the first is higher for the right text, the other is noise.

    Both have a level of the question's own, which tells nothing.
    """
    rows = CHANCE.normal(size=(count, texts, 2))
    rows[:, 0, 0] += 2.0
    return list(rows + CHANCE.normal(size=(count, 1, 1)) * level)


def test_the_feature_that_tells_right_from_wrong_gets_the_weight() -> None:
    model = fit_order(cases_of(300, 4), rows_of(300, 4, level=3.0))
    telling, noise = (model.weights / model.scale)[0]
    assert telling > 5 * abs(noise)


def test_its_probabilities_are_those_of_the_right_texts() -> None:
    model = fit_order(cases_of(600, 4), rows_of(600, 4))
    shares = np.array([model.predict_shares(one)[:, 0] for one in rows_of(600, 4)])
    assert shares.mean() == pytest.approx(0.25, abs=0.03)
    assert shares[:, 0].mean() > 2 * shares[:, 1:].mean()


def test_an_order_that_says_nothing_of_other_questions_is_refused() -> None:
    """Within each question the right text is higher; over all of them it is lower."""
    few, many = np.array([[0.1], [0.0]]), np.array([[5.1], *[[5.0]] * 9])
    cases = [*cases_of(20, 2), *cases_of(20, 10)]
    with pytest.raises(ModelError, match="is none on the dev part"):
        fit_order(cases, [few] * 20 + [many] * 20)


def test_until_it_is_fitted_the_logit_and_the_name_pass() -> None:
    tensors = neutral_tensors()
    cues = CHANCE.normal(size=(3, len(CUES)))
    joined = join_features([1.0, -2.0, 0.5], [0.0, 1.0, 2.0], cues)
    for prefix, rows in ((JOINED, joined), (CHEAP, cues)):
        own = {n.removeprefix(prefix): one for n, one in tensors.items() if n.startswith(prefix)}
        logits = LinearModel.of_tensors(own).predict_logits(rows)[:, 0]
        np.testing.assert_allclose(logits, rows[:, 0])
    assert joined.shape == (3, len(FEATURES))


def test_both_models_are_fitted_and_a_sentence_is_read_with_its_passage() -> None:
    """The sentences' logits are noise, those of their passages tell the right one."""
    words = ("gout hurts", "tea", "milk")
    texts = [
        [TextPair(f"{w} {n}", lead=f"{w} {at}") for at, w in enumerate(words)] for n in range(60)
    ]
    cases = [PairCase(str(n), "Why gout?", tuple(one), "page") for n, one in enumerate(texts)]
    noise = {one.text: float(CHANCE.normal()) for case in texts for one in case}

    def score(question: str, asked: Sequence[TextPair]) -> list[float]:
        return [noise.get(one.text, 3.0 * one.text.endswith("hurts 0")) for one in asked]

    tensors = fit_tensors(cases, score)
    weights = dict(zip(FEATURES, tensors["joined.weights"][0], strict=True))
    assert weights["lead"] > 3 * abs(weights["pair"])
    assert tensors["cheap.weights"].shape == (1, len(CUES))
