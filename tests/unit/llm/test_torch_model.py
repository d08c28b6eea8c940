"""transformers as the model, on tiny random weights; the oracle is transformers' own way."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from tiny_models import save_tiny, save_tiny_gguf, tiny_pair
from waiting import AwaitableEvent

from conformance import LanguageModelKit, LikelihoodKit
from osler.errors import BadConfig, CapabilityMissing, ModelError, ModelMissing
from osler.llm.core.base import LanguageModel, Likelihood, Message, Sampling
from osler.llm.core.grammar import Grammar, alt
from osler.llm.local.model import LlamaCpp
from osler.llm.transformers.decoding import TokenCodec
from osler.llm.transformers.hub import (
    ModelPair,
    PinnedModel,
    load_pair,
    silence_transformers,
    weights_fingerprint,
    weights_name,
)
from osler.llm.transformers.model import TransformersModel, open_transformers

pytestmark = pytest.mark.torch

QUERY = [Message("user", "What treats iron deficiency anaemia?")]
CHINESE = "首选口服铁剂，即维生素C。"
GREEDY = Sampling(temperature=0.0, max_tokens=12, top=3)
REVISION = "0123456789abcdef0123456789abcdef01234567"


def model_of(pair: ModelPair, **more: Any) -> TransformersModel:
    return TransformersModel(pair, name="tiny", **more)


def endless(**more: Any) -> ModelPair:
    """A pair that never ends a turn by itself."""
    pair = tiny_pair(**more)
    pair.tokenizer.eos_token = None
    pair.model.generation_config.eos_token_id = None
    return pair


@pytest.fixture(scope="module")
def pair() -> ModelPair:
    return endless()


@pytest.fixture
def model(pair: ModelPair) -> TransformersModel:
    return model_of(pair)


def plain_logprobs(pair: ModelPair, prompt: list[int], text: list[int]) -> list[float]:
    """One forward pass over all of it, without any cache."""
    import torch

    with torch.no_grad():
        logits = pair.model(input_ids=torch.tensor([prompt + text])).logits[0]
    raw = logits.float().log_softmax(-1)
    return [float(raw[len(prompt) - 1 + i, token]) for i, token in enumerate(text)]


def templated(pair: ModelPair, messages: list[Message], **more: Any) -> list[int]:
    listed = [{"role": m.role, "content": m.content} for m in messages]
    prompt = pair.tokenizer.apply_chat_template(listed, tokenize=False, **more)
    return list(pair.tokenizer(prompt, add_special_tokens=False)["input_ids"])


class TestTinyModels(LanguageModelKit, LikelihoodKit):
    @pytest.fixture(params=["bytes", "marks", "window"])
    def model(self, request: pytest.FixtureRequest) -> LanguageModel:
        if request.param == "window":
            return model_of(tiny_pair(window=8))
        return model_of(tiny_pair(spelling=request.param))

    @pytest.fixture
    def scorer(self, model: TransformersModel) -> Likelihood:
        return model


def test_transformers_model_completes_and_scores(model: TransformersModel) -> None:
    assert isinstance(model, LanguageModel)
    assert isinstance(model, Likelihood)


async def test_greedy_words_are_those_of_transformers_own_generation(pair: ModelPair) -> None:
    import torch

    ids = templated(pair, QUERY, add_generation_prompt=True)
    said = pair.model.generate(
        torch.tensor([ids]),
        attention_mask=torch.ones(1, len(ids), dtype=torch.long),
        max_new_tokens=12,
        do_sample=False,
        pad_token_id=pair.tokenizer.pad_token_id,
    )[0, len(ids) :].tolist()
    pieces = TokenCodec(pair.tokenizer)
    text = b"".join(map(pieces.bytes_of, said)).decode("utf-8", errors="ignore")
    reply = await model_of(pair).complete(QUERY, GREEDY)
    assert reply.text == text
    assert reply.finish == "length"
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (len(ids), 12)


@pytest.mark.parametrize("text", ["Oral iron, once a day.", CHINESE, " iron"])
@pytest.mark.parametrize("spelling", ["bytes", "marks"])
async def test_scores_are_those_of_one_plain_forward_pass(spelling: Any, text: str) -> None:
    pair = tiny_pair(spelling=spelling)
    ids = pair.tokenizer(text, add_special_tokens=False)["input_ids"]
    exact = plain_logprobs(pair, templated(pair, QUERY, add_generation_prompt=True), ids)
    scored = await model_of(pair).score(QUERY, text)
    assert [t.logprob for t in scored.tokens] == pytest.approx(exact, abs=1e-4)
    assert scored.usage.scored_tokens == len(ids)


async def test_what_a_reply_reports_is_what_scoring_says_of_it(model: TransformersModel) -> None:
    pair = model.pair
    reply = await model.complete(QUERY, Sampling(temperature=1.0, max_tokens=12, top=2, seed=3))
    ids = templated(pair, QUERY, add_generation_prompt=True)
    said = model._conversation._ids[len(ids) :]  # the tokens themselves, not their text
    exact = plain_logprobs(pair, ids, said)
    assert len(reply.tokens) >= 8
    told = {(t.start, round(t.logprob, 3)) for t in reply.tokens[:8]}
    assert {value for _, value in told} <= {round(value, 3) for value in exact}
    for token in reply.tokens:
        assert [p for _, p in token.top] == sorted((p for _, p in token.top), reverse=True)
        assert len(token.top) == 2


async def test_the_assistant_s_last_words_are_continued_in_place(pair: ModelPair) -> None:
    begun = [*QUERY, Message("assistant", "Oral")]
    exact = plain_logprobs(
        pair,
        templated(pair, begun, continue_final_message=True),
        pair.tokenizer(" iron")["input_ids"],
    )
    scored = await model_of(pair).score(begun, " iron")
    assert [t.logprob for t in scored.tokens] == pytest.approx(exact, abs=1e-4)


async def test_the_same_seed_gives_the_same_words_and_leaves_chance_alone(pair: ModelPair) -> None:
    import torch

    before = torch.random.get_rng_state()
    replies = [
        await model_of(pair).complete(QUERY, Sampling(temperature=1.0, max_tokens=16, seed=seed))
        for seed in (1, 1, 2)
    ]
    assert replies[0].text == replies[1].text != replies[2].text
    assert torch.equal(before, torch.random.get_rng_state())


async def test_a_stop_string_and_what_follows_is_cut_off_text_and_tokens(pair: ModelPair) -> None:
    whole = await model_of(pair).complete(QUERY, GREEDY)
    stop = whole.text[3:5]
    cut = await model_of(pair).complete(QUERY, Sampling(0.0, 12, (stop, "never said"), top=1))
    assert cut.text == whole.text[: whole.text.find(stop)]
    assert cut.finish == "stop"
    assert all(token.end <= len(cut.text) for token in cut.tokens)


async def test_the_end_of_a_turn_ends_the_reply() -> None:
    pair = tiny_pair()
    first = await model_of(endless()).complete(QUERY, Sampling(0.0, 1))
    (token,) = pair.tokenizer(first.text, add_special_tokens=False)["input_ids"]
    pair.model.generation_config.eos_token_id = [token]
    reply = await model_of(pair).complete(QUERY, GREEDY)
    assert (reply.text, reply.finish, reply.tokens) == ("", "stop", ())


async def test_no_log_probabilities_where_none_are_asked_for(model: TransformersModel) -> None:
    assert (await model.complete(QUERY, Sampling(max_tokens=4, top=0))).tokens == ()


async def test_what_was_thought_is_no_part_of_the_reply() -> None:
    """The template opens the block, and the model never closes it."""
    pair = endless()
    pair.tokenizer.chat_template += "<think>"
    plain = await model_of(pair).complete(QUERY, GREEDY)
    assert plain.text == ""
    assert plain.thinking
    assert plain.tokens == ()


# Prefixes


@pytest.mark.parametrize("window", [None, 8])
async def test_prefix_cache_after_push_and_pop_equals_a_fresh_read(window: int | None) -> None:
    """A pop is read from the cache where the model can forget, else anew: never wrongly."""
    pair = endless(window=window)
    kept = model_of(pair)
    pushed = [*QUERY, Message("assistant", "Oral iron."), Message("user", "How often?")]
    other = [*QUERY, Message("assistant", CHINESE)]
    for messages in (QUERY, pushed, QUERY, other, pushed, QUERY):
        again = await kept.complete(messages, GREEDY)
        fresh = await model_of(pair).complete(messages, GREEDY)
        assert again.text == fresh.text
        exact = [t.logprob for t in fresh.tokens]
        assert [t.logprob for t in again.tokens] == pytest.approx(exact, abs=1e-3)


async def test_a_longer_conversation_reads_only_what_is_new(model: TransformersModel) -> None:
    first = await model.complete(QUERY, Sampling(0.0, 4))
    pushed = [*QUERY, Message("assistant", "Oral iron."), Message("user", "How often?")]
    second = await model.complete(pushed, Sampling(0.0, 4))
    assert first.usage.cached_tokens == 0
    assert second.usage.cached_tokens >= first.usage.prompt_tokens
    popped = await model.complete(QUERY, Sampling(0.0, 4))
    assert popped.usage.cached_tokens == popped.usage.prompt_tokens - 1


async def test_scoring_does_not_throw_the_conversation_away(model: TransformersModel) -> None:
    await model.complete(QUERY, Sampling(0.0, 4))
    await model.score("Something else altogether:", "quite another text")
    again = await model.complete(QUERY, Sampling(0.0, 4))
    assert again.usage.cached_tokens == again.usage.prompt_tokens - 1


async def test_a_prompt_of_several_steps_is_read_to_its_end(pair: ModelPair) -> None:
    long = [Message("user", "Oral iron treats iron deficiency anaemia. " * 30)]
    ids = templated(pair, long, add_generation_prompt=True)
    assert len(ids) > 256
    exact = plain_logprobs(pair, ids, pair.tokenizer(" iron")["input_ids"])
    scored = await model_of(pair).score(long, " iron")
    assert [t.logprob for t in scored.tokens] == pytest.approx(exact, abs=1e-3)


# Refusals


async def test_a_grammar_is_refused_not_ignored(model: TransformersModel) -> None:
    with pytest.raises(CapabilityMissing, match="grammar"):
        await model.complete(QUERY, Sampling(grammar=Grammar("yes", alt("yes", "no"))))


async def test_too_long_a_prompt_says_how_long(model: TransformersModel) -> None:
    long = [Message("user", "iron " * 600)]
    with pytest.raises(ModelError, match=r"\d+ tokens and 1 more exceed the context of 512"):
        await model.complete(long, GREEDY)


async def test_a_reply_ends_where_the_context_does(pair: ModelPair) -> None:
    reply = await model_of(pair, context=40).complete(QUERY, Sampling(0.0, 500))
    assert reply.usage.prompt_tokens + reply.usage.completion_tokens == 40
    assert reply.finish == "length"


async def test_nothing_to_score_is_an_error(model: TransformersModel) -> None:
    with pytest.raises(ModelError, match="no text"):
        await model.score("context", "")
    with pytest.raises(ModelError, match="no token before"):
        await model.score("", "text")


async def test_a_model_without_a_chat_template_says_so() -> None:
    pair = tiny_pair()
    pair.tokenizer.chat_template = None
    with pytest.raises(ModelError, match="no chat template"):
        await model_of(pair).complete(QUERY, GREEDY)
    assert (await model_of(pair).score("A vitamin:", " C")).tokens


async def test_a_raw_prompt_needs_no_template_and_is_read_as_it_stands(pair: ModelPair) -> None:
    """The template's own text as a raw prompt gives the words of the conversation."""
    written = pair.tokenizer.apply_chat_template(
        [{"role": "user", "content": QUERY[0].content}], tokenize=False, add_generation_prompt=True
    )
    plain = endless()
    plain.tokenizer.chat_template = None
    raw = await model_of(plain).complete([Message("raw", written)], GREEDY)
    chat = await model_of(pair).complete(QUERY, GREEDY)
    assert (raw.text, raw.tokens) == (chat.text, chat.tokens)
    assert raw.usage.prompt_tokens == chat.usage.prompt_tokens


