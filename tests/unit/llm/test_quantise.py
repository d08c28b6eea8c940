"""Q4_1 to Q8_0. The oracles read both formats by hand, from the layout of their blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import xllamacpp
from numpy.typing import NDArray
from wide_weights import widen_gguf

from osler.errors import ModelMissing
from osler.llm.local.gguf_files import DEFAULT_NAME, default_gguf, requantise_gguf
from osler.llm.local.weights import SMOLLM2, fetch_weights

Q4_1, Q8_0 = gguf.GGMLQuantizationType.Q4_1, gguf.GGMLQuantizationType.Q8_0
F32 = gguf.GGMLQuantizationType.F32
Floats = NDArray[np.float32]
_RANDOM = np.random.default_rng(7)
_WEIGHT = _RANDOM.normal(0, 0.1, (6, 64)).astype(np.float32)
_TABLE = _RANDOM.normal(0, 0.1, (10, 64)).astype(np.float32)
_NORM = _RANDOM.normal(1, 0.1, 64).astype(np.float32)


def q4_1(blocks: NDArray[np.uint8]) -> Floats:
    """Blocks of 20 bytes: scale and minimum (float16), then 32 nibbles, the low halves first."""
    blocks = blocks.reshape(-1, 20)
    scale = blocks[:, 0:2].copy().view(np.float16).astype(np.float32)
    minimum = blocks[:, 2:4].copy().view(np.float16).astype(np.float32)
    nibbles = np.hstack([blocks[:, 4:] & 15, blocks[:, 4:] >> 4]).astype(np.float32)
    return nibbles * scale + minimum


def q8_0(blocks: NDArray[np.uint8]) -> Floats:
    """Blocks of 34 bytes: a scale (float16), then 32 signed bytes."""
    blocks = blocks.reshape(-1, 34)
    scale = blocks[:, 0:2].copy().view(np.float16).astype(np.float32)
    return blocks[:, 2:].copy().view(np.int8).astype(np.float32) * scale


def agree(before: Any, after: Any) -> bool:
    """Each number is within half a step of its block, and the float16 of the scale's rounding."""
    exact, rounded = q4_1(np.array(before.data)), q8_0(np.array(after.data))
    step = np.abs(exact).max(axis=1, keepdims=True) / 127
    return bool((np.abs(exact - rounded) <= step * (0.5 + 127 / 2048) + 1e-7).all())


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.Q4_1.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("small")
    writer.add_context_length(128)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q4_1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_add_bos_token(False)
    writer.add_token_list(["<s>", "你好", "anaemia"])
    writer.add_token_scores([0.0, -1.5, -2.0])
    writer.add_chat_template("{% for m in messages %}{{ m.content }}{% endfor %}")
    writer.add_tensor("blk.0.attn_q.weight", gguf.quants.quantize(_WEIGHT, Q4_1), raw_dtype=Q4_1)
    writer.add_tensor("token_embd.weight", gguf.quants.quantize(_TABLE, Q8_0), raw_dtype=Q8_0)
    writer.add_tensor("blk.0.attn_norm.weight", _NORM)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def packaged() -> tuple[Path, Path]:
    """The weights as the package has them, and as the engine gets them."""
    try:
        (source,) = fetch_weights([SMOLLM2])
    except ModelMissing as error:
        if "pip could not download" not in error.message:
            raise
        pytest.skip(f"the weights are not in the cache, and no index is reachable: {error}")
    return source, default_gguf()


def _metadata(path: Path) -> dict[str, object]:
    fields = gguf.GGUFReader(path).fields
    return {name: (field.types, field.contents()) for name, field in fields.items()}


def _tensors(path: Path) -> dict[str, Any]:
    return {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}


def test_4_bit_matrices_become_8_bit_within_half_a_step(small: Path, tmp_path: Path) -> None:
    requantise_gguf(small, tmp_path / "q8")
    before = _tensors(small)["blk.0.attn_q.weight"]
    after = _tensors(tmp_path / "q8")["blk.0.attn_q.weight"]
    assert after.tensor_type is Q8_0
    assert list(after.shape) == list(before.shape) == [64, 6]
    assert agree(before, after)


def test_norms_and_8_bit_matrices_are_copied_byte_for_byte(small: Path, tmp_path: Path) -> None:
    requantise_gguf(small, tmp_path / "q8")
    before, after = _tensors(small), _tensors(tmp_path / "q8")
    assert list(before) == list(after)
    for name, kind in (("token_embd.weight", Q8_0), ("blk.0.attn_norm.weight", F32)):
        assert after[name].tensor_type is kind
        assert after[name].data.tobytes() == before[name].data.tobytes()


