"""Labels of the knowledge boundary for medical data (KAG-Thinker §5.1).

Sub-answers are long there, and the least probable token of a long answer tells little. So the
student answers, and another model is called twice: is it correct, is it complete?
"""

from __future__ import annotations

from dataclasses import dataclass

from osler.errors import MalformedOutput
from osler.llm.core.speaker import Speaker
from osler.llm.reading.verdicts import read_verdict, verdict_grammar
from osler.methods.kag.boundary import GenerateThenAssess
from osler.prompts import render_prompt
from osler.trace import BoundaryChecked, Run
from osler.types import Language


@dataclass(frozen=True)
class ConfirmedBoundary:
    """A sub-problem is known where the student's answer is confirmed twice."""

    student: GenerateThenAssess
    confirmer: Speaker

    async def assess(
        self, n: int, question: str, language: Language, run: Run
    ) -> BoundaryChecked | None:
        """Assesses like `Boundary.assess`; the second call is made only if the first confirms."""
        answer, confidence = await self.student.attempt_answer(question, language, run)
        surely: bool | None = None
        if answer:
            # Without likelihood: the least probable token of a long answer tells nothing (§5.1).
            asked = GenerateThenAssess(self.confirmer, likelihood=False)
            surely = await asked.stands_by(question, answer, language, run)
            surely = surely and await self._is_complete(question, answer, language, run)
        verdict = BoundaryChecked(
            n,
            question,
            answer,
            known=bool(surely),
            self_check=surely,
            probability=confidence.value if confidence else None,
            tau=self.student.tau,
            exact=confidence.exact if confidence else True,
        )
        run.emit(verdict)
        return verdict

    async def _is_complete(self, question: str, answer: str, language: Language, run: Run) -> bool:
        prompt = render_prompt("train/complete", language, question=question, answer=answer)
        try:
            return await self.confirmer.ask(
                prompt,
                lambda reply: read_verdict(reply.text),
                run,
                grammar=verdict_grammar(boxed=True, reason=self.confirmer.reasoning),
            )
        except MalformedOutput:  # who cannot say that it is complete does not confirm it
            return False
