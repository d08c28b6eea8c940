"""The evidence gate's distributions: what coverage tells answered from unanswered questions.

    python benchmarks/calibrate.py

Uses the 24 calibration questions of the sample, which no table reports on, and 22 questions
that the sample texts do not answer. Prints quantiles; the values chosen from them stand in
`config.AnswerSettings`. TC-RAG's sigma is fitted by `osler calibrate`.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import numpy as np
from sample_questions import Sample, samples

from osler.app.config import Settings
from osler.app.wiring import Parts
from osler.app.wiring.knowledge import build_sample
from osler.app.wiring.live import live_parts
from osler.types import Hit, Retriever

UNANSWERED = {
    "en": (
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
    ),
    "zh": (
        "如何修补自行车轮胎？",
        "蒙古国的首都是哪里？",
        "银屑病如何治疗？",
        "青光眼的眼压如何测量？",
        "腕管综合征选择什么手术？",
        "白癜风的病因是什么？",
        "股骨颈骨折如何手术？",
        "正常分娩分为几个产程？",
        "洗牙多久一次合适？",
        "耳鸣怎么治疗？",
    ),
}


def quantiles(name: str, values: list[float]) -> None:
    cut = np.quantile(values, [0, 0.1, 0.25, 0.5, 0.75, 0.9, 1])
    print(f"{name:40} n {len(values):3}  " + "  ".join(f"{value:7.3f}" for value in cut))


async def covered(parts: Parts, query: str, hits: list[Hit]) -> tuple[float, ...]:
    texts = [f"{hit.passage.heading}. {hit.passage.text}" for hit in hits]
    return await parts.coverage.relevance(query, texts)


async def coverage(parts: Parts, retriever: Retriever, every: list[Sample]) -> None:
    for language in ("en", "zh"):
        gold, other, alone = [], [], []
        for sample in (s for s in every if s.question.language == language):
            hits = await retriever.search(sample.question.text, k=8)
            found = await covered(parts, sample.question.text, hits)
            pairs = [(v, h.passage.id in sample.gold) for v, h in zip(found, hits, strict=True)]
            gold.append(max((v for v, right in pairs if right), default=0.0))
            other.append(max((v for v, right in pairs if not right), default=0.0) / gold[-1])
        for query in UNANSWERED[language]:
            hits = await retriever.search(query, k=8)
            alone.append(max(await covered(parts, query, hits), default=0.0))
        quantiles(f"{language} coverage by the gold passage", gold)
        quantiles(f"{language} best other passage, share of it", other)
        quantiles(f"{language} best coverage, not answered", alone)


async def main() -> None:
    every = samples("calibration_en.jsonl") + samples("calibration_zh.jsonl")
    print(
        f"{'':47}" + "".join(f"{q:>9}" for q in ["min", "10%", "25%", "50%", "75%", "90%", "max"])
    )
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings.model_validate({"home": Path(folder)})
        build_sample(settings)
        parts = await live_parts(settings)
        await coverage(parts, parts.retriever("calibrate", parts.sources), every)


if __name__ == "__main__":
    asyncio.run(main())
