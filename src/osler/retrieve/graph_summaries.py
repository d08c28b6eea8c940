"""Summaries of communities by a model (GraphRAG's community reports, TC-RAG App. 8.5).

The model sees the graph's facts and is told to add nothing. A summary is kept only when it names
one of the community's concepts; it records which model wrote it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field

from osler.errors import MalformedOutput
from osler.graph.communities import Communities, Community, CommunityDigest
from osler.graph.verbalize import verbalise_chain
from osler.llm.core.ask import ask
from osler.llm.core.base import Completion, LanguageModel, Message, Sampling
from osler.prompts import RenderedPrompt, render_prompt
from osler.text import has_cjk, one_line
from osler.trace import Run
from osler.types import Language, Passage

STATED = 40
"""Relations shown to the model."""
_LONGEST = 1000


@dataclass(frozen=True)
class CommunitySummariser:
    """Summarises communities with a model."""

    model: LanguageModel
    sampling: Sampling = field(default_factory=lambda: Sampling(temperature=0.0))

    async def summarise_community(
        self, communities: Communities, community: Community, run: Run
    ) -> Passage:
        """Writes and stores a summary; the passage's id resolves to it.

        Raises `MalformedOutput` when the model names none of the community's concepts even when
        asked again, and the model's own errors.
        """
        digest = await asyncio.to_thread(communities.make_digest, community, relations=STATED)
        prompt = _summary_prompt(community, digest)

        def parse(reply: Completion) -> str:
            return _summary_text(reply.text, digest)

        asked = [Message("user", prompt.text)]
        text = await ask(
            self.model,
            asked,
            parse,
            self.sampling,
            run,
            role="summariser",
            prompt=prompt.identity,
        )
        return await asyncio.to_thread(communities.store_summary, community, text, self.model.name)

    async def summarise_all(
        self, communities: Communities, wanted: Iterable[Community], run: Run
    ) -> AsyncIterator[tuple[Community, Passage | MalformedOutput]]:
        """Summarises one community after another, skipping those with a summary.

        An unusable reply is yielded as its error, and the next community follows.
        """
        for community in wanted:
            if await asyncio.to_thread(communities.read_summary, community) is not None:
                continue
            try:
                yield community, await self.summarise_community(communities, community, run)
            except MalformedOutput as error:
                yield community, error


def _summary_prompt(community: Community, digest: CommunityDigest) -> RenderedPrompt:
    """The prompt in the language of most of the community's names."""
    chinese = sum(has_cjk(name) for name in digest.names)
    language: Language = "zh" if 2 * chinese > len(digest.names) else "en"
    return render_prompt(
        "graph/community",
        language,
        size=community.size,
        concepts=list(digest.names),
        definitions=list(digest.definitions),
        relations=[verbalise_chain(chain) for chain in digest.relations],
    )


def _summary_text(text: str, digest: CommunityDigest) -> str:
    """The reply on one line, cut at a sentence end to the length of a passage."""
    line = one_line(text)
    ends = [name for chain in digest.relations for name in chain.names]
    if not any(name.casefold() in line.casefold() for name in (*digest.names, *ends)):
        raise MalformedOutput(text, expected="a paragraph that names the concepts")
    if len(line) > _LONGEST:
        head = line[:_LONGEST]
        stop = max(head.rfind(mark) for mark in (". ", "。", "; ", "；"))
        line = head[: stop + 1] if stop > 0 else head
    return line
