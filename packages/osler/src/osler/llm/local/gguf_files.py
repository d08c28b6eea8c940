"""GGUF files made here: role adapters of the embedded engine, and its model requantised.

An adapter is small trained weights that a call may ask for, an aLoRA (activated LoRA): it changes
nothing before its invocation, a few tokens that end the prompt, so that what base and adapters have
in common is read once. Six rules keep base and adapters apart (each has a test in
`tests/unit/llm/test_adapters.py`):

* adapters are loaded at scale 0, and a call of the base names none;
* a plain LoRA is refused: the engine's cache knows tokens, not adapters;
* PEFT adapts from the invocation's first token on, llama.cpp from one token earlier than the
  file says: the file has the invocation without its first token;
* a base prompt that spells an invocation is read anew;
* an invocation begins with a special token, so that it is split alike everywhere, and with
  another one than a turn of the base, which would be read from the adapter's cache;
* a call asks for one adapter at most.

The default model is requantised from the packaged Q4_1 to Q8_0. llama.cpp has a fast matrix product
for Q8_0 and none for Q4_1: prompts are read 1.5 times as fast, and perplexity stays that of the
dequantised model. The file grows from 94 to 138 MiB. Q4_0, the other fast format, has no offsets:
perplexity on a medical text rose from 26.5 to 36.6. `widen_gguf` writes the same numbers as
float32, for engines to be compared on: with Q8_0 weights llama.cpp rounds what it multiplies them
with to 8 bits, too, and a token's score moves by up to 0.8 nats; with float32 weights it agrees
with transformers within 0.03.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from osler.errors import ModelError, ModelMissing
from osler.llm.core.cache import derive_file, write_whole
from osler.llm.local.weights import SMOLLM2, locate_weights

if TYPE_CHECKING:
    import numpy as np
    from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter, LlamaFileType

    Choice = Callable[[Any], GGMLQuantizationType]

KIND, LORA = "general.type", "adapter.type"
INVOCATION_TOKENS = "adapter.alora.invocation_tokens"
PROMPT, INVOCATION, RANK, BASE = (
    f"osler.adapter.{it}" for it in ("prompt", "invocation", "rank", "base")
)
"""The card, which only Osler reads: the prompts' name, the invocation as text, the rank, and the
base's `BaseNumbers.norm`."""
_FACTORS = (".lora_a", ".lora_b")
_NORM = "output_norm.weight"

TokenIds = Callable[[str, bool], list[int]]
"""Tokens of a text; True: the marks that it spells are tokens."""


@dataclass(frozen=True, slots=True)
class BaseNumbers:
    """What an adapter has to find in its base."""

    shapes: Mapping[str, tuple[int, ...]]
    """Of its tensors, input first."""
    norm: str
    """SHA-256 of its last norm, which all storages keep in 32 bits; "" where this one does not.
    Models of one shape that were trained apart differ in it."""


@dataclass(frozen=True, slots=True)
class RoleAdapter:
    """An adapter file, and the prompts that it was trained for."""

    prompt: str
    """Their name, "omni/plan"."""
    path: Path
    invocation: str
    tokens: tuple[int, ...]
    """Of the invocation, without the first."""
    maps: Mapping[str, tuple[int, int]]
    """Tensors of the base that it changes, with the length of their input and output."""
    norm: str = ""
    """Of the base that it was trained on; "" in files that do not say so."""

    def __str__(self) -> str:
        return f"the adapter for {self.prompt} ({self.path})"

    def check_base(self, base: BaseNumbers) -> None:
        """Raises `ModelError` for another base than it was trained on."""
        wrong = [name for name, shape in self.maps.items() if base.shapes.get(name) != shape]
        apart = bool(self.norm and base.norm) and self.norm != base.norm
        if wrong or apart:
            why = f"{wrong[0]} does not fit" if wrong else "its shapes fit, its numbers are others"
            raise ModelError(
                f"{self} is of another base: {why}",
                fix="train it on this model, or set the model that it was trained on",
            )

    def check_invocation(self, ids: TokenIds, turn: str) -> None:
        """Raises `ModelError` where the tokenizer reads the invocation otherwise than it was
        trained, or where a turn of the base, which opens with `turn`, begins as it does.
        """
        first, *rest = ids(self.invocation, True) or [-1]
        if tuple(rest) != self.tokens:
            raise ModelError(
                f"{self}: this tokenizer splits its invocation {self.invocation!r} otherwise",
                fix="train it on this model",
            )
        fix = 'train it with another --invocation, "<|im_end|>plan", say'
        if ids(self.invocation, False)[:1] == [first]:
            raise ModelError(f"{self}: its invocation begins with no special token", fix=fix)
        if ids(turn, True)[:1] == [first]:
            raise ModelError(f"{self}: its invocation begins as every turn does", fix=fix)


