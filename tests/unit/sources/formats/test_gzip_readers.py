"""Both decoders of gzip give the same bytes, and call the same damage by the same name."""

import gzip
import random
import sys
from pathlib import Path

import pytest

from osler.sources.formats.containers import Unreadable, open_file

TEXT = random.Random(1).randbytes(40_000) + b"aspirin " * 40_000
WHOLE = gzip.compress(TEXT)


@pytest.fixture(params=["zlib", "isal"])
def decoder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "isal":
        pytest.importorskip("isal", reason='needs the extra "osler[fast]"')
    else:
        monkeypatch.setitem(sys.modules, "isal", None)  # as if it were not installed
    return str(request.param)


def file(folder: Path, content: bytes) -> Path:
    path = folder / "notes.txt.gz"
    path.write_bytes(content)
    return path


def test_a_whole_file_is_read_and_several_in_one_as_one(decoder: str, tmp_path: Path) -> None:
    with open_file(file(tmp_path, WHOLE + gzip.compress(b"and more"))) as stream:
        assert stream.read() == TEXT + b"and more"


def test_the_file_below_is_closed_with_the_stream(decoder: str, tmp_path: Path) -> None:
    path = file(tmp_path, WHOLE)
    open_file(path).close()
    path.unlink()  # an open file would warn when it is collected, and warnings are errors
    assert not path.exists()


@pytest.mark.parametrize(
    "content",
    [
        WHOLE[:-5000],
        WHOLE[:-8] + b"\0" * 8,
        WHOLE[:60] + b"\xff" * 60 + WHOLE[120:],
        b"\x1f\x8b\x08\x00" + b"\xff" * 50,
        b"no gzip at all",
    ],
    ids=["cut", "wrong checksum", "altered", "only a header", "another format"],
)
def test_damage_is_called_damage(decoder: str, content: bytes, tmp_path: Path) -> None:
    with (
        pytest.raises(Unreadable, match="truncated or damaged"),
        open_file(file(tmp_path, content)) as stream,
    ):
        stream.read()
