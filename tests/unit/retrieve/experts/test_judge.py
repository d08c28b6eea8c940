"""`judge` as it runs: question and sentence read together by the packaged encoder, no torch."""

import hashlib
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from expert_folders import write_safetensors
from hypothesis import given
from hypothesis import strategies as st

from osler.errors import ModelError
from osler.kb.encoders.base import WordPieces, open_session
from osler.kb.encoders.minilm import DIMENSION, read_safetensors
from osler.llm.core.cache import cache_dir
from osler.llm.local.weights import MINILM, MINILM_TOKENIZER, locate_weights
from osler.retrieve.asked import QuestionReader
from osler.retrieve.experts import judge
from osler.retrieve.experts.cards import (
    BASE,
    CARD,
    WEIGHTS,
    ExpertCard,
    ShelvedExpert,
    open_expert,
    render_card,
)
from osler.retrieve.experts.judge import (
    HEADING,
    NEIGHBOUR,
    QUESTION,
    SENTENCE,
    JudgedText,
    JudgeExpert,
    JudgeRelevance,
    read_judged,
)
from osler.retrieve.experts.pair_graph import (
    merge_deltas,
    pack_delta,
    pair_graph,
    run_pairs,
    unpack_deltas,
)
from osler.text import one_line

KEY = "encoder.layer.5.output.dense.weight"
ASKED = "What is scurvy?"
TEXTS = [JudgedText("Scurvy is a lack of vitamin C."), JudgedText("Tea is a drink.", "Tea")]
LINES = [one.to_line() for one in TEXTS]


def some_deltas(size: float = 0.005) -> dict[str, np.ndarray[Any, Any]]:
    """The change of one matrix, and a head."""
    chance = np.random.default_rng(2)
    change = (chance.normal(size=(DIMENSION, 4 * DIMENSION)) * size).astype(np.float32)
    return {
        **pack_delta(KEY, change),
        "head.weight": (chance.normal(size=(1, 2 * DIMENSION)) * 0.2).astype(np.float16),
        "head.bias": np.array([0.25], np.float16),
    }


