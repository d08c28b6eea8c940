"""Export of a role adapter: PEFT's aLoRA as the GGUF file that the embedded engine loads.

Nothing is merged, so nothing that was learnt is rounded to the base's eight bits.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from osler.errors import BadConfig, ModelMissing
from osler.llm.core.cache import write_whole
from osler.llm.local import adapters as card
from osler_lab.evaluate.trained_on import pass_on
from osler_lab.train.tune.export import ARCHITECTURES, interleave_heads
from osler_lab.train.tune.jobs import RUN

if TYPE_CHECKING:
    import numpy as np

    Matrix = np.ndarray[Any, Any]

_TURNED = {"q_proj": "head_count", "k_proj": "head_count_kv"}
_FACTORS = {"lora_A": "lora_a", "lora_B": "lora_b"}


def is_alora(adapter: Path) -> bool:
    """Whether a folder holds an adapter that waits for its invocation."""
    return bool(_read_config(adapter).get("alora_invocation_tokens"))


def write_adapter_gguf(adapter: Path, like: Path, target: Path) -> Path:
    """Writes an aLoRA, F16, as the GGUF file `target`, which appears whole or not at all.

    `like` is a GGUF file of its base. Raises `BadConfig` for what the engine could not run.
    """
    import gguf

    config = _read_config(adapter)
    lora = json.loads((adapter / RUN).read_text(encoding="utf-8"))["recipe"]["lora"]
    base = gguf.GGUFReader(like)
    architecture = str(base.fields[gguf.Keys.General.ARCHITECTURE].contents())
    if architecture not in ARCHITECTURES or config.get("use_rslora") or config.get("use_dora"):
        raise BadConfig(f"{adapter} is not a plain aLoRA of {', '.join(ARCHITECTURES)}")
    with write_whole(target) as draft:
        writer = gguf.GGUFWriter(draft, architecture)
        writer.add_type("adapter")
        writer.add_string(card.LORA, "lora")
        writer.add_float32("adapter.lora.alpha", float(config["lora_alpha"]))
        # PEFT adapts from the invocation's first token on, llama.cpp from one token earlier.
        rest = config["alora_invocation_tokens"][1:]
        kinds = gguf.GGUFValueType
        writer.add_key_value(card.INVOCATION_TOKENS, rest, kinds.ARRAY, sub_type=kinds.UINT32)
        writer.add_string(card.PROMPT, lora["prompt"])
        writer.add_string(card.INVOCATION, lora["invocation"])
        writer.add_uint32(card.RANK, int(config["r"]))
        writer.add_string(card.BASE, card.read_base(like).norm)
        heads = {
            kind: int(base.fields[f"{architecture}.attention.{count}"].contents())
            for kind, count in _TURNED.items()
        }
        for name, values in _named_factors(adapter, heads):
            writer.add_tensor(name, values.astype("float16"))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    pass_on([adapter], target)
    return target


def _named_factors(adapter: Path, heads: dict[str, int]) -> Iterator[tuple[str, Matrix]]:
    """The factors by llama.cpp's names: A is [rank, input], B is [output, rank]."""
    import gguf
    from safetensors.numpy import load_file

    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, 1024)
    for name, values in sorted(load_file(adapter / "adapter_model.safetensors").items()):
        stem, factor, _ = name.removeprefix("base_model.model.").rsplit(".", 2)
        known = names.get_name(stem)
        if known is None or factor not in _FACTORS:
            raise BadConfig(f"llama.cpp knows no adapter of {name}")
        turned = heads.get(stem.rsplit(".", 1)[-1]) if factor == "lora_B" else None
        yield (
            f"{known}.weight.{_FACTORS[factor]}",
            interleave_heads(values, turned) if turned else values,
        )


def _read_config(adapter: Path) -> dict[str, Any]:
    file = adapter / "adapter_config.json"
    if not file.is_file():
        raise ModelMissing(f"{adapter} holds no adapter", fix="train it with `osler train alora`")
    config: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return config
