"""Graded judgements of retrieved answers: LiveQA-Med over MedQuAD, and TREC's own format."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from osler.errors import MalformedSource
from osler.evaluate.datasets.base import read_text

_GRADE = re.compile(r"(\d+)(?:-\w+)?")

Judgements = Mapping[str, Mapping[str, int]]
"""Question → document → grade; a grade above 0 is relevant."""


def read_qrels(path: Path) -> Judgements:
    """LiveQA-Med lines "1 4-Excellent GARD_0004375_Sec1.txt", or TREC's "1 0 DOC 2".

    LiveQA-Med's grades 1 to 4 become 0 to 3, so that 1-Incorrect is not relevant. A document
    that is judged twice keeps its last grade. Raises `MalformedSource` naming file and line.
    """
    found: dict[str, dict[str, int]] = {}
    for number, line in enumerate(read_text(path).splitlines(), 1):
        cells = line.split()
        if not cells:
            continue
        if len(cells) not in (3, 4):
            raise MalformedSource(f"{path}:{number}: 3 or 4 columns are wanted, got {len(cells)}")
        topic, document, word = (
            (f"TQ{cells[0]}", cells[2], cells[1])
            if len(cells) == 3
            else (cells[0], cells[2], cells[3])
        )
        grade = _GRADE.fullmatch(word)
        if grade is None:
            raise MalformedSource(f"{path}:{number}: {word!r} is no grade")
        # LiveQA-Med's scale begins at 1-Incorrect, TREC's at 0.
        found.setdefault(topic, {})[document] = int(grade.group(1)) - (len(cells) == 3)
    return found
