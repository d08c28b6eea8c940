"""The search measured on a BEIR set, beside Pyserini's published figures.

    python benchmarks/retrieval_set.py FOLDER [--split test] [--words] [--kb PLACE]

FOLDER has corpus.jsonl, queries.jsonl and qrels/test.tsv, or docs, queries and qrels as
`ir_datasets export` writes them. The set gets a knowledge base of its own, by default in Osler's
home; what is encoded already is not encoded again. `--words` searches by words alone.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from osler.build.models import load_encoder
from osler.settings import load
from osler_lab.evaluate.retrieval_sets import (
    PUBLISHED,
    measure_search,
    open_retrieval_base,
    read_retrieval_set,
)


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
