"""What was trained is what is served: merged weights and GGUF files say the same."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tiny_models import save_tiny, save_tiny_gguf, tiny_pair

from osler.errors import BadConfig, ModelMissing
from osler.llm.core.base import Message, TokenScore
from osler.llm.local.model import LlamaCpp
from osler.llm.transformers.hub import ModelPair, load_pair
from osler.llm.transformers.model import TransformersModel
from osler_lab.train.tune.export import Storage, merge_adapter, write_gguf
from osler_lab.train.tune.model import prepare_model
from osler_lab.train.tune.recipe import OMNI_SFT

pytestmark = pytest.mark.torch

Floats = npt.NDArray[np.float64]
ASK = [Message("user", "What treats iron deficiency anaemia?")]
REPLY = "Oral iron, once a day. 口服铁剂。"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("base") / "tiny")


@pytest.fixture(scope="module")
def adapter(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An adapter whose numbers are far from naught."""
    import torch

    model = prepare_model(base, OMNI_SFT, device="cpu").model
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(1)
        for name, values in model.named_parameters():
            if "lora_B" in name:
                values.normal_(std=0.2)
    folder = tmp_path_factory.mktemp("adapter")
    model.save_pretrained(folder, save_embedding_layers=False)
    return folder


@pytest.fixture(scope="module")
def like(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The base as GGUF: its metadata is taken, its numbers are not (they are another seed's)."""
    return save_tiny_gguf(tmp_path_factory.mktemp("gguf") / "like.gguf", tiny_pair(seed=9))


def scores(pair: ModelPair) -> tuple[TokenScore, ...]:
    return asyncio.run(TransformersModel(pair, name="t").score(ASK, REPLY)).tokens


def apart(one: tuple[TokenScore, ...], other: tuple[TokenScore, ...]) -> float:
    """The widest difference of two log-probabilities, in nats."""
    pairs = zip(one, other, strict=True)
    return max(abs(a.logprob - b.logprob) for a, b in pairs)


def test_a_merged_model_is_its_base_with_the_adapter(
    base: Path, adapter: Path, tmp_path: Path
) -> None:
    adapted = scores(load_pair(base, adapter=adapter))
    merged = merge_adapter(base, adapter, tmp_path / "merged")
    assert apart(adapted, scores(load_pair(merged))) < 1e-3
    assert apart(adapted, scores(load_pair(base))) > 0.1
    assert not (merged / "adapter_config.json").exists()


@pytest.mark.model
@pytest.mark.parametrize(("storage", "nats"), [("f32", 0.02), ("f16", 0.05)])
def test_the_embedded_engine_says_what_transformers_says(
    base: Path, adapter: Path, like: Path, tmp_path: Path, storage: Storage, nats: float
) -> None:
    file = write_gguf(base, like, tmp_path / "t.gguf", adapter=adapter, storage=storage)
    engine = LlamaCpp(file, name="t", context=256)
    served = asyncio.run(engine.score(ASK, REPLY)).tokens
    assert apart(served, scores(load_pair(base, adapter=adapter))) < nats


def test_transformers_reads_back_what_was_written(
    base: Path, adapter: Path, like: Path, tmp_path: Path
) -> None:
    file = write_gguf(base, like, tmp_path / "t.gguf", adapter=adapter, storage="q8_0")
    assert apart(scores(load_pair(file)), scores(load_pair(base, adapter=adapter))) < 0.5


def test_a_small_change_of_a_model_in_8_bits_is_kept_in_16_and_lost_in_8(
    base: Path, like: Path, tmp_path: Path
) -> None:
    """What moved by less than half a step of the grid goes back to where it was."""
    import torch

    grid = write_gguf(base, like, tmp_path / "grid.gguf", storage="q8_0")
    model = prepare_model(grid, OMNI_SFT, device="cpu").model
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(1)
        for name, values in model.named_parameters():
            if "lora_B" in name:
                values.normal_(std=2e-5)
    adapter = tmp_path / "small"
    model.save_pretrained(adapter, save_embedding_layers=False)
    kinds: tuple[Storage, ...] = ("f32", "f16", "q8_0")
    meant, kept, lost = (
        numbers(write_gguf(grid, grid, tmp_path / f"{kind}.gguf", adapter=adapter, storage=kind))
        - numbers(grid)
        for kind in kinds
    )
    assert 1e-5 < np.linalg.norm(meant) / np.linalg.norm(numbers(grid)) < 3e-3
    assert share(kept, meant) == pytest.approx(1, abs=0.05)
    assert share(lost, meant) < 0.5


def numbers(file: Path) -> Floats:
    import gguf

    tensors = sorted(gguf.GGUFReader(file).tensors, key=lambda tensor: tensor.name)
    whole = [gguf.quants.dequantize(t.data, t.tensor_type).ravel() for t in tensors]
    return np.concatenate(whole).astype(np.float64)


def share(found: Floats, meant: Floats) -> float:
    """How much of what was meant is in what was found."""
    return float(found @ meant / (meant @ meant))


def test_a_gguf_file_of_another_model_is_refused(base: Path, tmp_path: Path) -> None:
    import gguf

    other: Any = tiny_pair(context=512)
    file = save_tiny_gguf(tmp_path / "other.gguf", other)
    with pytest.raises(ModelMissing, match="cannot be read as GGUF"):
        write_gguf(base, base / "config.json", tmp_path / "t.gguf")
    writer = gguf.GGUFWriter(tmp_path / "bert.gguf", "bert")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(BadConfig, match="not for bert"):
        write_gguf(base, tmp_path / "bert.gguf", tmp_path / "t.gguf")
    assert file.is_file()
    assert not (tmp_path / "t.gguf").exists()
