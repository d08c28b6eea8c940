"""Signed tree heads: how many entries there were, and the root of their tree."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from osler.errors import BadConfig, require_extra, translate_os_errors
from osler.kb.store.durable import write_private

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def hash_leaf(entry: bytes) -> bytes:
    return hashlib.sha256(b"\x00" + entry).digest()


def hash_node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


class MerkleFrontier:
    """The roots of the whole subtrees of a growing tree: all that appending needs, log n hashes."""

    def __init__(self, leaves: Iterable[bytes] = ()) -> None:
        self.size = 0
        self._roots: list[bytes] = []
        for leaf in leaves:
            self.append(leaf)

    def append(self, leaf: bytes) -> None:
        """Adds the hash of an entry."""
        self._roots.append(leaf)
        self.size += 1
        # As many whole subtrees end here as the new size has trailing zero bits.
        for _ in range((self.size & -self.size).bit_length() - 1):
            right, left = self._roots.pop(), self._roots.pop()
            self._roots.append(hash_node(left, right))

    def root(self) -> bytes:
        """MTH of RFC 6962: of no leaves, the hash of nothing."""
        if not self._roots:
            return hashlib.sha256().digest()
        root = self._roots[-1]
        for left in reversed(self._roots[:-1]):
            root = hash_node(left, root)
        return root

    def copy(self) -> MerkleFrontier:
        twin = MerkleFrontier()
        twin.size, twin._roots = self.size, [*self._roots]
        return twin


def prove_inclusion(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """PATH(index, leaves) of RFC 6962, §2.1.1: the siblings from the leaf up to the root."""
    if len(leaves) == 1:
        return []
    half = 1 << ((len(leaves) - 1).bit_length() - 1)  # the largest power of two below the size
    left, right = leaves[:half], leaves[half:]
    if index < half:
        return [*prove_inclusion(left, index), MerkleFrontier(right).root()]
    return [*prove_inclusion(right, index - half), MerkleFrontier(left).root()]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    size: int
    """Entries."""
    root: str
    """Of their tree, in hexadecimal."""
    at: str
    """ISO 8601, UTC."""
    signature: str = ""
    """Ed25519 over `signed_bytes`, in hexadecimal."""

    def signed_bytes(self) -> bytes:
        return f"osler audit 1\n{self.size}\n{self.root}\n{self.at}\n".encode()

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def read_checkpoints(lines: Iterable[str]) -> list[Checkpoint]:
    """Raises `ValueError` for a line that is no checkpoint."""
    try:
        return [Checkpoint(**json.loads(line)) for line in lines if line.strip()]
    except TypeError as error:
        raise ValueError(str(error)) from error


class CheckpointSigner:
    """Signs with a key of its own, which it makes at the first use (a file of the owner's alone).

    Raises `BadConfig` without the extra `audit`, and for a key that cannot be read or made.
    """

    def __init__(self, key_file: Path) -> None:
        with require_extra("audit", "the audit log needs the extra `audit`"):
            from cryptography.hazmat.primitives import serialization
            from cryptography.hazmat.primitives.asymmetric import ed25519
        if not key_file.exists():
            fresh = ed25519.Ed25519PrivateKey.generate()
            pem = fresh.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            fix = "set audit.path to a folder that can be written"
            with translate_os_errors(f"{key_file} cannot be made", BadConfig, fix):
                write_private(key_file, pem)
        try:
            loaded = serialization.load_pem_private_key(key_file.read_bytes(), None)
        except (OSError, ValueError, TypeError) as error:
            fix = "set audit.key_file to an Ed25519 key in PEM, or to a file that is to be made"
            raise BadConfig(f"{key_file} holds no signing key: {error}", fix=fix) from error
        if not isinstance(loaded, ed25519.Ed25519PrivateKey):
            raise BadConfig(f"{key_file} is not an Ed25519 key", fix="make another")
        self._key: Ed25519PrivateKey = loaded

    @property
    def public_key(self) -> str:
        """In hexadecimal: 32 bytes."""
        return self._key.public_key().public_bytes_raw().hex()

    def sign(self, size: int, root: bytes, at: str) -> Checkpoint:
        plain = Checkpoint(size, root.hex(), at)
        return Checkpoint(size, root.hex(), at, self._key.sign(plain.signed_bytes()).hex())


def is_signed_by(checkpoint: Checkpoint, public_key: str) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key)).verify(
            bytes.fromhex(checkpoint.signature), checkpoint.signed_bytes()
        )
    except (InvalidSignature, ValueError):
        return False
    return True
