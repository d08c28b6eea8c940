"""Self-RAG: reflection tokens decide on retrieval and between passages (TC-RAG App. 8.5, 10).

Asai et al. 2024, *Self-RAG: Learning to Retrieve, Generate, and Critique through
Self-Reflection*, §3.3. Retrieval when the share of [Retrieval] is above a threshold (0.2);
then a segment for each passage, weighed by its own likelihood and by what the reflection
tokens say of relevance, support and utility (weights 1, 1 and 0.5; Eqs. 3 and 4), and a beam
of the best segments. One segment is the paper's short form, with which it answers questions.

Departures: the share of [Retrieval] is one of probabilities, as the paper has it; the released
code divides their logarithms. The probabilities of a group of reflection tokens are those of
each token as a given text, so that no engine must tell its 5,000 likeliest tokens; each segment
is written after [Relevant], since a segment after [Irrelevant] is only ever weighed down. A
passage that spells a reflection token loses its brackets.

`TrainedCritic` needs a checkpoint of the authors' and sends it their raw instruction format, past
any chat template; a model to which a reflection token is several tokens is refused.
`PromptedCritic` asks any model in words: an imitation, which bears another name
(`self-rag-prompted`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp
from statistics import fmean
from typing import Literal, Protocol

from osler.errors import CapabilityMissing
from osler.llm.core.ask import score_all
from osler.llm.core.base import Likelihood, Message, Scored, TokenScore
from osler.llm.reading.answers import answer_words
from osler.methods.episode import ROLE, Episode, EpisodeMethod, raw_prompt
from osler.prompts import RenderedPrompt
from osler.types import Hit
from osler_lab.baselines.growing import has_answer, join_sentences

Aspect = Literal["retrieve", "relevant", "support", "utility"]
TOKENS: dict[Aspect, tuple[str, ...]] = {
    "retrieve": ("[Retrieval]", "[No Retrieval]"),
    "relevant": ("[Relevant]", "[Irrelevant]"),
    "support": ("[Fully supported]", "[Partially supported]", "[No support / Contradictory]"),
    "utility": tuple(f"[Utility:{n}]" for n in range(1, 6)),
}
# §3.3 and Appendix A.3.
_WEIGHTS: dict[Aspect, tuple[float, ...]] = {
    "retrieve": (1.0, 0.0),
    "relevant": (1.0, 0.0),
    "support": (1.0, 0.5, 0.0),
    "utility": (-1.0, -0.5, 0.0, 0.5, 1.0),
}
# Texts that end a segment of a trained model.
_STOPS = (*TOKENS["support"], *TOKENS["retrieve"], "[Continue to Use Evidence]", "[Utility:")
_PARAGRAPH = ("<paragraph>", "</paragraph>")


@dataclass(frozen=True)
class CritiqueContext:
    """Position in an answer at which the critic judges."""

    before: str = ""
    """Segments accepted so far."""
    passage: Hit | None = None
    segment: str = ""
    support: str = ""
    """Likeliest token of the support aspect, once it is known."""


class Critic(Protocol):
    async def weigh_tokens(
        self, episode: Episode, aspect: Aspect, at: CritiqueContext
    ) -> dict[str, float]:
        """The probability of each reflection token of the aspect; they need not sum to 1."""

    async def write_segment(
        self, episode: Episode, at: CritiqueContext
    ) -> tuple[str, tuple[TokenScore, ...]]:
        """The next segment, with its tokens when the engine reports them."""


@dataclass(frozen=True)
class SegmentPath:
    text: str
    score: float
    hits: tuple[Hit, ...] = ()
    """The passage of each segment."""


@dataclass(frozen=True)
class SelfRag(EpisodeMethod):
    critic: Critic
    threshold: float = 0.2
    relevance: float = 1.0
    support: float = 1.0
    utility: float = 0.5
    beam: int = 2
    segments: int = 1

    async def run_episode(self, episode: Episode) -> str:
        why = "the segment that its reflection tokens weigh most"
        share = aspect_value(
            "retrieve", await self.critic.weigh_tokens(episode, "retrieve", CritiqueContext())
        )
        episode.note(f"[Retrieval] has a share of {share:.2f}, threshold {self.threshold:g}")
        if share > self.threshold:
            await self._search_beam(episode)
        else:
            why = "answered without retrieval"
            episode.draft = (await self.critic.write_segment(episode, CritiqueContext()))[0].strip()
        return why

    async def _search_beam(self, episode: Episode) -> None:
        """Segment-level beam search (§3.3)."""
        paths = [SegmentPath("", 0.0)]
        for _ in range(self.segments):
            longer = [more for path in paths for more in await self._extend_path(episode, path)]
            if not longer:
                return
            # Cumulative scores, as in the released beam search.
            paths = sorted(longer, key=lambda path: -path.score)[: self.beam]
            episode.conclude_text(paths[0].text, paths[0].hits)
            if has_answer(paths[0].text):
                return

    async def _extend_path(self, episode: Episode, path: SegmentPath) -> list[SegmentPath]:
        """Extends a path by one segment for each passage found at its end."""
        hits = await episode.search(f"{episode.question.text} {path.text}")
        longer = []
        for hit in hits:
            weighed, segment = await self._weigh_segment(episode, CritiqueContext(path.text, hit))
            if segment.strip():
                text = join_sentences(path.text, segment, episode.question.language)
                longer.append(SegmentPath(text, path.score + weighed, (*path.hits, hit)))
        return longer

    async def _weigh_segment(self, episode: Episode, at: CritiqueContext) -> tuple[float, str]:
        """Score and text of one segment (Eq. 4): its likelihood plus its critique."""
        relevant = aspect_value("relevant", await self.critic.weigh_tokens(episode, "relevant", at))
        segment, tokens = await self.critic.write_segment(episode, at)
        at = CritiqueContext(at.before, at.passage, segment)
        supports = await self.critic.weigh_tokens(episode, "support", at)
        likeliest = max(supports, key=lambda token: supports[token])
        at = CritiqueContext(at.before, at.passage, segment, likeliest)
        useful = aspect_value("utility", await self.critic.weigh_tokens(episode, "utility", at))
        weights = (self.relevance, self.support, self.utility)
        score = segment_likelihood(tokens) + critique_score(
            (relevant, aspect_value("support", supports), useful), weights
        )
        episode.note(
            f"{at.passage.passage.id if at.passage else ''}: segment {score:.2f}"
            f" (relevant {relevant:.2f}, {likeliest}, utility {useful:.2f})"
        )
        return score, segment


def critique_score(values: Sequence[float], weights: Sequence[float]) -> float:
    """Eq. 4's critique score S: the weighted sum of relevance, support and utility."""
    return sum(weight * one for weight, one in zip(weights, values, strict=True))


