"""The table of the documentation is that of the code, and the code keeps to it."""

from pathlib import Path

import pytest

from osler.app.config import STRATEGIES
from osler.app.config.baselines import BASELINES
from osler.methods.baselines import default_sources
from osler.methods.baselines.default_sources import ORIGINS, DefaultSource
from osler.methods.baselines.table import METHODS, render_methods_table

PAGE = Path(__file__).parents[4] / "docs" / "guide" / "baselines.md"
OWN = {"tc-rag", "kag-thinker", "omni-rag", "unified"}
"""Strategies that are no baselines."""


def test_the_page_holds_the_table_as_the_code_has_it() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert render_methods_table() in page
    assert default_sources.render_sources_table() in page


def test_every_baseline_that_can_be_set_stands_in_it_once() -> None:
    kinds = [method.kind for method in METHODS]
    assert sorted(kinds) == sorted(set(STRATEGIES) - OWN)
    assert set(BASELINES) <= set(kinds)


def test_every_method_says_where_its_values_come_from() -> None:
    assert [origin.kind for origin in ORIGINS] == [method.kind for method in METHODS]


@pytest.mark.parametrize("origin", ORIGINS, ids=lambda origin: origin.kind)
def test_every_default_has_one_origin(origin: DefaultSource) -> None:
    named = [*origin.found, *origin.recalled, *origin.ours]
    assert sorted(named) == sorted(set(STRATEGIES[origin.kind].model_fields) - {"kind"})
    assert bool(origin.found) <= (origin.source not in ("-", "no values"))


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.kind)
def test_nothing_is_left_open(method: object) -> None:
    assert all(getattr(method, name) for name in ("paper", "needs", "calls", "most", "differs"))
