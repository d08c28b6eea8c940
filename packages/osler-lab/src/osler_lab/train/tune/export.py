"""Export of a tuned model: an adapter merged into its model, and a model as a GGUF file.

A GGUF file takes everything but numbers (architecture, tokenizer, chat template) from the GGUF
file that its base came from, so nothing about the model is stated twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from osler.errors import BadConfig, ModelMissing
from osler.llm.core.cache import write_whole
from osler.llm.local.gguf_files import copy_metadata
from osler.llm.transformers.hub import ModelPair, Weights, load_pair
from osler_lab.evaluate.trained_on import pass_on
from osler_lab.train.tune.jobs import save_model

if TYPE_CHECKING:
    import numpy as np


Storage = Literal["f32", "f16", "q8_0"]
# llama.cpp turns neighbouring numbers of a head, transformers its two halves.
_TURNED = {"q_proj": "num_attention_heads", "k_proj": "num_key_value_heads"}
ARCHITECTURES = ("llama",)
"""Architectures whose tensors are known to be laid out as written here."""


def merge_adapter(base: Weights, adapter: Path, folder: Path) -> Path:
    """Merges base and adapter into a model in the hub's form, float32, with its tokenizer.

    Raises as `osler.llm.transformers.hub.load_pair`.
    """
    pair = _load_merged(base, adapter)
    folder.mkdir(parents=True, exist_ok=True)
    save_model(pair, folder)
    pass_on([one for one in (base, adapter) if isinstance(one, Path)], folder)
    return folder


def _load_merged(base: Weights, adapter: Path | None) -> ModelPair:
    pair = load_pair(base, dtype="float32", device="cpu", adapter=adapter)
    if adapter is None:
        return pair
    return ModelPair(pair.model.merge_and_unload(), pair.tokenizer)


def write_gguf(
    base: Weights,
    like: Path,
    target: Path,
    *,
    adapter: Path | None = None,
    storage: Storage = "f16",
) -> Path:
    """The model, with its adapter merged, as the GGUF file `target`.

    `like` is a GGUF file of the same architecture, sizes and vocabulary. `storage` is of the
    matrices; vectors are float32. An adapter changes most numbers by less than a step of q8_0: of
    a base that was in 8 bits, most of what was learnt is rounded away. `target` appears whole or
    not at all. Raises `ModelMissing` for a `like` that cannot be read, and `BadConfig` where the
    two do not fit.
    """
    import gguf

    try:
        reader = gguf.GGUFReader(like)
        architecture = reader.fields[gguf.Keys.General.ARCHITECTURE].contents()
    except (OSError, ValueError, IndexError, KeyError) as error:
        raise ModelMissing(
            f"{like} cannot be read as GGUF: {error}", fix="fetch it again"
        ) from error
    if architecture not in ARCHITECTURES:
        raise BadConfig(
            f"GGUF files are written for {', '.join(ARCHITECTURES)}, not for {architecture}",
            fix="`osler train export --out FOLDER`, then llama.cpp's convert_hf_to_gguf.py",
        )
    model = _load_merged(base, adapter).model
    numbers = dict(_named_tensors(model))
    _check_fit(reader, numbers, like)
    with write_whole(target) as draft:
        writer = gguf.GGUFWriter(draft, architecture, endianess=reader.endianess)
        try:
            copy_metadata(reader, writer)
            kinds = gguf.LlamaFileType
            types = {"f32": kinds.ALL_F32, "f16": kinds.MOSTLY_F16, "q8_0": kinds.MOSTLY_Q8_0}
            writer.add_file_type(types[storage])
            _write_tensors(writer, reader, numbers, storage)
        finally:
            writer.close()
    pass_on([one for one in (base, adapter) if isinstance(one, Path)], target)
    return target


def _named_tensors(model: Any) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Tensors by llama.cpp's names; a head tied to the embeddings is not written twice."""
    import gguf

    config = model.config
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        stem, _, suffix = name.rpartition(".")
        known = names.get_name(stem)
        if known is None:
            raise BadConfig(f"llama.cpp knows no tensor {name}", fix="convert it with llama.cpp")
        values = tensor.float().numpy()
        if heads := _TURNED.get(stem.rsplit(".", 1)[-1]):
            values = interleave_heads(values, getattr(config, heads))
        yield f"{known}.{suffix}", values


def interleave_heads(values: np.ndarray[Any, Any], heads: int) -> np.ndarray[Any, Any]:
    """Orders the rows of a head as llama.cpp turns them: neighbours, not halves."""
    # (heads, 2, rows, …) -> (heads, rows, 2, …): the permutation of llama.cpp's converter.
    rows = values.shape[0] // heads // 2
    halves = values.reshape(heads, 2, rows, *values.shape[1:])
    return halves.swapaxes(1, 2).reshape(values.shape).copy()


def _check_fit(reader: Any, numbers: dict[str, Any], like: Path) -> None:
    there = {
        tensor.name: tuple(int(n) for n in reversed(tensor.shape)) for tensor in reader.tensors
    }
    ours = {name: values.shape for name, values in numbers.items()}
    wrong = [n for n, shape in there.items() if n in ours and ours[n] != shape]
    # rope_freqs is computed by llama.cpp's converter and has no counterpart in the model.
    wrong += sorted(ours.keys() ^ (there.keys() - {"rope_freqs.weight"}))
    if wrong:
        raise BadConfig(
            f"{like} is of another model: {wrong[0]}", fix="give the GGUF file of the base model"
        )


def _write_tensors(writer: Any, reader: Any, numbers: dict[str, Any], storage: Storage) -> None:
    """Writes names, shapes and types first, as the format has it, then the numbers."""
    import gguf
    import numpy as np

    kinds = gguf.GGMLQuantizationType
    stored = {"f32": kinds.F32, "f16": kinds.F16, "q8_0": kinds.Q8_0}[storage]

    def kind_of(name: str) -> Any:
        return stored if numbers[name].ndim > 1 else kinds.F32

    dtypes = {kinds.F32: np.float32, kinds.F16: np.float16, kinds.Q8_0: np.uint8}
    kept = [tensor for tensor in reader.tensors if tensor.name not in numbers]
    names = [tensor.name for tensor in reader.tensors if tensor.name in numbers]
    for tensor in kept:
        shape = [int(n) for n in reversed(tensor.shape)]
        size = tensor.data.dtype.itemsize * math.prod(shape)
        writer.add_tensor_info(tensor.name, shape, tensor.data.dtype, size, tensor.tensor_type)
    for name in names:
        kind, shape = kind_of(name), list(numbers[name].shape)
        if kind is kinds.Q8_0:
            # Quantised tensors are declared by bytes: 32 numbers of q8_0 take 34.
            shape = list(gguf.quant_shape_to_byte_shape(shape, kind))
        dtype = np.dtype(dtypes[kind])
        writer.add_tensor_info(name, shape, dtype, dtype.itemsize * math.prod(shape), kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for tensor in kept:
        writer.write_tensor_data(tensor.data)
    for name in names:
        writer.write_tensor_data(gguf.quants.quantize(numbers[name], kind_of(name)))
