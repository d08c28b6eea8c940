"""The Protocols of language models, and the values they exchange.

A capability is a Protocol, not a flag: a model that can score a given text
implements `Likelihood` beside `LanguageModel`; a method that needs it asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from osler.llm.core.grammar import Grammar
from osler.types import Usage

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Role | Literal["raw"]
    """"raw": the whole prompt as it stands, past any chat template; then it is the only message,
    and the marks of the model that it spells are tokens."""
    content: str


def raw_text(context: Sequence[Message] | str) -> str | None:
    """The prompt that is to be read as it stands; `None` for a conversation and for plain text.

    Raises `ValueError` for a raw prompt beside other messages.
    """
    if isinstance(context, str) or all(message.role != "raw" for message in context):
        return None
    if len(context) > 1:
        raise ValueError("a raw prompt is the only message of its context")
    return context[0].content


@dataclass(frozen=True, slots=True)
class Sampling:
    """Decoding settings. The defaults are TC-RAG's for all its methods (App. 8.5)."""

    temperature: float = 0.6
    max_tokens: int = 500
    stop: tuple[str, ...] = ()
    seed: int = 0
    top: int = 1
    """Number of likeliest tokens to report at each place; 0 = no log-probabilities."""
    grammar: Grammar | None = None
    """The format that the reply is held to. A model that cannot must raise `CapabilityMissing`."""


@dataclass(frozen=True, slots=True)
class TokenScore:
    """A token of a text with its log-probability under the raw model.

    `text[start:end]` of the scored text are its characters. Tokens that are only
    part of a character share the span of the whole character.
    """

    text: str
    start: int
    end: int
    logprob: float
    """Natural logarithm, at most 0, before grammar and temperature."""
    top: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's reply to a conversation."""

    text: str
    tokens: tuple[TokenScore, ...] = ()
    """Empty when the model gives no log-probabilities."""
    finish: Literal["stop", "length"] = "stop"
    usage: Usage = field(default_factory=Usage)
    thinking: str = ""
    """A reasoning model's thoughts before its reply; never a part of `text`."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A given text's tokens, teacher-forced, and the cost."""

    tokens: tuple[TokenScore, ...]
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Attended:
    """A given text's probabilities, entropies and attention, as DRAGIN needs them."""

    tokens: tuple[TokenScore, ...]
    """Teacher-forced, as in `Scored`."""
    entropies: tuple[float, ...]
    """Entropy at each token's place, over the whole vocabulary, in nats."""
    weights: tuple[tuple[float, ...], ...]
    """`weights[i][j]`, j < i: what token i pays token j of the text, in the last layer, as a
    mean over heads; what it pays itself and the context is left out."""
    usage: Usage = field(default_factory=Usage)


class CutShort(Exception):
    """Raised on replay where the recorded call was stopped for the run's budget."""


@runtime_checkable
class LanguageModel(Protocol):
    """A model that continues a conversation: in this process, on a server, or a script."""

    @property
    def name(self) -> str:
        """Stable identity: it is written to logs and keys tapes."""

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        """Continues the conversation; a last message of the assistant's is continued in place.

        Raises `ModelUnreachable`, `ModelError` (refused by the engine, too long a
        prompt) and `CapabilityMissing`.
        """


@runtime_checkable
class Likelihood(Protocol):
    """A model that scores given texts; usually it is a `LanguageModel` too."""

    async def score(self, context: Sequence[Message] | str, text: str) -> Scored:
        """Log-probabilities of `text` after `context`, teacher-forced.

        A `str` context is taken as it is; messages are put through the chat
        template, and `text` stands where the assistant's next words would. The
        tokens' offsets are into `text`.
        """


@runtime_checkable
class BatchLikelihood(Likelihood, Protocol):
    """A model that scores several texts after one context, and reads that context once."""

    async def score_all(
        self, context: Sequence[Message] | str, texts: Sequence[str]
    ) -> tuple[Scored, ...]:
        """Scores each text as `score` does, in order; no score depends on the other texts."""


@runtime_checkable
class Attentive(Protocol):
    """A model that shows its attention; engines that fuse it away cannot."""

    async def attend(self, context: Sequence[Message] | str, text: str) -> Attended:
        """Reads `text` after `context`, as `Likelihood.score` does."""


async def score_all(
    model: Likelihood, context: Sequence[Message] | str, texts: Sequence[str]
) -> tuple[Scored, ...]:
    """Scores the texts in one batch where the model offers it, else one by one."""
    if isinstance(model, BatchLikelihood):
        return await model.score_all(context, texts)
    return tuple([await model.score(context, text) for text in texts])
