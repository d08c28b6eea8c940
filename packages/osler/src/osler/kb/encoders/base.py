"""Texts to vectors: the `Encoder` Protocol, and the encoder that works offline.

Encoders are synchronous and busy; a coroutine calls them by `asyncio.to_thread`.

Vectors of different encoders say nothing about each other. So where an encoder for one language
stands beside the usual one, every text has one language, whose encoder makes its vector, and a
question is compared with vectors of its own language's encoder.
"""

from __future__ import annotations

import json
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from osler.errors import ModelError
from osler.kb.encoders.minilm import (
    DIMENSION,
    MAX_TOKENS,
    float32_graph,
    int8_graph,
    read_safetensors,
)
from osler.llm.core.cache import derive_file
from osler.llm.local.weights import MINILM, MINILM_TOKENIZER, locate_weights
from osler.text import language_of
from osler.types import Language

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    from osler.kb.encoders.minilm import Tensors

    Vectors: TypeAlias = NDArray[np.float32]

Kind = Literal["query", "passage"]
T = TypeVar("T")


class Encoder(Protocol):
    """Texts in, one vector each: near in meaning is near in cosine."""

    @property
    def identity(self) -> str:
        """Model, revision and precision. A knowledge base refuses an encoder of another one."""

    @property
    def dimension(self) -> int: ...

    @property
    def languages(self) -> frozenset[Language]:
        """Languages it was made for; of others the vectors mean nothing."""

    def encode(self, texts: Sequence[str], *, kind: Kind) -> Vectors:
        """Float32 of shape (texts, dimension), in order, each of length 1.

        `kind` tells the encoders that treat questions and passages differently which it is.
        """


class VectorMemory:
    """An `Encoder` that encodes no text twice, nor a passage whose vector a search has read.

    A question is searched in every source at the same time: one search encodes it, the others
    wait for its vector. What several searches found is then compared with the question.
    """

    def __init__(self, encoder: Encoder, most: int = 256, passages: int = 2_048) -> None:
        """Keeps the vectors of the queries that were asked last, and of the last passages."""
        self._encoder = encoder
        self._most, self._most_passages = most, passages
        self._vectors: OrderedDict[str, Vectors] = OrderedDict()
        self._passages: OrderedDict[str, Vectors] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def identity(self) -> str:
        return self._encoder.identity

    @property
    def dimension(self) -> int:
        return self._encoder.dimension

    @property
    def languages(self) -> frozenset[Language]:
        return self._encoder.languages

    def remember_passages(self, texts: Sequence[str], vectors: Sequence[Vectors]) -> None:
        """Keeps vectors that this encoder made of these texts."""
        with self._lock:
            for text, vector in zip(texts, vectors, strict=True):
                _keep(self._passages, text, vector, self._most_passages)

    def encode(self, texts: Sequence[str], *, kind: Kind) -> Vectors:
        if kind == "passage":
            return self._encode_passages(texts)
        if len(texts) != 1:
            return self._encoder.encode(texts, kind=kind)
        (text,) = texts
        with self._lock:
            if text not in self._vectors:
                _keep(self._vectors, text, self._encoder.encode([text], kind=kind), self._most)
            self._vectors.move_to_end(text)
            return self._vectors[text]

    def _encode_passages(self, texts: Sequence[str]) -> Vectors:
        import numpy as np

        with self._lock:
            known = {text: self._passages[text] for text in texts if text in self._passages}
        if unknown := [text for text in dict.fromkeys(texts) if text not in known]:
            made = list(self._encoder.encode(unknown, kind="passage"))
            self.remember_passages(unknown, made)
            known |= zip(unknown, made, strict=True)
        return np.array([known[text] for text in texts], np.float32).reshape(-1, self.dimension)


def _keep(memory: OrderedDict[str, Vectors], text: str, vector: Vectors, most: int) -> None:
    memory[text] = vector
    memory.move_to_end(text)
    if len(memory) > most:
        memory.popitem(last=False)


def scale_to_unit(vectors: Vectors) -> Vectors:
    """Scales each row to length 1. Raises `ValueError` for one that cannot be."""
    import numpy as np

    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(vectors).all() or not (norms > 0).all():
        raise ValueError("a vector is zero or not finite")
    unit: Vectors = vectors / norms
    return unit


