"""`osler ask` by a process that has loaded everything before: the standby.

`osler serve --warm` starts one (`osler_serve.cli.standby`). It listens on a socket in the home, and
runs the command line of whoever connects, with that caller's arguments, environment, folder, input
and output: what is shown, stored and returned is what a process of its own would show, store and
return. Only the owner of the home may open the socket, and nobody else's is used. Where no standby
answers, the caller runs the command itself. A standby runs one command at a time.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

SOCKET = "ask.socket"
"""Name of the socket in the home."""
PATIENCE = 0.2
"""Seconds for a first word: a standby that runs another command gives none."""
_LONGEST_REQUEST = 4_000_000
STREAMS = 4
"""What is sent along: the standard streams, and the folder that the caller works in."""


def ask_standby(args: list[str]) -> int | None:
    """The exit code of a command that a standby ran; `None` where none did."""
    if not _is_question(args):
        return None
    with suppress(OSError, ValueError):
        place = find_home() / SOCKET
        if place.stat().st_uid != os.getuid():
            return None
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(PATIENCE)
            line.connect(str(place))
            # Another version would answer in another way.
            if find_peer(line) != os.getuid() or read_line(line) != tell_identity():
                return None
            return _hand_over(line, args)
    return None


def _is_question(args: list[str]) -> bool:
    """Whether the verb is ask: before it stand options and their values."""
    before = args[: args.index("ask")] if "ask" in args else None
    if before is None:
        return False
    pairs = zip(["", *before], before, strict=False)
    return all(word.startswith("-") or last.startswith("-") for last, word in pairs)


def find_home() -> Path:
    """The home as far as it shows without reading all settings; a standby reads them anyway."""
    from platformdirs import user_config_dir, user_data_dir

    given: Any = os.environ.get("OSLER__HOME")
    for file in (Path("osler.toml"), Path(user_config_dir("osler", appauthor=False), "osler.toml")):
        if given is None and file.is_file():
            import tomllib

            given = tomllib.loads(file.read_text(encoding="utf-8")).get("home")
    return Path(given or user_data_dir("osler", appauthor=False)).expanduser()


def tell_identity() -> dict[str, object]:
    """What caller and standby must have in common: the code, when it was changed, the Python."""
    from importlib.metadata import version

    package = Path(__file__).parents[1]
    return {
        "version": version("osler"),
        "package": str(package),
        "changed": max(one.stat().st_mtime for one in package.glob("*/*.py")),
        "python": sys.version,
    }


def _hand_over(line: socket.socket, args: list[str]) -> int | None:
    """Sends the command and the streams; the exit code, or `None` where the standby died."""
    request = {
        "args": args,
        "env": dict(os.environ),
        "mask": _mask(),
        "encodings": [one.encoding for one in (sys.stdin, sys.stdout, sys.stderr)],
    }
    sys.stdout.flush()
    line.settimeout(None)
    folder = os.open(".", os.O_RDONLY)
    try:
        socket.send_fds(line, [b"\n"], [0, 1, 2, folder])
    finally:
        os.close(folder)
    line.sendall(json.dumps(request).encode() + b"\n")
    while True:
        try:
            told = read_line(line)
        except KeyboardInterrupt:
            line.sendall(b"stop\n")
        else:
            return int(told["exit"]) if told else None


def _mask() -> int:
    os.umask(mask := os.umask(0o077))
    return mask


def find_peer(line: socket.socket) -> int:
    """The user at the other end."""
    if not hasattr(socket, "SO_PEERCRED"):  # the socket's own mode is the only guard there
        return os.getuid()
    credentials = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[1])


def read_line(line: socket.socket) -> Any:
    """The next JSON line; `None` at the end. Raises `ValueError` for one that is too long."""
    got = bytearray()
    while not got.endswith(b"\n"):
        if not (more := line.recv(65_536)):
            return None
        got += more
        if len(got) > _LONGEST_REQUEST:
            raise ValueError("too long")
    return json.loads(got)
