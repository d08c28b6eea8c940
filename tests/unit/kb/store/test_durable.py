"""Private files: whole with their names on disk, or not there."""

import os
from pathlib import Path

import pytest

from osler.kb.store.durable import write_private


def test_private_file_is_its_owners_and_the_first_ones(tmp_path: Path) -> None:
    path = tmp_path / "new" / "key"
    write_private(path, b"first")
    write_private(path, b"second")
    assert path.read_bytes() == b"first"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in path.parent.iterdir()] == ["key"]


def test_private_file_has_no_name_before_it_is_flushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="Input/output"):
        write_private(tmp_path / "key", b"secret")
    assert list(tmp_path.iterdir()) == []
