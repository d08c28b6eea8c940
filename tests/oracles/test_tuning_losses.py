"""The losses of tuning, held to values worked by hand and to other programs of the same."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tiny_models import tiny_pair

from osler_lab.train.tune.encode import EncodedPair, EncodedText
from osler_lab.train.tune.loss import (
    PreferenceGain,
    ReferencedPair,
    ReplyLikelihood,
    batch_of,
    dpo_losses,
    reference_logprobs,
    row_logprobs,
    sft_sum,
    token_logprobs,
)

pytestmark = pytest.mark.torch


def text(tokens: Sequence[int], learnt: int, id: str = "a") -> EncodedText:
    """The last `learnt` tokens are learnt."""
    size = len(tokens)
    return EncodedText(id, tuple(tokens), tuple(place >= size - learnt for place in range(size)))


def bigrams(probabilities: list[list[float]]) -> Any:
    """A model that knows only the last token: row i has the probabilities of what follows i."""

    def forward(*, input_ids: Any, logits_to_keep: Any, **_: Any) -> Any:
        import torch  # not where the module is read: without the extra its tests are skipped

        table = torch.tensor(probabilities).log()
        return SimpleNamespace(logits=table[input_ids][:, logits_to_keep])

    return forward


COIN = bigrams([[0.5, 0.25, 0.25], [0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])


def test_the_sft_loss_is_the_logarithm_of_the_replys_probability() -> None:
    # 0 0 | 1 2 2: P(1|0) P(2|1) P(2|2) = 0.25 * 0.5 * 0.8 = 0.1
    batch = batch_of([text([0, 0, 1, 2, 2], 3)])
    assert float(sft_sum(COIN, batch)) == pytest.approx(-math.log(0.1))


def test_eq_2_is_the_mean_over_samples_of_summed_logarithms() -> None:
    # and 0 | 2: 0.25, in a row with padding
    rows = [text([0, 0, 1, 2, 2], 3), text([0, 2], 1)]
    told, figures = ReplyLikelihood(share=False).total(
        COIN, ReplyLikelihood(share=False).inputs(rows)
    )
    assert float(told) == pytest.approx(-math.log(0.1) - math.log(0.25))
    assert figures["nats_a_sample"] == pytest.approx(-math.log(0.025) / 2)
    assert ReplyLikelihood().items(ReplyLikelihood(share=False).inputs(rows)) == 4


def test_the_dpo_loss_by_hand() -> None:
    # Policy: P+ = 0.25 * 0.8 = 0.2, P- = 0.25. Reference: P+ = 0.1, P- = 0.5.
    # r+ - r- = 0.1 * (ln(0.2 / 0.1) - ln(0.25 / 0.5)) = 0.1 * ln 4 = 0.138629
    # -ln s(0.138629) = ln(1 + e^-0.138629) = ln(1 + 4^-0.1) = 0.626229
    pair = EncodedPair("a", text([0, 2, 2], 2), text([0, 1], 1))
    objective = PreferenceGain(beta=0.1, share=False)
    inputs = objective.inputs([ReferencedPair(pair, (math.log(0.1), math.log(0.5)))])
    loss, figures = objective.total(COIN, inputs)
    assert float(loss) == pytest.approx(math.log(1 + 4**-0.1))
    assert float(loss) == pytest.approx(0.626229, abs=1e-5)
    assert figures["margin"] == pytest.approx(0.1 * math.log(4))
    assert objective.items(inputs) == 1


def test_a_policy_that_is_its_reference_pays_the_logarithm_of_two() -> None:
    import torch

    same = torch.tensor([[-3.0, -7.0]])
    loss, margin = dpo_losses(same[:, 0], same[:, 1], same, beta=0.7)
    assert float(loss[0]) == pytest.approx(math.log(2))
    assert float(margin[0]) == 0


ROWS = [
    text([*range(5, 45), 50, 51, 52, 60, 61, 62, 63], 4, "a"),
    text([*range(5, 45), 70, 80, 81], 2, "b"),
    text([*range(5, 45), 90, 91, 92, 93, 94, 95], 3, "c"),
]
"""They begin alike, which is read once."""


def by_numpy(model: Any, row: EncodedText) -> float:
    """log P of what is learnt, from the logits of a pass of its own, in float64."""
    import torch

    with torch.no_grad():
        logits = model(input_ids=torch.tensor([row.tokens])).logits[0].double().numpy()
    whole = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    return float(
        sum(
            whole[place - 1, token]
            for place, (token, learnt) in enumerate(zip(row.tokens, row.learns, strict=True))
            if learnt
        )
    )


@pytest.mark.parametrize("share", [True, False])
def test_log_probabilities_are_those_of_each_row_read_by_itself(share: bool) -> None:
    model = tiny_pair().model
    batch = batch_of(ROWS, share=share)
    assert (batch.shared is not None) is share
    found = row_logprobs(model, batch).tolist()
    assert found == pytest.approx([by_numpy(model, row) for row in ROWS], abs=1e-4)
    assert len(token_logprobs(model, batch)[0]) == 9


def test_a_shared_beginning_changes_no_gradient() -> None:
    import torch

    found = []
    for share in (True, False):
        model = tiny_pair().model.train()
        sft_sum(model, batch_of(ROWS, share=share)).backward()
        found.append([p.grad.clone() for p in model.parameters()])
    for shared, apart in zip(*found, strict=True):
        torch.testing.assert_close(shared, apart, atol=2e-4, rtol=1e-3)


def test_the_reference_is_the_model_before_the_first_step() -> None:
    model = tiny_pair().model.train()
    pair = EncodedPair("a", ROWS[0], text([*ROWS[0].tokens[:43], 33, 34], 2))
    assert reference_logprobs(model, [pair])[0] == pytest.approx(
        (by_numpy(model, pair.chosen), by_numpy(model, pair.rejected)), abs=1e-4
    )
    assert model.training


def test_transformers_has_the_same_loss_for_the_same_labels() -> None:
    """The mean over learnt tokens is what `labels` make of a model's own loss."""
    import torch

    model = tiny_pair().model
    ids = torch.tensor([ROWS[0].tokens])
    marked = zip(ROWS[0].tokens, ROWS[0].learns, strict=True)
    labels = torch.tensor([[token if learnt else -100 for token, learnt in marked]])
    theirs = model(input_ids=ids, labels=labels).loss.item()
    assert sft_sum(model, batch_of(ROWS[:1])).item() / 4 == pytest.approx(theirs, rel=1e-5)
