"""Trains the experts `judge` and `match`, and the teachers that both learn from.

    PYTHONPATH=benchmarks python research/experts/train_judge.py \\
        --data FOLDER --teacher MPNET --out FOLDER --device cuda

`--data` holds, at any depth, the corpora and sets that docs/guide/experts.md lists; `--teacher` is
the folder of all-mpnet-base-v2, with config.json, tokenizer.json and model.safetensors. Writes the
folders `judge` and `match` into `--out`: the train part teaches, and the test part is measured for
the cards. The teachers' logits are kept in `--out` and not made again.
`benchmarks/natural_questions.py --fit FOLDER/judge` then fits the judge's parameters on dev
questions.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from expert_folders import compare_rights, write_expert
from expert_sets import (
    HERE,
    LICENCES,
    SPLIT,
    JudgedCase,
    open_texts,
    read_cases,
    read_unlabelled,
)
from judge_models import (
    JUDGE,
    MATCH,
    TEACHER,
    JudgeModel,
    MatchModel,
    TeacherModel,
    text_of,
    train_rows,
)
from natural.published import PARTS, Part, read_split

from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import Encoder, MiniLMEncoder
from osler.retrieve.experts.cards import BASE, ExpertData, ExpertFigure, open_expert
from osler.retrieve.experts.judge import JudgeExpert, MatchEncoder
from osler_lab.evaluate.trained_on import list_questions

PARAMETERS = {
    "ordered": 0.05,
    "bias": -1.0,
    "relevance": 1.0,
    "judged": 0.4,
    "failed": 1.6,
    "margin": 2.0,
    "check": 0.35,
}
"""Before `benchmarks/natural_questions.py --fit` has fitted them."""
FACTS: Mapping[str, Mapping[str, Any]] = {
    "judge": {
        "question": "Does this sentence, where it stands, answer this question?",
        "family": "pair",
        "weak": (
            "English only: Chinese questions keep the cosine",
            "it judges whether a sentence answers, not whether it is true",
            "what a text is about it knows by names and words; checks of names stand beside it",
        ),
        "parameters": PARAMETERS,
    },
    "match": {
        "question": "How near does this sentence lie to what would answer this question?",
        "family": "encoder",
        "weak": (
            "English only",
            "it knows what a sentence is about, not whether it is true",
            "an amount, a name or a direction of another kind lies near; checks stand beside it",
        ),
    },
}
CaseScores = Callable[[JudgedCase], Sequence[float]]


def teach_cases(
    cases: Sequence[JudgedCase], folder: Path, out: Path, seeds: int, device: str, steps: int | None
) -> list[JudgedCase]:
    """The cases with the mean of the teachers' logits, each of which learnt from the labels."""
    logits = [_score_by_teacher(cases, folder, out, seed, device, steps) for seed in range(seeds)]
    scores = iter(np.mean(logits, axis=0).tolist())
    return [replace(one, taught=tuple(next(scores) for _ in one.texts)) for one in cases]


def _score_by_teacher(
    cases: Sequence[JudgedCase], folder: Path, out: Path, seed: int, device: str, steps: int | None
) -> np.ndarray:
    path = out / f"teacher-{seed}.npy"
    if not path.is_file():
        recipe = replace(TEACHER, steps=steps or TEACHER.steps, seed=seed)
        model = TeacherModel(folder, recipe, device)
        train_rows(model, [one for one in cases if one.worth], out / f"teacher-{seed}.jsonl")
        np.save(path, model.score_cases(cases))
    found: np.ndarray = np.load(path)
    assert len(found) == sum(len(one.texts) for one in cases), f"{path} is of other data"
    return found


