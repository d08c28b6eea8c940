"""`osler serve`, its keys, `osler mcp`'s and `osler deploy`'s edges."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason='not installed: pip install "osler[serve]"')

import httpx2
from served import fill_knowledge_base

from osler.settings import Settings


def test_a_key_is_shown_once_listed_without_its_secret_and_taken_back(osler: Any) -> None:
    made = json.loads(osler("serve", "key", "add", "ward", "--workspace", "w1", "--json").stdout)
    assert made["key"].startswith("osk_")
    listed = osler("serve", "key", "ls", "--json").stdout
    assert made["key"].split("_", 2)[2] not in listed  # a secret may have "_" in it
    (one,) = json.loads(listed)["keys"]
    assert (one["name"], one["workspace"]) == ("ward", "w1")
    for wrong in (["ward"], ["a b"], ["x", "--verb", "fly"], ["x", "--strategy", "fly"]):
        assert osler("serve", "key", "add", *wrong).exit_code == 2
    assert osler("serve", "key", "rm", "ward").exit_code == 0
    assert json.loads(osler("serve", "key", "ls", "--json").stdout) == {"keys": []}
    assert osler("serve", "key", "rm", "ward").exit_code == 2


def test_another_address_is_refused_without_a_key(osler: Any) -> None:
    result = osler("serve", "--host", "0.0.0.0")  # noqa: S104
    assert result.exit_code == 3
    assert "there is no key" in result.stderr


def test_a_port_that_is_taken_is_said_so(osler: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        result = osler("serve", "--port", str(taken.getsockname()[1]))
    assert result.exit_code == 3
    assert "choose another with --port" in result.stderr


def test_the_deploy_files_are_written_whole_and_never_over_others(osler: Any, folder: Path) -> None:
    written = json.loads(osler("deploy", "d", "--json").stdout)["files"]
    assert sorted(Path(path).name for path in written) == [
        "Containerfile",
        "compose.yaml",
        "kubernetes.yaml",
        "osler.service",
        "osler.toml",
    ]
    assert osler("deploy", "d").exit_code == 3
    assert osler("deploy", "d", "--force").exit_code == 0
    tree = tomllib.loads((folder / "d" / "osler.toml").read_text())
    settings = Settings.model_validate(tree)
    assert (settings.kb.engine, settings.model.kind) == ("qdrant", "openai")
    unit = (folder / "d" / "osler.service").read_text()
    assert "osler serve" in unit
    drain = int(unit.split("TimeoutStopSec=")[1].split()[0])
    assert drain > settings.serve.drain_seconds


def test_the_program_serves_and_a_sigterm_ends_it(tmp_path: Path) -> None:
    home = tmp_path / "h"
    fill_knowledge_base(home)
    program = subprocess.Popen(
        [sys.executable, "-m", "osler", "serve", "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OSLER__HOME": str(home), "OSLER_CACHE": str(tmp_path / "no weights")},
        cwd=tmp_path,
    )
    assert program.stdout is not None
    try:
        url = json.loads(program.stdout.readline())["url"]
        # The address is told once it is listened on: who comes before the server is up waits.
        assert httpx2.get(f"{url}/healthz", timeout=60).status_code == 200
        # No weights lie in this test's home: it says so, and goes on living.
        ready = httpx2.get(f"{url}/readyz", timeout=60)
        assert (ready.status_code, ready.json()["code"]) == (503, "model_missing")
        assert httpx2.get(f"{url}/healthz", timeout=5).status_code == 200
        program.send_signal(signal.SIGTERM)
        assert program.wait(30) in (0, -signal.SIGTERM)
    finally:
        program.kill()
        program.communicate()


def test_the_demo_goes_from_nothing_to_the_page_with_an_answered_question(tmp_path: Path) -> None:
    home = tmp_path / "h"
    (tmp_path / "osler.toml").write_text(f'kb.path = "{tmp_path}/own"\n', encoding="utf-8")

    def start() -> tuple[dict[str, object], dict[str, Any]]:
        program = subprocess.Popen(
            [sys.executable, "-m", "osler", "demo", "--no-browser", "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OSLER__HOME": str(home)},
            cwd=tmp_path,
        )
        assert program.stdout is not None
        try:
            told = json.loads(program.stdout.readline())
            address, _, run = told["page"].partition("/#/runs/")
            shown = httpx2.get(f"{address}/api/v1/runs/{run}", timeout=60).json()
            taken = httpx2.get(f"{address}/api/v1/uploads", timeout=60).json()
            assert taken["sources"] == ["own"]
            return told, shown
        finally:
            program.kill()
            program.communicate()

    first, shown = start()
    assert shown["status"] == "finished"
    assert "metformin is stopped below 30" in shown["answer"]["text"]
    assert [path.name for path in home.iterdir()] == ["demo"]
    assert not (tmp_path / "own").exists()
    again, _ = start()
    assert again["seconds"] < first["seconds"]  # type: ignore[operator]
    assert again["page"] == first["page"]  # an open tab finds it, and nothing is asked twice
