"""What TC-RAG's threshold of noise was fitted on is not what it is measured on."""

from __future__ import annotations

import json
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"
RESEARCH = BENCHMARKS.with_name("research")


def test_held_out_questions_were_seen_by_no_fit() -> None:
    split = json.loads((BENCHMARKS / "machines_split.json").read_text(encoding="utf-8"))
    experts = json.loads((RESEARCH / "experts/split.json").read_text(encoding="utf-8"))
    held_out = set(split["held_out"])
    assert [len(split[part]) for part in ("held_out", "hops", "attacked")] == [200, 100, 110]
    for part in ("held_out", "hops", "attacked"):
        assert set(split["tuned"]).isdisjoint(split[part]), part
    assert held_out <= set(experts["test"])
