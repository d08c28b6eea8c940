"""Requests of the native API, which forbid unknown fields, and its form of an error."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from osler.methods.omni.plan import PlannerName
from osler.questions import LIMIT
from osler.reports import DangerView, SourceName
from osler.settings import STRATEGIES
from osler.settings.fields import PartialDate
from osler_serve.replies import SourceQuery, Words


def _check_strategy(name: str) -> str:
    if name not in STRATEGIES:
        raise ValueError(f"choose from {', '.join(STRATEGIES)}")
    return name


StrategyName = Annotated[
    str,
    AfterValidator(_check_strategy),
    Field(json_schema_extra={"enum": [*STRATEGIES]}),
]
PlannerChoice = Literal["auto", PlannerName]


class RequestModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RunLimits(RequestModel):
    """Bounds of one run; they can only narrow what the server allows."""

    calls: Annotated[int, Field(ge=1, le=1_000_000_000, strict=True)] | None = None
    tokens: Annotated[int, Field(ge=1, le=1_000_000_000, strict=True)] | None = None
    searches: Annotated[int, Field(ge=1, le=1_000_000_000, strict=True)] | None = None
    seconds: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] | None = None
    money: Annotated[float, Field(gt=0, le=1_000_000_000, allow_inf_nan=False)] | None = None
    """In the currency of the server's prices."""


SourceNames = Annotated[list[SourceName], Field(max_length=32)]
Kinds = Annotated[list[Annotated[Words, Field(min_length=1, max_length=200)]], Field(max_length=32)]


class Filters(RequestModel):
    """Which texts are searched. Without a date or a kind that is asked for, a text is left out."""

    sources: SourceNames = []
    since: PartialDate = None
    """The first year, month or day, as 2024, 2024-03 or 2024-03-31."""
    until: PartialDate = None
    """The last one."""
    kinds: Kinds = []
    """Publication types, any of them, as "rct", "guideline" or "Case Reports"."""
    as_of: PartialDate = None
    """Only what was known on this date."""

    def choose(self) -> dict[str, Any]:
        """What differs from the server's settings, for `choices.run_settings`."""
        return {name: value for name in Filters.model_fields if (value := getattr(self, name))}

    @property
    def is_given(self) -> bool:
        """Whether the request says anything of what is searched, be it "all"."""
        return bool(self.model_fields_set & Filters.model_fields.keys())


class _QuestionRequest(RequestModel):
    question: Annotated[Words, Field(min_length=1, max_length=LIMIT)]
    options: Annotated[
        list[Annotated[Words, Field(min_length=1, max_length=1_000)]], Field(max_length=26)
    ] = []
    language: Literal["en", "zh"] | None = None


class PlanRequest(_QuestionRequest):
    """A question of which only the source plan is wanted."""

    planner: PlannerChoice | None = None
    sources: SourceNames = []
    seed: Annotated[int, Field(ge=0, le=2**32 - 1, strict=True)] | None = None
    limits: RunLimits = RunLimits()


class RunRequest(_QuestionRequest, Filters):
    """A question, and how it is to be solved where that differs from the server's settings."""

    strategy: StrategyName | None = None
    k: Annotated[int, Field(ge=1, le=200, strict=True)] | None = None
    seed: Annotated[int, Field(ge=0, le=2**32 - 1, strict=True)] | None = None
    limits: RunLimits = RunLimits()
    plan: Annotated[list[SourceQuery], Field(max_length=100)] | None = None
    """A source plan, as `POST /plan` gives it and whoever reads it edits it: omni-rag runs it,
    and nothing else is asked. Empty = no source is needed; absent = the strategy decides."""


class SearchRequest(Filters):
    query: Annotated[Words, Field(min_length=1, max_length=2_000)]
    k: Annotated[int, Field(ge=1, le=100, strict=True)] = 10
    languages: Annotated[list[Literal["en", "zh"]], Field(max_length=2)] = []
    trust: Annotated[int, Field(ge=1, le=5, strict=True)] = 1
    retracted: bool = False


class Problem(BaseModel):
    """Problem details (RFC 9457)."""

    danger: DangerView | None = None
    """Notice for a question about danger that is rejected for now."""
    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str
    fix: str | None = None
    retry_after: int | None = None


PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": description,
        "content": {
            "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
        },
    }
    for status, description in (
        (400, "It cannot be read."),
        (401, "A key is needed."),
        (403, "It comes from another site."),
        (404, "There is no such thing."),
        (408, "It was sent too slowly."),
        (409, "It is of another state."),
        (413, "It is too large."),
        (415, "It is not JSON."),
        (421, "It was sent to another server's name."),
        (422, "It is not valid."),
        (429, "Too many; see Retry-After."),
        (503, "Not now; see Retry-After."),
    )
}
