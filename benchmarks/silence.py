"""Silence: what is answered, shown as nearest, and refused, with the subject there and without.

    python benchmarks/silence.py ask --work FOLDER [--out silence.jsonl]
    python benchmarks/silence.py table [--out silence.jsonl]

`ask` searches the knowledge base that `osler experts train answerable --work FOLDER` made for the
test questions of `experts/silence_questions.txt` (ids alone; no gate and no quotes had been
measured on them), once as it is and once without every passage about their subject, and answers by
the default in quotes. Beside it stand the rule for words, with and without the choice of quotes
that answer, and a cosine of .7. A stopped run goes on.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from experts.quoted import ROOT, read_rows

from osler.answer.extractive import ExtractiveComposer
from osler.answer.sentences import quote_candidates
from osler.evaluate.intervals import proportion
from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import MiniLMEncoder, VectorMemory
from osler.retrieve.experts.answerable import ANSWERABLE, AnswerableExpert
from osler.retrieve.experts.shelf import open_expert
from osler.retrieve.naming import NamingRelevance
from osler.trace import Run
from osler.train.experts.answerable_job import make_gate
from osler.train.experts.evidence_cases import (
    CaseFinder,
    EvidenceCase,
    names_subject,
    read_letters,
    read_subject_names,
)
from osler.train.experts.searches import read_searches
from osler.types import Hit

IDS = ROOT / "benchmarks/experts/silence_questions.txt"
NEAR = 0.7


async def ask_all(given: argparse.Namespace) -> None:
    encoder, names = VectorMemory(MiniLMEncoder(threads=1)), read_subject_names(given.data)
    known = {row["id"] for row in read_rows(given.out)}
    asked = {one.id: one for one in read_searches(given.data)}
    with KnowledgeBase.open(given.work / "kb") as kb, given.out.open("a", encoding="utf-8") as out:
        gate = replace(
            make_gate(kb, encoder),
            expert=AnswerableExpert(open_expert(ANSWERABLE)),
            decides=False,
        )
        words = replace(gate, expert=None, naming=NamingRelevance(kb.term_rarity))
        ours = ExtractiveComposer(gate, judge=gate.judge)
        rule = ExtractiveComposer(words, judge=gate.judge, nearest=False)
        finder = CaseFinder(kb, encoder, names, read_letters(given.data)[1])
        for id in IDS.read_text(encoding="utf-8").split():
            if id in known:
                continue
            cases = await finder.find_cases(asked[id])
            of = names.names_of(asked[id])
            rows = [await measure_case(case, of, ours, rule) for case in cases]
            out.write(json.dumps({"id": id, "source": asked[id].source, "cases": rows}) + "\n")
            out.flush()


async def measure_case(
    case: EvidenceCase, names: frozenset[str], ours: ExtractiveComposer, rule: ExtractiveComposer
) -> dict[str, Any]:
    """What is said of a case, and whether a quote is of another subject, by each way."""
    question, hits = case.question, list(case.hits)

    def tells_other(found: list[Hit]) -> bool:
        gold = [not case.absent and case.is_gold(hit) for hit in found]
        pairs = zip(found, gold, strict=True)
        return bool(names) and any(not g and not names_subject(h.passage, names) for h, g in pairs)

    answer = await ours.conclude(question, hits, "", Run())
    before = await rule.conclude(question, hits, "", Run())
    gated = await rule.gate.find_evidence(question, hits)
    sentences = await quote_candidates(rule.gate.relevance, question.text, hits)
    return {
        "absent": case.absent,
        "found": case.has_gold,
        "sure": answer.sureness.probability if answer.sureness else None,
        "gold": bool(answer.evidence) and not case.absent and case.is_gold(answer.evidence[0].hit),
        "direct": not answer.is_silent,
        "default": [bool(answer.evidence), tells_other([one.hit for one in answer.evidence])],
        "words": [bool(before.evidence), tells_other([one.hit for one in before.evidence])],
        "gate": [bool(gated), tells_other([one.hit for one in gated[:3]])],
        "cosine": [bool(sentences) and sentences[0].relevance >= NEAR, False],
        "all": [True, tells_other(hits[:3])],
    }


def table(path: Path) -> None:
    rows: list[dict[str, Any]] = read_rows(path)
    cases: list[dict[str, Any]] = [
        {**case, "source": row["source"]} for row in rows for case in row["cases"]
    ]
    absent = [one for one in cases if one["absent"]]
    there = [one for one in cases if not one["absent"] and one["found"]]
    pages = [one for one in cases if one["source"] == "medquad"]

    for way in ("default", "words", "gate", "cosine", "all"):
        print(f"{way}: absent refused {share([not one[way][0] for one in absent])}")
        print(f"  there refused {share([not one[way][0] for one in there])}")
        print(f"  MedQuAD, another subject {share([one[way][1] for one in pages])}")
    print(f"answered, not only nearest: {share([one['direct'] for one in there])}")


def share(values: list[bool]) -> str:
    return f"{proportion(sum(values), len(values))}, n {len(values)}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("ask", "table"))
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--out", type=Path, default=Path("silence.jsonl"))
    given = parser.parse_args()
    if given.what == "ask":
        asyncio.run(ask_all(given))
    table(given.out)


if __name__ == "__main__":
    main()
