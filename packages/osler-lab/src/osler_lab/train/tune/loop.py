"""The training loop: transformers' Trainer with losses of our own, and its checkpoints.

Steps, schedule, clipping, checkpoints and several processes are the library's. What is ours is
the order of the samples, fixed by the seed for all epochs at once, so that a run that was
killed goes on exactly where its last checkpoint was; and that each step's loss is a mean over
all of its micro-batches.

A checkpoint counts once `whole.json` stands in it, which names its files with their sums and is
written last. One without it was being written when the process died, and is passed over; one
whose files are others than it says is damaged, and that is an error.
"""

from __future__ import annotations

import json
import math
import random
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from osler.errors import ModelError, ModelMissing
from osler.llm.core.cache import hash_file, write_whole
from osler.llm.transformers.hub import ModelPair, import_extra, silence_transformers
from osler_lab.jobs.runner import Progress
from osler_lab.train.tune.loss import Inputs, Objective
from osler_lab.train.tune.model import matrix_products
from osler_lab.train.tune.recipe import TuningRecipe

MARK = "whole.json"
_NAME = re.compile(r"checkpoint-(\d+)")


def seal_checkpoint(checkpoint: Path) -> None:
    """Marks a checkpoint as whole. Called when all its files are written."""
    sums = {
        path.name: hash_file(path) for path in sorted(checkpoint.iterdir()) if path.name != MARK
    }
    with write_whole(checkpoint / MARK) as draft:
        draft.write_text(json.dumps(sums, indent=1), encoding="utf-8")


def latest_checkpoint(folder: Path) -> Path | None:
    """The last whole checkpoint. Raises `ModelMissing` where that one is damaged."""
    found = folder.iterdir() if folder.is_dir() else ()
    named = [path for path in found if _NAME.fullmatch(path.name)]
    # By number: as text, checkpoint-100 would stand before checkpoint-20.
    for checkpoint in sorted(named, key=step_of, reverse=True):
        if (checkpoint / MARK).is_file():
            check_checkpoint(checkpoint)
            return checkpoint
    return None


