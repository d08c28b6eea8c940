"""Claims on batches: files that expire, so that several hosts share one log folder.

A claim is made by creating a file that must not exist, which is atomic on local disks and on
NFS alike. It is kept alive by its time of change. Doing a batch twice would do no harm, as
one try of a sample counts; it is only waste.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from osler.errors import BadRun, translate_os_errors
from osler.text import make_slug

# Two minutes: `JobRunner` touches a claim every quarter of this, so three touches may be lost
# before another host takes the batch over.
LEASE = 120.0
"""Seconds without a sign of life after which a batch is free again."""


@dataclass(frozen=True)
class Claims:
    """The claims of one log folder, as one writer sees them."""

    folder: Path
    writer: str
    lease: float = LEASE
    clock: Callable[[], float] = time.time

    def take_batch(self, batch: str) -> bool:
        """Whether the batch is now this writer's. Raises `BadRun` where the disk fails."""
        with translate_os_errors(
            f"{self.folder} cannot be written", BadRun, "make room, then run the same command again"
        ):
            return self._try_taking(batch)

    def _try_taking(self, batch: str) -> bool:
        self.folder.mkdir(exist_ok=True)
        path = self._claim_path(batch)
        if self._create_claim(path):
            return True
        if not self._is_abandoned(path):
            return False
        # Only one of several who see it abandoned can rename it; the others find it gone.
        grave = path.with_name(f".{path.name}.{self.writer}")
        with contextlib.suppress(OSError):
            path.rename(grave)
            grave.unlink()
        return self._create_claim(path)

    def touch_claim(self, batch: str) -> None:
        """A sign of life."""
        with contextlib.suppress(OSError):
            now = self.clock()
            os.utime(self._claim_path(batch), (now, now))

    def release_batch(self, batch: str) -> None:
        """Frees the batch, unless another writer has taken it over."""
        path = self._claim_path(batch)
        with contextlib.suppress(OSError):
            # After a long suspension the lease may have expired and the file may be another's.
            if path.read_text(encoding="utf-8") == self._owner_line():
                path.unlink()

    def _create_claim(self, path: Path) -> bool:
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(self._owner_line())
        except FileExistsError:
            return False
        except OSError:
            with contextlib.suppress(OSError):  # half a claim would keep others waiting
                path.unlink()
            raise
        now = self.clock()
        os.utime(path, (now, now))
        return True

    def _is_abandoned(self, path: Path) -> bool:
        try:
            changed = path.stat().st_mtime
            # Split from the right: a host name may hold a space, the other two parts cannot.
            host, process, _ = path.read_text(encoding="utf-8").rsplit(" ", 2)
            pid = int(process)
        except FileNotFoundError:
            return True
        except ValueError:  # begun, and not yet written; or damaged
            return self.clock() - changed > self.lease
        # On this host a dead process frees its batch at once; on others only time tells.
        if host == socket.gethostname() and not _is_alive(pid):
            return True
        # A sign of life from the future is one from before the clock was set back.
        return not 0 <= self.clock() - changed + 1 <= self.lease

    def _owner_line(self) -> str:
        return f"{socket.gethostname()} {os.getpid()} {self.writer}"

    def _claim_path(self, batch: str) -> Path:
        return self.folder / make_slug(batch)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):  # no process has such a number
        return False
    except PermissionError:
        return True
    return True
