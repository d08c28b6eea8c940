"""Disks that fail: every write of a process below one folder, from the n-th on, and power cuts.

A shim that is compiled at first use stands between a child process and the C library
(`LD_PRELOAD`): SQLite, native writers and grandchildren pass through it as Python does, which no
patch inside Python could reach, and which a small file system could not aim at the n-th write.

    dial = FaultDial(tmp_path / "dial", disk=tmp_path / "home")
    child = subprocess.Popen([...], env=dial.environment())
    dial.turn_on(FAULTS["full"], first=7)     # also while the child runs
    dial.turn_off()

`power_cuts` makes of a recording what a disk may hold after each operation of it.
"""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import signal
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_SHIM = Path(__file__).with_name("disk_faults_shim.c")
_FIELDS = ("count", "first", "error", "kinds", "halved", "record")
_WRITE, _NAME, _SYNC = 1, 2, 4
_PATH = 1024


@dataclass(frozen=True, slots=True)
class Fault:
    """One way in which a disk fails, for good; or in which who writes to it dies."""

    error: int
    kinds: int
    """Which operations it fails: writes, changes of names, flushes."""
    halved: bool = False
    """The first write lands by half."""


FAULTS = {
    "full": Fault(errno.ENOSPC, _WRITE | _NAME),
    "short": Fault(errno.ENOSPC, _WRITE, halved=True),
    "inodes": Fault(errno.ENOSPC, _NAME),
    "read-only": Fault(errno.EROFS, _WRITE | _NAME),
    "broken": Fault(errno.EIO, _WRITE | _NAME | _SYNC),
    "denied": Fault(errno.EACCES, _NAME),
    "unsynced": Fault(errno.EIO, _SYNC),
    "killed": Fault(-signal.SIGKILL, _WRITE | _NAME | _SYNC),
}
RECORDED = Fault(0, _WRITE | _NAME | _SYNC)


class FaultDial:
    """What the shim of all processes with this environment does to the folder `disk`."""

    def __init__(self, path: Path, disk: Path) -> None:
        with path.open("wb") as file:
            file.truncate(len(_FIELDS) * 8 + _PATH)
        self._attach(path)
        self.aim_at(disk)

    @classmethod
    def attached(cls, path: Path) -> FaultDial:
        """Another hand on a dial that is there."""
        made = cls.__new__(cls)
        made._attach(path)
        return made

    def _attach(self, path: Path) -> None:
        self.path = path
        with path.open("r+b") as file:
            self._page = mmap.mmap(file.fileno(), 0)

    def aim_at(self, disk: Path) -> None:
        folder = os.fsencode(disk.resolve())
        assert len(folder) < _PATH
        self._page[len(_FIELDS) * 8 :] = folder.ljust(_PATH, b"\0")

    def environment(self) -> dict[str, str]:
        """For a child process. Raises `OSError` where the shim cannot be compiled."""
        return {**os.environ, "LD_PRELOAD": str(compile_shim()), "OSLER_FAULTS": str(self.path)}

    def turn_on(self, fault: Fault, first: int = 1) -> None:
        """From the `first` operation on that it concerns; counted from now."""
        self._set(count=0, error=fault.error, kinds=fault.kinds, halved=fault.halved, first=first)

    def turn_off(self) -> None:
        self._set(first=0)

    def count_only(self, fault: Fault, *, record: bool = False) -> None:
        """Fails nothing, counts what `fault` would concern and records, if wanted, all."""
        self._log.write_bytes(b"")  # the same file: the shim holds it open, and appends
        self._set(first=0, count=0, kinds=fault.kinds, halved=False, error=0, record=record)

    def stop_recording(self) -> None:
        self._set(record=False)

    @property
    def count(self) -> int:
        return int(struct.unpack_from("q", self._page, 0)[0])

    def read_recording(self) -> list[DiskOperation]:
        return list(_read_operations(self._log.read_bytes()))

    @property
    def _log(self) -> Path:
        return Path(f"{self.path}.log")

    def _set(self, **values: int) -> None:
        # `first` last: until it is there nothing fails.
        for name in sorted(values, key=lambda name: name == "first"):
            struct.pack_into("q", self._page, 8 * _FIELDS.index(name), values[name])


