"""The embedded engine on its real weights: the facts that `llm/local/model.py` rests on."""

import asyncio
import threading
import time
from math import exp
from pathlib import Path
from typing import Any

import pytest
from waiting import AwaitableEvent

from osler.errors import ModelError, ModelMissing
from osler.llm.core.base import BatchLikelihood, LanguageModel, Message, Sampling
from osler.llm.core.grammar import Grammar, lit
from osler.llm.local.engine import _StreamedReply
from osler.llm.local.gguf_files import default_gguf
from osler.llm.local.model import ForcedScorer, LlamaCpp
from osler.methods.tcrag.actions import Move, action_grammar, parse_action

pytestmark = pytest.mark.model

ENGLISH = "Intramuscular adrenaline into the outer thigh is the first-line treatment."
CHINESE = "首选肌内注射肾上腺素。"
QUERY = [Message("user", "What is the first-line treatment of anaphylaxis?")]


@pytest.fixture(scope="module")
def model() -> LlamaCpp:
    try:
        path = default_gguf()
    except ModelMissing as error:
        pytest.skip(f"the packaged model is not there: {error}")
    return LlamaCpp(path, name="packaged", context=4096)


def test_embedded_model_completes_and_scores(model: LlamaCpp) -> None:
    assert isinstance(model, LanguageModel)
    assert isinstance(model, BatchLikelihood)


async def test_the_same_seed_gives_the_same_words(model: LlamaCpp) -> None:
    sampling = Sampling(max_tokens=24, seed=5)
    first = await model.complete(QUERY, sampling)
    again = await model.complete(QUERY, sampling)
    assert first.text == again.text
    assert first.text


@pytest.mark.parametrize("text", ["请介绍高血压。", "Describe hypertension."])
async def test_the_tokens_of_a_reply_are_its_text_with_offsets(model: LlamaCpp, text: str) -> None:
    reply = await model.complete([Message("user", text)], Sampling(max_tokens=16, temperature=0))
    assert {i for t in reply.tokens for i in range(t.start, t.end)} == set(range(len(reply.text)))
    assert all(reply.text[t.start : t.end] == t.text for t in reply.tokens)
    assert all(t.logprob <= 0 for t in reply.tokens)
    assert reply.finish == "length"


@pytest.mark.parametrize("text", [ENGLISH, CHINESE])
async def test_every_character_of_a_given_text_is_scored(model: LlamaCpp, text: str) -> None:
    scored = await model.score(QUERY, text)
    assert {i for t in scored.tokens for i in range(t.start, t.end)} == set(range(len(text)))
    assert all(t.logprob <= 0 for t in scored.tokens)
    assert scored.usage.scored_tokens == len(scored.tokens)


async def test_scoring_agrees_with_what_was_said_while_generating(model: LlamaCpp) -> None:
    """Greedy words, then scored in the same place: within the engine's own noise of 0.5 nats."""
    said = await model.complete(QUERY, Sampling(max_tokens=12, temperature=0))
    scored = await model.score(QUERY, said.text)
    by_start = {t.start: t.logprob for t in scored.tokens}
    differences = [abs(t.logprob - by_start[t.start]) for t in said.tokens if t.start in by_start]
    assert len(differences) >= 8
    assert max(differences) < 0.5


async def test_a_likely_text_scores_higher_than_an_unlikely_one(model: LlamaCpp) -> None:
    async def mean(text: str) -> float:
        tokens = (await model.score("The capital of France is", text)).tokens
        return sum(t.logprob for t in tokens) / len(tokens)

    assert await mean(" Paris") > await mean(" penicillin")


async def test_looked_up_log_probability_equals_the_forced_one(model: LlamaCpp) -> None:
    """Two ways to the same number: forced by logit bias, and found among the likeliest."""
    before = model._tokenise_text("The heart pumps")
    (token,) = model._tokenise_text(" blood")
    (plain,) = model._tokenise_text("a")
    scorer = ForcedScorer(model._engine, 1, threading.Event(), model._pieces, plain)
    forced = scorer.force_token(before, token)
    assert scorer.look_up_token(before, token) == pytest.approx(forced, abs=1e-4)
    assert 0 < exp(forced) < 1


async def test_a_grammar_holds_the_reply_to_one_action(model: LlamaCpp) -> None:
    moves, tools = {Move.TOOL_USE, Move.THOUGHT}, {"DOC_RAG", "KG_RAG"}
    rules = action_grammar(moves, tools, argument=True)
    for seed in range(4):
        reply = await model.complete(QUERY, Sampling(max_tokens=100, seed=seed, grammar=rules))
        parse_action(reply.text, tools=tools)
        assert reply.text.startswith(("Thought: ", "Tool_Use: "))


async def test_scoring_keeps_the_conversation_s_cached_prefix(model: LlamaCpp) -> None:
    long = [Message("system", "You are careful. " * 60), *QUERY]
    await model.complete(long, Sampling(max_tokens=4))
    await model.score("User_Query: something else\n", "Quite another text.")
    again = await model.complete(long, Sampling(max_tokens=4, seed=1))
    assert again.usage.cached_tokens > 0.9 * again.usage.prompt_tokens


class Broken(Grammar):
    """What no engine can read; a grammar of ours cannot be written so."""

    @property
    def gbnf(self) -> str:
        return "root ::= nowhere"


async def test_a_bad_grammar_is_an_error_not_free_text(model: LlamaCpp) -> None:
    with pytest.raises(ModelError):
        await model.complete(QUERY, Sampling(max_tokens=4, grammar=Broken("broken", lit(""))))


