"""The secret of a knowledge base, under which pseudonyms are made, and what is de-identified.

Without it, whoever knows the numbers of a hospital can find a patient by hashing them all. It is
handed on in the environment: files are also read in processes of their own.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

FILE = "pseudonym.key"
_KEY, _SOURCES = "OSLER_PSEUDONYM_KEY", "OSLER_DEIDENTIFIED"
# The environment is the process's: two knowledge bases are written in turn.
_TURN = threading.RLock()


def make_secret(folder: Path) -> None:
    """Makes the file of the secret, for its owner alone, and flushes it with its name: with an
    empty one pseudonyms would be plain hashes. Raises `OSError`."""
    handle = os.open(folder / FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(secrets.token_hex(32).encode())
        file.flush()
        os.fsync(file.fileno())
    names = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(names)
    finally:
        os.close(names)


@contextmanager
def use_secret(folder: Path, deidentified: Collection[str]) -> Iterator[None]:
    """Within it, pseudonyms are those of this knowledge base. One that was made before there was
    a secret has none, and its pseudonyms stay plain hashes. Raises `OSError`."""
    path = folder / FILE
    values = {
        _KEY: path.read_text("ascii").strip() if path.exists() else "",
        _SOURCES: ",".join(sorted(deidentified)),
    }
    with _TURN:
        before = {name: os.environ.get(name) for name in values}
        os.environ.update(values)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


def hash_keyed(text: str) -> str:
    """16 hexadecimal digits: HMAC-SHA256 under the secret, plain SHA-256 without one."""
    data = text.encode("utf-8", "surrogatepass")
    if key := os.environ.get(_KEY):
        return hmac.new(bytes.fromhex(key), data, hashlib.sha256).hexdigest()[:16]
    return hashlib.sha256(data).hexdigest()[:16]


def is_deidentified(source: str) -> bool:
    """Whether texts of the source lose their identifiers when they are added."""
    return source in os.environ.get(_SOURCES, "").split(",")
