"""Language models on transformers: one's own weights.

* log-probabilities are of the raw model, in float32, before temperature;
* conversations and scoring have a cache of prefixes each, so that scoring "given the
  query alone" does not throw the conversation away;
* a last message of the assistant's stands after the template's own opening of its turn,
  as in llama.cpp's server;
* chance comes from a generator of its own; a grammar that is asked for is refused.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from jinja2 import TemplateError

from osler.errors import CapabilityMissing, ModelError
from osler.llm.core.base import Attended, Completion, Message, Sampling, Scored, raw_text
from osler.llm.core.spans import token_scores
from osler.llm.core.thinking import ThinkingAllowance, opens_thinking, split_thinking
from osler.llm.transformers.decoding import (
    Check,
    GrowingReply,
    PrefixCache,
    Span,
    TokenCodec,
    make_chooser,
)
from osler.llm.transformers.hub import (
    Device,
    Dtype,
    ModelPair,
    Weights,
    load_libraries,
    load_pair,
    weights_name,
)
from osler.types import Usage

T = TypeVar("T")


class _CallAbandoned(Exception):
    """Raised in the worker thread when the call was cancelled."""


class TransformersModel:
    """`LanguageModel`, `Likelihood` and `Attentive` on a loaded pair.

    One call at a time is worked on. A cancelled one ends at the next step: a token, or
    256 of a prompt. What was read is kept between calls, so the weights stay as they are.
    """

    def __init__(self, pair: ModelPair, *, name: str, context: int = 8192) -> None:
        """`context` is a bound in tokens; the model's own holds too."""
        self.pair = pair
        self.name = name
        self.allowance = ThinkingAllowance()
        self._pieces = TokenCodec(pair.tokenizer)
        config = pair.model.config.get_text_config()
        own: int | None = getattr(config, "max_position_embeddings", None)
        self._context: int = min(context, own or context)
        # One call at a time: torch uses all cores for one, and the caches belong to one text.
        self._ends = _end_tokens(pair)
        self._lock = threading.Lock()
        self._forget_prefixes()

    @property
    def accelerators(self) -> int:
        """Accelerators that it runs on; 0 = the processor."""
        return int(self.pair.model.device.type != "cpu")

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        if sampling.grammar:
            raise CapabilityMissing(
                f"{self.name} cannot be held to a grammar",
                fix='use the packaged model, a GGUF file with kind = "gguf", or a server',
            )
        return await self.allowance.complete(
            sampling,
            lambda granted: self._run_in_thread(
                lambda check: self._complete_chat(messages, granted, check)
            ),
        )

    async def score(self, context: Sequence[Message] | str, text: str) -> Scored:
        return await self._run_in_thread(lambda check: self._score_text(context, text, check))

    async def attend(self, context: Sequence[Message] | str, text: str) -> Attended:
        return await self._run_in_thread(lambda check: self._attend_text(context, text, check))

    async def _run_in_thread(self, work: Callable[[Check], T]) -> T:
        """Runs work in a thread that gives up when its caller is cancelled."""
        cancelled = threading.Event()

        def check_abandoned() -> None:
            if cancelled.is_set():
                raise _CallAbandoned

        def run_work() -> T:
            torch, _ = load_libraries()
            with self._lock:
                check_abandoned()
                try:
                    return work(check_abandoned)
                except torch.OutOfMemoryError as error:
                    self._forget_prefixes()
                    fix = "set model.context lower"
                    raise ModelError(f"{self.name}: out of memory", fix=fix) from error

        try:
            return await asyncio.to_thread(run_work)
        finally:
            cancelled.set()

    def _forget_prefixes(self) -> None:
        self._conversation = PrefixCache(self.pair.model)
        self._scoring = PrefixCache(self.pair.model)

    def _complete_chat(
        self, messages: Sequence[Message], sampling: Sampling, check: Check
    ) -> Completion:
        began = time.perf_counter()
        template = self._apply_template(messages)
        prompt = self._tokenise_prompt(messages, template)
        room = self._require_room(prompt)
        cached = self._conversation.keep_prefix(prompt[:-1])
        reply = GrowingReply(self._pieces, sampling.stop)
        ended = self._extend_reply(
            reply, prompt[cached:], min(sampling.max_tokens, room), sampling, check
        )
        usage = Usage(
            calls=1,
            prompt_tokens=len(prompt),
            completion_tokens=len(reply.ids),
            cached_tokens=cached,
            seconds=round(time.perf_counter() - began, 3),
        )
        finish: Literal["stop", "length"] = "stop" if ended else "length"
        tokens = reply.token_scores() if sampling.top else ()
        return split_thinking(
            Completion(reply.text, tokens, finish, usage), inside=opens_thinking(template)
        )

    def _extend_reply(
        self,
        reply: GrowingReply,
        unread: Sequence[int],
        most: int,
        sampling: Sampling,
        check: Check,
    ) -> bool:
        """Adds tokens to the reply; returns whether it came to an end of its own."""
        choose = make_chooser(sampling, self.pair.model.device)
        for _ in range(most):
            (logits,) = self._conversation.read(unread, keep=1, check=check)
            token, entry = choose(logits[-1])
            if token in self._ends:
                return True
            reply.add_token(token, *entry)
            if reply.is_stopped():
                return True
            unread = [token]
        return False

    def _score_text(self, context: Sequence[Message] | str, text: str, check: Check) -> Scored:
        began = time.perf_counter()
        last, ids, spans = self._read_context(context, text, check)
        logprobs: list[float] = []
        for logits in self._scoring.read([last, *ids[:-1]], keep=len(ids), check=check):
            block = ids[len(logprobs) : len(logprobs) + len(logits)]
            logprobs += _logprobs_of(logits, block)
        return _make_scored(text, spans, logprobs, began)

    def _attend_text(self, context: Sequence[Message] | str, text: str, check: Check) -> Attended:
        began = time.perf_counter()
        last, ids, spans = self._read_context(context, text, check)
        logits, paid = self._scoring.read_attention([last, *ids])
        raw = logits[:-1].float().log_softmax(-1)
        entropies: list[float] = (-(raw.exp() * raw).sum(-1)).clamp(min=0.0).tolist()
        rows: list[list[float]] = paid[1:, -len(ids) :].tolist()
        scored = _make_scored(text, spans, _logprobs_of(logits[:-1], ids), began)
        return Attended(
            scored.tokens,
            tuple(round(value, 6) for value in entropies),
            tuple(tuple(round(w, 6) for w in row[:i]) for i, row in enumerate(rows)),
            scored.usage,
        )

    def _read_context(
        self, context: Sequence[Message] | str, text: str, check: Check
    ) -> tuple[int, list[int], list[Span]]:
        """Reads the context but for its last token; returns that, and the text's ids and spans.

        It is read apart, so that a text scores the same whether it was cached or not.
        """
        ids, spans = self._pieces.ids_and_spans(text, special=raw_text(context) is not None)
        if not ids:
            raise ModelError("there is no text to score")
        if isinstance(context, str):
            before = self._pieces.token_ids(context, begins=True)
        else:
            before = self._tokenise_prompt(context, self._apply_template(context))
        if not before:
            raise ModelError(f"{self.name}: there is no token before the text to score")
        self._require_room(before, len(ids))
        cached = self._scoring.keep_prefix(before[:-1])
        for _ in self._scoring.read(before[cached:-1], keep=0, check=check):
            raise AssertionError("no logits were asked for")
        return before[-1], ids, spans

    def _tokenise_prompt(self, messages: Sequence[Message], prompt: str) -> list[int]:
        # A template writes the first token itself; a raw prompt has none.
        begins = raw_text(messages) is not None
        return self._pieces.token_ids(prompt, begins=begins, special=True)

    def _require_room(self, prompt: Sequence[int], more: int = 1) -> int:
        """Returns how many tokens may follow; raises `ModelError` for fewer than `more`."""
        if len(prompt) + more > self._context:
            raise ModelError(
                f"{self.name}: {len(prompt)} tokens and {more} more exceed the context of"
                f" {self._context}",
                fix="raise model.context as far as the model goes, or retrieve fewer passages",
            )
        return self._context - len(prompt)

    def _apply_template(self, messages: Sequence[Message]) -> str:
        if (raw := raw_text(messages)) is not None:
            return raw
        tokenizer = self.pair.tokenizer
        if not tokenizer.chat_template:
            raise ModelError(
                f"{self.name} has no chat template", fix="use a model made for conversations"
            )
        begun = messages[-1].content if messages and messages[-1].role == "assistant" else None
        complete_turns = messages if begun is None else messages[:-1]
        turns = [{"role": message.role, "content": message.content} for message in complete_turns]
        try:
            opened: str = tokenizer.apply_chat_template(
                turns, tokenize=False, add_generation_prompt=True
            )
        except (TemplateError, TypeError, ValueError) as error:
            raise ModelError(f"{self.name}: the chat template refuses: {error}") from error
        return opened + (begun or "")


