"""The experts that come with Osler and a user's own, each checked before it is used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from osler.errors import ModelError, ModelMissing
from osler.kb.encoders.minilm import read_safetensors
from osler.llm.core.cache import sha256_of
from osler.llm.local.weights import MINILM
from osler.retrieve.experts.cards import CARD, ExpertCard, read_card

if TYPE_CHECKING:
    from numpy.typing import NDArray

BASE = f"all-MiniLM-L6-v2@{MINILM.sha256}"
"""The encoder that pair experts are made over."""
Stamp = tuple[tuple[str, int, int], ...]
"""Name, time of change and size of each file of a folder."""
_AGAIN = "reinstall osler, or retrain it (docs/guide/experts.md)"


@dataclass(frozen=True, slots=True)
class ShelvedExpert:
    """An expert's folder with its card; the weights are as the card says."""

    folder: Path
    card: ExpertCard

    @property
    def bytes(self) -> int:
        return sum((self.folder / name).stat().st_size for name in self.card.weight_files)

    def read_tensors(self) -> Mapping[str, NDArray[Any]]:
        """The weights of all files. Raises `ModelError` for a file that is no safetensors."""
        found: dict[str, NDArray[Any]] = {}
        for name in self.card.weight_files:
            try:
                found |= read_safetensors(self.folder / name)
            except (ValueError, KeyError, TypeError, OSError) as error:
                raise ModelError(f"{self.folder / name} cannot be read: {error}") from error
        return found


def packaged_folder() -> Path:
    """The folder of the experts that come with Osler."""
    return Path(str(files("osler"))) / "experts"


def packaged_experts() -> list[ShelvedExpert]:
    """The experts that come with Osler, by name. Raises as `open_expert`."""
    folder = packaged_folder()
    names = sorted(one.parent.name for one in folder.glob(f"*/{CARD}"))
    return [open_expert(name) for name in names]


def open_expert(name: str, folder: Path | None = None) -> ShelvedExpert:
    """Opens an expert by name, or the user's own in `folder`, and checks it.

    Raises `ModelMissing` if absent, and `ModelError` for a card that cannot be read,
    weights that are not those of the card, or another base encoder.
    """
    place = folder or packaged_folder() / name
    if not (place / CARD).is_file():
        raise ModelMissing(
            f"there is no expert {name!r} in {place.parent}", fix="`osler experts` lists them"
        )
    seen = [(one.name, one.stat()) for one in sorted(place.iterdir())]
    return _check_expert(
        name, place, tuple((file, its.st_mtime_ns, its.st_size) for file, its in seen)
    )


@lru_cache(maxsize=32)
def _check_expert(name: str, place: Path, _: Stamp) -> ShelvedExpert:
    """Once for each state of the folder: a card takes milliseconds to read, at every question."""
    card = read_card(place)
    if card.name != name:
        raise ModelError(f"{place} holds the expert {card.name!r}, not {name!r}")
    for file, sha256 in card.weight_files.items():
        weights = place / file
        if not weights.is_file():
            raise ModelMissing(f"{weights} is not there", fix=_AGAIN)
        if (found := sha256_of(weights)) != sha256:
            raise ModelError(
                f"{weights} is not what its card names: sha256 {found[:12]}…, not {sha256[:12]}…",
                fix=_AGAIN,
            )
    if card.base and card.base != BASE:
        raise ModelError(
            f"the expert {name!r} was made over {card.base.partition('@')[0]} of another"
            " revision than the packaged encoder's",
            fix=_AGAIN,
        )
    return ShelvedExpert(place, card)
