"""The Merkle tree of RFC 6962, §2.1: leaves and nodes are hashed with different first bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence


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
