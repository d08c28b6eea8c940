"""Trains the expert `supports`: a logistic regression over cues of the evidence of a question.

    PYTHONPATH=benchmarks python research/experts/train_supports.py --data FOLDER --out FOLDER

Each yes/no question of BioASQ and PubMedQA is searched among BioASQ's gold snippets and PubMedQA's
abstracts, the authors' conclusions under their heading, as PubMed prints them. Train and dev teach;
the figures on the card are of the test part, with and without the conclusions.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from expert_folders import compare_rights, write_expert
from expert_sets import LICENCES, SPLIT, PairQuestion, read_pair_questions
from natural.published import (
    BIOASQ_FILES,
    PARTS,
    PUBMEDQA,
    PUBMEDQA_FILES,
    find_data_files,
    read_split,
)
from numpy.typing import NDArray

from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import Encoder, MiniLMEncoder
from osler.retrieve.experts.cards import ExpertCard, ExpertData, ExpertFigure
from osler.retrieve.experts.cues import FEATURES, measure_cues
from osler.retrieve.experts.supporting import (
    MAYBE_SHARE,
    PASSAGES,
    SUPPORTS,
    VERDICTS,
    LinearModel,
    read_evidence,
)
from osler.retrieve.hybrid import HybridRetriever
from osler.retrieve.relevance import EncoderRelevance
from osler.text import one_line
from osler_lab.evaluate.datasets.base import json_records, read_json
from osler_lab.evaluate.trained_on import list_questions

Matrix = NDArray[np.float64]
CONCLUSION = "CONCLUSION"
UNCONCLUDED, RIDGE = 0.3, 60.0
"""Weight of evidence without the conclusions (1 with them), and the penalty; both were chosen by
cross-validation within train and dev."""
_RULE = "yes"
"""The more frequent verdict."""
_WEAK = (
    "it reads the wording of the evidence, not its content: a sentence about something else counts"
    " as far as it is near the question",
    "where the abstract's conclusion is not among the passages it is no better than the more"
    " frequent verdict on PubMedQA",
    "claims that are statements: on HealthVer and CovidFact no better than always one word",
    'it never says "maybe"',
    "guidelines and books: it takes their prohibitions for a no, so only research is read",
    "English only",
)


@dataclass(frozen=True, slots=True)
class FoundClaim:
    """A question with the cues of the evidence that was found for it."""

    claim: PairQuestion
    whole: Matrix
    """From a base of whole abstracts."""
    unconcluded: Matrix
    """Without what stands under an abstract's heading of the conclusion."""


def read_claims(data: Path) -> list[PairQuestion]:
    """The questions of all sets below `data` that are answered by yes, no or maybe."""
    return [one for one in read_pair_questions(data) if one.verdict in VERDICTS]


def open_claim_base(data: Path, work: Path, encoder: Encoder) -> KnowledgeBase:
    """The knowledge base that the questions are searched in."""
    path, draft, texts = work / "kb", work / "kb.partial", work / "passages.jsonl"
    if not path.is_dir():
        sections: dict[tuple[str, str], str] = {}
        for pmid, section, text in (*_bioasq_sections(data), *_pubmedqa_sections(data)):
            if text:
                sections.setdefault((pmid, text), section)
        rows = (
            {"id": f"pubmed_{pmid}_{n}", "title": "", "content": text, "PMID": pmid, "section": one}
            for n, ((pmid, text), one) in enumerate(sections.items(), 1)
        )
        texts.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        with KnowledgeBase.create(draft) as kb:
            kb.add([texts], source="research")
        draft.rename(path)
    kb = KnowledgeBase.open(path)
    kb.build(encoder)
    return kb


def _bioasq_sections(data: Path) -> Iterator[tuple[str, str, str]]:
    for path in find_data_files(data, BIOASQ_FILES):
        for row in json_records(path, "questions"):
            for one in row.data.get("snippets") or ():
                pmid = str(one.get("document") or "").rpartition("/")[2]
                yield pmid, "", one_line(str(one.get("text") or ""))


def _pubmedqa_sections(data: Path) -> Iterator[tuple[str, str, str]]:
    for path in find_data_files(data, PUBMEDQA_FILES):
        for pmid, record in read_json(path).items():
            for section, text in zip(record["LABELS"], record["CONTEXTS"], strict=True):
                yield pmid, section, one_line(text)
            yield pmid, CONCLUSION, one_line(record["LONG_ANSWER"])


async def find_claims(
    kb: KnowledgeBase, encoder: Encoder, claims: Sequence[PairQuestion]
) -> list[FoundClaim]:
    """Each question with the evidence that the hybrid search finds."""
    searcher, relevance = HybridRetriever(kb, encoder), EncoderRelevance(encoder)
    found = []
    for claim in claims:
        # Some more, so that as many are left without the conclusions.
        hits = await searcher.search(claim.text, k=PASSAGES + 4)
        bare = [hit for hit in hits if hit.passage.locator.section != CONCLUSION]
        rows = [
            measure_cues(
                claim.text,
                await read_evidence(claim.text, some, relevance),
                maybe=claim.source == PUBMEDQA,
            )
            for some in (hits, bare)
        ]
        found.append(FoundClaim(claim, *rows))
    return found


