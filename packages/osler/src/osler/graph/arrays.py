"""Arrays that follow from a graph's tables, in one file that is mapped, not read.

The file is derived: it carries the version of the tables it was made of. When it is of another
version, damaged or missing, it is made again.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
FILE = "graph.arrays"
# Header: magic (8 bytes), length of the JSON that follows (8 bytes, little-endian), JSON.
_MAGIC = b"OSLERGR1"
# Every array begins at a multiple of a cache line.
_ALIGN = 64


def write_arrays(
    folder: Path, stamp: str, arrays: Mapping[str, Array], *, file: str = FILE
) -> None:
    """Replaces the file in one step. Raises `OSError` where it cannot be written."""
    places, at = [], 0
    for name, array in arrays.items():
        places.append((name, array.dtype.str, array.size, at))
        at += -(-array.nbytes // _ALIGN) * _ALIGN
    header = json.dumps({"stamp": stamp, "size": at, "arrays": places}).encode()
    start = -(-(16 + len(header)) // _ALIGN) * _ALIGN
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".graph-", delete=False) as temporary:
        try:
            temporary.write(_MAGIC + len(header).to_bytes(8, "little") + header)
            temporary.write(b"\0" * (start - 16 - len(header)))
            for array in arrays.values():
                temporary.write(np.ascontiguousarray(array).data)
                temporary.write(b"\0" * (-array.nbytes % _ALIGN))
            temporary.flush()
            # Readers that have the old file mapped keep it: the name alone moves on.
            os.replace(temporary.name, folder / file)
        except BaseException:
            Path(temporary.name).unlink(missing_ok=True)
            raise


def gather_slices(start: Array, nodes: Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The elements of `start[n]:start[n + 1]` for all nodes at once, without a Python loop.

    Returns for each element its row (the place of its node in `nodes`) and its index.
    """
    counts = start[nodes + 1] - start[nodes]
    row = np.repeat(np.arange(len(nodes)), counts)
    offset = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    return row, start[nodes][row] + offset


def read_arrays(folder: Path, stamp: str, *, file: str = FILE) -> dict[str, Array] | None:
    """Maps the arrays; `None` when the file is absent, of another version or not whole."""
    try:
        # As a plain array: each slice of a memmap object costs a microsecond of bookkeeping.
        raw = np.asarray(np.memmap(folder / file, dtype=np.uint8, mode="r"))
        if bytes(raw[:8]) != _MAGIC:
            return None
        length = int.from_bytes(bytes(raw[8:16]), "little")
        header = json.loads(bytes(raw[16 : 16 + length]))
        start = -(-(16 + length) // _ALIGN) * _ALIGN
        if header["stamp"] != stamp or len(raw) < start + header["size"]:
            return None
        return {
            name: raw[start + at : start + at + count * np.dtype(kind).itemsize].view(kind)
            for name, kind, count, at in header["arrays"]
        }
    except (OSError, ValueError, KeyError, TypeError):
        return None
