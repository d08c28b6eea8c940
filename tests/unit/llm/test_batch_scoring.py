"""Scoring in batches on the real weights, held to forced decoding, which needs only the server."""

import threading
from pathlib import Path
from typing import Any

import pytest

from osler.errors import ModelError, ModelMissing
from osler.llm.core.base import Message, Sampling
from osler.llm.local import batch_scoring, c_functions
from osler.llm.local.batch_scoring import BatchScorer, CallStopped, TextScores, Tokens
from osler.llm.local.c_functions import LayoutChanged, LogitContext
from osler.llm.local.engine import CoreWatch
from osler.llm.local.gguf_files import default_gguf
from osler.llm.local.model import ForcedScorer, LlamaCpp

pytestmark = pytest.mark.model

CONTEXT = [Message("user", "The heart pumps blood. " * 8 + "What does the heart do?")]
TEXTS = ("It pumps blood.", "It pumps bile.", "It", "首选肌内注射肾上腺素。", "It pumps blood.")


@pytest.fixture(scope="module")
def model() -> LlamaCpp:
    try:
        return LlamaCpp(default_gguf(), name="packaged", context=1024)
    except ModelMissing as error:
        pytest.skip(f"the packaged model is not there: {error}")


@pytest.fixture(scope="module")
def prefix(model: LlamaCpp) -> list[int]:
    prompt = model._engine.apply_template(CONTEXT)
    return model._tokenise_text(prompt, begins=True, special=True)


@pytest.fixture(scope="module")
def texts(model: LlamaCpp) -> list[Tokens]:
    return [tuple(model._tokenise_text(text)) for text in TEXTS]


@pytest.fixture
def scorer(model: LlamaCpp) -> BatchScorer:
    found = model._engine.batch_scorer
    assert found is not None
    return found


def weigh(scorer: BatchScorer, prefix: list[int], texts: list[Tokens]) -> TextScores:
    return scorer.score(prefix, texts, threading.Event(), threads=1)


def assert_close(some: TextScores, others: TextScores) -> None:
    """Within the noise of a prefix that was read in other batches."""
    for one, other in zip(some.texts, others.texts, strict=True):
        assert one == pytest.approx(other, abs=0.5)


def test_a_batch_agrees_with_forced_decoding(
    model: LlamaCpp, scorer: BatchScorer, prefix: list[int], texts: list[Tokens]
) -> None:
    """Within the engine's own noise: 0.5 nats a token at most, 0.15 in the mean."""
    (plain,) = model._tokenise_text("a")
    oracle = ForcedScorer(model._engine, 1, threading.Event(), model._pieces, plain)
    forced = oracle.score(prefix, texts)
    batch = weigh(scorer, prefix, texts)
    pairs = [zip(*both, strict=True) for both in zip(forced.texts, batch.texts, strict=True)]
    apart = [abs(one - other) for pair in pairs for one, other in pair]
    assert max(apart) < 0.5
    assert sum(apart) / len(apart) < 0.15


def test_no_score_depends_on_the_other_texts_or_on_their_order(
    scorer: BatchScorer, prefix: list[int], texts: list[Tokens]
) -> None:
    together = weigh(scorer, prefix, texts).texts
    assert weigh(scorer, prefix, texts[::-1]).texts == together[::-1]
    assert together[0] == together[-1]
    # What two texts begin with alike is read once.
    assert together[0][:2] == together[1][:2]
    assert together[0][:1] == together[2]
    for text, scores in zip(texts, together, strict=True):
        (alone,) = weigh(scorer, prefix, [text]).texts
        assert alone == pytest.approx(scores, abs=0.2)


def test_more_texts_than_sequences_and_texts_longer_than_a_batch(
    scorer: BatchScorer, prefix: list[int], texts: list[Tokens]
) -> None:
    many = [(first, second) for first in range(300, 310) for second in range(400, 409)]
    long = tuple(prefix * 4)
    assert len(long) > batch_scoring._BATCH
    scored = weigh(scorer, prefix, [*many, long]).texts
    assert [len(one) for one in scored] == [2] * len(many) + [len(long)]
    assert scored[7] == pytest.approx(weigh(scorer, prefix, [many[7]]).texts[0], abs=0.5)


def test_prefixes_stay_cached_while_calls_take_turns(
    scorer: BatchScorer, prefix: list[int], texts: list[Tokens]
) -> None:
    others = [[*prefix[:20], *range(500 + i, 540 + i)] for i in range(3)]
    weigh(scorer, prefix, texts)
    before = [weigh(scorer, other, texts) for other in others]
    for other, scored in zip(others, before, strict=True):
        again = weigh(scorer, other, texts)
        assert (again.cached, again.texts) == (len(other), scored.texts)
    assert weigh(scorer, prefix, texts).cached == len(prefix)
    assert weigh(scorer, [*prefix, 9, 10], texts).cached == len(prefix)


