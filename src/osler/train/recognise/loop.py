"""Training a recogniser: seeded, on a CPU, with the best epoch kept."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from osler.errors import BadConfig, ModelError, translate_os_errors
from osler.jobs.runner import Progress
from osler.llm.transformers.hub import import_extra
from osler.train.recognise import StrictScores, strict_scores
from osler.train.recognise.corpus import (
    MarkedEntity,
    MarkedText,
    split_texts,
    split_units,
    split_windows,
    types_of,
)
from osler.train.recognise.net import (
    Sentence,
    Shape,
    batch_sentences,
    build_network,
    loss_of,
    of_places,
)
from osler.train.recognise.recogniser import SpanRecogniser
from osler.train.tune.model import matrix_products


@dataclass(frozen=True, slots=True)
class RecogniserRecipe:
    """Hyper-parameters of a recogniser's training."""

    epochs: int = 40
    patience: int = 8
    """Epochs without a better F1 after which it ends."""
    batch: int = 16
    rate: float = 3e-3
    hidden: float = 0.1
    """Share of the units whose own hash is hidden, so that their surroundings must tell."""
    clip: float = 1.0
    held_out: float = 0.15
    """Share of the texts that choose the best epoch, and again that F1 is measured on, where no
    others are given."""
    width: int = 64
    longest: int = 24
    seed: int = 0


@dataclass(frozen=True, slots=True)
class TrainingWindow:
    """A window of a text, and the cells of its names: type, first and last unit."""

    sentence: Sentence
    cells: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class PreparedTexts:
    """Training data as windows, with counts of the entities that cannot be learnt."""

    shape: Shape
    examples: tuple[TrainingWindow, ...]
    development: tuple[MarkedText, ...]
    """Texts that choose the best epoch; empty for too few texts, where the last one stands."""
    test: tuple[MarkedText, ...]
    """Texts on which the chosen one is measured, once."""
    texts: int
    nested: bool
    dropped: dict[str, int]
    """Entities that no span of units can be, by reason."""

    def steps(self, recipe: RecogniserRecipe) -> int:
        """Number of optimizer steps of the whole training, at most."""
        return -(-len(self.examples) // recipe.batch) * recipe.epochs


@dataclass(frozen=True, slots=True)
class Epoch:
    n: int
    """Number of the epoch, from 1."""
    loss: float
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, slots=True)
class TrainedRecogniser:
    recogniser: SpanRecogniser
    scores: StrictScores
    """Strict, on the test texts, which chose nothing."""
    epochs: tuple[Epoch, ...]
    """Their scores are those on the development texts."""


def prepare_texts(
    texts: Sequence[MarkedText], recipe: RecogniserRecipe, test: Sequence[MarkedText] | None = None
) -> PreparedTexts:
    """Raises `BadConfig` where there is nothing to learn, or nothing to measure on."""
    learnt = list(texts)
    held_out = list(test or ())
    if test is None:
        learnt, held_out = split_texts(texts, recipe.held_out, recipe.seed)
    # A second share: the epoch that is best on the test texts would be measured too well.
    share = min(0.5, recipe.held_out * len(texts) / max(1, len(learnt)))
    learnt, development = split_texts(learnt, share, recipe.seed + 1)
    if not any(one.entities for one in development):
        learnt, development = [*learnt, *development], []
    # Types of the training texts alone: one that is only in the held-out texts counts as missed,
    # and is not learnt from them.
    shape = Shape(types_of(learnt), width=recipe.width, longest=_longest_name(learnt, recipe))
    if not shape.types:
        raise BadConfig("no entity is marked in the texts", fix="see docs/guide/training.md")
    if not any(one.entities for one in held_out):
        raise BadConfig(
            f"no entity is marked in the {len(held_out)} texts held out",
            fix="give a file with --test, or a larger --held-out",
        )
    dropped: dict[str, int] = {}
    examples = [x for one in learnt for x in _make_windows(one, shape, dropped)]
    nested = any(_any_overlap(one.entities) for one in learnt)
    return PreparedTexts(
        shape,
        tuple(examples),
        tuple(development),
        tuple(held_out),
        len(learnt),
        nested,
        dropped,
    )


