"""What a full disk or a power cut left of a line never spoils another."""

from pathlib import Path

import pytest

from osler.errors import BadRun
from osler_lab.jobs.journal import append_line, read_lines


def test_half_a_line_is_cut_off_before_the_next_is_appended(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    path.write_bytes(b'{"n": 0}\n{"n')
    append_line(path, b'{"n": 1}\n')
    assert [line for _, line in read_lines(path)] == [b'{"n": 0}\n', b'{"n": 1}\n']


def test_a_first_line_that_is_half_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    path.write_bytes(b'{"n')
    append_line(path, b'{"n": 1}\n')
    assert path.read_bytes() == b'{"n": 1}\n'


def test_a_journal_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadRun, match="cannot be written"):
        append_line(tmp_path / "absent" / "kept.jsonl", b"{}\n")
