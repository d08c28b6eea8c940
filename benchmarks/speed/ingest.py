"""How fast PubMed XML is parsed and stored, and whether memory grows with the number of records.

    python benchmarks/speed/ingest.py [RECORDS ...] [--encode]

The records of the shared sample file are repeated under new PMIDs, with a word of their own in
each title and abstract, in files of 30,000 as PubMed issues them. Prints for each number of
records the seconds, records a second and the largest memory of the writing process and of the
one that parses. With `--encode` it builds afterwards and compares passages a second with the
bare encoder's on the same texts.
"""

from __future__ import annotations

import argparse
import gzip
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from osler.kb.base import KnowledgeBase

SAMPLE = Path(__file__).parents[3] / "shared/data/B_corpora/pubmed/pubmed_sample_baseline.xml.gz"
A_FILE = 30_000


def records() -> tuple[bytes, list[bytes]]:
    """What stands before the first record, and the records."""
    data = gzip.decompress(SAMPLE.read_bytes())
    start = data.index(b"<PubmedArticle>")
    return data[:start], re.findall(rb"<PubmedArticle>.*?</PubmedArticle>\s*", data, re.DOTALL)


def write(folder: Path, count: int) -> Iterator[Path]:
    head, sample = records()
    for first in range(0, count, A_FILE):
        path = folder / f"pubmed26n{first // A_FILE + 1:04}.xml.gz"
        with gzip.open(path, "wb", compresslevel=4) as file:
            file.write(head)
            for n in range(first, min(first + A_FILE, count)):
                file.write(_renamed(sample[n % len(sample)], 10_000_000 + n))
            file.write(b"</PubmedArticleSet>\n")
        yield path


def _renamed(record: bytes, pmid: int) -> bytes:
    record = re.sub(rb"(<PMID[^>]*>)\d+", rb"\g<1>%d" % pmid, record, count=1)
    record = re.sub(rb"(<ArticleTitle[^>]*>)", rb"\g<1>Study w%x. " % pmid, record, count=1)
    return re.sub(rb"(<AbstractText[^>]*>)", rb"\g<1>Case w%x. " % pmid, record, count=1)


def child(kb_path: Path, data: Path) -> None:
    """One measured run, in a process of its own so that its memory is its own."""
    began = time.perf_counter()
    with KnowledgeBase.create(kb_path) as kb:
        added = kb.add([data], source="research")
    took = time.perf_counter() - began
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    parser = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    size = sum(file.stat().st_size for file in kb_path.iterdir()) >> 20
    rate = added.documents / took
    print(
        f"{added.documents:>9,}  {added.passages:>9,}  {took:>7.1f}  {rate:>9,.0f}"
        f"  {own:>6} MB  {parser:>6} MB  {size:>6} MB",
        flush=True,
    )


def encode(kb_path: Path) -> None:
    from osler.kb.encoders.base import MiniLMEncoder
    from osler.kb.store.passages import indexed_text

    encoder = MiniLMEncoder()
    with KnowledgeBase.open(kb_path) as kb:
        texts = [indexed_text(kb.get(id)) for id in _some_ids(kb_path, 256)]
        began = time.perf_counter()
        encoder.encode(texts, kind="passage")
        bare = len(texts) / (time.perf_counter() - began)
        built = kb.build(encoder)
    rate = built.encoded / built.seconds
    print(f"bare encoder {bare:.1f}/s, build {rate:.1f}/s: {100 * rate / bare:.0f} %")


def _some_ids(kb_path: Path, count: int) -> list[str]:
    import sqlite3

    with sqlite3.connect(kb_path / "kb.sqlite") as db:
        rows = db.execute("SELECT id FROM passage ORDER BY number LIMIT ?", (count,)).fetchall()
    return [row[0] for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("records", nargs="*", type=int, default=[10_000, 300_000])
    parser.add_argument("--encode", action="store_true")
    parser.add_argument("--child", nargs=2, type=Path)
    asked = parser.parse_args()
    if asked.child:
        child(*asked.child)
        return
    print("  records   passages  seconds  records/s  writer     parser     on disk")
    for count in asked.records:
        with tempfile.TemporaryDirectory() as name:
            data = Path(name) / "data"
            data.mkdir()
            list(write(data, count))
            kb_path = Path(name) / "kb"
            run = [sys.executable, __file__, "--child", str(kb_path), str(data)]
            subprocess.run(run, check=True)  # noqa: S603
            if asked.encode:
                encode(kb_path)


if __name__ == "__main__":
    main()
