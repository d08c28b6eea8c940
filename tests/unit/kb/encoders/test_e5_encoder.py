"""E5's packed file as graph and tokenizer. The oracle is BERT in plain numpy, over a small file of
the same form, made here; the real weights are asked where they are in the cache."""

from __future__ import annotations

import json
import struct
from itertools import accumulate, pairwise
from math import erf, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray
from tokenizers import Tokenizer

from osler.errors import ModelError, ModelMissing
from osler.kb.encoders.e5 import (
    E5Encoder,
    PackedFile,
    SentencePieces,
    bert_name,
    define_pieces,
    packed_graph,
)
from osler.kb.encoders.minilm import PackedRows, float32_graph, int8_graph
from osler.llm.local.weights import E5, is_present

Floats = NDArray[np.float32]
WIDTH, INNER, LAYERS, PLACES = 96, 192, 2, 16
PIECES = [
    *(("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)),
    *(("▁", -3.0), ("▁query:", -6.0), ("▁passage:", -6.0), ("糖", -8.0), ("尿", -8.0)),
    *(("糖尿病", -9.0), ("病", -7.0), ("▁iron", -7.0), ("▁i", -6.0), ("ron", -6.0), ("。", -4.0)),
]
REPLACED = {0x3000: " ", 0x7: "", 0xFF21: "A", 0xBD: "1/2"}
SHAPES = {
    "emb.word": (len(PIECES), WIDTH),
    "emb.pos": (PLACES, WIDTH),
    "emb.type": (2, WIDTH),
    "emb.ln.w": (WIDTH,),
    "emb.ln.b": (WIDTH,),
}
for _layer in range(LAYERS):
    for _part, _shape in {
        **dict.fromkeys(("q", "k", "v", "ao"), (WIDTH, WIDTH)),
        "fi": (INNER, WIDTH),
        "fo": (WIDTH, INNER),
    }.items():
        SHAPES |= {f"l{_layer}.{_part}.w": _shape, f"l{_layer}.{_part}.b": _shape[:1]}
    for _part in ("aln", "oln"):
        SHAPES |= {f"l{_layer}.{_part}.{end}": (WIDTH,) for end in "wb"}


def is_packed(name: str) -> bool:
    return name == "emb.word" or (name[0] == "l" and name.endswith(".w") and "ln" not in name)


def pack(values: Floats) -> tuple[bytes, Floats]:
    """Rows in blocks of 32 with a scale each, and what they say."""
    blocks = values.reshape(-1, 32)
    scales = (np.abs(blocks).max(axis=1) / 7).astype(np.float16)
    whole = np.clip(np.rint(blocks / scales[:, None].astype(np.float32)) + 8, 0, 15).astype("u1")
    halves = whole[:, :16] | (whole[:, 16:] << 4)
    said = (whole.astype(np.float32) - 8) * scales[:, None].astype(np.float32)
    packed = b"".join(s.tobytes() + h.tobytes() for s, h in zip(scales, halves, strict=True))
    return packed, said.reshape(values.shape)


def header_of(heads: int) -> bytes:
    numbers = (WIDTH, LAYERS, heads, INNER, len(PIECES), PLACES, 2, 1e-12, 32)
    return b"E5S1" + struct.pack("<I7ifi", 1, *numbers)


def vocabulary() -> bytes:
    texts = [text.encode() for text, _ in PIECES]
    ends = [0, *accumulate(map(len, texts))]
    table = struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, ends[-1])
    table += np.array(ends, "<u4").tobytes()
    table += np.array([score for _, score in PIECES], "<f4").tobytes() + b"".join(texts)
    marks = b"".join(
        struct.pack(f"<IB{len(said)}I", code, len(said), *map(ord, said))
        for code, said in sorted(REPLACED.items())
    )
    return table + struct.pack("<iI", len(REPLACED), len(marks)) + marks


def write_file(path: Path, *, heads: int = 12) -> dict[str, Floats]:
    """Writes the file, and returns its weights by their names in BERT."""
    chance = np.random.default_rng(7)
    stored: dict[str, bytes] = {}
    said: dict[str, Floats] = {}
    for name, shape in SHAPES.items():
        values = chance.normal(0, 0.3, shape).astype(np.float32)
        values += name.endswith("ln.w")
        stored[name], said[bert_name(name)] = (
            pack(values) if is_packed(name) else (values.astype("<f4").tobytes(), values)
        )
    start = header_of(heads) + vocabulary() + struct.pack("<i", len(stored))
    at = len(start) + sum(23 + len(name) for name in stored)
    for name, content in stored.items():
        count = int(np.prod(SHAPES[name]))
        start += struct.pack("<H", len(name)) + name.encode()
        start += struct.pack("<BIQQ", is_packed(name), count, at, len(content))
        at += len(content)
    path.write_bytes(start + b"".join(stored.values()))
    return said


@pytest.fixture
def weights(tmp_path: Path) -> dict[str, Floats]:
    return write_file(tmp_path / "small.bin")


@pytest.fixture
def file(weights: dict[str, Floats], tmp_path: Path) -> PackedFile:
    return PackedFile(tmp_path / "small.bin")


def bert(w: dict[str, Floats], ids: list[int]) -> Floats:
    """Devlin et al. 2019: positions from 0, one segment, mean over the tokens, length 1."""

    def norm(x: Floats, name: str) -> Floats:
        x = x - x.mean(axis=-1, keepdims=True)
        scaled: Floats = x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-12)
        done: Floats = scaled * w[f"{name}.weight"] + w[f"{name}.bias"]
        return done

    def dense(x: Floats, name: str) -> Floats:
        done: Floats = x @ w[f"{name}.weight"].T + w[f"{name}.bias"]
        return done

    table = "embeddings.{}_embeddings.weight".format
    x = w[table("word")][ids] + w[table("position")][: len(ids)] + w[table("token_type")][0]
    x, size = norm(x, "embeddings.LayerNorm"), WIDTH // 12
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}."
        q, k, v = (
            dense(x, f"{at}attention.self.{part}").reshape(-1, 12, size).swapaxes(0, 1)
            for part in ("query", "key", "value")
        )
        share = np.exp(q @ k.swapaxes(1, 2) / sqrt(size))
        share /= share.sum(axis=-1, keepdims=True)
        heads = (share @ v).swapaxes(0, 1).reshape(-1, WIDTH)
        at_end = f"{at}attention.output"
        x = norm(x + dense(heads, f"{at_end}.dense"), f"{at_end}.LayerNorm")
        inner = dense(x, f"{at}intermediate.dense")
        inner = (inner * (1 + np.vectorize(erf)(inner / sqrt(2))) / 2).astype(np.float32)
        x = norm(x + dense(inner, f"{at}output.dense"), f"{at}output.LayerNorm")
    mean: Floats = x.mean(axis=0)
    return mean / np.linalg.norm(mean)


