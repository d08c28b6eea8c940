"""Predicts, for each strategy, whether the configured models can run it.

What a method of one reading, or of another package, needs is among its facts; of the papers' own
it is said here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from osler.build.tc_rag import metric_of
from osler.doctor.abilities import Ability
from osler.settings import MethodFacts, Role
from osler.settings.plugins import (
    ATTENTION,
    CHAINS,
    CHECKPOINT,
    LIKELIEST,
    LIKELY,
    methods_by_kind,
)

Status = Literal["full", "degraded", "refused"]
# Methods that look nothing up, so that there is nothing to quote.
_ALONE = frozenset({"direct", "cot", "r1-gen"})
_FREE = "actions are free text, asked for again when malformed"


@dataclass(frozen=True, slots=True)
class StrategyVerdict:
    """Whether a strategy runs fully, degraded or not at all with these models."""

    strategy: str
    needs: str
    status: Status
    why: str = ""


@dataclass(frozen=True, slots=True)
class _RolePlayers:
    """The models that would play the roles."""

    planner: Ability
    summariser: Ability
    reader: Ability
    graph: bool
    lettered: bool
    """Whether an option is chosen by its letter, which needs no scores of texts."""


def judge_strategies(
    found: Sequence[Ability],
    *,
    graph: bool = True,
    options: Literal["texts", "letters", "written"] = "texts",
) -> tuple[StrategyVerdict, ...]:
    """Each strategy with the models that would play its roles.

    `graph`: whether there is a concept graph. `options`: how one is chosen.
    """
    by_role: Mapping[Role, Ability] = {role: one for one in found for role in one.roles}
    roles = (by_role["planner"], by_role["summariser"], by_role["reader"])
    cast = _RolePlayers(*roles, graph, options != "texts")
    own = (
        *(_judge_tc_rag(metric, cast) for metric in _METRICS),
        _judge_thinker(cast),
        _judge_omni(cast),
    )
    own = (*own, _judge_unified(cast), _judge_auto(cast))
    return (*own, *(_judge_baseline(method, cast) for method in methods_by_kind().values()))


_Metric = Literal["auto", "cppl", "uct", "off"]
_METRICS: tuple[_Metric, ...] = ("auto", "cppl", "uct", "off")


def _make_verdict(name: str, needs: str, refused: str, degraded: Sequence[str]) -> StrategyVerdict:
    if refused:
        return StrategyVerdict(name, needs, "refused", refused)
    reasons = "; ".join(filter(None, degraded))
    return StrategyVerdict(name, needs, "degraded" if reasons else "full", reasons)


def _judge_baseline(method: MethodFacts, cast: _RolePlayers) -> StrategyVerdict:
    reader = cast.reader
    refused, worse = _unreachable_role("reader", reader), [_quoted_answers(reader)]
    if method.kind in _ALONE:
        choosing = "names an option's letter" if cast.lettered else "scores options"
        needs, worse = f"a reader that words answers, or {choosing}", [_without_wording(reader)]
        refused = refused or _without_words(cast)
        worse.append(_free_letters(cast))
    else:
        needs = f"{method.needs}; a reader that words answers, or scores quotes"
    if method.needs in _REFUSED:
        refused = refused or _REFUSED[method.needs](cast)
    if method.needs in _DEGRADED:
        worse.append(_DEGRADED[method.needs](cast))
    return _make_verdict(method.kind, needs, refused, worse)


_REFUSED: Mapping[str, Callable[[_RolePlayers], str]] = {
    ATTENTION: lambda cast: (
        "" if cast.reader.attends else f"{cast.reader.name} hides its attention"
    ),
    CHAINS: lambda cast: "" if cast.graph else "there is no concept graph",
    CHECKPOINT: lambda cast: "" if cast.reader.scores else f"{cast.reader.name} scores no texts",
}
# What a need comes to where it is not met; text alone is always there.
_DEGRADED: Mapping[str, Callable[[_RolePlayers], str]] = {
    LIKELY: lambda cast: (
        "" if cast.reader.logprobs == "exact" else "every sentence counts as unsure"
    ),
    LIKELIEST: lambda cast: "" if cast.reader.likeliest else "nothing triggers a search",
    # Only a question tells: what a model's tokens are is not asked here.
    CHECKPOINT: lambda cast: "an error unless the model is a checkpoint of Self-RAG's",
}


def _without_words(cast: _RolePlayers) -> str:
    if cast.reader.writes or cast.reader.scores or cast.lettered:
        return ""
    return "the reader may not word medicine and scores no options"


def _free_letters(cast: _RolePlayers) -> str:
    free = cast.lettered and not (cast.reader.writes or cast.reader.constrains)
    return _FREE.replace("actions", "letters") if free else ""


def _without_wording(reader: Ability) -> str:
    return "" if reader.writes else "open questions are refused: the reader may not word medicine"


def _quoted_answers(reader: Ability) -> str:
    if reader.writes:
        return ""
    if reader.scores:
        return "answers are quoted, not written"
    return "answers are quoted by relevance alone, and no option is chosen"


def _judge_tc_rag(metric: _Metric, cast: _RolePlayers) -> StrategyVerdict:
    needs = {
        "auto": "a planner; cppl if it scores, else uct, else nothing is monitored",
        "cppl": "a planner that scores given texts",
        "uct": "a planner with exact log-probabilities; that scores, if answers are quoted",
        "off": "a planner; nothing is monitored",
    }[metric]
    planner, reader = cast.planner, cast.reader
    down = _unreachable_role("planner", planner) or _unreachable_role("summariser", cast.summariser)
    refused = (
        down or _unreachable_role("reader", reader) or _missing_metric(metric, planner, reader)
    )
    free = "" if planner.constrains else _FREE
    worse = (_unmonitored(metric, cast), _quoted_answers(reader), free)
    return _make_verdict(f"tc-rag, {metric}", needs, refused, worse)


def _unmonitored(metric: _Metric, cast: _RolePlayers) -> str:
    """What "auto" comes to, where that is no state value."""
    scores, tells = cast.planner.scores, cast.planner.logprobs == "exact"
    found = metric_of(scores=scores, tells=tells, composed=not cast.reader.writes)
    return "no state value: auto is off" if metric == "auto" and found == "off" else ""


def _missing_metric(metric: str, planner: Ability, reader: Ability) -> str:
    if metric == "cppl" and not planner.scores:
        return f"{planner.name} does not score given texts"
    if metric == "uct" and not planner.scores and planner.logprobs == "none":
        return f"{planner.name} tells no log-probabilities"
    if metric == "uct" and not planner.scores and not reader.writes:
        return f"{planner.name} does not score the quotes that an answer is made of"
    return ""


def _judge_thinker(cast: _RolePlayers) -> StrategyVerdict:
    needs = "a planner that words answers; a reader with log-probabilities; a concept graph"
    planner, reader = cast.planner, cast.reader
    reasons = (
        _quoted_answers(reader),
        "" if planner.writes else "plans are of at most two lookups",
        "" if reader.logprobs == "exact" else "nothing counts as known: all is looked up",
        "" if planner.constrains and reader.constrains else _FREE.replace("actions", "steps"),
        "" if cast.graph else "forms are looked up in words: there is no concept graph",
    )
    refused = _unreachable_role("planner", planner) or _unreachable_role("reader", reader)
    return _make_verdict("kag-thinker", needs, refused, reasons)


def _judge_omni(cast: _RolePlayers) -> StrategyVerdict:
    needs = "a planner that words answers; a reader"
    planner, reader = cast.planner, cast.reader
    own = "" if planner.writes else "the question itself is the plan"
    refused = _unreachable_role("planner", planner) or _unreachable_role("reader", reader)
    return _make_verdict("omni-rag", needs, refused, (_quoted_answers(reader), own))


def _judge_unified(cast: _RolePlayers) -> StrategyVerdict:
    """The unified system has what its parts have, and lacks what they lack."""
    needs = "what tc-rag (auto), kag-thinker and omni-rag need"
    parts = (_judge_tc_rag("auto", cast), _judge_thinker(cast), _judge_omni(cast))
    refused = next((part.why for part in parts if part.status == "refused"), "")
    silent = "" if cast.reader.scores else "the boundary has no state value for its third signal"
    reasons = [part.why for part in parts if part.status == "degraded"]
    told = dict.fromkeys(why for reason in reasons for why in reason.split("; "))
    return _make_verdict("unified", needs, refused, (*told, silent))


def _judge_auto(cast: _RolePlayers) -> StrategyVerdict:
    needs = "a concept graph for questions of several steps; a reader"
    reasons = (
        _quoted_answers(cast.reader),
        "" if cast.graph else "steps are read from texts alone: there is no concept graph",
    )
    return _make_verdict("auto", needs, _unreachable_role("reader", cast.reader), reasons)


def _unreachable_role(role: str, ability: Ability) -> str:
    return f"the {role} cannot be asked" if ability.error else ""
