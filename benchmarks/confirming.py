"""Statements confirmed by a model of one's own (`answer.confirm`), beside the words' check.

    python benchmarks/confirming.py DATA dev|test [QUESTIONS]

Asks the model of `./osler.toml`. Of each set (`citation_cases`) some questions have their gold
statements, every second with something swapped, beside the gold passages and the nearest of another
question; the others have the nearest passages alone. A question is one answer, and one call. Prints
a Markdown table of what is confirmed, with 95 % intervals; right marks should be, the others not.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from citation_cases import SWAPS, Case, NearestOther, Swapper, read_gold

from osler.answer.confirming import StatementChecker
from osler.answer.written import WrittenComposer
from osler.build.composers import sampling_of
from osler.build.models import load_model
from osler.llm.core.ask import Speaker
from osler.settings import load
from osler.trace import Run
from osler.types import Hit, Question
from osler_lab.evaluate.intervals import proportion

QUESTIONS, MOST_STATEMENTS, MOST_HITS = 96, 8, 8
_WITH_GOLD = 0.625
"""Share of the questions that have their gold passages."""


@dataclass(frozen=True, slots=True)
class Draft:
    """The statements of one question, each of a kind, beside the same passages."""

    set: str
    asked: str
    hits: Sequence[Hit]
    statements: Sequence[tuple[str, str]]
    """Kind and text."""

    @property
    def text(self) -> str:
        marks = "".join(f"[{n}]" for n in range(1, len(self.hits) + 1))
        return "\n\n".join(f"{said.rstrip()} {marks}" for _, said in self.statements)


def make_drafts(gold: Sequence[Case], half: str, most: int) -> Iterator[Draft]:
    rng = random.Random(7)
    for set_ in dict.fromkeys(case.set for case in gold):
        cases = [case for case in gold if case.set == set_]
        nearest, swapper = NearestOther(cases), Swapper.of_cases(cases)
        asked: dict[str, list[Case]] = defaultdict(list)
        for case in cases:
            if case.half == half:
                asked[case.question].append(case)
        drawn = rng.sample(sorted(asked), min(most, len(asked)))
        for number, question in enumerate(drawn):
            own = asked[question][:MOST_STATEMENTS]
            if number < _WITH_GOLD * len(drawn):
                hits = [*own[0].hits[:MOST_HITS], nearest.find(own[0])]
                rng.shuffle(hits)
                said = [_swap_some(case, swapper, rng) for case in own]
            else:
                hits = list({hit.passage.id: hit for hit in map(nearest.find, own)}.values())
                said = [("wrong", case.text) for case in own]
            yield Draft(set_, own[0].asked, hits, said)


def _swap_some(case: Case, swapper: Swapper, rng: random.Random) -> tuple[str, str]:
    if rng.random() < 0.5:
        for kind in rng.sample(list(SWAPS), len(SWAPS)):
            text = SWAPS[kind](case.text, swapper)
            if text and text != case.text:
                return kind, text
    return "right", case.text


async def confirmed(composer: WrittenComposer, draft: Draft) -> set[str]:
    """The statements that are shown with a citation."""
    answer = await composer.conclude(Question("q", draft.asked), draft.hits, draft.text, Run())
    return {one.text for one in answer.statements if one.cites}


async def main(data: Path, half: str, most: int) -> None:
    settings = load({}, cwd=Path.cwd(), env=os.environ).settings
    reader, words = await load_model(settings.model), WrittenComposer()
    speaker = Speaker(reader.model, "reader", sampling_of(settings), reader.constrains)
    composer = replace(words, checker=StatementChecker(speaker))
    found: dict[tuple[str, str], list[tuple[bool, bool]]] = defaultdict(list)
    for draft in make_drafts(read_gold(data), half, most):
        by_model, by_words = await confirmed(composer, draft), await confirmed(words, draft)
        for kind, said in draft.statements:
            found[draft.set, kind].append((said.strip() in by_model, said.strip() in by_words))
        print(f"{sum(map(len, found.values()))} statements", file=sys.stderr)
    print("| Set | Kind | n | model | words |\n|---|---|--:|---|---|")
    for (set_, kind), rows in sorted(found.items()):
        model, plain = (proportion(sum(column), len(rows)) for column in zip(*rows, strict=True))
        print(f"| {set_} | {kind} | {len(rows)} | {model} | {plain} |")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int((sys.argv[3:] or [str(QUESTIONS)])[0])))
