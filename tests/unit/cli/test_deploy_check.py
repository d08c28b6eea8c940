"""`osler deploy check`: one journey through a server that runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason='not installed: pip install "osler[serve]"')

from served import serve_osler

from osler_serve.keys import new_key
from osler_serve.ledger import Ledger

STEPS = ["ready", "version", "search", "ask", "stream", "answer"]


def test_a_server_that_works_passes_every_step(osler: Any, tmp_path: Path) -> None:
    with serve_osler(tmp_path / "served") as place:
        question = "Which drug is given first, into the outer thigh, at once?"
        result = osler("deploy", "check", place.url, "--question", question, "--json")
    told = json.loads(result.stdout)
    assert (result.exit_code, told["ok"]) == (0, True)
    assert [step["name"] for step in told["steps"]] == STEPS
    assert told["steps"][-1]["said"] == "grounded, 1 quotes found in their passages"


def test_a_server_that_wants_a_key_is_checked_with_it(osler: Any, tmp_path: Path) -> None:
    with serve_osler(tmp_path / "served") as place:
        ledger = Ledger(tmp_path / "served" / "serve")
        (tmp_path / "key").write_text(new_key(ledger, "checks"), encoding="utf-8")
        ledger.close()
        refused = osler("deploy", "check", place.url)
        let_in = osler("deploy", "check", place.url, "--key-file", str(tmp_path / "key"))
    assert refused.exit_code == 1
    assert "search   FAILED" in refused.stdout
    assert "an API key is required" in refused.stdout
    assert let_in.exit_code == 0, let_in.stdout


def test_an_address_where_nobody_answers_fails_each_step(osler: Any) -> None:
    result = osler("deploy", "check", "http://127.0.0.1:9")
    assert result.exit_code == 1
    assert result.stdout.count("FAILED") == len(STEPS)
    assert "does not answer" in result.stdout


def test_an_address_without_check_is_refused(osler: Any) -> None:
    result = osler("deploy", "folder", "http://127.0.0.1:9")
    assert result.exit_code == 2
    assert "osler deploy check URL" in result.stderr
