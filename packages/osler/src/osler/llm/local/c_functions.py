"""llama.cpp's C functions, as the wheel's library exports them: a context that shows every logit.

The engine's server reports one token a step. These functions read a batch, and give the
logits at each of its places.

A struct of parameters is passed as a blob that is longer than the struct is. What stands in
it is known by its defaults alone, so these are checked before anything is written, and what
the new context reports of itself is checked after: a library with another layout raises
`LayoutChanged`, and nothing is read at a wrong place.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import finalize

from osler.errors import ModelError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_INT = ctypes.c_int32
_UINT = ctypes.c_uint32
_POINTER = ctypes.c_void_p

_SIZES = (512, 2048, 512, 1)
"""Defaults of the context's n_ctx, n_batch, n_ubatch and n_seq_max, which stand first."""
_FLAGS = bytes((0, 1, 1, 1, 1, 0))
"""Defaults of embeddings, offload_kqv, no_perf, op_offload, swa_full and kv_unified."""


class LayoutChanged(ModelError):
    """Raised where the library is not laid out as this module knows it."""


class _Blob(ctypes.Structure):
    """Longer than any struct of parameters. It is the last argument, so the rest is not read."""

    _fields_ = (("bytes", ctypes.c_uint8 * 512),)


class _Batch(ctypes.Structure):
    """`llama_batch`."""

    _fields_ = (
        ("n_tokens", _INT),
        ("token", ctypes.POINTER(_INT)),
        ("embd", _POINTER),
        ("pos", ctypes.POINTER(_INT)),
        ("n_seq_id", ctypes.POINTER(_INT)),
        ("seq_id", ctypes.POINTER(ctypes.POINTER(_INT))),
        ("logits", ctypes.POINTER(ctypes.c_int8)),
    )


_SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "llama_model_default_params": (_Blob, ()),
    "llama_context_default_params": (_Blob, ()),
    "llama_model_load_from_file": (_POINTER, (ctypes.c_char_p, _Blob)),
    "llama_model_free": (None, (_POINTER,)),
    "llama_model_get_vocab": (_POINTER, (_POINTER,)),
    "llama_model_is_recurrent": (ctypes.c_bool, (_POINTER,)),
    "llama_model_is_hybrid": (ctypes.c_bool, (_POINTER,)),
    "llama_model_has_encoder": (ctypes.c_bool, (_POINTER,)),
    "llama_vocab_n_tokens": (_INT, (_POINTER,)),
    "llama_init_from_model": (_POINTER, (_POINTER, _Blob)),
    "llama_free": (None, (_POINTER,)),
    "llama_n_ctx": (_UINT, (_POINTER,)),
    "llama_n_ctx_seq": (_UINT, (_POINTER,)),
    "llama_n_batch": (_UINT, (_POINTER,)),
    "llama_n_ubatch": (_UINT, (_POINTER,)),
    "llama_n_seq_max": (_UINT, (_POINTER,)),
    "llama_set_n_threads": (None, (_POINTER, _INT, _INT)),
    "llama_get_memory": (_POINTER, (_POINTER,)),
    "llama_memory_seq_cp": (None, (_POINTER, _INT, _INT, _INT, _INT)),
    "llama_memory_seq_rm": (ctypes.c_bool, (_POINTER, _INT, _INT, _INT)),
    "llama_batch_init": (_Batch, (_INT, _INT, _INT)),
    "llama_batch_free": (None, (_Batch,)),
    "llama_decode": (_INT, (_POINTER, _Batch)),
    "llama_get_logits_ith": (ctypes.POINTER(ctypes.c_float), (_POINTER, _INT)),
}


@dataclass(frozen=True, slots=True)
class Place:
    """A token of a batch."""

    token: int
    position: int
    sequences: tuple[int, ...]
    """Those that go through it; what one sequence reads, another never sees."""
    shows: bool
    """Whether the logits of what follows are wanted."""


