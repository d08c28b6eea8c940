"""An expert's folder: weights in files of at most a megabyte, and the card."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from expert_sets import SPLIT
from numpy.typing import NDArray

from osler.retrieve.experts.cards import (
    CARD,
    ExpertCard,
    ExpertFigure,
    MeasuredFigure,
    render_card,
    weights_name,
)
from osler_lab.evaluate.intervals import difference, mean

_KINDS = {np.dtype(np.float32): "F32", np.dtype(np.float16): "F16", np.dtype(np.uint8): "U8"}


def write_expert(folder: Path, tensors: Mapping[str, NDArray[Any]], **facts: Any) -> ExpertCard:
    """Writes weights and card; `facts` are further fields of it."""
    weights, *further = write_shards(tensors, folder)
    known = {
        "weights": weights,
        "further": tuple(further),
        "split": hashlib.sha256(SPLIT.read_bytes()).hexdigest(),
        "date": datetime.now(UTC).date().isoformat(),
        "languages": ("en",),
    }
    card = ExpertCard.model_validate({**known, **facts})
    (folder / CARD).write_text(render_card(card), encoding="utf-8")
    return card


def write_shards(
    tensors: Mapping[str, NDArray[Any]], folder: Path, most: int = 1_000_000
) -> list[str]:
    """Writes tensors into weights files of at most `most` bytes; gives their SHA-256 in order.

    A tensor that is larger stands in a file of its own.
    """
    shards: list[dict[str, NDArray[Any]]] = [{}]
    for name, one in sorted(tensors.items()):
        # What the header says of a tensor is some 120 bytes.
        if shards[-1] and sum(t.nbytes + 120 for t in (*shards[-1].values(), one)) > most:
            shards.append({})
        shards[-1][name] = one
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / weights_name(number) for number in range(len(shards))]
    for shard, path in zip(shards, paths, strict=True):
        write_safetensors(shard, path)
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]


def write_safetensors(tensors: Mapping[str, NDArray[Any]], path: Path) -> None:
    """Writes tensors of float16, float32 and uint8; the same, same bytes."""
    header, data = dict[str, object](), b""
    for name, one in sorted(tensors.items()):
        ends = [len(data), len(data) + one.nbytes]
        header[name] = {
            "dtype": _KINDS[one.dtype],
            "shape": list(one.shape),
            "data_offsets": ends,
        }
        data += np.ascontiguousarray(one).tobytes()
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def compare_rights(
    on: str, measure: str, ours: Sequence[float], rule: str, theirs: Sequence[float]
) -> ExpertFigure:
    """A figure of a card: the shares of items that the expert and its rule have right."""
    return ExpertFigure(
        on=on,
        measure=measure,
        n=len(ours),
        expert=_figure_of(mean(ours)),
        rule=rule,
        rule_figure=_figure_of(mean(theirs)),
        gain=_figure_of(difference(theirs, ours)),
    )


def _figure_of(estimate: object) -> MeasuredFigure:
    value, low, high = (round(float(getattr(estimate, key)), 4) for key in ("value", "low", "high"))
    return MeasuredFigure(value=value, low=low, high=high)
