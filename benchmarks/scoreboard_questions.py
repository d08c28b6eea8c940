"""The scoreboard's generated questions: formulas' values, and several steps over the sample graph.

    python benchmarks/scoreboard_questions.py > packages/osler/src/osler/sample/scoreboard.jsonl

Sixty questions give all inputs of a verified formula, with the value that `evaluate_formula` gives
(the same function states the answer, so they measure whether the question is read, not the
formula); sixty ask the sample graph for up to three names or a count, computed from its raw
relations. The same seed gives the same file. The templates are those of `formula_questions.py` and
`graph_questions.py`, whose figures in the log are on other draws.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import as_file, files
from itertools import groupby
from random import Random
from typing import Any

import formula_questions
import graph_questions
from graph_templates import SETS, read_sample

SEED, EACH, NAMES = 28, 60, 3


def ask_formulas() -> Iterator[dict[str, Any]]:
    """One question of each formula and language that gives all inputs, in random order."""
    cases = formula_questions.make_cases(SEED, fresh=True)
    of_each = groupby(cases, key=lambda case: (case.formula.id, case.question.language))
    for (formula, language), group in of_each:
        case = next(one for one in group if one.kind == "whole")
        if case.value:
            yield _row(case.question.text, language, "formula", f"{case.value:.6g}", formula)


def ask_graph() -> Iterator[dict[str, Any]]:
    """Questions of every template whose answer is a count, or at most three names."""
    with as_file(files("osler.sample") / "graph") as folder:
        relations, chinese = read_sample(folder)
        for name, (_, templates, _, _) in SETS.items():
            for case in graph_questions.make_cases(
                "sample", templates, relations, chinese, SEED, 8
            ):
                gold, text = case.answer, case.question.text
                if case.question.language == "zh" or gold is None or isinstance(gold, bool):
                    continue
                if isinstance(gold, int) or len(gold) <= NAMES:
                    told = str(gold) if isinstance(gold, int) else "; ".join(sorted(gold))
                    yield _row(text, "en", "steps", told, name)


def _row(text: str, language: str, kind: str, answer: str, about: str) -> dict[str, Any]:
    return {
        "id": "",
        "language": language,
        "kind": kind,
        "question": text,
        "answer": answer,
        "about": about,
    }


def main() -> None:
    for kind, made in (("formula", ask_formulas()), ("steps", ask_graph())):
        rows = list({row["question"]: row for row in made}.values())
        Random(SEED).shuffle(rows)
        for number, row in enumerate(rows[:EACH], 1):
            print(json.dumps({**row, "id": f"{kind}-{number:02d}"}, ensure_ascii=False))


if __name__ == "__main__":
    main()
