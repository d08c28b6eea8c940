"""TC-RAG's state value as a signal of KAG-Thinker's knowledge boundary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from osler.llm.core.base import Message, TokenScore
from osler.methods.kag.boundary import SignalValue
from osler.methods.tcrag.monitor import Draft, Monitor
from osler.methods.tcrag.stack import MemoryStack
from osler.trace import Run
from osler.types import Language, Question


@dataclass(frozen=True)
class StateSignal:
    """The state value of the model's own answer, over a memory that contains only the question.

    So an own answer is accepted on the same terms as a Conclusion (Alg. 1, line 8).
    """

    monitor: Monitor
    sigma: float

    async def weigh_answer(
        self, question: str, answer: str, tokens: Sequence[TokenScore], language: Language, run: Run
    ) -> SignalValue:
        """Values the boxed answer alone, without the reasoning before it. Raises
        `BudgetExceeded`."""
        memory = MemoryStack(Question("boundary", question, language=language))
        draft = Draft(answer, tuple(tokens), (Message("user", question),))
        valued = await self.monitor.state_value(draft, memory, run)
        return SignalValue(self.monitor.metric, valued.value, self.sigma, valued.exact)
