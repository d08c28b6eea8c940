"""Consumers' questions over drug labels: right drug, right section, another drug; and reading.

    python benchmarks/natural_questions.py --sets labels --half test --data . --homes H --log-dir L
    python benchmarks/label_questions.py L test
    python benchmarks/label_questions.py --read 10000

The first command asks; the second counts, of each way's first quotes, those in a right section of
a right drug and those of another drug's label. The third writes so many labels to openFDA's and
DailyMed's schema, reads them, and tells seconds, memory and drops.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing import Process
from pathlib import Path

from natural.asking import WAYS, AskedRow, NaturalLog
from natural.labels import (
    dailymed_archive,
    openfda_download,
    openfda_result,
    read_drugs,
    read_questions,
)

from osler.sources.reading import read
from osler.sources.records import Document, Drop
from osler_lab.evaluate.intervals import proportion

_PART = 2_000
"""Labels of one file."""
_FILL = " This sentence stands for the length that labels have in practice." * 25


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("log", type=Path, nargs="?")
    parser.add_argument("half", choices=("dev", "seen", "test"), nargs="?", default="dev")
    parser.add_argument("--read", type=int, metavar="N", help="labels to write and read")
    given = parser.parse_args()
    if given.read:
        with tempfile.TemporaryDirectory() as folder:
            # In a process of its own: the memory that is told is the reader's.
            writer = Process(target=_write_labels, args=(Path(folder), given.read))
            writer.start()
            writer.join()
            print(json.dumps(_measure_reading(Path(folder)), indent=1))
    elif given.log:
        rows = NaturalLog(given.log).read("labels", given.half)
        for way in WAYS:
            if own := [row for row in rows if row.way == way]:
                print(json.dumps(_count_way(way, own)))


def _count_way(way: str, rows: list[AskedRow]) -> dict[str, object]:
    ids = {drug.ingredient: drug.set_id for drug in read_drugs()}
    right = {one.id: {ids[drug] for drug, _ in one.right} for one in read_questions()}
    quoted = [
        (row, row.quotes[0][0].partition(":")[2].partition("#")[0]) for row in rows if row.quotes
    ]
    other = sum(set_id not in right[row.id] for row, set_id in quoted)
    any_other = sum(
        any(id.partition(":")[2].partition("#")[0] not in right[row.id] for id, _ in row.quotes)
        for row in rows
    )
    n = len(rows)
    return {
        "way": way,
        "n": n,
        "first in a right section of a right drug": str(proportion(sum(r.first for r in rows), n)),
        "first of another drug's label": str(proportion(other, n)),
        "any of another drug's label": str(proportion(any_other, n)),
        "outcomes": Counter(row.outcome for row in rows),
    }


def _write_labels(folder: Path, count: int) -> None:
    """Half of them as openFDA's download, half as DailyMed's archives."""
    drugs = read_drugs()
    for part, start in enumerate(range(0, count, _PART)):
        named = [
            replace(drugs[n % len(drugs)], ingredient=f"{drugs[n % len(drugs)].ingredient} {n}")
            for n in range(start, min(start + _PART, count))
        ]
        if part % 2:
            (folder / f"dm_spl_{part}.zip").write_bytes(dailymed_archive(named, _FILL))
        else:
            results = [openfda_result(one, more=_FILL) for one in named]
            (folder / f"drug-label-{part}.json.zip").write_bytes(openfda_download(results))


def _measure_reading(folder: Path) -> dict[str, object]:
    began, used = time.perf_counter(), time.process_time()
    counts: Counter[str] = Counter()
    for kind in _kinds_read(folder, counts):
        counts[kind] += 1
    seconds, used = time.perf_counter() - began, time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {
        **counts,
        "seconds": round(seconds, 1),
        "labels a second": round(counts["documents"] / seconds),
        "labels a second of the processor": round(counts["documents"] / used),
        "peak MiB": peak,
    }


def _kinds_read(folder: Path, counts: Counter[str]) -> Iterator[str]:
    for record in read(folder):
        if isinstance(record, Document):
            counts["characters"] += sum(len(one.text) for one in record.sections)
            yield "documents"
        elif isinstance(record, Drop):
            yield f"dropped: {record.reason}"


if __name__ == "__main__":
    main()
