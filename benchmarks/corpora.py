"""Every corpus of the shared test data goes in: files, records, documents, passages, drops.

    python benchmarks/corpora.py [--data FOLDER] [--store] [NAME …]

Prints a table in Markdown, a row for each folder of B_corpora and D_emr, then the reasons of
all drops. Reads and cuts; with `--store` it also adds each folder to a knowledge base of its
own in a temporary place. No content of the data is printed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from osler.kb.base import KnowledgeBase
from osler.kb.ingest.chunk import document_passages
from osler.sources.catalogue import EMR
from osler.sources.discover import discover
from osler.sources.reading import read_records
from osler.sources.records import Deleted, Document, Drop

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data"
PARTS = ("B_corpora", "D_emr")
SOURCES = {
    "guidelines": "guideline",
    "jats_nxml": "research",
    "medquad": "web",
    "pdf": "guideline",
    "pubmed": "research",
    "textbooks": "book",
    "wikipedia": "wiki",
    "zh": "book",
}


@dataclass
class Taken:
    """What became of one folder."""

    name: str
    formats: Counter[str] = field(default_factory=Counter)
    """Files (members of archives, folders of tables) by format."""
    records: int = 0
    """All that the parsers yielded: documents, deletions and drops."""
    documents: int = 0
    passages: int = 0
    drops: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    @property
    def files(self) -> int:
        return sum(self.formats.values())


def take(folder: Path, source: str) -> Taken:
    """Reads a folder as `osler kb add` does, without a store."""
    taken, start = Taken(folder.name), time.perf_counter()
    for found in discover([folder]):
        if isinstance(found, Drop):
            taken.drops[found.reason] += 1
            continue
        taken.formats[found.parser.name] += 1
        for record in read_records(found):
            taken.records += 1
            match record:
                case Document():
                    taken.documents += 1
                    taken.passages += sum(1 for _ in document_passages(record, source))
                case Deleted():
                    taken.drops["withdrawn"] += 1
                case Drop():
                    taken.drops[record.reason] += 1
    taken.seconds = time.perf_counter() - start
    return taken


def stored(folder: Path, source: str) -> str:
    """What `osler kb add` says of the folder."""
    with tempfile.TemporaryDirectory() as place, KnowledgeBase.create(Path(place) / "kb") as kb:
        added = kb.add([folder], source=source)
    return (
        f"{folder.name}: stored {added.documents:,} documents, {added.passages:,} passages;"
        f" unknown {len(added.unknown)}, failed {len(added.failed)}"
    )


def table(rows: list[Taken]) -> str:
    lines = [
        "| corpus | files | formats | records | documents | passages | drops | s |",
        "|---|--:|---|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        formats = ", ".join(f"{name} {n:,}" for name, n in sorted(row.formats.items()))
        lines.append(
            f"| {row.name} | {row.files:,} | {formats} | {row.records:,} | {row.documents:,}"
            f" | {row.passages:,} | {row.drops.total():,} | {row.seconds:.1f} |"
        )
    return "\n".join(lines)


def reasons(rows: list[Taken]) -> str:
    lines = ["| corpus | dropped because | count |", "|---|---|--:|"]
    for row in rows:
        lines += [f"| {row.name} | {why} | {n:,} |" for why, n in row.drops.most_common()]
    return "\n".join(lines)


def folders(data: Path, names: list[str]) -> list[tuple[Path, str]]:
    """Each corpus with the source that it would be added to."""
    found = [
        (folder, EMR if part == "D_emr" else SOURCES.get(folder.name, "web"))
        for part in PARTS
        if (data / part).is_dir()
        for folder in sorted((data / part).iterdir())
        if folder.is_dir()
    ]
    return [(folder, source) for folder, source in found if not names or folder.name in names]


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("names", nargs="*", help="only these folders")
    arguments.add_argument("--data", type=Path, default=DATA)
    arguments.add_argument("--store", action="store_true", help="add them to a store as well")
    given = arguments.parse_args()
    wanted = folders(given.data, given.names)
    if not wanted:
        print(f"no corpora in {given.data}", file=sys.stderr)
        return 1
    rows = [take(folder, source) for folder, source in wanted]
    print(table(rows), reasons(rows), sep="\n\n")
    if given.store:
        print("", *(stored(folder, source) for folder, source in wanted), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
