"""What a training in torch keeps, so that one that was stopped goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from osler.errors import ModelError
from osler.llm.core.cache import write_whole
from osler.llm.transformers.hub import import_extra

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

CHECKPOINT, TRAINING_LOG = "checkpoint.pt", "training.jsonl"


class TrainedModel(Protocol):
    """A model with what it has learnt so far."""

    def state(self) -> dict[str, Any]:
        """Everything that is learnt."""

    def load_state(self, state: Mapping[str, Any]) -> None: ...


def keep_checkpoint(
    path: Path,
    recipe: DataclassInstance,
    step: int,
    model: TrainedModel,
    optimizer: Any,
    schedule: Any,
) -> None:
    """Writes what `resume_training` reads, whole or not at all."""
    torch = import_extra("torch")
    content = {
        "recipe": _plain(asdict(recipe)),
        "step": step,
        "model": model.state(),
        "optimizer": optimizer.state_dict(),
        "schedule": schedule.state_dict(),
    }
    with write_whole(path) as draft:
        torch.save(content, draft)


def resume_training(
    path: Path, recipe: DataclassInstance, model: TrainedModel, optimizer: Any, schedule: Any
) -> int:
    """The first step that is still to be done. Raises `ModelError` for another recipe's."""
    torch = import_extra("torch")
    if not path.is_file():
        return 0
    content = torch.load(path, weights_only=True, map_location="cpu")
    if content["recipe"] != _plain(asdict(recipe)):
        raise ModelError(
            f"{path} is of a training with other settings", fix="choose another --work folder"
        )
    model.load_state(content["model"])
    optimizer.load_state_dict(content["optimizer"])
    schedule.load_state_dict(content["schedule"])
    step: int = content["step"]
    return step


def _plain(recipe: Mapping[str, Any]) -> dict[str, Any]:
    return {name: list(one) if isinstance(one, tuple) else one for name, one in recipe.items()}
