"""Follow-up questions as they are searched for, by every interface."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from osler.answer.follow_up import Standalone, rewrite_follow_up
from osler.build import graphs
from osler.settings import Settings


async def make_standalone(settings: Settings, question: str, earlier: Sequence[str]) -> Standalone:
    """The question as it is searched for, by the packaged names and those of the concept graph.

    `earlier`: the questions before it as they were searched for.
    """
    tables = await asyncio.to_thread(graphs.graph_names, settings)
    return await asyncio.to_thread(rewrite_follow_up, question, earlier, tables)


async def standalone_of(settings: Settings, questions: Sequence[str]) -> Standalone:
    """The last of a conversation's questions, each of which may rest on those before it."""
    tables = await asyncio.to_thread(graphs.graph_names, settings)

    def rewrite_all() -> Standalone:
        asked = list[str]()
        for question in questions[:-1]:
            asked.append(rewrite_follow_up(question, asked, tables).text)
        return rewrite_follow_up(questions[-1], asked, tables)

    return await asyncio.to_thread(rewrite_all)