def read_adapters(paths: Iterable[Path]) -> dict[str, RoleAdapter]:
    """Reads adapters by the name of their prompts. Raises `ModelMissing` and `ModelError`."""
    found: dict[str, RoleAdapter] = {}
    for adapter in map(read_adapter, paths):
        if (other := found.setdefault(adapter.prompt, adapter)) is not adapter:
            raise ModelError(f"{adapter} and {other} are for the same prompts", fix="name one")
    return found


def read_adapter(path: Path) -> RoleAdapter:
    """Reads an adapter's card and shapes. Raises `ModelMissing` and `ModelError`."""
    fields, found = _read_gguf(f"the adapter {path}", path)
    tensors = found.shapes
    if (fields.get(KIND), fields.get(LORA)) != ("adapter", "lora"):
        raise ModelError(f"{path} is not an adapter", fix="make it with `osler train export`")
    if not fields.get(INVOCATION_TOKENS) or not {PROMPT, INVOCATION} <= fields.keys():
        raise ModelError(
            f"{path} is a plain LoRA, and the engine's cache would mix it with its base",
            fix="train it with `osler train tune alora`, or give its model's name to a server",
        )
    ranks, maps = set(), {}
    stems = {name.removesuffix(".lora_a").removesuffix(".lora_b") for name in tensors}
    for stem in stems:
        down, up = (tensors.get(stem + factor, (0, 0)) for factor in _FACTORS)
        ranks |= {down[1], up[0]}
        maps[stem] = (down[0], up[1])
    if ranks != {fields.get(RANK)}:
        told = ", ".join(map(str, sorted(ranks)))
        raise ModelError(f"{path} has rank {told}, and its card says {fields.get(RANK)}")
    ids = tuple(int(one) for one in fields[INVOCATION_TOKENS])
    prompt, invocation, norm = (str(fields.get(it, "")) for it in (PROMPT, INVOCATION, BASE))
    return RoleAdapter(prompt, path, invocation, ids, maps, norm)


def read_base(path: Path) -> BaseNumbers:
    """Reads what adapters are held to. Raises `ModelMissing` and `ModelError`."""
    return _read_gguf(str(path), path)[1]


def _read_gguf(what: str, path: Path) -> tuple[dict[str, Any], BaseNumbers]:
    import gguf

    if not path.is_file():
        raise ModelMissing(f"{what} is not there", fix="train it, or take it from the settings")
    try:
        reader = gguf.GGUFReader(path)
        own = [name for name in reader.fields if not name.startswith(("GGUF.", "tokenizer."))]
        fields = {name: reader.fields[name].contents() for name in own}
        shapes = {one.name: tuple(int(n) for n in one.shape) for one in reader.tensors}
        f32 = gguf.GGMLQuantizationType.F32
        whole = (one for one in reader.tensors if one.name == _NORM and one.tensor_type == f32)
        norm = next((sha256(one.data.tobytes()).hexdigest() for one in whole), "")
    except (OSError, ValueError, IndexError, KeyError) as error:
        raise ModelError(f"{what} is cut short, or no GGUF: {error}", fix="rebuild it") from error
    return fields, BaseNumbers(shapes, norm)


DEFAULT_NAME = "SmolLM2-135M-Instruct.Q8_0.gguf"
WIDE_NAME = "SmolLM2-135M-Instruct.Q8_0-as-F32.gguf"


def default_gguf(*, cache: Path | None = None) -> Path:
    """Returns the default model as Q8_0, from the cache; made there the first time, in seconds.

    Raises `ModelMissing` when neither it nor the weights it is made from are there.
    """

    def make_gguf(draft: Path) -> None:
        requantise_gguf(locate_weights(SMOLLM2, cache=cache), draft)

    return derive_file(DEFAULT_NAME, make_gguf, cache=cache)


def wide_gguf(*, cache: Path | None = None) -> Path:
    """Returns the default model's Q8_0 weights as float32 (540 MB), made in the cache the first
    time.

    Raises as `default_gguf`.
    """
    return derive_file(
        WIDE_NAME, lambda draft: widen_gguf(default_gguf(cache=cache), draft), cache=cache
    )


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

    _rewrite_gguf(source, target, choose_type, gguf.LlamaFileType.MOSTLY_Q8_0)


def widen_gguf(source: Path, target: Path) -> None:
    """Writes the GGUF file `source` with every tensor as float32: the same model, exactly.

    The rest is as with `requantise_gguf`.
    """
    import gguf

    f32 = gguf.GGMLQuantizationType.F32
    _rewrite_gguf(source, target, lambda tensor: f32, gguf.LlamaFileType.ALL_F32)


def _rewrite_gguf(source: Path, target: Path, choice: Choice, file_type: LlamaFileType) -> None:
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
