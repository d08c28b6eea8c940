"""Question and text as one sequence of word pieces, for training and running alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class TextPieces(Protocol):
    """Cuts a text into a model's pieces; `first` begins what it reads, `last` ends each text."""

    first: int
    last: int

    def piece_ids(self, text: str) -> list[int]: ...


@dataclass(frozen=True, slots=True)
class PairInput:
    """Ids of [CLS] question [SEP] text [SEP], and 1 where the text is."""

    ids: tuple[int, ...]
    segments: tuple[int, ...]
