"""The embedded model: any GGUF file on llama.cpp in this process.

Facts that this file rests on (each has a test in `tests/unit/llm/test_local.py`):

* log-probabilities are of the raw model, before grammar and temperature;
* given texts are scored in batches (`batch_scoring.py`), and one token a step where that
  is not to be had (`ForcedScorer`): the two agree within the engine's own noise;
* a token that is only part of a character is never reported as the chosen one, so a
  reply that has some is scored anew;
* a prefix stays cached per slot: `llm/local/engine.py` says which request goes where.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from osler.errors import ModelError
from osler.llm.core.base import Completion, Message, Sampling, Scored, TokenScore, raw_text
from osler.llm.core.spans import decode_pieces, token_scores
from osler.llm.core.thinking import ThinkingAllowance, opens_thinking, split_thinking
from osler.llm.local.batch_scoring import TextScores, Tokens
from osler.llm.local.engine import LlamaEngine, SlotUse
from osler.types import Usage

_STEP_COST = 6
"""Tokens of a prompt that are read in the time of one forced step."""

T = TypeVar("T")


class LlamaCpp:
    """`LanguageModel` and `BatchLikelihood` on a GGUF file, loaded at the first call.

    `slots` calls run at once, each in a thread; the others wait. A call that is cancelled,
    or takes longer than `timeout_s`, is stopped in the engine too.
    """

    def __init__(
        self,
        path: Path,
        *,
        name: str,
        context: int = 8192,
        threads: int = 1,
        slots: int = 1,
        timeout_s: float = 3_600.0,
    ) -> None:
        self.path = path
        self.name = name
        self.context = context
        """Tokens of one prompt and its reply, at most."""
        self._engine = LlamaEngine(path, name=name, context=context, threads=threads, slots=slots)
        self.allowance = ThinkingAllowance()
        self._slots = slots
        self._timeout_s = timeout_s
        self._threads = ThreadPoolExecutor(slots, thread_name_prefix="osler-llm")
        # A semaphore belongs to one event loop, and a model may be used in several.
        self._gates: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]
        self._gates = WeakKeyDictionary()
        self._pieces: dict[int, bytes] = {}

    def load(self) -> None:
        """Loads the weights now instead of at the first call. Raises `ModelMissing`."""
        self._engine.load()

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        return await self.allowance.complete(
            sampling,
            lambda granted: self._run_stoppable(
                lambda stop: self._complete_in_slot(messages, granted, stop)
            ),
        )

    async def score(self, context: Sequence[Message] | str, text: str) -> Scored:
        (scored,) = await self.score_all(context, [text])
        return scored

    async def score_all(
        self, context: Sequence[Message] | str, texts: Sequence[str]
    ) -> tuple[Scored, ...]:
        return await self._run_stoppable(lambda stop: self._score_texts(context, texts, stop))

    async def _run_stoppable(self, work: Callable[[threading.Event], T]) -> T:
        loop, stop = asyncio.get_running_loop(), threading.Event()
        gate = self._gates.setdefault(loop, asyncio.Semaphore(self._slots))
        async with gate:
            try:
                async with asyncio.timeout(self._timeout_s) as patience:
                    return await loop.run_in_executor(self._threads, work, stop)
            except TimeoutError as error:
                if not patience.expired():
                    raise
                raise ModelError(
                    f"{self.name}: no reply within {self._timeout_s:g} s",
                    fix="raise model.timeout_s, or lower sampling.max_tokens",
                ) from error
            # The thread cannot be cancelled; the engine is asked to stop, and frees its slot.
            finally:
                stop.set()

    def _complete_in_slot(
        self, messages: Sequence[Message], sampling: Sampling, stop: threading.Event
    ) -> Completion:
        began = time.perf_counter()
        prompt = self._engine.apply_template(messages)
        with self._engine.slots.take_slot(SlotUse.CONVERSATION, prompt) as slot:
            reply = self._engine.run_request(
                {
                    "prompt": prompt,
                    "n_predict": sampling.max_tokens,
                    "n_probs": max(1, sampling.top),
                    "temperature": sampling.temperature,
                    # The paper samples by temperature alone; the engine's defaults cut tails.
                    "top_k": 0,
                    "top_p": 1.0,
                    "min_p": 0.0,
                    "seed": sampling.seed,
                    "stop": list(sampling.stop),
                    "grammar": sampling.grammar.gbnf if sampling.grammar else "",
                    "id_slot": slot,
                },
                stop,
            )
        # Cut in the middle of a character, a reply ends in a mark for the bytes that are missing.
        cut = reply["finish"] == "length"
        text: str = reply["text"].rstrip("\ufffd") if cut else reply["text"]
        if sampling.top and text and not self._is_fully_reported(reply["entries"], text):
            tokens = self._score_texts(messages, [text], stop)[0].tokens
        else:
            tokens = _reply_tokens(reply["entries"], text) if sampling.top else ()
        usage = _read_usage(reply, began)
        completion = Completion(text, tokens, "length" if cut else "stop", usage)
        # A grammar holds from the first token on, so that what it lets through is the reply.
        return split_thinking(
            completion, inside=sampling.grammar is None and opens_thinking(prompt)
        )

    def _is_fully_reported(self, entries: Sequence[Any], text: str) -> bool:
        """Returns whether every token was reported. Of those that share a character, only the last
        is.
        """
        if text.isascii():
            return True
        self._tokenise_text(text)
        return all(self._pieces.get(entry["id"]) == bytes(entry["bytes"]) for entry in entries)

    def _score_texts(
        self, context: Sequence[Message] | str, texts: Sequence[str], stop: threading.Event
    ) -> tuple[Scored, ...]:
        """Scores texts; the context is read once, at the first text's cost, and so are shared
        beginnings.
        """
        if not texts:
            return ()
        began = time.perf_counter()
        prompt = context if isinstance(context, str) else self._engine.apply_template(context)
        before = self._tokenise_text(prompt, begins=True, special=not isinstance(context, str))
        ids_of = partial(self._tokenise_text, special=raw_text(context) is not None)
        tokens = [tuple(ids_of(text)) for text in texts]
        if not all(tokens):
            raise ModelError("there is no text to score")
        found = self._weigh_tokens(prompt, before, tokens, stop)
        second = (time.perf_counter() - began) / max(1, sum(map(len, tokens)))
        read = Usage(prompt_tokens=len(before), cached_tokens=found.cached)
        return tuple(
            Scored(
                self._token_scores(ids, values),
                Usage(calls=1, scored_tokens=len(ids), seconds=round(second * len(ids), 3))
                + (Usage() if i else read),
            )
            for i, (ids, values) in enumerate(zip(tokens, found.texts, strict=True))
        )

    def _weigh_tokens(
        self, prompt: str, before: list[int], texts: Sequence[Tokens], stop: threading.Event
    ) -> TextScores:
        """Scores in batches; step by step where that is quicker, or where nothing else works."""
        scorer = self._engine.batch_scorer
        if scorer is not None and before:
            steps = sum(map(len, texts)) * _STEP_COST
            held = self._engine.slots.holds_prompt(prompt)
            if not held or scorer.count_missing(before) <= steps:
                return scorer.score(before, texts, stop, threads=self._engine.free_threads())
        (plain,) = self._tokenise_text("a")
        with self._engine.slots.take_slot(SlotUse.SCORING, prompt) as slot:
            forced = ForcedScorer(self._engine, slot, stop, self._pieces, plain)
            return forced.score(before, texts)

    def _token_scores(self, ids: Tokens, values: Sequence[float]) -> tuple[TokenScore, ...]:
        text, spans = decode_pieces([self._pieces[token] for token in ids])
        return token_scores(text, spans, values)

    def _tokenise_text(
        self, text: str, *, begins: bool = False, special: bool = False
    ) -> list[int]:
        pairs = self._engine.tokenise_text(text, begins=begins, special=special)
        self._pieces.update(pairs)
        return [token for token, _ in pairs]


def _reply_tokens(entries: Sequence[Any], text: str) -> tuple[TokenScore, ...]:
    """Adds offsets to the engine's entries; tokens past a stop string are not in the text."""
    _, spans = decode_pieces([bytes(entry["bytes"]) for entry in entries])
    return tuple(
        TokenScore(
            text[start:end],
            start,
            end,
            float(entry["logprob"]),
            tuple((t["token"], float(t["logprob"])) for t in entry["top_logprobs"]),
        )
        for entry, (start, end) in zip(entries, spans, strict=True)
        if start < len(text)
    )