def test_metadata_stay_but_for_the_file_type(small: Path, tmp_path: Path) -> None:
    requantise_gguf(small, tmp_path / "q8")
    before, after = _metadata(small), _metadata(tmp_path / "q8")
    kind = gguf.Keys.General.FILE_TYPE
    assert before.pop(kind) == ([gguf.GGUFValueType.UINT32], gguf.LlamaFileType.MOSTLY_Q4_1)
    assert after.pop(kind) == ([gguf.GGUFValueType.UINT32], gguf.LlamaFileType.MOSTLY_Q8_0)
    assert before == after


def test_equal_sources_give_equal_bytes(small: Path, tmp_path: Path) -> None:
    requantise_gguf(small, tmp_path / "one")
    requantise_gguf(small, tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize("content", [b"", b"GGUF", b"no model at all, but long enough to read"])
def test_what_is_no_gguf_file_is_refused_and_nothing_is_written(
    content: bytes, tmp_path: Path
) -> None:
    (tmp_path / "bad").write_bytes(content)
    with pytest.raises(ModelMissing, match="cannot be read as GGUF"):
        requantise_gguf(tmp_path / "bad", tmp_path / "q8")
    assert [path.name for path in tmp_path.iterdir()] == ["bad"]


def test_a_gguf_file_cut_short_is_refused(small: Path, tmp_path: Path) -> None:
    content = small.read_bytes()
    for kept in (24, 60, len(content) // 2, len(content) - 200):
        small.write_bytes(content[:kept])
        with pytest.raises(ModelMissing, match="cannot be read as GGUF"):
            requantise_gguf(small, tmp_path / "q8")


def test_without_the_weights_there_is_no_default_model(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing, match="osler download-models"):
        default_gguf(cache=tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_packaged_matrices_agree_with_their_4_bit_originals(
    packaged: tuple[Path, Path],
) -> None:
    before, after = map(_tensors, packaged)
    four_bit = [name for name, tensor in before.items() if tensor.tensor_type is Q4_1]
    assert len(four_bit) == 210, "30 layers of 7 matrices"
    assert not [name for name, tensor in after.items() if tensor.tensor_type is Q4_1]
    assert all(agree(before[name], after[name]) for name in four_bit[::11])


def test_the_packaged_model_is_made_again_when_damaged_and_then_kept(
    packaged: tuple[Path, Path], tmp_path: Path
) -> None:
    source, made = packaged
    (tmp_path / SMOLLM2.name).symlink_to(source)
    (tmp_path / DEFAULT_NAME).write_bytes(b"GGUF, but half of it")
    assert default_gguf(cache=tmp_path).read_bytes() == made.read_bytes()
    time = (tmp_path / DEFAULT_NAME).stat().st_mtime_ns
    assert default_gguf(cache=tmp_path).stat().st_mtime_ns == time
    assert made.stat().st_size == 144_811_072


def test_the_engine_writes_with_the_packaged_model(packaged: tuple[Path, Path]) -> None:
    params = xllamacpp.CommonParams()
    params.model.path = str(packaged[1])
    params.n_ctx = 512
    params.n_parallel = 1
    params.cpuparams.n_threads = 1
    params.verbosity = -1
    reply = xllamacpp.Server(params).handle_completions(
        {"prompt": "The capital of France is", "n_predict": 4, "temperature": 0}
    )
    assert " Paris" in reply["choices"][0]["text"]


def test_widened_tensors_are_the_same_numbers_in_float32(small: Path, tmp_path: Path) -> None:
    widen_gguf(small, tmp_path / "f32")
    before, after = _tensors(small), _tensors(tmp_path / "f32")
    assert {tensor.tensor_type for tensor in after.values()} == {F32}
    assert list(after["blk.0.attn_q.weight"].shape) == [64, 6]
    read = {"blk.0.attn_q.weight": q4_1, "token_embd.weight": q8_0}
    for name, unpack in read.items():
        exact = unpack(np.array(before[name].data)).reshape(after[name].data.shape)
        assert np.array_equal(exact, after[name].data)
    assert after["blk.0.attn_norm.weight"].data.tobytes() == _NORM.tobytes()
    kind = gguf.Keys.General.FILE_TYPE
    assert _metadata(tmp_path / "f32")[kind] == (
        [gguf.GGUFValueType.UINT32],
        gguf.LlamaFileType.ALL_F32,
    )
