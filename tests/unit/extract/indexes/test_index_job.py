"""Making indexes: only what is new is encoded; what goes, goes everywhere; each has its cost."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np
import pytest

from osler.errors import KnowledgeBaseMismatch, KnowledgeBaseUnbuilt, ModelError
from osler.extract.derived import EXTRACTED_FACTS, Extractions
from osler.extract.indexes import KINDS, store
from osler.extract.indexes.search import IndexEntries
from osler.kb.base import KnowledgeBase
from osler.kb.search.base import EVERYTHING, PassageFilter
from osler_lab.testing.scripted import HashingEncoder

if TYPE_CHECKING:
    from osler.kb.encoders.base import Kind, Vectors

Put = Callable[[dict[str, str]], None]


def entries_of(kb: KnowledgeBase) -> IndexEntries:
    return Extractions.of(kb).entries


class Counting(HashingEncoder):
    """Counts what it encodes."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def encode(self, texts: Sequence[str], *, kind: Kind) -> Vectors:
        self.texts += texts
        return super().encode(texts, kind=kind)


class Other(HashingEncoder):
    identity = "other"


class Broken(HashingEncoder):
    def encode(self, texts: Sequence[str], *, kind: Kind) -> Vectors:
        return np.zeros((len(texts), self.dimension), np.float32)


def problems(kb: KnowledgeBase) -> list[str]:
    return [problem for problem in kb.verify() if "is not built" not in problem]


def test_an_index_is_made_once_and_then_costs_nothing(kb: KnowledgeBase) -> None:
    encoder = Counting()
    (first,) = store.make_indexes(kb.path, ["summary"], encoder)
    assert (first.chunks, first.items) == (6, 6)
    assert len(encoder.texts) == 6
    (again,) = store.make_indexes(kb.path, ["summary"], encoder)
    assert (again.chunks, again.items) == (0, 0)
    assert len(encoder.texts) == 6
    assert problems(kb) == []


def test_a_changed_text_alone_is_encoded_anew(
    kb: KnowledgeBase, put: Put, extract: Callable[[KnowledgeBase], None]
) -> None:
    encoder = Counting()
    store.make_indexes(kb.path, ["summary"], encoder)
    put({"gout": "Gout comes with age."})
    kb.update()
    assert problems(kb) == []
    assert [c.pending for c in store.index_costs(kb.path) if c.kind == "summary"] == [0]
    extract(kb)
    assert [c.pending for c in store.index_costs(kb.path) if c.kind == "summary"] == [1]
    encoder.texts.clear()
    (followed,) = store.follow_indexes(kb.path, encoder)
    assert (followed.chunks, encoder.texts) == (1, ["Gout: Gout comes with age."])
    assert problems(kb) == []


def test_what_leaves_the_knowledge_base_leaves_every_index(kb: KnowledgeBase) -> None:
    store.make_indexes(kb.path, KINDS, HashingEncoder())
    kb.remove(source="book")
    assert problems(kb) == []
    with closing(sqlite3.connect(kb.path / "kb.sqlite")) as db:
        for table in ("index_of", "index_entry", "index_vector", "index_words_docsize"):
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)  # noqa: S608
    assert store.kept_kinds(kb.path) == KINDS


def test_orphans_are_told(kb: KnowledgeBase) -> None:
    """As damage from outside would leave them: no command does."""
    store.make_indexes(kb.path, ["summary"], HashingEncoder())
    with closing(sqlite3.connect(kb.path / "kb.sqlite")) as db:  # without foreign keys
        db.execute("DELETE FROM index_of WHERE passage = 1")
        db.execute("INSERT INTO index_vector VALUES (4711, x'00')")
        db.execute("DELETE FROM index_words_docsize WHERE id = 2")
        db.commit()
    told = " ".join(problems(kb))
    assert "index_entry belongs to no index_of" in told
    assert "row 4711 of index_vector belongs to no index_entry" in told
    assert "1 entries of an index are not in its words" in told


def test_an_index_of_another_encoder_is_refused_and_made_anew(kb: KnowledgeBase) -> None:
    store.make_indexes(kb.path, ["summary"], HashingEncoder())
    entries_of(kb).require_kinds(["summary"], HashingEncoder.identity)
    with pytest.raises(KnowledgeBaseMismatch, match="another encoder"):
        entries_of(kb).require_kinds(["summary"], "other")
    with pytest.raises(KnowledgeBaseUnbuilt, match="outline does not exist"):
        entries_of(kb).require_kinds(["outline"], "other")
    (made,) = store.make_indexes(kb.path, ["summary"], Other())
    assert made.items == 6
    entries_of(kb).require_kinds(["summary"], "other")
    assert problems(kb) == []