_GRAPH_NAME = "all-MiniLM-L6-v2.int8-1.onnx"
"""Raise the number, here and in `identity`, with each change to what the graph computes."""
_LEAST_COSINE = 0.98
"""Just below .984 to .994, the worst cosines measured on abstracts (`minilm.Int8Graph`)."""
# Short and long, medical and plain: rounding errors differ with length and vocabulary.
_CHECK = (
    "What is the first-line treatment of iron deficiency anaemia in pregnancy?",
    "Anaphylaxis is treated with intramuscular adrenaline into the outer thigh.",
    "Metformin is stopped when the estimated glomerular filtration rate falls below 30.",
    "BRCA1",
    "The patient, a 63-year-old woman, came with three days of fever, a productive cough and"
    " pain on breathing in. Her pulse was 112 a minute, her blood pressure 98 over 60 mmHg, and"
    " the chest film showed consolidation of the right lower lobe.",
    "Where can I read more about living with Addison disease?",
    "Warfarin lengthens the prothrombin time; vitamin K reverses it.",
    "The train to the coast leaves at noon and takes two hours.",
    "HLA-B*57:01 is tested for before abacavir, as carriers may have a severe reaction to it.",
    "fever",
)


class MiniLMEncoder:
    """all-MiniLM-L6-v2 on the CPU, 8-bit: an `Encoder` for English.

    A text is read by itself, up to 256 tokens, so its vector does not depend on what is
    encoded with it. One object may be used from several threads.
    """

    identity = f"all-MiniLM-L6-v2@{MINILM.sha256[:12]}/int8-1"
    dimension = DIMENSION
    languages: frozenset[Language] = frozenset({"en"})

    def __init__(self, *, threads: int | None = None, cache: Path | None = None) -> None:
        """Loads the graph from the cache, where it is built the first time, in seconds.

        `threads` texts are read side by side; by default as many as there are cores. Raises
        `ModelMissing` when the weights are not there, and `ModelError` when the 8-bit
        graph does not agree with the float32 one on this machine.
        """
        tokenizer = locate_weights(MINILM_TOKENIZER, cache=cache)

        def make_graph(draft: Path) -> None:
            build_graph(read_safetensors(locate_weights(MINILM, cache=cache)), tokenizer, draft)

        graph = derive_file(_GRAPH_NAME, make_graph, cache=cache)
        self._session = open_session(graph, 1)
        self._threads = threads or os.cpu_count() or 1
        self._tokenizer = WordPieces(tokenizer)

    def encode(self, texts: Sequence[str], *, kind: Kind) -> Vectors:
        """Encodes texts; the model treats queries and passages alike."""
        return encode_texts(self._session, self._tokenizer, texts, self._threads)


def build_graph(tensors: Tensors, tokenizer: Path, target: Path) -> None:
    """Writes the 8-bit graph to `target`. Raises `ModelError` unless it agrees with the float32
    one on ten texts."""
    small, exact = int8_graph(tensors), float32_graph(tensors)
    target.write_bytes(agreed_graph(small, exact, WordPieces(tokenizer), _CHECK))


def agreed_graph(small: bytes, exact: bytes, pieces: Pieces, texts: Sequence[str]) -> bytes:
    """The 8-bit graph `small`. Raises `ModelError` unless it agrees with the float32 one on these
    texts."""
    right = encode_texts(open_session(exact, 1), pieces, texts)
    rounded = encode_texts(open_session(small, 1), pieces, texts)
    worst = float((right * rounded).sum(axis=1).min())
    if not worst >= _LEAST_COSINE:
        raise ModelError(
            f"the 8-bit encoder strays from the exact one on this machine:"
            f" cosine {worst:.3f}, at least {_LEAST_COSINE} is needed",
            fix="use another encoder, or another version of onnxruntime",
        )
    return small


def open_session(graph: Path | bytes, threads: int) -> Any:
    """An ONNX Runtime session on the CPU whose threads do not spin: the language model needs it."""
    # Packages of it report each session, with an id of this machine, to their maker by default.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


@lru_cache(maxsize=1)
def import_kitoken() -> Any:
    """The tokenizer's class, imported by a thread that lives as long as the process.

    Its allocator (mimalloc) keeps its state in the thread that loads the library. Where that is a
    worker's thread that ends, the next thread that makes a tokenizer kills the process.
    """
    tried = threading.Event()

    def stay() -> None:
        with suppress(ImportError):
            import_module("kitoken")
        tried.set()
        threading.Event().wait()

    threading.Thread(target=stay, name="kitoken", daemon=True).start()
    tried.wait()
    # An import that failed above fails here again, where the caller hears of it.
    return import_module("kitoken").Kitoken


class Pieces(Protocol):
    """Cuts a text into what a model reads."""

    def token_ids(self, text: str) -> list[int]: ...


class WordPieces:
    """BERT's word pieces of a text; `first` is the id of [CLS], `last` that of [SEP]."""

    def __init__(self, path: Path) -> None:
        self._pieces, self.first, self.last = _read_word_pieces(path.read_bytes())

    def piece_ids(self, text: str) -> list[int]:
        """The pieces alone, however many."""
        return list(self._pieces.encode(text, True))

    def token_ids(self, text: str) -> list[int]:
        """The pieces between [CLS] and [SEP], up to `MAX_TOKENS` in all."""
        return [self.first, *self.piece_ids(text)[: MAX_TOKENS - 2], self.last]


