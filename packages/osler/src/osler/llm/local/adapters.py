"""Role adapters of the embedded engine: small trained weights that a call may ask for.

An adapter is an aLoRA (activated LoRA): it changes nothing before its invocation, a few tokens
that end the prompt, so that what base and adapters have in common is read once. Six rules keep
base and adapters apart (each has a test in `tests/unit/llm/test_adapters.py`):

* adapters are loaded at scale 0, and a call of the base names none;
* a plain LoRA is refused: the engine's cache knows tokens, not adapters;
* PEFT adapts from the invocation's first token on, llama.cpp from one token earlier than the
  file says: the file has the invocation without its first token;
* a base prompt that spells an invocation is read anew;
* an invocation begins with a special token, so that it is split alike everywhere, and with
  another one than a turn of the base, which would be read from the adapter's cache;
* a call asks for one adapter at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from osler.errors import ModelError, ModelMissing

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
