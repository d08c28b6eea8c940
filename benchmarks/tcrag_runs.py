"""TC-RAG on 100 questions, sample and real: does every run end as defined, and what does it cost?

    python benchmarks/tcrag_runs.py [--limit N] [--uct N] [--out FILE.json] [--figure FILE.svg]
    python benchmarks/tcrag_runs.py --read FILE.json [--figure FILE.png]

40 questions of the sample and 60 real ones (MedQA-US, PubMedQA, CMB-Exam; seeded choice from
../shared/data/A_questions, left out where that is absent), the packaged model with grammars,
the knowledge base of the sample texts. Each question is run under the least sigma and goes
through the larger ones from its tape (`osler.app.studies.sigma_sweep`). Prints, for each sigma,
halts, steps, calls, tokens and state values with 95 % intervals. The sample texts hold nothing
on most of the real questions, so many runs end with no evidence: that is a halt too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from sample_questions import samples

from osler.app.config import Settings
from osler.app.studies import sigma_sweep
from osler.app.wiring.knowledge import build_sample
from osler.evaluate.figures import sigma_figure
from osler.evaluate.labeled_questions import LabeledQuestion
from osler.evaluate.sigma import Metric, SigmaOutcome, SigmaPoint, summarize_points
from osler.questions import parse_question
from osler.types import Halt

SEED = 6
DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "A_questions"
SIGMAS: dict[Metric, tuple[float, ...]] = {
    "cppl": (5.0, 10.0, 15.0, 20.0, 30.0, 45.0),
    "uct": (4.0, 8.0, 12.0, 16.0, 20.0, 32.0),
}
_MAYBE = ("yes", "no", "maybe")


def _medqa() -> list[LabeledQuestion]:
    path = DATA / "medqa_us" / "phrases_no_exclude_test.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [
        _posed(row["question"], tuple(row["options"].values()), row["answer_idx"]) for row in rows
    ]


def _pubmedqa() -> list[LabeledQuestion]:
    told = json.loads((DATA / "pubmedqa" / "test_set.json").read_text(encoding="utf-8"))
    letters = {"yes": "A", "no": "B", "maybe": "C"}
    return [
        _posed(row["QUESTION"], _MAYBE, letters[row["final_decision"]]) for row in told.values()
    ]


def _cmb() -> list[LabeledQuestion]:
    rows = json.loads((DATA / "cmb_exam" / "CMB-500.json").read_text(encoding="utf-8"))
    single = [row for row in rows if len(row["answer"]) == 1]
    kept = [(row, [text for text in row["option"].values() if text]) for row in single]
    return [
        _posed(row["question"], tuple(options), row["answer"])
        for row, options in kept
        if len(set(options)) == len(options) > 1
    ]


def _posed(text: str, options: tuple[str, ...], gold: str) -> LabeledQuestion:
    return LabeledQuestion(parse_question(text, options=options), gold)


def chosen() -> list[LabeledQuestion]:
    """The same 100 each time: 40 of the sample, 20 of each real set."""
    own = samples("questions_en.jsonl") + samples("questions_zh.jsonl")
    found = [LabeledQuestion(s.question, s.answer if s.question.options else "") for s in own]
    if DATA.is_dir():
        chance = random.Random(SEED)
        for read in (_medqa, _pubmedqa, _cmb):
            found += chance.sample(read(), 20)
    return found


def table(rows: list[SigmaPoint]) -> str:
    """In Markdown."""
    lines = [
        "| metric | sigma | n | converged | budget | no evidence | steps | calls | tokens"
        " | last state value | EM |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        state = f"{row.state.value:.1f}" if row.state else "-"
        em = f"{row.em.value:.2f} ({row.em.low:.2f} to {row.em.high:.2f})" if row.em else "-"
        lines.append(
            f"| {row.metric} | {row.sigma:g} | {row.converged.n} | {row.halts['converged']}"
            f" | {row.halts['budget']} | {row.halts['no_evidence']} | {row.steps.value:.2f}"
            f" | {row.calls.value:.1f} | {row.tokens.value:,.0f} | {state} | {em} |"
        )
    return "\n".join(lines)


def kept(path: Path) -> list[SigmaOutcome]:
    """What `--out` has written."""
    rows = json.loads(path.read_text(encoding="utf-8"))
    return [
        SigmaOutcome(**{**row, "halt": Halt(row["halt"]), "values": tuple(row["values"])})
        for row in rows
    ]


def show(outcomes: list[SigmaOutcome], figures: list[Path]) -> None:
    found = summarize_points(outcomes)
    print(table(found))
    if figures:
        sigma_figure(found, figures)


async def main(given: argparse.Namespace) -> None:
    every = chosen()
    random.Random(SEED).shuffle(every)
    began = time.perf_counter()
    outcomes: list[SigmaOutcome] = []

    def done(outcome: SigmaOutcome) -> None:
        outcomes.append(outcome)
        if given.out:
            told = [asdict(one) for one in outcomes]
            given.out.write_text(json.dumps(told, indent=1), encoding="utf-8")

    with tempfile.TemporaryDirectory() as folder:
        settings = Settings.model_validate(
            {
                "home": Path(folder),
                "model": {"threads": 1},
                "strategy": {"kind": "tc-rag", "max_loop": given.steps, "k": 3},
            }
        )
        build_sample(settings)
        counts: dict[Metric, int] = {"cppl": given.limit, "uct": given.uct}
        for metric, count in counts.items():
            asked = every[:count]
            if asked:
                await sigma_sweep(settings, asked, {metric: SIGMAS[metric]}, done=done)
                print(
                    f"{metric}: {len(asked)} questions, {time.perf_counter() - began:.0f} s",
                    flush=True,
                )
    show(outcomes, given.figure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int, default=100, help="questions under cppl")
    parser.add_argument("--uct", type=int, default=25, help="questions under uct")
    parser.add_argument("--steps", type=int, default=4, help="strategy.max_loop")
    parser.add_argument("--out", type=Path, default=None, help="where each outcome is kept")
    parser.add_argument("--figure", type=Path, action="append", default=[], help="SVG or PNG")
    parser.add_argument("--read", type=Path, default=None, help="no runs: outcomes that were kept")
    arguments = parser.parse_args()
    if arguments.read:
        show(kept(arguments.read), arguments.figure)
    else:
        asyncio.run(main(arguments))
