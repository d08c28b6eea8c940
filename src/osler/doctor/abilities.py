"""What each configured model can do, found out by asking it, and what each strategy needs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from osler import wiring
from osler.config import ROLES, Role, Settings
from osler.errors import ModelError, OslerError
from osler.llm.base import Completion, LanguageModel, Likelihood, Message, Sampling
from osler.llm.grammar import Grammar, lit

_ASKED = [Message("user", "Say yes.")]
_WORD = "osler"
"""A word that no model says by itself."""


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


@dataclass(frozen=True, slots=True)
class Verdict:
    """What would become of a strategy with these models."""

    strategy: str
    needs: str
    status: Literal["full", "degraded", "refused"]
    why: str = ""


async def abilities(settings: Settings) -> tuple[Ability, ...]:
    """One for each different model, in the order of the roles; an absent one says why."""
    return tuple([await _asked(settings, roles) for roles in _shared(settings)])


def _shared(settings: Settings) -> Iterable[tuple[Role, ...]]:
    """Roles that one model plays, together."""
    groups: dict[object, list[Role]] = {}
    for role in ROLES:
        groups.setdefault(settings.role(role), []).append(role)
    return map(tuple, groups.values())


async def _asked(settings: Settings, roles: tuple[Role, ...]) -> Ability:
    found = Ability(roles, settings.role(roles[0]).kind, writes=wiring.writes(settings, roles[0]))
    try:
        chosen = settings.role(roles[0])
        section = "model" if chosen == settings.model else f"roles.{roles[0]}"
        ready = await wiring.language_model(chosen, section)
        return await _seen(ready, replace(found, name=ready.model.name))
    except OslerError as error:
        return replace(found, error=error.message, fix=error.fix)


async def _seen(ready: wiring.Ready, found: Ability) -> Ability:
    model = ready.model
    began = time.perf_counter()
    reply = await model.complete(_ASKED, Sampling(temperature=0.0, max_tokens=8, top=5))
    seconds = time.perf_counter() - began
    held = ready.constrains and await _held(model)
    context = getattr(model, "context", None)
    return replace(
        found,
        completes=True,
        seconds=round(seconds, 3),
        logprobs="exact" if _tiled(reply) else "none",
        likeliest=max((len(token.top) for token in reply.tokens), default=0),
        scores=await _scores(model),
        constrains=held,
        # What a server was seen to hold to when it was connected to, grammars aside.
        formats=ready.formats if held or not ready.constrains else (),
        context=context if isinstance(context, int) else None,
    )


def _tiled(reply: Completion) -> bool:
    """Whether the tokens that were told are the whole reply."""
    told = {i for token in reply.tokens for i in range(token.start, token.end)}
    return bool(reply.text) and told == set(range(len(reply.text)))


async def _scores(model: LanguageModel) -> bool:
    if not isinstance(model, Likelihood):
        return False
    scored = await model.score("The heart pumps", " blood")
    return any(token.logprob < 0 for token in scored.tokens)


async def _held(model: LanguageModel) -> bool:
    held = Sampling(temperature=0.0, max_tokens=8, top=0, grammar=Grammar("word", lit(_WORD)))
    try:
        return (await model.complete(_ASKED, held)).text == _WORD
    except ModelError:
        return False


def verdicts(
    found: Sequence[Ability], options: Literal["texts", "letters", "written"] = "texts"
) -> tuple[Verdict, ...]:
    """Each strategy with the models that would play its roles; `options`: how one is chosen."""
    by_role = {role: ability for ability in found for role in ability.roles}
    planner, reader = by_role["planner"], by_role["reader"]
    return (
        _alone("direct", reader, lettered=options != "texts"),
        _alone("cot", reader, lettered=options != "texts"),
        _reading(reader),
        *(_steered(metric, planner, by_role["summariser"], reader) for metric in _METRICS),
    )


_METRICS: tuple[Literal["cppl", "uct", "off"], ...] = ("cppl", "uct", "off")


def _alone(name: str, reader: Ability, *, lettered: bool) -> Verdict:
    needs = "a reader that words answers, or scores options"
    if lettered:
        needs = "a reader that words answers, or names an option's letter"
    if down := _down("reader", reader):
        return Verdict(name, needs, "refused", down)
    if reader.writes:
        return Verdict(name, needs, "full")
    if reader.scores or lettered:
        why = "open questions are refused: the reader may not word medicine"
        if lettered and not reader.constrains:
            why += "; letters are free text, asked for again when malformed"
        return Verdict(name, needs, "degraded", why)
    return Verdict(name, needs, "refused", "the reader may not word medicine and scores no options")


def _reading(reader: Ability) -> Verdict:
    needs = "a reader that words answers, or scores quotes"
    if down := _down("reader", reader):
        return Verdict("rag", needs, "refused", down)
    return Verdict("rag", needs, *_answering(reader))


def _answering(reader: Ability) -> tuple[Literal["full", "degraded"], str]:
    if reader.writes:
        return "full", ""
    if reader.scores:
        return "degraded", "answers are quoted, not written"
    return "degraded", "answers are quoted by relevance alone, and no option is chosen"


def _steered(
    metric: Literal["cppl", "uct", "off"], planner: Ability, summariser: Ability, reader: Ability
) -> Verdict:
    name = f"tc-rag, {metric}"
    needs = {
        "cppl": "a planner that scores given texts",
        "uct": "a planner with exact log-probabilities; that scores, if answers are quoted",
        "off": "a planner; nothing is monitored",
    }[metric]
    down = _down("planner", planner) or _down("summariser", summariser) or _down("reader", reader)
    if down or (down := _unmonitored(metric, planner, reader)):
        return Verdict(name, needs, "refused", down)
    status, why = _answering(reader)
    free = "actions are free text, asked for again when malformed"
    if not planner.constrains:
        return Verdict(name, needs, "degraded", "; ".join(filter(None, (why, free))))
    return Verdict(name, needs, status, why)


def _unmonitored(metric: str, planner: Ability, reader: Ability) -> str:
    if metric == "cppl" and not planner.scores:
        return f"{planner.name} does not score given texts"
    if metric == "uct" and not planner.scores and planner.logprobs == "none":
        return f"{planner.name} tells no log-probabilities"
    if metric == "uct" and not planner.scores and not reader.writes:
        return f"{planner.name} does not score the quotes that an answer is made of"
    return ""


def _down(role: str, ability: Ability) -> str:
    return f"the {role} cannot be asked" if ability.error else ""
