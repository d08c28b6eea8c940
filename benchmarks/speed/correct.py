"""How long after a correction a search finds it, by words and by meaning, in a large base.

    python benchmarks/speed/correct.py [PASSAGES] [ROUNDS]

Passages are random words of a made-up vocabulary, vectors of 384 numbers are a hash of them; the
reader is another object on the same folder, which holds the old vectors in memory. Seconds run from
the call of `correct` until the search that finds the new text has returned it.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from osler.kb.base import KnowledgeBase
from osler.kb.search import edge
from osler.kb.search.base import BackendChoice, Kind
from osler_lab.testing.scripted import HashingEncoder


class Wide(HashingEncoder):
    """With vectors as long as MiniLM's."""

    identity, dimension = "hashing-384", 384


def main(passages: int, rounds: int) -> None:
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=7)) for _ in range(20_000)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "texts.jsonl"
        with path.open("w") as out:
            for number in range(passages):
                text = " ".join(draw.choices(words, k=80))
                out.write(json.dumps({"id": f"d{number}", "title": "T", "content": text}) + "\n")
        encoder = Wide()
        engines: tuple[Kind, ...] = ("sqlite", "edge") if edge.is_installed() else ("sqlite",)
        for engine in engines:
            kb_path = Path(folder) / engine
            with KnowledgeBase.create(kb_path, BackendChoice(engine)) as kb:
                kb.add([path], source="book")
                kb.build(encoder)
                measure(kb, kb_path, engine, encoder, passages, rounds)


def measure(
    kb: KnowledgeBase,
    path: Path,
    engine: Kind,
    encoder: HashingEncoder,
    passages: int,
    rounds: int,
) -> None:
    writes, by_words, by_vector = [], [], []
    with KnowledgeBase.open(path, BackendChoice(engine)) as reader:
        for round in range(rounds):
            (held,) = encoder.encode(["warm"], kind="query")
            reader.by_vector(held, encoder=encoder.identity, k=1)
            id, text = f"book:d{round * 7}#0", f"zzcorrected{round} zzstatement{round} of fact"
            start = time.perf_counter()
            kb.correct(id, text, encoder)
            writes.append(time.perf_counter() - start)
            while [p.id for p, _ in reader.by_words([f"zzcorrected{round}"], k=1)] != [id]:
                pass
            by_words.append(time.perf_counter() - start)
            (query,) = encoder.encode([f"T\n{text}"], kind="query")
            while reader.by_vector(query, encoder=encoder.identity, k=1)[0][0].id != id:
                pass
            by_vector.append(time.perf_counter() - start)
    for name, times in (("write", writes), ("by words", by_words), ("by vector", by_vector)):
        print(
            f"{engine} {passages:,} {name}: median {statistics.median(times):.2f} s,"
            f" slowest {max(times):.2f} s of {len(times)}",
            flush=True,
        )


if __name__ == "__main__":
    main(*(int(value) for value in (sys.argv[1:3] or ("100000", "10"))))
