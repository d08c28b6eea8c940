"""The search measured on a retrieval set, beside Pyserini's published figures.

    python benchmarks/retrieval_set.py FOLDER [--split test] [--words] [--kb PLACE]

| FOLDER has | BEIR (v1.0.0) | `ir_datasets export NAME …` |
|---|---|---|
| passages | `corpus.jsonl` | `docs.jsonl` (`--format jsonl`) |
| queries | `queries.jsonl` | `queries.jsonl`, `queries.tsv` |
| judgements | `qrels/test.tsv` | `qrels`, `qrels.txt`, `test.qrels`, of four columns |

Figures are those of trec_eval, over the queries that the judgements name. The set gets a knowledge
base of its own, by default in Osler's home; what is encoded already is not encoded again. `--words`
searches by words alone.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from osler.build.models import load_encoder
from osler.errors import MalformedSource
from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import Encoder
from osler.kb.store.passages import Progress, ignore_progress
from osler.retrieve.hybrid import retriever_over
from osler.settings import load
from osler.text import make_slug
from osler.types import Hit
from osler_lab.evaluate.datasets.base import json_records, read_text
from osler_lab.evaluate.intervals import Estimate, mean
from osler_lab.evaluate.metrics.retrieval import ndcg, recall_at

CORPORA = ("corpus.jsonl", "corpus.jsonl.gz", "docs.jsonl", "docs.jsonl.gz")
QUERIES = ("queries.jsonl", "queries.jsonl.gz", "queries.json", "queries.tsv")
_SOURCE, _PASSAGES, _DOCUMENTS, _BEST = "research", 300, 100, 10
"""Passages searched for: a long document has several, and a hundred documents are wanted."""


class Published(NamedTuple):
    """One column of Pyserini's table for a set."""

    method: str
    ndcg_10: float
    recall_100: float


PUBLISHED: Mapping[str, tuple[Published, ...]] = {
    "nfcorpus": (
        Published("BM25, flat", 0.3218, 0.2457),
        Published("BM25, title and text", 0.3254, 0.2500),
        Published("SPLADE++ ED", 0.3470, 0.2844),
    ),
    "scifact": (
        Published("BM25, flat", 0.6789, 0.9253),
        Published("BM25, title and text", 0.6647, 0.9076),
        Published("SPLADE++ ED", 0.7041, 0.9353),
    ),
    "trec-covid": (
        Published("BM25, flat", 0.5947, 0.1091),
        Published("BM25, title and text", 0.6559, 0.1141),
        Published("SPLADE++ ED", 0.7274, 0.1282),
    ),
    "bioasq": (
        Published("BM25, flat", 0.5225, 0.7687),
        Published("BM25, title and text", 0.4646, 0.7145),
        Published("SPLADE++ ED", 0.4980, 0.7385),
    ),
}
"""By the name of the set's folder: Pyserini's reproductions of BEIR v1.0.0, test splits
(castorini.github.io/pyserini/2cr/beir.html; Kamalloo et al., arXiv:2306.07471)."""


@dataclass(frozen=True)
class RetrievalSet:
    """Queries with the grades of their documents, and the file of the documents."""

    name: str
    corpus: Path
    queries: Mapping[str, str]
    """Judged queries alone, by id."""
    grades: Mapping[str, Mapping[str, int]]
    """By query, the grade of each judged document: 0 is not relevant."""


@dataclass(frozen=True)
class MeasuredSearch:
    """A way of searching on a set; each figure is a mean over its queries."""

    method: str
    queries: int
    ndcg_10: Estimate
    recall_100: Estimate


def read_retrieval_set(folder: Path, split: str = "test") -> RetrievalSet:
    """Reads a folder of either form. Raises `MalformedSource` for a file that is missing or bad."""
    judgements = (f"qrels/{split}.tsv", f"{split}.qrels", "qrels.tsv", "qrels.txt", "qrels")
    corpus, query_file = _find_file(folder, CORPORA), _find_file(folder, QUERIES)
    qrels = _find_file(folder, judgements)
    grades = _read_grades(qrels)
    queries = {id: text for id, text in _read_queries(query_file) if id in grades}
    if missing := sorted(grades.keys() - queries.keys()):
        raise MalformedSource(f"{query_file}: no query {missing[0]!r}, which {qrels.name} judges")
    if not queries:
        raise MalformedSource(f"{qrels}: no query has a relevant document")
    return RetrievalSet(folder.resolve().name, corpus, queries, grades)


