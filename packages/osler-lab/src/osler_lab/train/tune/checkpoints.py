"""Checkpoints of a stopped training, and whether they are whole.

A checkpoint counts once `whole.json` stands in it, which names its files with their sums and is
written last. One without it was being written when the process died, and is passed over; one
whose files are others than it says is damaged, and that is an error.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from osler.errors import ModelMissing
from osler.llm.core.cache import hash_file, write_whole

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
    for checkpoint in reversed(_find_checkpoints(folder)):
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


def _find_checkpoints(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    # By number: as text, checkpoint-100 would stand before checkpoint-20.
    return sorted((p for p in folder.iterdir() if _NAME.fullmatch(p.name)), key=step_of)
