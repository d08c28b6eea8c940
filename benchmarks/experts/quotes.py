"""Quotes that the expert `answers` chooses, beside those that the rule chooses (cosine), in an
answer over a knowledge base of all passages; questions of the test part.

    python benchmarks/experts/quotes.py --kb FOLDER [--answers DIR] [--limit 150] [--part test]

`--kb` holds MedQuAD's answers and the passages of PubMedQA and BioASQ, with vectors, as
`benchmarks/retrieval.py` builds them. Both choose from the same ten hits; nothing abstains. An
answer of MedQuAD that is only a list of links can be quoted by neither: such questions are counted
apart. Prints a table in Markdown.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import fmean, median

from osler.answer.extractive import ExtractiveComposer
from osler.answer.gate import EvidenceGate, QuoteThresholds
from osler.answer.quoting import QuoteJudge
from osler.answer.sentences import quotable_spans
from osler.answer.statements import states_something
from osler.evaluate.intervals import difference, mean
from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import MiniLMEncoder
from osler.retrieve.experts.answering import AnswersExpert, TextPair
from osler.retrieve.experts.shelf import open_expert
from osler.retrieve.hybrid import retriever_over
from osler.retrieve.naming import NamingRelevance
from osler.retrieve.relevance import CoverageRelevance, EncoderRelevance
from osler.trace import Run
from osler.train.experts.pair_questions import BIOASQ, MEDQUAD, PUBMEDQA, read_pair_questions
from osler.train.experts.searches import document_name, read_searches
from osler.train.experts.splits import PARTS, read_split
from osler.types import Evidence, Hit, Language, Question

ROOT = Path(__file__).resolve().parents[2]
OPEN_KINDS = {BIOASQ: ("factoid", "summary")}
"""Kinds of question whose answer is a sentence; of other sets all."""
SETS = (MEDQUAD, BIOASQ, PUBMEDQA)
NEVER: Mapping[Language, QuoteThresholds] = {
    "en": QuoteThresholds(-1.0, -1.0),
    "zh": QuoteThresholds(-1.0, -1.0),
}


class TimedExpert(AnswersExpert):
    """Notes how long each judging takes, in seconds."""

    seconds: list[float]

    def judge_texts(self, question: str, texts: Sequence[TextPair]) -> list[float]:
        start = time.thread_time() if self._threads == 1 else time.perf_counter()
        shares = super().judge_texts(question, texts)
        now = time.thread_time() if self._threads == 1 else time.perf_counter()
        self.seconds.append(now - start)
        return shares


@dataclass
class Tally:
    """What was measured of one set: for each question 1 or 0 of the rule and of the expert."""

    rule: list[float] = field(default_factory=list)
    expert: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    """Share of an answer's quotes that are gold."""
    rule_shares: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    unquotable: int = 0
    missed: int = 0
    judged: int = 0
    empty: int = 0
    """Quotes that state nothing."""


def _gold_shares(evidence: Sequence[Evidence], gold: frozenset[str]) -> list[float]:
    return [float(document_name(one.passage) in gold) for one in evidence]


async def measure(given: argparse.Namespace) -> None:
    encoder = MiniLMEncoder(threads=1)
    kb = KnowledgeBase.open(given.kb)
    search = retriever_over(kb, encoder)
    relevance = EncoderRelevance(encoder)
    coverage, naming = CoverageRelevance(kb.term_rarity), NamingRelevance(kb.term_rarity)
    gate = EvidenceGate(coverage, relevance, NEVER, naming=naming)
    expert = TimedExpert(open_expert("answers", given.answers), threads=given.threads)
    expert.seconds = []
    rule = ExtractiveComposer(gate)
    ours = ExtractiveComposer(gate, judge=QuoteJudge(expert))
    kinds = {one.id: one.kind for one in read_pair_questions(given.data)}
    split = read_split(ROOT / "benchmarks/experts/split.json")
    asked = split.choose_items(read_searches(given.data), given.part)
    for name in SETS:
        own = [
            one
            for one in asked
            if one.source == name and kinds[one.id] in OPEN_KINDS.get(name, (kinds[one.id],))
        ]
        tally = Tally()
        for one in Random(0).sample(own, min(given.limit, len(own))):
            hits = await search.search(one.text, k=10)
            gold = [hit for hit in hits if document_name(hit.passage) in one.gold]
            if not gold:
                tally.missed += 1
            elif not any(map(_is_quotable, gold)):
                tally.unquotable += 1
            else:
                await _compare(Question(one.id, one.text), hits, one.gold, rule, ours, tally)
        _print_row(name, tally)
    print(f"\njudging one question: median {median(expert.seconds) * 1000:.0f} ms")


def _is_quotable(hit: Hit) -> bool:
    links = hit.passage.text.startswith("These resources address")
    return bool(quotable_spans(hit)) and not links


async def _compare(
    question: Question,
    hits: Sequence[Hit],
    gold: frozenset[str],
    rule: ExtractiveComposer,
    ours: ExtractiveComposer,
    tally: Tally,
) -> None:
    before = await rule.conclude(question, hits, "", Run())
    # The rule's answer is put into the passages' order; its first is the most relevant.
    found = await rule.gate.find_evidence(question, hits)
    after = await ours.conclude(question, hits, "", Run())
    tally.rule.append(float(bool(found) and document_name(found[0].hit.passage) in gold))
    shares = _gold_shares(after.evidence, gold)
    tally.expert.append(shares[0] if shares else 0.0)
    if shares:
        tally.shares.append(fmean(shares))
        tally.counts.append(len(shares))
    if before.evidence:
        tally.rule_shares.append(fmean(_gold_shares(before.evidence, gold)))
    tally.judged += ours.judge is not None and ours.judge.can_judge(question)
    tally.empty += sum(not states_something(one.quote) for one in after.evidence)


def _print_row(name: str, tally: Tally) -> None:
    gain = difference(tally.rule, tally.expert)
    print(
        f"| {name} | {len(tally.rule)} | {mean(tally.expert)} | {mean(tally.rule)} | {gain} |"
        f" {fmean(tally.shares):.3f} ({fmean(tally.rule_shares):.3f}) |"
        f" {fmean(tally.counts):.1f} | not judged {len(tally.rule) - tally.judged},"
        f" gold not found {tally.missed}, links alone {tally.unquotable},"
        f" empty quotes {tally.empty} of {sum(tally.counts)} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--kb", type=Path, required=True)
    parser.add_argument("--answers", type=Path, help="the expert's folder; else the packaged one")
    parser.add_argument("--limit", type=int, default=150)
    parser.add_argument("--part", choices=PARTS, default="test")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    print("| set | n | first quote is gold: expert | rule | gain | share gold (rule) | quotes | |")
    print("|---|--:|---|---|---|---|--:|---|")
    asyncio.run(measure(given))


if __name__ == "__main__":
    main()
