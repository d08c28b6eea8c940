"""A small knowledge base of ours, extracted by the dictionary, in both languages."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from osler.extract import job, publish
from osler.extract.derived import EXTRACTED_FACTS
from osler.extract.dictionary import DictionaryExtractor
from osler.kb.base import KnowledgeBase

TEXTS = {
    "smoking": "Smoking is a habit. Smoking leads to emphysema.",
    "emphysema": "Emphysema is a lung disease. It presents with dyspnoea.",
    "dyspnoea": "Dyspnoea is a sign. Dyspnoea is treated with oxygen.",
    "gout": "Gout is a joint disease. Gout is treated with colchicine.",
    "糖尿病": "糖尿病是一种代谢疾病。二甲双胍用于治疗糖尿病。",
    "二甲双胍": "二甲双胍是一种药物。",
}
Put = Callable[[dict[str, str]], None]
Extract = Callable[[KnowledgeBase], None]


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """Writes the documents' file anew, with other texts for some and a time of its own."""

    def write(texts: dict[str, str]) -> None:
        lines = [
            json.dumps({"id": id, "title": id.title(), "content": text})
            for id, text in {**TEXTS, **texts}.items()
        ]
        path = tmp_path / "texts.jsonl"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        moment = 1_600_000_000 + len(path.read_bytes())
        os.utime(path, (moment, moment))

    return write


@pytest.fixture
def extract() -> Extract:
    """Runs the dictionary over what is new."""

    def run(kb: KnowledgeBase) -> None:
        with DictionaryExtractor() as chosen:
            asyncio.run(job.run_extraction(kb.path, chosen))
        publish.publish_items(kb.path)

    return run


@pytest.fixture
def kb(tmp_path: Path, put: Put, extract: Extract) -> Iterator[KnowledgeBase]:
    put({})
    with KnowledgeBase.create(tmp_path / "kb", derived=EXTRACTED_FACTS) as made:
        made.add([tmp_path / "texts.jsonl"], source="book")
        extract(made)
        yield made
