"""Cost estimates of answers, before anything is asked.

A dry run goes to the first call of a model, without making it: what needs none is known to cost
nothing. Else former runs of the strategy say the range; else the first prompt and
the most calls that are known of the strategy are all that can be said. Of many questions some are
run dry, and stand for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import islice
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any

from osler.build import roles_of, run_budget
from osler.build.live import parts_around
from osler.build.models import LoadedModel
from osler.build.strategies import build_solver
from osler.errors import BadRun, CapabilityMissing
from osler.extract import estimate_tokens
from osler.llm.core.base import Completion, Message, Sampling, Scored
from osler.runs.files import find_solution, read_record, run_folders
from osler.settings import Settings
from osler.settings.plugins import methods_by_kind
from osler.trace import BudgetExceeded, Run
from osler.types import Question, Usage

LATEST, SEEN = 50, 500
"""Former runs that are counted, and how many are looked through for them."""
DRY_RUNS = 50
"""Questions of many that are run dry: each is searched for, which takes a second or so."""


@dataclass(frozen=True, slots=True)
class CostRange:
    low: float
    high: float | None
    """`None` where no upper bound is known."""
    usual: float | None = None
    """Median of the former runs."""

    def __add__(self, other: CostRange) -> CostRange:
        high, usual = _add_known(self.high, other.high), _add_known(self.usual, other.usual)
        return CostRange(self.low + other.low, high, usual)

    def scale(self, times: float) -> CostRange:
        """The range of so many, rounded where the values are counts."""
        low, high, usual = (
            None if value is None else _keep_count(value, value * times)
            for value in (self.low, self.high, self.usual)
        )
        return CostRange(low or 0, high, usual)


def _add_known(one: Any, other: Any) -> Any:
    """The sum of two values or ranges; `None` where one of them is not known."""
    return None if one is None or other is None else one + other


def _keep_count(value: float, product: float) -> float:
    return round(product) if isinstance(value, int) else product


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """Ranges of all answers together; `None` is what is not known."""

    strategy: str
    basis: str
    runs: int = 0
    """Former runs that it rests on."""
    calls: CostRange | None = None
    prompt_tokens: CostRange | None = None
    cached_tokens: CostRange | None = None
    completion_tokens: CostRange | None = None
    seconds: CostRange | None = None
    money: CostRange | None = None
    currency: str = ""
    questions: int = 1


RANGES = ("calls", "prompt_tokens", "cached_tokens", "completion_tokens", "seconds", "money")
"""Fields of a `CostEstimate` that are ranges."""


@dataclass
class PromptMeter:
    """In the place of a model: notes the size of the first prompt, and ends the run."""

    name: str = "dry-run"
    first: int | None = None
    """Tokens of the first prompt, by its characters; `None` where nothing was asked."""
    longest: int = 0
    """Tokens of the first reply, at most."""
    spared: bool = False
    """Whether the run came to its end without a call."""

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        self._note([one.content for one in messages], sampling.max_tokens)
        raise BudgetExceeded("a dry run makes no call")

    async def score(self, context: Sequence[Message] | str, text: str) -> Scored:
        before = [context] if isinstance(context, str) else [one.content for one in context]
        self._note([*before, text], 0)
        raise BudgetExceeded("a dry run makes no call")

    def _note(self, texts: Iterable[str], longest: int) -> None:
        if self.first is None:
            self.first, self.longest = sum(map(estimate_tokens, texts)), longest


async def estimate_cost(
    settings: Settings,
    questions: Sequence[Question],
    *,
    opens: Callable[[Path], bool] = lambda _: True,
) -> CostEstimate:
    """The estimate for all questions, of which there is one at least; `opens`: whether a former run
    may be looked at."""
    # Evenly, since a file is often sorted by what it asks.
    chosen = questions[:: ceil(len(questions) / DRY_RUNS)]
    meters = await _run_dry(settings, chosen)
    asking = [meter for meter in meters if not meter.spared]
    each = _estimate_asking(settings, asking, opens)
    whole = reduce(_combine, each) if each else _nothing_asked(settings, len(questions))
    times = len(questions) / len(chosen)
    if times > 1:
        scaled: dict[str, Any] = {
            name: found.scale(times) for name in RANGES if (found := getattr(whole, name))
        }
        whole = replace(whole, **scaled)
    basis = _tell_share(whole.basis, len(asking), len(chosen), len(questions))
    return replace(whole, basis=basis, questions=len(questions))


def _estimate_asking(
    settings: Settings, asking: Sequence[PromptMeter], opens: Callable[[Path], bool]
) -> list[CostEstimate]:
    """An estimate of each question that needs a model."""
    for basis, seen in _former_runs(settings, opens) if asking else ():
        if seen:
            return [_estimate_from_runs(settings, basis, seen)] * len(asking)
    return [_estimate_from_prompt(settings, meter) for meter in asking]


def _nothing_asked(settings: Settings, many: int) -> CostEstimate:
    none = CostRange(0, 0, 0)
    asked = "this question" if many == 1 else "these questions"
    basis = f"a dry run of {asked} needed no model"
    return CostEstimate(settings.strategy.kind, basis, 0, none, none, none, none)


def _combine(one: CostEstimate, other: CostEstimate) -> CostEstimate:
    """Both together; what is not known of one of them is not known."""
    sums = {name: _add_known(getattr(one, name), getattr(other, name)) for name in RANGES}
    return replace(one, **sums)


def combine_estimates(found: Sequence[CostEstimate]) -> CostEstimate | None:
    """All together, under no strategy's name; `None` if absent."""
    # What asks no model costs nothing, also where no price is known of it.
    asking = [one for one in found if one.calls is None or one.calls.high != 0] or list(found)
    if not asking:
        return None
    whole = reduce(_combine, asking)
    return replace(whole, strategy="", basis="", questions=sum(one.questions for one in found))


