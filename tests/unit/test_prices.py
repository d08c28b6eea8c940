"""Money: by the prices that are set, and never a number where one is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from osler.answer.written import WrittenComposer
from osler.build import run_budget, run_prices
from osler.cli.render import format_cost
from osler.cli.tables import format_money
from osler.errors import BadConfig
from osler.llm.core.ask import complete, score_all
from osler.llm.core.base import Message, Sampling
from osler.methods.single_pass import Direct
from osler.settings import Settings
from osler.trace import Asked, Budget, BudgetExceeded, Price, Run
from osler.trace.ordered import gather_ordered
from osler.types import Halt, Money, Question, Usage
from osler_lab.testing.scripted import ScriptedModel

ASKED = [Message("user", "Which?")]
PRICE = Price(read=2.0, cached=0.5, written=8.0, currency="EUR")
SERVER = {"kind": "openai", "url": "http://127.0.0.1:9/v1", "name": "org/big=4bit"}


def test_tokens_cost_by_whether_they_are_read_cached_or_written() -> None:
    usage = Usage(
        calls=1,
        prompt_tokens=1_000_000,
        completion_tokens=100_000,
        cached_tokens=400_000,
        scored_tokens=50_000,
    )
    assert PRICE.cost_of(usage) == Money(0.65 * 2 + 0.4 * 0.5 + 0.1 * 8, "EUR")


def test_a_sum_with_a_call_of_unknown_price_is_unknown() -> None:
    paid = Usage(calls=1, money=Money(0.5, "EUR"))
    search, unknown = Usage(searches=1), Usage(calls=1)
    assert (Usage() + paid + search + paid).money == Money(1.0, "EUR")
    assert (paid + unknown).money is None
    assert (unknown + paid).money is None
    assert Usage().money is None


async def test_a_call_is_paid_and_told_with_its_price() -> None:
    model = ScriptedModel(["one two", "three"], name="big")
    run = Run(prices={"big": PRICE})
    await complete(model, ASKED, Sampling(), run, role="reader", prompt="p")
    await score_all(model, "So", [" it is"], run, role="monitor")
    told = [event.usage.money for event in run.events if isinstance(event, Asked)]
    assert [one.currency for one in told if one] == ["EUR", "EUR"]
    assert run.usage.money is not None
    assert run.usage.money.amount == pytest.approx(sum(one.amount for one in told if one))
    assert run.paid == run.usage.money.amount > 0


def test_a_call_whose_tokens_the_server_does_not_count_has_no_price() -> None:
    run = Run(prices={"big": PRICE})
    assert run.price_usage("big", Usage(calls=1, seconds=2.0)).money is None
    assert run.price_usage("big", Usage()).money == Money(0.0, "EUR")


async def test_a_budget_in_money_stops_before_the_next_call() -> None:
    model = ScriptedModel(["one two", "three"], name="big")
    run = Run(prices={"big": PRICE}, budget=Budget(money=1e-6))
    await complete(model, ASKED, Sampling(), run, role="reader", prompt="p")
    with pytest.raises(BudgetExceeded, match=r"money 1\.6e-05 of 1e-06"):
        await complete(model, ASKED, Sampling(), run, role="reader", prompt="p")
    assert len(model.seen) == 1


async def test_a_spent_budget_in_money_is_a_halt() -> None:
    run = Run(prices={"big": PRICE}, budget=Budget(money=1e-6))
    run.spend(Usage(calls=1, money=Money(0.5, "EUR")))
    solver = Direct(ScriptedModel([], name="big"), WrittenComposer(), Sampling())
    solution = await solver.solve(Question("q", "Which?"), run)
    assert solution.halt is Halt.BUDGET
    assert "money 0.5 of 1e-06" in solution.why


async def test_a_model_without_a_price_hides_no_spending_of_the_other() -> None:
    """A model in this process beside one on a server: the sum is unknown, the bound still holds."""
    run = Run(prices={"big": PRICE}, budget=Budget(money=1e-6))
    small, big = ScriptedModel(["a"], name="small"), ScriptedModel(["b"], name="big")
    await complete(small, ASKED, Sampling(), run, role="planner", prompt="p")
    await complete(big, ASKED, Sampling(), run, role="reader", prompt="p")
    assert run.usage.money is None
    with pytest.raises(BudgetExceeded, match="money"):
        run.require_budget("call")


async def test_steps_that_run_in_lanes_share_prices_and_what_was_paid() -> None:
    run = Run(prices={"big": PRICE}, budget=Budget(money=1e-6))
    model = ScriptedModel(["a", "b"], name="big")

    async def ask(lane: Run) -> str:
        try:
            return (await complete(model, ASKED, Sampling(), lane, role="reader", prompt="p")).text
        except BudgetExceeded:
            return ""

    assert await gather_ordered(run, [ask, ask]) == ["a", ""]
    assert run.paid > 0
    assert run.spent.startswith("money")


def with_prices(*models: str, **sections: object) -> Settings:
    prices = {"currency": "EUR", "models": list(models)}
    return Settings.model_validate({"model": SERVER, "prices": prices, **sections})


def test_a_price_is_found_by_the_model_s_name_on_its_server() -> None:
    settings = with_prices("org/big=4bit=2/0.5/8", budget={"money": 0.1})
    identity = "org/big=4bit on 127.0.0.1:9"
    assert run_prices(settings, {"reader": identity}) == {identity: PRICE}
    assert run_budget(settings).money == 0.1


def test_a_bound_that_nothing_is_counted_against_is_refused() -> None:
    unpriced = with_prices("other=1/1/1", budget={"money": 0.1})
    with pytest.raises(BadConfig, match="has no price"):
        run_prices(unpriced, {"reader": "org/big=4bit on 127.0.0.1:9"})
    free = unpriced.model_copy(update={"budget": Settings().budget})
    assert run_prices(free, {"reader": "big"}) == {}
    inside = Settings.model_validate({"budget": {"money": 0.1}})
    assert run_prices(inside, {"reader": "packaged"}) == {}, "a model of this process has no bill"


@pytest.mark.parametrize(
    "line", ["big", "big=1", "big=1/2", "big=1/2/x", "=1/2/3", "big=1/2/-3", "big=1/2/nan"]
)
def test_a_line_that_is_no_price_is_refused(line: str) -> None:
    with pytest.raises(ValidationError, match="NAME=READ/CACHED/WRITTEN"):
        with_prices(line)


def test_prices_without_a_currency_are_refused() -> None:
    with pytest.raises(ValidationError, match="currency"):
        Settings.model_validate({"prices": {"models": ["big=1/2/3"]}})


def test_no_price_is_shipped(tmp_path: Path) -> None:
    assert Settings(home=tmp_path).prices.table == {}


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        (0.0, "0.0000 EUR"),
        (0.00001, "under 0.0001 EUR"),
        (0.01234, "0.0123 EUR"),
        (1234.5, "1,234.50 EUR"),
    ],
)
def test_money_is_written_so_that_small_amounts_are_not_nothing(amount: float, words: str) -> None:
    assert format_money(Money(amount, "EUR")) == words


def test_the_cost_names_money_only_where_it_is_known() -> None:
    assert format_cost(Usage(calls=1), 1.0).endswith("; tokens: not counted by the server; 1.0 s")
    assert format_cost(Usage(calls=1, money=Money(0.5, "EUR")), 1.0).endswith("1.0 s; 0.5000 EUR")