def _read_usage(reply: Any, began: float) -> Usage:
    usage = reply["usage"]
    return Usage(
        calls=1,
        prompt_tokens=usage["prompt_tokens"],
        completion_tokens=usage["completion_tokens"],
        cached_tokens=usage.get("prompt_tokens_details", {}).get("cached_tokens", 0),
        seconds=round(time.perf_counter() - began, 3),
    )


_FORCE = 1_000.0
"""Logit bias that no raw logit reaches."""
_LOOKUPS = (300, 3_000, 1_000_000)
"""Numbers of likeliest tokens to ask for until the wanted one is among them."""


@dataclass
class ForcedScorer:
    """Scores token sequences in one slot of the engine's server."""

    engine: LlamaEngine
    slot: int
    stop: threading.Event
    pieces: Mapping[int, bytes]
    """The tokens' bytes."""
    plain: int
    """Any token that is whole characters."""
    cached: int = -1
    """Tokens of the first prompt that were not read again; below 0 before that."""

    def score(self, prefix: list[int], texts: Sequence[Tokens]) -> TextScores:
        """Scores each text after the prefix. Raises `ModelError`; `CallStopped` once stopped."""
        # By path, not by token: options of one question begin alike and share what is equal.
        known: dict[Tokens, float] = {}
        if len(texts) > 1:
            # Read alone or behind a long prompt, a token differs by as much as 0.1 nats: after
            # this every text begins from the same cached state, whichever comes first.
            self._force_entry(prefix, self.plain, 1)
        for text in texts:
            for i, token in enumerate(text):
                if text[: i + 1] not in known:
                    known[text[: i + 1]] = self.force_token([*prefix, *text[:i]], token)
        scores = tuple(tuple(known[text[: i + 1]] for i in range(len(text))) for text in texts)
        return TextScores(scores, min(self.cached, len(prefix)))

    def force_token(self, prompt: list[int], token: int) -> float:
        """Returns the raw model's log-probability of `token` after `prompt`."""
        try:
            self.pieces[token].decode("utf-8")
        except UnicodeDecodeError:
            return self.look_up_token(prompt, token)
        entry = self._force_entry(prompt, token, 1)
        if entry["id"] != token:
            raise ModelError(f"{self.engine.name}: the engine did not take the token {token}")
        return float(entry["logprob"])

    def look_up_token(self, prompt: list[int], token: int) -> float:
        """Returns the same, found among the likeliest."""
        for count in _LOOKUPS:
            for entry in self._force_entry(prompt, self.plain, count)["top_logprobs"]:
                if entry["id"] == token:
                    return float(entry["logprob"])
        raise ModelError(f"{self.engine.name}: token {token} has no log-probability")

    def _force_entry(self, prompt: list[int], token: int, count: int) -> Any:
        """Returns the engine's entry of the forced token, and of the `count` likeliest."""
        reply = self.engine.run_request(
            {
                "prompt": prompt,
                "n_predict": 1,
                "n_probs": count,
                "temperature": 0.0,
                "logit_bias": [[token, _FORCE]],
                "id_slot": self.slot,
            },
            self.stop,
        )
        if self.cached < 0:
            self.cached = reply["timings"]["cache_n"]
        return reply["entries"][0]