def _longest_name(texts: Sequence[MarkedText], recipe: RecogniserRecipe) -> int:
    """Units of a name: the longest that is marked, and half as many again. Of lengths that were
    never seen nothing was learnt."""
    lengths = [_unit_length(entity, one.text) or 1 for one in texts for entity in one.entities]
    return min(recipe.longest, max(lengths, default=1) * 3 // 2 + 1)


def _any_overlap(entities: Sequence[MarkedEntity]) -> bool:
    spans = sorted({(one.start, one.end) for one in entities})
    return any(later[0] < earlier[1] for earlier, later in pairwise(spans))


def _make_windows(one: MarkedText, shape: Shape, dropped: dict[str, int]) -> list[TrainingWindow]:
    stretches = split_windows(one.text)
    cells: list[set[tuple[int, int, int]]] = [set() for _ in stretches]
    for entity in one.entities:
        spans = [_entity_cell(entity, places, shape) for places in stretches]
        for n, span in enumerate(spans):
            if span is not None:
                cells[n].add(span)
        if not any(spans):
            why = _unfit_reason(entity, one.text, shape)
            dropped[why] = dropped.get(why, 0) + 1
    return [
        TrainingWindow(of_places(one.text, places, shape), tuple(sorted(cells[n])))
        for n, places in enumerate(stretches)
    ]


def _entity_cell(
    entity: MarkedEntity, places: Sequence[tuple[int, int]], shape: Shape
) -> tuple[int, int, int] | None:
    """Type, first and last unit; `None` where the stretch does not hold the name."""
    begin = next((n for n, (start, _) in enumerate(places) if start == entity.start), None)
    end = next((n for n, (_, end) in enumerate(places) if end == entity.end), None)
    if begin is None or end is None or not 0 <= end - begin < shape.longest:
        return None
    return shape.types.index(entity.type), begin, end


def _unfit_reason(entity: MarkedEntity, text: str, shape: Shape) -> str:
    """Reason for which no stretch holds the name."""
    length = _unit_length(entity, text)
    if length is None:
        return "it begins or ends within a word"
    if length > shape.longest:
        return f"longer than {shape.longest} units"
    return "it goes on after a sentence's end"


def _unit_length(entity: MarkedEntity, text: str) -> int | None:
    """Length of a name in units; `None` where it is no run of whole units."""
    places = split_units(text)
    begin = [n for n, (start, _) in enumerate(places) if start == entity.start]
    end = [n for n, (_, end) in enumerate(places) if end == entity.end]
    return end[0] - begin[0] + 1 if begin and end else None


def train_recogniser(
    prepared: PreparedTexts,
    recipe: RecogniserRecipe,
    *,
    log: Path | None = None,
    progress: Progress | None = None,
) -> TrainedRecogniser:
    """Trains; blocks. The same data, recipe and machine give the same weights.

    `log`: a file that gets a line an epoch. Raises `ModelError` without the extra `train`,
    and where the loss is not a finite number.
    """
    torch = import_extra("torch")
    # The caller's random state is left as it was; CPU only, hence no devices.
    # One thread: a network of this size gains nothing from more, and on a busy machine they wait
    # for each other.
    with torch.random.fork_rng(devices=[]), matrix_products("float32", 1):
        torch.manual_seed(recipe.seed)
        return _run_epochs(prepared, recipe, log, progress)


def _run_epochs(
    prepared: PreparedTexts, recipe: RecogniserRecipe, log: Path | None, progress: Progress | None
) -> TrainedRecogniser:
    torch = import_extra("torch")
    net, chance = build_network(prepared.shape), random.Random(recipe.seed)
    optimizer = torch.optim.AdamW(net.parameters(), lr=recipe.rate, weight_decay=0.01)
    epochs: list[Epoch] = []
    best: tuple[int, float, dict[str, Any]] | None = None
    for n in range(1, recipe.epochs + 1):
        loss = _run_epoch(net, optimizer, prepared, recipe, chance)
        recogniser = SpanRecogniser(prepared.shape, net.eval(), prepared.nested)
        micro = measure_recogniser(recogniser, prepared.development).micro
        epochs.append(Epoch(n, loss, micro.precision, micro.recall, micro.f1))
        _note_epoch(log, epochs[-1])
        if progress is not None:
            progress(f"training, F1 {micro.f1:.3f}", n, recipe.epochs)
        if best is None or micro.f1 > best[1] or not prepared.development:
            # Cloned: `state_dict` gives views of weights that the next epoch changes.
            weights = {name: value.clone() for name, value in net.state_dict().items()}
            best = n, micro.f1, weights
        elif n - best[0] >= recipe.patience:
            break
    if best is None:
        raise BadConfig("no epoch was trained", fix="--epochs 1 or more")
    net.load_state_dict(best[2])
    chosen = SpanRecogniser(prepared.shape, net.eval(), prepared.nested)
    scores = measure_recogniser(chosen, prepared.test)
    facts = _training_facts(prepared, recipe, scores, best[0])
    recogniser = SpanRecogniser(prepared.shape, net.eval(), prepared.nested, facts)
    return TrainedRecogniser(recogniser, scores, tuple(epochs))


def _run_epoch(
    net: Any,
    optimizer: Any,
    prepared: PreparedTexts,
    recipe: RecogniserRecipe,
    chance: random.Random,
) -> float:
    """Makes one pass over the data; returns the mean loss of its batches."""
    torch = import_extra("torch")
    net.train()
    order = list(prepared.examples)
    chance.shuffle(order)
    losses: list[float] = []
    for start in range(0, len(order), recipe.batch):
        part = order[start : start + recipe.batch]
        hashes, lengths = batch_sentences([one.sentence for one in part])
        # Word dropout: only the hash of the word itself (feature 0) is hidden, by bucket 1; its
        # prefix, suffixes and shape stay. Padding (bucket 0) is never hidden.
        hide = (torch.rand(hashes.shape[:2]) < recipe.hidden) & (hashes[..., 0] > 0)
        hashes[..., 0] = hashes[..., 0].masked_fill(hide, 1)
        loss = loss_of(net(hashes, lengths), _gold_cells(part, hashes.shape[1], prepared.shape))
        if not torch.isfinite(loss):
            raise ModelError("the loss is not a finite number", fix="give a smaller --rate")
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), recipe.clip)
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


