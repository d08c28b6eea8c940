"""What every job that makes an expert has: its folders, and the card that it writes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from osler.retrieve.experts.cards import CARD, WEIGHTS, ExpertCard, render_card


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
