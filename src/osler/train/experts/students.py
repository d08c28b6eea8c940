"""The judge and the encoder `match` in torch: they learn from labels, and from a teacher.

The judge reads question and sentence together (`osler.retrieve.experts.judge`); a linear head
reads the first token and the mean of all. `match` reads them apart: within the sentences of a
question, the softmax of its cosines is drawn towards that of the teacher's logits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from osler.llm.transformers.hub import import_extra
from osler.retrieve.experts.judge import JudgedText, read_judged
from osler.retrieve.experts.pair_graph import HEAD_BIAS, HEAD_WEIGHT, PairInput
from osler.text import one_line
from osler.train.experts.judge_batches import JudgeRow
from osler.train.experts.row_losses import RowTargets, cosine_loss, pair_loss
from osler.train.experts.tuned_models import (
    Machine,
    RowRecipe,
    TunedMiniLM,
    TunedModel,
    mean_states,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ASKED, _SAID = 72, 110
"""Word pieces, with the marks at both ends, that are read of a question and of a sentence."""
_TEMPERATURE = 0.06
"""What cosines are divided by, to be as far apart as logits are."""


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

    varies = False

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
