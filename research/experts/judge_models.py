"""The judge, the encoder `match` and their teacher in torch, their losses, and the training.

The judge reads question and sentence together (`osler.retrieve.experts.judge`); a linear head reads
the first token and the mean of all. `match` reads them apart: within the sentences of a question,
the softmax of its cosines is drawn towards that of the teacher's logits. The teacher is a larger
encoder, tuned on the labels to read as the judge does; its weights are in no part of what the two
become.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from expert_sets import JudgedCase
from judge_rows import JudgeRow, JudgeSampler

from osler.kb.encoders.base import WordPieces
from osler.kb.encoders.minilm import DIMENSION, HEADS, LAYERS, read_safetensors
from osler.llm.local.weights import MINILM, MINILM_TOKENIZER, locate_weights
from osler.llm.transformers.hub import open_model, open_tokenizer
from osler.retrieve.asked import QuestionReader
from osler.retrieve.experts.judge import JudgedText, read_judged
from osler.retrieve.experts.pair_graph import (
    HEAD_BIAS,
    HEAD_WEIGHT,
    PairInput,
    TextPieces,
    pack_delta,
)
from osler.text import one_line

_TOGETHER = 96
"""Texts that are read at once."""
_ASKED, _SAID = 72, 110
"""Word pieces, with the marks at both ends, that `match` reads of a question and of a sentence."""
_TEMPERATURE = 0.06
"""What cosines are divided by, to be as far apart as logits are."""
_FARTHEST = 6.0
"""Logits from which a difference counts no more."""


@dataclass(frozen=True, slots=True)
class RowRecipe:
    """What the weights depend on, beside the data."""

    steps: int
    rows: int
    """Questions of a step."""
    texts: int
    """Sentences of a question."""
    rate: float
    """Learning rate of the encoder; it rises over a twentieth of the steps and falls to 0."""
    hard: float = 1.0
    """Weight of the labels beside a teacher's logits; without them they count whole."""
    seed: int = 0


TEACHER = RowRecipe(steps=1_000, rows=24, texts=6, rate=3e-5)
JUDGE = RowRecipe(steps=4_600, rows=32, texts=6, rate=2.5e-4, hard=0.25)
MATCH = RowRecipe(steps=2_500, rows=32, texts=8, rate=1.5e-4, hard=0.5)


class TunedModel:
    """An encoder whose layers are tuned, with a head that reads pairs, or without."""

    words: TextPieces
    head: Any = None
    padding = 0
    """The piece that fills up what is shorter."""
    varies = True
    """Whether texts lose their heading or their neighbours now and then."""

    def __init__(self, encoder: Any, recipe: RowRecipe, device: str) -> None:
        self.encoder, self.recipe, self.device = encoder.to(device), recipe, device

    def tuned(self) -> list[tuple[str, Any]]:
        """The encoder's tensors that learn."""
        return [pair for pair in self.encoder.named_parameters() if pair[1].requires_grad]

    def parameters(self) -> list[dict[str, Any]]:
        """Parameter groups of the optimizer: encoder and head."""
        groups = [{"params": [one for _, one in self.tuned()], "lr": self.recipe.rate}]
        return groups + ([{"params": [*self.head.parameters()], "lr": 1e-3}] if self.head else [])

    def score_rows(self, rows: Sequence[JudgeRow]) -> Any:
        """Scores of the rows' texts, a tensor of shape (rows, texts)."""
        raise NotImplementedError

    def read_states(self, read: Sequence[PairInput], sum_up: Callable[[Any, Any], Any]) -> Any:
        """What `sum_up` makes of the last layer's states and of what to weigh each place by, in
        order. Texts of like length are read together: less is padded."""
        order = sorted(range(len(read)), key=lambda at: len(read[at].ids))
        groups = [order[at : at + _TOGETHER] for at in range(0, len(order), _TOGETHER)]
        found = [self._read_group([read[at] for at in one], sum_up) for one in groups]
        return torch.cat(found)[torch.tensor(order, device=self.device).argsort()]

    def _read_group(self, read: Sequence[PairInput], sum_up: Callable[[Any, Any], Any]) -> Any:
        fill, rows = torch.nn.utils.rnn.pad_sequence, [torch.tensor(one.ids) for one in read]
        ids = fill(rows, batch_first=True, padding_value=self.padding).to(self.device)
        segments = fill([torch.tensor(one.segments) for one in read], batch_first=True)
        mask = fill([torch.ones_like(row) for row in rows], batch_first=True).to(self.device)
        kind = torch.device(self.device).type
        with torch.autocast(kind, dtype=torch.bfloat16, enabled=kind == "cuda"):
            states = self.run_encoder(ids, segments.to(self.device), mask).last_hidden_state
        return sum_up(states.float(), mask[..., None].float())

    def run_encoder(self, ids: Any, segments: Any, mask: Any) -> Any:
        return self.encoder(input_ids=ids, token_type_ids=segments, attention_mask=mask)


