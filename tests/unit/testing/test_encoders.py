"""The encoder for tests keeps the contract of all encoders."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from osler.kb.encoders.base import Encoder
from osler_lab.testing.scripted import HashingEncoder

ENCODER: Encoder = HashingEncoder()


@given(st.lists(st.text()))
def test_every_text_has_a_vector_of_length_one(texts: list[str]) -> None:
    vectors = ENCODER.encode(texts, kind="passage")
    assert vectors.shape == (len(texts), ENCODER.dimension)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


@given(st.text(), st.text())
def test_a_vector_does_not_depend_on_neighbours_or_kind(text: str, other: str) -> None:
    (alone,) = ENCODER.encode([text], kind="query")
    _, beside = ENCODER.encode([other, text], kind="passage")
    assert np.array_equal(alone, beside)


def test_texts_that_share_words_are_nearer() -> None:
    iron, dose, train, treat_zh, iron_zh = ENCODER.encode(
        ["Iron deficiency", "the dose of iron", "a late train", "治疗贫血", "缺铁性贫血"],
        kind="passage",
    )
    assert iron @ dose > iron @ train
    assert treat_zh @ iron_zh > treat_zh @ train