def _gold_cells(part: Sequence[TrainingWindow], most: int, shape: Shape) -> Any:
    torch = import_extra("torch")
    gold = torch.zeros(len(part), len(shape.types), most, most)
    for n, one in enumerate(part):
        for kind, i, j in one.cells:
            gold[n, kind, i, j] = 1
    return gold


def measure_recogniser(recogniser: SpanRecogniser, texts: Sequence[MarkedText]) -> StrictScores:
    """Measures strict F1 on marked texts."""
    found = recogniser.find_all([one.text for one in texts])
    return strict_scores(
        [[f.entity for f in each] for each in found], [one.entities for one in texts]
    )


def _training_facts(
    prepared: PreparedTexts, recipe: RecogniserRecipe, scores: StrictScores, epoch: int
) -> dict[str, Any]:
    return {
        "recipe": asdict(recipe),
        "texts": prepared.texts,
        "development": len(prepared.development),
        "held_out": len(prepared.test),
        "epoch": epoch,
        "dropped": prepared.dropped,
        "f1": round(scores.micro.f1, 4),
        "precision": round(scores.micro.precision, 4),
        "recall": round(scores.micro.recall, 4),
        "types": {
            name: {"f1": round(one.f1, 4), "gold": one.gold} for name, one in scores.types.items()
        },
    }


def _note_epoch(log: Path | None, epoch: Epoch) -> None:
    if log is None:
        return
    with translate_os_errors(f"{log} cannot be written", ModelError):
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(epoch)) + "\n")
