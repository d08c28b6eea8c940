"""The embedded engine: llama.cpp in this process, any GGUF file.

Facts that this file rests on (each has a test in `tests/unit/llm/test_local.py`):

* log-probabilities are of the raw model, before grammar and temperature;
* the engine has no call that scores a given text, so `score` forces one token a
  step with a logit bias: the engine reports what the raw model thought of it;
* a token that is only part of a character is never reported as the chosen one,
  so such tokens are looked up among the likeliest, 300 first, all of them last,
  and a reply that has some is scored anew;
* a prefix stays cached per slot: conversations use slot 0 and scoring slot 1, so
  that scoring "given the query alone" does not throw the conversation away.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from osler.errors import ModelError, ModelMissing
from osler.llm.align import decode
from osler.llm.base import Completion, Message, Sampling, Scored, TokenScore
from osler.llm.thinking import apart, opens
from osler.types import Usage

_CONVERSATION, _SCORING = 0, 1
_FORCE = 1_000.0
"""Logit bias that no raw logit reaches."""
_LOOKUPS = (300, 3_000, 1_000_000)
"""How many of the likeliest tokens to ask for until the wanted one is among them."""
_GGUF = b"GGUF"


class LlamaCpp:
    """`LanguageModel` and `BatchLikelihood` on a GGUF file, loaded at the first call."""

    def __init__(self, path: Path, *, name: str, context: int = 8192, threads: int = 1) -> None:
        self.path = path
        self._name = name
        self._context = context
        self._threads = threads
        self._server: Any = None
        self._loading = threading.Lock()
        self._scoring = threading.Lock()
        self._pieces: dict[int, bytes] = {}

    @property
    def name(self) -> str:
        return self._name

    def load(self) -> None:
        """Loads the weights now instead of at the first call. Raises `ModelMissing`."""
        self._engine()

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        return await asyncio.to_thread(self._complete, messages, sampling)

    async def score(self, context: Sequence[Message] | str, text: str) -> Scored:
        (scored,) = await self.score_all(context, [text])
        return scored

    async def score_all(
        self, context: Sequence[Message] | str, texts: Sequence[str]
    ) -> tuple[Scored, ...]:
        return await asyncio.to_thread(self._score_all, context, texts)

    def _complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        began = time.perf_counter()
        prompt = self._template(messages)
        reply = self._call(
            {
                "prompt": prompt,
                "n_predict": sampling.max_tokens,
                "n_probs": max(1, sampling.top),
                "temperature": sampling.temperature,
                # The paper samples by temperature alone; the engine's own defaults would cut tails.
                "top_k": 0,
                "top_p": 1.0,
                "min_p": 0.0,
                "seed": sampling.seed,
                "stop": list(sampling.stop),
                "grammar": sampling.grammar.gbnf if sampling.grammar else "",
                "id_slot": _CONVERSATION,
            }
        )
        choice = reply["choices"][0]
        cut = choice["finish_reason"] == "length"
        text: str = choice["text"].rstrip("\ufffd") if cut else choice["text"]
        entries = (choice.get("logprobs") or {}).get("content") or ()
        if sampling.top and text and not self._whole(entries, text):
            tokens = self._score_all(messages, [text])[0].tokens
        else:
            tokens = _tokens(entries, text) if sampling.top else ()
        usage = _usage(reply, began)
        completion = Completion(text, tokens, "length" if cut else "stop", usage)
        # A grammar holds from the first token on, so that what it lets through is the reply.
        return apart(completion, inside=sampling.grammar is None and opens(prompt))

    def _whole(self, entries: Sequence[Any], text: str) -> bool:
        """Whether every token was reported. Of those that share a character, only the last is."""
        if text.isascii():
            return True
        self._tokenise(text)
        return all(self._pieces.get(entry["id"]) == bytes(entry["bytes"]) for entry in entries)

    def _score_all(
        self, context: Sequence[Message] | str, texts: Sequence[str]
    ) -> tuple[Scored, ...]:
        """The context is read once, at the first text's cost; so is what texts begin with."""
        prompt = context if isinstance(context, str) else self._template(context)
        before = self._tokenise(prompt, begins=True, special=not isinstance(context, str))
        known: dict[tuple[int, ...], float] = {}
        with self._scoring:
            began = time.perf_counter()
            if len(texts) > 1:
                # Read alone or behind a long prompt, a token differs by as much as 0.1 nats: after
                # this every text begins from the same cached state, whichever comes first.
                (plain,) = self._tokenise("a")
                self._step(before, plain, 1)
            every = []
            for text in texts:
                every.append(self._score(before, text, known, began))
                began = time.perf_counter()
            return tuple(every)

    def _score(
        self, before: list[int], text: str, known: dict[tuple[int, ...], float], began: float
    ) -> Scored:
        ids = self._tokenise(text)
        if not ids:
            raise ModelError("there is no text to score")
        for i, token in enumerate(ids):
            path = tuple(ids[: i + 1])
            if path not in known:
                known[path] = self._forced(before + ids[:i], token)
        scored, spans = decode([self._pieces[token] for token in ids])
        tokens = tuple(
            TokenScore(scored[start:end], start, end, known[tuple(ids[: i + 1])])
            for i, (start, end) in enumerate(spans)
        )
        usage = Usage(
            calls=1, scored_tokens=len(ids), seconds=round(time.perf_counter() - began, 3)
        )
        return Scored(tokens, usage)

    def _forced(self, prompt: list[int], token: int) -> float:
        """The raw model's log-probability of `token` after `prompt`."""
        try:
            self._pieces[token].decode("utf-8")
        except UnicodeDecodeError:
            return self._looked_up(prompt, token)
        entry = self._step(prompt, token, 1)
        if entry["id"] != token:
            raise ModelError(f"{self.name}: the engine did not take the forced token {token}")
        return float(entry["logprob"])

    def _looked_up(self, prompt: list[int], token: int) -> float:
        (plain,) = self._tokenise("a")
        for count in _LOOKUPS:
            for entry in self._step(prompt, plain, count)["top_logprobs"]:
                if entry["id"] == token:
                    return float(entry["logprob"])
        raise ModelError(f"{self.name}: token {token} has no log-probability")

    def _step(self, prompt: list[int], token: int, count: int) -> Any:
        reply = self._call(
            {
                "prompt": prompt,
                "n_predict": 1,
                "n_probs": count,
                "temperature": 0.0,
                "logit_bias": [[token, _FORCE]],
                "id_slot": _SCORING,
            }
        )
        return reply["choices"][0]["logprobs"]["content"][0]

    def _call(self, request: dict[str, Any]) -> Any:
        reply = self._engine().handle_completions({"cache_prompt": True, **request})
        if "error" in reply:
            raise ModelError(f"{self.name}: {reply['error'].get('message', reply['error'])}")
        return reply

    def _template(self, messages: Sequence[Message]) -> str:
        listed = [{"role": m.role, "content": m.content} for m in messages]
        prompt: str = self._post("/apply-template", {"messages": listed})["prompt"]
        return prompt

    def _tokenise(self, text: str, *, begins: bool = False, special: bool = False) -> list[int]:
        """Token ids. `begins`: with the first token that some models want, at a text's
        beginning; `special`: a template's own marks are tokens."""
        request: dict[str, Any] = {"content": text, "with_pieces": True}
        request |= {"add_special": begins, "parse_special": special}
        ids = []
        for token in self._post("/tokenize", request)["tokens"]:
            piece = token["piece"]
            self._pieces[token["id"]] = piece.encode() if isinstance(piece, str) else bytes(piece)
            ids.append(token["id"])
        return ids

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        """One request to the engine's own loopback door: templates and tokens live there."""
        host, port = self._engine().listening_address.removeprefix("http://").split(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=60)
        try:
            headers = {"Content-Type": "application/json"}
            connection.request("POST", path, json.dumps(body), headers)
            response = connection.getresponse()
            reply = json.loads(response.read())
        finally:
            connection.close()
        if response.status != 200:
            raise ModelError(f"{self.name}: {path} answered {response.status}: {reply}")
        return reply

    def _engine(self) -> Any:
        with self._loading:
            if self._server is None:
                self._server = self._load()
            return self._server

    def _load(self) -> Any:
        check_gguf(self.path)
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(self.path)
        params.n_ctx = self._context
        params.n_parallel = 2
        params.kv_unified = True  # else each slot gets only half of the context
        params.cache_idle_slots = False  # else the slot that waits is emptied
        params.cpuparams.n_threads = self._threads
        params.cpuparams_batch.n_threads = self._threads
        params.warmup = False
        params.verbosity = -1
        try:
            return xllamacpp.Server(params)
        except RuntimeError as error:
            raise ModelMissing(
                f"{self.path} does not load: {error}", fix="run `osler download-models`"
            ) from error


def check_gguf(path: Path) -> None:
    """Raises `ModelMissing` unless `path` begins like a GGUF file."""
    if not path.is_file():
        raise ModelMissing(f"no model file {path}", fix="run `osler download-models`")
    with path.open("rb") as file:
        if file.read(4) != _GGUF:
            raise ModelMissing(f"{path} is no GGUF file", fix="run `osler download-models`")


def _tokens(entries: Sequence[Any], text: str) -> tuple[TokenScore, ...]:
    """The engine's entries with offsets; tokens past a stop string are not in the text."""
    _, spans = decode([bytes(entry["bytes"]) for entry in entries])
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


def _usage(reply: Any, began: float) -> Usage:
    usage = reply["usage"]
    return Usage(
        calls=1,
        prompt_tokens=usage["prompt_tokens"],
        completion_tokens=usage["completion_tokens"],
        cached_tokens=usage.get("prompt_tokens_details", {}).get("cached_tokens", 0),
        seconds=round(time.perf_counter() - began, 3),
    )