def open_transformers(
    weights: Weights,
    *,
    dtype: Dtype = "auto",
    device: Device = "auto",
    adapter: Path | None = None,
    context: int = 8192,
) -> TransformersModel:
    """Loads the model of these weights. Raises as `osler.llm.transformers.hub.load_pair`."""
    pair = load_pair(weights, dtype=dtype, device=device, adapter=adapter)
    name = weights_name(weights) + (f"+{adapter.resolve().name}" if adapter else "")
    precision = str(pair.model.dtype).removeprefix("torch.")
    return TransformersModel(pair, name=f"{name}/{precision}", context=context)


def _logprobs_of(logits: Any, ids: Sequence[int]) -> list[float]:
    """Returns the raw log-probability of each token, by the row of logits before it."""
    torch, _ = load_libraries()
    raw = logits.float().log_softmax(-1)
    columns = torch.tensor(ids, device=raw.device)[:, None]
    return list(raw.gather(-1, columns)[:, 0].clamp(max=0.0).tolist())


def _make_scored(
    text: str, spans: Sequence[Span], logprobs: Sequence[float], began: float
) -> Scored:
    tokens = token_scores(text, spans, logprobs)
    seconds = round(time.perf_counter() - began, 3)
    return Scored(tokens, Usage(calls=1, scored_tokens=len(tokens), seconds=seconds))


def _end_tokens(pair: ModelPair) -> frozenset[int]:
    """Collects the tokens that end a turn, from the generation settings and the tokenizer."""
    configured = getattr(pair.model.generation_config, "eos_token_id", None)
    tokens = configured if isinstance(configured, list) else [configured]
    return frozenset(t for t in (*tokens, pair.tokenizer.eos_token_id) if t is not None)