def _find_file(folder: Path, names: Sequence[str]) -> Path:
    found = next((folder / name for name in names if (folder / name).is_file()), None)
    if found is None:
        raise MalformedSource(
            f"{folder} holds none of {', '.join(names)}",
            fix="unpack a BEIR set, or write docs, queries and qrels by `ir_datasets export`",
        )
    return found


def _read_queries(path: Path) -> Iterator[tuple[str, str]]:
    if path.suffix == ".tsv":
        for row in _read_columns(path, "\t"):
            if len(row) > 1:
                yield row[0], row[1]
        return
    for line in json_records(path):
        id = line.optional_text("_id") or line.optional_text("query_id")
        yield id, line.optional_text("text")


def _read_columns(path: Path, delimiter: str | None = None) -> Iterator[list[str]]:
    lines = (line for line in read_text(path).splitlines() if line.strip())
    if delimiter:
        yield from csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    else:
        yield from map(str.split, lines)


def _read_grades(path: Path) -> dict[str, dict[str, int]]:
    """The queries that have a relevant document: trec_eval knows no figure for others."""
    grades: dict[str, dict[str, int]] = defaultdict(dict)
    for number, row in enumerate(_read_columns(path), 1):
        try:
            grades[row[0]][make_slug(row[-2])] = int(row[-1])
        except (ValueError, IndexError):
            if number > 1:  # BEIR's first line names the columns
                raise MalformedSource(
                    f"{path}:{number}: not a query, a document and its grade"
                ) from None
    return {query: known for query, known in grades.items() if max(known.values()) > 0}


def open_retrieval_base(
    path: Path,
    given: RetrievalSet,
    encoder: Encoder | None,
    progress: Progress = ignore_progress,
) -> KnowledgeBase:
    """The set's documents as a knowledge base at `path`, made or gone on with."""
    known = (path / "kb.sqlite").exists()
    kb = KnowledgeBase.open(path) if known else KnowledgeBase.create(path)
    kb.add([given.corpus], source=_SOURCE, progress=progress)
    kb.build(encoder, progress=progress)
    return kb


def measure_search(
    given: RetrievalSet,
    kb: KnowledgeBase,
    encoder: Encoder | None,
    progress: Progress = ignore_progress,
) -> list[MeasuredSearch]:
    """By words, and by words and meaning where there is an encoder: as `osler kb search` does."""
    ways = {"Osler, words": retriever_over(kb, None).search_index}
    if encoder is not None:
        ways["Osler, words and meaning"] = retriever_over(kb, encoder).search_index
    return [_measure_way(given, name, way, progress) for name, way in ways.items()]


def _measure_way(
    given: RetrievalSet, method: str, search: Callable[[str, int], list[Hit]], progress: Progress
) -> MeasuredSearch:
    gains, recalls = [], []
    for number, (id, text) in enumerate(given.queries.items()):
        progress(method, number, len(given.queries))
        hits = search(text, _PASSAGES)
        ranked = list(dict.fromkeys(_document_of(hit.passage.id) for hit in hits))
        grades = given.grades[id]
        relevant = [document for document, grade in grades.items() if grade > 0]
        gains.append(ndcg(ranked, grades, _BEST))
        recalls.append(recall_at(ranked, relevant, _DOCUMENTS))
    return MeasuredSearch(method, len(gains), mean(gains), mean(recalls))


def _document_of(passage: str) -> str:
    return passage.partition(":")[2].partition("#")[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--split", default="test")
    parser.add_argument("--words", action="store_true")
    parser.add_argument("--kb", type=Path)
    asked = parser.parse_args()
    settings = load({}, cwd=Path.cwd(), env=os.environ).settings
    given = read_retrieval_set(asked.folder, asked.split)
    encoder = None if asked.words else load_encoder(settings)
    place = asked.kb or settings.home / "retrieval" / given.name
    with open_retrieval_base(place, given, encoder) as base:
        found = measure_search(given, base, encoder)
    rows = [
        {
            "method": one.method,
            "queries": one.queries,
            "nDCG@10": str(one.ndcg_10),
            "recall@100": str(one.recall_100),
        }
        for one in found
    ]
    if asked.split == "test":
        rows += [
            {"method": f"{name} (published)", "nDCG@10": f"{best:.3f}", "recall@100": f"{most:.3f}"}
            for name, best, most in PUBLISHED.get(given.name, ())
        ]
    print(json.dumps({"set": given.name, "split": asked.split, "searches": rows}, indent=1))


if __name__ == "__main__":
    main()
