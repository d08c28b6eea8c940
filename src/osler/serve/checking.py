"""MCP's `verify_claim`: what the evidence says of one statement, each verdict with its quotes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel, Field

from osler.answer.verify import BearingSentence, Verdict, weigh_claim
from osler.serve import api, documents, schemas
from osler.serve.state import ServerState
from osler.serve.tooling import At, PassageId, read_only_hints, report_refusals
from osler.text import language_of
from osler.types import Hit

_SEARCHED = 20
"""Passages that a claim is held against where none are named."""
_QUOTES = 10


class ClaimSentence(BaseModel):
    """A sentence that speaks for the claim, or against it."""

    supports: bool
    why: str
    """The words of content that both share, or the two that differ."""
    quoted: schemas.QuotedView


class ClaimVerdict(BaseModel):
    claim: str
    verdict: Verdict
    """"not stated": nothing was found that says it in these words, nor denies it."""
    quotes: list[ClaimSentence]
    passages: int
    """Held against the claim."""
    rule: str = (
        "By shared words, amounts, directions and negations; nothing is inferred. A paraphrase is"
        " not seen: read the passages before concluding from `not stated`."
    )


def add_claim_tool(mcp: MCPServer[Any], at: At) -> None:
    @mcp.tool(annotations=read_only_hints("Verify a claim"))
    @report_refusals
    async def verify_claim(
        context: Context[Any, Any],
        claim: Annotated[schemas.Words, Field(min_length=1, max_length=2_000)],
        passage_ids: Annotated[list[PassageId], Field(max_length=50)] = [],  # noqa: B006
    ) -> ClaimVerdict:
        """Whether passages state a claim, say otherwise, or neither, with their quotes. Without
        `passage_ids` the claim itself is searched for."""
        site, _ = at(context)
        asked = schemas.SearchRequest(query=claim, k=_SEARCHED)
        hits = await (
            _find_passages(site, passage_ids) if passage_ids else api.find_hits(site, asked)
        )
        found = await asyncio.to_thread(weigh_claim, claim, hits, language_of(claim))
        quotes = [_sentence_view(one) for one in found.said[:_QUOTES]]
        return ClaimVerdict(claim=claim, verdict=found.verdict, quotes=quotes, passages=len(hits))


async def _find_passages(site: ServerState, ids: Sequence[str]) -> list[Hit]:
    """Raises `UnknownPassage`."""
    found = [await api.passage_context(site, id) for id in dict.fromkeys(ids)]
    passages = [passage for (passage,), _ in found]
    return [Hit(passage, 0.0, rank, "", "named") for rank, passage in enumerate(passages, 1)]


def _sentence_view(said: BearingSentence) -> ClaimSentence:
    return ClaimSentence(
        supports=said.supports, why=said.why, quoted=documents.quoted_view(said.evidence)
    )
