"""Room for thinking in every call, of a model that was seen to think.

A method asks for the tokens of its reply: 16 for a verdict, 500 for an answer. A reasoning model
spends them before it says a word. What it may think besides is one setting, and is asked for from
the first reply on that shows thinking; a reply that was cut before is asked for once more.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from osler.llm.core.base import Completion, Sampling
from osler.llm.core.thinking import split_thinking
from osler.llm.reading.thinking import silence_of


@dataclass
class ThinkingAllowance:
    """The allowance of one model, and whether it thinks."""

    tokens: int = 0
    """Tokens of thinking in a call; 0 = no more than the reply's own."""
    thinks: bool = False
    """Whether it was seen to think."""

    async def complete(
        self, sampling: Sampling, work: Callable[[Sampling], Awaitable[Completion]]
    ) -> Completion:
        """The reply of `work` with room for thinking; where there are two tries, both are paid."""
        granted = self.thinks and self.tokens > 0
        reply = await work(self._grant_tokens(sampling) if granted else sampling)
        thought = bool(split_thinking(reply).thinking)
        self.thinks |= thought
        # Cut while it thought, or in a reply for which its thinking left no room.
        cut = silence_of(reply) == "cut" or (thought and reply.finish == "length")
        if granted or not self.tokens or not cut:
            return reply
        self.thinks = True
        again = await work(self._grant_tokens(sampling))
        return replace(again, usage=reply.usage + again.usage)

    def _grant_tokens(self, sampling: Sampling) -> Sampling:
        return replace(sampling, max_tokens=sampling.max_tokens + self.tokens)
