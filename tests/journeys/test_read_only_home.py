"""A home that may only be read, or whose file system has no inode left: answered, or one sentence.

Root may write wherever a file's mode forbids it: the file system itself must refuse.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Osler = Callable[..., "subprocess.CompletedProcess[str]"]
MOUNTS = {
    "read-only": 'mount --bind "$1" "$2" && mount -o remount,ro,bind "$2"',
    # Every inode that is left is taken.
    "no inode": 'mount -t tmpfs -o nr_inodes=300,size=100m none "$2" && cp -r "$1"/. "$2" && n=0 &&'
    ' while (: > "$2/taken-$n") 2>/dev/null; do n=$((n + 1)); done',
}
QUESTION = "What is given first in anaphylaxis?"


def call(kind: str, home: Path, place: Path, *words: str, **settings: str) -> tuple[int, str, str]:
    """Exit code and output of `osler …` in a home of that kind, in a world of mounts of its own."""
    place.mkdir(exist_ok=True)
    script = f'{MOUNTS[kind]}; shift 2; exec "$@"'
    command = ["unshare", "-m", "bash", "-c", script, "-", str(home), str(place)]
    environment = {**os.environ, "OSLER__HOME": str(place), "COLUMNS": "100", **settings}
    done = subprocess.run(  # noqa: S603
        [*command, sys.executable, "-m", "osler", *words],
        capture_output=True,
        env=environment,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.fixture(autouse=True)
def mounts(tmp_path: Path) -> None:
    try:
        command = ["unshare", "-m", "mount", "-t", "tmpfs", "none", str(tmp_path)]
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"this machine lets nobody mount: {error}")


@pytest.mark.parametrize("kind", MOUNTS)
def test_a_question_is_answered_where_nothing_can_be_written(
    built: Osler, home: Path, tmp_path: Path, kind: str
) -> None:
    words = ("ask", QUESTION)
    code, shown, error = call(kind, home, tmp_path / "m", *words, OSLER__RUNS__KEEP="false")
    assert code == 0, error
    assert "adrenaline" in shown.lower()
    assert "not kept" in shown
    assert "Traceback" not in error


@pytest.mark.parametrize("kind", MOUNTS)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("ask", QUESTION), "the run cannot be kept in"),
        (("serve", "--port", "0"), "cannot hold serve.sqlite"),
        (("kb", "build", "--rebuild"), "osler: "),
        (("kb", "snapshot", "later"), "osler: "),
        (("kb", "rm", "--source", "guideline"), "osler: "),
    ],
)
def test_what_must_write_ends_with_one_sentence(
    built: Osler, home: Path, tmp_path: Path, kind: str, words: tuple[str, ...], said: str
) -> None:
    code, _, error = call(kind, home, tmp_path / "m", *words)
    assert code not in (0, 130), error
    assert said in error
    assert len(error.strip().splitlines()[-1:]) == 1
    assert "Traceback" not in error
    if words[0] == "ask":
        assert "runs.keep = false" in error


def test_what_only_reads_works(built: Osler, home: Path, tmp_path: Path) -> None:
    for words in (("kb", "info", "--verify"), ("kb", "search", "adrenaline")):
        code, shown, error = call("read-only", home, tmp_path / "m", *words)
        assert code == 0, error
        assert shown
    code, shown, error = call("read-only", home, tmp_path / "m", "doctor")
    assert code == 1
    assert "set runs.path to a folder that can be written" in shown + error