def aspect_value(aspect: Aspect, probabilities: Mapping[str, float]) -> float:
    """The value of an aspect: its tokens' weights averaged by their probabilities; 0 without
    any."""
    total = sum(probabilities.get(token, 0.0) for token in TOKENS[aspect])
    pairs = zip(TOKENS[aspect], _WEIGHTS[aspect], strict=True)
    weighed = sum(weight * probabilities.get(token, 0.0) for token, weight in pairs)
    return weighed / total if total else 0.0


def segment_likelihood(tokens: Sequence[TokenScore]) -> float:
    """The segment's geometric mean token probability; 0 without tokens."""
    return exp(fmean(token.logprob for token in tokens)) if tokens else 0.0


@dataclass(frozen=True)
class TrainedCritic:
    """A Self-RAG checkpoint, which writes the reflection tokens itself.

    Raises `CapabilityMissing` for a model that does not know them.
    """

    model: Likelihood

    async def weigh_tokens(
        self, episode: Episode, aspect: Aspect, at: CritiqueContext
    ) -> dict[str, float]:
        prompt = episode.render("baselines/self_rag")
        context = [raw_prompt(prompt, _render_transcript(at))]
        scored = await score_all(
            self.model, context, TOKENS[aspect], episode.run, role=ROLE, prompt=prompt.identity
        )
        self._require_tokens(episode, aspect, scored)
        # To a trained model a reflection token is one token.
        shares = [exp(sum(piece.logprob for piece in one.tokens)) for one in scored]
        return dict(zip(TOKENS[aspect], shares, strict=True))

    async def write_segment(
        self, episode: Episode, at: CritiqueContext
    ) -> tuple[str, tuple[TokenScore, ...]]:
        prompt = episode.render("baselines/self_rag")
        begun = _render_transcript(at)
        begun += "[Relevant]" if at.passage else "[No Retrieval]"
        reply = await episode.ask(prompt, begun=begun, raw=True, stop=_STOPS, top=1)
        return reply.text, reply.tokens

    def _require_tokens(self, episode: Episode, aspect: Aspect, scored: Sequence[Scored]) -> None:
        for token, one in zip(TOKENS[aspect], scored, strict=True):
            if len(one.tokens) > 1:
                name = episode.kit.model.name
                raise CapabilityMissing(
                    f"self-rag needs a checkpoint of Self-RAG, and {name} is none: to it {token} is"
                    f" {len(one.tokens)} tokens",
                    fix='take strategy.kind = "self-rag-prompted", which asks any model in words',
                )


