"""What an entry of the audit log costs, and which changes of a long log are found.

    python benchmarks/audit_log.py FOLDER [ENTRIES]

Of every single bit of the entries it is asked whether the hash of its line changes: then the root
does, as SHA-256 is taken to have no collisions. Whole verifications are tried on a sample.
"""

from __future__ import annotations

import hashlib
import random
import statistics
import sys
import tempfile
import time
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
    say(f"single bits: {unseen} of {bits:,} leave their line's hash as it was\n")
    say(f"verifications of a changed log that found nothing: {_try_sample(folder, data)} of 200\n")


def _try_sample(folder: Path, data: bytes) -> int:
    rng, public = random.Random(1), (folder / PUBLIC).read_text().strip()
    unseen = 0
    for _ in range(100):
        changed = bytearray(data)
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        for spoiled in (bytes(changed), data[: rng.randrange(len(data))]):
            (folder / ENTRIES).write_bytes(spoiled)
            unseen += not verify_log(folder, public).problems
    return unseen


if __name__ == "__main__":
    main()
