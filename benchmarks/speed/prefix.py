"""How often the embedded engine reads a token twice while TC-RAG pushes and pops.

    python benchmarks/speed/prefix.py [--runs N] [--skip N] [--again N] [--moves pattern|any|guided]

N TC-RAG runs on the sample knowledge base with the packaged model. The engine is one process,
warm from run to run, and each of its requests is written down. "pattern" offers the model one
kind of action at each step, so that every run has two backtracks and a summary: a 135-million-
parameter model left to itself takes few.

* *Evaluated* = tokens that the engine really put through the model: of each request, the prompt
  tokens that its slot did not hold, and the tokens that it generated but the last (which is
  sampled and never read, unless a later prompt holds it).
* *Distinct* = nodes of a trie of the same token sequences: of each request, its prompt and what
  it generated but the last. A prefix that is sent a hundred times counts once; a text that is
  taken off the stack and said again counts once.
* *Overhead* = evaluated / distinct. 1.00 is a cache that never forgets. Wanted: at most 1.10,
  with one trie for each run, and the run's requests alone in it. The second figure holds all runs
  against one trie, so that what runs share is also read once: the stricter one.

Scoring counts like everything else: it is forced here, each token a request, so that all goes
through the slots whose use is measured (scoring in batches has a cache of its own).

Beside it the requests of the first `--again` runs are sent again with the cache off, as an
engine without one would read them (a scoring: its context anew, then its tokens one by one),
and the seconds of both are compared. A search gives two passages.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sample_questions import samples

from osler.build.knowledge import build_sample
from osler.build.live import live_parts
from osler.build.tc_rag import build_machine
from osler.llm.local.engine import LlamaEngine
from osler.llm.local.model import LlamaCpp
from osler.methods.tcrag.actions import Move
from osler.methods.tcrag.moves import OfferedMoves, TriedMoves
from osler.methods.tcrag.stack import MemoryStack
from osler.settings import Settings, TcRagSettings
from osler.trace import Popped, Run

Trie = dict[int, Any]

PATTERN = (
    Move.TOOL_USE,
    Move.BACKTRACK,
    Move.TOOL_USE,
    Move.THOUGHT,
    Move.BACKTRACK,
    Move.SUMMARY,
    Move.TOOL_USE,
    Move.CONCLUSION,
)


@dataclass
class Pattern:
    """One kind of action at each step."""

    tools: frozenset[str]
    steps: int = 0

    @property
    def taught_moves(self) -> frozenset[Move]:
        return frozenset(Move)

    async def offer_moves(
        self, memory: MemoryStack, tried: TriedMoves, *, last: bool
    ) -> OfferedMoves:
        self.steps += 1
        return OfferedMoves(frozenset({PATTERN[self.steps - 1]}), self.tools)


@dataclass(frozen=True)
class Request:
    body: dict[str, Any]
    sequence: tuple[int, ...]
    """Prompt and generated tokens but the last."""
    evaluated: int
    prompt: int
    seconds: float

    @property
    def scores(self) -> bool:
        return "logit_bias" in self.body


@dataclass
class Recorder:
    """Stands in the engine's door and writes down what goes through."""

    engine: LlamaEngine
    requests: list[Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._ask = self.engine.run_request
        self.engine.run_request = self.ask  # type: ignore[method-assign, assignment]

    def ask(self, body: dict[str, Any], stop: threading.Event) -> dict[str, Any]:
        began = time.perf_counter()
        reply = self._ask(body, stop)
        seconds = time.perf_counter() - began
        said = [entry["id"] for entry in reply["entries"]]
        count = reply["usage"]["completion_tokens"]
        if len(said) < count:  # tokens that share a character are told as one
            said = self._ids(reply["text"])
        told = reply["timings"]
        self.requests.append(
            Request(
                body,
                (*self._ids(body["prompt"]), *said[: count - 1]),
                told["prompt_n"] + told["predicted_n"] - 1,
                told["prompt_n"] + told["cache_n"],
                seconds,
            )
        )
        return reply

    def uncached(self, requests: list[Request]) -> float:
        """Seconds of the same requests without a cache, but for the steps within one scoring."""
        began, before = time.perf_counter(), None
        for request in requests:
            goes_on = (
                request.scores
                and before is not None
                and before.scores
                and request.sequence[: len(before.sequence)] == before.sequence
                and len(request.sequence) <= len(before.sequence) + 1
            )
            self._ask({**request.body, "cache_prompt": goes_on}, threading.Event())
            before = request
        return time.perf_counter() - began

    def _ids(self, prompt: str | list[int]) -> list[int]:
        if isinstance(prompt, list):
            return prompt
        return [token for token, _ in self.engine.tokenise_text(prompt, begins=True, special=True)]


def grown(trie: Trie, sequence: tuple[int, ...]) -> int:
    """Adds the sequence; the number of nodes that were not there."""
    new = 0
    for token in sequence:
        if token not in trie:
            trie[token] = {}
            new += 1
        trie = trie[token]
    return new


def line(name: str, evaluated: int, distinct: int, rest: str = "") -> None:
    print(f"{name:14} {evaluated:>9,} {distinct:>9,} {evaluated / distinct:>9.3f} {rest}")


async def main(runs: int, skip: int, again: int, moves: str) -> None:
    with tempfile.TemporaryDirectory() as home:
        offered = "any" if moves == "pattern" else moves
        strategy = {"kind": "tc-rag", "moves": offered, "k": 2}  # else an hour on a small machine
        flags = {"home": Path(home), "strategy": strategy}
        settings = Settings.model_validate(flags)
        assert isinstance(settings.strategy, TcRagSettings)
        build_sample(settings)
        parts = await live_parts(settings)
        model = parts.model_for("planner")
        assert isinstance(model, LlamaCpp)
        model._engine._scorer_failed = True
        recorder = Recorder(model._engine)
        machine = build_machine(settings, settings.strategy, parts)
        every = (samples("questions_en.jsonl")[:15] + samples("questions_zh.jsonl"))[
            skip : skip + runs
        ]
        whole: Trie = {}
        sums, marks, pops = [0, 0, 0], [0], 0
        print(f"{'run':14} {'evaluated':>9} {'distinct':>9} {'overhead':>9} sent, calls, pops, s")
        for number, sample in enumerate(every):
            run = Run(seed=number)
            tools = frozenset(tool.name for tool in machine.tools)
            steered = replace(machine, moves=Pattern(tools)) if moves == "pattern" else machine
            await steered.solve(sample.question, run)
            alone: Trie = {}
            made = recorder.requests[marks[-1] :]
            marks.append(len(recorder.requests))
            evaluated = sum(request.evaluated for request in made)
            distinct = sum(grown(alone, request.sequence) for request in made)
            sums[0] += evaluated
            sums[1] += distinct
            sums[2] += sum(grown(whole, request.sequence) for request in made)
            popped = sum(isinstance(e, Popped) and bool(e.kind) for e in run.events)
            pops += popped
            sent = sum(request.prompt for request in made)
            took = sum(request.seconds for request in made)
            rest = f"{sent:,}, {run.usage.calls}, {popped}, {took:.1f}"
            line(sample.question.id, evaluated, distinct, rest)
        line("all, by run", sums[0], sums[1], f"{pops} pops")
        line("all, as one", sums[0], sums[2])
        if again:
            chosen = recorder.requests[: marks[min(again, runs)]]
            cached = sum(request.seconds for request in chosen)
            without = recorder.uncached(chosen)
            print(f"\nfirst {again} runs: {cached:.1f} s; without a cache {without:.1f} s", end="")
            print(f", {without / cached:.2f} times as long")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--skip", type=int, default=0, help="questions, to go on after an end")
    parser.add_argument("--again", type=int, default=4)
    parser.add_argument("--moves", choices=("pattern", "any", "guided"), default="pattern")
    given = parser.parse_args()
    asyncio.run(main(given.runs, given.skip, given.again, given.moves))
