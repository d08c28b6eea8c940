"""Answers searches in one generation of the embedded index; its own process.

    python -m osler.kb.search.edge_worker GENERATION

It reads requests from standard input and ends when that ends: it cannot outlive the
process that started it, however that one died.
"""

from __future__ import annotations

import signal
import sys
from array import array
from pathlib import Path
from typing import Any

from osler.kb.search import shard
from osler.kb.search.edge import receive_message, send_message


def main(folder: Path) -> None:
    # Ctrl-C goes to the whole group; the process that asks decides what becomes of a search.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    shelves = {entry.name: shard.load_shard(entry) for entry in folder.iterdir() if entry.is_dir()}
    send_message(sys.stdout.buffer, {"ready": sorted(shelves)})
    while message := receive_message(sys.stdin.buffer):
        send_message(sys.stdout.buffer, *_answer_request(shelves, *message))


def _answer_request(
    shelves: dict[str, Any], request: dict[str, Any], data: bytes
) -> tuple[dict[str, Any], bytes]:
    """Sizes of the rankings, and then of all of them the numbers, then the scores."""
    dense = None
    if data:
        dense = array("f")
        dense.frombytes(data)
    try:
        rankings = shard.search_shard(
            shelves[request["shelf"]],
            k=request["k"],
            conditions=request["conditions"],
            words=request["words"],
            dense=dense.tolist() if dense is not None else None,
        )
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}, b""
    numbers = array("q", [number for ranking in rankings for number, _ in ranking])
    scores = array("f", [score for ranking in rankings for _, score in ranking])
    return {"sizes": [len(ranking) for ranking in rankings]}, numbers.tobytes() + scores.tobytes()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