@dataclass(frozen=True)
class PromptedCritic:
    """An imitation: asks any model for each reflection token in words."""

    async def weigh_tokens(
        self, episode: Episode, aspect: Aspect, at: CritiqueContext
    ) -> dict[str, float]:
        prompt = episode.render(
            "baselines/self_rag_reflect",
            op=aspect,
            documents=[at.passage.passage.text] if at.passage else [],
            text=answer_words(at.segment),
            names=", ".join(TOKENS[aspect]),
        )
        model = episode.kit.model
        if isinstance(model, Likelihood):
            return await _token_probabilities(model, episode, aspect, prompt)
        reply = (await episode.ask(prompt, tokens=24, temperature=0.0)).text
        return match_token(aspect, reply)

    async def write_segment(
        self, episode: Episode, at: CritiqueContext
    ) -> tuple[str, tuple[TokenScore, ...]]:
        prompt = episode.render(
            "baselines/self_rag_write",
            documents=episode.list_documents([at.passage]) if at.passage else [],
        )
        reply = await episode.ask(prompt, begun=at.before, top=1)
        return reply.text, reply.tokens


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
    model: Likelihood, episode: Episode, aspect: Aspect, prompt: RenderedPrompt
) -> dict[str, float]:
    """Probabilities by the mean over a token's pieces: an untrained model splits it into
    several."""
    context = [Message("user", prompt.text)]
    tokens: Sequence[str] = TOKENS[aspect]
    scored = await score_all(model, context, tokens, episode.run, role=ROLE, prompt=prompt.identity)
    means = [exp(fmean(piece.logprob for piece in one.tokens)) for one in scored]
    return dict(zip(tokens, means, strict=True))


def _render_transcript(at: CritiqueContext) -> str:
    """The text before the next reflection token, as the paper's models write it."""
    said = at.before
    if at.passage:
        said += f"[Retrieval]<paragraph>{_without_marks(at.passage.passage.text)}</paragraph>"
    if at.segment:
        said += f"[Relevant]{at.segment}{at.support}"
    return said


def _without_marks(text: str) -> str:
    """A passage's text in which no words are the model's own marks."""
    for mark in (*(token for tokens in TOKENS.values() for token in tokens), *_PARAGRAPH):
        text = text.replace(mark, mark.strip("[]</>"))
    return text
