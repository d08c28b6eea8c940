"""A run holds back while requests come in, and no longer than that."""

from __future__ import annotations

import asyncio
import time

from osler.serve.admission import GAP, MOST, Pace


async def waited(pace: Pace) -> float:
    began = time.monotonic()
    await pace.calm()
    return time.monotonic() - began


async def test_a_calm_server_s_run_begins_at_once() -> None:
    assert await waited(Pace()) < GAP


async def test_a_run_waits_for_a_gap_after_the_last_request() -> None:
    pace = Pace()
    pace.request()
    waiting = asyncio.create_task(waited(pace))
    await asyncio.sleep(GAP / 2)
    pace.request()
    assert await waiting >= 1.4 * GAP


async def test_without_a_gap_it_begins_all_the_same() -> None:
    pace = Pace()

    async def never_calm() -> None:
        while True:
            pace.request()
            await asyncio.sleep(GAP / 4)

    requests = asyncio.create_task(never_calm())
    try:
        assert await asyncio.wait_for(waited(pace), 40 * MOST) >= 0.9 * MOST
    finally:
        requests.cancel()
