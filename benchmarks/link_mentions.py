"""Precision and recall of mention linking on a hundred sentences labelled by hand.

    python benchmarks/link_mentions.py [GRAPH_FILE_OR_FOLDER...]

The sentences (fifty English, fifty Chinese) and the vocabulary beside them are ours and
illustrative (`linking/`). A mention is right when its place and its concept are those of
the label. With public graphs as arguments their names are added: then a mention counts when
its place is right, whatever the concept, since their identifiers are others; what they find
that is not labelled ("week", "patient") counts against them.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from osler.graph.formats import read_graph_files
from osler.graph.items import Name
from osler.graph.link import Dictionary, Recogniser
from osler.graph.store import Graph
from osler.retrieve import STOP_WORDS
from osler.text import language_of
from osler.types import Language

FOLDER = Path(__file__).parent / "linking"
_LABEL = re.compile(r"\[([^|\]]+)\|(\d+)\]")


@dataclass(frozen=True, slots=True)
class Sentence:
    text: str
    mentions: tuple[tuple[int, int, str], ...]
    """Start, end and concept."""

    @property
    def language(self) -> Language:
        return language_of(self.text)


@dataclass(frozen=True, slots=True)
class Score:
    right: int
    found: int
    labelled: int

    @property
    def precision(self) -> float:
        return self.right / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        return self.right / self.labelled if self.labelled else 1.0


def sentences() -> list[Sentence]:
    lines = (FOLDER / "sentences.txt").read_text(encoding="utf-8").splitlines()
    return [labelled(line) for line in lines if line.strip() and not line.startswith("#")]


def labelled(line: str) -> Sentence:
    text, mentions, last = "", [], 0
    for found in _LABEL.finditer(line):
        text += line[last : found.start()]
        mentions.append((len(text), len(text) + len(found[1]), f"OURS:{found[2]}"))
        text += found[1]
        last = found.end()
    return Sentence(text + line[last:], tuple(mentions))


def vocabulary() -> Iterator[Name]:
    for line in (FOLDER / "names.tsv").read_text(encoding="utf-8").splitlines():
        id, *names = line.split("\t")
        if not id.startswith("#"):
            yield from (
                Name(id, name, "ours", rank, language_of(name)) for rank, name in enumerate(names)
            )


def scored(recogniser: Recogniser, sample: list[Sentence], *, places: bool = False) -> Score:
    """With `places` a mention is right by its place alone."""
    right = found = 0
    for sentence in sample:
        mentions = recogniser.find_mentions(sentence.text)
        found += len(mentions)
        labels = {(start, end): concept for start, end, concept in sentence.mentions}
        right += sum(
            (m.start, m.end) in labels and (places or labels[m.start, m.end] in m.concepts)
            for m in mentions
        )
    return Score(right, found, sum(len(sentence.mentions) for sentence in sample))


def shown(what: str, recogniser: Recogniser, *, places: bool) -> None:
    every = sentences()
    for language in ("en", "zh"):
        sample = [sentence for sentence in every if sentence.language == language]
        score = scored(recogniser, sample, places=places)
        precision = f"{score.precision:.3f}" if score.found else "-"
        print(
            f"| {what} | {language} | {len(sample)} | {score.labelled} | {score.found} |"
            f" {precision} | {score.recall:.3f} |"
        )


def main(paths: list[Path]) -> None:
    print("| names | | sentences | labelled | found | precision | recall |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, Graph.create(Path(folder)) as graph:
        graph.add(vocabulary())
        shown("ours", Dictionary(graph, STOP_WORDS), places=False)
    together = [("all of these", paths)] if len(paths) > 1 else []
    for name, chosen in [*((path.name, [path]) for path in paths), *together]:
        with tempfile.TemporaryDirectory() as folder, Graph.create(Path(folder)) as graph:
            graph.add(read_graph_files(chosen))
            shown(name, Dictionary(graph, STOP_WORDS), places=True)


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
