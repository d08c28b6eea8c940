"""Encoders by transformers, on tiny random BERTs; the oracle is the model's own forward pass."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_models import save_tiny_bert, tiny_word_pieces

from osler.errors import ModelError, ModelMissing
from osler.kb.base import KnowledgeBase
from osler.kb.encoders.hub import LONGEST_QUERY, EncoderSide, HubEncoder, Pooling, medcpt_encoder
from osler.kb.search.base import unit_problem

pytestmark = pytest.mark.torch

TEXTS = [
    "Oral iron treats anaemia.",
    "维生素C即抗坏血酸。",
    "",
    "Adrenaline treats anaphylaxis. " * 40,
]
BOTH = frozenset({"en", "zh"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_bert(tmp_path_factory.mktemp("bert") / "query")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_bert(tmp_path_factory.mktemp("bert") / "article", seed=1)


def encoder(folder: Path, pooling: Pooling = "mean", **more: Any) -> HubEncoder:
    side = EncoderSide(folder, **{"longest": 128, **more})
    return HubEncoder(
        side, side, pooling=pooling, languages=frozenset({"en"}), device="cpu", batch=2
    )


def by_hand(folder: Path, *columns: str, longest: int = 128) -> Any:
    """The hidden states of one text (or pair) by itself, without padding."""
    import torch
    import transformers

    model = transformers.AutoModel.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    inputs = tokenizer(*columns, truncation=True, max_length=longest, return_tensors="pt")
    with torch.no_grad():
        return model.eval()(**inputs).last_hidden_state[0].numpy()


def unit(vector: Any) -> Any:
    return vector / np.linalg.norm(vector)


@pytest.mark.parametrize("pooling", ["cls", "mean", "last"])
def test_a_text_s_vector_is_its_pooled_states_whatever_it_is_encoded_with(
    folder: Path, pooling: Pooling
) -> None:
    pools = {"cls": lambda s: s[0], "mean": lambda s: s.mean(axis=0), "last": lambda s: s[-1]}
    vectors = encoder(folder, pooling).encode(TEXTS, kind="passage")
    assert unit_problem(vectors, (len(TEXTS), 16)) == ""
    for text, vector in zip(TEXTS, vectors, strict=True):
        assert vector == pytest.approx(unit(pools[pooling](by_hand(folder, text))), abs=1e-5)


def test_a_prefix_stands_before_each_text(folder: Path) -> None:
    prefixed = encoder(folder, prefix="query: ").encode(["iron"], kind="query")
    plain = encoder(folder).encode(["query: iron"], kind="query")
    assert prefixed == pytest.approx(plain, abs=1e-6)


def test_medcpt_s_shape_reads_questions_and_articles_each_in_its_own_way(
    folder: Path, other: Path
) -> None:
    """The first token's vector; an article is the pair of title and abstract."""
    both = medcpt_encoder(folder, other, device="cpu")
    question, article = "What treats anaemia?", "Anaemia > Treatment\nOral iron.\nOnce a day."
    asked = both.encode([question], kind="query")[0]
    read = both.encode([article, "Oral iron."], kind="passage")
    assert asked == pytest.approx(unit(by_hand(folder, question)[0]), abs=1e-5)
    pair = by_hand(other, "Anaemia > Treatment", "Oral iron.\nOnce a day.")
    assert read[0] == pytest.approx(unit(pair[0]), abs=1e-5)
    assert read[1] == pytest.approx(unit(by_hand(other, "", "Oral iron.")[0]), abs=1e-5)
    assert both.languages == {"en"}


def test_a_long_question_is_cut_at_its_length(folder: Path, other: Path) -> None:
    long = "anaemia " * 100
    asked = medcpt_encoder(folder, other, device="cpu").encode([long], kind="query")[0]
    states = by_hand(folder, long, longest=LONGEST_QUERY)
    assert len(states) == LONGEST_QUERY
    assert asked == pytest.approx(unit(states[0]), abs=1e-5)


def test_the_identity_tells_all_that_the_vectors_depend_on(folder: Path, other: Path) -> None:
    kinds = [
        encoder(folder),
        encoder(other),
        encoder(folder, "cls"),
        encoder(folder, prefix="query: "),
        encoder(folder, longest=64),
        medcpt_encoder(folder, other, device="cpu"),
        medcpt_encoder(folder, other, device="cpu", dtype="bfloat16"),
    ]
    assert len({one.identity for one in kinds}) == len(kinds)
    assert encoder(folder).identity == kinds[0].identity


def test_hub_encoder_is_thread_safe(folder: Path) -> None:
    shared = encoder(folder)
    exact = shared.encode(TEXTS, kind="query")
    start = threading.Barrier(4)

    def one(_: int) -> Any:
        start.wait()
        return shared.encode(TEXTS, kind="query")

    with ThreadPoolExecutor(4) as pool:
        for vectors in pool.map(one, range(4)):
            assert vectors == pytest.approx(exact, abs=1e-6)


def test_no_texts_no_vectors(folder: Path) -> None:
    assert encoder(folder).encode([], kind="query").shape == (0, 16)


def test_a_knowledge_base_is_built_and_searched_with_it(folder: Path, tmp_path: Path) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text("# Anaemia\n\nOral iron.\n\n# Gout\n\nColchicine.\n", encoding="utf-8")
    chosen = encoder(folder)
    with KnowledgeBase.create(tmp_path / "kb") as kb:
        kb.add([notes], source="book")
        kb.build(chosen)
        (_, vector) = chosen.encode(["x", "Anaemia\nOral iron."], kind="passage")
        (best, score), *_ = kb.by_vector(vector, encoder=chosen.identity, k=1)
        assert best.text == "Oral iron."
        assert score == pytest.approx(1, abs=1e-4)


def test_two_models_of_other_widths_are_no_pair(folder: Path, tmp_path: Path) -> None:
    wide = save_tiny_bert(tmp_path / "wide", dimension=32)
    with pytest.raises(ModelError, match="they are not a pair"):
        medcpt_encoder(folder, wide, device="cpu")


def test_a_checkpoint_that_lacks_weights_is_refused(tmp_path: Path) -> None:
    """transformers would fill them with chance."""
    import safetensors.torch

    folder = save_tiny_bert(tmp_path / "lacking")
    file = folder / "model.safetensors"
    tensors = safetensors.torch.load_file(file)
    del tensors["encoder.layer.0.output.dense.weight"]
    safetensors.torch.save_file(tensors, file, {"format": "pt"})
    with pytest.raises(
        ModelMissing, match=r"lacks weights of a BertModel: .*output\.dense\.weight"
    ):
        encoder(folder)


def test_weights_that_give_no_finite_vector_are_an_error(tmp_path: Path) -> None:
    import safetensors.torch

    folder = save_tiny_bert(tmp_path / "broken")
    file = folder / "model.safetensors"
    tensors = safetensors.torch.load_file(file)
    tensors["embeddings.LayerNorm.weight"] *= float("nan")
    safetensors.torch.save_file(tensors, file, {"format": "pt"})
    with pytest.raises(ModelError, match="not finite"):
        encoder(folder).encode(["iron"], kind="query")


def test_the_tiny_tokenizer_puts_pairs_between_marks() -> None:
    pair = tiny_word_pieces(["iron treats anaemia"])("iron", "anaemia")
    assert sorted(set(pair["token_type_ids"])) == [0, 1]
