"""Communities told by a model (GraphRAG's community reports, TC-RAG App. 8.5).

The model sees what the graph states and is told to add nothing. A summary is kept only
when it names one of the community's concepts; it says which model wrote it.
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
from osler.text import is_cjk, one_line
from osler.trace import Run
from osler.types import Language, Passage

STATED = 40
"""Relations that the model is shown."""
_LONGEST = 1000


@dataclass(frozen=True)
class CommunitySummariser:
    """Writes what a community is about."""

    model: LanguageModel
    sampling: Sampling = field(default_factory=lambda: Sampling(temperature=0.0))

    async def summarise_community(
        self, communities: Communities, community: Community, run: Run
    ) -> Passage:
        """The summary, which is stored and opens by its id.

        Raises `MalformedOutput` when the model says nothing of the community's concepts
        even when asked again, and what the model raises.
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
        """One after the other, those that have a summary already left out; a reply that
        cannot be used is given back as what is wrong with it, and the next is asked for."""
        for community in wanted:
            if await asyncio.to_thread(communities.read_summary, community) is not None:
                continue
            try:
                yield community, await self.summarise_community(communities, community, run)
            except MalformedOutput as error:
                yield community, error


def _summary_prompt(community: Community, digest: CommunityDigest) -> RenderedPrompt:
    """In the language of most of its names."""
    chinese = sum(any(map(is_cjk, name)) for name in digest.names)
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
    """The reply on one line, at most as long as a passage and not cut in a sentence."""
    line = one_line(text)
    ends = [name for chain in digest.relations for name in chain.names]
    if not any(name.casefold() in line.casefold() for name in (*digest.names, *ends)):
        raise MalformedOutput(text, expected="a paragraph that names the concepts")
    if len(line) > _LONGEST:
        head = line[:_LONGEST]
        stop = max(head.rfind(mark) for mark in (". ", "。", "; ", "；"))
        line = head[: stop + 1] if stop > 0 else head
    return line
