"""Loads models for transformers: a folder, a GGUF file, or a hub id with its revision pinned.

torch and transformers are the extra `train`; they are imported when something is loaded.
Loading says nothing, but for the bar that a large GGUF file shows. A hub model is fetched
once, into the hub's own cache; with `HF_HUB_OFFLINE=1` it must lie there already.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from osler.errors import BadConfig, ModelError, ModelMissing
from osler.llm.core.cache import hash_file

Device = Literal["cpu", "cuda", "auto"]
Dtype = Literal["auto", "float32", "bfloat16", "float16"]

_COMMIT = re.compile(r"[0-9a-f]{40}")
_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*")
_GGUF = ".gguf"


@dataclass(frozen=True, slots=True)
class PinnedModel:
    """A model on the hub. Raises `BadConfig` unless `revision` is a whole commit hash.

    A branch or a tag may move, and then the same settings are another model.
    """

    name: str
    """As in "ncbi/MedCPT-Query-Encoder"."""
    revision: str
    """40 hexadecimal digits."""

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.name):
            raise BadConfig(f"{self.name!r} is not a hub id", fix='write it as "OWNER/MODEL"')
        if not _COMMIT.fullmatch(self.revision):
            given = f"the revision {self.revision!r}" if self.revision else "no revision"
            raise BadConfig(
                f"{self.name} has {given}, and a model from the hub must be pinned",
                fix="set revision to the commit's 40 digits, from the model's page under"
                ' "Files and versions"',
            )

    def __str__(self) -> str:
        return f"{self.name}@{self.revision[:12]}"


Weights: TypeAlias = Path | PinnedModel
"""A folder in the hub's form, a `.gguf` file, or a pinned hub id."""


class ModelPair(NamedTuple):
    """A loaded model and its tokenizer."""

    model: Any
    tokenizer: Any


def weights_name(weights: Weights) -> str:
    """Returns a short name: a folder's or a file's own, or the hub id and revision."""
    if isinstance(weights, PinnedModel):
        return str(weights)
    return weights.stem if weights.suffix == _GGUF else weights.resolve().name


def weights_fingerprint(weights: Weights) -> str:
    """Identifies the weights: by the revision, else a hash of the files."""
    if isinstance(weights, PinnedModel):
        return weights.revision[:12]
    # Contents, not times: the same weights in another folder are the same model.
    files = [weights] if weights.is_file() else _defining_files(weights)
    digest = sha256()
    for path in files:
        digest.update(path.name.encode() + bytes.fromhex(hash_file(path)))
    return digest.hexdigest()[:12]


def _defining_files(folder: Path) -> list[Path]:
    """Lists the files that an answer depends on."""
    kinds = ("*.safetensors", "*.bin", "config.json", "tokenizer.json", "vocab.txt")
    return sorted(path for kind in kinds for path in folder.glob(kind))


def load_pair(
    weights: Weights, *, dtype: Dtype = "auto", device: Device = "auto", adapter: Path | None = None
) -> ModelPair:
    """Loads a causal language model, ready to be asked or trained.

    `dtype` "auto" is as stored, and float32 for GGUF, whose blocks are unpacked.
    `adapter` is a folder that PEFT wrote. Raises `ModelMissing` for what is not there or
    does not load, `ModelError` without the extra, `BadConfig` for a device that is not there.
    """
    model = open_model("AutoModelForCausalLM", weights, dtype=dtype, device=device)
    tokenizer = open_tokenizer(weights)
    return ModelPair(model if adapter is None else _apply_adapter(model, adapter), tokenizer)


