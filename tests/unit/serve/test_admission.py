"""A run holds back while requests come in, and no longer than that."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field

import pytest

from osler.errors import StorageFailed
from osler_serve import admission
from osler_serve.admission import GAP, GAP_EACH, MOST, Admission, WrittenTogether


@dataclass
class Hours:
    """`time` and `asyncio` of the module: a clock that only a sleep moves on, and the
    requests that come meanwhile."""

    pace: Admission = field(default_factory=Admission)
    now: float = 1_000.0
    requests: list[float] = field(default_factory=list)
    late: list[float] = field(default_factory=list)
    """Seconds by which the next sleeps end too late."""

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        until = self.now + seconds + (self.late.pop(0) if self.late else 0.0)
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


async def test_a_run_on_a_calm_server_begins_after_a_gap(hours: Hours) -> None:
    """However long ago its request was read: what took so long may be others that wait unread."""
    assert await hours.waited() == pytest.approx(GAP)


async def test_a_run_waits_for_a_gap_after_the_last_request(hours: Hours) -> None:
    hours.requests = [hours.now + GAP / 2]
    assert await hours.waited() == pytest.approx(1.5 * GAP)
    assert hours.requests == []


async def test_a_run_on_a_server_that_is_never_calm_begins_after_its_longest_wait(
    hours: Hours,
) -> None:
    hours.requests = [hours.now + n * GAP / 4 for n in range(1, 400)]
    assert await hours.waited() == pytest.approx(MOST)
    assert hours.requests, "requests came in to the end"


async def test_a_loop_that_wakes_a_run_late_is_not_calm(hours: Hours) -> None:
    hours.late = [3 * GAP]
    assert await hours.waited() == pytest.approx(5 * GAP)


async def test_many_runs_that_hold_back_wait_longer_for_calm(hours: Hours) -> None:
    hours.pace._held = 100
    assert await hours.waited() == pytest.approx(GAP + 100 * GAP_EACH)


async def test_what_comes_while_the_disk_is_busy_is_written_in_one_go() -> None:
    first, written = threading.Event(), list[list[int]]()

    def write(batch: list[int]) -> None:
        written.append(batch)
        assert first.wait(20)

    together = WrittenTogether(write)
    waiting = [asyncio.ensure_future(together.put(0))]
    while not written:  # noqa: ASYNC110  a thread says when
        await asyncio.sleep(0)
    waiting += [asyncio.ensure_future(together.put(n)) for n in range(1, 50)]
    await asyncio.sleep(0)
    first.set()
    await asyncio.gather(*waiting)
    assert written == [[0], list(range(1, 50))]


async def test_who_waits_for_a_write_that_fails_is_told_and_the_next_is_written() -> None:
    def write(batch: list[str]) -> None:
        if "bad" in batch:
            raise StorageFailed("the disk is full")

    together = WrittenTogether(write)
    with pytest.raises(StorageFailed, match="the disk is full"):
        await together.put("bad")
    await together.put("good")


async def test_runs_that_hold_back_go_on_in_the_order_in_which_they_came() -> None:
    """Else a place in the queue that was told would change."""
    pace, gone = Admission(), []

    async def hold_back(number: int) -> None:
        await pace.wait_for_lull()
        gone.append(number)

    async with asyncio.TaskGroup() as tasks:
        for number in range(20):
            tasks.create_task(hold_back(number))
            await asyncio.sleep(0)
    assert gone == list(range(20))
