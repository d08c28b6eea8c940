"""Where the server's package is not installed, no record of a patient is read by anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from osler.doctor import _check_privacy
from osler.errors import BadConfig
from osler.kb.base import KnowledgeBase
from osler.settings import Settings
from osler.sources import patients
from osler.sources.catalogue import EMR
from osler.sources.formats import registry

SAMPLE = Path(__file__).parents[3] / "packages/osler/src/osler/sample" / EMR


@pytest.fixture(autouse=True)
def _no_clinic(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (patients, registry):
        monkeypatch.setattr(module, "CLINIC", "osler_that_nobody_has")
    (files, folders) = registry._record_parsers()
    others = [one for one in registry.PARSERS if one not in registry._RECORDS]
    monkeypatch.setattr(registry, "PARSERS", (*files, *others))
    monkeypatch.setattr(registry, "FOLDER_PARSERS", folders)


@pytest.mark.parametrize("source", [EMR, "book"])
def test_records_are_dropped_and_what_reads_them_is_named(tmp_path: Path, source: str) -> None:
    with KnowledgeBase.create(tmp_path / "kb") as kb:
        added = kb.add([SAMPLE], source=source)
        assert added.documents == 0
        assert {one.reason for one in kb.dead_letters(source)} == {"needs osler[serve]"}
        assert len([*kb.dead_letters(source)]) == 2  # the bundle, and the folder of tables


def test_a_text_is_not_stored_with_its_identifiers(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("Mrs Ada Byron was seen on 2 March 2021.", encoding="utf-8")
    with KnowledgeBase.create(tmp_path / "kb") as kb:
        kb.deidentified = ("notes",)
        with pytest.raises(BadConfig, match=r"osler\[serve\]"):
            kb.add([tmp_path / "note.txt"], source="notes")
        assert kb.info().passages == 0


def test_the_doctor_names_what_lacks(tmp_path: Path) -> None:
    chosen = {"home": str(tmp_path), "access": {"deidentify": ["notes"]}}
    check = _check_privacy(Settings.model_validate(chosen))
    assert (check.status, check.fix) == ("fail", 'pip install "osler[serve]"')
