"""The encoder `match` in torch, and its training: a student of a larger encoder, with labels.

Between the questions and the sentences of a step, the student's cosines are drawn towards the
teacher's: by Kullback and Leibler's divergence of their softmax over the sentences (Hinton et al.
2015), and by their squared difference. Where sentences were judged, the teacher is corrected.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import cos, pi
from pathlib import Path
from typing import TYPE_CHECKING, Any

from osler.errors import ModelError
from osler.jobs.runner import Progress
from osler.kb.encoders.base import WordPieces
from osler.llm.local.weights import MINILM_TOKENIZER, locate_weights
from osler.llm.transformers.hub import import_extra, silence_transformers
from osler.retrieve.experts.packing import pack_delta
from osler.train.experts.checkpoints import (
    CHECKPOINT,
    TRAINING_LOG,
    keep_checkpoint,
    resume_training,
)
from osler.train.experts.judge_training import open_tunable_encoder
from osler.train.experts.match_rows import MatchSampler, MatchStep, mean_vectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TOGETHER = 18
"""Texts that are read at once."""
_ASKED, _SAID = 72, 110
"""Word pieces, with the marks at both ends, that are read of a question and of a sentence."""


@dataclass(frozen=True, slots=True)
class MatchRecipe:
    """What the weights depend on, beside the data."""

    steps: int = 700
    labelled: int = 4
    """Questions of a step that were labelled for Osler."""
    others: int = 2
    texts: int = 11
    """Sentences drawn for each question; each question is compared with those of all."""
    rate: float = 6e-5
    """Learning rate; it rises over forty steps and falls by half a cosine to a fiftieth."""
    temperature: float = 0.06
    squares: float = 5.0
    """Weight of the squared difference beside the divergence."""
    right: float = 0.12
    wrong: float = 0.06
    """What labels add to the teacher's cosine (`MatchSampler`)."""
    seed: int = 0


class MatchModel:
    """The encoder in torch."""

    def __init__(self) -> None:
        self.words = WordPieces(locate_weights(MINILM_TOKENIZER))
        with silence_transformers():
            self.encoder = open_tunable_encoder()
        self._start = {name: one.detach().clone() for name, one in self._tuned()}

    def _tuned(self) -> list[tuple[str, Any]]:
        return [pair for pair in self.encoder.named_parameters() if pair[1].requires_grad]

    def parameters(self) -> list[Any]:
        return [one for _, one in self._tuned()]

    def read_texts(self, texts: Sequence[str], most: int) -> Any:
        """Vectors of length 1, a tensor of shape (texts, numbers); those of like length together,
        as less is padded."""
        torch = import_extra("torch")
        ids = [self._cut_pieces(text, most) for text in texts]
        order = sorted(range(len(ids)), key=lambda at: len(ids[at]))
        groups = [order[at : at + _TOGETHER] for at in range(0, len(order), _TOGETHER)]
        vectors = torch.cat([self._read_group([ids[at] for at in group]) for group in groups])
        return vectors[torch.tensor(order).argsort()]

    def _cut_pieces(self, text: str, most: int) -> list[int]:
        words = self.words
        return [words.first, *words.piece_ids(text)[: most - 2], words.last]

    def _read_group(self, ids: Sequence[Sequence[int]]) -> Any:
        torch = import_extra("torch")
        read = torch.zeros(len(ids), max(map(len, ids)), dtype=torch.long)
        mask = torch.zeros_like(read)
        for row, one in enumerate(ids):
            read[row, : len(one)] = torch.tensor(one)
            mask[row, : len(one)] = 1
        return mean_vectors(self.encoder(input_ids=read, attention_mask=mask)[0], mask)

    def export_deltas(self) -> dict[str, NDArray[Any]]:
        """What was learnt: matrices' changes in few bits, other changes as float16."""
        found: dict[str, NDArray[Any]] = {}
        for name, one in self._tuned():
            found |= pack_delta(name, (one - self._start[name]).detach().numpy())
        return found

    def state(self) -> dict[str, Any]:
        """Everything that is learnt."""
        return {name: one.detach() for name, one in self._tuned()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.encoder.load_state_dict(state, strict=False)


def train_match(
    sampler: MatchSampler,
    recipe: MatchRecipe,
    work: Path,
    *,
    progress: Progress | None = None,
    threads: int = 1,
    keep_each: int = 50,
) -> MatchModel:
    """Trains the student; a checkpoint in `work`, kept every `keep_each` steps, is gone on from.

    Raises `ModelError` without the extra `train`, and for a loss that is not finite.
    """
    torch = import_extra("torch")
    torch.set_num_threads(threads)
    work.mkdir(parents=True, exist_ok=True)
    model = MatchModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=recipe.rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: _rate_at(s, recipe.steps))
    begun = resume_training(work / CHECKPOINT, recipe, model, optimizer, schedule)
    for step in range(begun, recipe.steps):
        loss = _loss_of(model, sampler.draw_step(step), recipe)
        if not torch.isfinite(loss):
            raise ModelError("the loss is not a finite number", fix="give a smaller rate")
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if (step + 1) % keep_each == 0 or step + 1 == recipe.steps:
            keep_checkpoint(work / CHECKPOINT, recipe, step + 1, model, optimizer, schedule)
        with (work / TRAINING_LOG).open("a", encoding="utf-8") as log:
            log.write(json.dumps({"step": step + 1, "loss": round(loss.item(), 4)}) + "\n")
        if progress is not None:
            progress("training", step + 1, recipe.steps)
    return model


def _rate_at(step: int, steps: int) -> float:
    """Share of the learning rate."""
    return min(1.0, (step + 1) / 40) * max(0.02, 0.5 * (1 + cos(pi * step / steps)))


def _loss_of(model: MatchModel, read: MatchStep, recipe: MatchRecipe) -> Any:
    torch = import_extra("torch")
    asked = model.read_texts(read.questions, _ASKED)
    scores = asked @ model.read_texts(read.texts, _SAID).T
    wanted = (torch.tensor(read.wanted) / recipe.temperature).softmax(1)
    found = (scores / recipe.temperature).log_softmax(1)
    divergence = torch.nn.functional.kl_div(found, wanted, reduction="batchmean")
    return divergence + recipe.squares * ((scores - torch.tensor(read.taught)) ** 2).mean()
