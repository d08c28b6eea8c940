"""`osler ask` through the standby of a server is `osler ask`."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

Osler = Callable[..., "subprocess.CompletedProcess[str]"]
WARFARIN = "A patient who takes warfarin is started on amiodarone. What happens to the INR?"
# What a process imports that answers by itself.
ALONE = "osler.runs.answering"


# A shell lets what it starts in the background, these tests perhaps, ignore Ctrl-C.
AT_A_TERMINAL = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from osler.cli import main
main()
"""


def environment(home: Path) -> dict[str, str]:
    return {**os.environ, "OSLER__HOME": str(home), "COLUMNS": "100"}


@contextmanager
def begin_long(home: Path, trace: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A question that takes seconds, under way: it has told its first event."""
    os.mkfifo(trace)
    command = [sys.executable, "-c", AT_A_TERMINAL, "ask", WARFARIN, "--strategy", "tc-rag"]
    caller = subprocess.Popen(  # noqa: S603
        [*command, "--trace", str(trace)],
        env=environment(home),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    with trace.open() as events:
        assert events.readline()
        yield caller


@pytest.fixture
def standby(built: Osler, home: Path) -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, "-m", "osler_serve.cli.standby", str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(home),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        assert process.stdout.readline() == b"ready\n"
        yield process
        process.stdin.close()
        process.wait(10)
    assert not (home / "ask.socket").exists() or process.returncode != 0


def same(text: str) -> str:
    """Without what differs from run to run: its name, its seconds."""
    text = re.sub(r"\d{8}-\d{6}-[0-9a-f]{6}", "RUN", " ".join(text.split()))
    return re.sub(r"\b\d+(\.\d+)? s\b", "SECONDS", re.sub(r'"seconds": [\d.]+', "SECONDS", text))


# Each with its input; the question of the input is asked where other settings are.
CALLS = [
    (("--json", WARFARIN), None),
    (("hi",), None),
    (("--nonsense", WARFARIN), None),
    (("--strategy", "no-such", WARFARIN), None),
    (("-", "--source", "wiki"), WARFARIN.encode()),
]


def test_output_exit_code_and_run_are_those_of_a_process_of_its_own(
    built: Osler, home: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    (tmp_path / "osler.toml").write_text("[answer]\nstatements = 1\n")

    def ask_all() -> list["subprocess.CompletedProcess[str]"]:
        places = [(tmp_path if given else home) for _, given in CALLS]
        pairs = zip(CALLS, places, strict=True)
        return [built("ask", *words, stdin=given, cwd=cwd) for (words, given), cwd in pairs]

    alone = ask_all()
    request.getfixturevalue("standby")
    by = ask_all()
    assert [one.returncode for one in by] == [one.returncode for one in alone]
    assert [same(one.stdout) for one in by] == [same(one.stdout) for one in alone]
    assert [same(one.stderr) for one in by] == [same(one.stderr) for one in alone]
    assert [one.returncode for one in by] == [0, 1, 2, 3, 0]
    run = re.search(r"\d{8}-\d{6}-[0-9a-f]{6}", by[0].stdout)
    assert run
    assert built("replay", run[0]).returncode == 0


def test_a_key_of_the_caller_bounds_what_a_standby_finds(
    standby: object, built: Osler, tmp_path: Path
) -> None:
    made = built("serve", "key", "add", "reader", "--source", "guideline", "--json")
    (tmp_path / "key").write_text(json.loads(made.stdout)["key"])
    (tmp_path / "osler.toml").write_text(f"[access]\nkey_file = '{tmp_path / 'key'}'\n")
    free, bound = built("ask", "--json", WARFARIN), built("ask", "--json", WARFARIN, cwd=tmp_path)
    assert not cited_sources(free) <= {"guideline"}
    assert cited_sources(bound) <= {"guideline"}


def cited_sources(done: "subprocess.CompletedProcess[str]") -> set[str]:
    citations = json.loads(done.stdout)["answer"]["citations"]
    return {one["passage_id"].partition(":")[0] for one in citations}


def test_the_caller_loads_nothing_where_a_standby_answers(standby: object, home: Path) -> None:
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-X", "importtime", "-m", "osler", "ask", WARFARIN],
        capture_output=True, env=environment(home), check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0
    assert b"warfarin" in done.stdout
    assert ALONE.encode() not in done.stderr
    assert b"osler.cli.standby" in done.stderr


def test_a_server_has_a_standby_before_it_listens_and_takes_it_along(
    built: Osler, home: Path
) -> None:
    command = [sys.executable, "-m", "osler", "serve", "--warm", "--port", "0"]
    server = subprocess.Popen(  # noqa: S603
        command, env=environment(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert server.stdout is not None
    assert server.stderr is not None
    with server:
        assert server.stdout.readline().startswith(b"http://")
        assert (home / "ask.socket").is_socket()
        server.kill()
        server.wait()
        server.stderr.read()  # the standby holds it open until its own end
    assert not (home / "ask.socket").exists()


def test_a_caller_that_is_killed_frees_the_standby(
    standby: object, built: Osler, home: Path, tmp_path: Path
) -> None:
    with begin_long(home, tmp_path / "trace") as caller:
        caller.kill()
        caller.communicate()
    assert built("ask", WARFARIN).returncode == 0


def test_ctrl_c_at_the_caller_interrupts_the_question(
    standby: object, built: Osler, home: Path, tmp_path: Path
) -> None:
    with begin_long(home, tmp_path / "trace") as caller:
        caller.send_signal(signal.SIGINT)
        _, told = caller.communicate(timeout=60)
    assert caller.returncode == 130
    assert b"interrupted" in told


def test_a_standby_that_was_killed_is_done_without(
    standby: "subprocess.Popen[bytes]", built: Osler, home: Path
) -> None:
    standby.kill()
    standby.wait()
    assert (home / "ask.socket").exists()
    done = built("ask", WARFARIN)
    assert done.returncode == 0
    assert "third to a half" in " ".join(done.stdout.split())
