"""The losses and their gradients beside trl's own, on the same weights and samples.

trl's functions are its trainers' methods. They are called as they stand, on an object that has
the attributes that they read; no trainer is built.
"""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import pytest
from tiny_models import tiny_pair

from osler_lab.train.tune.encode import EncodedPair, EncodedText
from osler_lab.train.tune.loss import (
    PreferenceGain,
    ReferencedPair,
    ReplyLikelihood,
    reference_logprobs,
)

pytestmark = pytest.mark.torch

BETA = 0.3
SHARED = [*range(5, 30)]


def row(prompt: list[int], reply: list[int], id: str = "a") -> EncodedText:
    marks = (*[False] * len(prompt), *[True] * len(reply))
    return EncodedText(id, (*prompt, *reply), marks)


REPLIES = [([50, 51, 52, 60], [70, 80]), ([61, 62], [90, 91, 92, 93, 94]), ([63], [64])]
PROMPTS = [SHARED, [*SHARED, 40, 41], [7, 8, 9]]
PAIRS = [
    EncodedPair(str(n), row(prompt, good), row(prompt, bad))
    for n, (prompt, (good, bad)) in enumerate(zip(PROMPTS, REPLIES, strict=True))
]


def asked(model: Any, **more: Any) -> Any:
    """What trl's losses ask of their trainer."""
    import torch

    alone = SimpleNamespace(
        device=torch.device("cpu"),
        gather_for_metrics=lambda value: value,
        gather=lambda value: value,
        parallelism_config=None,
        num_processes=1,
    )
    return SimpleNamespace(
        model=model,
        accelerator=alone,
        aux_loss_enabled=False,
        _metrics={"train": defaultdict(list), "eval": defaultdict(list)},
        _total_train_tokens=0,
        _tp_size=1,
        **more,
    )


def trained(seed: int) -> Any:
    return tiny_pair(seed=seed).model.train()


def fused(seed: int) -> Any:
    """The same model with the head that trl's trainers give it."""
    from trl.trainer import add_fused_lm_head

    model = trained(seed)
    add_fused_lm_head(model, outputs=("log_probs", "entropy", "mean_logits", "is_top1"))
    return model


def same_gradients(ours: Any, theirs: Any) -> None:
    import torch

    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, atol=1e-4, rtol=1e-3)


def test_dpo_is_trls_sigmoid_loss_with_its_gradient() -> None:
    """The reference is another model, so that the loss is not simply log 2."""
    from trl.trainer.dpo_trainer import DataCollatorForPreference, DPOTrainer

    before = reference_logprobs(trained(7), PAIRS)
    model = trained(1)
    objective = PreferenceGain(BETA)
    inputs = objective.inputs([ReferencedPair(p, b) for p, b in zip(PAIRS, before, strict=True)])
    loss = objective.total(model, inputs)[0] / objective.items(inputs)
    loss.backward()

    collate = DataCollatorForPreference(pad_token_id=0)
    examples = [
        {
            "prompt_ids": list(prompt),
            "chosen_ids": good,
            "rejected_ids": bad,
            "ref_chosen_logps": chosen,
            "ref_rejected_logps": rejected,
        }
        for prompt, (good, bad), (chosen, rejected) in zip(PROMPTS, REPLIES, before, strict=True)
    ]
    other = fused(1)
    trainer = asked(
        other,
        ld_alpha=None,
        precompute_ref_logps=True,
        f_divergence_type="reverse_kl",
        loss_types=["sigmoid"],
        loss_weights=[1.0],
        use_weighting=False,
        beta=BETA,
    )
    theirs = DPOTrainer._compute_loss(trainer, other, collate(examples), False)
    theirs.backward()
    assert loss.item() == pytest.approx(theirs.item(), rel=1e-5)
    assert abs(loss.item() - 0.693147) > 0.05
    same_gradients(model, other)


def test_sft_is_trls_completion_only_loss_with_its_gradient() -> None:
    from trl.trainer.sft_trainer import DataCollatorForLanguageModeling, SFTTrainer

    rows = [pair.chosen for pair in PAIRS]
    model = trained(1)
    inputs = ReplyLikelihood().inputs(rows)
    loss = ReplyLikelihood().total(model, inputs)[0] / ReplyLikelihood().items(inputs)
    loss.backward()

    collate = DataCollatorForLanguageModeling(pad_token_id=0)
    examples = [
        {
            "input_ids": list(one.tokens),
            "labels": [t if on else -100 for t, on in zip(one.tokens, one.learns, strict=True)],
        }
        for one in rows
    ]
    other = fused(1)
    trainer = asked(
        other,
        compute_loss_func=None,
        label_smoother=None,
        args=SimpleNamespace(loss_type="nll", average_tokens_across_devices=False),
    )
    theirs = SFTTrainer.compute_loss(trainer, other, collate(examples))
    theirs.backward()
    assert loss.item() == pytest.approx(theirs.item(), rel=1e-5)
    same_gradients(model, other)
