"""A question that a standby answers, and the ones that it does not get."""

import json
import os
import socket
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from osler.cli.standby import SOCKET, ask_standby, find_home, tell_identity
from osler_serve.cli.standby import open_socket

Talk = Callable[[socket.socket], None]
ASK = ["ask", "What is asthma?"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OSLER__HOME", str(tmp_path))
    return tmp_path


def listen(home: Path, talk: Talk) -> threading.Thread:
    listening = open_socket(home)

    def serve() -> None:
        line, _ = listening.accept()
        with listening, line:
            talk(line)

    made = threading.Thread(target=serve, daemon=True)
    made.start()
    return made


def tell(**changed: Any) -> Talk:
    def talk(line: socket.socket) -> None:
        told = {**tell_identity(), **changed}
        line.sendall(json.dumps(told).encode() + b"\n")
        line.recv(100)

    return talk


def test_without_a_socket_nothing_is_handed_over(home: Path) -> None:
    assert ask_standby(ASK) is None


def test_only_the_owner_may_open_the_socket(home: Path) -> None:
    with open_socket(home):
        assert stat.S_IMODE((home / SOCKET).stat().st_mode) == 0o600


def test_a_socket_of_another_user_is_not_used(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_socket(home) as listening:
        monkeypatch.setattr(os, "getuid", lambda: (home / SOCKET).stat().st_uid + 1)
        assert ask_standby(ASK) is None
        listening.settimeout(0.05)
        with pytest.raises(TimeoutError):
            listening.accept()


def test_a_socket_whose_standby_is_dead_is_passed_over_and_replaced(home: Path) -> None:
    open_socket(home).close()
    assert ask_standby(ASK) is None
    open_socket(home).close()


@pytest.mark.parametrize("changed", [{"version": "0"}, {"package": "/elsewhere"}, {"changed": 1}])
def test_a_standby_of_another_version_gets_no_question(home: Path, changed: Any) -> None:
    got: list[bytes] = []

    def talk(line: socket.socket) -> None:
        tell(**changed)(line)
        got.append(line.recv(100))

    made = listen(home, talk)
    assert ask_standby(ASK) is None
    made.join(5)
    assert got == [b""]


def test_a_standby_that_is_busy_is_not_waited_for(home: Path) -> None:
    with open_socket(home):
        began = time.monotonic()
        assert ask_standby(ASK) is None
        assert time.monotonic() - began < 5


def test_a_standby_that_dies_over_a_question_leaves_it_to_the_caller(home: Path) -> None:
    listen(home, tell())
    assert ask_standby(ASK) is None


@pytest.mark.parametrize(
    "words", [["kb", "add", "ask"], ["trace", "last"], [], ["--help"], ["eval", "run", "ask"]]
)
def test_other_verbs_are_never_handed_over(home: Path, words: list[str]) -> None:
    with open_socket(home) as listening:
        listening.settimeout(0.05)
        assert ask_standby(words) is None
        with pytest.raises(TimeoutError):
            listening.accept()


def test_options_may_stand_before_the_verb(home: Path) -> None:
    seen = threading.Event()
    listen(home, lambda line: seen.set())
    assert ask_standby(["--quiet", "--profile", "fast", *ASK]) is None
    assert seen.wait(5)


def test_the_home_is_read_from_the_settings_file_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OSLER__HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "osler.toml").write_text('home = "/srv/texts"\n')
    assert find_home() == Path("/srv/texts")


def test_a_path_too_long_for_a_socket_is_said(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="too long"):
        open_socket(tmp_path / ("long" * 40))