def fit_model(found: Sequence[FoundClaim]) -> LinearModel:
    """A logistic regression of "no" against "yes". Each question is learnt from with the
    conclusions in its evidence and, at less weight, without."""
    kept = [one for one in found if one.claim.verdict != "maybe"]
    rows = np.stack([one.whole for one in kept] + [one.unconcluded for one in kept])
    weights = np.repeat([1.0, UNCONCLUDED], len(kept))
    no = [int(one.claim.verdict == "no") for one in kept] * 2
    return fit_linear(rows, no, ridge=RIDGE, weights=weights)


def fit_linear(
    rows: Matrix, classes: Sequence[int], *, ridge: float, weights: Matrix
) -> LinearModel:
    """Fits a logistic regression of class 1 against 0 by Newton's method.

    `rows` has the shape (n, features). `ridge` is the penalty on squared weights of standardised
    features, in the unit of one row; `weights` are those of the rows.
    """
    mean, spread = rows.mean(0), rows.std(0)
    scale = np.where(spread > 1e-9, spread, 1.0)
    design = np.hstack([(rows - mean) / scale, np.ones((len(rows), 1))])
    penalty = np.full(design.shape[1], ridge)
    # Without a row of one class the bias would be driven to infinity.
    penalty[-1] = 0.01
    theta = np.zeros(design.shape[1])
    for _ in range(50):
        found = 1 / (1 + np.exp(-np.clip(design @ theta, -60, 60)))
        gradient = design.T @ (weights * (found - classes)) + penalty * theta
        curve = weights * found * (1 - found)
        step = np.linalg.solve(design.T @ (design * curve[:, None]) + np.diag(penalty), gradient)
        theta -= step
        if np.abs(step).max() < 1e-8:
            break
    return LinearModel(mean, scale, theta[None, :-1], theta[-1:])


def tensors_of(model: LinearModel) -> dict[str, NDArray[np.float32]]:
    """The tensors of the weights file, float32."""
    names = ("mean", "scale", "weights", "bias")
    return {name: np.ascontiguousarray(getattr(model, name), np.float32) for name in names}


def train_supports(data: Path, out: Path, encoder: Encoder, split: Path = SPLIT) -> ExpertCard:
    """Fits on train and dev, measures on test, and writes the expert's folder."""
    out.mkdir(parents=True, exist_ok=True)
    claims, parts = read_claims(data), read_split(split)
    with open_claim_base(data, out, encoder) as kb:
        found = asyncio.run(find_claims(kb, encoder, claims))
    learnt = [one for one in found if parts.part_of(one.claim) in ("train", "dev")]
    tensors = tensors_of(fit_model(learnt))
    test = [one for one in found if parts.part_of(one.claim) == "test"]
    unsure = [one.claim.verdict == "maybe" for one in learnt if one.claim.source == PUBMEDQA]
    counts = Counter((one.source, parts.part_of(one)) for one in claims)
    list_questions(out, (one.claim.text for one in learnt))
    return write_expert(
        out,
        tensors,
        name=SUPPORTS,
        question="Does the evidence say yes or no?",
        family="linear",
        replaces="the more frequent verdict, or the likelihood of yes and no",
        made="research/experts/train_supports.py --data FOLDER --out FOLDER",
        seed=0,
        weak=_WEAK,
        features=FEATURES,
        parameters={MAYBE_SHARE: round(float(np.mean(unsure)), 4)},
        data=[
            ExpertData(name=name, licence=LICENCES[name], **{p: counts[name, p] for p in PARTS})
            for name in dict.fromkeys(one.source for one in claims)
        ],
        figures=_measure_claims(LinearModel.of_tensors(tensors), test),
    )


def _measure_claims(model: LinearModel, test: Sequence[FoundClaim]) -> list[ExpertFigure]:
    """Accuracy beside that of always the more frequent verdict."""
    figures = []
    for whole, on in ((True, "test"), (False, "test, conclusions taken out of the base")):
        for source in dict.fromkeys(one.claim.source for one in test):
            own = [one for one in test if one.claim.source == source]
            rows = np.stack([one.whole if whole else one.unconcluded for one in own])
            said = ["no" if share > 0.5 else "yes" for share in model.predict_shares(rows)]
            rights = [float(one.claim.verdict == x) for one, x in zip(own, said, strict=True)]
            rule = [float(one.claim.verdict == _RULE) for one in own]
            name = f"majority ({_RULE})"
            figures.append(compare_rights(f"{on}: {source}", "accuracy", rights, name, rule))
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    card = train_supports(given.data, given.out, MiniLMEncoder(threads=given.threads))
    for one in card.figures:
        print(f"{one.on}: {one.expert}, {one.rule} {one.rule_figure}, n {one.n}")


if __name__ == "__main__":
    main()
