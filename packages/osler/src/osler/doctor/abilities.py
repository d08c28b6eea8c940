"""Abilities of each configured model, measured by asking it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from osler.build.composers import may_write
from osler.build.models import LoadedModel, load_model
from osler.errors import ModelError, OslerError
from osler.llm.core.base import (
    Attentive,
    Completion,
    LanguageModel,
    Likelihood,
    Message,
    Sampling,
)
from osler.llm.core.grammar import Grammar, lit
from osler.settings import ROLES, Role, Settings

_ASKED = [Message("user", "Say yes.")]
# A word that no model says by itself.
_WORD = "osler"


@dataclass(frozen=True, slots=True)
class Ability:
    """A model and what it was seen to do."""

    roles: tuple[Role, ...]
    """Those that it plays."""
    kind: str
    name: str = ""
    completes: bool = False
    logprobs: Literal["exact", "none"] = "none"
    """"exact": of each token that it wrote, whether or not that is among the likeliest."""
    likeliest: int = 0
    """How many of the likeliest tokens it told of a place, of five that were asked for."""
    scores: bool = False
    """Whether it says how likely a given text is."""
    attends: bool = False
    """Whether it shows its attention."""
    constrains: bool = False
    """Whether a grammar holds its replies."""
    formats: tuple[str, ...] = ()
    """What its replies can be held to, as engines call it."""
    embeds: bool = False
    writes: bool = False
    """Whether the settings let it word medicine."""
    context: int | None = None
    """Tokens; `None` where the server keeps that to itself."""
    seconds: float = 0.0
    """Of one short call."""
    error: str = ""
    """Why it cannot be asked."""
    fix: str = ""


async def probe_models(settings: Settings) -> tuple[Ability, ...]:
    """One for each different model, in the order of the roles; an absent one says why."""
    return tuple([await _probe_model(settings, roles) for roles in _group_roles(settings)])


def _group_roles(settings: Settings) -> Iterable[tuple[Role, ...]]:
    """Roles that one model plays, together."""
    groups: dict[object, list[Role]] = {}
    for role in ROLES:
        groups.setdefault(settings.model_for(role), []).append(role)
    return map(tuple, groups.values())


async def _probe_model(settings: Settings, roles: tuple[Role, ...]) -> Ability:
    chosen = settings.model_for(roles[0])
    ability = Ability(roles, chosen.kind, writes=may_write(settings, roles[0]))
    section = "model" if chosen == settings.model else f"roles.{roles[0]}"
    try:
        ready = await load_model(chosen, section)
        return await _measure_ability(ready, replace(ability, name=ready.model.name))
    except OslerError as error:
        return replace(ability, error=error.message, fix=error.fix)


async def _measure_ability(ready: LoadedModel, ability: Ability) -> Ability:
    model = ready.model
    began = time.perf_counter()
    reply = await model.complete(_ASKED, Sampling(temperature=0.0, max_tokens=8, top=5))
    seconds = time.perf_counter() - began
    # Asked, not believed: a server may ignore the parameter.
    held = ready.constrains and await _obeys_grammar(model)
    context = getattr(model, "context", None)
    return replace(
        ability,
        completes=True,
        seconds=round(seconds, 3),
        logprobs="exact" if _covers_reply(reply) else "none",
        likeliest=max((len(token.top) for token in reply.tokens), default=0),
        scores=await _can_score(model),
        attends=await _can_attend(model),
        constrains=held,
        # What a server was seen to hold to when it was connected to, grammars aside.
        formats=ready.formats if held or not ready.constrains else (),
        context=context if isinstance(context, int) else None,
    )


def _covers_reply(reply: Completion) -> bool:
    """Whether the tokens that were told are the whole reply."""
    covered = {i for token in reply.tokens for i in range(token.start, token.end)}
    return bool(reply.text) and covered == set(range(len(reply.text)))


async def _can_score(model: LanguageModel) -> bool:
    if not isinstance(model, Likelihood):
        return False
    scored = await model.score("The heart pumps", " blood")
    return any(token.logprob < 0 for token in scored.tokens)


async def _can_attend(model: LanguageModel) -> bool:
    if not isinstance(model, Attentive):
        return False
    seen = await model.attend("The heart pumps", " blood")
    return len(seen.weights) == len(seen.tokens) > 0


async def _obeys_grammar(model: LanguageModel) -> bool:
    held = Sampling(temperature=0.0, max_tokens=8, top=0, grammar=Grammar("word", lit(_WORD)))
    try:
        return (await model.complete(_ASKED, held)).text == _WORD
    except ModelError:
        return False
