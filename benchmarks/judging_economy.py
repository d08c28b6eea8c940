"""Tokens of judging, against the paper's plain recipe, on the same judgements.

    python benchmarks/judging_economy.py --work FOLDER [--reply N] [--store]

FOLDER was explored (`benchmarks/train_planner.py --only data,explore`). Every prompt that each way
of judging sends is written out and its tokens are counted by the packaged encoder's tokenizer. The
verdicts are those of a judge that knows the gold documents, so that all ways judge alike, query
for query; the script fails where they do not. `--reply` is how long a reply is in words of the
prompt E.4 ("up to 100 words"), the same for all ways but likelihood, which writes none.

cached: prompt tokens that an engine with a prefix cache does not read again, counted against the
prompt before it.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from quality import store

from osler.evaluate.record import Gold
from osler.llm.core.base import Completion, Message, Sampling, Scored, TokenScore
from osler.llm.core.speaker import Speaker
from osler.trace import Run
from osler.train.spo import job
from osler.train.spo.case import TrainingCase
from osler.train.spo.explore import ExploredCase
from osler.train.spo.judge import (
    JudgingSignal,
    LikelihoodJudge,
    LLMJudge,
    QueryVerdict,
    judge_case,
    judging_prompt,
)
from osler.train.spo.signals import document_of
from osler.train.spo.units import better_half
from osler.types import Usage

Count = Callable[[str], int]


@dataclass
class Knowing:
    """A model that says yes exactly to prompts that show a gold document, and counts tokens."""

    count: Count
    reply: int
    shown: frozenset[str] = frozenset()
    """What the gold documents of this case say."""
    name: str = "knowing"
    prompt: int = 0
    cached: int = 0
    written: int = 0
    calls: int = 0
    _before: str = field(default="", repr=False)

    def _read(self, messages: Sequence[Message]) -> bool:
        text = messages[0].content
        whole = self.count(text)
        pairs = enumerate(zip(self._before, text, strict=False))
        same = next((n for n, (a, b) in pairs if a != b), 0)
        shared = self.count(text[:same])
        self.calls += 1
        self.prompt += whole
        self.cached += max(0, shared - 1)  # the token at the seam is read again
        self._before = text
        return any(each in text for each in self.shown)

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        yes = self._read(messages)
        self.written += self.reply
        if "each document by itself" not in messages[0].content:
            return Completion(f"<answer>{'yes' if yes else 'no'}</answer>", usage=Usage(calls=1))
        named = [n for n, text in _numbered(messages[0].content) if text in self.shown]
        told = ", ".join(map(str, named)) or "none"
        return Completion(f"<answer>{told}</answer>", usage=Usage(calls=1))

    async def score(self, context: Sequence[Message] | str, text: str) -> Scored:
        raise AssertionError("both words are scored at once")

    async def score_all(
        self, context: Sequence[Message] | str, texts: Sequence[str]
    ) -> tuple[Scored, ...]:
        assert not isinstance(context, str)
        yes = self._read(context)
        self.written += len(texts)
        logprobs = {"yes": -0.1 if yes else -3.0, "no": -3.0 if yes else -0.1}
        return tuple(
            Scored((TokenScore(text, 0, len(text), logprobs[text]),), Usage(calls=1))
            for text in texts
        )

    @property
    def tokens(self) -> int:
        return self.prompt + self.written


def _numbered(prompt: str) -> list[tuple[int, str]]:
    """The documents of a listing prompt, as they are numbered there."""
    body = prompt.partition("# Documents\n")[2].partition("\n\nHint:")[0]
    parts = re.split(r"(?:^|\n\n)\[(\d+)\] ", body)
    return [(int(n), text) for n, text in zip(parts[1::2], parts[2::2], strict=True)]


@dataclass(frozen=True)
class Plain:
    """The paper's: "the separate evaluation for each document set" (Limitations)."""

    speaker: Speaker
    name: str = "plain"

    async def judge(self, explored: ExploredCase, run: Run) -> tuple[list[QueryVerdict], int]:
        verdicts = []
        for query in explored.queries:
            read = better_half(query.found)
            said = False
            if read:
                prompt = judging_prompt(explored, read)
                reply = await self.speaker.model.complete(
                    [Message("user", prompt.text)], self.speaker.sampling
                )
                said = "yes" in reply.text
            verdicts.append(QueryVerdict(query.source, query.wire, said))
        return verdicts, len(explored.queries)