def run(graph: bytes, ids: list[int]) -> Floats:
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    found: Floats = session.run(None, {"ids": np.array([ids], np.int64)})[0][0]
    return found


IDS = [0, 6, 9, 14, 11, 3, 2]


def test_the_packed_rows_say_what_was_packed(file: PackedFile, weights: dict[str, Floats]) -> None:
    read = file.read_tensors()
    table = read.pop("embeddings.word_embeddings.weight")
    assert isinstance(table, PackedRows)
    assert np.array_equal(table.unpack(), weights["embeddings.word_embeddings.weight"])
    assert read.keys() == weights.keys() - {"embeddings.word_embeddings.weight"}
    for name, values in read.items():
        assert np.array_equal(values, weights[name]), name


def test_the_float32_graph_is_the_model(file: PackedFile, weights: dict[str, Floats]) -> None:
    graph = float32_graph(file.read_tensors(), file.shape)
    assert np.allclose(run(graph, IDS), bert(weights, IDS), atol=1e-5)


def test_the_8_bit_graph_is_near_the_model(file: PackedFile, weights: dict[str, Floats]) -> None:
    graph = int8_graph(file.read_tensors(), file.shape)
    assert run(graph, IDS) @ bert(weights, IDS) > 0.98
    assert packed_graph(file, SentencePieces(file, file.path.parent)) == graph


