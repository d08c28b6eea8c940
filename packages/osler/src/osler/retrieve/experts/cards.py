"""The experts that come with Osler and a user's own, each checked before it is used, and its card,
`card.toml`: what it decides, what it was made of, how well it does.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from osler.errors import ModelError, ModelMissing
from osler.kb.encoders.minilm import read_safetensors
from osler.llm.core.cache import sha256_of
from osler.llm.local.weights import MINILM
from osler.types import Language

if TYPE_CHECKING:
    from numpy.typing import NDArray

CARD, WEIGHTS = "card.toml", "weights.safetensors"
Family = Literal["pair", "encoder", "linear"]


def weights_name(number: int) -> str:
    """The name of a weights file, counted from 0: all but the first have a number."""
    return WEIGHTS if number == 0 else f"weights-{number + 1}.safetensors"


class _CardPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class MeasuredFigure(_CardPart):
    """A figure with its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


class ExpertFigure(_CardPart):
    """A measure on held-out items: the expert, the rule that it replaces, and the difference."""

    on: str
    """What was measured: data set, part and task."""
    measure: str
    n: int = Field(ge=1)
    expert: MeasuredFigure
    rule: str
    """The rule's name: "cosine", "majority"."""
    rule_figure: MeasuredFigure
    gain: MeasuredFigure | None = None
    """Paired difference, expert - rule."""


class ExpertData(_CardPart):
    """A data set that the expert was trained on."""

    name: str
    licence: str
    train: int = Field(ge=0)
    dev: int = Field(ge=0)
    test: int = Field(ge=0)


class ExpertCard(_CardPart):
    """Facts about an expert; `render_card` writes it, `read_card` reads it."""

    format: Literal[1] = 1
    """Raised when a card or its weights can no longer be read as before."""
    name: str = Field(pattern=r"[a-z][a-z0-9-]{0,39}")
    question: str
    """The one question that it answers."""
    family: Family
    replaces: str
    languages: tuple[Language, ...]
    made: str
    """The command that makes it again."""
    seed: int
    date: str
    split: str
    """SHA-256 of the split file: which items were held out."""
    base: str = ""
    """Name and SHA-256 of the encoder that its deltas belong to; empty without one."""
    weights: str = Field(pattern=r"[0-9a-f]{64}")
    """SHA-256 of the weights file."""
    further: tuple[str, ...] = ()
    """SHA-256 of each further weights file, in order: `weights-2.safetensors` and so on."""
    default: bool = False
    """Whether it takes the rule's place without being asked for."""
    weak: tuple[str, ...] = ()
    """What it is bad at."""
    features: tuple[str, ...] = ()
    """Names of a linear expert's features, in the order of its weights."""
    parameters: Mapping[str, float] = Field(default_factory=dict)
    """Numbers beside the weights: calibration, lengths."""
    data: tuple[ExpertData, ...] = ()
    figures: tuple[ExpertFigure, ...] = ()

    @property
    def fingerprint(self) -> str:
        """SHA-256 that stands for all weights files."""
        return hashlib.sha256(" ".join((self.weights, *self.further)).encode()).hexdigest()

    @property
    def identity(self) -> str:
        """Name and weights: what a calibration was fitted to."""
        return f"{self.name}@{self.weights[:12]}"

    @property
    def weight_files(self) -> dict[str, str]:
        """SHA-256 of each weights file by its name."""
        hashes = (self.weights, *self.further)
        return {weights_name(number): one for number, one in enumerate(hashes)}


def read_card(folder: Path) -> ExpertCard:
    """Raises `ModelError` for a folder without a card, and for one that cannot be read."""
    path = folder / CARD
    try:
        return ExpertCard.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, ValidationError) as error:
        why = " ".join(str(error).split())
        raise ModelError(
            f"{path} is not a card of an expert: {why}", fix="retrain it (docs/guide/experts.md)"
        ) from error


def render_card(card: ExpertCard) -> str:
    """The card as TOML; `read_card` gives back the same."""
    document = card.model_dump(mode="json", exclude_none=True)
    return "\n".join(_render_table(document, ())) + "\n"


def _render_table(table: Mapping[str, object], path: tuple[str, ...]) -> Iterator[str]:
    """Plain values first: in TOML, what follows a header belongs to it."""
    for key, value in table.items():
        if not _is_table(value):
            yield f"{key} = {_render_value(value)}"
    for key, value in table.items():
        below = (*path, key)
        if isinstance(value, Mapping):
            yield from ("", f"[{'.'.join(below)}]")
            yield from _render_table(value, below)
        elif _is_table(value) and isinstance(value, Sequence):
            for one in value:
                yield from ("", f"[[{'.'.join(below)}]]")
                yield from _render_table(one, below)


def _is_table(value: object) -> bool:
    """Whether a value is a table or a list of tables."""
    if isinstance(value, list):
        return bool(value) and isinstance(value[0], Mapping)
    return isinstance(value, Mapping)


def _render_value(value: object) -> str:
    """JSON's texts, numbers, booleans and lists of them are TOML's, but for DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


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
