"""One model, three programs: they must say the same of the same text.

The weights are the packaged model's Q8_0, unpacked to float32 for all three, so that only
the programs differ (`benchmarks/agreement.py --weights q8` shows what 8-bit activations add).
"""

from __future__ import annotations

import asyncio

import agreement
import pytest
from wide_weights import wide_gguf

from osler.errors import ModelMissing
from osler.llm.core.base import TokenScore
from osler.llm.local.gguf_files import default_gguf
from osler_lab.train.tune.model import dense_folder

pytestmark = pytest.mark.torch

Told = dict[str, dict[str, tuple[TokenScore, ...]]]


@pytest.fixture(scope="module")
def told() -> Told:
    try:
        return asyncio.run(agreement.everyone(wide_gguf(), dense_folder(default_gguf())))
    except ModelMissing as error:
        pytest.skip(f"the packaged model is not there: {error}")


@pytest.mark.parametrize("name", agreement.TEXTS)
@pytest.mark.parametrize("scorer", ["in process", "over HTTP"])
def test_perplexity_agrees_within_3_percent_and_tokens_within_half_a_nat(
    told: Told, scorer: str, name: str
) -> None:
    found = agreement.compared(told[scorer][name], told[agreement.REFERENCE][name])
    assert found.ratio == pytest.approx(1, abs=0.03)
    assert found.apart < 0.5


@pytest.mark.parametrize("name", agreement.TEXTS)
def test_every_scorer_scores_every_character(told: Told, name: str) -> None:
    text = agreement.TEXTS[name]
    for texts in told.values():
        covered = {i for token in texts[name] for i in range(token.start, token.end)}
        assert covered == set(range(len(text)))
