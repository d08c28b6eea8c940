"""Says of an answer that instructions to a program were taken out of what was found for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from osler.answer.cautions import CautioningComposer, FindCautions
from osler.retrieve.instructions import BLANK
from osler.types import Caution, Hit, Question

_WORDS = {
    "en": "Passages that were found hold instructions to a program, which were left out: {ids}.",
    "zh": "检索到的段落含有针对程序的指令，已被去除：{ids}。",
}


@dataclass(frozen=True)
class InstructionCautiousComposer(CautioningComposer):
    """Adds one caution to an answer for which such passages were found."""

    def read_hits(
        self, question: Question, hits: Sequence[Hit]
    ) -> tuple[Sequence[Hit], FindCautions]:
        ids = ", ".join(dict.fromkeys(hit.passage.id for hit in hits if BLANK in hit.passage.text))
        return (
            hits,
            lambda answer: (
                [Caution("instruction", _WORDS[answer.language].format(ids=ids), ())] if ids else []
            ),
        )