async def test_too_long_a_prompt_says_how_long(model: LlamaCpp) -> None:
    with pytest.raises(ModelError, match="exceeds the available context size"):
        await model.complete([Message("user", "heart " * 6000)], Sampling(max_tokens=4))


async def test_a_fresh_engine_scores_chinese_at_once(model: LlamaCpp) -> None:
    """It once waited for ever: no plain token had been seen to force in place of part of one."""
    fresh = LlamaCpp(model.path, name="fresh", context=512)
    scored = await asyncio.wait_for(fresh.score("抗坏血酸", "抗坏"), timeout=60)
    assert {(t.start, t.end) for t in scored.tokens} == {(0, 1), (1, 2)}


async def test_a_batch_reads_its_context_once_and_no_text_counts_on_the_others(
    model: LlamaCpp,
) -> None:
    context = [Message("user", "The heart pumps blood. " * 30 + "What does the heart do?")]
    texts = ["It pumps blood.", "It pumps bile.", CHINESE]
    batch = await model.score_all(context, texts)
    turned = await model.score_all(context, texts[::-1])
    for one, other in zip(batch, turned[::-1], strict=True):
        assert [t.logprob for t in one.tokens] == pytest.approx([t.logprob for t in other.tokens])
    # Texts that begin alike share what was said of their beginning.
    assert [t.logprob for t in batch[0].tokens[:2]] == [t.logprob for t in batch[1].tokens[:2]]
    for text, one in zip(texts, batch, strict=True):
        alone = await model.score(context, text)
        assert [(t.start, t.end) for t in alone.tokens] == [(t.start, t.end) for t in one.tokens]
        pairs = zip(alone.tokens, one.tokens, strict=True)
        assert max(abs(a.logprob - b.logprob) for a, b in pairs) < 0.5


async def test_a_reply_that_begins_inside_a_think_block_is_thought_until_it_ends(
    model: LlamaCpp,
) -> None:
    """As with templates that open the block themselves."""
    begun = [*QUERY, Message("assistant", "<think>\n")]
    reply = await model.complete(begun, Sampling(max_tokens=8, temperature=0))
    assert (reply.text, reply.tokens, reply.finish) == ("", (), "length")
    assert reply.thinking
    held = Sampling(max_tokens=8, grammar=Grammar("yes", lit("yes")))
    assert (await model.complete(begun, held)).text == "yes"


async def test_a_batch_of_nothing_is_nothing(model: LlamaCpp) -> None:
    assert await model.score_all("context", []) == ()


async def test_parallel_calls_share_one_engine_and_each_keeps_its_own_prefix(
    model: LlamaCpp,
) -> None:
    shared = LlamaCpp(model.path, name="shared", context=1024, slots=3)
    asked = [
        [Message("user", f"Say {word}. " + f"{word} " * 150)] for word in ("one", "two", "six")
    ]
    sampling = Sampling(max_tokens=4, temperature=0)
    first = await asyncio.gather(*(shared.complete(one, sampling) for one in asked))
    again = await asyncio.gather(*(shared.complete(one, sampling) for one in asked))
    assert [reply.usage.prompt_tokens > 150 for reply in first] == [True] * 3
    for reply in again:
        assert reply.usage.cached_tokens >= reply.usage.prompt_tokens - 1


async def test_cancelled_call_stops_the_engine_within_a_second(
    model: LlamaCpp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next call would wait for the first one's 2,000 tokens, were it still running."""
    reads, take = AwaitableEvent(), _StreamedReply.take_piece

    def told(self: _StreamedReply, piece: dict[str, Any]) -> bool:
        reads.set()
        return take(self, piece)

    monkeypatch.setattr(_StreamedReply, "take_piece", told)
    long = asyncio.create_task(
        model.complete([Message("user", "count " * 1200)], Sampling(max_tokens=2000))
    )
    await asyncio.wait_for(reads.passed(), timeout=20)
    began = time.monotonic()
    long.cancel()
    with pytest.raises(asyncio.CancelledError):
        await long
    assert time.monotonic() - began < 1
    reply = await asyncio.wait_for(model.complete(QUERY, Sampling(max_tokens=2)), timeout=20)
    assert reply.text


async def test_a_call_that_takes_too_long_is_an_error_with_the_fix(model: LlamaCpp) -> None:
    hasty = LlamaCpp(model.path, name="hasty", context=2048, timeout_s=0.05)
    with pytest.raises(ModelError, match=r"no reply within 0\.05 s.*model\.timeout_s"):
        await hasty.complete([Message("user", "count " * 1200)], Sampling(max_tokens=500))


async def test_nothing_to_score_is_an_error(model: LlamaCpp) -> None:
    with pytest.raises(ModelError, match="no text"):
        await model.score("context", "")


async def test_a_file_that_is_no_model_is_named_with_the_fix(tmp_path: Path) -> None:
    absent = LlamaCpp(tmp_path / "absent.gguf", name="x")
    with pytest.raises(ModelMissing, match=r"absent\.gguf"):
        await absent.complete(QUERY, Sampling())
    (tmp_path / "text.gguf").write_text("hello", encoding="utf-8")
    with pytest.raises(
        ModelMissing, match=r"text\.gguf is not a GGUF file; name a GGUF file as model\.path"
    ):
        await LlamaCpp(tmp_path / "text.gguf", name="x").complete(QUERY, Sampling())


async def test_a_truncated_model_is_an_error_not_a_crash(tmp_path: Path, model: LlamaCpp) -> None:
    cut = tmp_path / "cut.gguf"
    with model.path.open("rb") as whole:
        cut.write_bytes(whole.read(1_000_000))
    with pytest.raises(ModelMissing, match=r"cut\.gguf does not load"):
        await LlamaCpp(cut, name="x").complete(QUERY, Sampling())
