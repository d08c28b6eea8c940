"""Days, months and years as texts write them."""

from __future__ import annotations

import pytest

from osler.sources.formats.reading import date_in
from osler.types import Locator


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2024-03-15", "2024-03-15"),
        ("2024-03-15T10:00:00Z", "2024-03-15"),
        ("2024/3/5", "2024-03-05"),
        ("20240315", "2024-03-15"),
        ("2024 Mar 15", "2024-03-15"),
        ("2024年3月15日", "2024-03-15"),
        ("2024-03", "2024-03"),
        ("2024年3月", "2024-03"),
        ("2024", ""),
        ("2024-13", ""),
        ("2023-02-29", ""),
        ("2019-2020", ""),
        ("2020 Jan-Feb", ""),
        ("2020 March-April", ""),
        ("2020 Sept-Oct", ""),
        ("2020 March 5", "2020-03-05"),
        ("2020 Spring", ""),
        ("", ""),
    ],
)
def test_a_day_or_month_is_read_as_it_is_written(text: str, day: str) -> None:
    assert date_in(text) == day


@pytest.mark.parametrize(
    ("place", "day"),
    [
        (Locator(year=2024), 20241231),
        (Locator(year=2024, date="2024-03"), 20240331),
        (Locator(year=2024, date="2024-03-15"), 20240315),
        (Locator(), None),
    ],
)
def test_what_is_not_known_of_a_date_counts_as_its_last_day(
    place: Locator, day: int | None
) -> None:
    assert place.latest_day == day
