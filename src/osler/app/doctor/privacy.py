"""Whether others on this machine, or whoever takes its disk, can read what is in home."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Literal

from osler.app.config import Settings
from osler.kb.store.access import FILE as DATABASE
from osler.sources.patients.secret import FILE as KEY

Encryption = Literal["encrypted", "not encrypted", "unknown"]
_WORST_FIRST: tuple[Encryption, ...] = ("not encrypted", "unknown", "encrypted")
_LOOKED_AT = 10_000
"""Files at most: a sign is enough."""


def open_to_others(settings: Settings) -> list[Path]:
    """Files of home that other users of this machine may read."""
    if not settings.home.is_dir() or os.name == "nt":
        return []
    within_reach = islice(_files_within_reach(settings.home), _LOOKED_AT)
    return [path for path in within_reach if path.stat().st_mode & 0o044]


def _files_within_reach(folder: Path) -> Iterator[Path]:
    # Below a folder that nobody else may enter, nothing can be read.
    if folder.stat().st_mode & 0o011 == 0:
        return
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            yield from _files_within_reach(path)
        elif not path.is_symlink():
            yield path


def has_plain_pseudonyms(settings: Settings) -> bool:
    """Whether the knowledge base is from before there was a key: its pseudonyms are plain hashes,
    which anybody with a list of record numbers can try."""
    folder = settings.kb.path
    return (folder / DATABASE).exists() and not (folder / KEY).exists()


def disk_encryption(place: Path, *, root: Path = Path("/")) -> Encryption:
    """Whether the file system of `place` lies on an encrypted device, as far as Linux says.

    "unknown" on other systems, and where the device is not this machine's to see (a container,
    a network drive, a disk that encrypts itself).
    """
    if sys.platform != "linux":
        return "unknown"
    while not place.exists():
        place = place.parent
    number = place.stat().st_dev
    device = root / "sys" / "dev" / "block" / f"{os.major(number)}:{os.minor(number)}"
    return _device_encryption(device)


def _device_encryption(device: Path) -> Encryption:
    """dm-crypt names its devices CRYPT-…; a logical volume lies on others, its slaves."""
    if not device.exists():
        return "unknown"
    try:
        uuid = (device / "dm" / "uuid").read_text(encoding="ascii", errors="replace")
    except OSError:
        uuid = ""
    if uuid.startswith("CRYPT-"):
        return "encrypted"
    slaves = device / "slaves"
    below = (
        [_device_encryption(each) for each in sorted(slaves.iterdir())] if slaves.is_dir() else []
    )
    if below:
        return min(below, key=_WORST_FIRST.index)
    return "not encrypted"
