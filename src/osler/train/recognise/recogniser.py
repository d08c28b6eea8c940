"""A trained recogniser: texts → entities; kept as a folder of two files.

config.json          types, sizes, how it was trained and how well
model.safetensors    the weights
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import exp
from pathlib import Path
from typing import Any

from osler.errors import ModelError, ModelMissing, translate_os_errors
from osler.llm.transformers.hub import import_extra
from osler.train.recognise.corpus import MarkedEntity, split_windows
from osler.train.recognise.net import Sentence, Shape, batch_sentences, build_network, of_places

CONFIG, WEIGHTS = "config.json", "model.safetensors"
FORMAT = 1
BATCH = 32


@dataclass(frozen=True, slots=True)
class RecognisedEntity:
    """An entity that was recognised."""

    entity: MarkedEntity
    confidence: float
    """Sigmoid of its score, in (0.5, 1)."""


@dataclass(frozen=True)
class SpanRecogniser:
    """Recogniser of entities. It blocks; finding is safe from several threads."""

    shape: Shape
    net: Any
    nested: bool = False
    """Whether names may lie within each other; crossing ones are never given."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Facts of its training: seed, texts, scores."""

    def find_entities(self, text: str) -> list[RecognisedEntity]:
        """Finds the entities of a text, in order of their places."""
        return self.find_all([text])[0]

    def find_all(self, texts: Sequence[str]) -> list[list[RecognisedEntity]]:
        """Finds the entities of several texts, one list per text."""
        every = [(n, one) for n, text in enumerate(texts) for one in self._read_windows(text)]
        scores: list[dict[MarkedEntity, float]] = [{} for _ in texts]
        for start in range(0, len(every), BATCH):
            part = every[start : start + BATCH]
            for n, entity, score in self._score_windows(part):
                # Overlapping windows may give one entity twice: its higher score counts.
                scores[n][entity] = max(score, scores[n].get(entity, score))
        return [self._choose_entities(one) for one in scores]

    def _read_windows(self, text: str) -> Iterator[Sentence]:
        for places in split_windows(text):
            yield of_places(text, places, self.shape)

    def _score_windows(
        self, windows: Sequence[tuple[int, Sentence]]
    ) -> Iterator[tuple[int, MarkedEntity, float]]:
        torch = import_extra("torch")
        with torch.inference_mode():
            scores = self.net(*batch_sentences([one for _, one in windows]))
        # 0 is the threshold that the loss learns; impossible spans are at -inf.
        for row, kind, i, j in (scores > 0).nonzero().tolist():
            n, one = windows[row]
            entity = MarkedEntity(one.places[i][0], one.places[j][1], self.shape.types[kind])
            yield n, entity, float(scores[row, kind, i, j])

    def _choose_entities(self, scores: Mapping[MarkedEntity, float]) -> list[RecognisedEntity]:
        """The surest first; what crosses a surer one goes, and unless nested what overlaps."""
        kept: list[MarkedEntity] = []
        # Greedy by score; of equal scores the first in the text, so that results repeat.
        for entity in sorted(scores, key=lambda one: (-scores[one], one)):
            if not any(self._do_clash(entity, other) for other in kept):
                kept.append(entity)
        return [RecognisedEntity(one, 1 / (1 + exp(-scores[one]))) for one in sorted(kept)]

    def _do_clash(self, one: MarkedEntity, other: MarkedEntity) -> bool:
        if one.end <= other.start or other.end <= one.start:
            return False
        if not self.nested:
            return True
        within = other.start <= one.start and one.end <= other.end
        around = one.start <= other.start and other.end <= one.end
        return not (within or around)

    def save(self, folder: Path) -> None:
        """Raises `ModelError` where the folder cannot be written."""
        config = {
            "format": FORMAT,
            "kind": "osler-span-recogniser",
            "shape": asdict(self.shape),
            "nested": self.nested,
            "facts": dict(self.facts),
        }
        with translate_os_errors(f"{folder} cannot be written", ModelError):
            folder.mkdir(parents=True, exist_ok=True)
            import_extra("safetensors.torch").save_file(self.net.state_dict(), folder / WEIGHTS)
            text = json.dumps(config, ensure_ascii=False, indent=1)
            (folder / CONFIG).write_text(f"{text}\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> SpanRecogniser:
        """Raises `ModelMissing` for a folder without a recogniser, or a damaged one."""
        fix = "`osler train recogniser` makes one"
        try:
            config = json.loads((folder / CONFIG).read_bytes())
            if config["format"] != FORMAT:
                raise ModelMissing(
                    f"{folder} has format {config['format']}, this version reads {FORMAT}", fix=fix
                )
            shape = Shape(**{**config["shape"], "types": tuple(config["shape"]["types"])})
            # Read before the network is built: a missing file is cheaper to find than a wrong one.
            weights = (folder / WEIGHTS).read_bytes()
        except OSError as error:
            raise ModelMissing(
                f"{folder} holds no recogniser: {error.strerror}", fix=fix
            ) from error
        except (ValueError, KeyError, TypeError) as error:
            raise ModelMissing(f"{folder / CONFIG} is damaged: {error!r}", fix=fix) from error
        net = build_network(shape)
        safetensors = import_extra("safetensors.torch")
        try:
            net.load_state_dict(safetensors.load(weights))
        except (import_extra("safetensors").SafetensorError, RuntimeError) as error:
            raise ModelMissing(f"{folder / WEIGHTS} is damaged: {error}", fix=fix) from error
        return cls(shape, net.eval(), bool(config["nested"]), config.get("facts") or {})
