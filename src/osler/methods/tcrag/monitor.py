"""The system state value (TC-RAG §5.2): the uncertainty of a Thought or a Conclusion.

Lower is surer. `Cppl` is Eq. 4, `TokenMonitor` with `uct` is Eq. 5, `Unmonitored` is the ablation
"w/o State Monitor" (§6.3) in which the model's own Conclusion ends the run. The others are
variants: `mean_uct` and `EntropyMonitor` of Eq. 5, `low_probability` and `AttentionMonitor` of
metrics that the released code names without a working definition; `evidence_values` has those that
look at the evidence. None of them has a threshold of the paper's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import fmean
from typing import Literal, Protocol

from osler.errors import CapabilityMissing
from osler.llm.core.ask import attend, score
from osler.llm.core.base import Attentive, Likelihood, Message, TokenScore
from osler.methods.tcrag.stack import MemoryStack
from osler.trace import Run
from osler.types import Answer

Metric = Literal[
    "cppl",
    "uct",
    "uct-mean",
    "uct-entropy",
    "low-prob",
    "attention",
    "gain",
    "question-gain",
    "option-entropy",
    "sureness",
    "semantic-entropy",
    "off",
]

# Values of App. 8.5, by metric; "off" accepts every value below it, and the ablation gives 0.
SIGMA = {"cppl": 10.0, "uct": 20.0, "sureness": 0.5, "off": 1.0}
"""The paper's thresholds, for Qwen1.5-32B (App. 8.5); other models need their own. Those of
sureness and answers are ours: more likely answered than not."""


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


@dataclass(frozen=True, slots=True)
class StateValue:
    value: float
    exact: bool = True


class Monitor(Protocol):
    @property
    def metric(self) -> str: ...

    async def state_value(self, draft: Draft, memory: MemoryStack, run: Run) -> StateValue:
        """The state value of `draft` on top of `memory`, in (0, inf)."""


def cppl(logprobs: Sequence[float]) -> float:
    """Eq. 4: exp(-1/N Σ log P(token_i | token_<i, M_bottom)); `logprobs` in nats, N ≥ 1."""
    return exp(-sum(logprobs) / len(logprobs))


def uct(logprobs: Sequence[float]) -> float:
    """Eq. 5: -Σ P(token_i | token_<i) log P(token_i | token_<i), a sum over the N tokens.

    Not monotone: a term is greatest at P = 1/e, and a token of P near 0 adds as little as one of
    P near 1.
    """
    return -sum(exp(logprob) * logprob for logprob in logprobs)


def mean_uct(logprobs: Sequence[float]) -> float:
    """Eq. 5 as a mean over the tokens, at most 1/e: a long text is not unsure for its length."""
    return uct(logprobs) / len(logprobs)


def low_probability(logprobs: Sequence[float], *, below: float = 0.1) -> float:
    """Share of the tokens whose probability is less than `below`, 0 to 1."""
    return sum(exp(logprob) < below for logprob in logprobs) / len(logprobs)


def entropy_estimate(top: Sequence[tuple[str, float]]) -> float:
    """Entropy in nats at one place from its likeliest tokens and their log-probabilities.

    What they leave over counts as one token more, so that the entropy is never overestimated.
    """
    rest = max(0.0, 1.0 - sum(exp(logprob) for _, logprob in top))
    told = -sum(exp(logprob) * logprob for _, logprob in top)
    return told - (rest * log(rest) if rest else 0.0)


def unattended(weights: Sequence[Sequence[float]], *, below: float = 0.6) -> float:
    """Share of the tokens that later ones attend to with less than `below`, 0 to 1.

    `weights` as in `Attended`; the attention that a token receives is a mean over the later
    tokens, on a scale whose mean over the text is 1. The last token has none after it and does
    not count; a text of one token has the value 0.
    """
    received = [
        fmean(later[i] for later in weights[i + 1 :]) for i in range(max(0, len(weights) - 1))
    ]
    mean = fmean(received) if received else 0.0
    if not mean:
        return 0.0
    return sum(each / mean < below for each in received) / len(received)


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

    async def state_value(self, draft: Draft, memory: MemoryStack, run: Run) -> StateValue:
        # M_bottom of Eq. 4: the query frame alone, whatever else is in memory.
        bottom = f"User_Query: {memory.frames[0].text}\n"
        scored = await score(self.model, bottom, draft.text, run, role="monitor", prompt="cppl")
        return StateValue(cppl([token.logprob for token in scored.tokens]))


@dataclass(frozen=True)
class TokenMonitor:
    """A statistic of the text's own tokens, by default Eq. 5; scored in its context when the
    text was not generated."""

    model: object
    metric: str = "uct"
    statistic: Callable[[Sequence[float]], float] = uct

    async def state_value(self, draft: Draft, memory: MemoryStack, run: Run) -> StateValue:
        # Generated tokens come with their log-probabilities; other text is scored once more.
        tokens = draft.tokens
        if not tokens:
            if not isinstance(self.model, Likelihood):
                raise _tokens_missing(self.metric)
            scored = await score(
                self.model, draft.context, draft.text, run, role="monitor", prompt=self.metric
            )
            tokens = scored.tokens
        return StateValue(self.statistic([token.logprob for token in tokens]))


@dataclass(frozen=True)
class EntropyMonitor:
    """Entropy over the whole vocabulary, summed over the text's tokens.

    Exact for a model that shows its distributions; else a lower bound from the likeliest tokens.
    """

    model: object
    metric: str = "uct-entropy"

    async def state_value(self, draft: Draft, memory: MemoryStack, run: Run) -> StateValue:
        if isinstance(self.model, Attentive):
            read = await attend(self.model, draft.context, draft.text, run, role="monitor")
            return StateValue(sum(read.entropies))
        tokens = draft.tokens
        if not tokens or not all(token.top for token in tokens):
            raise _tokens_missing(self.metric, "the likeliest tokens at each place")
        return StateValue(sum(entropy_estimate(token.top) for token in tokens), exact=False)


@dataclass(frozen=True)
class AttentionMonitor:
    """Share of the text's tokens to which its later ones hardly attend (`unattended`)."""

    model: Attentive
    metric: str = "attention"

    async def state_value(self, draft: Draft, memory: MemoryStack, run: Run) -> StateValue:
        read = await attend(self.model, draft.context, draft.text, run, role="monitor")
        return StateValue(unattended(read.weights))


def _tokens_missing(metric: str, what: str = "token log-probabilities") -> CapabilityMissing:
    return CapabilityMissing(
        f"{metric} needs {what}, and the model gives none for this text",
        fix='set strategy.metric = "off"',
    )


@dataclass(frozen=True)
class Unmonitored:
    """ "w/o State Monitor" (§6.3): accepts every Conclusion, whatever its likelihood."""

    metric: str = "off"

    async def state_value(self, draft: Draft, memory: MemoryStack, run: Run) -> StateValue:
        return StateValue(0.0)