def open_model(kind: str, weights: Weights, *, dtype: Dtype, device: Device) -> Any:
    """Loads `transformers.KIND` of the weights for inference. Raises as `load_pair`."""
    torch, transformers = load_libraries()
    place = _choose_device(torch, device)
    where, more = _load_arguments(weights)
    if "gguf_file" in more:
        more["quantization_config"] = transformers.GgufConfig(dequantize=True)
        dtype = "float32" if dtype == "auto" else dtype
    wanted = dtype if dtype == "auto" else getattr(torch, dtype)
    load = getattr(transformers, kind).from_pretrained
    model, info = _load_guarded(
        weights, lambda: load(where, dtype=wanted, output_loading_info=True, **more)
    )
    # transformers fills what a checkpoint lacks with chance, and goes on. A BERT's pooler is
    # lacking in many encoders and is never asked.
    if lacking := [key for key in info["missing_keys"] if not key.startswith("pooler.")]:
        raise ModelMissing(
            f"{weights} lacks weights of a {type(model).__name__}: {', '.join(lacking[:3])}",
            fix="use a model that was made for this",
        )
    if hasattr(model.config, "quantization_config") and "gguf_file" in more:
        # Else a saved copy would say that it is packed.
        del model.config.quantization_config
    return model.to(place).eval()


def open_tokenizer(weights: Weights) -> Any:
    """Loads the tokenizer. Raises as `load_pair`."""
    _, transformers = load_libraries()
    where, more = _load_arguments(weights)
    return _load_guarded(weights, lambda: transformers.AutoTokenizer.from_pretrained(where, **more))


def load_libraries() -> tuple[Any, Any]:
    """Imports torch and transformers. Raises `ModelError` where the extra is not installed."""
    return import_extra("torch"), import_extra("transformers")


def import_extra(module: str) -> Any:
    """Imports a module of the extra `train`. Raises `ModelError` where it is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ModelError(
            f"{error.name} is not installed", fix='run `pip install "osler[train]"`'
        ) from error


def _choose_device(torch: Any, device: Device) -> str:
    there = bool(torch.cuda.is_available())
    if device == "cuda" and not there:
        raise BadConfig("there is no CUDA device here", fix='set device = "cpu" or "auto"')
    return "cuda" if there and device != "cpu" else "cpu"


def _load_arguments(weights: Weights) -> tuple[str, dict[str, Any]]:
    """Returns the arguments of `from_pretrained`. Raises `ModelMissing` for a path that is not
    there.
    """
    if isinstance(weights, PinnedModel):
        return weights.name, {"revision": weights.revision}
    if not weights.exists():
        raise ModelMissing(f"no model {weights}", fix="set path to a model folder or a GGUF file")
    if weights.is_dir():
        if not (weights / "config.json").is_file():
            raise ModelMissing(
                f"{weights} is not a model folder: it has no config.json",
                fix="set path to a folder in the hub's form",
            )
        return str(weights), {"local_files_only": True}
    if weights.suffix != _GGUF:
        raise ModelMissing(f"{weights} is neither a folder nor a GGUF file", fix="set path to one")
    return str(weights.parent), {"gguf_file": weights.name, "local_files_only": True}


def _load_guarded(weights: Weights, load: Callable[[], Any]) -> Any:
    import struct

    broken = import_extra("safetensors").SafetensorError
    try:
        with silence_transformers():
            return load()
    except (OSError, ValueError, LookupError, RuntimeError, struct.error, broken) as error:
        message = " ".join(str(error).split())[:300]
        fix = (
            "fetch it once with a network and without HF_HUB_OFFLINE, or set path to a local folder"
            if isinstance(weights, PinnedModel)
            else "fetch the files again"
        )
        raise ModelMissing(f"{weights} does not load: {message}", fix=fix) from error


def _apply_adapter(model: Any, adapter: Path) -> Any:
    peft = import_extra("peft")
    if not (adapter / "adapter_config.json").is_file():
        raise ModelMissing(
            f"{adapter} is not an adapter: it has no adapter_config.json",
            fix="set adapter to a folder that PEFT wrote",
        )
    return _load_guarded(
        adapter, lambda: peft.PeftModel.from_pretrained(model, str(adapter)).eval()
    )


@contextmanager
def silence_transformers() -> Iterator[None]:
    """Silences transformers' bars and notices, which would break up the terminal display."""
    import warnings

    log = importlib.import_module("transformers.utils.logging")
    bars, level = log.is_progress_bar_enabled(), log.get_verbosity()
    log.disable_progress_bar()
    log.set_verbosity_error()
    try:
        with warnings.catch_warnings():
            # peft asks for a name that transformers is about to drop.
            warnings.simplefilter("ignore", FutureWarning)
            yield
    finally:
        log.set_verbosity(level)
        if bars:
            log.enable_progress_bar()
