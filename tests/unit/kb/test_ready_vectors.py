"""Ready-made vectors in the shape of MedCPT's: taken by document id, or refused as a whole."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from osler.errors import KnowledgeBaseMismatch, MalformedSource
from osler.kb.base import KnowledgeBase
from osler.kb.index.ready import take_vectors
from osler.types import Passage
from osler_lab.testing.scripted import HashingEncoder

ENCODER = HashingEncoder()
IDS = ["11", "12", "13"]
ROWS = np.random.default_rng(0).normal(size=(3, ENCODER.dimension)).astype(np.float32)


@pytest.fixture
def kb(tmp_path: Path) -> Any:
    """Two articles of which the folder has vectors, one in two passages; and one of which not."""
    texts = {"11": ["Iron.", "More iron."], "12": ["Zinc."], "99": ["Gold."]}
    with KnowledgeBase.create(tmp_path / "kb") as made:
        for id, parts in texts.items():
            made.put(
                Passage(f"research:{id}#{n}", f"{part} {id}", "research", f"About {id}")
                for n, part in enumerate(parts)
            )
        yield made


def write_folder(folder: Path, rows: Any = ROWS, ids: Any = IDS, **manifest: Any) -> Path:
    folder.mkdir()
    np.save(folder / "embeds_chunk_0.npy", rows)
    (folder / "pmids_chunk_0.json").write_text(json.dumps(ids))
    sums = {file.name: sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}
    told = {"encoder": ENCODER.identity, "sha256": sums} | manifest
    (folder / "vectors.json").write_text(json.dumps(told))
    return folder


def vectors_of(kb: KnowledgeBase) -> dict[str, Any]:
    numbers = range(1, 10)
    passages, found = kb.get_passages(numbers), kb.get_vectors(numbers)
    return {passages[number].id: vector for number, vector in found.items()}


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_each_passage_gets_its_document_s_vector_and_the_build_makes_the_rest(
    kb: KnowledgeBase, tmp_path: Path, kind: Any
) -> None:
    folder = write_folder(tmp_path / "ready", ROWS.astype(kind), [11, 12, 13])
    taken = take_vectors(kb.path, ENCODER, folder, source="research")
    assert (taken.passages, taken.unknown) == (3, 1)
    unit = ROWS / np.linalg.norm(ROWS, axis=1, keepdims=True)
    held = vectors_of(kb)
    for id, row in {"research:11#0": 0, "research:11#1": 0, "research:12#0": 1}.items():
        assert np.allclose(held[id], unit[row], atol=1e-3)
    assert kb.build(ENCODER).encoded == 1
    ((best, _), *_) = kb.by_vector(unit[1], encoder=ENCODER.identity, k=1)
    assert best.id == "research:12#0"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"encoder": "other"}, "are of encoder other, not of"),
        ({"sha256": {"embeds_chunk_0.npy": "0" * 64}}, "has the SHA-256"),
        ({"sha256": {}}, "names no embeds_chunk"),
        ({"rows": ROWS[:, :5]}, "floats a row"),
        ({"rows": ROWS.astype(np.int8)}, "floats a row"),
        ({"ids": IDS[:2]}, "3 rows, pmids_chunk_0.json 2 ids"),
        ({"rows": np.zeros_like(ROWS)}, "zero or not finite"),
    ],
)
def test_vectors_that_do_not_fit_are_refused_and_none_is_written(
    kb: KnowledgeBase, tmp_path: Path, given: dict[str, Any], says: str
) -> None:
    folder = write_folder(tmp_path / "ready", **given)
    with pytest.raises(MalformedSource, match=says):
        take_vectors(kb.path, ENCODER, folder, source="research")
    assert vectors_of(kb) == {}


def test_a_folder_without_its_encoder_s_name_is_told_what_to_write(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    folder = write_folder(tmp_path / "ready")
    (folder / "vectors.json").unlink()
    with pytest.raises(MalformedSource, match=r"write vectors\.json into it") as refused:
        take_vectors(kb.path, ENCODER, folder, source="research")
    assert ENCODER.identity in refused.value.fix


def test_a_base_of_another_encoder_takes_none(kb: KnowledgeBase, tmp_path: Path) -> None:
    kb.build(ENCODER)
    folder = write_folder(tmp_path / "ready")
    with pytest.raises(KnowledgeBaseMismatch):
        take_vectors(kb.path, Renamed(), folder, source="research")


class Renamed(HashingEncoder):
    identity = "renamed"