def train_expert(
    name: str,
    cases: Mapping[Part, Sequence[JudgedCase]],
    out: Path,
    device: str,
    steps: int | None = None,
    limit: int | None = None,
) -> None:
    """Trains one of the two, and writes its folder; `limit`: test cases of each set."""
    folder, usual = out / name, JUDGE if name == "judge" else MATCH
    recipe = replace(usual, steps=steps or usual.steps)
    model = (JudgeModel if name == "judge" else MatchModel)(recipe, device)
    train_rows(model, cases["train"], out / f"{name}.jsonl")
    facts = {
        **FACTS[name],
        "name": name,
        "replaces": "the cosine of question and sentence",
        "made": "research/experts/train_judge.py --data FOLDER --teacher FOLDER --out FOLDER",
        "seed": recipe.seed,
        "base": BASE,
        "default": True,
        "data": _count_cases(cases),
    }
    deltas = model.export_deltas()
    write_expert(folder, deltas, **facts)
    list_questions(folder, (one.question for one in cases["train"]))
    figures = _measure_first(cases["test"], _score_with(name, folder), limit)
    write_expert(folder, deltas, **facts, figures=figures)


def _score_with(name: str, folder: Path) -> CaseScores:
    """What the trained expert makes of a case's sentences."""
    expert = open_expert(name, folder)
    if name == "match":
        return _score_by_cosine(MatchEncoder(expert))
    judge = JudgeExpert(expert)
    return lambda one: judge.score_lines(one.question, [text.to_line() for text in one.texts])


def _count_cases(cases: Mapping[Part, Sequence[JudgedCase]]) -> list[ExpertData]:
    """The cases of each part by set, for a card."""
    counts = Counter((one.source, part) for part in cases for one in cases[part])
    return [
        ExpertData(name=name, licence=licence, **{part: counts[name, part] for part in PARTS})
        for name, licence in LICENCES.items()
        if any(counts[name, part] for part in PARTS)
    ]


def _score_by_cosine(encoder: Encoder) -> CaseScores:
    """The cosines of a case's sentences, each under its heading, with its question."""

    def score_case(case: JudgedCase) -> Sequence[float]:
        asked = encoder.encode([case.question], kind="query")[0]
        said = encoder.encode([text_of(text) for text in case.texts], kind="passage")
        return [float(one) for one in said @ asked]

    return score_case


def _measure_first(
    cases: Sequence[JudgedCase], score_case: CaseScores, limit: int | None
) -> list[ExpertFigure]:
    """For each set the share of the cases whose answering sentence stands first, beside the
    packaged encoder's cosine."""
    rule = _score_by_cosine(MiniLMEncoder())
    figures = []
    for name in LICENCES:
        own = [one for one in cases if one.source == name and {0.0, 1.0} <= {*one.worth}]
        own = own[:: max(1, len(own) // limit)][:limit] if limit else own
        ours, theirs = ([_is_first(one, by(one)) for one in own] for by in (score_case, rule))
        if own:
            measure = "an answering sentence is first"
            figures.append(compare_rights(f"{name}, test", measure, ours, "cosine", theirs))
    return figures


def _is_first(case: JudgedCase, scores: Sequence[float]) -> float:
    return float(case.worth[max(range(len(scores)), key=scores.__getitem__)] == 1)


def read_all(data: Path, kb: KnowledgeBase) -> dict[Part, list[JudgedCase]]:
    """The cases by part; what nobody labelled belongs to the train part."""
    cases = {part: read_cases(data, kb, part) for part in PARTS}
    asked = (HERE / "questions_unlabelled.txt").read_text(encoding="utf-8").splitlines()
    cases["train"] += read_unlabelled(asked, kb, read_split(SPLIT))
    return cases


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--teacher", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seeds", type=int, default=3, help="teachers that are averaged")
    parser.add_argument("--steps", type=int, help="of each training, instead of the recipe's")
    parser.add_argument("--limit", type=int, help="test cases of each set that are measured")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    with open_texts(given.data, given.out) as kb:
        cases = read_all(given.data, kb)
    learnt = teach_cases(
        cases["train"], given.teacher, given.out, given.seeds, given.device, given.steps
    )
    for name in FACTS:
        train_expert(
            name, {**cases, "train": learnt}, given.out, given.device, given.steps, given.limit
        )


if __name__ == "__main__":
    main()