def test_vectors_that_cannot_be_used_stop_the_run(kb: KnowledgeBase) -> None:
    with pytest.raises(ModelError, match="gave vectors"):
        store.make_indexes(kb.path, ["summary"], Broken())
    assert problems(kb) == []
    assert [c.pending for c in store.index_costs(kb.path) if c.kind == "summary"] == [6]


def test_without_an_encoder_an_index_holds_words_alone(kb: KnowledgeBase) -> None:
    store.make_indexes(kb.path, ["summary"], None)
    (cost,) = [cost for cost in store.index_costs(kb.path) if cost.kind == "summary"]
    assert (cost.items, cost.vectors) == (6, 0)
    entries_of(kb).require_kinds(["summary"], "any")
    assert entries_of(kb).by_words("summary", ["gout"], k=3, within=EVERYTHING)


def test_the_cost_of_each_index_is_told(kb: KnowledgeBase) -> None:
    store.make_indexes(kb.path, ["outline", "summary"], HashingEncoder())
    costs = {cost.kind: cost for cost in store.index_costs(kb.path)}
    assert list(costs) == ["chunk", "outline", "summary", "graph"]
    assert costs["chunk"].items == costs["outline"].items == 6
    with closing(sqlite3.connect(kb.path / "kb.sqlite")) as db:
        rows = db.execute("SELECT text, words FROM index_entry WHERE kind = 'outline'").fetchall()
    wanted = sum(len(text.encode()) + len(words.encode()) for text, words in rows)
    assert costs["outline"].bytes == wanted + 6 * 64 * 4
    assert costs["outline"].seconds is not None
    assert costs["outline"].seconds > 0
    assert costs["graph"].items == len(
        [
            i
            for id in _ids(kb)
            for i in Extractions.of(kb).items_of(id)
            if i.item.kind in {"entity", "relation"}
        ]
    )


def test_a_dropped_index_is_gone_and_does_not_come_back(kb: KnowledgeBase) -> None:
    store.make_indexes(kb.path, ["outline", "summary"], HashingEncoder())
    assert store.drop_indexes(kb.path, ["outline"]) == 6
    assert store.drop_indexes(kb.path, ["outline"]) == 0
    assert store.kept_kinds(kb.path) == ("summary",)
    assert [report.kind for report in store.follow_indexes(kb.path, HashingEncoder())] == [
        "summary"
    ]
    assert problems(kb) == []


def test_a_filter_holds_in_every_index(kb: KnowledgeBase) -> None:
    store.make_indexes(kb.path, ["summary"], HashingEncoder())
    (vector,) = HashingEncoder().encode(["a lung disease"], kind="query")
    for within in (
        PassageFilter(("wiki",)),
        PassageFilter(trust=5),
        PassageFilter(languages=("zh",)),
        PassageFilter(years=(2000, None)),
    ):
        found = [
            *entries_of(kb).by_vector("summary", vector, k=9, within=within),
            *entries_of(kb).by_words("summary", ["disease", "sign"], k=9, within=within),
        ]
        assert {p.language for p in kb.get_passages(n for n, _ in found).values()} <= {"zh"}
        assert not found or within.languages
    assert entries_of(kb).by_vector("summary", vector, k=1, within=EVERYTHING)


def test_a_snapshot_holds_the_indexes_and_gives_them_back(kb: KnowledgeBase) -> None:
    store.make_indexes(kb.path, ["summary"], HashingEncoder())
    before = entries_of(kb).by_words("summary", ["gout"], k=3, within=EVERYTHING)
    kb.take_snapshot("before")
    kb.remove(source="book")
    assert entries_of(kb).by_words("summary", ["gout"], k=3, within=EVERYTHING) == []
    KnowledgeBase.restore(kb.path, "before", derived=EXTRACTED_FACTS)
    assert entries_of(kb).by_words("summary", ["gout"], k=3, within=EVERYTHING) == before != []
    assert problems(kb) == []


def _ids(kb: KnowledgeBase) -> list[str]:
    return [passage.id for document in kb.read_documents("book") for passage in document]
