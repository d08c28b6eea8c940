"""A log that is cut, emptied or set back is not gone on with; one that a crash left is."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("cryptography", reason='not installed: pip install "osler[audit]"')

from osler.audit.checkpoints import HEAD, SLOT, CheckpointSigner
from osler.audit.entries import anchor_places, open_audit, write_entry
from osler.audit.log import ENTRIES, PUBLIC, AuditLog
from osler.errors import StorageFailed
from osler.settings import Settings
from osler_serve.ledger import Ledger
from osler_serve.ops.audit_proofs import (
    accept_audit,
    read_entries,
    read_head,
    read_lines,
    verify_audit,
    verify_log,
)

EARLY, LATE = 5, 12
KEY, SERVE, AWAY = range(3)
"""The anchors, as `anchor_places` gives them."""


@dataclass
class Attacked:
    """A log with what an attacker may have kept of it; nobody has the signing key."""

    settings: Settings
    early: Path
    """All files as they were at five entries of twelve."""

    @property
    def folder(self) -> Path:
        return self.settings.home / "audit"

    def __truediv__(self, name: str) -> Path:
        return self.folder / name

    def anchor(self, number: int) -> Path:
        return anchor_places(self.settings)[number]

    def put_back(self, *paths: Path) -> None:
        for path in paths:
            path.write_bytes(self.kept(path).read_bytes())

    def kept(self, path: Path) -> Path:
        return self.early / path.relative_to(self.settings.home.parent)

    def read_files(self) -> list[bytes]:
        """Of a file that is not there, nothing."""
        paths = (self / ENTRIES, self / HEAD)
        return [path.read_bytes() if path.exists() else b"" for path in paths]

    def cut(self, entries: int) -> None:
        path = self / ENTRIES
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines[: len(lines) - entries]))


Step = Callable[[Attacked], object]


def empty(*names: str) -> Step:
    return lambda log: [(log / name).write_bytes(b"") for name in names]


def delete(*names: str) -> Step:
    def unlink(log: Attacked) -> None:
        for name in names:
            (log / name).unlink()

    return unlink


def delete_anchors(*numbers: int) -> Step:
    def unlink(log: Attacked) -> None:
        for number in numbers:
            log.anchor(number).unlink()

    return unlink


def delete_row(log: Attacked) -> None:
    with closing(sqlite3.connect(log.anchor(SERVE))) as db, db:
        assert db.execute("DELETE FROM anchor").rowcount == 1


def put_back(*places: str | int) -> Step:
    """Files of the log by name, anchors by number."""

    def copy(log: Attacked) -> None:
        log.put_back(*(log.anchor(one) if isinstance(one, int) else log / one for one in places))

    return copy


def wipe_newest_slot(log: Attacked) -> None:
    data = bytearray((log / HEAD).read_bytes())
    data[SLOT * (LATE % 2) : SLOT * (LATE % 2) + SLOT] = b" " * SLOT
    (log / HEAD).write_bytes(bytes(data))


def forge_log(log: Attacked) -> None:
    """Entries, head and public key of a log of the attacker's own, of as many entries."""
    own = AuditLog(log.early / "own", CheckpointSigner(log.early / "own.pem"))
    for _ in range(LATE):
        own.append({"what": "nothing"})
    for name in (ENTRIES, HEAD, PUBLIC):
        shutil.copy(log.early / "own" / name, log / name)


def put_folder_back(log: Attacked) -> None:
    shutil.rmtree(log.folder)
    shutil.copytree(log.kept(log.folder), log.folder)


def delete_folder(log: Attacked) -> None:
    """The signing key with it: the next one is another."""
    shutil.rmtree(log.folder)


def cut_one(log: Attacked) -> None:
    log.cut(1)


def cut_to_early(log: Attacked) -> None:
    log.cut(LATE - EARLY)


def cut_half(log: Attacked) -> None:
    (log / ENTRIES).write_bytes((log / ENTRIES).read_bytes()[:-40])


