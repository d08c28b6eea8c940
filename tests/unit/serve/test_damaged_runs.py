"""Recorded runs whose files were damaged: every endpoint says the same, and none breaks."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
from served import ServedOsler, read_stream, start_run

from osler.errors import BadRun
from osler.trace import read_events
from osler_serve.ledger import Ledger, LedgerEntry

DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "not UTF-8": lambda log: b"\xff\xfe" + log,
    "half a line": lambda log: log[: len(log) // 2],
    "empty": lambda log: b"",
    "no event": lambda log: log + b"{}\n",
    "binary": lambda log: bytes(range(256)),
    "a byte in the middle": lambda log: log[:200] + b"\xff" + log[201:],
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_log_is_404_at_each_endpoint(
    place: ServedOsler, http: httpx2.Client, kind: str
) -> None:
    run = start_run(http)
    read_stream(http, run)
    place.wait_for_runs()
    home = place.site.settings.runs.path
    other = f"{run[:-1]}{'0' if run[-1] != '0' else '1'}"
    shutil.copytree(home / run, home / other)
    log = home / other / "events.jsonl"
    log.write_bytes(DAMAGE[kind](log.read_bytes()))
    paths = (f"/api/v1/runs/{other}", f"/api/v1/runs/{other}/events", f"/runs/{other}/report.html")
    for path in paths:
        reply = http.get(path)
        assert (reply.status_code, reply.json()["code"]) == (404, "damaged_run"), path
        assert str(home) not in reply.text


def test_a_log_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_bytes(b"\xff\n")
    with pytest.raises(BadRun, match=r"events\.jsonl:1: it is not UTF-8"):
        list(read_events(tmp_path / "events.jsonl"))


def test_a_line_separator_in_a_text_ends_no_line(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.begin_runs(
        [(LedgerEntry("a", "default", "", "2026-01-02", "running", "rag", "?"), None)]
    )
    lines = ['{"question": "a\u2028b\x85c"}', "{}"]
    ledger.end_run("a", "failed", events="\n".join(lines))
    assert ledger.run_lines("a") == lines
    ledger.close()
