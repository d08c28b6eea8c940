"""The judge in torch, and its training: all layers of the packaged encoder and a head.

Question and sentence are read together (`osler.retrieve.experts.judge`); a linear head reads the
first token and the mean of all. It learns from labels, and from a teacher where there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from osler.jobs.runner import Progress
from osler.llm.transformers.hub import import_extra
from osler.retrieve.experts.judge import JudgedText, read_judged
from osler.retrieve.experts.pair_graph import HEAD_BIAS, HEAD_WEIGHT
from osler.retrieve.experts.pair_input import PairInput
from osler.train.experts.judge_batches import JudgeRow, JudgeSampler
from osler.train.experts.judge_cases import JudgedCase
from osler.train.experts.row_losses import RowTargets, pair_loss
from osler.train.experts.row_training import train_rows
from osler.train.experts.tuned_models import (
    Machine,
    RowRecipe,
    TunedMiniLM,
    TunedModel,
    mean_states,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class JudgeRecipe(RowRecipe):
    """What the weights depend on, beside the data."""

    steps: int = 4_600
    rows: int = 32
    texts: int = 6
    rate: float = 2.5e-4
    hard: float = 0.25


class PairModel(TunedModel):
    """An encoder with a head, which read question and sentence together."""

    def __init__(self, encoder: Any, recipe: RowRecipe, machine: Machine) -> None:
        super().__init__(encoder, recipe, machine)
        torch = import_extra("torch")
        with torch.random.fork_rng():
            torch.manual_seed(recipe.seed)
            self.head = torch.nn.Linear(2 * encoder.config.hidden_size, 1).to(self.device)

    def read_pair(self, question: str, text: JudgedText) -> PairInput:
        return read_judged(self.words, question, text)

    def score_pairs(self, pairs: Sequence[tuple[str, JudgedText]]) -> Any:
        """Logits of questions and sentences, as a tensor of their number."""
        return self.read_states([self.read_pair(*pair) for pair in pairs], self._judge_states)

    def _judge_states(self, states: Any, weights: Any) -> Any:
        torch = import_extra("torch")
        return self.head(torch.cat([states[:, 0], mean_states(states, weights)], -1))[:, 0]

    def score_rows(self, rows: Sequence[JudgeRow]) -> Any:
        scores = self.score_pairs([(row.question, text) for row in rows for text in row.texts])
        return scores.view(len(rows), -1)

    def weigh_loss(self, scores: Any, targets: RowTargets) -> Any:
        return pair_loss(scores, targets)


class JudgeModel(TunedMiniLM, PairModel):
    """The packaged encoder and the head."""

    def export_deltas(self) -> dict[str, NDArray[Any]]:
        """The encoder's changes, and the head as float16."""
        import numpy as np

        head = {HEAD_WEIGHT: self.head.weight, HEAD_BIAS: self.head.bias}
        return super().export_deltas() | {
            key: one.detach().cpu().numpy().astype(np.float16) for key, one in head.items()
        }


def train_judge(
    cases: Sequence[JudgedCase],
    recipe: JudgeRecipe,
    work: Path,
    *,
    progress: Progress | None = None,
    measure_dev: Callable[[JudgeModel], float] | None = None,
    machine: Machine = Machine(),  # noqa: B008 - frozen
    keep_each: int = 50,
) -> JudgeModel:
    """Trains on these cases, as `train_rows` does.

    Raises `ModelError` without the extra `train`, and `BadConfig` for a device that is not there.
    """
    machine.prepare()
    sampler = JudgeSampler(cases, recipe.rows, recipe.texts, recipe.seed)
    return train_rows(
        JudgeModel(recipe, machine),
        sampler,
        work,
        progress=progress,
        measure_dev=measure_dev,
        keep_each=keep_each,
    )
