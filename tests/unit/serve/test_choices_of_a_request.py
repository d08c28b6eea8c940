"""What a request chooses is laid over the settings; what it leaves alone costs nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from served import serving_settings

from osler_serve.choices import run_settings, search_settings
from osler_serve.problems import RefusedRequest
from osler_serve.schemas import RunLimits, SearchRequest


def test_a_request_that_chooses_nothing_has_the_server_s_own_settings(home: Path) -> None:
    settings = serving_settings(home)
    assert run_settings(settings, limits=RunLimits()) is settings
    assert search_settings(settings, SearchRequest(query="x")) is settings


def test_a_search_s_bounds_replace_those_of_the_settings_also_where_it_names_none(
    home: Path,
) -> None:
    settings = serving_settings(home, retrieve={"since": 1990, "trust": 3})
    made = search_settings(settings, SearchRequest(query="x", until=2001))
    assert (made.retrieve.since, made.retrieve.until, made.retrieve.trust) == (None, 2001, 1)


def test_strategy_and_options_of_a_request_are_validated(home: Path) -> None:
    settings = serving_settings(home, strategy={"kind": "direct"})
    with pytest.raises(RefusedRequest, match="searches nothing"):
        run_settings(settings, k=3)
    with pytest.raises(RefusedRequest, match=r"strategy\.omni-rag\.planner"):
        run_settings(settings, strategy="omni-rag", planner="nobody")
    with pytest.raises(RefusedRequest, match="after"):
        search_settings(settings, SearchRequest(query="x", since=2001, until=2000))