async def test_a_mark_of_the_model_is_one_token_of_a_raw_prompt_and_of_what_follows_it(
    model: TransformersModel,
) -> None:
    context = [Message("raw", "A vitamin:<|im_start|>")]
    (mark,) = (await model.score(context, "<|im_end|>")).tokens
    assert mark.text == "<|im_end|>"
    assert len((await model.score(context, "<|pad|>")).tokens) == 1
    assert len((await model.score("A vitamin:<|im_start|>", "<|im_end|>")).tokens) > 1


async def test_a_raw_prompt_stands_alone(model: TransformersModel) -> None:
    with pytest.raises(ValueError, match="only message"):
        await model.complete([*QUERY, Message("raw", "more")], GREEDY)


async def test_a_template_that_refuses_is_an_error() -> None:
    pair = tiny_pair()
    pair.tokenizer.chat_template = "{{ raise_exception('roles must alternate') }}"
    with pytest.raises(ModelError, match="roles must alternate"):
        await model_of(pair).complete(QUERY, GREEDY)


async def test_a_template_s_marks_in_a_plain_text_are_letters(model: TransformersModel) -> None:
    scored = await model.score("A vitamin:", "C<|im_end|>")
    assert "".join(t.text for t in scored.tokens) == "C<|im_end|>"
    assert len(scored.tokens) > 2


