"""The standby itself: a process that has loaded what a question waits for, and runs commands."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from osler.cli import run_command
from osler.cli.standby import PATIENCE, SOCKET, STREAMS, find_peer, read_line, tell_identity

# What the system takes as the path of a socket, with its closing zero.
_LONGEST_PATH = 107


def open_socket(home: Path) -> socket.socket:
    """Listens in the home, in place of a standby that is no more. Raises `OSError`."""
    place = home / SOCKET
    if len(os.fsencode(place)) > _LONGEST_PATH:
        raise OSError(f"{place} is too long for the path of a socket")
    place.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        listening.bind(str(place))
    finally:
        os.umask(before)
    listening.listen(8)
    return listening


def serve_commands(listening: socket.socket) -> None:
    """Runs one command after another, for the owner alone."""
    identity = tell_identity()
    while True:
        line, _ = listening.accept()
        with line, suppress(OSError, ValueError, KeyboardInterrupt):
            if find_peer(line) == os.getuid():
                _serve_one(line, identity)


def _serve_one(line: socket.socket, identity: dict[str, object]) -> None:
    line.sendall(json.dumps(identity).encode() + b"\n")
    line.settimeout(PATIENCE)
    _, streams, *_ = socket.recv_fds(line, 1, STREAMS)
    try:
        request = read_line(line) if len(streams) == STREAMS else None
        if request is None:
            return
        line.settimeout(None)
        with _interrupted_by(line), _in_place_of(request, streams):
            code = _run(request["args"])
    finally:
        for one in streams:
            os.close(one)
    line.sendall(json.dumps({"exit": code}).encode() + b"\n")
    line.shutdown(socket.SHUT_RDWR)  # ends the thread that listens


@contextmanager
def _interrupted_by(line: socket.socket) -> Iterator[None]:
    """Ctrl-C at the caller, or its end, interrupts the command as it would there."""
    over = threading.Event()

    def listen() -> None:
        with suppress(OSError):
            line.recv(16)
        if not over.is_set():
            os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=listen, daemon=True).start()
    try:
        yield
    finally:
        over.set()


@contextmanager
def _in_place_of(request: dict[str, Any], streams: list[int]) -> Iterator[None]:
    """The caller's environment, folder, mask and streams, and this process's own afterwards."""
    own = [os.dup(number) for number in range(3)]
    environment, folder, mask = dict(os.environ), os.getcwd(), os.umask(request["mask"])
    standard = sys.stdin, sys.stdout, sys.stderr
    try:
        _enter(request["env"], streams[3])
        for number, given in enumerate(streams[:3]):
            os.dup2(given, number)
        sys.stdin, sys.stdout, sys.stderr = (
            open(  # noqa: SIM115  the streams of the process are closed below
                number, mode, encoding=encoding, closefd=False, buffering=-1
            )
            for number, (mode, encoding) in enumerate(zip("rww", request["encodings"], strict=True))
        )
        yield
    finally:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        sys.stdin, sys.stdout, sys.stderr = standard
        for number, kept in enumerate(own):
            os.dup2(kept, number)
            os.close(kept)
        os.umask(mask)
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)


def _enter(environment: dict[str, str], folder: int) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.fchdir(folder)


def _run(args: list[str]) -> int:
    try:
        run_command(args)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    except KeyboardInterrupt:
        return 130
    except Exception:  # what a process of its own would end with
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def load_all() -> None:
    """Answers a question that nobody asked, which is not kept. Raises `OslerError`."""
    from osler.cli import ask, render
    from osler.cli.session import CliSession
    from osler.questions import parse_question
    from osler.runs.answering import ask as solve
    from osler.settings import ROLES

    assert ask is not render  # noqa: S101  imported to be there
    alone = {"runs.keep": False, "net.offline": True, "audit.log": "off"}
    settings = CliSession().load_settings(alone)
    if all(settings.model_for(role).kind != "openai" for role in ROLES):  # it may cost money
        asyncio.run(solve(settings, parse_question("What is asthma?")))


@contextmanager
def start_standby(home: Path) -> Iterator[None]:
    """A standby of this home, loaded before this is entered; it ends with its starter."""
    command = [sys.executable, "-m", "osler_serve.cli.standby", str(home)]
    made = subprocess.Popen(  # noqa: S603  this Python and a module of ours
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "OSLER__HOME": str(home)},
        start_new_session=True,  # Ctrl-C at the server is for the server
    )
    with made:
        assert made.stdin is not None  # noqa: S101  asked for above
        assert made.stdout is not None  # noqa: S101
        made.stdout.readline()
        try:
            yield
        finally:
            made.stdin.close()


def main() -> None:
    """The standby: loads, says "ready", and serves until its standard input ends."""
    from osler.errors import OslerError

    # A server in the background ignores Ctrl-C, and what it starts would: callers interrupt here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    life = os.dup(0)
    home = Path(sys.argv[1])
    with suppress(OslerError):  # whoever asks is told
        load_all()
    listening = open_socket(home)

    def end_with_server() -> None:
        os.read(life, 1)
        (home / SOCKET).unlink(missing_ok=True)
        os._exit(0)

    threading.Thread(target=end_with_server, daemon=True).start()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    serve_commands(listening)


if __name__ == "__main__":
    main()
