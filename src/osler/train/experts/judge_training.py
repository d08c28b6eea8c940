"""The judge in torch, and its training: all layers of the packaged encoder and a head.

Question and sentence are read together (`osler.retrieve.experts.judge`); a linear head reads the
first token and the mean of all. The loss is a softmax over the sentences of a question (which of
them answers?) plus a logistic one for each pair (does it answer at all?), so that scores can be
compared between questions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from osler.errors import ModelError
from osler.jobs.runner import Progress
from osler.kb.encoders.base import WordPieces
from osler.kb.encoders.minilm import DIMENSION, HEADS, LAYERS, read_safetensors
from osler.llm.local.weights import MINILM, MINILM_TOKENIZER, locate_weights
from osler.llm.transformers.hub import import_extra, silence_transformers
from osler.retrieve.experts.judge import JudgedText, read_judged
from osler.retrieve.experts.packing import pack_delta
from osler.retrieve.experts.pair_graph import HEAD_BIAS, HEAD_WEIGHT
from osler.retrieve.experts.pair_input import PairInput
from osler.train.experts.checkpoints import (
    CHECKPOINT,
    TRAINING_LOG,
    keep_checkpoint,
    resume_training,
)
from osler.train.experts.judge_batches import JudgeRow, JudgeSampler
from osler.train.experts.judge_cases import JudgedCase

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TOGETHER = 8
"""Pairs that are read at once."""


@dataclass(frozen=True, slots=True)
class JudgeRecipe:
    """What the weights depend on, beside the data."""

    cycles: tuple[int, ...] = (450, 350, 950)
    """Steps after each of which the learning rate begins anew (Loshchilov & Hutter 2017), each with
    its own mix of the sets."""
    rows: int = 6
    """Questions of a step."""
    texts: int = 4
    """Sentences of a question."""
    rate: float = 6e-5
    """Learning rate of the encoder; in each cycle it rises over a twentieth and falls to 0."""
    head_rate: float = 1e-3
    pairwise: float = 0.5
    """Weight of the logistic loss beside the softmax."""
    seed: int = 0

    @property
    def steps(self) -> int:
        """Steps of all cycles."""
        return sum(self.cycles)


class JudgeModel:
    """The encoder and the head, in torch."""

    def __init__(self, recipe: JudgeRecipe) -> None:
        torch = import_extra("torch")
        self.recipe = recipe
        self.words = WordPieces(locate_weights(MINILM_TOKENIZER))
        with torch.random.fork_rng(), silence_transformers():
            torch.manual_seed(recipe.seed)
            self.encoder = open_tunable_encoder()
            self.head = torch.nn.Linear(2 * DIMENSION, 1)
        self._start = {name: one.detach().clone() for name, one in self._tuned()}

    def _tuned(self) -> list[tuple[str, Any]]:
        return [pair for pair in self.encoder.named_parameters() if pair[1].requires_grad]

    def score_pairs(self, pairs: Sequence[tuple[str, JudgedText]]) -> Any:
        """Logits of questions and sentences, as a tensor of their number.

        Pairs of like length are read together: less is padded.
        """
        torch = import_extra("torch")
        read = [read_judged(self.words, question, text) for question, text in pairs]
        order = sorted(range(len(read)), key=lambda at: len(read[at].ids))
        groups = [order[at : at + _TOGETHER] for at in range(0, len(order), _TOGETHER)]
        logits = torch.cat([self._score_group([read[at] for at in group]) for group in groups])
        return logits[torch.tensor(order).argsort()]

    def _score_group(self, read: Sequence[PairInput]) -> Any:
        torch = import_extra("torch")
        most = max(len(one.ids) for one in read)
        ids = torch.zeros(len(read), most, dtype=torch.long)
        segments, mask = torch.zeros_like(ids), torch.zeros_like(ids)
        for row, one in enumerate(read):
            length = len(one.ids)
            ids[row, :length] = torch.tensor(one.ids)
            segments[row, :length] = torch.tensor(one.segments)
            mask[row, :length] = 1
        states = self.encoder(
            input_ids=ids, token_type_ids=segments, attention_mask=mask
        ).last_hidden_state
        weights = mask[..., None].to(states.dtype)
        mean = (states * weights).sum(1) / weights.sum(1)
        return self.head(torch.cat([states[:, 0], mean], -1))[:, 0]

    def parameters(self) -> list[dict[str, Any]]:
        """Parameter groups of the optimizer: encoder and head."""
        return [
            {"params": [one for _, one in self._tuned()], "lr": self.recipe.rate},
            {"params": list(self.head.parameters()), "lr": self.recipe.head_rate},
        ]

    def export_deltas(self) -> dict[str, NDArray[Any]]:
        """What was learnt: matrices' changes in few bits, other changes and the head as float16."""
        import numpy as np

        found: dict[str, NDArray[Any]] = {}
        for name, one in self._tuned():
            change = (one - self._start[name]).detach().numpy()
            found |= pack_delta(name, change)
        head = {HEAD_WEIGHT: self.head.weight, HEAD_BIAS: self.head.bias}
        return found | {key: one.detach().numpy().astype(np.float16) for key, one in head.items()}

    def state(self) -> dict[str, Any]:
        """Everything that is learnt."""
        tuned = {name: one.detach() for name, one in self._tuned()}
        return {"tuned": tuned, "head": self.head.state_dict()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.encoder.load_state_dict(state["tuned"], strict=False)
        self.head.load_state_dict(state["head"])


def open_tunable_encoder() -> Any:
    """The packaged encoder, all of whose layers are tuned; its table of words is not."""
    torch, transformers = import_extra("torch"), import_extra("transformers")
    config = transformers.BertConfig(
        hidden_size=DIMENSION,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=4 * DIMENSION,
        # About two passes over the questions are made: there is little to overfit.
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    encoder = transformers.BertModel(config, add_pooling_layer=False)
    tensors = {
        name: torch.tensor(values)
        for name, values in read_safetensors(locate_weights(MINILM)).items()
        if not name.startswith("pooler.") and not name.endswith("position_ids")
    }
    lacking = encoder.load_state_dict(tensors, strict=False).missing_keys
    if lacking:
        raise ModelError(f"the packaged encoder lacks {', '.join(lacking[:3])}")
    for name, one in encoder.named_parameters():
        one.requires_grad = name.startswith("encoder.layer.")
    return encoder


def train_judge(
    cases: Sequence[JudgedCase],
    recipe: JudgeRecipe,
    work: Path,
    *,
    progress: Progress | None = None,
    measure_dev: Callable[[JudgeModel], float] | None = None,
    threads: int = 1,
    keep_each: int = 20,
) -> JudgeModel:
    """Trains on these cases; a checkpoint in `work`, kept every `keep_each` steps, is gone on from.

    `measure_dev` is asked every hundred steps, for the log alone. Raises `ModelError` without
    the extra `train`, and for a loss that is not finite.
    """
    torch = import_extra("torch")
    torch.set_num_threads(threads)
    work.mkdir(parents=True, exist_ok=True)
    model = JudgeModel(recipe)
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: _rate_at(s, recipe))
    begun = resume_training(work / CHECKPOINT, recipe, model, optimizer, schedule)
    sampler = JudgeSampler(cases, recipe.rows, recipe.texts, recipe.seed, recipe.cycles)
    for step in range(begun, recipe.steps):
        loss = _loss_of(model, sampler.draw_step(step), recipe)
        if not torch.isfinite(loss):
            raise ModelError("the loss is not a finite number", fix="give a smaller rate")
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([p for g in model.parameters() for p in g["params"]], 1.0)
        optimizer.step()
        schedule.step()
        facts: dict[str, Any] = {"step": step + 1, "loss": round(loss.item(), 4)}
        if (step + 1) % 100 == 0 and measure_dev is not None:
            facts["dev"] = round(measure_dev(model), 4)
        if (step + 1) % keep_each == 0 or step + 1 == recipe.steps:
            keep_checkpoint(work / CHECKPOINT, recipe, step + 1, model, optimizer, schedule)
        with (work / TRAINING_LOG).open("a", encoding="utf-8") as log:
            log.write(json.dumps(facts) + "\n")
        if progress is not None:
            progress("training", step + 1, recipe.steps)
    return model


def _rate_at(step: int, recipe: JudgeRecipe) -> float:
    """Share of the learning rate: a rise over a twentieth of a cycle's steps, then a line to 0."""
    done = step
    for length in recipe.cycles:
        if done < length:
            break
        done -= length
    warm = max(1, length // 20)
    return max(0.0, min((done + 1) / warm, (length - done) / max(1, length - warm)))


def _loss_of(model: JudgeModel, rows: Sequence[JudgeRow], recipe: JudgeRecipe) -> Any:
    torch = import_extra("torch")
    scores = model.score_pairs([(row.question, text) for row in rows for text in row.texts])
    scores = scores.view(len(rows), recipe.texts)
    worth = torch.tensor([row.worth for row in rows], dtype=scores.dtype)
    whether = torch.nn.functional.binary_cross_entropy_with_logits(scores, worth)
    total = worth.sum(1, keepdim=True)
    # Questions that no sentence answers say only whether, not which.
    shares = worth / total.clamp(min=1e-6)
    which = -(shares * torch.log_softmax(scores, 1)).sum() / max(1, int((total > 0).sum()))
    return which + recipe.pairwise * whether