def _tell_share(basis: str, asking: int, chosen: int, many: int) -> str:
    """The basis, with the share of the questions that it is about where that is not all."""
    if many == 1 or (chosen == many and asking in (0, many)):
        return basis
    looked = "" if chosen == many else f", {chosen} of them looked at"
    return f"{many} questions{looked}, {asking} of {chosen} need a model; {basis}"


async def _run_dry(settings: Settings, questions: Sequence[Question]) -> list[PromptMeter]:
    """Goes to the first call of each question; one meter for each."""
    inside = {name: type(getattr(settings, name))() for name in ("web", "pedia", "pubmed")}
    # An estimate asks nobody outside, be it for money or not.
    settings = settings.model_copy(update=inside)
    meter = PromptMeter()
    models = {role: LoadedModel(meter, tells=True) for role in roles_of(settings)}
    budget = replace(run_budget(settings), money=None)
    read = []
    try:
        solver = build_solver(settings, parts_around(settings, models))
        for question in questions:
            meter.first, meter.longest = None, 0
            with suppress(BudgetExceeded):  # a step's call: without a bound nobody expects that
                await solver.solve(question, Run(budget=budget))
            read.append(replace(meter, spared=meter.first is None))
    except CapabilityMissing:  # the strategy cannot be run so: nothing is known of any question
        return [PromptMeter() for _ in questions]
    return read


@dataclass
class _SeenRuns:
    """What former runs used, and when they were."""

    used: list[Usage] = field(default_factory=list)
    dates: list[str] = field(default_factory=list)
    timed: bool = True
    """Whether they ran on the models of these settings."""

    def __bool__(self) -> bool:
        return bool(self.used)


