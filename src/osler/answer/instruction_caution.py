"""Says of an answer that instructions to a program were taken out of what was found for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from osler.answer import UNDECIDED, Composer, Decision
from osler.answer.cautions import caution_event
from osler.retrieve.instructions import BLANK
from osler.trace import Run
from osler.types import Answer, Caution, Hit, Question

_WORDS = {
    "en": "Passages that were found hold instructions to a program, which were left out: {ids}.",
    "zh": "检索到的段落含有针对程序的指令，已被去除：{ids}。",
}


@dataclass(frozen=True)
class InstructionCautiousComposer:
    """Adds one caution to an answer for which such passages were found."""

    composer: Composer

    @property
    def uses_draft(self) -> bool:
        return self.composer.uses_draft

    @property
    def writes_answer(self) -> bool:
        return self.composer.writes_answer

    async def conclude(
        self,
        question: Question,
        hits: Sequence[Hit],
        draft: str,
        run: Run,
        *,
        decision: Decision = UNDECIDED,
    ) -> Answer:
        answer = await self.composer.conclude(question, hits, draft, run, decision=decision)
        found = dict.fromkeys(hit.passage.id for hit in hits if BLANK in hit.passage.text)
        if not found:
            return answer
        words = _WORDS[answer.language].format(ids=", ".join(found))
        caution = Caution("instruction", words, ())
        if (event := caution_event(caution)) not in run.events:
            run.emit(event)
        return replace(answer, cautions=(*answer.cautions, caution))