def check_checkpoint(checkpoint: Path) -> None:
    """Raises `ModelMissing` unless the files are those that were written."""
    fix = f"delete {checkpoint}: training goes on from the one before, or from the beginning"
    try:
        sums: dict[str, str] = dict(json.loads((checkpoint / MARK).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise ModelMissing(f"the checkpoint {checkpoint} is damaged: {MARK}", fix=fix) from error
    for name, checksum in sums.items():
        path = checkpoint / name
        if not path.is_file() or hash_file(path) != checksum:
            raise ModelMissing(f"the checkpoint {checkpoint} is damaged: {name}", fix=fix)


def step_of(checkpoint: Path) -> int:
    """Optimizer's steps that were made."""
    match = _NAME.fullmatch(checkpoint.name)
    return int(match[1]) if match else 0


LOG = "log.jsonl"
CHECKPOINTS = "checkpoints"
ALL = "all"
"""The name under which perplexity over all sources stands."""


def learning_order(lengths: Sequence[int], recipe: TuningRecipe) -> list[int]:
    """Places of the samples in the order in which they are learnt, over all epochs.

    Each epoch is shuffled by the seed and its number. Within a step samples stand by length, so
    that micro-batches need little padding; the step's gradient is the same in any order.
    """
    wanted = max(1, round(len(lengths) * recipe.epochs))
    places: list[int] = []
    for epoch in range(math.ceil(recipe.epochs)):
        fresh = list(range(len(lengths)))
        random.Random(f"{recipe.seed}/{epoch}").shuffle(fresh)
        places += fresh
    # A fraction of an epoch is its beginning.
    places = places[:wanted]
    steps = (places[i : i + recipe.batch] for i in range(0, wanted, recipe.batch))
    return [place for step in steps for place in sorted(step, key=lambda p: (lengths[p], p))]


def steps_of(samples: int, recipe: TuningRecipe) -> int:
    """Optimizer's steps; the last may be smaller."""
    return math.ceil(max(1, round(samples * recipe.epochs)) / (recipe.row * recipe.accumulate))


@dataclass(frozen=True)
class TuningResult:
    """Figures of a finished training."""

    steps: int
    resumed: int
    """The step that it went on from; 0 = from the beginning."""
    first: float
    """Loss of the first step that was made now."""
    last: float
    seconds: float
    perplexity: tuple[dict[str, float], dict[str, float]] | None = None
    """Perplexity of pre-training, by source and over all: before and after."""


@dataclass
class OrderedRows:
    """Rows in the order of learning, as the Trainer wants a data set."""

    rows: Sequence[Any]
    places: Sequence[int]

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, place: int) -> Any:
        return self.rows[self.places[place]]


@dataclass
class StepLog:
    """Figures of the steps: JSON Lines in the folder, and progress for whoever watches."""

    path: Path
    total: int
    report: Progress | None
    began: float = field(default_factory=time.perf_counter)
    sums: dict[str, list[float]] = field(default_factory=dict)
    losses: list[float] = field(default_factory=list)

    def note(self, figures: dict[str, float]) -> None:
        for name, value in figures.items():
            self.sums.setdefault(name, []).append(value)

    def step(self, number: int, logs: dict[str, Any]) -> None:
        """Raises `ModelError` for a loss that is no number."""
        if "loss" not in logs:
            return
        loss = float(logs["loss"])
        self.losses.append(loss)
        means = {name: round(sum(v) / len(v), 6) for name, v in self.sums.items()}
        self.sums.clear()
        line = {
            "step": number,
            **{n: logs[n] for n in ("loss", "grad_norm", "learning_rate") if n in logs},
            **means,
            "seconds": round(time.perf_counter() - self.began, 3),
        }
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        if not math.isfinite(loss):
            raise ModelError(
                f"the loss is {loss} at step {number}",
                fix="give a lower --learning-rate, or --precision float32",
            )

    def progress(self, number: int) -> None:
        if self.report:
            self.report("training", number, self.total)


def train_model(
    pair: ModelPair,
    rows: Sequence[Any],
    objective: Objective,
    recipe: TuningRecipe,
    folder: Path,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> TuningResult:
    """Trains the pair's model in place, from the folder's last whole checkpoint if there is one.

    Raises `ModelMissing` for a damaged checkpoint and `ModelError` when memory runs out or the
    loss is no number.
    """
    folder.mkdir(parents=True, exist_ok=True)
    start = latest_checkpoint(folder / CHECKPOINTS)
    done = step_of(start) if start else 0
    _shorten_log(folder / LOG, done)
    log = StepLog(folder / LOG, steps_of(len(rows), recipe), progress)
    places = learning_order([len(row) for row in rows], recipe)
    began = time.perf_counter()
    with (
        silence_transformers(),
        matrix_products(recipe.precision, threads),
        clear_memory_errors(recipe, rows),
    ):
        trainer = _make_trainer(pair, OrderedRows(rows, places), objective, recipe, folder, log)
        trainer.train(resume_from_checkpoint=str(start) if start else None)
    seconds = round(time.perf_counter() - began, 3)
    losses = log.losses or [math.nan]
    return TuningResult(log.total, done, losses[0], losses[-1], seconds)


def _shorten_log(path: Path, done: int) -> None:
    """Takes out what was logged after the checkpoint: those steps are made again."""
    if not path.is_file():
        return
    kept = []
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        try:
            if line.endswith("\n") and json.loads(line)["step"] <= done:
                kept.append(line)
        except (ValueError, KeyError, TypeError):
            continue
    path.write_text("".join(kept), encoding="utf-8")


@contextmanager
def clear_memory_errors(recipe: TuningRecipe, rows: Sequence[Any]) -> Iterator[None]:
    """Turns the library's ways of saying that memory ran out into one `ModelError`."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not _is_memory(error):
            raise
        longest = max((len(row) for row in rows), default=0)
        at = f"{recipe.row} samples at once, the longest of {longest} tokens"
        raise ModelError(
            f"out of memory with {at}",
            fix="give a smaller --micro, --recompute, fewer --max-tokens, or fewer --layers;"
            " what was trained up to the last checkpoint is kept",
        ) from error


def _is_memory(error: BaseException) -> bool:
    out = import_extra("torch").OutOfMemoryError
    # On a CPU torch raises a plain RuntimeError of the allocator.
    named = "can't allocate memory" in str(error) or "out of memory" in str(error).lower()
    return isinstance(error, (MemoryError, out)) or (isinstance(error, RuntimeError) and named)


def _trainer_arguments(recipe: TuningRecipe, folder: Path, device: str) -> Any:
    return import_extra("transformers").TrainingArguments(
        output_dir=str(folder / CHECKPOINTS),
        per_device_train_batch_size=recipe.row,
        gradient_accumulation_steps=recipe.accumulate,
        num_train_epochs=1,
        learning_rate=recipe.learning_rate,
        lr_scheduler_type=recipe.schedule,
        warmup_steps=recipe.warmup,
        weight_decay=recipe.weight_decay,
        max_grad_norm=recipe.clip,
        seed=recipe.seed,
        logging_steps=1,
        save_steps=recipe.save_every,
        save_total_limit=2,
        # The order is `learning_order`'s; one long "epoch" holds all of them.
        train_sampling_strategy="sequential",
        remove_unused_columns=False,
        dataloader_pin_memory=False,
        use_cpu=device == "cpu",
        disable_tqdm=True,
        report_to=["tensorboard"] if writes_tensorboard() else [],
    )


def writes_tensorboard() -> bool:
    """Whether event files for TensorBoard are written beside `log.jsonl`."""
    return any(find_spec(name) for name in ("tensorboard", "tensorboardX"))


def _make_trainer(
    pair: ModelPair,
    course: OrderedRows,
    objective: Objective,
    recipe: TuningRecipe,
    folder: Path,
    log: StepLog,
) -> Any:
    transformers = import_extra("transformers")
    trainer: Any = transformers.Trainer
    callback: Any = transformers.TrainerCallback

    class Tuner(trainer):  # type: ignore[misc]  # known only once it is loaded
        # Else the Trainer divides the loss by the accumulation steps once more.
        loss_is_scaled_for_ga = True

        def compute_loss(
            self,
            model: Any,
            inputs: Inputs,
            return_outputs: bool = False,
            num_items_in_batch: Any = None,
        ) -> Any:
            total, figures = objective.total(model, inputs)
            log.note(figures)
            # Gradients are averaged over processes; the sum over all items is wanted.
            return total * self.accelerator.num_processes / num_items_in_batch

        def _get_num_items_in_batch(self, batches: list[Inputs], device: Any) -> Any:
            count = sum(objective.items(batch) for batch in batches)
            counted = import_extra("torch").tensor(count, device=device)
            return self.accelerator.gather(counted).sum()

    class Watcher(callback):  # type: ignore[misc]
        def on_log(
            self, args: Any, state: Any, control: Any, logs: dict[str, Any], **rest: Any
        ) -> None:
            if state.is_world_process_zero:
                log.step(state.global_step, logs)

        def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
            log.progress(state.global_step)

        def on_save(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
            if state.is_world_process_zero:
                seal_checkpoint(Path(args.output_dir) / f"checkpoint-{state.global_step}")

    tuner = Tuner(
        model=pair.model,
        args=_trainer_arguments(recipe, folder, next(pair.model.parameters()).device.type),
        train_dataset=course,
        data_collator=objective.inputs,
        callbacks=[Watcher()],
    )
    # It prints every log line to stdout, which belongs to the command.
    tuner.remove_callback(transformers.PrinterCallback)
    return tuner