class LogitContext:
    """A cache of `cells` tokens over one model file, shared by `sequences` sequences."""

    def __init__(self, model: LoadedModel, *, cells: int, batch: int, sequences: int) -> None:
        self._c = c = model.library
        self._model = model
        self.cells = cells
        self._pointer = c.llama_init_from_model(
            model.pointer, _context_parameters(c, (cells, batch, batch, sequences))
        )
        if not self._pointer:
            raise ModelError(f"{model.path.name}: no memory for {cells} tokens to score")
        self._batch = c.llama_batch_init(batch, 0, sequences)
        finalize(self, _free_context, c, self._pointer, self._batch, model)
        _check_sizes(c, self._pointer, (batch, batch, sequences))
        self._memory = c.llama_get_memory(self._pointer)

    def use_threads(self, count: int) -> None:
        self._c.llama_set_n_threads(self._pointer, count, count)

    def copy_sequence(self, source: int, target: int, end: int = -1) -> None:
        """Lets `target` begin as `source` does, up to the position `end`; no cell is copied."""
        self._c.llama_memory_seq_cp(self._memory, source, target, 0, end)

    def cut_sequence(self, sequence: int, start: int = 0) -> None:
        """Forgets the sequence from the position `start` on."""
        if not self._c.llama_memory_seq_rm(self._memory, sequence, start, -1):
            raise ModelError(f"{self._model.path.name}: its cache cannot be cut")

    def read_places(self, places: Sequence[Place]) -> list[NDArray[np.float32]]:
        """Reads a batch; returns the logits, float32 [vocabulary], of each place that shows them.

        They hold until the next batch is read.
        """
        import numpy as np

        batch = self._batch
        batch.n_tokens = len(places)
        for i, place in enumerate(places):
            batch.token[i], batch.pos[i] = place.token, place.position
            batch.n_seq_id[i], batch.logits[i] = len(place.sequences), place.shows
            for j, sequence in enumerate(place.sequences):
                batch.seq_id[i][j] = sequence
        if failed := self._c.llama_decode(self._pointer, batch):
            raise ModelError(f"{self._model.path.name}: a batch could not be read ({failed})")
        shape = (self._model.vocabulary,)
        return [
            np.ctypeslib.as_array(self._c.llama_get_logits_ith(self._pointer, i), shape)
            for i, place in enumerate(places)
            if place.shows
        ]


class LoadedModel:
    """A model file, mapped. Its pages are shared with whoever else maps the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.library = c = open_library()
        self.pointer = c.llama_model_load_from_file(
            str(path).encode(), c.llama_model_default_params()
        )
        if not self.pointer:
            raise ModelError(f"{path} does not load a second time")
        finalize(self, c.llama_model_free, self.pointer).atexit = False
        self.vocabulary: int = c.llama_vocab_n_tokens(c.llama_model_get_vocab(self.pointer))

    @property
    def forks(self) -> bool:
        """Whether a text's cache can be shared and cut at any token."""
        asked = ("is_recurrent", "is_hybrid", "has_encoder")
        return not any(getattr(self.library, f"llama_model_{it}")(self.pointer) for it in asked)


@cache
def open_library() -> Any:
    """Returns the wheel's library. Raises `LayoutChanged` where a function or a layout differs."""
    from xllamacpp import xllamacpp

    library = ctypes.CDLL(xllamacpp.__file__)
    try:
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except AttributeError as error:
        raise LayoutChanged(f"the engine's library has changed: {error}") from error
    _context_parameters(library, _SIZES)
    return library


def _context_parameters(library: Any, sizes: Sequence[int]) -> _Blob:
    """Returns parameters with these sizes, and one cache for all sequences."""
    blob: _Blob = library.llama_context_default_params()
    # Past its end the blob holds whatever the stack held: the flags are the first such bytes.
    found = bytes(blob.bytes)
    flags = found.find(_FLAGS, struct.calcsize("4I"))
    if struct.unpack_from("4I", found) != _SIZES or flags < 0:
        raise LayoutChanged("the engine's library has other parameters than are known")
    struct.pack_into("4I", blob.bytes, 0, *sizes)
    blob.bytes[flags + len(_FLAGS) - 1] = 1
    return blob


def _check_sizes(library: Any, context: int, wanted: Sequence[int]) -> None:
    asked = ("n_batch", "n_ubatch", "n_seq_max")
    told = [getattr(library, f"llama_{name}")(context) for name in asked]
    # With one cache for all, a sequence may have all of it.
    whole = library.llama_n_ctx_seq(context) == library.llama_n_ctx(context)
    if told != list(wanted) or not whole:
        raise LayoutChanged(f"the engine's library took {told} for {list(wanted)}")


def _free_context(library: Any, context: int, batch: _Batch, _model: LoadedModel) -> None:
    """Frees a context before its model, which the last argument keeps alive until then."""
    library.llama_batch_free(batch)
    library.llama_free(context)
