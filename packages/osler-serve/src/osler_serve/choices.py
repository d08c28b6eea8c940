"""Lays a request's choices over the server's settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from osler.errors import describe_invalid
from osler.methods.omni.dossier import SavedPlan
from osler.methods.omni.plan import Query, SourcePlan, render_source_plan
from osler.settings import Settings
from osler_serve.keys import Caller
from osler_serve.problems import RefusedRequest
from osler_serve.replies import SourceQuery
from osler_serve.schemas import Filters, PlanRequest, RunLimits, SearchRequest


def run_settings(
    settings: Settings,
    *,
    strategy: str | None = None,
    planner: str | None = None,
    sources: Sequence[str] = (),
    k: int | None = None,
    seed: int | None = None,
    temperature: float | None = None,
    max_tokens: int | None = None,
    limits: RunLimits | None = None,
    **filters: Any,
) -> Settings:
    """The settings of one run; `filters`: since, until, kinds, as_of, where they are given. Raises
    `RefusedRequest` (422) for what the settings refuse."""
    given = (strategy, planner, k, seed, temperature, max_tokens, filters or None)
    if given == (None,) * len(given) and not sources and limits in (None, RunLimits()):
        return settings
    tree = settings.model_dump()
    if strategy is not None and strategy != settings.strategy.kind:
        tree["strategy"] = {"kind": strategy}
    if planner is not None:
        tree["strategy"]["planner"] = planner
    if k is not None:
        if "k" not in type(settings.strategy).model_fields and strategy is None:
            raise RefusedRequest(
                422, "bad_choice", f"{settings.strategy.kind} searches nothing: no k"
            )
        tree["strategy"]["k"] = k
    if sources:
        tree["kb"]["sources"] = tuple(sources)
    tree["retrieve"] |= filters
    for name, value in (("seed", seed), ("temperature", temperature), ("max_tokens", max_tokens)):
        if value is not None:
            tree["sampling"][name] = value
    if limits is not None:
        tree["budget"] = _narrow_budget(tree["budget"], limits)
    return _validate_settings(tree)


_CHOICES = {"strategy", "planner", "sources", "k", "seed", "limits"}


def caller_settings(
    settings: Settings, caller: Caller, asked: PlanRequest | Filters | None = None, **given: Any
) -> Settings:
    """The settings of one run as the caller's scope has them: what was asked for, and `given`, as
    for `run_settings`, before it.

    Raises `RefusedRequest`: 422 as `run_settings`, 403 for a strategy outside the scope.
    """
    names = _CHOICES & type(asked).model_fields.keys() if asked else ()
    filters = asked.choose() if isinstance(asked, Filters) else {}
    wanted = {name: getattr(asked, name) for name in names} | filters | given
    chosen = run_settings(caller.scope.narrow_settings(settings), **wanted)
    if not caller.scope.allows_strategy(kind := chosen.strategy.kind):
        said = f"this key may not run {kind}"
        raise RefusedRequest(403, "not_in_scope", said, fix="choose another strategy")
    return chosen


def search_settings(settings: Settings, asked: SearchRequest) -> Settings:
    """The settings of one search."""
    wanted = asked.model_dump(include={"since", "until", "as_of", "trust", "retracted"})
    wanted |= {"languages": tuple(asked.languages), "kinds": tuple(asked.kinds)}
    if all(getattr(settings.retrieve, name) == value for name, value in wanted.items()):
        return settings
    tree = settings.model_dump()
    tree["retrieve"] |= wanted
    return _validate_settings(tree)


def plan_from_request(queries: Sequence[SourceQuery], offered: Sequence[str]) -> SavedPlan:
    """The plan that a request brings. What its queries find is searched when it is run: passages
    come from the knowledge base alone. Raises `RefusedRequest` (422)."""
    return SavedPlan(
        render_source_plan(
            SourcePlan.of(_planned_query(each, offered) for each in queries), offered
        ),
        tuple(offered),
    )


def _planned_query(given: SourceQuery, offered: Sequence[str]) -> Query:
    if given.source not in offered:
        fix = f"choose from {', '.join(offered)}"
        raise RefusedRequest(
            422, "bad_plan", f"the plan queries {given.source}, which is not searched", fix=fix
        )
    try:
        return Query.read_wire(given.source, given.query)
    except ValueError as error:
        said = f"the plan asks {given.source} nothing that can be searched"
        raise RefusedRequest(
            422, "bad_plan", said, fix="say it in words, or leave it out"
        ) from error


def _narrow_budget(budget: dict[str, Any], limits: RunLimits) -> dict[str, Any]:
    wanted = limits.model_dump()
    narrowed = {}
    for name, allowed in budget.items():
        given = [value for value in (allowed, wanted[name]) if value is not None]
        narrowed[name] = min(given) if given else None
    return narrowed


def _validate_settings(tree: dict[str, Any]) -> Settings:
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        raise RefusedRequest(422, "bad_choice", describe_invalid(error)) from error
