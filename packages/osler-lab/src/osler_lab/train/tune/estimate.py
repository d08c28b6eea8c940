"""Estimate of a training's steps, memory and time, before it is begun: `--dry-run`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from osler.llm.transformers.hub import ModelPair
from osler_lab.train.tune.corpus import SourceCount
from osler_lab.train.tune.loop import steps_of
from osler_lab.train.tune.model import count_parameters, matrix_products
from osler_lab.train.tune.objective import Objective
from osler_lab.train.tune.recipe import TuningRecipe

# Numbers kept for the way back, a token, a layer and a number of its width. Counted, as what
# autograd saves of a layer of the packaged model: 17.5 with LoRA in float32 and 19.6 in bfloat16
# (whose norms are made in float32), 19.4 and 21.4 where all weights are trained. A rough figure for
# models whose inner layer is not 8/3 of their width.
_KEPT = 20


@dataclass(frozen=True, slots=True)
class TrainingEstimate:
    """Sizes of a training, its memory and its time."""

    samples: int
    long: int
    """Samples left out for their length."""
    tokens: int
    """Tokens of all samples, counted once."""
    longest: int
    steps: int
    parameters: int
    trained: int
    memory: int
    """Bytes, estimated: weights, gradients, AdamW's two moments, activations and logits."""
    seconds: float
    """Estimated from one micro-batch that was really worked on."""
    tensorboard: bool
    sources: tuple[SourceCount, ...] = ()
    """Sources of a corpus for pre-training."""


def estimate_training(
    pair: ModelPair,
    rows: Sequence[Any],
    objective: Objective,
    recipe: TuningRecipe,
    *,
    long: int = 0,
    threads: int | None = None,
) -> TrainingEstimate:
    """Works on one micro-batch of middling length, forth and back, and changes nothing.

    Raises `ModelError` when that one does not fit into memory.
    """
    from osler_lab.train.tune.loop import clear_memory_errors, writes_tensorboard

    by_length = sorted(rows, key=len)
    # The median length is timed; the longest micro-batch decides the memory (below).
    middle = max(0, (len(rows) - recipe.row) // 2)
    with clear_memory_errors(recipe, rows), matrix_products(recipe.precision, threads):
        seconds = _time_step(pair.model, by_length[middle : middle + recipe.row], objective)
    total, trained = count_parameters(pair.model)
    return TrainingEstimate(
        samples=len(rows),
        long=long,
        tokens=sum(len(row) for row in rows),
        longest=max(len(row) for row in rows),
        steps=steps_of(len(rows), recipe),
        parameters=total,
        trained=trained,
        memory=_estimate_memory(pair.model, by_length[-recipe.row :], objective, recipe, trained),
        seconds=round(seconds / min(recipe.row, len(rows)) * len(rows) * recipe.epochs, 1),
        tensorboard=writes_tensorboard(),
    )


def _time_step(model: Any, rows: Sequence[Any], objective: Objective) -> float:
    device = next(model.parameters()).device
    inputs = {
        name: value.to(device) if hasattr(value, "to") else value
        for name, value in objective.inputs(rows).items()
    }
    began = time.perf_counter()
    total, _ = objective.total(model, inputs)
    total.backward()
    model.zero_grad(set_to_none=True)
    return time.perf_counter() - began


def _estimate_memory(
    model: Any, rows: Sequence[Any], objective: Objective, recipe: TuningRecipe, trained: int
) -> int:
    config = model.config.get_text_config()
    number = next(model.parameters()).element_size()
    inputs = objective.inputs(rows)
    read = inputs["rest"].numel()
    layers = config.num_hidden_layers
    if recipe.recompute:
        # Recomputation keeps one layer's activations and each layer's input.
        layers = 1 + layers // _KEPT
    elif recipe.lora is not None and recipe.lora.top is not None:
        layers = recipe.lora.top
    activations = read * layers * config.hidden_size * _KEPT * number
    # Logits, their softmax and their gradient, in float32 and only where something is learnt.
    logits = 3 * int(inputs["learns"].any(0).sum()) * len(inputs["rest"]) * config.vocab_size * 4
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    # AdamW has two float32 moments (8 bytes) for each number, besides the gradient.
    return int(weights + trained * (number + 8) + activations + logits)
