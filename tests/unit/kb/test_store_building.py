"""Building: what makes a knowledge base ready, and what tells that it is not."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from stores import write_corpus

from osler.errors import (
    KnowledgeBaseError,
    KnowledgeBaseMismatch,
    KnowledgeBaseUnbuilt,
    ModelError,
)
from osler.kb import store
from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import Kind
from osler.kb.search.base import Floats
from osler.kb.store import access
from osler.text import split_words
from osler.types import Language
from osler_lab.testing.scripted import HashingEncoder


class EnglishOnly(HashingEncoder):
    identity = "english-64"
    languages: frozenset[Language] = frozenset({"en"})


class Bent(HashingEncoder):
    """Gives vectors of length 2."""

    def encode(self, texts: Sequence[str], *, kind: Kind) -> Floats:
        doubled: Floats = super().encode(texts, kind=kind) * np.float32(2)
        return doubled


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.create(tmp_path / "kb") as made:
        made.add([write_corpus(tmp_path / "iron.jsonl", 20)], source="book")
        yield made


# Building


def test_a_built_knowledge_base_is_whole_and_ready(kb: KnowledgeBase) -> None:
    built = kb.build(HashingEncoder())
    assert (built.passages, built.encoded) == (20, 20)
    assert built.snapshot == kb.snapshot
    assert len(built.snapshot) == 16
    kb.require_built("hashing-64")
    assert kb.verify() == []


def test_building_again_encodes_nothing_and_changes_nothing(kb: KnowledgeBase) -> None:
    first = kb.build(HashingEncoder())
    again = kb.build(HashingEncoder())
    assert again.encoded == 0
    assert again.snapshot == first.snapshot


def test_before_the_first_build_every_passage_waits(kb: KnowledgeBase) -> None:
    assert kb.info().pending == 20
    assert "it is not built: 20 of 20 passages want a vector" in kb.verify()


def test_only_what_is_new_is_encoded(kb: KnowledgeBase, tmp_path: Path) -> None:
    kb.build(HashingEncoder())
    kb.add([write_corpus(tmp_path / "zinc.jsonl", 5, "zinc")], source="book")
    assert kb.build(HashingEncoder()).encoded == 5


def test_the_snapshot_does_not_depend_on_the_order_of_adding(tmp_path: Path) -> None:
    files = [
        write_corpus(tmp_path / "iron.jsonl", 3),
        write_corpus(tmp_path / "zinc.jsonl", 3, "zinc"),
    ]
    snapshots = set()
    for name, order in (("a", files), ("b", files[::-1])):
        with KnowledgeBase.create(tmp_path / name) as kb:
            kb.add(order, source="book")
            snapshots.add(kb.build(HashingEncoder()).snapshot)
    assert len(snapshots) == 1


def test_other_passages_or_another_encoder_give_another_snapshot(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    snapshots = [kb.build(HashingEncoder()).snapshot]
    snapshots.append(kb.build(EnglishOnly(), rebuild=True).snapshot)
    kb.remove(source="book", document="iron3")
    snapshots.append(kb.build(EnglishOnly()).snapshot)
    assert len(set(snapshots)) == 3


def test_a_language_that_the_encoder_does_not_know_gets_no_vector(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    row = {"id": "z", "title": "缺铁", "content": "缺铁性贫血最常见。", "contents": ""}
    (tmp_path / "z.jsonl").write_text(json.dumps(row) + "\n")
    kb.add([tmp_path / "z.jsonl"], source="book")
    assert kb.build(EnglishOnly()).encoded == 20
    assert kb.info().pending == 0
    kb.require_built("english-64")
    assert kb.verify() == []


def test_lexical_search_needs_no_encoder(kb: KnowledgeBase) -> None:
    assert kb.build(None).encoded == 0
    kb.require_built(None)
    assert kb.verify() == []
    with pytest.raises(KnowledgeBaseMismatch, match="no encoder"):
        kb.require_built("hashing-64")
    assert kb.build(HashingEncoder()).encoded == 20


def test_another_encoder_is_refused_unless_all_is_built_anew(kb: KnowledgeBase) -> None:
    kb.build(HashingEncoder())
    with pytest.raises(KnowledgeBaseMismatch, match=r"hashing-64.*english-64.*--rebuild"):
        kb.build(EnglishOnly())
    with pytest.raises(KnowledgeBaseMismatch, match=r"hashing-64.*english-64"):
        kb.require_built("english-64")
    assert kb.build(EnglishOnly(), rebuild=True).encoded == 20
    kb.require_built("english-64")
    assert kb.verify() == []


def test_vectors_that_are_not_of_length_one_are_refused(kb: KnowledgeBase) -> None:
    with pytest.raises(ModelError, match="not of length 1 but 2"):
        kb.build(Bent())


def test_fewer_vectors_than_texts_are_refused(kb: KnowledgeBase) -> None:
    class Short(HashingEncoder):
        def encode(self, texts: Sequence[str], *, kind: Kind) -> Floats:
            return super().encode(texts[1:], kind=kind)

    with pytest.raises(ModelError, match=r"of shape \(19, 64\) instead of \(20, 64\)"):
        kb.build(Short())


def test_progress_tells_how_many_are_encoded_of_how_many(kb: KnowledgeBase) -> None:
    seen: list[tuple[str, int, int | None]] = []
    kb.build(HashingEncoder(), batch=8, progress=lambda *step: seen.append(step))
    assert seen == [("encode", done, 20) for done in (0, 8, 16, 20)]


# Not ready


def test_an_empty_knowledge_base_is_not_ready(tmp_path: Path) -> None:
    with (
        KnowledgeBase.create(tmp_path / "kb") as kb,
        pytest.raises(KnowledgeBaseUnbuilt, match="holds no passages"),
    ):
        kb.require_built(None)


def test_before_the_first_build_nothing_is_indexed(kb: KnowledgeBase) -> None:
    with pytest.raises(KnowledgeBaseUnbuilt, match="20 of 20 passages are not indexed") as caught:
        kb.require_built("hashing-64")
    assert "osler kb build" in caught.value.fix


def test_new_passages_are_counted_until_they_are_built(kb: KnowledgeBase, tmp_path: Path) -> None:
    kb.build(HashingEncoder())
    kb.add([write_corpus(tmp_path / "zinc.jsonl", 5, "zinc")], source="book")
    with pytest.raises(KnowledgeBaseUnbuilt, match="5 of 25 passages are not indexed"):
        kb.require_built("hashing-64")


def test_after_a_removal_the_snapshot_is_no_longer_true(kb: KnowledgeBase) -> None:
    kb.build(HashingEncoder())
    kb.remove(source="book", document="iron1")
    with pytest.raises(KnowledgeBaseUnbuilt, match="added or removed since"):
        kb.require_built("hashing-64")


def test_removed_document_leaves_no_trace_in_the_bm25_scores(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    before = kb.by_words(["iron", "7"], k=20)
    kb.add([write_corpus(tmp_path / "zinc.jsonl", 30, "zinc")], source="wiki")
    assert kb.by_words(["iron", "7"], k=20) != before
    kb.remove(source="wiki")
    assert kb.by_words(["iron", "7"], k=20) == before


def test_the_words_in_the_index_are_those_of_this_schema() -> None:
    """Whoever changes `split_words` must raise `SCHEMA`: indexes hold the old words."""
    probe = "IL-6, CD4+ 1.5 mg β-blocker naïve patient's 糖尿病A型"
    assert store.SCHEMA == 4
    assert " ".join(split_words(probe)) == (
        "il 6 cd4 1.5 mg β blocker naïve patient s 糖 糖尿 尿 尿病 病 a 型"
    )


# A build that is killed

KILLED = """
import os, signal, sys
from pathlib import Path
from osler.kb.base import KnowledgeBase
from osler_lab.testing.scripted import HashingEncoder

