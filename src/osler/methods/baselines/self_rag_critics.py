"""Who speaks Self-RAG's reflection tokens: a model trained to, or one asked in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from statistics import fmean

from osler.llm.core.ask import score_all
from osler.llm.core.base import Likelihood, Message, Scored, TokenScore
from osler.methods.baselines.base import ROLE
from osler.methods.baselines.episode import Episode
from osler.methods.baselines.self_rag import TOKENS, Aspect, CritiqueContext
from osler.prompts import RenderedPrompt

_STOPS = (*TOKENS["support"], *TOKENS["retrieve"], "[Continue to Use Evidence]", "[Utility:")


@dataclass(frozen=True)
class TrainedCritic:
    """A Self-RAG checkpoint, which writes the reflection tokens itself."""

    model: Likelihood

    async def weigh_tokens(
        self, line: Episode, aspect: Aspect, at: CritiqueContext
    ) -> dict[str, float]:
        prompt = line.render_prompt("baselines/self_rag", **line.question_variables)
        context = [Message("user", prompt.text)]
        if said := _render_transcript(at):
            context.append(Message("assistant", said))
        scored = await score_all(
            self.model, context, TOKENS[aspect], line.run, role=ROLE, prompt=prompt.identity
        )
        return dict(zip(TOKENS[aspect], map(_token_probability, scored), strict=True))

    async def write_segment(
        self, line: Episode, at: CritiqueContext
    ) -> tuple[str, tuple[TokenScore, ...]]:
        prompt = line.render_prompt("baselines/self_rag", **line.question_variables)
        begun = _render_transcript(at)
        begun += "[Relevant]" if at.passage else "[No Retrieval]"
        said = await line.ask_model(prompt, begun=begun, stop=_STOPS, top=1)
        return said.text, said.tokens


@dataclass(frozen=True)
class PromptedCritic:
    """An imitation: asks any model for each reflection token in words."""

    async def weigh_tokens(
        self, line: Episode, aspect: Aspect, at: CritiqueContext
    ) -> dict[str, float]:
        prompt = line.render_prompt(
            "baselines/self_rag_reflect",
            question=line.question.text,
            op=aspect,
            documents=[at.passage.passage.text] if at.passage else [],
            text=at.segment,
            names=", ".join(TOKENS[aspect]),
        )
        model = line.kit.model
        if isinstance(model, Likelihood):
            return await _token_probabilities(model, line, aspect, prompt)
        said = (await line.ask_model(prompt, tokens=24, temperature=0.0)).text
        return match_token(aspect, said)

    async def write_segment(
        self, line: Episode, at: CritiqueContext
    ) -> tuple[str, tuple[TokenScore, ...]]:
        prompt = line.render_prompt(
            "baselines/self_rag_write",
            **line.question_variables,
            documents=line.list_documents([at.passage]) if at.passage else [],
        )
        said = await line.ask_model(prompt, begun=at.before, top=1)
        return said.text, said.tokens


def match_token(aspect: Aspect, said: str) -> dict[str, float]:
    """1 for the token that the reply names first, with or without brackets; all 1 when it names
    none."""
    folded = said.casefold()
    places = [
        (folded.find(token.strip("[]").casefold()), -len(token), token) for token in TOKENS[aspect]
    ]
    there = [place for place in places if place[0] >= 0]
    if not there:
        return dict.fromkeys(TOKENS[aspect], 1.0)
    first = min(there)[2]
    return {token: float(token == first) for token in TOKENS[aspect]}


async def _token_probabilities(
    model: Likelihood, line: Episode, aspect: Aspect, prompt: RenderedPrompt
) -> dict[str, float]:
    """Probabilities by the mean over a token's pieces: an untrained model splits it into
    several."""
    context = [Message("user", prompt.text)]
    tokens: Sequence[str] = TOKENS[aspect]
    scored = await score_all(model, context, tokens, line.run, role=ROLE, prompt=prompt.identity)
    means = [exp(fmean(piece.logprob for piece in one.tokens)) for one in scored]
    return dict(zip(tokens, means, strict=True))


def _token_probability(scored: Scored) -> float:
    """The product over a token's pieces; to a trained model a reflection token is one piece."""
    return exp(sum(piece.logprob for piece in scored.tokens))


def _render_transcript(at: CritiqueContext) -> str:
    """The text before the next reflection token, as the paper's models write it."""
    said = at.before
    if at.passage:
        said += f"[Retrieval]<paragraph>{at.passage.passage.text}</paragraph>"
    if at.segment:
        said += f"[Relevant]{at.segment}{at.support}"
    return said