@lru_cache(maxsize=2)
def _read_word_pieces(file: bytes) -> tuple[Any, int, int]:
    """What cuts, and the ids of [CLS] and [SEP]; encoder and experts share it."""
    # The file cuts and pads to 128 tokens; this encoder reads up to 256 and pads nothing.
    definition = json.loads(file) | {"truncation": None, "padding": None}
    pieces = import_kitoken().from_tokenizers(json.dumps(definition).encode())
    return pieces, *map(definition["model"]["vocab"].get, ("[CLS]", "[SEP]"))


def encode_texts(session: Any, pieces: Pieces, texts: Sequence[str], threads: int = 1) -> Vectors:
    """A vector each, float32 of shape (texts, `DIMENSION`); `threads` texts side by side."""
    import numpy as np

    def encode_one(text: str) -> Any:
        return session.run(None, {"ids": np.array([pieces.token_ids(text)])})[0][0]

    if not texts:
        return np.empty((0, session.get_outputs()[0].shape[1]), np.float32)
    return np.stack(map_beside(encode_one, texts, threads))


def map_beside(read: Callable[[str], T], texts: Sequence[str], threads: int) -> list[T]:
    """What `read` gives for each text, in order, with so many read side by side: that is faster
    than as many threads on one text, whose matrices are small."""
    if min(threads, len(texts)) <= 1:
        return [read(text) for text in texts]
    with ThreadPoolExecutor(min(threads, len(texts))) as pool:
        return list(pool.map(read, texts))


@dataclass
class LateEncoder:
    """An `Encoder` that is loaded for the first text, which may never come."""

    identity: str
    dimension: int
    languages: frozenset[Language]
    load: Callable[[], Encoder]
    _loaded: Encoder | None = field(default=None, repr=False)
    _loading: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def encode(self, texts: Sequence[str], *, kind: Kind) -> Vectors:
        """Raises what `load` raises."""
        with self._loading:
            if self._loaded is None:
                self._loaded = self.load()
        return self._loaded.encode(texts, kind=kind)


@dataclass(frozen=True)
class EncoderByLanguage:
    """An `Encoder` that gives texts of some languages to others, of the same dimension.

    Its identity is that of `usual`, whose vectors stay as they are when another language joins.
    """

    usual: Encoder
    others: Mapping[Language, Encoder]

    def __post_init__(self) -> None:
        if any(other.dimension != self.usual.dimension for other in self.others.values()):
            raise ModelError("encoders of one knowledge base must give as many numbers each")

    @property
    def identity(self) -> str:
        return self.usual.identity

    @property
    def dimension(self) -> int:
        return self.usual.dimension

    @property
    def languages(self) -> frozenset[Language]:
        return self.usual.languages | frozenset(self.others)

    def encode(self, texts: Sequence[str], *, kind: Kind) -> Vectors:
        return encode_by_language(self, texts, [language_of(text) for text in texts], kind)


def encoder_for(encoder: Encoder, language: Language) -> Encoder:
    """The one that makes the vectors of this language."""
    if isinstance(encoder, EncoderByLanguage):
        return encoder.others.get(language, encoder.usual)
    return encoder


def shared_languages(encoder: Encoder, language: Language) -> frozenset[Language]:
    """The languages whose vectors compare with those of this one; none where it has no vectors."""
    if language not in encoder.languages:
        return frozenset()
    own = encoder_for(encoder, language)
    return frozenset(one for one in encoder.languages if encoder_for(encoder, one) is own)


def name_spaces(encoder: Encoder) -> str:
    """The encoders of single languages, by which a knowledge base knows them; "" where one
    encoder makes all vectors."""
    others = encoder.others if isinstance(encoder, EncoderByLanguage) else {}
    return " ".join(f"{language}={others[language].identity}" for language in sorted(others))


def read_spaces(named: str) -> dict[str, str]:
    """Language and encoder of each of `name_spaces`."""
    return dict(one.split("=", 1) for one in named.split())


def encode_by_language(
    encoder: Encoder, texts: Sequence[str], languages: Sequence[Language], kind: Kind
) -> Vectors:
    """Vectors of texts whose languages are known, in order."""
    import numpy as np

    makers = [encoder_for(encoder, language) for language in languages]
    if len({id(maker) for maker in makers}) <= 1:
        return (makers or [encoder_for(encoder, "en")])[0].encode(texts, kind=kind)
    vectors = np.empty((len(texts), encoder.dimension), np.float32)
    for maker in {id(one): one for one in makers}.values():
        rows = [row for row, one in enumerate(makers) if one is maker]
        vectors[rows] = maker.encode([texts[row] for row in rows], kind=kind)
    return vectors
