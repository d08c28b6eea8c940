"""A run holds back while requests come in, and no longer than that."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from osler_serve import admission
from osler_serve.admission import GAP, MOST, Admission


@dataclass
class Hours:
    """`time` and `asyncio` of the module: a clock that only a sleep moves on, and the
    requests that come meanwhile."""

    pace: Admission = field(default_factory=Admission)
    now: float = 1_000.0
    requests: list[float] = field(default_factory=list)

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        until = self.now + seconds
        while self.requests and self.requests[0] <= until:
            self.now = self.requests.pop(0)
            self.pace.note_request()
        self.now = until

    async def waited(self) -> float:
        began = self.now
        await self.pace.wait_for_lull()
        return self.now - began


@pytest.fixture
def hours(monkeypatch: pytest.MonkeyPatch) -> Hours:
    found = Hours()
    monkeypatch.setattr(admission, "time", found)
    monkeypatch.setattr(admission, "asyncio", found)
    return found


async def test_a_run_on_a_calm_server_begins_at_once(hours: Hours) -> None:
    assert await hours.waited() == 0


async def test_a_run_waits_for_a_gap_after_the_last_request(hours: Hours) -> None:
    hours.pace.note_request()
    hours.requests = [hours.now + GAP / 2]
    assert await hours.waited() == pytest.approx(1.5 * GAP)
    assert hours.requests == []


async def test_a_run_on_a_server_that_is_never_calm_begins_after_its_longest_wait(
    hours: Hours,
) -> None:
    hours.pace.note_request()
    hours.requests = [hours.now + n * GAP / 4 for n in range(1, 400)]
    assert await hours.waited() == pytest.approx(MOST)
    assert hours.requests, "requests came in to the end"