class PairModel(TunedModel):
    """An encoder with a head, which read question and sentence together."""

    def __init__(self, encoder: Any, recipe: RowRecipe, device: str) -> None:
        super().__init__(encoder, recipe, device)
        torch.manual_seed(recipe.seed)
        self.head = torch.nn.Linear(2 * encoder.config.hidden_size, 1).to(device)

    def read_pair(self, question: str, text: JudgedText) -> PairInput:
        return read_judged(self.words, question, text)

    def score_pairs(self, pairs: Sequence[tuple[str, JudgedText]]) -> Any:
        """Logits of questions and sentences, as a tensor of their number."""
        return self.read_states([self.read_pair(*pair) for pair in pairs], self._judge_states)

    def _judge_states(self, states: Any, weights: Any) -> Any:
        return self.head(torch.cat([states[:, 0], mean_states(states, weights)], -1))[:, 0]

    def score_rows(self, rows: Sequence[JudgeRow]) -> Any:
        scores = self.score_pairs([(row.question, text) for row in rows for text in row.texts])
        return scores.view(len(rows), -1)


class TeacherModel(PairModel):
    """A larger encoder, all of which is tuned, and a head. `folder` as `transformers` reads it."""

    def __init__(self, folder: Path, recipe: RowRecipe, device: str) -> None:
        encoder = open_model("AutoModel", folder, dtype="float32", device="cpu")
        for one in encoder.modules():
            if isinstance(one, torch.nn.Dropout):
                one.p = 0.1
        super().__init__(encoder, recipe, device)
        self.words = self._pieces = TeacherPieces(folder)
        self.padding = self._pieces.padding

    def read_pair(self, question: str, text: JudgedText) -> PairInput:
        """As the judge reads, with as many marks between as the model knows."""
        ids = super().read_pair(question, text).ids
        at = ids.index(self.words.last)
        ids = ids[:at] + (self.words.last,) * self._pieces.further + ids[at:]
        return PairInput(ids, (0,) * len(ids))

    def run_encoder(self, ids: Any, segments: Any, mask: Any) -> Any:
        return self.encoder(input_ids=ids, attention_mask=mask)

    def score_cases(self, cases: Sequence[JudgedCase]) -> np.ndarray:
        """Logits of all texts of all cases, one after the other."""
        reader = QuestionReader()
        self.encoder.eval()
        with torch.no_grad():
            found = [
                self.score_pairs([(reader.read(one.question).full, text) for text in one.texts])
                for one in cases
            ]
        logits: np.ndarray = torch.cat(found).cpu().numpy()
        return logits


class TeacherPieces:
    """The pieces of a model's own tokenizer, as `TextPieces`."""

    def __init__(self, folder: Path) -> None:
        self._tokenizer = open_tokenizer(folder)
        self.first: int = self._tokenizer.cls_token_id
        self.last: int = self._tokenizer.sep_token_id
        self.padding: int = self._tokenizer.pad_token_id
        self.further = self._tokenizer.num_special_tokens_to_add(pair=True) - 3
        """Marks between two texts, beyond the one that BERT has."""

    def piece_ids(self, text: str) -> list[int]:
        """The pieces alone, however many."""
        return list(self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])


class TunedMiniLM(TunedModel):
    """The packaged encoder; what changed in its layers is what ships."""

    def __init__(self, recipe: RowRecipe, device: str) -> None:
        super().__init__(open_tunable_encoder(), recipe, device)
        self.words = WordPieces(locate_weights(MINILM_TOKENIZER))
        self._start = {name: one.detach().cpu().clone() for name, one in self.tuned()}

    def export_deltas(self) -> dict[str, np.ndarray]:
        """What was learnt: matrices' changes in few bits, other changes as float16."""
        found: dict[str, np.ndarray] = {}
        for name, one in self.tuned():
            found |= pack_delta(name, (one.detach().cpu() - self._start[name]).numpy())
        return found


class JudgeModel(TunedMiniLM, PairModel):
    """The packaged encoder and the head."""

    def export_deltas(self) -> dict[str, np.ndarray]:
        head = {HEAD_WEIGHT: self.head.weight, HEAD_BIAS: self.head.bias}
        found = {key: one.detach().cpu().numpy().astype(np.float16) for key, one in head.items()}
        return super().export_deltas() | found


