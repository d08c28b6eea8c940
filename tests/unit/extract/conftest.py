"""A small knowledge base of ours, and a model that writes what each test says."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from osler.extract.derived import EXTRACTED_FACTS
from osler.kb.base import KnowledgeBase

TEXTS = {
    "copd": "Chronic obstructive pulmonary disease (COPD) is a lung disease. COPD is mainly"
    " caused by smoking. COPD does not prevent asthma.",
    "metformin": "Metformin is used to treat type 2 diabetes. It is taken with meals.",
    "糖尿病": "糖尿病是一种代谢疾病。二甲双胍用于治疗糖尿病。",
    "二甲双胍": "二甲双胍是一种药物。",
}
Put = Callable[[dict[str, str]], None]


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """Writes the documents' file anew, with a time of its own."""

    def write(texts: dict[str, str]) -> None:
        lines = [
            json.dumps({"id": id, "title": id.title(), "content": text, "contents": text})
            for id, text in texts.items()
        ]
        path = tmp_path / "texts.jsonl"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        moment = 1_600_000_000 + len(path.read_bytes())
        os.utime(path, (moment, moment))

    return write


@pytest.fixture
def kb(tmp_path: Path, put: Put) -> Iterator[KnowledgeBase]:
    put(TEXTS)
    with KnowledgeBase.create(tmp_path / "kb", derived=EXTRACTED_FACTS) as made:
        made.add([tmp_path / "texts.jsonl"], source="book")
        yield made
