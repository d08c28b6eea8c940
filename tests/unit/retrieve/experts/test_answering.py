"""`answers` as it runs: a pair model over the packaged encoder, without torch."""

import hashlib
import math
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from osler.errors import ModelError
from osler.kb.encoders.base import WordPieces, open_session
from osler.kb.encoders.minilm import DIMENSION, read_safetensors
from osler.llm.core.cache import cache_dir
from osler.llm.local.weights import MINILM, MINILM_TOKENIZER, locate_weights
from osler.retrieve.experts import answering
from osler.retrieve.experts.answer_cues import CUES, measure_cues
from osler.retrieve.experts.answering import AnswersExpert, TextPair
from osler.retrieve.experts.cards import CARD, WEIGHTS, ExpertCard, render_card
from osler.retrieve.experts.packing import pack_delta, unpack_deltas
from osler.retrieve.experts.pair_graph import merge_deltas, pair_graph, run_pairs
from osler.retrieve.experts.pair_input import QUESTION_PIECES, read_pair
from osler.retrieve.experts.shelf import BASE, ShelvedExpert, open_expert
from osler.train.experts.linear import write_safetensors

KEY = "encoder.layer.5.output.dense.weight"


def some_deltas(size: float = 0.005) -> dict[str, np.ndarray[Any, Any]]:
    """The change of one matrix, a head, and linear models that read logits and the name."""
    chance = np.random.default_rng(2)
    change = (chance.normal(size=(DIMENSION, 4 * DIMENSION)) * size).astype(np.float32)
    models = {"joined.": [2.0, 1.0, 0.5, 0, 0], "cheap.": [4.0, 0.5, 0]}
    return {
        **pack_delta(KEY, change),
        "head.weight": (chance.normal(size=(1, 2 * DIMENSION)) * 0.2).astype(np.float16),
        "head.bias": np.array([0.25], np.float16),
        **{
            prefix + name: np.array(one, np.float32)
            for prefix, weights in models.items()
            for name, one in {
                "mean": [0.0] * len(weights),
                "scale": [1.0] * len(weights),
                "weights": [weights],
                "bias": [-1.0],
            }.items()
        },
    }


