"""The loop that the judge, the encoder `match` and their teacher are trained by."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from osler.errors import ModelError
from osler.jobs.runner import Progress
from osler.llm.transformers.hub import import_extra
from osler.train.experts.checkpoints import (
    CHECKPOINT,
    TRAINING_LOG,
    keep_checkpoint,
    resume_training,
)
from osler.train.experts.judge_batches import JudgeRow, JudgeSampler
from osler.train.experts.row_losses import RowTargets
from osler.train.experts.tuned_models import CPU, TunedModel

_ROWS_TOGETHER = 4
"""Rows whose gradients are held in memory at once, without an accelerator."""
Trained = TypeVar("Trained", bound=TunedModel)


def train_rows(
    model: Trained,
    sampler: JudgeSampler,
    work: Path,
    *,
    progress: Progress | None = None,
    measure_dev: Callable[[Trained], float] | None = None,
    keep_each: int = 50,
) -> Trained:
    """Trains a model; a checkpoint in `work`, kept every `keep_each` steps, is gone on from.

    `measure_dev` is asked every hundred steps, for the log alone. Raises `ModelError` for a loss
    that is not finite.
    """
    torch = import_extra("torch")
    work.mkdir(parents=True, exist_ok=True)
    recipe = model.recipe
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: _rate_at(s, recipe.steps))
    begun = resume_training(work / CHECKPOINT, recipe, model, optimizer, schedule)
    model.encoder.train()
    for step in range(begun, recipe.steps):
        facts: dict[str, Any] = {"step": step + 1}
        optimizer.zero_grad()
        facts["loss"] = round(_learn_rows(model, sampler.draw_step(step), step), 4)
        optimizer.step()
        schedule.step()
        if (step + 1) % 100 == 0 and measure_dev is not None:
            facts["dev"] = round(measure_dev(model), 4)
        if (step + 1) % keep_each == 0 or step + 1 == recipe.steps:
            keep_checkpoint(work / CHECKPOINT, recipe, step + 1, model, optimizer, schedule)
        with (work / TRAINING_LOG).open("a", encoding="utf-8") as log:
            log.write(json.dumps(facts) + "\n")
        if progress is not None:
            progress("training", step + 1, recipe.steps)
    return model


def _rate_at(step: int, steps: int) -> float:
    """Share of the learning rate: a rise over a twentieth of the steps, then a line to 0."""
    warm = max(1, steps // 20)
    return max(0.0, min((step + 1) / warm, (steps - step) / max(1, steps - warm)))


def _learn_rows(model: TunedModel, rows: Sequence[JudgeRow], step: int) -> float:
    """Gathers the gradients of a step, and gives its loss."""
    torch = import_extra("torch")
    size = _ROWS_TOGETHER if model.device == CPU else len(rows)
    targets = RowTargets.of(rows, model.recipe.hard, model.device)
    whole = 0.0
    with torch.random.fork_rng():
        # What drops out in a step does not depend on the steps before it, which may be another
        # run's.
        torch.manual_seed(model.recipe.seed * 1_000_003 + step)
        for begin in range(0, len(rows), size):
            part = slice(begin, begin + size)
            loss = model.weigh_loss(model.score_rows(rows[part]), targets.take_rows(part))
            loss.backward()
            whole += loss.item()
    if not torch.isfinite(torch.tensor(whole)):
        raise ModelError("the loss is not a finite number", fix="give a smaller rate")
    torch.nn.utils.clip_grad_norm_([p for g in model.parameters() for p in g["params"]], 1.0)
    return whole
