"""What a request chooses is laid over the settings; what it leaves alone costs nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from osler.serve.choices import chosen, searching
from osler.serve.problems import Refused
from osler.serve.schemas import Limits, SearchAsked
from osler.testing.served import settings_for


def test_a_request_that_chooses_nothing_has_the_server_s_own_settings(home: Path) -> None:
    settings = settings_for(home)
    assert chosen(settings, limits=Limits()) is settings
    assert searching(settings, SearchAsked(query="x")) is settings


def test_a_search_s_bounds_replace_those_of_the_settings_also_where_it_names_none(
    home: Path,
) -> None:
    settings = settings_for(home, retrieve={"year_from": 1990, "trust": 3})
    made = searching(settings, SearchAsked(query="x", year_to=2001))
    assert (made.retrieve.year_from, made.retrieve.year_to, made.retrieve.trust) == (None, 2001, 1)


def test_what_is_chosen_is_still_checked(home: Path) -> None:
    settings = settings_for(home, strategy={"kind": "direct"})
    with pytest.raises(Refused, match="searches nothing"):
        chosen(settings, k=3)
    with pytest.raises(Refused, match=r"strategy\.omni-rag\.planner"):
        chosen(settings, strategy="omni-rag", planner="nobody")
    with pytest.raises(Refused, match="after"):
        searching(settings, SearchAsked(query="x", year_from=2001, year_to=2000))
