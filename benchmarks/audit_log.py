"""What an entry of the audit log costs, and which changes of a long log are found.

    python benchmarks/audit_log.py FOLDER [ENTRIES]

Of every single bit of the entries it is asked whether the hash of its line changes, or the number
of lines: then the root does, as SHA-256 is taken to have no collisions. Whole verifications are
tried on a sample of bits and bytes, on each truncation at the end of a line of the first 500
entries' log and on each byte of its last three lines, and on every fiftieth of the long one.
"""

from __future__ import annotations

import hashlib
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from osler.app.audit.checkpoints import CheckpointSigner
from osler.app.audit.log import ENTRIES, PUBLIC, AuditLog, verify_log

RECORD = {
    "what": "request",
    "method": "POST",
    "path": "/api/v1/search",
    "key": "ab12cd34ef56",
    "workspace": "default",
    "address": "127.0.0.1",
    "status": 200,
    "asked": "hmac-sha256:" + "0" * 64,
    "shown": "sha256:" + "1" * 64,
}


def main() -> None:
    folder = Path(tempfile.mkdtemp(dir=sys.argv[1]))
    many = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    log = AuditLog(folder, CheckpointSigner(folder / "key.pem"))
    took = []
    for _ in range(many):
        began = time.perf_counter()
        log.append(RECORD)
        took.append(time.perf_counter() - began)
    quantiles = statistics.quantiles(took, n=20)
    say = sys.stdout.write
    say(f"an entry: median {quantiles[9] * 1e3:.2f} ms, p95 {quantiles[18] * 1e3:.2f} ms\n")
    data = (folder / ENTRIES).read_bytes()
    bits, unseen = count_unseen_bits(data)
    say(f"single bits: {unseen} of {bits:,} leave their line's hash as it was\n")
    tried, unseen = try_changes(folder, data)
    say(f"random bits, bytes and truncations: {unseen} of {tried} found by no verification\n")
    tried, unseen = try_truncations(folder, data, ends_of(data)[49:-1:50])
    say(f"truncations at every fiftieth line end: {unseen} of {tried} found by none\n")
    short = Path(tempfile.mkdtemp(dir=sys.argv[1]))
    small = AuditLog(short, CheckpointSigner(short / "key.pem"))
    for _ in range(_SHORT):
        small.append(RECORD)
    data = (short / ENTRIES).read_bytes()
    last = ends_of(data)[-4]
    places = [0, *ends_of(data)[:-1], *range(last, len(data))]
    tried, unseen = try_truncations(short, data, places)
    say(f"{_SHORT} entries, every line end and every byte of the last three: {unseen} of {tried}\n")


_SHORT = 500


def count_unseen_bits(data: bytes) -> tuple[int, int]:
    """How many bits there are, and how many can be turned without another hash of their line."""
    bits = unseen = 0
    for line in data.splitlines():
        leaf = hashlib.sha256(line).digest()
        changed = bytearray(line)
        for at in range(len(line)):
            for bit in range(8):
                changed[at] ^= 1 << bit
                bits += 1
                unseen += hashlib.sha256(changed).digest() == leaf
                changed[at] ^= 1 << bit
    return bits, unseen


def ends_of(data: bytes) -> list[int]:
    """Places after each line break."""
    return [at + 1 for at, byte in enumerate(data) if byte == 10]


def try_truncations(folder: Path, data: bytes, places: Sequence[int]) -> tuple[int, int]:
    """How many were tried, and how many of them no verification found."""
    return _count_unseen(folder, (data[:place] for place in places))


def try_changes(folder: Path, data: bytes, rounds: int = 100) -> tuple[int, int]:
    rng = random.Random(1)

    def changes() -> Iterator[bytes]:
        for _ in range(rounds):
            at = rng.randrange(len(data))
            for byte in (
                data[at] ^ 1 << rng.randrange(8),
                (data[at] + rng.randrange(1, 256)) % 256,
            ):
                yield data[:at] + bytes([byte]) + data[at + 1 :]
            yield data[: rng.randrange(len(data))]

    return _count_unseen(folder, changes())


def _count_unseen(folder: Path, spoiled: Iterable[bytes]) -> tuple[int, int]:
    tried = unseen = 0
    public = (folder / PUBLIC).read_text().strip()
    for one in spoiled:
        (folder / ENTRIES).write_bytes(one)
        tried += 1
        unseen += not verify_log(folder, public).problems
    return tried, unseen


if __name__ == "__main__":
    main()
