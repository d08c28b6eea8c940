"""The memory stack (TC-RAG §3, §5.1) and the state value s beside it.

A frame keeps the value that s had before it was pushed, so that popping a Thought is the
restoration of Algorithm 1, line 24; no second list has to be kept in step.

The system state value (TC-RAG §5.2): the uncertainty of a Thought or a Conclusion.

Lower is surer. `Cppl` is Eq. 4, `Uct` is Eq. 5, `Unmonitored` is the ablation "w/o State Monitor"
(§6.3) in which the model's own Conclusion ends the run. `SurenessMonitor` is ours: the others ask
how likely a text is, so that fluent words over the wrong passages are as sure as a true quote.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import exp
from typing import Literal, Protocol

from osler.errors import CapabilityMissing
from osler.llm.core.ask import score
from osler.llm.core.base import LanguageModel, Likelihood, Message, TokenScore
from osler.trace import Run
from osler.types import Answer, Hit, Question

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


Metric = Literal["cppl", "uct", "sureness", "off"]

# Values of App. 8.5, by metric; "off" accepts every value below it, and the ablation gives 0.
SIGMA = {"cppl": 10.0, "uct": 20.0, "sureness": 0.5, "off": 1.0}
"""The paper's thresholds, for Qwen1.5-32B (App. 8.5); other models need their own. That of
sureness is ours: more likely answered than not."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A text to be valued, with its tokens and the conversation that produced it."""

    text: str
    tokens: tuple[TokenScore, ...] = ()
    """Tokens of `text` alone; empty when it was not generated or has no log-probabilities."""
    context: Sequence[Message] = ()
    """The conversation in which it was, or would have been, generated."""
    answer: Answer | None = None
    """The answer that the text was composed with; `None` for a model's own text."""


class Monitor(Protocol):
    @property
    def metric(self) -> str: ...

    async def state_value(self, draft: Draft, memory: MemoryStack, run: Run) -> float:
        """The state value of `draft` on top of `memory`, in (0, inf)."""


def cppl(logprobs: Sequence[float]) -> float:
    """Eq. 4: exp(-1/N Σ log P(token_i | token_<i, M_bottom)); `logprobs` in nats, N ≥ 1."""
    return exp(min(-sum(logprobs) / len(logprobs), 700.0))  # what `exp` makes a float of


def uct(logprobs: Sequence[float]) -> float:
    """Eq. 5: -Σ P(token_i | token_<i) log P(token_i | token_<i), a sum over the N tokens.

    Not monotone: a term is greatest at P = 1/e, and a token of P near 0 adds as little as one of
    P near 1.
    """
    return -sum(exp(logprob) * max(logprob, -700.0) for logprob in logprobs)


def mean_token_probability(metric: str, value: float) -> float | None:
    """Converts a state value to the mean token probability, 0 to 1: 1 / cppl.

    `None` for uct, which is an entropy, and without a monitor.
    """
    return min(1.0, 1 / value) if metric == "cppl" and value > 0 else None


def explain_halt(metric: str, value: float, sigma: float, basis: str) -> str:
    """Why a Conclusion of this value ends the run; `basis`: where sigma comes from."""
    if metric == "off":
        return "the model concluded (no state monitor)"
    why = f"{metric} {value:.3g} < sigma {sigma:.3g}"
    return f"{why} ({basis})" if basis else why


@dataclass(frozen=True)
class Cppl:
    """Conditional perplexity of the text given the query *alone* (M_bottom)."""

    model: Likelihood
    metric: str = "cppl"

    async def state_value(self, draft: Draft, memory: MemoryStack, run: Run) -> float:
        # M_bottom of Eq. 4: the query frame alone, whatever else is in memory.
        bottom = f"User_Query: {memory.frames[0].text}\n"
        scored = await score(self.model, bottom, draft.text, run, role="monitor", prompt="cppl")
        return cppl([token.logprob for token in scored.tokens])


@dataclass(frozen=True)
class Uct:
    """Uncertainty of the text's own tokens; scored in its context when it was not generated."""

    model: object
    metric: str = "uct"

    async def state_value(self, draft: Draft, memory: MemoryStack, run: Run) -> float:
        # Generated tokens come with their log-probabilities; other text is scored once more.
        tokens = draft.tokens
        if not tokens:
            if not isinstance(self.model, Likelihood):
                raise CapabilityMissing(
                    "uct needs token log-probabilities, and the model gives none for this text",
                    fix='set strategy.metric = "off"',
                )
            scored = await score(
                self.model, draft.context, draft.text, run, role="monitor", prompt="uct"
            )
            tokens = scored.tokens
        return uct([token.logprob for token in tokens])


@dataclass(frozen=True)
class SurenessMonitor:
    """How likely the evidence of a composed answer does *not* answer the question, 0 to 1, as a
    calibrated expert says; 1 for a text that no expert judges. No language model is asked."""

    metric: str = "sureness"

    async def state_value(self, draft: Draft, memory: MemoryStack, run: Run) -> float:
        sureness = draft.answer.sureness if draft.answer else None
        return 1 - sureness.probability if sureness else 1.0


@dataclass(frozen=True)
class Unmonitored:
    """ "w/o State Monitor" (§6.3): accepts every Conclusion, whatever its likelihood."""

    metric: str = "off"

    async def state_value(self, draft: Draft, memory: MemoryStack, run: Run) -> float:
        return 0.0


def make_monitor(metric: Metric, model: LanguageModel) -> Monitor:
    """Makes the monitor. Raises `CapabilityMissing` for a model that cannot be monitored so."""
    match metric:
        case "off":
            return Unmonitored()
        case "uct":
            return Uct(model)
        case "sureness":
            return SurenessMonitor()
        case "cppl" if isinstance(model, Likelihood):
            return Cppl(model)
        case _:
            raise CapabilityMissing(
                f"{metric} needs the likelihood of a given text, and {model.name} has none",
                fix='set strategy.metric = "uct" or "off"',
            )
