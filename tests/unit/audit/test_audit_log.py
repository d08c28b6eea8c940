"""The audit log: what was appended is there, signed, and cannot be changed unseen."""

from __future__ import annotations

import json
import os
import random
import shutil
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("cryptography", reason='not installed: pip install "osler[audit]"')

from osler.audit.checkpoints import (
    HEAD,
    Checkpoint,
    CheckpointSigner,
    MerkleFrontier,
    hash_leaf,
    hash_node,
    read_checkpoints,
)
from osler.audit.log import ENTRIES, PUBLIC, AuditLog
from osler.errors import BadConfig, StorageFailed
from osler_serve.ops.audit_proofs import prove_inclusion, read_head, read_lines, verify_log

# RFC 6962's own test vectors (certificate-transparency-go, `merkletree` test data).
RFC_LEAVES = [
    bytes.fromhex(text)
    for text in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
RFC_ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


def test_roots_are_those_of_the_rfc() -> None:
    tree = MerkleFrontier()
    assert tree.root().hex() == RFC_ROOTS[0]
    for entry, root in zip(RFC_LEAVES, RFC_ROOTS[1:], strict=True):
        tree.append(hash_leaf(entry))
        assert tree.root().hex() == root


@given(st.integers(1, 70), st.data())
def test_every_proof_leads_to_the_root(size: int, data: st.DataObject) -> None:
    leaves = [hash_leaf(str(n).encode()) for n in range(size)]
    index = data.draw(st.integers(0, size - 1))
    node, at, last = leaves[index], index, size - 1
    for sibling in prove_inclusion(leaves, index):
        if at % 2 or at == last:
            node = hash_node(sibling, node)
            while at % 2 == 0 and at:
                at, last = at // 2, last // 2
        else:
            node = hash_node(node, sibling)
        at, last = at // 2, last // 2
    assert (last, node) == (0, MerkleFrontier(leaves).root())


def make_log(folder: Path, entries: int, copies: Path | None = None) -> AuditLog:
    log = AuditLog(folder, CheckpointSigner(folder / "key.pem"), copies, every=10)
    for number in range(entries):
        log.append({"what": "test", "asked": f"question {number} 问"})
    return log


@pytest.fixture(scope="module")
def long_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("log")
    make_log(folder, 300)
    return folder


def problems(folder: Path, copies: tuple[Checkpoint, ...] = ()) -> tuple[str, ...]:
    return verify_log(folder, (folder / PUBLIC).read_text().strip(), copies).problems


def test_log_as_it_was_written_has_no_problem(long_log: Path) -> None:
    assert problems(long_log) == ()
    assert len(read_lines(long_log)) == 300
    assert all(path.stat().st_mode & 0o077 == 0 for path in (long_log / ENTRIES, long_log / HEAD))


def test_changed_bits_truncations_and_swaps_are_found(long_log: Path) -> None:
    path = long_log / ENTRIES
    data = path.read_bytes()
    rng = random.Random(7)
    lines = data.splitlines(keepends=True)
    spoiled = [
        bytes((*data[:at], data[at] ^ (1 << bit), *data[at + 1 :]))
        for at, bit in ((rng.randrange(len(data)), rng.randrange(8)) for _ in range(60))
    ]
    ends = [at for at, byte in enumerate(data) if byte == 10]
    spoiled += [
        bytes((*data[:at], 10 ^ (1 << bit), *data[at + 1 :])) for at in ends[:2] for bit in range(8)
    ]
    spoiled += [data[: rng.randrange(len(data))] for _ in range(20)]
    spoiled += [b"".join(lines[:keep]) for keep in (0, 1, 298, 299)]
    spoiled += [b"".join([*lines[:5], lines[6], lines[5], *lines[7:]]), data + lines[-1]]
    spoiled += [b"".join([*lines[:7], *lines[8:]]), b"".join([lines[0], *lines])]
    try:
        for wrong in spoiled:
            assert wrong != data
            path.write_bytes(wrong)
            assert problems(long_log), wrong[:80]
    finally:
        path.write_bytes(data)


def test_every_truncation_of_the_last_entries_is_found(long_log: Path, tmp_path: Path) -> None:
    """The last line break too: without it nobody can say that the entry is whole."""
    shutil.copytree(long_log, tmp_path / "log")
    data = (long_log / ENTRIES).read_bytes()
    public = (long_log / PUBLIC).read_text().strip()
    last = data.rindex(b"\n", 0, data.rindex(b"\n"))
    for place in range(last - 2, len(data)):
        (tmp_path / "log" / ENTRIES).write_bytes(data[:place])
        assert verify_log(tmp_path / "log", public).problems, len(data) - place


def test_log_that_is_set_back_with_its_head_is_found_by_the_second_place(tmp_path: Path) -> None:
    folder, copies = tmp_path / "log", tmp_path / "elsewhere"
    log = make_log(folder, 12, copies)
    early = {name: (folder / name).read_bytes() for name in (ENTRIES, HEAD)}
    for _ in range(10):
        log.append({"what": "test"})
    kept = tuple(read_checkpoints(copies.read_text().splitlines()))
    assert [one.size for one in kept] == [10, 20]
    assert problems(folder, kept) == ()
    for name, data in early.items():
        (folder / name).write_bytes(data)
    assert problems(folder) == ()  # nothing on this machine can tell
    assert any("a checkpoint knows 20" in said for said in problems(folder, kept))


def test_one_entry_less_with_one_head_wiped_is_found(tmp_path: Path) -> None:
    make_log(tmp_path, 5)
    lines = (tmp_path / ENTRIES).read_bytes().splitlines(keepends=True)
    (tmp_path / ENTRIES).write_bytes(b"".join(lines[:-1]))
    head = bytearray((tmp_path / HEAD).read_bytes())
    head[512:] = b" " * 512  # the slot of odd sizes
    (tmp_path / HEAD).write_bytes(bytes(head))
    assert problems(tmp_path)


def test_entry_of_another_key_is_found(tmp_path: Path) -> None:
    make_log(tmp_path / "one", 3)
    make_log(tmp_path / "two", 3)
    for name in (ENTRIES, HEAD):
        (tmp_path / "one" / name).write_bytes((tmp_path / "two" / name).read_bytes())
    assert any("not signed" in said for said in problems(tmp_path / "one"))


def test_server_goes_on_after_a_power_cut_in_mid_entry(tmp_path: Path) -> None:
    make_log(tmp_path, 4)
    for left in (b'{"n": 4, "half', b'{"n": 4}\n', b'{"n": 4}\n{"n'):
        before = (tmp_path / ENTRIES).read_bytes()
        (tmp_path / ENTRIES).write_bytes(before + left)
        number = make_log(tmp_path, 0).append({"what": "after"})
        assert problems(tmp_path) == ()
        assert len(read_lines(tmp_path)) == number + 1
    head = (tmp_path / HEAD).read_bytes()  # one slot torn: the entry behind it was not answered
    spoilt = read_head(tmp_path)
    assert spoilt is not None
    slot = 512 * (spoilt.size % 2)
    (tmp_path / HEAD).write_bytes(
        head[:slot] + head[slot : slot + 100].ljust(512, b"\0") + head[slot + 512 :]
    )
    make_log(tmp_path, 2)
    assert problems(tmp_path) == ()


def test_nothing_is_appended_to_a_log_that_was_changed(tmp_path: Path) -> None:
    make_log(tmp_path, 4)
    data = (tmp_path / ENTRIES).read_bytes()
    (tmp_path / ENTRIES).write_bytes(data.replace(b"question 2", b"question 9"))
    with pytest.raises(StorageFailed, match="does not match its signature"):
        make_log(tmp_path, 1)


def test_failed_write_leaves_the_log_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_log(tmp_path, 3)
    real = os.write

    def fill_disk(handle: int, data: bytes) -> int:
        if len(data) < 40:
            raise OSError(28, "No space left on device")
        return real(handle, data[:30])

    with monkeypatch.context() as full:
        full.setattr("osler.audit.log.os.write", fill_disk)
        with pytest.raises(StorageFailed, match="No space"):
            log.append({"what": "lost"})
    assert problems(tmp_path) == ()
    log.append({"what": "kept"})
    assert problems(tmp_path) == ()
    assert [json.loads(line)["n"] for line in read_lines(tmp_path)] == [0, 1, 2, 3]


def test_threads_and_processes_append_in_turn(tmp_path: Path) -> None:
    logs = [make_log(tmp_path, 1) for _ in range(3)]  # each with what it read at its start

    def append_many(log: AuditLog) -> None:
        for _ in range(10):
            log.append({"what": "turn"})

    threads = [threading.Thread(target=append_many, args=(log,)) for log in logs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read_lines(tmp_path)) == 33
    assert problems(tmp_path) == ()


def test_key_is_the_owners_alone_and_another_kind_is_refused(tmp_path: Path) -> None:
    CheckpointSigner(tmp_path / "new" / "key.pem")
    assert (tmp_path / "new" / "key.pem").stat().st_mode & 0o077 == 0
    (tmp_path / "bad.pem").write_text("nothing")
    with pytest.raises(BadConfig, match="signing key"):
        CheckpointSigner(tmp_path / "bad.pem")


def test_head_that_is_written_by_half_is_written_on_or_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk takes a part of a write without an error; what is answered for must be signed."""
    log, whole = make_log(tmp_path, 2), os.pwrite

    def write_half(handle: int, data: bytes, at: int) -> int:
        return whole(handle, data[: max(1, len(data) // 2)], at)

    monkeypatch.setattr(os, "pwrite", write_half)
    log.append({"what": "test"})
    head = read_head(tmp_path)
    assert head is not None
    assert head.size == 3
    assert problems(tmp_path) == ()


def test_names_of_the_log_are_on_disk_before_its_first_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = []
    monkeypatch.setattr(
        "osler.audit.log.sync_path", lambda path: synced.append((path, [*os.listdir(path)]))
    )
    folder = tmp_path / "new" / "audit"
    AuditLog(folder, CheckpointSigner(tmp_path / "key.pem"))
    assert (folder.parent, ["audit"]) in synced
    assert any(path == folder and {ENTRIES, HEAD} <= {*names} for path, names in synced)
