"""Fits the networks that tell what a question asks of a concept graph.

    python benchmarks/train_graph.py      writes packages/osler/…/kag/graph_route/pieces.npz

Card. Questions: `benchmarks/graph/train`, 5,846 lines by fifteen hands that saw a list of queries
and no code, half Chinese: each is the query that it asks, with its names marked; one in seven asks
for what no query of the graph tells. "P" in place of "Y" asks if something may be taken. With them
those of the plain benchmark that name a concept of the sample graph, which ask the graph for
nothing. `first-*` to `sixth-*` and the templates are never trained on. Encoder:
multilingual-e5-small, as it is. Eight minutes of one core; needs torch.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
from piece_network import Fitting, fit_groups

from osler.build.hub import load_e5
from osler.graph.formats import read_graph_files
from osler.graph.store import Graph
from osler.llm.core.cache import cache_dir
from osler.methods.kag import graph_route
from osler.methods.kag.graph_route import pieces as read
from osler.methods.kag.graph_route.pieces import (
    NamedPlace,
    describe,
    name_ends,
    write_stand_ins,
)
from osler.methods.kag.graph_route.reading import QuestionReader
from osler.methods.kag.graph_route.vocabulary import read_vocabulary, step_kinds
from osler.text import has_cjk
from osler.types import Language

TRAIN = Path(__file__).parent / "graph" / "train"
PLAIN = Path(__file__).parent / "plain"
TARGET = Path(graph_route.__file__).with_name("pieces.npz")
NETWORKS, FITTING = 3, Fitting(units=64, epochs=15, batch=32)
_MARK = re.compile(r"\[([12]):([^\[\]]*)\]")
OPERATORS = {"I": "intersection", "U": "union", "D": "difference", "M": "most", "F": "fewest"}
_JOINTS = re.compile(r" [&?|+-] ")


@dataclass(frozen=True)
class Chain:
    start: int
    hops: tuple[str, ...]


@dataclass(frozen=True)
class Asked:
    """A query of the list that the writers had."""

    operation: str
    counted: bool
    permits: bool
    chains: tuple[Chain, ...]
    after: str

    def label(self, start: int) -> dict[str, object]:
        """What each group of ends should tell of a start."""
        if self.operation == read.NONE:
            return {"operation": read.NONE}
        order = [one.start for one in self.chains]
        chain = self.chains[order.index(start)]
        first, second = (*chain.hops, read.NONE, read.NONE)[:2]
        return {
            "operation": self.operation,
            "counted": self.counted,
            "permits": self.permits,
            "first": first if chain.hops else read.HELD,
            "second": second,
            "taken": self.operation == "difference" and order.index(start) == 1,
            "after": self.after or read.NONE,
        }

    def kinds_of(self, start: int) -> list[str]:
        """The kinds that the start of a chain may have."""
        if self.operation == read.NONE:
            return ["disease", "drug"]
        chain = next(one for one in self.chains if one.start == start)
        if chain.hops:
            return [kind for kind in read.STANDING if _reach(frozenset({kind}), chain.hops)]
        other = next(one for one in self.chains if one.start != start)
        every = frozenset(read_vocabulary().kinds)
        return sorted(_reach(every, other.hops) & frozenset(read.STANDING))


def _reach(kinds: frozenset[str], hops: Sequence[str]) -> frozenset[str]:
    for hop in hops:
        kinds = step_kinds(kinds, hop)
    return kinds


def read_asked(written: str) -> Asked:
    if written == read.NONE:
        return Asked(read.NONE, False, False, (Chain(1, ()), Chain(2, ())), "")
    head, _, after = written.partition(" ; ")
    letters, rest = [], head
    while match := re.match(r"([A-Z]) ", rest):
        letters.append(match[1])
        rest = rest[2:]
    chains = []
    for part in _JOINTS.split(rest):
        start, *hops = part.split()
        chains.append(Chain(int(start), tuple(hops)))
    named = [OPERATORS[one] for one in letters if one in OPERATORS]
    operation = "judgement" if {"Y", "P"} & set(letters) else named[0] if named else ""
    return Asked(operation, "N" in letters, "P" in letters, tuple(chains), after)


@dataclass(frozen=True)
class Marked:
    hand: str
    asked: Asked
    text: str
    places: tuple[NamedPlace, ...]
    starts: tuple[int, ...]


def read_marked(hand: str, line: str) -> Marked:
    written, _, question = line.partition("\t")
    asked = read_asked(written)
    text, places, starts, at = "", [], [], 0
    for match in _MARK.finditer(question):
        text += question[at : match.start()]
        start = len(text)
        text += match[2]
        number = int(match[1])
        if number not in starts:
            places.append(NamedPlace(start, len(text), ""))
            starts.append(number)
        at = match.end()
    return Marked(hand, asked, text + question[at:], tuple(places), tuple(starts))


def read_train(folder: Path = TRAIN) -> list[Marked]:
    return [
        read_marked(path.stem, line)
        for path in sorted(folder.glob("*.tsv"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]


def read_natural() -> Iterator[Marked]:
    """Questions of the plain benchmark that name a concept of the sample graph: no query of the
    graph answers them."""
    none = read_asked(read.NONE)
    with tempfile.TemporaryDirectory() as made, as_file(files("osler.sample") / "graph") as sample:
        graph = Graph.create(Path(made))
        graph.add(read_graph_files([sample]))
        reader = QuestionReader(graph)
        for path in sorted(PLAIN.glob("*.jsonl")):
            for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
                starts = reader.read(row["text"], row["language"]).starts[:2]
                places = tuple(NamedPlace(one.start, one.end, "") for one in starts)
                if starts:
                    numbers = tuple(range(1, len(starts) + 1))
                    yield Marked("natural", none, row["text"], places, numbers)


def make_rows(marked: Sequence[Marked]) -> tuple[list[Any], list[dict[str, object]], list[str]]:
    encoder = load_e5(cache_dir())
    inputs, labels, hands = [], [], []
    for one in marked:
        language: Language = "zh" if has_cjk(one.text) else "en"
        choices = [one.asked.kinds_of(start) for start in one.starts]
        for turn in range(max(map(len, choices))):
            places = [
                replace(place, kind=kinds[turn % len(kinds)])
                for place, kinds in zip(one.places, choices, strict=True)
            ]
            for n, start in enumerate(one.starts):
                text, spans = write_stand_ins(one.text, places, n, language)
                pieces, states = encoder.read_tokens(text)
                inputs.append(describe(pieces, states, spans, n).astype(np.float16))
                labels.append(one.asked.label(start))
                hands.append(one.hand)
    return inputs, labels, hands


def index_labels(labels: Sequence[dict[str, object]]) -> Any:
    """(rows, groups): the place of each group's end, -1 for none."""
    ends = name_ends()
    return np.array([[ends[g].index(row[g]) if g in row else -1 for g in ends] for row in labels])


def write_networks(marked: Sequence[Marked]) -> None:
    inputs, labels, _ = make_rows(marked)
    sizes = [len(one) for one in name_ends().values()]
    told, counts = index_labels(labels), np.ones(len(labels))
    arrays: dict[str, Any] = {}
    for seed in range(NETWORKS):
        fitting = replace(FITTING, seed=seed)
        arrays |= fit_groups(inputs, told, sizes, counts, fitting).name_arrays(f"asked{seed}")
    np.savez_compressed(TARGET, **arrays)


if __name__ == "__main__":
    write_networks([*read_train(), *read_natural()])
