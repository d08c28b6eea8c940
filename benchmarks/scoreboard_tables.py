"""Tables of `scoreboard/figures` from what benches stored: a value for each question, and no text.

    python benchmarks/scoreboard_tables.py TABLE STORE... --out FILE.csv

| TABLE | STORE, made by |
|---|---|
| labels | `data/support_labels.jsonl`, by reading |
| hops | `machines.jsonl` of `machines.py` |
| noise | a line for each run of `osler attack`: kind, noise, id, backtracked, right, cited |
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import quality

Row = dict[str, Any]
Made = Iterator[Mapping[str, Any]]

SUPPORTS = "supports the whole statement"


def figure(
    table: str, of: str, row: str, measure: str, values: Sequence[float], opponent: str, source: str
) -> Row:
    made = {"table": table, "set": of, "row": row, "measure": measure, "opponent": opponent}
    return {**made, "source": source, "values": quality.join_values([float(v) for v in values])}


def label_figures(rows: list[Row]) -> Made:
    """The share of pairs whose passage says the whole statement."""
    source = "2026-11-23: statements and their passages, read"
    for cited, title in ((True, "as cited"), (False, "beside another passage of the same base")):
        for base, name in (("sample", "the sample"), ("shared", "MedQuAD, PubMedQA and BioASQ")):
            own = [one for one in rows if (one["cited"], one["base"]) == (cited, base)]
            full = [one["support"] == "full" for one in own]
            yield figure("open", f"{name}, {title}", "statements", SUPPORTS, full, "", source)


def hop_figures(rows: list[Row]) -> Made:
    """Gold cited by TC-RAG's guided moves, beside one retrieval, on the same questions."""
    source = "TC-RAG's machine without a model, beside one retrieval"
    for of in dict.fromkeys(one["set"] for one in rows):
        own = [one for one in rows if one["set"] == of and "guided" in one]
        for key, row in (("rag", "rag"), ("guided", "tc-rag, guided")):
            for measure, title in (("gold", "gold cited"), ("share", "share of gold cited")):
                values = [one[key][measure] for one in own]
                opponent = "rag" if key == "guided" else ""
                yield figure("open", of, row, title, values, opponent, source)


def noise_figures(rows: list[Row]) -> Made:
    source = "TC-RAG's machine without a model, beside one retrieval"
    cells: dict[str, dict[str, Row]] = {}
    for one in rows:
        name = "clean" if one["kind"] == "clean" else f"{one['kind']}, {one['noise']}"
        cells.setdefault(name, {})[one["id"]] = one
    ids = sorted(cells["clean"])
    columns = {"backtracked": "backtrack", "right": "right", "cited": "gold cited"}
    for name, found in cells.items():
        for key, title in columns.items():
            if key == "cited" and name.startswith("partial"):
                continue  # the composer changed between these runs and the clean ones: see the log
            values = [found[id][key] for id in ids]
            opponent = "" if name == "clean" else "clean"
            yield figure("attacks", "PubMedQA", name, title, values, opponent, source)


TABLES: Mapping[str, Callable[[list[Row]], Made]] = {
    "labels": label_figures,
    "hops": hop_figures,
    "noise": noise_figures,
}


def read_rows(paths: Iterable[Path]) -> list[Row]:
    lines = (line for path in paths for line in path.read_text(encoding="utf-8").splitlines())
    return [json.loads(line) for line in lines if line]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("stores", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    quality.write_figures(given.out, TABLES[given.table](read_rows(given.stores)))


if __name__ == "__main__":
    main()