def compile_shim() -> Path:
    """The shim as a library, compiled once a process. Raises `OSError` without a compiler."""
    made = Path(tempfile.gettempdir()) / f"osler-faults-{os.getuid()}-{_SHIM.stat().st_mtime_ns}.so"
    if not made.exists():
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            raise FileNotFoundError(errno.ENOENT, "no C compiler")
        draft = made.with_suffix(f".{os.getpid()}")
        command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(draft), str(_SHIM), "-ldl"]
        subprocess.run(command, check=True)  # noqa: S603
        draft.replace(made)
    return made


# Power cuts ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DiskOperation:
    what: str
    """C create, W write, T truncate, F flush a file, D flush a folder, M mkdir, R rename, L link,
    U delete."""
    path: str
    other: str
    at: int
    data: bytes


def _read_operations(log: bytes) -> Iterator[DiskOperation]:
    at, head = 0, struct.Struct("=cIIQQ")
    while at + head.size <= len(log):
        what, one, two, place, length = head.unpack_from(log, at)
        at += head.size
        path, other = log[at : at + one].decode(), log[at + one : at + one + two].decode()
        at += one + two
        size = length if what in (b"W", b"F") else 0
        yield DiskOperation(what.decode(), path, other, place, log[at : at + size])
        at += size


@dataclass
class _Inode:
    """A file: what processes see of it, and what is on the platter."""

    now: bytearray = field(default_factory=bytearray)
    synced: bytes = b""


@dataclass
class RecordedDisk:
    """A folder as processes saw it, and as a power cut may leave it."""

    folder: Path
    names: dict[str, _Inode | None] = field(default_factory=dict)
    """Of each path; `None` = a folder."""
    synced: dict[str, _Inode | None] = field(default_factory=dict)

    @classmethod
    def of_folder(cls, folder: Path) -> RecordedDisk:
        made = cls(folder.resolve())
        for path in sorted(made.folder.rglob("*")):
            data = None if path.is_dir() else path.read_bytes()
            made.names[str(path)] = None if data is None else _Inode(bytearray(data), data)
        made.synced = dict(made.names)
        return made

    def apply(self, one: DiskOperation) -> None:
        match one.what:
            case "C":
                self.names.setdefault(one.path, _Inode())
            case "M":
                self.names[one.path] = None
            case "W" if file := self.names.get(one.path):
                file.now.extend(bytes(max(0, one.at - len(file.now))))
                file.now[one.at : one.at + len(one.data)] = one.data
            case "T" if file := self.names.get(one.path):
                file.now[:] = bytes(file.now[: one.at]).ljust(one.at, b"\0")
            case "F" if file := self.names.get(one.path):
                file.now[:], file.synced = one.data, one.data
            case "D":
                self._sync_folder(one.path)
            case "R":
                for path in [p for p in self.names if p == one.path or _below(p, one.path)]:
                    self.names[one.other + path[len(one.path) :]] = self.names.pop(path)
            case "L":
                self.names[one.other] = self.names[one.path]
            case "U":
                self.names.pop(one.path, None)
            case _:
                pass

    def _sync_folder(self, folder: str) -> None:
        """Its names count from now on, and those of what was moved into it."""
        kept = {p: f for p, f in self.synced.items() if os.path.dirname(p) != folder}
        mine = {p: f for p, f in self.names.items() if os.path.dirname(p) == folder}
        gone = {p for p in self.synced if os.path.dirname(p) == folder} - mine.keys()
        kept = {p: f for p, f in kept.items() if not any(_below(p, one) for one in gone)}
        for path, file in mine.items():
            if file is None and path not in self.synced:
                kept |= {p: f for p, f in self.names.items() if _below(p, path)}
        self.synced = {**kept, **mine}

    def lay_out(self, target: Path, *, strict: bool) -> None:
        """What a cut leaves: flushed contents under flushed names, or (not `strict`) under all
        names, as a journal that orders names but not contents leaves them."""
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        names = self.synced if strict else self.names
        for path in sorted(names):
            place = target / Path(path).relative_to(self.folder)
            file = names[path]
            if not place.parent.is_dir():  # its folder's own name was never flushed
                continue
            if file is None:
                place.mkdir(exist_ok=True)
            else:
                place.write_bytes(file.synced)


def _below(path: str, folder: str) -> bool:
    return path.startswith(f"{folder}/")
