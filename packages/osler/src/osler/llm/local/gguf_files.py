"""The embedded engine's model, requantised from the packaged one.

The default model is requantised from the packaged Q4_1 to Q8_0. llama.cpp has a fast matrix product
for Q8_0 and none for Q4_1: prompts are read 1.5 times as fast, and perplexity stays that of the
dequantised model. The file grows from 94 to 138 MiB. Q4_0, the other fast format, has no offsets:
perplexity on a medical text rose from 26.5 to 36.6.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from osler.errors import ModelMissing
from osler.llm.core.cache import derive_file, write_whole
from osler.llm.local.weights import SMOLLM2, locate_weights

if TYPE_CHECKING:
    import numpy as np
    from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter, LlamaFileType

    Choice = Callable[[Any], GGMLQuantizationType]

DEFAULT_NAME = "SmolLM2-135M-Instruct.Q8_0.gguf"


def default_gguf(*, cache: Path | None = None) -> Path:
    """Returns the default model as Q8_0, from the cache; made there the first time, in seconds.

    Raises `ModelMissing` when neither it nor the weights it is made from are there.
    """

    def make_gguf(draft: Path) -> None:
        requantise_gguf(locate_weights(SMOLLM2, cache=cache), draft)

    return derive_file(DEFAULT_NAME, make_gguf, cache=cache)


def requantise_gguf(source: Path, target: Path) -> None:
    """Writes the GGUF file `source` with its Q4_1 matrices as Q8_0, and all else as it is.

    Equal sources give equal bytes. One tensor is in memory at a time. Raises
    `ModelMissing` when `source` is not a GGUF file; `target` appears whole or not at all.
    """
    import gguf

    q4, q8 = gguf.GGMLQuantizationType.Q4_1, gguf.GGMLQuantizationType.Q8_0

    def choose_type(tensor: Any) -> GGMLQuantizationType:
        small = tensor.tensor_type is q4 and len(tensor.shape) == 2
        return q8 if small else tensor.tensor_type

    rewrite_gguf(source, target, choose_type, gguf.LlamaFileType.MOSTLY_Q8_0)


def rewrite_gguf(source: Path, target: Path, choice: Choice, file_type: LlamaFileType) -> None:
    import gguf

    try:
        reader = gguf.GGUFReader(source)
        architecture = reader.fields[gguf.Keys.General.ARCHITECTURE].contents()
    except (OSError, ValueError, IndexError, KeyError) as error:
        raise ModelMissing(
            f"{source} cannot be read as GGUF: {error}", fix="fetch the file again"
        ) from error
    with write_whole(target) as draft:
        writer = gguf.GGUFWriter(draft, architecture, endianess=reader.endianess)
        try:
            copy_metadata(reader, writer)
            writer.add_file_type(file_type)
            _write_tensors(reader, writer, choice)
        finally:
            writer.close()


def copy_metadata(reader: GGUFReader, writer: GGUFWriter) -> None:
    """Copies all metadata of one GGUF file to another, but for the file type."""
    import gguf

    written = {gguf.Keys.General.ARCHITECTURE, gguf.Keys.General.FILE_TYPE}
    for name, field in reader.fields.items():
        if name in written or name.startswith("GGUF."):
            continue
        kind = field.types[0]
        element = field.types[-1] if kind is gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(name, field.contents(), kind, sub_type=element)


def _write_tensors(reader: GGUFReader, writer: GGUFWriter, choice: Choice) -> None:
    """Writes names, shapes and types first, as the format has it, then the numbers one by one."""
    import gguf

    for tensor in reader.tensors:
        kind, shape = choice(tensor), [int(size) for size in reversed(tensor.shape)]
        dtype = tensor.data.dtype
        if kind is not tensor.tensor_type:
            dtype = _stored_as(kind)
        if dtype == "uint8":
            shape = list(gguf.quant_shape_to_byte_shape(shape, kind))
        size = dtype.itemsize * math.prod(shape)
        writer.add_tensor_info(tensor.name, shape, dtype, size, kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for tensor in reader.tensors:
        kind, data = choice(tensor), tensor.data
        if kind is not tensor.tensor_type:
            data = gguf.quants.quantize(gguf.quants.dequantize(data, tensor.tensor_type), kind)
        writer.write_tensor_data(data, tensor_endianess=reader.endianess)


def _stored_as(kind: GGMLQuantizationType) -> np.dtype[Any]:
    import gguf
    import numpy as np

    return np.dtype(np.float32 if kind is gguf.GGMLQuantizationType.F32 else np.uint8)