class MatchModel(TunedMiniLM):
    """The packaged encoder, which reads question and sentence apart."""

    varies = False

    def score_rows(self, rows: Sequence[JudgeRow]) -> Any:
        asked = self._read_texts([row.question for row in rows], _ASKED)
        said = self._read_texts([text_of(text) for row in rows for text in row.texts], _SAID)
        cosines = (said.view(len(rows), -1, asked.shape[1]) @ asked[:, :, None])[..., 0]
        return cosines / _TEMPERATURE

    def _read_texts(self, texts: Sequence[str], most: int) -> Any:
        """Vectors of length 1, a tensor of shape (texts, numbers)."""
        words = self.words
        cut = [(words.first, *words.piece_ids(text)[: most - 2], words.last) for text in texts]
        states = self.read_states([PairInput(ids, (0,) * len(ids)) for ids in cut], mean_states)
        return torch.nn.functional.normalize(states, dim=-1)


def text_of(text: JudgedText) -> str:
    """The sentence under its heading, as the gate gives it to the encoder."""
    return one_line(f"{text.heading}. {text.sentence}" if text.heading else text.sentence)


def mean_states(states: Any, weights: Any) -> Any:
    """The mean over the places that are no padding."""
    return (states * weights).sum(1) / weights.sum(1)


def open_tunable_encoder() -> Any:
    """The packaged encoder, all of whose layers are tuned; its table of words is not."""
    config = transformers.BertConfig(
        hidden_size=DIMENSION,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=4 * DIMENSION,
        # Rows hardly ever come again as they were: there is little to overfit.
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
    assert not lacking, lacking
    for name, one in encoder.named_parameters():
        one.requires_grad = name.startswith("encoder.layer.")
    return encoder


def measure_loss(scores: Any, rows: Sequence[JudgeRow], hard: float, *, pairs: bool) -> Any:
    """How far the scores of a step are from labels, and from a teacher's logits (Hinton et al.
    2015): which of a row's texts answers, and of `pairs`, whose scores compare between questions,
    also whether each does."""
    device, unknown = scores.device, float("nan")
    worth, taught = (
        torch.tensor([[unknown if x is None else x for x in one] for one in table], device=device)
        for table in ([row.worth for row in rows], [row.taught for row in rows])
    )
    known, heard = ~worth.isnan(), ~taught.isnan()
    weight = hard if heard.any() else 1.0
    worth, taught = torch.nan_to_num(worth), torch.nan_to_num(taught)
    shares = worth / worth.sum(1, keepdim=True).clamp(min=1e-6)
    choice = -(shares * torch.log_softmax(scores, 1)).sum(1)
    loss = weight * _mean_of(choice, known.all(1) & (worth.sum(1) > 0))
    # Kullback and Leibler's divergence of a row's softmax from the teacher's, over what it scored.
    unscored = ~heard * -1e4
    wanted, found = (torch.log_softmax(one + unscored, 1) for one in (taught, scores))
    loss = loss + _mean_of((wanted.exp() * (wanted - found)).sum(1), heard.sum(1) >= 2)
    if not pairs:
        return loss
    entropy = torch.nn.functional.binary_cross_entropy_with_logits
    labelled = _mean_of(entropy(scores, worth, reduction="none"), known)
    whether = _mean_of(entropy(scores, taught.sigmoid(), reduction="none"), heard)
    clearly = _mean_of((scores - taught).clamp(-_FARTHEST, _FARTHEST) ** 2, heard)
    return loss + 0.5 * weight * labelled + 0.5 * whether + 0.1 * clearly


def _mean_of(values: Any, chosen: Any) -> Any:
    return (values * chosen).sum() / chosen.sum().clamp(min=1)


def train_rows(model: TunedModel, cases: Sequence[JudgedCase], log: Path) -> None:
    """Trains a model on these cases; `log` gets the loss of each step."""
    recipe = model.recipe
    sampler = JudgeSampler(cases, recipe.rows, recipe.texts, recipe.seed, model.varies)
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: _rate_at(s, recipe.steps))
    tensors = [one for group in optimizer.param_groups for one in group["params"]]
    model.encoder.train()
    torch.manual_seed(recipe.seed)
    with log.open("w", encoding="utf-8") as lines:
        for step in range(recipe.steps):
            rows = sampler.draw_step(step)
            pairs = model.head is not None
            loss = measure_loss(model.score_rows(rows), rows, recipe.hard, pairs=pairs)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(tensors, 1.0, error_if_nonfinite=True)
            optimizer.step()
            schedule.step()
            lines.write(json.dumps({"step": step + 1, "loss": round(loss.item(), 4)}) + "\n")


def _rate_at(step: int, steps: int) -> float:
    """Share of the learning rate: a rise over a twentieth of the steps, then a line to 0."""
    warm = max(1, steps // 20)
    return max(0.0, min((step + 1) / warm, (steps - step) / max(1, steps - warm)))