class Slow(HashingEncoder):
    batches = 0
    def encode(self, texts, *, kind):
        Slow.batches += 1
        if Slow.batches == 4:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().encode(texts, kind=kind)

KnowledgeBase.open(Path(sys.argv[1])).build(Slow(), batch=4)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_build_goes_on_where_it_stopped(kb: KnowledgeBase) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(kb.path)], check=False)  # noqa: S603
    assert killed.returncode == -signal.SIGKILL
    with pytest.raises(KnowledgeBaseUnbuilt, match="8 of 20 passages are not indexed"):
        kb.require_built("hashing-64")
    assert kb.build(HashingEncoder()).encoded == 8, "twelve were committed before the kill"
    assert kb.verify() == []


KILLED_ADD = """
import os, signal, sys
from pathlib import Path
from osler.kb.base import KnowledgeBase

def kill(what, done, total):
    if what == "documents" and done == 300:
        os.kill(os.getpid(), signal.SIGKILL)

KnowledgeBase.open(Path(sys.argv[1])).add([Path(sys.argv[2])], source="wiki", progress=kill)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_addition_leaves_no_half_of_a_file(kb: KnowledgeBase, tmp_path: Path) -> None:
    file = write_corpus(tmp_path / "zinc.jsonl", 500, "zinc")
    command = [sys.executable, "-c", KILLED_ADD, str(kb.path), str(file)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL  # noqa: S603
    assert kb.sources == ("book",)
    assert kb.add([file], source="wiki").documents == 500
    kb.build(HashingEncoder())
    assert kb.verify() == []


# Several at a time


def test_a_second_writer_is_refused_at_once(kb: KnowledgeBase, tmp_path: Path) -> None:
    with (
        access.hold_lock(kb.path),
        pytest.raises(KnowledgeBaseError, match="another process is writing"),
    ):
        kb.add([write_corpus(tmp_path / "zinc.jsonl", 5, "zinc")], source="book")
    assert kb.add([tmp_path / "zinc.jsonl"], source="book").documents == 5


def test_readers_see_the_last_whole_state_while_one_writes(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    seen: list[int] = []

    def look(what: str, done: int, total: int | None) -> None:
        with KnowledgeBase.open(kb.path) as other:
            seen.append(other.info().documents)

    kb.add([write_corpus(tmp_path / "zinc.jsonl", 250, "zinc")], source="book", progress=look)
    assert set(seen) == {20}
    assert kb.info().documents == 270
