"""The memory stack (TC-RAG §3, §5.1).

The state value is stored in the frame, so popping the top *is* the restoration of
Algorithm 1, line 24; no second list has to be kept in step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from osler.types import Hit, Question

# Compares above every threshold, so that nothing converges before the first value.
LARGE = float("inf")
"""s0 (§3, §5.2): the value before anything is known."""


class FrameKind(StrEnum):
    QUERY = "User_Query"
    THOUGHT = "Thought"
    OBSERVATION = "Tool_Observation"
    SUMMARY = "Summary"
    CONCLUSION = "Conclusion"


@dataclass(frozen=True, slots=True)
class Frame:
    kind: FrameKind
    text: str
    """As the model sees it, without the tag."""
    state: float
    """The state value while this frame is on top; lower is more certain."""
    call: str = ""
    """The Tool_Use lines that led to an observation; popped with it."""
    hits: tuple[Hit, ...] = ()
    """The passages behind an observation; a summary keeps those of what it replaced."""


@dataclass
class MemoryStack:
    """A stack of frames with the query as its immutable bottom (§5.1)."""

    question: Question
    frames: list[Frame] = field(init=False)

    def __post_init__(self) -> None:
        self.frames = [Frame(FrameKind.QUERY, self.question.with_options, LARGE)]

    def __len__(self) -> int:
        return len(self.frames)

    @property
    def top(self) -> Frame:
        return self.frames[-1]

    @property
    def state(self) -> float:
        return self.top.state

    @property
    def can_pop(self) -> bool:
        """Whether there is a frame above the query."""
        return len(self.frames) > 1

    def push(
        self,
        kind: FrameKind,
        text: str,
        *,
        state: float | None = None,
        call: str = "",
        hits: tuple[Hit, ...] = (),
    ) -> None:
        """Pushes a frame; without `state` it inherits the current state value (§5.2)."""
        carried = self.state if state is None else state
        self.frames.append(Frame(kind, text, carried, call, hits))

    def pop(self) -> Frame | None:
        """Pops the top frame, which restores the previous state value; `None` on the query."""
        return self.frames.pop() if self.can_pop else None

    @property
    def hits(self) -> tuple[Hit, ...]:
        """The passages in memory now, each once, in order of arrival."""
        seen: dict[str, Hit] = {}
        for frame in self.frames:
            for hit in frame.hits:
                seen.setdefault(hit.passage.id, hit)
        return tuple(seen.values())