def shelve(folder: Path, tensors: Mapping[str, Any], **changes: object) -> ShelvedExpert:
    folder.mkdir(parents=True)
    write_safetensors(tensors, folder / WEIGHTS)
    card = ExpertCard(
        name="answers",
        question="Does this text answer?",
        family="pair",
        replaces="cosine",
        languages=("en",),
        made="osler experts train answers",
        seed=0,
        date="2026-01-02",
        split="0" * 64,
        base=BASE,
        weights=hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest(),
        parameters={"longest": 64},
    )
    (folder / CARD).write_text(render_card(card.model_copy(update=changes)), encoding="utf-8")
    return open_expert("answers", folder)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real weights, and room for graphs that no later run should find."""
    folder = tmp_path_factory.mktemp("cache")
    for name in (MINILM.name, MINILM_TOKENIZER.name):
        for suffix in ("", ".verified"):
            (folder / (name + suffix)).symlink_to(cache_dir() / (name + suffix))
    return folder


@pytest.fixture(scope="module")
def expert(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> AnswersExpert:
    folder = tmp_path_factory.mktemp("expert") / "answers"
    return AnswersExpert(shelve(folder, some_deltas()), threads=1, cache=cache)


TEXTS = [TextPair("Scurvy is a lack of vitamin C."), TextPair("Tea is a drink.", "Tea")]


def test_a_probability_is_made_of_the_logit_and_the_cues(expert: AnswersExpert) -> None:
    logits = expert.score_logits("What is scurvy?", TEXTS)
    cues = measure_cues("What is scurvy?", [one.titled for one in TEXTS])
    assert list(cues[:, CUES.index("named")]) == [1.0, 0.0]
    # A text without a passage around it is its own beginning.
    wanted = [
        1 / (1 + math.exp(-(3 * logit + named / 2 - 1)))
        for logit, (named, *_) in zip(logits, cues, strict=True)
    ]
    assert expert.judge_texts("What is scurvy?", TEXTS) == pytest.approx(wanted)
    assert len(set(wanted)) == 2
    assert expert.judge_texts("What is scurvy?", []) == []


def test_the_beginning_of_its_passage_speaks_for_a_sentence(expert: AnswersExpert) -> None:
    sentence, lead = TEXTS[0], "Vitamin C is given."
    alone, below = expert.score_logits("What is scurvy?", [sentence, TextPair(lead)])
    (share,) = expert.judge_texts("What is scurvy?", [TextPair(sentence.text, lead=lead)])
    assert share == pytest.approx(1 / (1 + math.exp(-(2 * alone + below + 0.5 - 1))))


def test_what_the_pair_model_does_not_read_stays_behind(tmp_path: Path, cache: Path) -> None:
    shelved = shelve(tmp_path / "answers", some_deltas())
    texts = [TextPair(f"Tea number {n} is a drink.") for n in range(5)] + TEXTS
    few = AnswersExpert(shelved, threads=1, cache=cache, most=3)
    first, every = (
        one.judge_texts("What is scurvy?", texts)
        for one in (few, AnswersExpert(shelved, threads=1, cache=cache))
    )
    read = {at for at, share in enumerate(first) if share == every[at]}
    assert {texts.index(TEXTS[0])} <= read
    least = min(first[at] for at in read)
    assert all(share <= least for at, share in enumerate(first) if at not in read)


def test_sentences_are_read_of_the_three_passages_that_begin_best(expert: AnswersExpert) -> None:
    leads = [f"Scurvy is number {n} of the diseases." for n in range(6)]
    texts = [TextPair(f"Sentence {n} says so.", lead=lead) for n, lead in enumerate(leads)]
    begun = expert.score_logits("What is scurvy?", [one.passage for one in texts])
    shares = expert.judge_texts("What is scurvy?", texts)
    best = sorted(range(6), key=lambda at: -begun[at])[:3]
    alone = [expert.judge_texts("What is scurvy?", [texts[at]])[0] for at in best]
    assert [shares[at] for at in best] == pytest.approx(alone)
    assert max(shares[at] for at in range(6) if at not in best) <= min(alone)


def test_two_threads_give_the_same(expert: AnswersExpert, tmp_path: Path, cache: Path) -> None:
    two = AnswersExpert(shelve(tmp_path / "answers", some_deltas()), threads=2, cache=cache)
    assert two.score_logits("What is tea?", TEXTS) == expert.score_logits("What is tea?", TEXTS)


def test_it_judges_short_questions_in_its_language(expert: AnswersExpert) -> None:
    assert expert.can_judge("What is scurvy?")
    assert not expert.can_judge("坏血病是什么？")
    assert not expert.can_judge("I have had this pain for years now. " * 10)
    assert not expert.can_judge("I feel tired. Is it scurvy?")


def test_a_score_depends_on_the_question_and_not_on_the_other_texts(expert: AnswersExpert) -> None:
    both = expert.score_logits("What is scurvy?", TEXTS)
    assert expert.score_logits("What is scurvy?", TEXTS[1:]) == both[1:]
    assert expert.score_logits("What is tea?", TEXTS) != both


async def test_titles_may_stand_in_the_text(expert: AnswersExpert) -> None:
    (inside,) = await expert.relevance("What is tea?", ["Tea. Tea is a drink."])
    assert [inside] == pytest.approx(expert.judge_texts("What is tea?", TEXTS[1:]))


async def test_a_question_in_a_language_that_it_does_not_know_gets_no_order(
    expert: AnswersExpert,
) -> None:
    assert await expert.relevance("坏血病是什么？", ["维生素C缺乏", "茶"]) == (0.0, 0.0)
    assert await expert.relevance("What is tea?", []) == ()


async def test_a_letter_that_it_would_have_to_cut_gets_no_order(expert: AnswersExpert) -> None:
    letter = "I have had this pain for years now. " * 10 + "What is scurvy?"
    assert await expert.relevance(letter, ["Scurvy is a lack.", "Tea."]) == (0.0, 0.0)
    assert len(set(await expert.relevance("What is scurvy?", ["Scurvy is a lack.", "Tea."]))) == 2


def test_the_deltas_are_added_to_the_encoder_s_matrices() -> None:
    base, deltas = read_safetensors(locate_weights(MINILM)), some_deltas()
    merged = merge_deltas(base, deltas)
    np.testing.assert_allclose(merged[KEY] - base[KEY], unpack_deltas(deltas)[KEY], atol=1e-6)
    assert (
        merged["encoder.layer.0.output.dense.weight"] is base["encoder.layer.0.output.dense.weight"]
    )


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


def test_8_bits_stay_near_the_exact_logits() -> None:
    base, words = (
        read_safetensors(locate_weights(MINILM)),
        WordPieces(locate_weights(MINILM_TOKENIZER)),
    )
    pairs = [read_pair(words, "What is tea?", one.text, one.title) for one in TEXTS]
    exact, small = (
        run_pairs(open_session(pair_graph(base, some_deltas(), exact=exact), 1), pairs)
        for exact in (True, False)
    )
    assert small == pytest.approx(exact, abs=0.3)
    assert small != exact


def test_a_graph_that_strays_in_8_bits_is_not_kept(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answering, "_MOST_APART", 0.0)
    shelved = shelve(tmp_path / "answers", some_deltas(0.006))
    with pytest.raises(ModelError, match="strays from the exact one"):
        AnswersExpert(shelved, threads=1, cache=cache)
    assert not list(cache.glob(f"*{shelved.card.fingerprint[:12]}*"))


def test_another_family_is_refused(tmp_path: Path, cache: Path) -> None:
    shelved = shelve(tmp_path / "answers", some_deltas(), family="linear")
    with pytest.raises(ModelError, match="no pair model"):
        AnswersExpert(shelved, cache=cache)


def test_long_questions_and_texts_lose_their_ends() -> None:
    words = WordPieces(locate_weights(MINILM_TOKENIZER))
    pair = read_pair(words, "fever " * 500, "cough " * 5_000, "Title", longest=128)
    assert len(pair.ids) == len(pair.segments) == 128
    assert pair.segments.index(1) == QUESTION_PIECES + 2
    assert (pair.ids[0], pair.ids[-1]) == (words.first, words.last)
    short = read_pair(words, "", "", longest=128)
    assert short.segments == (0, 0, 1)


def test_running_an_expert_needs_no_torch() -> None:
    code = (
        "import sys, osler.retrieve.experts.answering, osler.retrieve.experts.searching,"
        " osler.retrieve.experts.supporting\n"
        "sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: S603


def test_the_packaged_expert_quotes_what_is_asked_and_not_only_its_subject() -> None:
    expert = AnswersExpert(open_expert("answers"), threads=1)
    lead = "Scurvy is caused by a lack of vitamin C. It is treated with vitamin C by mouth."
    texts = [TextPair(one, "Scurvy", lead) for one in lead.split(". ")]
    cause, treatment = expert.judge_quotes("How is scurvy treated?", texts)
    assert treatment > cause
    cause, treatment = expert.judge_quotes("What causes scurvy?", texts)
    assert cause > treatment


def test_weights_without_a_model_of_quotes_judge_them_as_texts(cache: Path, tmp_path: Path) -> None:
    expert = AnswersExpert(shelve(tmp_path / "own", some_deltas()), threads=1, cache=cache)
    asked = "What is scurvy?"
    assert expert.judge_quotes(asked, TEXTS) == expert.judge_texts(asked, TEXTS)
