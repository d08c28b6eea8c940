"""The loop that the judge, the encoder `match` and their teacher are trained by."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from osler.errors import ModelError
from osler.jobs.runner import Progress
from osler.llm.core.cache import write_whole
from osler.llm.transformers.hub import import_extra
from osler.train.experts.judge_batches import JudgeRow, JudgeSampler
from osler.train.experts.judge_cases import JudgedCase
from osler.train.experts.row_losses import RowTargets
from osler.train.experts.tuned_models import CPU, RowRecipe, TunedModel

CHECKPOINT, TRAINING_LOG = "checkpoint.pt", "training.jsonl"
_ROWS_TOGETHER = 4
"""Rows whose gradients are held in memory at once, without an accelerator."""
Trained = TypeVar("Trained", bound=TunedModel)


def train_rows(
    model: Trained,
    cases: Sequence[JudgedCase],
    work: Path,
    *,
    progress: Progress | None = None,
    keep_each: int = 50,
) -> Trained:
    """Trains a model on these cases; a checkpoint in `work`, kept every `keep_each` steps, is gone
    on from.

    Raises `ModelError` for a loss that is not finite, and for a checkpoint of another recipe.
    """
    torch = import_extra("torch")
    work.mkdir(parents=True, exist_ok=True)
    recipe = model.recipe
    sampler = JudgeSampler(cases, recipe.rows, recipe.texts, recipe.seed, model.varies)
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: _rate_at(s, recipe.steps))
    learnt = {"model": model, "optimizer": optimizer, "schedule": schedule}
    begun = _resume_training(work / CHECKPOINT, recipe, learnt)
    model.encoder.train()
    for step in range(begun, recipe.steps):
        optimizer.zero_grad()
        loss = _learn_rows(model, sampler.draw_step(step), step)
        optimizer.step()
        schedule.step()
        if (step + 1) % keep_each == 0 or step + 1 == recipe.steps:
            state = {name: one.state_dict() for name, one in learnt.items()}
            with write_whole(work / CHECKPOINT) as draft:
                torch.save({"recipe": asdict(recipe), "step": step + 1, **state}, draft)
        with (work / TRAINING_LOG).open("a", encoding="utf-8") as log:
            log.write(json.dumps({"step": step + 1, "loss": round(loss, 4)}) + "\n")
        if progress is not None:
            progress("training", step + 1, recipe.steps)
    return model


def _resume_training(path: Path, recipe: RowRecipe, learnt: Mapping[str, Any]) -> int:
    """The first step that is still to be done. Raises `ModelError` for another recipe's."""
    torch = import_extra("torch")
    if not path.is_file():
        return 0
    content = torch.load(path, weights_only=True, map_location="cpu")
    if content["recipe"] != asdict(recipe):
        raise ModelError(
            f"{path} is of a training with other settings", fix="choose another --work folder"
        )
    for name, one in learnt.items():
        one.load_state_dict(content[name])
    step: int = content["step"]
    return step


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