def test_pieces_are_the_likeliest_between_the_ends(file: PackedFile) -> None:
    pieces = SentencePieces(file, file.path.parent)
    assert pieces.token_ids("passage: 糖尿病。 iron") == [0, 6, 4, 9, 14, 11, 2]
    # A wide space becomes a plain one, which is read once; a bell is nothing.
    assert pieces.token_ids("passage: 糖尿病。\u3000 \x07iron") == [0, 6, 4, 9, 14, 11, 2]


def test_pieces_are_told_where_they_stand(file: PackedFile) -> None:
    pieces = SentencePieces(file, file.path.parent)
    for text in ("passage: 糖尿病。 iron", "passage: 糖尿病。\u3000 \x07iron", "糖 病x", ""):
        ids, places = pieces.place_pieces(text)
        assert ids == pieces.piece_ids(text)
        told = [text[start:end].strip("\u3000 \x07") for start, end in places]
        assert "".join(told) == "".join(text.split()).replace("\x07", "")
        assert all(end <= start for (_, end), (start, _) in pairwise(places))


def test_a_piece_is_read_by_its_id(file: PackedFile) -> None:
    pieces = [text for text, _ in file.read_pieces()]
    assert [file.read_piece(id) for id in range(len(pieces))] == pieces


def test_pieces_are_those_of_the_reference_library(file: PackedFile) -> None:
    definition = define_pieces(file.read_pieces(), file.ends[2])
    reference = Tokenizer.from_str(json.dumps(definition))
    for text in ("query: iron 糖尿 病", "糖", "unknown 糖尿病。", "", "iron  iron"):
        wanted = reference.encode(" ".join(text.split()), add_special_tokens=False).ids
        assert SentencePieces(file, file.path.parent).piece_ids(text) == wanted, text


def test_a_long_text_is_cut_and_keeps_its_end(file: PackedFile) -> None:
    ids = SentencePieces(file, file.path.parent).token_ids("query: " + "糖 尿 病" * 40)
    assert len(ids) == PLACES
    assert (ids[0], ids[-1]) == (0, 2)


@pytest.mark.parametrize("damage", ["magic", "heads"])
def test_a_file_of_another_form_is_refused(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "other.bin"
    write_file(path, heads=8 if damage == "heads" else 12)
    if damage == "magic":
        path.write_bytes(b"GGUF" + path.read_bytes()[4:])
    with pytest.raises(ModelError, match="holds no multilingual-e5-small"):
        PackedFile(path)


def test_absent_weights_are_named(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing, match=r"multilingual-e5-small\.q4\.bin is not in"):
        E5Encoder(cache=tmp_path)


def test_the_real_weights_put_chinese_texts_in_order() -> None:
    if not is_present(E5):
        pytest.skip("the weights are not in the cache")
    encoder = E5Encoder(threads=1)
    asked = encoder.encode(["糖尿病首选什么药？"], kind="query")[0]
    texts = [
        "二甲双胍是2型糖尿病的一线用药。",
        "Metformin is the first choice.",
        "火车中午开往海边。",
    ]
    near, foreign, far = encoder.encode(texts, kind="passage") @ asked
    assert near > foreign > far
    told: Any = encoder.encode(["糖尿病首选什么药？"], kind="passage")[0]
    assert told @ asked < 0.999  # a question is another text than a passage


def test_the_real_weights_say_something_of_each_piece() -> None:
    if not is_present(E5):
        pytest.skip("the weights are not in the cache")
    encoder = E5Encoder(threads=1)
    for text in ("Mr Łukasz  Wiśniewski, 12/4", "患者𠮷野家ｆｕｌｌ㊙，男。", "", " ", "x" * 3_000):
        places, states = encoder.read_tokens(text)
        assert states.shape == (len(places), 2 * encoder.dimension)
        covered = {at for start, end in places for at in range(start, end)}
        read = max(covered, default=-1) + 1
        assert {at for at in range(read) if text[at].isalnum()} <= covered
        assert read == len(text.rstrip()) or len(places) > 400
    (first,), states = encoder.read_tokens("May")
    (again,), others = encoder.read_tokens("May")
    assert first == again == (0, 3)
    assert np.array_equal(states, others)
