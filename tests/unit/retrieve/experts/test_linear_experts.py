"""Linear experts: the fit against scikit-learn, cues of evidence, and candidates of a search."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from osler.errors import ModelError
from osler.retrieve.experts.cards import CARD, WEIGHTS, ExpertCard, render_card
from osler.retrieve.experts.cues import ASKED, CUES, FEATURES, measure_cues
from osler.retrieve.experts.fusing import FEATURES as FUSED
from osler.retrieve.experts.fusing import measure_candidates
from osler.retrieve.experts.linear import LinearModel
from osler.retrieve.experts.shelf import ShelvedExpert, open_expert
from osler.retrieve.experts.supporting import SupportsExpert
from osler.train.experts.linear import fit_linear, tensors_of, write_safetensors
from osler.types import Passage

LogisticRegression = pytest.importorskip("sklearn.linear_model").LogisticRegression

CHANCE = np.random.default_rng(4)
ROWS = CHANCE.normal(size=(300, 5)) * [1, 10, 0.1, 1, 1] + [0, 5, 0, 0, 3]
ROWS[:, 4] = 3.0  # a feature that never changes must do no harm


def drawn_classes(count: int) -> list[int]:
    pull = (ROWS[:, :1] * [2.0, -1.0, 0.0])[:, :count] + CHANCE.gumbel(size=(300, count))
    return [int(one) for one in pull.argmax(1)]


def test_the_logistic_fit_is_scikit_learn_s() -> None:
    classes = drawn_classes(2)
    ours = fit_linear(ROWS, classes, count=1, ridge=2.0)
    scaled = (ROWS - ours.mean) / ours.scale
    theirs = LogisticRegression(C=1 / 2.0, tol=1e-10, max_iter=1000).fit(scaled, classes)
    np.testing.assert_allclose(ours.weights, theirs.coef_, atol=1e-3)
    np.testing.assert_allclose(
        ours.predict_shares(ROWS)[:, 0], theirs.predict_proba(scaled)[:, 1], atol=1e-3
    )


def test_the_fit_of_three_classes_has_the_right_shares() -> None:
    classes = drawn_classes(3)
    model = fit_linear(ROWS, classes, count=3, ridge=0.01)
    shares = model.predict_shares(ROWS)
    np.testing.assert_allclose(shares.sum(1), 1)
    # A fitted bias makes the mean probability of a class its frequency.
    for one in range(3):
        assert shares[:, one].mean() == pytest.approx(classes.count(one) / 300, abs=1e-3)


def test_weights_of_rows_count_like_repeated_rows() -> None:
    classes = drawn_classes(2)
    twice = np.ones(300)
    twice[:100] = 2
    weighted = fit_linear(ROWS, classes, count=1, ridge=1.0, weights=twice)
    mean, scale = weighted.mean, weighted.scale
    rows = (np.vstack([ROWS, ROWS[:100]]) - mean) / scale
    repeated = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000).fit(
        rows, classes + classes[:100]
    )
    np.testing.assert_allclose(weighted.weights, repeated.coef_, atol=1e-3)


def test_a_class_without_a_row_does_not_break_the_fit() -> None:
    shares = fit_linear(ROWS, drawn_classes(2), count=3, ridge=10.0).predict_shares(ROWS)
    assert np.isfinite(shares).all()
    assert shares[:, 2].max() < 0.05


def test_weights_that_lack_a_tensor_or_have_another_shape_are_refused() -> None:
    tensors = tensors_of(fit_linear(ROWS, drawn_classes(2), count=1, ridge=1.0))
    with pytest.raises(ModelError, match="lack 'bias'"):
        LinearModel.of_tensors({name: one for name, one in tensors.items() if name != "bias"})
    with pytest.raises(ModelError, match="do not fit each other"):
        LinearModel.of_tensors(tensors | {"mean": np.zeros(2, np.float32)})


# Cues


def cue(name: str, question: str, *sentences: str) -> float:
    return float(measure_cues(question, sentences)[FEATURES.index(name)])


def test_the_cues_have_the_shape_that_their_names_say() -> None:
    assert measure_cues("Is it safe?", ["It is."]).shape == (len(FEATURES),)
    assert np.isfinite(measure_cues("", [])).all()
    assert len(set(FEATURES)) == len(FEATURES)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("null finding", "There was no significant difference between the groups."),
        ("null finding", "Aspirin did not reduce mortality."),
        ("benefit", "The drug was effective and well tolerated."),
        ("harm", "Toxicity was frequent."),
        ("hedge", "It may help some patients."),
        ("doubt", "The role of surgery remains unclear."),
        ("p small", "Survival was longer (p<0.001)."),
        ("p large", "The groups were alike (p = 0.42)."),
    ],
)
def test_a_sentence_bears_its_cue(name: str, sentence: str) -> None:
    assert CUES[name].search(sentence)
    assert cue(f"{name}, first", "Does aspirin help?", sentence) == 1.0


def test_a_small_p_is_not_a_large_one() -> None:
    assert not CUES["p large"].search("Survival was longer (p=0.01).")
    assert not CUES["p small"].search("The groups were alike (p=0.3).")


def test_a_sentence_about_the_question_weighs_more_than_another() -> None:
    about, beside = "Aspirin does not prevent stroke.", "The weather was not considered."
    asked = "Does aspirin prevent stroke?"
    plain = "Nothing else was measured here at all, in anybody or anywhere."
    assert cue("negation, mean", asked, about, plain) > cue("negation, mean", asked, beside, plain)
    assert cue("negation, best", asked, plain, about) == 1.0


def test_what_is_asked_crosses_what_is_said() -> None:
    name = "asks for benefit x null finding"
    assert ASKED["asks for benefit"].search("Is aspirin effective?")
    assert cue(name, "Is aspirin effective?", "It had no significant effect.") > 0.9
    assert cue(name, "Is aspirin a drug?", "It had no significant effect.") == 0.0


# Supports


def shelve(folder: Path, name: str, features: tuple[str, ...], model: LinearModel) -> ShelvedExpert:
    folder.mkdir()
    write_safetensors(tensors_of(model), folder / WEIGHTS)
    card = ExpertCard(
        name=name,
        question="?",
        family="linear",
        replaces="a rule",
        languages=("en",),
        made="osler experts train",
        seed=0,
        date="2026-01-02",
        split="0" * 64,
        weights=hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest(),
        features=features,
    )
    (folder / CARD).write_text(render_card(card), encoding="utf-8")
    return open_expert(name, folder)


def cue_model() -> LinearModel:
    """No where the first sentence has a null finding, else yes; maybe hardly ever."""
    weights = np.zeros((3, len(FEATURES)))
    at = FEATURES.index("null finding, first")
    weights[0, at], weights[1, at] = -3.0, 3.0
    zeros = np.zeros(len(FEATURES))
    return LinearModel(zeros, zeros + 1, weights, np.array([1.0, 0.0, -2.0]))


def test_verdicts_are_shares_and_maybe_can_be_left_out(tmp_path: Path) -> None:
    expert = SupportsExpert(shelve(tmp_path / "s", "supports", FEATURES, cue_model()))
    three = expert.judge_evidence("Does it help?", ["It did not help."])
    two = expert.judge_evidence("Does it help?", ["It did not help."], maybe=False)
    assert sum(three.values()) == pytest.approx(1)
    assert sum(two.values()) == pytest.approx(1)
    assert max(three, key=lambda verdict: three[verdict]) == "no"
    assert list(two) == ["yes", "no"]
    assert two["no"] / two["yes"] == pytest.approx(three["no"] / three["yes"])
    assert expert.judge_evidence("Does it help?", ["It helped."])["yes"] > 0.5


def test_an_expert_of_other_features_is_refused(tmp_path: Path) -> None:
    shelved = shelve(tmp_path / "s", "supports", (*FEATURES[:-1], "other"), cue_model())
    with pytest.raises(ModelError, match="other features than this version computes"):
        SupportsExpert(shelved)


# Fuse


def passage(id: int, text: str, title: str = "") -> Passage:
    return Passage(f"web:d{id}#0", text, "web", title)


def test_candidates_bear_both_rankings_and_their_own_words() -> None:
    passages = [passage(1, "Gout is treated."), passage(2, "Rest.", "Gout"), passage(3, "Tea.")]
    rows = measure_candidates(
        [1, 2, 3], passages, [(2, 0.8), (3, 0.5)], [(1, 7.0)], {"gout": 3.0, "treated": 1.0}
    )
    assert rows.shape == (3, len(FUSED))
    columns = {name: rows[:, at].tolist() for at, name in enumerate(FUSED)}
    # A passage that the vectors did not find has at most the cosine of the last one found.
    assert columns["cosine"] == [0.5, 0.8, 0.5]
    assert columns["found by vector"] == [0.0, 1.0, 1.0]
    assert columns["reciprocal rank by vector"] == pytest.approx([0.0, 10 / 11, 10 / 12])
    assert columns["reciprocal rank by words"] == pytest.approx([10 / 11, 0.0, 0.0])
    assert columns["coverage"] == [1.0, 0.75, 0.0]
    assert columns["coverage by heading"] == [0.0, 0.75, 0.0]
    assert columns["coverage below the best"] == [0.0, -0.25, -1.0]


def test_no_candidates_are_no_rows() -> None:
    assert measure_candidates([], [], [], [], {}).shape == (0, len(FUSED))
