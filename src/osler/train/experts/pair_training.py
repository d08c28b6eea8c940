"""The pair model: the packaged encoder with low-rank deltas and a head, and its training.

The packaged all-MiniLM-L6-v2 reads question and text together. Its last four layers learn deltas
of low rank (Hu et al. 2021, by peft), a linear head reads the first token and the mean of all.
The loss is a softmax over the texts of a question (which of them answers?) plus a logistic one
for each pair (does it answer at all?), so that scores can be compared between questions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from osler.errors import ModelError
from osler.jobs.runner import Progress
from osler.kb.encoders.base import WordPieces
from osler.kb.encoders.minilm import DIMENSION, HEADS, LAYERS, read_safetensors
from osler.llm.core.cache import write_whole
from osler.llm.local.weights import MINILM, MINILM_TOKENIZER, locate_weights
from osler.llm.transformers.hub import import_extra, silence_transformers
from osler.retrieve.experts.pair_input import read_pair
from osler.train.experts.pair_batches import PairRow, PairSampler
from osler.train.experts.pair_questions import PairQuestion

if TYPE_CHECKING:
    from numpy.typing import NDArray

CHECKPOINT, TRAINING_LOG = "checkpoint.pt", "training.jsonl"
_ADAPTED = ("query", "key", "value", "attention.output.dense", "intermediate.dense", "output.dense")


@dataclass(frozen=True, slots=True)
class PairRecipe:
    """What the weights depend on, beside the data."""

    steps: int = 180
    rows: int = 8
    """Questions of a step."""
    texts: int = 4
    """Texts of a question, one of them right."""
    rank: int = 16
    layers: tuple[int, ...] = (2, 3, 4, 5)
    """Layers with deltas, from 0."""
    rate: float = 8e-4
    """Learning rate of the deltas; it rises over the first twentieth and falls to 0."""
    head_rate: float = 1e-3
    longest: int = 96
    """Pieces of a pair in training."""
    pairwise: float = 0.5
    """Weight of the logistic loss beside the softmax."""
    seed: int = 0


class PairModel:
    """The encoder with deltas and head, in torch."""

    def __init__(self, recipe: PairRecipe) -> None:
        torch = import_extra("torch")
        self.recipe = recipe
        self.words = WordPieces(locate_weights(MINILM_TOKENIZER))
        with torch.random.fork_rng(), silence_transformers():
            torch.manual_seed(recipe.seed)
            self.encoder = _adapted_encoder(recipe)
            self.head = torch.nn.Linear(2 * DIMENSION, 1)

    def score_pairs(self, pairs: Sequence[tuple[str, str, str]]) -> Any:
        """Logits of (question, text, title) triples, as a tensor of their number."""
        torch = import_extra("torch")
        read = [
            read_pair(self.words, question, text, title, longest=self.recipe.longest)
            for question, text, title in pairs
        ]
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
        """Parameter groups of the optimizer: deltas and head."""
        deltas = [one for one in self.encoder.parameters() if one.requires_grad]
        return [
            {"params": deltas, "lr": self.recipe.rate},
            {"params": list(self.head.parameters()), "lr": self.recipe.head_rate},
        ]

    def export_deltas(self) -> dict[str, NDArray[Any]]:
        """Deltas and head as float16: `NAME.down` (rank, in), `NAME.up` (out, rank), scaled."""
        import numpy as np

        found = {}
        for name, module in self.encoder.named_modules():
            if not hasattr(module, "lora_A"):
                continue
            key = name[name.index("encoder.layer.") :]
            scale = module.scaling["default"]
            found[f"{key}.down"] = module.lora_A["default"].weight
            found[f"{key}.up"] = module.lora_B["default"].weight * scale
        found |= {"head.weight": self.head.weight, "head.bias": self.head.bias}
        return {
            name: np.ascontiguousarray(value.detach().numpy().astype(np.float16))
            for name, value in found.items()
        }

    def state(self) -> dict[str, Any]:
        """Everything that is learnt."""
        peft = import_extra("peft")
        return {
            "deltas": peft.get_peft_model_state_dict(self.encoder),
            "head": self.head.state_dict(),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        peft = import_extra("peft")
        peft.set_peft_model_state_dict(self.encoder, state["deltas"])
        self.head.load_state_dict(state["head"])


def _adapted_encoder(recipe: PairRecipe) -> Any:
    torch, transformers = import_extra("torch"), import_extra("transformers")
    peft = import_extra("peft")
    config = transformers.BertConfig(
        hidden_size=DIMENSION,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=4 * DIMENSION,
        # Less than one pass over the questions is made: there is nothing to overfit.
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    base = transformers.BertModel(config, add_pooling_layer=False)
    tensors = {
        name: torch.tensor(values)
        for name, values in read_safetensors(locate_weights(MINILM)).items()
        if not name.startswith("pooler.") and not name.endswith("position_ids")
    }
    lacking = base.load_state_dict(tensors, strict=False).missing_keys
    if lacking:
        raise ModelError(f"the packaged encoder lacks {', '.join(lacking[:3])}")
    adapter = peft.LoraConfig(
        r=recipe.rank,
        lora_alpha=2 * recipe.rank,
        lora_dropout=0.0,
        target_modules=list(_ADAPTED),
        layers_to_transform=list(recipe.layers),
        layers_pattern="layer",
    )
    return peft.get_peft_model(base, adapter)


def train_pairs(
    questions: Sequence[PairQuestion],
    recipe: PairRecipe,
    work: Path,
    *,
    progress: Progress | None = None,
    measure_dev: Callable[[PairModel], float] | None = None,
    threads: int = 1,
    keep_each: int = 20,
) -> PairModel:
    """Trains on these questions; a checkpoint in `work`, kept every `keep_each` steps, is gone
    on from.

    `measure_dev` is asked every hundred steps, for the log alone. Raises `ModelError` without
    the extra `train`, and for a loss that is not finite.
    """
    torch = import_extra("torch")
    torch.set_num_threads(threads)
    work.mkdir(parents=True, exist_ok=True)
    model = PairModel(recipe)
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: _rate_at(s, recipe.steps))
    begun = _resume_training(work / CHECKPOINT, recipe, model, optimizer, schedule)
    sampler = PairSampler(questions, recipe.rows, recipe.texts, recipe.seed)
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
            _keep_checkpoint(work / CHECKPOINT, recipe, step + 1, model, optimizer, schedule)
        with (work / TRAINING_LOG).open("a", encoding="utf-8") as log:
            log.write(json.dumps(facts) + "\n")
        if progress is not None:
            progress("training", step + 1, recipe.steps)
    return model


def _rate_at(step: int, steps: int) -> float:
    """Share of the learning rate: a rise over a twentieth of the steps, then a line to 0."""
    warm = max(1, steps // 20)
    return min((step + 1) / warm, (steps - step) / max(1, steps - warm))


def _loss_of(model: PairModel, rows: Sequence[PairRow], recipe: PairRecipe) -> Any:
    torch = import_extra("torch")
    scores = model.score_pairs(list(_triples_of(rows))).view(len(rows), recipe.texts)
    right = torch.zeros(len(rows), dtype=torch.long)
    which = torch.nn.functional.cross_entropy(scores, right)
    gold = torch.nn.functional.one_hot(right, recipe.texts).to(scores.dtype)
    whether = torch.nn.functional.binary_cross_entropy_with_logits(scores, gold)
    return which + recipe.pairwise * whether


def _triples_of(rows: Sequence[PairRow]) -> Iterator[tuple[str, str, str]]:
    for row in rows:
        for text in row.texts:
            yield row.question, text.text, text.title


def _keep_checkpoint(
    path: Path, recipe: PairRecipe, step: int, model: PairModel, optimizer: Any, schedule: Any
) -> None:
    torch = import_extra("torch")
    content = {
        "recipe": asdict(recipe),
        "step": step,
        "model": model.state(),
        "optimizer": optimizer.state_dict(),
        "schedule": schedule.state_dict(),
    }
    with write_whole(path) as draft:
        torch.save(content, draft)


def _resume_training(
    path: Path, recipe: PairRecipe, model: PairModel, optimizer: Any, schedule: Any
) -> int:
    """The first step that is still to be done. Raises `ModelError` for another recipe's."""
    torch = import_extra("torch")
    if not path.is_file():
        return 0
    content = torch.load(path, weights_only=True)
    kept = content["recipe"] | {"layers": tuple(content["recipe"]["layers"])}
    if kept != asdict(recipe):
        raise ModelError(
            f"{path} is of a training with other settings", fix="choose another --work folder"
        )
    model.load_state(content["model"])
    optimizer.load_state_dict(content["optimizer"])
    schedule.load_state_dict(content["schedule"])
    step: int = content["step"]
    return step
