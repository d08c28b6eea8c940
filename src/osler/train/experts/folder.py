"""What every job that makes an expert has: its folders, the weights and the card that it writes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from osler.llm.core.cache import write_whole
from osler.retrieve.experts.cards import (
    CARD,
    WEIGHTS,
    ExpertCard,
    MeasuredFigure,
    render_card,
    weights_name,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class ExpertFolderJob:
    """Where the data, the split, the expert's folder and what is kept meanwhile are."""

    data: Path
    split: Path
    """The same for every expert, so that the same questions are held out; `judge` makes it."""
    out: Path
    """The expert's folder: weights and card."""
    work: Path
    """Knowledge base, measured cases and checkpoints; a training that was stopped goes on."""

    def write_card(self, card: ExpertCard) -> ExpertCard:
        (self.out / CARD).write_text(render_card(card), encoding="utf-8")
        return card

    def start_card(self, name: str, **facts: Any) -> ExpertCard:
        """The card of the weights in `out`, without figures; `facts` are further fields of it."""
        known = {
            "weights": facts.get("weights") or hash_file(self.out / WEIGHTS),
            "split": hash_file(self.split),
            "date": datetime.now(UTC).date().isoformat(),
            "made": f"osler experts train {name} --data FOLDER --split FILE --out FOLDER",
            "languages": ("en",),
        }
        return ExpertCard.model_validate({"name": name, **known, **facts})


def hash_file(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


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
    found = []
    for number, shard in enumerate(shards):
        write_safetensors(shard, folder / weights_name(number))
        found.append(hash_file(folder / weights_name(number)))
    return found


def write_safetensors(tensors: Mapping[str, NDArray[Any]], path: Path) -> None:
    """Writes tensors of float16, float32 and uint8, whole or not at all; the same, same bytes."""
    import json
    import struct

    kinds = {np.dtype(np.float32): "F32", np.dtype(np.float16): "F16", np.dtype(np.uint8): "U8"}
    header: dict[str, object] = {}
    at = 0
    for name in sorted(tensors):
        one = tensors[name]
        header[name] = {
            "dtype": kinds[one.dtype],
            "shape": list(one.shape),
            "data_offsets": [at, at + one.nbytes],
        }
        at += one.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with write_whole(path) as draft, draft.open("wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for name in sorted(tensors):
            out.write(np.ascontiguousarray(tensors[name]).tobytes())


def figure_of(estimate: object) -> MeasuredFigure:
    """An estimate for a card, to four digits."""
    value, low, high = (round(float(getattr(estimate, key)), 4) for key in ("value", "low", "high"))
    return MeasuredFigure(value=value, low=low, high=high)
