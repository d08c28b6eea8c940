"""Questions for a formula's value in other hands' words: right, wrong, a range, asked back or left.

    python benchmarks/formulas_by_hand.py benchmarks/formulas/third-en.tsv…

A line is "formula TAB question TAB number". Right is the number, in one of the units that the
answer tells it in, to 1.2 per cent (constants differ); a date is right as it stands. A range that
holds the number is neither right nor wrong.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections import Counter
from pathlib import Path

from osler.build.hub import read_tokens
from osler.methods.kag.computed import QuestionCalculator
from osler.text import language_of
from osler.trace import Run
from osler.types import Question

_AGREES = 0.012
_ROUNDED = 0.006


async def judge_answer(text: str, gold: str) -> str:
    """What became of one question."""
    question = Question("q", text, (), language_of(text))
    solution = await QuestionCalculator(read_tokens=read_tokens).solve(question, Run())
    if solution is None:
        return "left"
    if not solution.answer.evidence:
        return "asked back"
    told = re.split(r"（依据|, from ", solution.answer.text)[0]
    if span := re.search(r"(-?[\d.]+) (?:to|至) (-?[\d.]+)", told):
        return "range" if float(span[1]) <= float(gold) <= float(span[2]) else "wrong"
    numbers = re.findall(r"-?\d+(?:\.\d+)?", re.split("[:：]", told, maxsplit=1)[-1])
    if not re.fullmatch(r"-?[\d.]+", gold):
        return "right" if gold in told else "wrong"
    bound = _AGREES * abs(float(gold)) + _ROUNDED
    return "right" if any(abs(float(n) - float(gold)) <= bound for n in numbers) else "wrong"


def main() -> None:
    for name in sys.argv[1:]:
        lines = Path(name).read_text(encoding="utf-8").splitlines()
        rows = [line.split("\t") for line in lines if line and not line.startswith("formula\t")]
        found = Counter(asyncio.run(judge_answer(text, gold)) for _, text, gold, *_ in rows)
        print(Path(name).name, len(rows), dict(found))


if __name__ == "__main__":
    main()
