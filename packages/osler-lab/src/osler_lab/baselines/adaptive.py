"""Adaptive-RAG: first ask how hard the question is (TC-RAG §2; KAG-Thinker Table 10).

Jeong et al. 2024, *Adaptive-RAG: Learning to Adapt Retrieval-Augmented Large Language Models
through Question Complexity*, §3: a classifier says A (no retrieval), B (one retrieval) or C
(several steps), and the question goes to the method for that. KAG-Thinker's "Naive RAG +
adaptive" is the same without C.

Departures: the classifier is the model itself, asked in words; the paper trains one (T5-Large)
on which method succeeded. An unreadable verdict counts as B. The method for C is IRCoT, as in
the paper.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from osler.errors import MalformedOutput
from osler.llm.reading.verdicts import read_letter
from osler.methods.single_pass.episode import Episode, MethodDeps
from osler.trace import Run, Solver
from osler.types import Question, Solution

# "A" is an article as well.
_LETTER = re.compile(r"\b([BC]|A(?=\W*$|[.:)*]))\b")


@dataclass(frozen=True)
class Adaptive:
    kit: MethodDeps
    none: Solver
    once: Solver
    several: Solver | None = None
    """`None`: the form without C."""

    async def solve(self, question: Question, run: Run) -> Solution:
        level = "B"
        with Episode(self.kit, question, run) as episode:
            has_several = self.several is not None
            reply = await episode.ask_text(
                "baselines/adaptive", summary=has_several, tokens=16, temperature=0.0
            )
            level = classify_complexity(reply)
            episode.note(f"complexity {level}")
        # Levels of §3: no retrieval, one, several steps.
        methods = {"A": self.none, "B": self.once, "C": self.several or self.once}
        return await methods[level].solve(question, run)


def classify_complexity(said: str) -> str:
    """A, B or C; B where the reply names none, or several."""
    try:
        return read_letter(said, "ABC")
    except MalformedOutput:
        named = set(_LETTER.findall(said))
    return named.pop() if len(named) == 1 else "B"
