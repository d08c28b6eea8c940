"""Strict F1 of the trainable recogniser on the hundred sentences of `linking/`, five folds.

    python benchmarks/recogniser.py [FOLDS]

Each fold is found by a network that was trained on the others, with nothing else: no graph and
no pretrained weights. The same texts are then linked with a graph of the names, three ways: by
the graph's names alone, by the recogniser alone, by both. The graph knows every concept that is
labelled, so that its names are hard to beat here; what the recogniser adds is seen where a graph
is poor, and so the names are halved in the second part.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from link_mentions import Score, Sentence, scored, sentences, vocabulary

from osler.graph.link import Dictionary, Recogniser
from osler.graph.store import Graph
from osler.retrieve.words import STOP_WORDS
from osler.train.recognise.corpus import MarkedEntity, MarkedText
from osler.train.recognise.link import RecognisedNames
from osler.train.recognise.loop import (
    RecogniserRecipe,
    measure_recogniser,
    prepare_texts,
    train_recogniser,
)
from osler.train.recognise.recogniser import SpanRecogniser

SEED = 0
Fold = tuple[SpanRecogniser, list[Sentence]]


def marked(sentence: Sentence) -> MarkedText:
    entities = tuple(MarkedEntity(start, end, "name") for start, end, _ in sentence.mentions)
    return MarkedText(sentence.text, entities)


def folds(count: int) -> list[Fold]:
    """A network for each fold, and the sentences that it has not seen. The epoch is not chosen
    on them: every network is trained for the same number of epochs."""
    every = sentences()
    random.Random(SEED).shuffle(every)
    recipe = RecogniserRecipe(epochs=30, patience=30, batch=8, seed=SEED)
    made = []
    for n in range(count):
        test = every[n::count]
        learnt = [marked(one) for one in every if one not in test]
        # What it is measured on while it learns is what it learns: the last epoch's kin wins.
        made.append(
            (train_recogniser(prepare_texts(learnt, recipe, learnt), recipe).recogniser, test)
        )
    return made


def strict_of(made: Sequence[Fold], language: str) -> Score:
    right = found = gold = 0
    for recogniser, test in made:
        score = measure_recogniser(
            recogniser, [marked(s) for s in test if s.language == language]
        ).micro
        right, found, gold = right + score.right, found + score.found, gold + score.gold
    return Score(right, found, gold)


def linked_of(made: Sequence[Fold], graph: Graph, way: str, language: str) -> Score:
    right = found = labelled = 0
    for recogniser, test in made:
        by: Recogniser = Dictionary(graph, STOP_WORDS)
        if way != "names":
            by = RecognisedNames(graph, recogniser, alone=way == "recogniser")
        score = scored(by, [s for s in test if s.language == language], places=True)
        right, found = right + score.right, found + score.found
        labelled += score.labelled
    return Score(right, found, labelled)


def row(what: str, language: str, score: Score) -> None:
    total = score.found + score.labelled
    f1 = 2 * score.right / total if total else 0.0
    print(
        f"| {what} | {language} | {score.labelled} | {score.precision:.3f} | {score.recall:.3f} |"
        f" {f1:.3f} |"
    )


def main(count: int) -> None:
    made = folds(count)
    print("| found by | | labelled | precision | recall | F1 |\n|---|---|---|---|---|---|")
    for language in ("en", "zh"):
        row("network, places", language, strict_of(made, language))
    names = list(vocabulary())
    half = random.Random(SEED).sample(names, len(names) // 2)
    for told, chosen in (("all names", names), ("half of the names", half)):
        with tempfile.TemporaryDirectory() as folder, Graph.create(Path(folder)) as graph:
            graph.add(iter(chosen))
            for way in ("names", "recogniser", "both"):
                for language in ("en", "zh"):
                    row(f"{told}, {way}", language, linked_of(made, graph, way, language))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
