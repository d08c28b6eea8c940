"""Fits what a model's scale decides: the relevance threshold and TC-RAG's sigma.

    python benchmarks/calibrate.py

Uses the 12 calibration questions of the sample, which no table reports on, and 12 questions
that the sample texts do not answer. Prints quantiles; the chosen values stand in
`wiring.PACKAGED_SIGMA` and `config.AnswerSettings.threshold` with this script's name.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import numpy as np
from sample_questions import samples

from osler import wiring
from osler.answer.sentences import Candidate, candidates
from osler.config import Settings
from osler.llm.base import Likelihood
from osler.tcrag.monitor import cppl, uct
from osler.types import Hit, Retriever

UNANSWERED = (
    "How do I mend a puncture in a bicycle tyre?",
    "Who wrote The Brothers Karamazov?",
    "What is the capital of Mongolia?",
    "Which wine goes with grilled trout?",
    "What is the treatment of plaque psoriasis?",
    "How is glaucoma measured?",
    "Which surgery helps carpal tunnel syndrome?",
    "How is tinnitus treated?",
    "What causes vitiligo?",
    "How is a hip fracture repaired?",
    "What are the stages of labour?",
    "How often should teeth be cleaned by a dentist?",
)


def quantiles(name: str, values: list[float]) -> None:
    cut = np.quantile(values, [0, 0.1, 0.25, 0.5, 0.75, 0.9, 1])
    print(f"{name:34} n {len(values):3}  " + "  ".join(f"{v:7.3f}" for v in cut))


async def main() -> None:
    print(f"{'':34}        " + "  ".join(f"{q:>7}" for q in ("min", "10%", "25%", "50%", "75%", "90%", "max")))
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings.model_validate({"home": Path(folder)})
        wiring.build_sample(settings)
        parts = wiring.live(settings)
        retriever = parts.retriever("calibrate", parts.sources)
        model = parts.model
        assert isinstance(model, Likelihood)
        best, gold, other, alone = [], [], [], []
        values: dict[str, list[float]] = {"cppl": [], "uct": []}
        for sample in samples("calibration_en.jsonl"):
            query = sample.question.text
            found = await ranked(parts, retriever, query)
            of_gold = [c for c in found if c.hit.passage.id in sample.gold]
            best.append(found[0].relevance)
            if of_gold:
                gold.append(of_gold[0].relevance)
            other += [c.relevance for c in found if c.hit.passage.id not in sample.gold][:5]
            scored = await model.score(f"User_Query: {query}\n", found[0].text)
            logprobs = [t.logprob for t in scored.tokens]
            values["cppl"].append(cppl(logprobs))
            values["uct"].append(uct(logprobs))
        for query in UNANSWERED:
            alone.append((await ranked(parts, retriever, query))[0].relevance)
        quantiles("best sentence", best)
        quantiles("best sentence of a gold passage", gold)
        quantiles("five best of other passages", other)
        quantiles("best sentence, not answered", alone)
        for metric, found_values in values.items():
            quantiles(f"{metric} of the best sentence", found_values)


async def ranked(parts: wiring.Parts, retriever: Retriever, query: str) -> list[Candidate]:
    hits: list[Hit] = await retriever.search(query, k=4)
    return await candidates(parts.relevance, query, hits)


if __name__ == "__main__":
    asyncio.run(main())
