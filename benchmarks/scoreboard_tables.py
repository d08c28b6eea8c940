"""The scoreboard's tables from what benches stored: a value for each question, and no text.

    python benchmarks/scoreboard_tables.py TABLE STORE... --out benchmarks/scoreboard/TABLE.csv

| TABLE | STORE, made by |
|---|---|
| labels | `data/support_labels.jsonl`, by reading |
| hops | `machines.jsonl` of `machines.py` |
| noise | a line for each run of `osler attack`: kind, noise, id, backtracked, right, cited |
| plans | `results.jsonl` of `train_planner.py` |
| steps | `asked.jsonl` of `decompose.py` |
| boundary | `boundary.jsonl` of `boundary.py` |

`scoreboard/retrieval.csv` was written by a bench that is no longer here; `scoreboard/copied.csv`
has what stands in `research/log` alone, each line under the heading that it names.
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
    """Gold cited by TC-RAG's lean moves, beside one retrieval, on the same questions."""
    source = "TC-RAG's machine without a model, beside one retrieval"
    for of in dict.fromkeys(one["set"] for one in rows):
        own = [one for one in rows if one["set"] == of]
        for key, row in (("rag", "rag"), ("lean", "tc-rag, lean")):
            for measure, title in (("gold", "gold cited"), ("share", "share of gold cited")):
                values = [one[key][measure] for one in own]
                opponent = "rag" if key == "lean" else ""
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


def plan_figures(rows: list[Row]) -> Made:
    """Each planner beside one search, on the questions that it was asked."""
    source = "Source plans (benchmarks/planning.py)"
    found: dict[str, dict[str, Row]] = {}
    for one in rows:
        found.setdefault(one["planner"], {})[one["id"]] = one
    simple = found.pop("one-search")
    for planner, asked in found.items():
        ids = sorted(set(asked) & set(simple))
        for at, title in enumerate(("recall@10", "nDCG@10")):
            for name, own in (("one search", simple), (planner, asked)):
                values = [own[id]["scores"][at] for id in ids]
                opponent = "" if name == "one search" else "one search"
                of = f"the questions of {planner}"
                yield figure("planning", of, name, title, values, opponent, source)


def step_figures(rows: list[Row]) -> Made:
    """Plans for several steps by an adapter: whether one can be read, and leads to the answer."""
    source = "Questions that chain relations, answered from texts"
    for of in dict.fromkeys(one["set"] for one in rows):
        own = {one["id"]: one for one in rows if (one["set"], one["way"]) == (of, "steps")}
        for key, title in (("valid", "readable"), ("right", "leads to the answer")):
            values = [own[id][key] for id in sorted(own)]
            yield figure("planning", f"{of}, n {len(own)}", "adapter", title, values, "", source)


def boundary_figures(rows: list[Row]) -> Made:
    """The paper's rule (p at least .5, and stood by) beside always searching."""
    source = "The knowledge boundary: searches saved"
    # Once each: a run that goes on with further signals asks the same questions again.
    own = list({one["id"]: one for one in rows if one["set"] == "research"}.values())
    kept = [bool(one["answer"] and one["checked"] and one["p"] >= 0.5) for one in own]
    searched = [one["searched right"] for one in own]
    pairs = zip(own, kept, strict=True)
    ruled = [one["right"] if keep else one["searched right"] for one, keep in pairs]
    head = [one["right"] for one in own]
    of, always = "BioASQ and PubMedQA, yes or no", "always searched"
    for name, right, saved in (
        (always, searched, [False] * len(own)),
        ("the paper's rule", ruled, kept),
        ("never searched", head, [True] * len(own)),
    ):
        opponent = "" if name == always else always
        yield figure("boundary", of, name, "right", right, opponent, source)
        yield figure("boundary", of, name, "searches saved", saved, "", source)


TABLES: Mapping[str, Callable[[list[Row]], Made]] = {
    "labels": label_figures,
    "hops": hop_figures,
    "noise": noise_figures,
    "plans": plan_figures,
    "steps": step_figures,
    "boundary": boundary_figures,
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
