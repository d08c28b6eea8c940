"""Follow-up questions as they are searched for, at every door: by rule, or by a model that may."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from osler.answer.follow_up import Standalone, rewrite_follow_up
from osler.answer.follow_up_model import reword_follow_up
from osler.app.config import Settings
from osler.app.danger import danger_notice
from osler.app.wiring import graphs
from osler.app.wiring.composers import may_write
from osler.app.wiring.resource_cache import ResourceCache
from osler.errors import ModelError
from osler.questions import parse_question


async def make_standalone(
    settings: Settings, question: str, earlier: Sequence[str], cache: ResourceCache
) -> Standalone:
    """The question as it is searched for, by the packaged names and those of the concept graph.

    `earlier`: the questions before it as they were searched for. `cache`: holds the model of
    `retrieve.follow_ups = "model"`; where it cannot be loaded, the rule's wording stays.
    """
    tables = await asyncio.to_thread(graphs.graph_names, settings)
    alone = await asyncio.to_thread(rewrite_follow_up, question, earlier, tables)
    if not (alone.by and rewords_by_model(settings)):
        return alone
    if danger_notice(settings, parse_question(question), earlier):
        return alone  # whoever is in danger waits for no wording
    try:
        model = await cache.load_model(settings, "reader")
    except ModelError:
        return alone
    return await reword_follow_up(model, question, earlier, tables)


def rewords_by_model(settings: Settings) -> bool:
    """Whether follow-ups are worded by the reader's model: it is asked for, and may word."""
    return settings.retrieve.follow_ups == "model" and may_write(settings, "reader")


async def standalone_of(
    settings: Settings, questions: Sequence[str], cache: ResourceCache
) -> Standalone:
    """The last of a conversation's questions, each of which may rest on those before it: the
    earlier ones by rule."""
    tables = await asyncio.to_thread(graphs.graph_names, settings)

    def rewrite_earlier() -> list[str]:
        asked = list[str]()
        for question in questions[:-1]:
            asked.append(rewrite_follow_up(question, asked, tables).text)
        return asked

    asked = await asyncio.to_thread(rewrite_earlier)
    return await make_standalone(settings, questions[-1], asked, cache)
