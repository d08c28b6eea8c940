"""Answers from the hits of several searches, put into one order first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from osler.answer import UNDECIDED, Decision, WrappedComposer
from osler.retrieve.pooled import PooledOrder, is_one_order
from osler.trace import Run
from osler.types import Answer, Hit, Question


@dataclass(frozen=True)
class PooledComposer(WrappedComposer):
    """Composes as the other does; a later search's best hit is not behind an earlier one's last."""

    order: PooledOrder

    async def conclude(
        self,
        question: Question,
        hits: Sequence[Hit],
        draft: str,
        run: Run,
        *,
        decision: Decision = UNDECIDED,
    ) -> Answer:
        if not is_one_order(hits):
            hits = await self.order.order_hits(question.text, [hits])
        return await self.composer.conclude(question, hits, draft, run, decision=decision)
