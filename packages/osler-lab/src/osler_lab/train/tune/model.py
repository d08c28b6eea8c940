"""A model made ready to be trained: its weights, its adapter, its precision.

On a processor with bfloat16 instructions products of float32 numbers are made in bfloat16 and
summed in float32 ("mixed"): weights and gradients stay float32, and a step takes a fraction of
the time. Where they are missing "mixed" changes nothing.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from osler.errors import BadConfig, ModelError
from osler.llm.core.cache import cache_dir, prepare_folder, sha256_of
from osler.llm.transformers.hub import (
    Device,
    Dtype,
    ModelPair,
    Weights,
    import_extra,
    load_pair,
    silence_transformers,
)
from osler_lab.train.tune.recipe import LoraSettings, Precision, TuningRecipe


def prepare_model(
    weights: Weights, recipe: TuningRecipe, *, adapter: Path | None = None, device: Device = "auto"
) -> ModelPair:
    """The model in training mode, with what is trained marked so.

    `adapter` is trained on (DPO after SFT); without it a fresh one of `recipe.lora`, which
    changes nothing until it is trained. Raises as `osler.llm.transformers.hub.load_pair`,
    and `BadConfig` for an adapter together with a recipe that trains all weights.
    """
    if adapter is not None and recipe.lora is None:
        raise BadConfig(
            "all weights are trained, and an adapter is given",
            fix="merge it first with `osler train export`, or tune with LoRA",
        )
    folder = dense_folder(weights) if isinstance(weights, Path) and weights.is_file() else weights
    pair = load_pair(folder, dtype=_weight_dtype(recipe.precision, device), device=device)
    model = pair.model
    model.config.use_cache = False
    with silence_transformers():
        if adapter is not None:
            model = _load_adapter(model, adapter)
        elif recipe.lora is not None:
            model = _add_adapter(model, recipe.lora, recipe.seed)
        else:
            model.requires_grad_(True)
        if recipe.recompute:
            # The reentrant variant loses gradients where the first layers are frozen.
            model.gradient_checkpointing_enable({"use_reentrant": False})
            if recipe.lora is not None:
                # Frozen embeddings give inputs without gradients, and checkpoints would be cut off.
                model.enable_input_require_grads()
    if pair.tokenizer.pad_token_id is None:
        pair.tokenizer.pad_token = pair.tokenizer.eos_token
    return ModelPair(model.train(), pair.tokenizer)


def dense_folder(file: Path, *, cache: Path | None = None) -> Path:
    """Returns the folder in the cache, made the first time, four times the size of 8-bit weights.

    Model, tokenizer and chat template are the file's. Its name bears the file's hash, so
    another file is another folder. It appears whole or not at all. Raises as
    `osler.llm.transformers.hub.load_pair`, and `ModelMissing` when the cache cannot be written.
    """
    folder = (cache or cache_dir()) / f"{file.stem}.dense-{sha256_of(file)[:12]}"
    if folder.is_dir():
        return folder
    pair = load_pair(file, dtype="float32", device="cpu")
    with (
        prepare_folder(folder.parent),
        tempfile.TemporaryDirectory(dir=folder.parent, prefix=".partial-") as scratch,
    ):
        draft = Path(scratch) / folder.name
        with silence_transformers():
            pair.model.save_pretrained(draft)
            pair.tokenizer.save_pretrained(draft)
        try:
            os.rename(draft, folder)
        except OSError:
            # Whoever made the same folder meanwhile made the same files.
            if not folder.is_dir():
                raise
    return folder


def _weight_dtype(precision: Precision, device: Device) -> Dtype:
    if precision == "bfloat16":
        return "bfloat16"
    torch = import_extra("torch")
    on_card = device != "cpu" and torch.cuda.is_available()
    return "bfloat16" if precision == "auto" and on_card else "float32"


def _load_adapter(model: Any, adapter: Path) -> Any:
    if not (adapter / "adapter_config.json").is_file():
        raise BadConfig(
            f"{adapter} is not an adapter: it has no adapter_config.json",
            fix="give the folder that `osler train tune sft` wrote",
        )
    from safetensors import SafetensorError

    try:
        adapted = import_extra("peft").PeftModel.from_pretrained(
            model, str(adapter), is_trainable=True
        )
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ModelError(
            f"the adapter {adapter} does not load: {reason}", fix="train it again"
        ) from error
    for config in adapted.peft_config.values():
        # Else peft asks the hub for a model of the card's name at every checkpoint.
        config.base_model_name_or_path = model.config.name_or_path
    return adapted


def _add_adapter(model: Any, lora: LoraSettings, seed: int) -> Any:
    torch, peft = import_extra("torch"), import_extra("peft")
    count: int = model.config.get_text_config().num_hidden_layers
    if lora.top is not None and not 1 <= lora.top <= count:
        raise BadConfig(f"the model has {count} layers, not {lora.top}", fix="give fewer --layers")
    config = peft.LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=sorted(_linear_names(model)),
        layers_to_transform=None if lora.top is None else list(range(count - lora.top, count)),
        task_type="CAUSAL_LM",
    )
    # LoRA's A is drawn at random, B is zero: a new adapter changes nothing (Hu et al. 2021).
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return peft.get_peft_model(model, config)


def _linear_names(model: Any) -> set[str]:
    """Returns last names of the layers' linear maps, without the one to the vocabulary."""
    linear, head = import_extra("torch").nn.Linear, model.get_output_embeddings()
    return {
        name.rsplit(".", 1)[-1]
        for name, module in model.named_modules()
        if isinstance(module, linear) and module is not head
    }


@contextmanager
def matrix_products(precision: Precision, threads: int | None = None) -> Iterator[None]:
    """Sets the precision of matrix products and the number of threads while a training runs."""
    torch = import_extra("torch")
    before, count = torch.get_float32_matmul_precision(), torch.get_num_threads()
    if precision in ("auto", "mixed"):
        torch.set_float32_matmul_precision("medium")
    torch.set_num_threads(threads or _free_threads())
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
        torch.set_num_threads(count)


def _free_threads() -> int:
    """Threads that have a processor to themselves: two that share one wait for each other."""
    count = os.cpu_count() or 1
    return max(1, count - round(os.getloadavg()[0])) if hasattr(os, "getloadavg") else count


def count_parameters(model: Any) -> tuple[int, int]:
    """Numbers of the model, and how many of them are trained."""
    counts = [(p.numel(), p.requires_grad) for p in model.parameters()]
    return sum(n for n, _ in counts), sum(n for n, trained in counts if trained)
