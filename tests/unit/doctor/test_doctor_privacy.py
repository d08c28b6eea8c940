"""Who else can read home: the modes of its files, and the device below it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from osler.doctor import (
    _check_privacy,
    _check_pseudonyms,
    _check_records,
    disk_encryption,
    has_plain_pseudonyms,
    open_to_others,
)
from osler.kb.base import KnowledgeBase
from osler.settings import Settings
from osler.sources.patients import FILE as KEY
from osler_serve.ledger import Ledger


def test_what_osler_makes_is_closed_to_others(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        home = tmp_path / "home"
        settings = Settings.model_validate({"home": str(home)})
        home.mkdir(mode=0o755)
        (tmp_path / "a.md").write_text("# A\n\nAspirin.\n")
        with KnowledgeBase.create(settings.kb.path) as kb:
            kb.add([tmp_path / "a.md"], source="own")
            kb.build(None)
            kb.take_snapshot("one")
        Ledger(home / "serve").close()
    finally:
        os.umask(before)
    for path in (settings.kb.path, settings.kb.path / "snapshots", home / "serve"):
        assert path.stat().st_mode & 0o077 == 0, path
    for path in settings.kb.path.rglob("*.sqlite*"):
        assert path.stat().st_mode & 0o077 == 0, path
    assert open_to_others(settings) == []


def test_files_that_others_may_read_are_found_where_they_can_be_reached(tmp_path: Path) -> None:
    settings = Settings.model_validate({"home": str(tmp_path)})
    tmp_path.chmod(0o755)
    run = tmp_path / "runs" / "one"
    run.mkdir(parents=True)
    tape = run / "tape.jsonl"
    tape.touch(mode=0o644)
    assert open_to_others(settings) == [tape]
    run.chmod(0o700)
    assert open_to_others(settings) == []
    run.chmod(0o755)
    tmp_path.chmod(0o700)
    assert open_to_others(settings) == []


def test_a_knowledge_base_without_a_key_of_pseudonyms_is_warned_of(tmp_path: Path) -> None:
    settings = Settings.model_validate({"home": str(tmp_path)})
    assert not has_plain_pseudonyms(settings)
    KnowledgeBase.create(settings.kb.path).close()
    assert _check_pseudonyms(settings).status == "pass"
    (settings.kb.path / KEY).unlink()  # as before there was one
    assert _check_pseudonyms(settings).status == "warn"


def test_what_is_private_is_told_as_it_is_in_force(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n\nAspirin.\n")
    with KnowledgeBase.create(tmp_path / "kb") as kb:
        kb.add([tmp_path / "a.md"], source="ward-notes")
    settings = {"home": str(tmp_path), "access": {"private": "ward-notes", "held": "web"}}
    seen = _check_privacy(Settings.model_validate(settings))
    assert (seen.status, seen.detail) == ("pass", "private: emr, ward-notes; held: web")
    wrong = {"home": str(tmp_path), "access": {"private": "ward-note", "deidentify": "ward-notes"}}
    seen = _check_privacy(Settings.model_validate(wrong))
    assert seen.status == "warn"
    assert "there is no source ward-note yet" in seen.detail
    assert "did you mean 'ward-notes'" in seen.fix


@pytest.mark.skipif(sys.platform != "linux", reason="devices as Linux shows them")
@pytest.mark.parametrize(
    ("uuid", "below", "state"),
    [
        ("CRYPT-LUKS2-abc-home", [], "encrypted"),
        ("", [], "not encrypted"),
        ("LVM-abc", ["CRYPT-LUKS2-x"], "encrypted"),
        ("LVM-abc", ["CRYPT-LUKS2-x", ""], "not encrypted"),
        (None, [], "unknown"),
    ],
)
def test_encryption_is_read_from_the_device(
    tmp_path: Path, uuid: str | None, below: list[str], state: str
) -> None:
    number = tmp_path.stat().st_dev
    device = tmp_path / "sys" / "dev" / "block" / f"{os.major(number)}:{os.minor(number)}"
    if uuid is not None:
        for place, name in [
            (device, uuid),
            *((device / "slaves" / f"s{n}", b) for n, b in enumerate(below)),
        ]:
            (place / "dm").mkdir(parents=True)
            (place / "dm" / "uuid").write_text(name)
    assert disk_encryption(tmp_path / "not" / "there", root=tmp_path) == state


@pytest.mark.parametrize(
    ("sections", "status"),
    [
        ({}, "pass"),  # one's own machine: nobody asks for a log
        ({"audit": {"log": "require"}}, "pass"),
        ({"audit": {"log": "require"}, "runs": {"days": 184}}, "pass"),
        ({"audit": {"log": "require"}, "runs": {"days": 183}}, "warn"),
        ({"audit": {"log": "warn"}, "runs": {"keep": False}}, "warn"),
        ({"serve": {"patients": True}}, "warn"),
        ({"serve": {"hook_clients": "clients.json"}, "audit": {"log": "require"}}, "pass"),
    ],
)
def test_a_log_whose_runs_go_within_six_months_is_warned_of(
    sections: dict[str, object], status: str
) -> None:
    check = _check_records(Settings.model_validate(sections))
    assert check.status == status
    assert ("184" in check.fix) == (status == "warn" and "serve" not in sections)