WAYS: dict[str, Callable[[Speaker], JudgingSignal]] = {
    "plain": Plain,
    "model by set": lambda speaker: LLMJudge(speaker, "set"),
    "model by document": lambda speaker: LLMJudge(speaker, "document"),
    "model by list": lambda speaker: LLMJudge(speaker, "list"),
    "likelihood by set": lambda speaker: LikelihoodJudge(speaker, "set"),
    "likelihood by document": lambda speaker: LikelihoodJudge(speaker, "document"),
}


def packaged_count() -> Count:
    """Tokens of a text by the packaged encoder's tokenizer."""
    from tokenizers import Tokenizer

    from osler.llm.local.weights import MINILM_TOKENIZER, locate_weights

    tokenizer = Tokenizer.from_file(str(locate_weights(MINILM_TOKENIZER)))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


@dataclass
class Row:
    calls: int = 0
    prompt: int = 0
    cached: int = 0
    written: int = 0

    @property
    def read(self) -> int:
        return self.prompt + self.written

    @property
    def worked(self) -> int:
        """What an engine with a prefix cache works on."""
        return self.read - self.cached


async def measured(
    explorations: Sequence[ExploredCase], count: Count, reply: int
) -> dict[str, Row]:
    rows = {name: Row() for name in WAYS}
    for explored in explorations:
        gold = set(explored.case.documents)
        shown = frozenset(t for id, t in explored.passages.items() if document_of(id) in gold)
        said: dict[str, list[bool | None]] = {}
        for name, way in WAYS.items():
            model = Knowing(count, reply, shown)
            made = await judge_case(way(Speaker(model, "judge", Sampling(0.0, top=0))), explored)
            said[name] = [verdict.positive for verdict in made.verdicts]
            row = rows[name]
            row.calls += model.calls
            row.prompt += model.prompt
            row.cached += model.cached
            row.written += model.written
        if any(verdicts != said["plain"] for verdicts in said.values()):
            raise SystemExit(f"{explored.key}: the ways do not judge alike")
    return rows


def table(rows: dict[str, Row], questions: int) -> str:
    plain = rows["plain"]
    lines = ["| way | calls | tokens | cached | tokens, ratio | worked on, ratio |"]
    lines.append("|---|--:|--:|--:|--:|--:|")
    for name, row in rows.items():
        lines.append(
            f"| {name} | {row.calls / questions:.1f} | {row.read / questions:,.0f}"
            f" | {row.cached / questions:,.0f} | {row.read / plain.read:.2f}"
            f" | {row.worked / plain.worked:.2f} |"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--reply", type=int, default=100, help="tokens of a worded reply")
    parser.add_argument("--limit", type=int, default=100, help="questions")
    parser.add_argument("--store", action="store_true", help="write into quality.toml")
    given = parser.parse_args()
    found = [
        replace(one, case=_answered(one.case))
        for one in job.read_explorations(given.work / "spo")
        if one.case.documents
    ][: given.limit]
    if not found:
        print(f"nothing is explored in {given.work}", file=sys.stderr)
        return 1
    rows = asyncio.run(measured(found, packaged_count(), given.reply))
    print(f"{len(found)} questions, a question:\n\n{table(rows, len(found))}")
    if given.store:
        plain = rows["plain"]
        told = {name: round(row.read / plain.read, 4) for name, row in rows.items()}
        worked = {name: round(row.worked / plain.worked, 4) for name, row in rows.items()}
        part = {"script": "benchmarks/judging_economy.py", "questions": len(found)}
        store("judging_economy", {**part, "reply": given.reply, "tokens": told, "worked": worked})
    return 0


def _answered(case: TrainingCase) -> TrainingCase:
    """Where a set names documents alone, the prompt says which: some answer must stand there."""
    gold = Gold(texts=("as the documents say",)) if not case.gold else case.sample.gold
    return replace(case, sample=replace(case.sample, gold=gold))


if __name__ == "__main__":
    sys.exit(main())
