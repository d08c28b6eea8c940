"""Does a small model keep to the wire formats? With its grammar, and without.

    python benchmarks/grammar.py [--n 200] [--free 40] [--only NAME,…]

Each reply is asked for with its own seed, 0 to n-1, at temperature 0.6, about the sample
questions in turn. "read": the format's parser read it, and it was not cut; "of the format": the
grammar's matcher accepts it. Replies are kept short (the bounds stand in the code): the figure is
about form, and says nothing about what the model wrote.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files

from pydantic import BaseModel, Field

from osler.answer.option_reading import written_option
from osler.answer.options import letter_grammar
from osler.errors import MalformedOutput
from osler.llm.core.base import Completion, Message, Sampling
from osler.llm.core.grammar import Grammar
from osler.llm.core.grammar.schema import from_schema
from osler.llm.local.gguf_files import default_gguf
from osler.llm.local.model import LlamaCpp
from osler.llm.reading.verdicts import read_verdict, verdict_grammar
from osler.methods.kag.parse import form_grammar, plan_grammar, read_plan
from osler.methods.kag.reader import read_form
from osler.methods.omni import plan
from osler.methods.omni.planners.single import parse_terms, terms_grammar
from osler.methods.tcrag import actions
from osler.types import Question

TOOLS = ("DOC_RAG", "KG_RAG")
LETTERS = Question("q", "", ("yes", "no", "in children", "in adults"))
HELD_TOKENS, FREE_TOKENS = 600, 64


class Finding(BaseModel):
    drug: str = Field(max_length=20)
    dose_mg: int = Field(ge=1, le=5000)
    certain: bool


@dataclass(frozen=True)
class Case:
    name: str
    ask: str
    grammar: Grammar
    read: Callable[[str], bool]


def _reads(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def read(reply: str) -> bool:
        try:
            parse(reply)
        except (MalformedOutput, ValueError):
            return False
        return True

    return read


CASES = [
    Case(
        "TC-RAG action",
        "Reply with one action: Thought: …, Tool_Use: DOC_RAG or KG_RAG with Tool_Input: …,"
        " Backtrack: …, Summary: … or Conclusion: …",
        actions.action_grammar(set(actions.Move), TOOLS, argument=True, longest=50),
        _reads(lambda reply: actions.parse_action(reply, tools=TOOLS)),
    ),
    Case(
        "source plan",
        "Write up to three queries for each source, as <book> query ; query </book>, in the tags"
        " book, guideline, research, wiki and graph; in graph as term , query.",
        plan.source_plan_grammar(at_most=2, longest=12, words=2),
        _reads(plan.expect_source_plan),
    ),
    Case(
        "terms",
        "Write the medical terms of the question, as <term>term , term</term>.",
        terms_grammar(longest=3),
        _reads(parse_terms),
    ),
    Case(
        "yes or no",
        "Can the question be answered without documents? Write <answer>yes</answer> or"
        " <answer>no</answer>.",
        verdict_grammar(),
        _reads(read_verdict),
    ),
    Case(
        "option letter",
        "A. yes\nB. no\nC. in children\nD. in adults\nWrite the letter, as <answer>A</answer>.",
        letter_grammar(LETTERS.letters),
        lambda reply: written_option(reply, LETTERS) is not None,
    ),
    Case(
        "logical form",
        "Write the logical form: Retrieval(s=s1:type['name'], p=p1:edge, o=o1:type)",
        form_grammar(longest=16),
        _reads(read_form),
    ),
    Case(
        "plan of logical forms",
        "Take the question apart: <answer>Step1: …\nAction1: Retrieval(…)</answer>",
        plan_grammar(steps=2, longest=8),
        _reads(read_plan),
    ),
    Case(
        "JSON by schema",
        'Write the drug as JSON: {"drug": "…", "dose_mg": 10, "certain": true}',
        from_schema(Finding.model_json_schema()),
        _reads(Finding.model_validate_json),
    ),
]


@dataclass
class Tally:
    n: int = 0
    read: int = 0
    formed: int = 0
    tokens: int = 0
    seconds: float = 0.0

    def add(self, case: Case, reply: Completion) -> None:
        self.n += 1
        whole = reply.finish == "stop"
        self.read += whole and case.read(reply.text)
        self.formed += whole and case.grammar.accepts(reply.text)
        self.tokens += reply.usage.completion_tokens
        self.seconds += reply.usage.seconds

    def __str__(self) -> str:
        return (
            f"{self.read:4}/{self.n:<4} {self.formed:4}/{self.n:<4}"
            f" {self.tokens / max(1, self.n):7.1f} {self.seconds / max(1, self.n):8.2f}"
        )


def questions() -> list[str]:
    lines = files("osler.sample").joinpath("questions_en.jsonl").read_text(encoding="utf-8")
    return [json.loads(line)["question"] for line in lines.splitlines()]


async def tally(model: LlamaCpp, case: Case, n: int, *, held: bool) -> Tally:
    asked, counted = questions(), Tally()
    for seed in range(n):
        said = f"{case.ask}\n\nQuestion: {asked[seed % len(asked)]}"
        sampling = Sampling(
            max_tokens=HELD_TOKENS if held else FREE_TOKENS,
            top=0,
            seed=seed,
            grammar=case.grammar if held else None,
        )
        counted.add(case, await model.complete([Message("user", said)], sampling))
    return counted


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=200, help="replies with the grammar")
    parser.add_argument("--free", type=int, default=40, help="replies without")
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    only = {name for name in given.only.split(",") if name}
    model = LlamaCpp(default_gguf(), name="smollm2-135m-instruct-q8_0", context=2048)
    print(f"model {model.name}, temperature 0.6, seeds 0 to n-1, free replies {FREE_TOKENS} tokens")
    print(f"{'':38} {'read':>9} {'of the format':>9} {'tokens':>6} {'seconds':>8}")
    began = time.perf_counter()
    for case in [c for c in CASES if not only or c.name in only]:
        for held, n in ((True, given.n), (False, given.free)):
            counted = await tally(model, case, n, held=held)
            how = "grammar" if held else "free"
            print(f"{case.name:29.29} {how:8} {counted}", flush=True)
    print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    asyncio.run(main())
