"""What writes a tape: models, retrievers and scorers that pass calls on and note them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from osler.llm.core.base import (
    Attended,
    Attentive,
    Completion,
    LanguageModel,
    Likelihood,
    Message,
    Sampling,
    Scored,
    score_all,
)
from osler.llm.recording.tape import Tape, context_of, sampling_values
from osler.types import Hit, Relevance, Retriever


@dataclass(frozen=True)
class RecordingModel:
    """Passes calls on and writes the replies down."""

    model: LanguageModel
    tape: Tape

    @property
    def name(self) -> str:
        return self.model.name

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        asked = (self.name, tuple(messages), sampling_values(sampling))
        with self.tape.note_call("complete", asked) as note:
            return note(await self.model.complete(messages, sampling))


@dataclass(frozen=True)
class RecordingScorer(RecordingModel):
    """The same of a model that scores."""

    scorer: Likelihood

    async def score(self, context: Sequence[Message] | str, text: str) -> Scored:
        with self.tape.note_call("score", (self.name, context_of(context), text)) as note:
            return note(await self.scorer.score(context, text))

    async def score_all(
        self, context: Sequence[Message] | str, texts: Sequence[str]
    ) -> tuple[Scored, ...]:
        """On the tape a batch is so many single scores, so it replays without one."""
        if not texts:
            return ()
        asked = [(self.name, context_of(context), text) for text in texts]
        with self.tape.note_call("score", asked[0]) as note:
            first, *others = await score_all(self.scorer, context, texts)
            note(first)
        for one, reply in zip(asked[1:], others, strict=True):
            self.tape.add_entry("score", one, reply)
        return (first, *others)


@dataclass(frozen=True)
class RecordingAttentive(RecordingScorer):
    """The same of a model that also shows its attention."""

    attentive: Attentive

    async def attend(self, context: Sequence[Message] | str, text: str) -> Attended:
        with self.tape.note_call("attend", (self.name, context_of(context), text)) as note:
            return note(await self.attentive.attend(context, text))


def record_model(model: LanguageModel, tape: Tape) -> RecordingModel:
    """A recorder that can do what the model can."""
    if isinstance(model, Likelihood) and isinstance(model, Attentive):
        return RecordingAttentive(model, tape, model, model)
    if isinstance(model, Likelihood):
        return RecordingScorer(model, tape, model)
    return RecordingModel(model, tape)


@dataclass(frozen=True)
class RecordingRetriever:
    name: str
    retriever: Retriever
    tape: Tape

    async def search(self, query: str, *, k: int) -> list[Hit]:
        with self.tape.note_call("search", (self.name, query, k)) as note:
            return list(note(tuple(await self.retriever.search(query, k=k))))


@dataclass(frozen=True)
class RecordingRelevance:
    name: str
    scorer: Relevance
    tape: Tape

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        with self.tape.note_call("relevance", (self.name, query, tuple(texts))) as note:
            return note(await self.scorer.relevance(query, texts))
