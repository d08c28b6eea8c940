"""The two losses as a training loop asks for them: of a micro-batch, to be summed over a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from osler.llm.transformers.hub import import_extra
from osler_lab.train.tune.encode import EncodedPair, EncodedText
from osler_lab.train.tune.loss import PrefixBatch, batch_of, dpo_losses, row_logprobs, sft_sum

Inputs: TypeAlias = dict[str, Any]
"""A micro-batch as tensors; what a loop may move to another device."""


class Objective(Protocol):
    """Loss of a step: `total` over `items`, whatever micro-batches it was worked in."""

    def inputs(self, rows: Sequence[Any]) -> Inputs: ...
    def items(self, inputs: Inputs) -> int: ...
    def total(self, model: Any, inputs: Inputs) -> tuple[Any, dict[str, float]]:
        """The summed loss, and sums of figures for the log."""


@dataclass(frozen=True)
class ReplyLikelihood:
    """SFT (Eq. 2): replies become likely. A step's loss is the mean over its learnt tokens.

    Eq. 2 has the mean over samples; with AdamW a constant factor changes nothing.
    """

    share: bool = True

    def inputs(self, rows: Sequence[EncodedText]) -> Inputs:
        return {**batch_of(rows, share=self.share)._asdict(), "samples": len(rows)}

    def items(self, inputs: Inputs) -> int:
        return int(inputs["learns"].sum())

    def total(self, model: Any, inputs: Inputs) -> tuple[Any, dict[str, float]]:
        loss = sft_sum(model, _as_batch(inputs))
        return loss, {"nats_a_sample": float(loss.detach()) / inputs["samples"]}


@dataclass(frozen=True, slots=True)
class ReferencedPair:
    """A pair of replies with their log-probabilities under the reference."""

    pair: EncodedPair
    before: tuple[float, float]

    def __len__(self) -> int:
        return len(self.pair)


@dataclass(frozen=True)
class PreferenceGain:
    """DPO (Eq. 3-4): the better reply gains. A step's loss is the mean over its pairs."""

    beta: float
    share: bool = True

    def inputs(self, rows: Sequence[ReferencedPair]) -> Inputs:
        both = [text for row in rows for text in (row.pair.chosen, row.pair.rejected)]
        before = import_extra("torch").tensor([row.before for row in rows])
        return {**batch_of(both, share=self.share)._asdict(), "before": before}

    def items(self, inputs: Inputs) -> int:
        return len(inputs["before"])

    def total(self, model: Any, inputs: Inputs) -> tuple[Any, dict[str, float]]:
        # Rows alternate: the chosen reply, then the rejected one of each pair.
        now = row_logprobs(model, _as_batch(inputs)).view(-1, 2)
        losses, margin = dpo_losses(now[:, 0], now[:, 1], inputs["before"], beta=self.beta)
        figures = {"margin": margin.detach().mean(), "accuracy": (margin > 0).float().mean()}
        return losses.sum(), {name: float(value) for name, value in figures.items()}


def _as_batch(inputs: Inputs) -> PrefixBatch:
    return PrefixBatch(inputs["shared"], inputs["rest"], inputs["learns"])


def reference_logprobs(
    model: Any, pairs: Sequence[EncodedPair], *, share: bool = True, progress: Any = None
) -> list[tuple[float, float]]:
    """Computes log M of both replies of every pair, by the model as it is now.

    Before the first step the policy is the reference (Eq. 4), so this is all that is ever
    needed of it: no second copy of the weights and no second pass a step.
    """
    torch = import_extra("torch")
    device = next(model.parameters()).device
    logprobs, training = [], model.training
    model.eval()
    try:
        with torch.no_grad():
            for number, pair in enumerate(pairs, 1):
                batch = batch_of((pair.chosen, pair.rejected), device=device, share=share)
                chosen, rejected = row_logprobs(model, batch).tolist()
                logprobs.append((chosen, rejected))
                if progress:
                    progress("reference", number, len(pairs))
    finally:
        model.train(training)
    return logprobs
