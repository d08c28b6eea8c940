"""Linear experts: cues of evidence, and verdicts by them."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from expert_folders import write_safetensors
from numpy.typing import NDArray
from train_supports import tensors_of

from osler.errors import ModelError
from osler.retrieve.experts.cards import (
    CARD,
    WEIGHTS,
    ExpertCard,
    ShelvedExpert,
    open_expert,
    render_card,
)
from osler.retrieve.experts.cues import CUES, FEATURES, CuedSentence, measure_cues, score_conclusion
from osler.retrieve.experts.supporting import (
    MAYBE_SHARE,
    LinearModel,
    SupportsExpert,
    read_evidence,
)
from osler.retrieve.relevance import OverlapRelevance
from osler.types import Hit, Locator, Passage

# Cues


def read(*sentences: str, **known: bool) -> list[CuedSentence]:
    return [CuedSentence(one, 0.5, **known) for one in sentences]


def cue(name: str, question: str, *sentences: CuedSentence) -> float:
    return float(measure_cues(question, sentences)[FEATURES.index(name)])


def test_the_cues_have_the_shape_that_their_names_say() -> None:
    assert measure_cues("Is it safe?", read("It is.")).shape == (len(FEATURES),)
    assert measure_cues("", []).shape == (len(FEATURES),)
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
    assert cue(f"{name}, by relevance", "Does aspirin help?", *read(sentence)) == 1.0


def test_a_small_p_is_not_a_large_one() -> None:
    assert not CUES["p large"].search("Survival was longer (p=0.01).")
    assert not CUES["p small"].search("The groups were alike (p=0.3).")


def test_a_nearer_sentence_weighs_more() -> None:
    denies, other = "Aspirin does not prevent stroke.", "The weather was fine."
    near = [CuedSentence(denies, 0.9), CuedSentence(other, 0.3)]
    far = [CuedSentence(denies, 0.3), CuedSentence(other, 0.9)]
    assert cue("negation, by relevance", "Does it?", *near) > 0.9
    assert cue("negation, by relevance", "Does it?", *far) < 0.1


@pytest.mark.parametrize(
    "other",
    [
        "To determine whether aspirin prevents stroke.",
        "Patients were randomly assigned to 300 mg of aspirin.",
        "Stroke occurred in 12 of 300 patients (4%).",
    ],
)
def test_a_conclusion_reads_like_one_beside_aims_methods_and_figures(other: str) -> None:
    ending, beside = read("These results suggest that aspirin may help.", other)
    assert score_conclusion(ending) > score_conclusion(beside) + 1


def test_the_conclusion_is_the_first_document_s_and_a_label_decides() -> None:
    plain = "There was no benefit."
    labelled = CuedSentence(plain, 0.5, concludes=True)
    others = read("We conclude that it helps.", "Further studies are needed.", first=False)
    name = "negation, in the conclusion"
    assert cue(name, "Does it help?", labelled, *others) == 1.0
    assert cue(name, "Does it help?", *read(plain, first=False), *read(others[0].text)) == 0.0


@pytest.mark.parametrize(
    ("asked", "said", "name"),
    [
        ("Does it increase risk?", "The risk was higher.", "same direction"),
        ("Does it increase risk?", "The risk was reduced.", "opposite direction"),
        ("Does it increase risk?", "Risk did not differ.", "no change of direction"),
        ("Does aspirin help?", "There was no help from it.", "a word of the question is denied"),
    ],
)
def test_what_is_said_is_compared_with_what_is_asked(asked: str, said: str, name: str) -> None:
    names = [one for one in FEATURES if one.endswith("direction, by relevance")]
    found = {one.partition(",")[0]: cue(one, asked, *read(said)) for one in names}
    assert cue(f"{name}, by relevance", asked, *read(said)) == 1.0
    assert not any(value for one, value in found.items() if one != name)


# Supports


def shelve(
    folder: Path,
    name: str,
    features: tuple[str, ...],
    tensors: Mapping[str, NDArray[np.float32]],
    parameters: Mapping[str, float] = MappingProxyType({}),
) -> ShelvedExpert:
    folder.mkdir()
    write_safetensors(tensors, folder / WEIGHTS)
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
        parameters=dict(parameters),
    )
    (folder / CARD).write_text(render_card(card), encoding="utf-8")
    return open_expert(name, folder)


def cue_model() -> LinearModel:
    """No where there is a null finding, else yes."""
    zeros, weights = np.zeros(len(FEATURES)), np.zeros((1, len(FEATURES)))
    weights[0, FEATURES.index("null finding, by relevance")] = 6.0
    return LinearModel(zeros, zeros + 1, weights, np.array([-3.0]))


def test_weights_that_lack_a_tensor_or_have_another_shape_are_refused() -> None:
    tensors = tensors_of(cue_model())
    with pytest.raises(ModelError, match="lack 'bias'"):
        LinearModel.of_tensors({name: one for name, one in tensors.items() if name != "bias"})
    with pytest.raises(ModelError, match="do not fit each other"):
        LinearModel.of_tensors(tensors | {"mean": np.zeros(2, np.float32)})


def test_verdicts_are_shares_of_those_that_are_offered(tmp_path: Path) -> None:
    tensors, known = tensors_of(cue_model()), {MAYBE_SHARE: 0.2}
    expert = SupportsExpert(shelve(tmp_path / "s", "supports", FEATURES, tensors, known))
    three = expert.judge_evidence("Does it help?", read("It did not help."))
    two = expert.judge_evidence("Does it help?", read("It did not help."), maybe=False)
    assert list(three) == ["yes", "no", "maybe"]
    assert list(two) == ["yes", "no"]
    assert sum(three.values()) == pytest.approx(1)
    assert sum(two.values()) == pytest.approx(1)
    assert three["maybe"] == 0.2
    assert [expert.choose_verdict(one) for one in (three, two)] == ["no", "no"]
    assert expert.judge_evidence("Does it help?", read("It helped."))["yes"] > 0.5


async def test_evidence_is_read_with_its_document_and_its_conclusion() -> None:
    def hit(id: str, text: str, section: str = "") -> Hit:
        code = f"PMID:{id.partition('#')[0]}"
        passage = Passage(id, text, "research", "", Locator(section=section, code=code))
        return Hit(passage, 1.0, 1, "q", "research")

    inline = "RESULTS: Risk fell. CONCLUSIONS: It helps. It is safe."
    hits = [hit("1#0", inline), hit("2#0", "It fails.", "CONCLUSION"), hit("1#1", "It did help.")]
    found = await read_evidence("Does it help?", hits, OverlapRelevance())
    assert [(one.text.rpartition(": ")[2], one.first, one.concludes) for one in found] == [
        ("Risk fell.", True, False),
        ("It helps.", True, True),
        ("It is safe.", True, True),
        ("It fails.", False, True),
        ("It did help.", True, False),
    ]
    assert await read_evidence("Does it help?", [], OverlapRelevance()) == []


def test_an_expert_of_other_features_is_refused(tmp_path: Path) -> None:
    tensors = tensors_of(cue_model())
    shelved = shelve(tmp_path / "s", "supports", (*FEATURES[:-1], "other"), tensors)
    with pytest.raises(ModelError, match="other features than this version computes"):
        SupportsExpert(shelved)