def shelve(folder: Path, tensors: Mapping[str, Any], **changes: object) -> ShelvedExpert:
    folder.mkdir(parents=True)
    write_safetensors(tensors, folder / WEIGHTS)
    card = ExpertCard(
        name="judge",
        question="Does it answer?",
        family="pair",
        replaces="cosine",
        languages=("en",),
        made="osler experts train judge",
        seed=0,
        date="2026-01-02",
        split="0" * 64,
        base=BASE,
        weights=hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest(),
    )
    (folder / CARD).write_text(render_card(card.model_copy(update=changes)), encoding="utf-8")
    return open_expert("judge", folder)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real weights, and room for graphs that no later run should find."""
    folder = tmp_path_factory.mktemp("cache")
    for name in (MINILM.name, MINILM_TOKENIZER.name):
        for suffix in ("", ".verified"):
            (folder / (name + suffix)).symlink_to(cache_dir() / (name + suffix))
    return folder


@pytest.fixture(scope="module")
def expert(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> JudgeExpert:
    folder = tmp_path_factory.mktemp("expert") / "judge"
    return JudgeExpert(shelve(folder, some_deltas()), threads=1, cache=cache)


@pytest.fixture(scope="module")
def words() -> WordPieces:
    return WordPieces(locate_weights(MINILM_TOKENIZER))


# What is read


def test_question_heading_sentence_and_neighbours_stand_in_their_order(words: WordPieces) -> None:
    text = JudgedText("Give iron.", "Anaemia", "It is common.", "Wait a month.")
    parts = ("What helps?", "Anaemia: Give iron.", "It is common.", "Wait a month.")
    asked, said, before, after = ((*words.piece_ids(part), words.last) for part in parts)
    read = read_judged(words, "What helps?", text)
    assert read.ids == (words.first, *asked, *said, *before, *after)
    first = (0,) * (1 + len(asked))
    assert read.segments == first + (1,) * len(said) + (0,) * (len(before) + len(after))


def test_long_parts_are_cut_where_they_matter_least(words: WordPieces) -> None:
    text = JudgedText(
        "cough " * 900, "rash " * 900, "ache " * 900 + "fever", "itch " + "ache " * 900
    )
    read = read_judged(words, "fever " * 900, text)
    assert len(read.ids) == len(read.segments) == QUESTION + HEADING + SENTENCE + 2 * NEIGHBOUR + 5
    (fever,), (itch,) = words.piece_ids("fever"), words.piece_ids("itch")[:1]
    assert read.ids.count(fever) == QUESTION + 1, "of what stands before the end is kept"
    assert itch in read.ids, "of what stands after the beginning is kept"


def test_of_a_long_heading_the_title_and_the_last_levels_are_read() -> None:
    assert JudgedText("x", "Book > Part > Chapter > Dose").short_heading == "Book > Chapter > Dose"
    assert JudgedText("x", "Book > Dose").short_heading == "Book > Dose"
    assert JudgedText("x", "Gout").short_heading == "Gout"


PART = st.text(max_size=30) | st.just("a\x1eb\nc")


@given(PART, PART, PART, PART)
def test_a_line_gives_back_the_text(sentence: str, heading: str, before: str, after: str) -> None:
    line = JudgedText(sentence, heading, before, after).to_line()
    read = (one_line(one) for one in (sentence, heading, before, after))
    assert JudgedText.of_line(line) == JudgedText(*read)
    assert "\n" not in line


def test_a_line_without_parts_is_a_sentence_alone() -> None:
    assert JudgedText.of_line("Tea is a drink.") == JudgedText("Tea is a drink.")


# What it says


def test_a_score_depends_on_the_question_and_not_on_the_other_texts(expert: JudgeExpert) -> None:
    both = expert.score_lines(ASKED, LINES)
    assert len(set(both)) == 2
    assert expert.score_lines(ASKED, LINES[1:]) == both[1:]
    assert expert.score_lines("What is tea?", LINES) != both
    assert expert.score_lines(ASKED, []) == ()


def test_two_threads_give_the_same(expert: JudgeExpert, tmp_path: Path, cache: Path) -> None:
    two = JudgeExpert(shelve(tmp_path / "judge", some_deltas()), threads=2, cache=cache)
    assert two.score_lines(ASKED, LINES) == expert.score_lines(ASKED, LINES)


async def test_the_question_is_read_with_its_other_names(expert: JudgeExpert) -> None:
    reader = QuestionReader()
    found = await JudgeRelevance(expert, reader).relevance("Hello, can I take Advil?", LINES)
    full = reader.read("can I take Advil?").full
    assert "ibuprofen" in full
    assert found == expert.score_lines(full, LINES)
    assert await JudgeRelevance(expert).relevance(ASKED, LINES) == expert.score_lines(ASKED, LINES)


async def test_a_question_in_a_language_that_it_does_not_know_gets_no_order(
    expert: JudgeExpert,
) -> None:
    assert await JudgeRelevance(expert).relevance("坏血病是什么？", LINES) == (0.0, 0.0)
    assert await JudgeRelevance(expert).relevance(ASKED, []) == ()


# Its weights


def test_the_deltas_are_added_to_the_encoder_s_matrices() -> None:
    base, deltas = read_safetensors(locate_weights(MINILM)), some_deltas()
    merged = merge_deltas(base, deltas)
    np.testing.assert_allclose(merged[KEY] - base[KEY], unpack_deltas(deltas)[KEY], atol=1e-6)
    untouched = "encoder.layer.0.output.dense.weight"
    assert merged[untouched] is base[untouched]


@pytest.mark.parametrize(
    "wrong",
    [
        pack_delta("encoder.layer.9.output.dense.weight", np.ones((8, 8), np.float32)),
        pack_delta(KEY, np.ones((8, 8), np.float32)),
    ],
)
def test_deltas_of_another_encoder_are_refused(wrong: dict[str, Any]) -> None:
    base = read_safetensors(locate_weights(MINILM))
    with pytest.raises(ModelError, match="does not fit the encoder"):
        merge_deltas(base, {**some_deltas(), **wrong})


def test_8_bits_stay_near_the_exact_logits(words: WordPieces) -> None:
    base = read_safetensors(locate_weights(MINILM))
    pairs = [read_judged(words, "What is tea?", one) for one in TEXTS]
    exact, small = (
        run_pairs(open_session(pair_graph(base, some_deltas(), exact=exact), 1), pairs)
        for exact in (True, False)
    )
    assert small == pytest.approx(exact, abs=0.3)
    assert small != exact


def test_a_graph_that_strays_in_8_bits_is_not_kept(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge, "_MOST_APART", 0.0)
    shelved = shelve(tmp_path / "judge", some_deltas(0.006))
    with pytest.raises(ModelError, match="strays from the exact one"):
        JudgeExpert(shelved, threads=1, cache=cache)
    assert not list(cache.glob(f"*{shelved.card.fingerprint[:12]}*"))


def test_another_family_is_refused(tmp_path: Path, cache: Path) -> None:
    shelved = shelve(tmp_path / "judge", some_deltas(), family="linear")
    with pytest.raises(ModelError, match="not a pair model"):
        JudgeExpert(shelved, cache=cache)


def test_running_an_expert_needs_no_torch() -> None:
    code = (
        "import sys, osler.retrieve.experts.judge, osler.retrieve.experts.supporting\n"
        "sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: S603
