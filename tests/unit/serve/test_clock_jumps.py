"""A clock that is set back or forward by a day or a year, while a home is in use."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Self

import pytest

pytest.importorskip("fastapi", reason='not installed: pip install "osler[serve]"')

import httpx2
from served import FixedModel, read_stream, serve_osler, serving_settings, start_run
from waiting import AwaitableEvent

from osler.answer.follow_up import Standalone
from osler.audit import entries, log
from osler.runs import threads
from osler.runs.threads import ThreadStore
from osler.sources.online.cache import CachedReply, ReplyCache
from osler_serve import admission, mcp_tasks, run_manager
from osler_serve.ledger import Ledger
from osler_serve.ops.audit_proofs import verify_audit
from osler_serve.ops.forget import oldest_kept
from osler_serve.run_views import RunView

DAY = timedelta(days=1)
JUMPS = [DAY, -DAY, 365 * DAY, -365 * DAY]
USERS = (admission, log, mcp_tasks, run_manager, threads)
"""Modules that ask for the time of day."""


class Clock:
    """The time of day of these modules, ahead by `ahead`; what counts seconds goes on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ahead = timedelta()
        clock, real = self, time.time

        class Moved(datetime):
            @classmethod
            def now(cls, tz: tzinfo | None = None) -> Self:
                return cls.fromtimestamp(real() + clock.ahead.total_seconds(), UTC)

        for module in USERS:
            monkeypatch.setattr(module, "datetime", Moved)
        monkeypatch.setattr(time, "time", lambda: real() + self.ahead.total_seconds())

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.mark.parametrize("jump", JUMPS, ids=str)
def test_the_audit_log_keeps_its_order(tmp_path: Path, clock: Clock, jump: timedelta) -> None:
    settings = serving_settings(
        tmp_path, audit={"log": "require", "anchor": str(tmp_path / "anchor")}
    )
    entries.write_entry(settings, {"what": "before"})
    clock.ahead = jump
    entries.write_entry(settings, {"what": "after"})
    entries._open_log.cache_clear()  # a start of another process
    entries.write_entry(settings, {"what": "later"})
    clock.ahead = timedelta()
    entries.write_entry(settings, {"what": "put right"})
    entries._open_log.cache_clear()
    verified = verify_audit(settings)
    assert verified.problems == ()
    lines = (tmp_path / "audit" / "entries.jsonl").read_text().splitlines()
    told = [line.partition('"what": "')[2].partition('"')[0] for line in lines]
    assert told == ["before", "after", "later", "put right"]


@pytest.mark.parametrize("jump", JUMPS, ids=str)
def test_a_run_under_way_ends_as_ever(tmp_path: Path, clock: Clock, jump: timedelta) -> None:
    gate = AwaitableEvent()
    model = FixedModel(gate=gate)
    with (
        serve_osler(tmp_path, model=model) as place,
        httpx2.Client(base_url=place.url, timeout=60) as http,
    ):
        run = start_run(http)
        assert model.called.wait(20)
        clock.ahead = jump
        gate.set()
        events = read_stream(http, run)
        assert [number for number, _, _ in events] == [*range(1, len(events) + 1)]
        assert events[-1][1] == "run.finished"
        view = http.get(f"/api/v1/runs/{run}").json()
        assert view["status"] == "finished"
        assert 0 <= view["seconds"] < 60
        again = start_run(http)  # the next one, after the jump
        assert read_stream(http, again)[-1][1] == "run.finished"
        listed = http.get("/api/v1/runs").text
        assert run in listed
        assert again in listed


@pytest.mark.parametrize("jump", JUMPS, ids=str)
def test_a_task_is_not_older_than_itself(clock: Clock, jump: timedelta) -> None:
    created = datetime.now(UTC).isoformat()
    clock.ahead = jump
    view = RunView(
        *("r", "running", created, "rag", None, None, {}, "", None, "", "", ()),
    )
    task = mcp_tasks._describe_task(view)
    assert created == task["createdAt"] <= task["lastUpdatedAt"]


@pytest.mark.parametrize("jump", JUMPS, ids=str)
def test_turns_of_a_thread_stay_in_order(tmp_path: Path, clock: Clock, jump: timedelta) -> None:
    store = ThreadStore(tmp_path)
    thread = store.create_thread("ward")
    for number, ahead in enumerate((timedelta(), jump, timedelta())):
        clock.ahead = ahead
        alone = Standalone(f"question {number}?", "user")
        store.add_turn(store.read_thread(thread.id), f"run-{number}", alone.text, alone)
    assert [turn.run for turn in store.read_thread("ward").turns] == ["run-0", "run-1", "run-2"]
    assert store.last_runs() == {"ward": "run-2"}


@pytest.mark.parametrize("jump", JUMPS, ids=str)
def test_a_page_fetched_at_a_time_to_come_is_fetched_again(tmp_path: Path, jump: timedelta) -> None:
    cache, now = ReplyCache(tmp_path), time.time()
    at = now + jump.total_seconds()
    cache.put_reply("key", CachedReply("https://example.org", "text/html", b"old", at))
    found = cache.get_reply("key", now=now, days=30)
    assert (found is None) is (abs(jump) > 30 * DAY)
    assert cache.get_reply("key", now=now, days=None) is not None  # offline: however old


def test_a_clock_set_back_keeps_what_runs_days_keeps(tmp_path: Path, clock: Clock) -> None:
    settings = serving_settings(tmp_path, runs={"days": 30})
    name = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-abc"
    clock.ahead = -365 * DAY
    assert oldest_kept(settings) < name


def test_a_key_spends_no_day_twice(tmp_path: Path, clock: Clock) -> None:
    ledger = Ledger(tmp_path)
    ledger.add_spent("key", admission._day(clock.now()), 100)
    clock.ahead = DAY
    assert ledger.spent_tokens("key", admission._day(clock.now())) == 0
    clock.ahead = timedelta()
    assert ledger.spent_tokens("key", admission._day(clock.now())) == 100
    ledger.close()
