"""The encoder `match` in torch, and its training: a student of the judge's teacher, with labels.

Within the sentences of a question, the softmax of its cosines is drawn towards that of the logits
of a model that reads question and sentence together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osler.jobs.runner import Progress
from osler.llm.transformers.hub import import_extra
from osler.retrieve.experts.judge import JudgedText
from osler.retrieve.experts.pair_input import PairInput
from osler.text import one_line
from osler.train.experts.judge_batches import JudgeRow, JudgeSampler
from osler.train.experts.judge_cases import JudgedCase
from osler.train.experts.row_losses import RowTargets, cosine_loss
from osler.train.experts.row_training import train_rows
from osler.train.experts.tuned_models import Machine, RowRecipe, TunedMiniLM, mean_states

_ASKED, _SAID = 72, 110
"""Word pieces, with the marks at both ends, that are read of a question and of a sentence."""
_TEMPERATURE = 0.06
"""What cosines are divided by, to be as far apart as logits are."""


@dataclass(frozen=True, slots=True)
class MatchRecipe(RowRecipe):
    """What the weights depend on, beside the data."""

    steps: int = 2_500
    rows: int = 32
    texts: int = 8
    rate: float = 1.5e-4
    hard: float = 0.5


class MatchModel(TunedMiniLM):
    """The packaged encoder, which reads question and sentence apart."""

    def read_texts(self, texts: Sequence[str], most: int) -> Any:
        """Vectors of length 1, a tensor of shape (texts, numbers)."""
        read = [self._cut_pieces(text, most) for text in texts]
        return self.read_states(read, _unit_vectors)

    def _cut_pieces(self, text: str, most: int) -> PairInput:
        words = self.words
        ids = (words.first, *words.piece_ids(text)[: most - 2], words.last)
        return PairInput(ids, (0,) * len(ids))

    def score_rows(self, rows: Sequence[JudgeRow]) -> Any:
        asked = self.read_texts([row.question for row in rows], _ASKED)
        said = self.read_texts([text_of(text) for row in rows for text in row.texts], _SAID)
        return (said.view(len(rows), -1, asked.shape[1]) @ asked[:, :, None])[..., 0]

    def weigh_loss(self, scores: Any, targets: RowTargets) -> Any:
        return cosine_loss(scores / _TEMPERATURE, targets)


def text_of(text: JudgedText) -> str:
    """The sentence under its heading, as the gate gives it to the encoder."""
    return one_line(f"{text.heading}. {text.sentence}" if text.heading else text.sentence)


def _unit_vectors(states: Any, weights: Any) -> Any:
    normalize = import_extra("torch").nn.functional.normalize
    return normalize(mean_states(states, weights), dim=-1)


def train_match(
    cases: Sequence[JudgedCase],
    recipe: MatchRecipe,
    work: Path,
    *,
    progress: Progress | None = None,
    machine: Machine = Machine(),  # noqa: B008 - frozen
    keep_each: int = 50,
) -> MatchModel:
    """Trains on these cases, as `train_rows` does. Raises as `train_judge`."""
    machine.prepare()
    sampler = JudgeSampler(cases, recipe.rows, recipe.texts, recipe.seed, vary=False)
    model = MatchModel(recipe, machine)
    return train_rows(model, sampler, work, progress=progress, keep_each=keep_each)
