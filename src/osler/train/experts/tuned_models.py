"""Encoders whose layers are tuned, in torch: what the judge, `match` and their teacher share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from osler.errors import BadConfig, ModelError
from osler.kb.encoders.base import WordPieces
from osler.kb.encoders.minilm import DIMENSION, HEADS, LAYERS, read_safetensors
from osler.llm.local.weights import MINILM, MINILM_TOKENIZER, locate_weights
from osler.llm.transformers.hub import import_extra, silence_transformers
from osler.retrieve.experts.pair_graph import PairInput, TextPieces, pack_delta
from osler.train.experts.judge_batches import JudgeRow
from osler.train.experts.row_losses import RowTargets

if TYPE_CHECKING:
    from numpy.typing import NDArray

CPU = "cpu"
_TOGETHER, _MANY_TOGETHER = 8, 96
"""Texts that are read at once, without an accelerator and with one."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What computes."""

    device: str = CPU
    """Whatever torch accepts: "cpu", "cuda", "cuda:1"."""
    threads: int = 1

    def prepare(self) -> None:
        """Raises `BadConfig` for a device that is not there."""
        torch = import_extra("torch")
        torch.set_num_threads(self.threads)
        try:
            torch.zeros(1, device=self.device)
        except (RuntimeError, AssertionError) as error:
            why = str(error).partition("\n")[0]
            raise BadConfig(f"no device {self.device!r}: {why}", fix="give --device cpu") from error


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
    """Weight of the labels beside a teacher; without one they count whole."""
    head_rate: float = 1e-3
    seed: int = 0


class TunedModel(ABC):
    """An encoder whose layers are tuned, with a head or without.

    Raises `BadConfig` for a device that is not there, `ModelError` without the extra `train`.
    """

    words: TextPieces
    head: Any = None
    padding = 0
    """The piece that fills up what is shorter."""
    varies = True
    """Whether texts lose their heading or their neighbours now and then."""

    def __init__(self, encoder: Any, recipe: RowRecipe, machine: Machine) -> None:
        machine.prepare()
        self.recipe = recipe
        self.device = machine.device
        self.encoder = encoder.to(self.device)

    @abstractmethod
    def score_rows(self, rows: Sequence[JudgeRow]) -> Any:
        """Scores of the rows' texts, a tensor of shape (rows, texts)."""

    @abstractmethod
    def weigh_loss(self, scores: Any, targets: RowTargets) -> Any:
        """How far these scores are from what they should be."""

    def _tuned(self) -> list[tuple[str, Any]]:
        return [pair for pair in self.encoder.named_parameters() if pair[1].requires_grad]

    def parameters(self) -> list[dict[str, Any]]:
        """Parameter groups of the optimizer: encoder and head."""
        groups = [{"params": [one for _, one in self._tuned()], "lr": self.recipe.rate}]
        if self.head is not None:
            groups.append({"params": list(self.head.parameters()), "lr": self.recipe.head_rate})
        return groups

    def read_states(self, read: Sequence[PairInput], sum_up: Callable[[Any, Any], Any]) -> Any:
        """What `sum_up` makes of the last layer's states and of what to weigh each place by, in
        order. Texts of like length are read together: less is padded."""
        torch = import_extra("torch")
        size = _TOGETHER if self.device == CPU else _MANY_TOGETHER
        order = sorted(range(len(read)), key=lambda at: len(read[at].ids))
        groups = [order[at : at + size] for at in range(0, len(order), size)]
        found = [self._read_group([read[at] for at in one], sum_up) for one in groups]
        return torch.cat(found)[torch.tensor(order, device=self.device).argsort()]

    def _read_group(self, read: Sequence[PairInput], sum_up: Callable[[Any, Any], Any]) -> Any:
        torch = import_extra("torch")
        longest = max(len(one.ids) for one in read)
        ids = torch.full((len(read), longest), self.padding)
        segments, mask = torch.zeros_like(ids), torch.zeros_like(ids)
        for row, one in enumerate(read):
            length = len(one.ids)
            ids[row, :length] = torch.tensor(one.ids)
            segments[row, :length] = torch.tensor(one.segments)
            mask[row, :length] = 1
        ids, segments, mask = (one.to(self.device) for one in (ids, segments, mask))
        kind = torch.device(self.device).type
        with torch.autocast(kind, dtype=torch.bfloat16, enabled=kind == "cuda"):
            states = self._run_encoder(ids, segments, mask).last_hidden_state.float()
        return sum_up(states, mask[..., None].float())

    def _run_encoder(self, ids: Any, segments: Any, mask: Any) -> Any:
        return self.encoder(input_ids=ids, token_type_ids=segments, attention_mask=mask)

    def state_dict(self) -> dict[str, Any]:
        """Everything that is learnt."""
        learnt = {"tuned": {name: one.detach() for name, one in self._tuned()}}
        return learnt if self.head is None else {**learnt, "head": self.head.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.encoder.load_state_dict(state["tuned"], strict=False)
        if self.head is not None:
            self.head.load_state_dict(state["head"])


class TunedMiniLM(TunedModel):
    """The packaged encoder; what changed in its layers is what ships."""

    def __init__(self, recipe: RowRecipe, machine: Machine) -> None:
        with silence_transformers():
            super().__init__(open_tunable_encoder(), recipe, machine)
        self.words = WordPieces(locate_weights(MINILM_TOKENIZER))
        self._start = {name: one.detach().cpu().clone() for name, one in self._tuned()}

    def export_deltas(self) -> dict[str, NDArray[Any]]:
        """What was learnt: matrices' changes in few bits, other changes as float16."""
        found: dict[str, NDArray[Any]] = {}
        for name, one in self._tuned():
            found |= pack_delta(name, (one.detach().cpu() - self._start[name]).numpy())
        return found


def mean_states(states: Any, weights: Any) -> Any:
    """The mean over the places that are no padding."""
    return (states * weights).sum(1) / weights.sum(1)


def open_tunable_encoder() -> Any:
    """The packaged encoder, all of whose layers are tuned; its table of words is not."""
    torch, transformers = import_extra("torch"), import_extra("transformers")
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
    if lacking:
        raise ModelError(f"the packaged encoder lacks {', '.join(lacking[:3])}")
    for name, one in encoder.named_parameters():
        one.requires_grad = name.startswith("encoder.layer.")
    return encoder