# Cancelling


async def test_a_cancelled_reply_frees_the_model() -> None:
    """Minutes of work are given up: the next call would else wait for them."""
    pair = endless(context=200_000)
    model = model_of(pair, context=200_000)
    says = AwaitableEvent()
    pair.model.register_forward_hook(lambda *_: says.set())
    task = asyncio.create_task(model.complete(QUERY, Sampling(0.0, 150_000)))
    await asyncio.wait_for(says.passed(), timeout=20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    scored = await asyncio.wait_for(model.score("A vitamin:", " C"), timeout=10)
    assert scored.tokens
    again = await asyncio.wait_for(model.complete(QUERY, GREEDY), timeout=10)
    assert again.text == (await model_of(pair).complete(QUERY, GREEDY)).text


# Loading


async def test_a_folder_loads_as_the_model_that_was_saved(tmp_path: Path, pair: ModelPair) -> None:
    folder = save_tiny(tmp_path / "planner", pair)
    model = open_transformers(folder, device="cpu")
    assert model.name == "planner/float32"
    saved = await model.score(QUERY, "iron")
    assert saved.tokens == (await model_of(pair).score(QUERY, "iron")).tokens


async def test_a_gguf_file_is_the_model_that_was_written(tmp_path: Path) -> None:
    pair = tiny_pair()
    file = save_tiny_gguf(tmp_path / "tiny.gguf", pair)
    model = open_transformers(file, device="cpu")
    assert model.name == "tiny/float32"
    for text in ("Oral iron.", CHINESE):
        exact = (await model_of(pair).score(QUERY, text)).tokens
        assert (await model.score(QUERY, text)).tokens == exact
    saved = save_tiny(tmp_path / "again", model.pair)
    assert (await open_transformers(saved, device="cpu").score(QUERY, CHINESE)).tokens == exact


@pytest.mark.model
async def test_llama_cpp_says_the_same_of_the_same_numbers(tmp_path: Path) -> None:
    pair = tiny_pair()
    embedded = LlamaCpp(save_tiny_gguf(tmp_path / "tiny.gguf", pair), name="tiny", context=512)
    for context in ("A vitamin:", QUERY):
        for text in ("Oral iron, once a day.", CHINESE):
            one = (await model_of(pair).score(context, text)).tokens
            other = (await embedded.score(context, text)).tokens
            assert [(t.start, t.end) for t in one] == [(t.start, t.end) for t in other]
            exact = [t.logprob for t in one]
            assert [t.logprob for t in other] == pytest.approx(exact, abs=0.02)


async def test_an_adapter_changes_what_is_said_and_stands_in_the_name(tmp_path: Path) -> None:
    import peft
    import torch

    folder = save_tiny(tmp_path / "base")
    base = tiny_pair()
    lora = peft.LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        with silence_transformers():
            adapted = peft.get_peft_model(base.model, lora)
    adapted.save_pretrained(tmp_path / "plans")
    model = open_transformers(folder, adapter=tmp_path / "plans", device="cpu")
    assert model.name == "base+plans/float32"
    ids = templated(base, QUERY, add_generation_prompt=True)
    text = base.tokenizer("iron")["input_ids"]
    exact = plain_logprobs(ModelPair(adapted.eval(), base.tokenizer), ids, text)
    told = [t.logprob for t in (await model.score(QUERY, "iron")).tokens]
    assert told == pytest.approx(exact, abs=1e-4)
    bare = (await open_transformers(folder, device="cpu").score(QUERY, "iron")).tokens
    assert [t.logprob for t in bare] != pytest.approx(exact, abs=1e-2)


@pytest.mark.parametrize("revision", ["", "main", "v1.0", REVISION[:12], REVISION.upper()])
def test_a_hub_model_without_a_whole_commit_is_refused(revision: str) -> None:
    with pytest.raises(BadConfig, match="must be pinned") as caught:
        PinnedModel("osler/tiny", revision)
    assert "40 digits" in caught.value.fix


def test_a_hub_id_has_an_owner_and_a_name() -> None:
    with pytest.raises(BadConfig, match="not a hub id"):
        PinnedModel("../etc", REVISION)


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The hub's own cache, with one model in it, and no way out."""
    import huggingface_hub.constants as hub
    import transformers.utils.hub as used

    monkeypatch.setattr(hub, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(hub, "HF_HUB_CACHE", str(tmp_path))
    for name in ("HF_HUB_CACHE", "TRANSFORMERS_CACHE"):
        if hasattr(used.constants, name):
            monkeypatch.setattr(used.constants, name, str(tmp_path))
    save_tiny(tmp_path / "models--osler--tiny" / "snapshots" / REVISION)
    return tmp_path


@pytest.mark.usefixtures("offline")
def test_offline_a_pinned_model_comes_from_the_hub_s_cache() -> None:
    weights = PinnedModel("osler/tiny", REVISION)
    pair = load_pair(weights, device="cpu")
    assert pair.model.config.hidden_size == 32
    assert weights_name(weights) == f"osler/tiny@{REVISION[:12]}"
    assert weights_fingerprint(weights) == REVISION[:12]


@pytest.mark.usefixtures("offline")
def test_offline_another_revision_is_missing_and_says_what_to_do() -> None:
    with pytest.raises(ModelMissing, match="does not load") as caught:
        load_pair(PinnedModel("osler/tiny", REVISION[::-1]), device="cpu")
    assert "HF_HUB_OFFLINE" in caught.value.fix


def test_what_is_no_model_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("hello", encoding="utf-8")
    (tmp_path / "broken.gguf").write_bytes(b"GGUF but not really")
    for name, words in (
        ("absent", "no model"),
        ("empty", "not a model folder"),
        ("notes.txt", "neither a folder nor a GGUF"),
        ("broken.gguf", "does not load"),
    ):
        with pytest.raises(ModelMissing, match=words):
            load_pair(tmp_path / name, device="cpu")


def test_a_folder_cut_short_is_missing_not_a_crash(tmp_path: Path) -> None:
    folder = save_tiny(tmp_path / "cut")
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[:500])
    with pytest.raises(ModelMissing, match="does not load"):
        load_pair(folder, device="cpu")


def test_a_folder_that_is_no_adapter_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing, match="is not an adapter"):
        load_pair(save_tiny(tmp_path / "base"), adapter=tmp_path, device="cpu")


def test_other_weights_have_another_fingerprint(tmp_path: Path) -> None:
    one = weights_fingerprint(save_tiny(tmp_path / "a"))
    assert one == weights_fingerprint(save_tiny(tmp_path / "b"))
    assert one != weights_fingerprint(save_tiny(tmp_path / "c", tiny_pair(seed=1)))


def test_a_device_that_is_not_there_is_refused(tmp_path: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device here")
    with pytest.raises(BadConfig, match="no CUDA device"):
        load_pair(save_tiny(tmp_path / "base"), device="cuda")


def test_loading_prints_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = save_tiny(tmp_path / "base")
    capfd.readouterr()
    load_pair(folder, device="cpu")
    assert capfd.readouterr() == ("", "")


def test_without_the_extra_the_error_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModelError, match="torch is not installed") as caught:
        load_pair(tmp_path)
    assert caught.value.fix == 'run `pip install "osler[train]"`'
