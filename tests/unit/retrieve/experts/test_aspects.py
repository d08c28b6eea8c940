"""What questions ask for, and what sentences are about."""

import numpy as np
import pytest

from osler.errors import ModelError
from osler.retrieve.experts.aspects import (
    BUCKETS,
    NAMES,
    AspectModel,
    find_asked_aspect,
    hash_words,
)


@pytest.mark.parametrize(
    ("question", "aspect"),
    [
        ("How is anaphylaxis treated?", "treatment"),
        ("What are the treatments for scurvy ?", "treatment"),
        ("What is (are) scurvy ?", "information"),
        ("What causes scurvy?", "causes"),
        ("What are the genetic changes related to Noonan syndrome ?", "causes"),
        ("Is Noonan syndrome inherited ?", "inheritance"),
        ("How many people are affected by Noonan syndrome ?", "frequency"),
        ("How to diagnose gout ?", "exams and tests"),
        ("What is the outlook for gout ?", "outlook"),
        ("How to prevent gout ?", "prevention"),
        ("Who is at risk for gout? ?", "susceptibility"),
        ("痛风如何治疗？", "treatment"),
        ("痛风有哪些症状？", "symptoms"),
        ("什么是痛风？", "information"),
    ],
)
def test_the_aspect_asked_is_read(question: str, aspect: str) -> None:
    assert find_asked_aspect(question) == aspect


@pytest.mark.parametrize(
    "question",
    [
        "Does screening improve the prognosis of hepatocellular carcinoma?",
        "Aripiprazole: a new risk factor for pathological gambling?",
        "What is the role of ferritin in anaemia?",
        "Which molecule is targeted by upadacitinib?",
    ],
)
def test_a_question_for_a_finding_asks_for_no_aspect(question: str) -> None:
    assert find_asked_aspect(question) == ""


def test_subjects_and_numbers_are_one_word_each() -> None:
    said = hash_words("Scurvy affects 12 sailors.", {"scurvy"})
    assert said == hash_words("Gout affects 700 sailors.", {"gout"})
    assert said != hash_words("Gout affects 700 sailors.", set())


def some_tensors() -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]]:
    """A model to which "drug" speaks of treatment, and "studied" of method."""
    words = np.full((BUCKETS, len(NAMES)), 128, np.uint8)
    for word, name in (("drug", "treatment"), ("studied", "method")):
        words[hash_words(word, ()), NAMES.index(name)] = 255
    step = np.full(len(NAMES), 0.2, np.float32)
    return {"words": words, "step": step, "start": np.zeros(len(NAMES), np.float32)}


def test_a_sentence_agrees_with_a_question_for_what_it_is_about() -> None:
    model = AspectModel.of_tensors(some_tensors())
    texts = ["drug", "studied", "sailors"]
    drug, studied, sailors = model.measure_agreement("How is scurvy treated?", texts)
    assert drug > 0.9 > sailors > studied
    drug, studied, sailors = model.measure_agreement("Does lemon help in scurvy?", texts)
    assert studied < 0.1 < sailors < drug
    assert len(model.measure_agreement("How is scurvy treated?", [])) == 0


def test_weights_of_another_shape_are_refused() -> None:
    tensors = some_tensors()
    with pytest.raises(ModelError, match="shapes"):
        AspectModel.of_tensors(tensors | {"words": tensors["words"][:, :3]})
    with pytest.raises(ModelError, match="lack 'step'"):
        AspectModel.of_tensors({name: one for name, one in tensors.items() if name != "step"})