def test_a_small_cache_forgets_and_grows(
    model: LlamaCpp, prefix: list[int], texts: list[Tokens], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_scoring, "_CELLS", 256)
    small = BatchScorer(model.path, context=1024)
    words = [[start, *prefix, *prefix[:40]] for start in (300, 301, 302)]
    exact = [weigh(small, one, texts) for one in words]
    assert sum(len(one.tokens) for one in small._prefixes) <= 256 == small._context.cells
    for one, scored in zip(words, exact, strict=True):
        assert_close(weigh(small, one, texts), scored)
    longer = weigh(small, prefix * 5, texts)
    assert small._context.cells > 256
    assert_close(weigh(small, prefix * 5, texts), longer)


def test_too_long_a_text_says_how_long(scorer: BatchScorer, prefix: list[int]) -> None:
    with pytest.raises(ModelError, match="exceed the available context size"):
        weigh(scorer, prefix, [tuple(range(300, 1300))])


def test_a_stop_ends_a_scoring_between_two_batches_and_the_next_is_right(
    scorer: BatchScorer, prefix: list[int], texts: list[Tokens], monkeypatch: pytest.MonkeyPatch
) -> None:
    exact, stop, read = weigh(scorer, prefix, texts), threading.Event(), LogitContext.read_places
    batches = []

    def stop_after_two(self: LogitContext, places: Any) -> Any:
        batches.append(len(places))
        if len(batches) == 2:
            stop.set()
        return read(self, places)

    with monkeypatch.context() as patched:
        patched.setattr(LogitContext, "read_places", stop_after_two)
        with pytest.raises(CallStopped):
            scorer.score([*prefix, *range(300, 800)], texts, stop, threads=1)
    assert len(batches) == 2
    again = weigh(scorer, prefix, texts)
    assert again.cached >= len(prefix) - 1
    assert_close(again, exact)


async def test_what_a_conversation_holds_is_scored_there_where_that_is_quicker(
    model: LlamaCpp, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced = []
    score = ForcedScorer.score

    def noted(self: ForcedScorer, prefix: list[int], texts: list[Tokens]) -> TextScores:
        forced.append(texts)
        return score(self, prefix, texts)

    monkeypatch.setattr(ForcedScorer, "score", noted)
    held = [Message("user", "count the beats " * 100)]
    await model.complete(held, Sampling(max_tokens=2))
    await model.score(held, "It beats.")
    assert len(forced) == 1
    await model.score(CONTEXT, "It beats.")
    assert len(forced) == 1


def test_another_layout_is_refused_before_anything_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    library = c_functions.open_library()
    monkeypatch.setattr(c_functions, "_SIZES", (512, 2048, 512, 2))
    with pytest.raises(LayoutChanged, match="other parameters"):
        c_functions._context_parameters(library, (1, 1, 1, 1))
    monkeypatch.undo()
    monkeypatch.setattr(c_functions, "_FLAGS", b"\x07\x07\x07\x07\x07\x07")
    with pytest.raises(LayoutChanged, match="other parameters"):
        c_functions._context_parameters(library, (1, 1, 1, 1))


async def test_where_the_layout_changed_texts_are_scored_step_by_step_and_it_is_said(
    model: LlamaCpp, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, *, context: int) -> BatchScorer:
        raise LayoutChanged("the engine's library has changed")

    monkeypatch.setattr("osler.llm.local.engine.BatchScorer", refuse)
    other = LlamaCpp(model.path, name="other", context=512)
    with pytest.warns(RuntimeWarning, match="other scores one token a step"):
        stepped = await other.score("The heart pumps", " blood")
    batched = await model.score("The heart pumps", " blood")
    pairs = zip(stepped.tokens, batched.tokens, strict=True)
    assert all(one.logprob == pytest.approx(other.logprob, abs=0.5) for one, other in pairs)
    assert (await other.score("The heart pumps", " bile")).tokens


def test_cores_that_others_use_are_not_free(monkeypatch: pytest.MonkeyPatch) -> None:
    from osler.llm.local import engine

    looks = iter([engine._Look(0, 0, 0), engine._Look(1, 0.5, 1.4), engine._Look(2, 0.5, 2.4)])
    monkeypatch.setattr(engine, "_look", lambda: next(looks, None))
    watch = CoreWatch()
    assert watch.count_free() == 2, "half a core idle, 1.4 are ours"
    assert watch.count_free() == 1, "no core idle, one is ours"
    assert watch.count_free() == 1, "no look, no news"