ATTACKS: dict[str, list[Step]] = {
    "entries emptied": [empty(ENTRIES)],
    "entries deleted": [delete(ENTRIES)],
    "last entry cut": [cut_one],
    "half an entry cut": [cut_half],
    "entries and head emptied": [empty(ENTRIES, HEAD)],
    "head deleted, then entries": [delete(HEAD, ENTRIES)],
    "head deleted": [delete(HEAD)],
    "head put back, then entries": [put_back(HEAD, ENTRIES)],
    "entries put back, head, the anchor beside the key": [put_back(ENTRIES, HEAD, KEY)],
    "one entry cut, its head wiped": [cut_one, wipe_newest_slot],
    "the ledger's anchor deleted, the folder put back": [delete_anchors(SERVE), put_folder_back],
    "the folder put back, the anchor elsewhere": [put_folder_back, put_back(AWAY)],
    "the folder put back with the ledger": [put_folder_back, put_back(SERVE)],
    "the ledger's row deleted, the folder put back": [delete_row, put_folder_back],
    "the anchors in home deleted, head put back, entries cut": [
        delete_anchors(KEY, SERVE),
        put_back(HEAD),
        cut_to_early,
    ],
    "another log under another key": [forge_log],
    "the folder deleted with its key": [delete_folder],
}


@pytest.fixture
def log(tmp_path: Path) -> Attacked:
    home, away = tmp_path / "here" / "home", tmp_path / "here" / "away" / "anchor"
    audit = {"log": "require", "anchor": str(away)}
    made = Attacked(Settings.model_validate({"home": str(home), "audit": audit}), tmp_path / "kept")
    append_entries(made.settings, EARLY)
    shutil.copytree(tmp_path / "here", made.early)
    append_entries(made.settings, LATE - EARLY)
    assert verify_audit(made.settings).problems == ()
    return made


def append_entries(settings: Settings, number: int) -> None:
    for n in range(number):
        write_entry(settings, {"what": "test", "asked": f"question {n} 问"})


def restart() -> None:
    from osler.audit import entries

    entries._open_log.cache_clear()


@pytest.mark.parametrize("running", [False, True], ids=["at a start", "under a server"])
@pytest.mark.parametrize("attack", ATTACKS)
def test_log_that_is_shorter_than_what_was_signed_is_not_gone_on_with(
    log: Attacked, attack: str, running: bool
) -> None:
    for step in ATTACKS[attack]:
        step(log)
    if not running:
        restart()
    left = log.read_files()
    for _ in range(2):  # nor at the second try
        with pytest.raises(StorageFailed) as refused:
            write_entry(log.settings, {"what": "after"})
        assert "osler audit" in refused.value.fix
    assert log.read_files() == left
    assert verify_audit(log.settings).problems


def test_server_that_runs_finds_a_log_set_back_with_all_its_anchors(log: Attacked) -> None:
    """At the next start nothing on this machine can tell: that is what audit.copies is for."""
    log.put_back(log / ENTRIES, log / HEAD, *anchor_places(log.settings))
    with pytest.raises(StorageFailed, match=r"12 were signed by now \(this process\)"):
        write_entry(log.settings, {"what": "after"})
    restart()
    write_entry(log.settings, {"what": "after"})
    assert verify_audit(log.settings).problems == ()


def test_error_says_how_much_is_missing_by_what_and_what_to_do(log: Attacked) -> None:
    put_folder_back(log)
    restart()
    with pytest.raises(StorageFailed) as refused:
        open_audit(log.settings)
    assert "holds 5 entries, and 12 were signed by 20" in refused.value.message
    assert str(log.anchor(SERVE)) in refused.value.message
    assert "put back the newest whole copy" in refused.value.fix
    assert "osler audit --accept" in refused.value.fix


@pytest.mark.parametrize("attack", ["the folder deleted with its key", "last entry cut"])
def test_what_is_lost_is_accepted_once_and_on_record(log: Attacked, attack: str) -> None:
    for step in ATTACKS[attack]:
        step(log)
    if attack == "last entry cut":  # it does not match its head: it is kept elsewhere
        with pytest.raises(StorageFailed, match="holds 11 entries"):
            accept_audit(log.settings)
        log.folder.rename(log.early / "damaged")
    restart()
    assert accept_audit(log.settings) == 0
    restart()
    assert accept_audit(log.settings) is None
    (entry,) = read_entries(log.settings)
    assert (entry["what"], entry["held"], entry["signed"]) == ("audit.accepted", 0, LATE)
    write_entry(log.settings, {"what": "after"})
    assert verify_audit(log.settings).problems == ()


def test_log_that_was_set_back_goes_on_behind_what_is_there_once_accepted(log: Attacked) -> None:
    put_folder_back(log)
    restart()
    assert accept_audit(log.settings) == EARLY
    assert [one["what"] for one in read_entries(log.settings)][-2:] == ["test", "audit.accepted"]
    restart()
    write_entry(log.settings, {"what": "after"})
    assert verify_audit(log.settings).problems == ()


