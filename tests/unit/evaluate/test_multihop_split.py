"""Questions of several hops that may be learnt from, and those that are held out."""

import json
from pathlib import Path

SPLIT = Path(__file__).parents[3] / "benchmarks" / "multihop_split.json"


def test_no_question_of_the_split_is_in_two_parts_or_twice() -> None:
    for parts in json.loads(SPLIT.read_text(encoding="utf-8")).values():
        listed = [key for part in ("dev", "test") for key in parts[part]]
        assert len(listed) == len(set(listed))
        assert parts["test"]