def _former_runs(
    settings: Settings, opens: Callable[[Path], bool]
) -> Iterator[tuple[str, _SeenRuns]]:
    """Former runs of the strategy, those that are most alike first."""
    same, other_settings, other_models = _SeenRuns(), _SeenRuns(), _SeenRuns(timed=False)
    own = settings.model_dump(mode="json")
    wanted, models = own["strategy"], _models_in(own, settings)
    for folder in islice(filter(opens, run_folders(settings.runs.path)), SEEN):
        found = _read_run(folder, settings.strategy.kind)
        if found is None:
            continue
        held, when, usage = found
        alike = _models_in(held, settings) == models
        into = other_models if not alike else same if held["strategy"] == wanted else other_settings
        into.used.append(usage)
        into.dates.append(when[:10])
        if len(same.used) == LATEST:
            break
    yield "with these settings", same
    yield "with other settings of the strategy", other_settings
    yield "on other models", other_models


def _read_run(folder: Path, kind: str) -> tuple[dict[str, Any], str, Usage] | None:
    """Settings, date and usage of a run of the strategy that came to its end."""
    try:
        record = read_record(folder)
    except BadRun:  # one that cannot be read tells nothing
        return None
    solution = find_solution(folder) if record.strategy == kind else None
    return (record.settings, record.when, solution.usage) if solution else None


_IDENTITY = ("kind", "name", "path")


def _models_in(held: dict[str, Any], settings: Settings) -> list[list[str]]:
    """What tells the models of the roles, in settings as a run keeps them."""
    played = [held["roles"].get(role) or held["model"] for role in roles_of(settings)]
    return [[str(one.get(key)) for key in _IDENTITY] for one in played]


def _estimate_from_runs(settings: Settings, basis: str, seen: _SeenRuns) -> CostEstimate:
    many, kind = len(seen.used), settings.strategy.kind
    first, last = min(seen.dates), max(seen.dates)
    span = first if first == last else f"{first} to {last}"
    plural = "" if many == 1 else "s"
    paid = _money_of(settings, seen.used) if seen.timed else []
    return CostEstimate(
        kind,
        f"{many} former run{plural} of {kind} {basis} ({span})",
        many,
        _range_of([one.calls for one in seen.used]),
        _range_of([one.prompt_tokens + one.scored_tokens for one in seen.used]),
        _range_of([one.cached_tokens for one in seen.used]),
        _range_of([one.completion_tokens for one in seen.used]),
        _range_of([one.seconds for one in seen.used]) if seen.timed else None,
        _range_of(paid) if paid else None,
        settings.prices.currency if paid else "",
    )


def _range_of(values: Sequence[float]) -> CostRange:
    return CostRange(min(values), max(values), median(values))


def _money_of(settings: Settings, used: Sequence[Usage]) -> list[float]:
    """What the runs would cost now, or did cost where several models shared them; empty where it
    is not known of each."""
    table = settings.prices.table
    prices = {table.get(settings.model_for(role).name) for role in roles_of(settings)}
    one = next(iter(prices)) if len(prices) == 1 else None
    costs = [one.cost_of(usage) if one else usage.money for usage in used]
    known = [cost for cost in costs if cost and cost.currency == settings.prices.currency]
    return [cost.amount for cost in known] if len(known) == len(costs) else []


def _estimate_from_prompt(settings: Settings, meter: PromptMeter) -> CostEstimate:
    kind = settings.strategy.kind
    facts = methods_by_kind().get(kind)
    most = facts.most if facts else None
    if (bound := settings.budget.calls) is not None:
        most = bound if most is None else min(most, bound)
    basis = f"{kind} has not run here yet"
    if meter.first is None:
        return CostEstimate(kind, f"{basis}, and no dry run is possible", 0, CostRange(0, most))
    once = most == 1
    written = CostRange(0, meter.longest) if once else None
    return CostEstimate(
        kind,
        f"{basis}; its first prompt, counted by its characters",
        0,
        CostRange(1, most),
        CostRange(meter.first, meter.first if once else None),
        completion_tokens=written,
    )