def test_anchors_that_cannot_be_written_are_told_and_the_others_serve(
    log: Attacked, caplog: pytest.LogCaptureFixture
) -> None:
    log.anchor(AWAY).unlink()
    log.anchor(AWAY).mkdir()
    append_entries(log.settings, 3)
    assert caplog.text.count("set audit.anchor") == 1
    put_folder_back(log)
    restart()
    with pytest.raises(StorageFailed, match="15 were signed"):
        write_entry(log.settings, {"what": "after"})


def test_the_ledger_s_row_stands_in_the_file_of_a_server_that_runs(log: Attacked) -> None:
    ledger = Ledger(log.settings.home / "serve")
    append_entries(log.settings, 1)
    with closing(sqlite3.connect(log.anchor(SERVE))) as db:
        ((row,),) = db.execute("SELECT signed FROM anchor")
    assert json.loads(row)["size"] == LATE + 1
    ledger.check_writable()
    ledger.close()


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="needs Linux")
def test_an_entry_leaves_the_locks_of_the_ledger_of_its_process(log: Attacked) -> None:
    """Closing any other handle to the file drops them, and two servers then spoil it."""
    place = log.anchor(SERVE)

    def count_locks() -> int:
        return Path("/proc/locks").read_text().count(f":{place.stat().st_ino} ")

    ledger = Ledger(place.parent)
    ledger.check_writable()
    held = count_locks()
    assert held
    append_entries(log.settings, 1)
    restart()
    append_entries(log.settings, 1)
    assert count_locks() == held
    ledger.close()


def test_anchors_are_their_owners_alone(log: Attacked) -> None:
    assert all(place.stat().st_mode & 0o077 == 0 for place in anchor_places(log.settings))


STATES = 8


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, bytes]]:
    """The files of a log after each append, from none on."""
    folder = tmp_path_factory.mktemp("states")
    log = make_log(folder)
    names = (ENTRIES, HEAD, "anchor-0", "anchor-1")
    seen = []
    for number in range(STATES):
        if number:
            log.append({"what": "test", "asked": "x" * number})
        paths = {name: folder / name for name in names}
        seen.append({name: p.read_bytes() if p.exists() else b"" for name, p in paths.items()})
    return [{"key": (folder / "key.pem").read_bytes(), **one} for one in seen]


def make_log(folder: Path) -> AuditLog:
    signer = CheckpointSigner(folder / "key.pem")
    return AuditLog(folder, signer, anchors=(folder / "anchor-0", folder / "anchor-1"))


@given(st.data())
def test_any_prefix_of_the_writes_that_a_crash_leaves_is_gone_on_with(
    states: list[dict[str, bytes]], data: st.DataObject
) -> None:
    """Entry, head and anchors are written in this order, each up to any byte; of the anchors, which
    are not flushed, any older state may be left."""
    at = data.draw(st.integers(1, STATES - 1))
    old, new = states[at - 1], states[at]
    written = data.draw(st.integers(0, len(new[ENTRIES]) - len(old[ENTRIES])))
    left = {ENTRIES: new[ENTRIES][: len(old[ENTRIES]) + written], HEAD: old[HEAD]}
    is_whole = left[ENTRIES] == new[ENTRIES]
    if is_whole:
        left[HEAD] = write_over(old[HEAD], new[HEAD], at, data.draw(st.integers(0, SLOT)))
    is_signed = is_whole and left[HEAD] == new[HEAD]
    for name in ("anchor-0", "anchor-1"):
        last = data.draw(st.integers(0, at - 1))
        left[name] = states[last][name]
        if is_signed or last + 1 < at:
            cut = data.draw(st.integers(0, SLOT))
            left[name] = write_over(left[name], states[last + 1][name], last + 1, cut)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, content in {"key.pem": states[at]["key"], **left}.items():
            if content or data.draw(st.booleans()):
                (folder / name).write_bytes(content)
        log = make_log(folder)
        log.check()
        number = log.append({"what": "after"})
        assert number == (at if is_signed else at - 1)
        log.append({"what": "after"})
        lines, head = read_lines(folder), read_head(folder)
        assert [json.loads(line)["n"] for line in lines] == list(range(number + 2))
        assert head is not None
        assert verify_log(folder, (folder / PUBLIC).read_text().strip()).problems == ()


def write_over(old: bytes, new: bytes, size: int, written: int) -> bytes:
    """The slot of this size written over up to a byte."""
    start = SLOT * (size % 2)
    return old[:start].ljust(start if written else 0, b"\0") + (
        new[start : start + written] + old[start + written :]
    )
