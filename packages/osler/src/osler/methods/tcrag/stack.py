"""The memory stack (TC-RAG §3, §5.1) and the state value s beside it.

A frame keeps the value that s had before it was pushed, so that popping a Thought is the
restoration of Algorithm 1, line 24; no second list has to be kept in step.
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
    """The state value once this frame was pushed; lower is more certain."""
    call: str = ""
    """The Tool_Use lines that led to an observation; popped with it."""
    hits: tuple[Hit, ...] = ()
    """The passages behind an observation; a summary keeps those of what it replaced."""
    before: float = LARGE
    """The state value before this frame was pushed."""


@dataclass
class MemoryStack:
    """A stack of frames with the query as its immutable bottom (§5.1)."""

    question: Question
    frames: list[Frame] = field(init=False)
    state: float = field(default=LARGE, init=False)
    """s of Algorithm 1."""

    def __post_init__(self) -> None:
        self.frames = [Frame(FrameKind.QUERY, self.question.with_options, LARGE)]

    def __len__(self) -> int:
        return len(self.frames)

    @property
    def top(self) -> Frame:
        return self.frames[-1]

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
        before = self.state
        self.state = before if state is None else state
        self.frames.append(Frame(kind, text, self.state, call, hits, before))

    def pop(self, *, restore: bool = True) -> Frame | None:
        """Pops the top frame; `None` on the query.

        A popped Thought brings back the state value from before it; with `restore` false it does
        not. The value of any other frame was carried on from below, and there is none to restore.
        """
        if not self.can_pop:
            return None
        popped = self.frames.pop()
        if restore and popped.kind is FrameKind.THOUGHT:
            self.state = popped.before
        return popped

    @property
    def last_words(self) -> str:
        """The model's own last words, a Thought or a Summary: only they can be a draft."""
        kept = (FrameKind.THOUGHT, FrameKind.SUMMARY)
        return next((one.text for one in reversed(self.frames) if one.kind in kept), "")

    @property
    def hits(self) -> tuple[Hit, ...]:
        """The passages in memory now, each once, in order of arrival."""
        seen: dict[str, Hit] = {}
        for frame in self.frames:
            for hit in frame.hits:
                seen.setdefault(hit.passage.id, hit)
        return tuple(seen.values())
