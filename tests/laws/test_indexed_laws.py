"""Laws of the indexes: delete and update leave no orphan in any of them."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from osler.extract import ExtractionCost, ExtractionOutcome, hash_texts, items, job, publish
from osler.extract import store as extracted
from osler.extract.derived import EXTRACTED_FACTS, Extractions
from osler.extract.dictionary import DictionaryExtractor
from osler.extract.indexes import KINDS, Kind, entry_texts, written_tables
from osler.extract.indexes import store as indexing
from osler.extract.indexes.canon import NameClaim, resolve_entities
from osler.extract.items import (
    ChunkSummary,
    Entity,
    EntityRelation,
    ExtractedItems,
    KnowledgePoint,
    OutlineHeading,
    TextTable,
)
from osler.graph.derive import normalize_name
from osler.graph.items import Name
from osler.graph.store import Graph
from osler.kb.base import KnowledgeBase
from osler.retrieve.indexed import IndexedRetriever, NameRankings
from osler.types import Passage
from osler_lab.testing.scripted import HashingEncoder

WORDS = (
    "Asthma is a disease.",
    "Heart failure (HF) leads to oedema.",
    "HF is caused by smoking.",
    "drug | dose\n--- | ---\niron | 60 mg\nSmoking leads to asthma.",
    "哮喘是一种疾病。吸烟可导致哮喘。",
)


class Teller:
    """An extractor with all kinds of items, made of a chunk's own words; stands for a model."""

    name = "model teller"
    batch = 2

    def __init__(self, told: str) -> None:
        self.told = told

    def result_key(self, passage: Passage) -> str:
        return hash_texts(self.told, passage.text)

    def estimate_cost(self, passage: Passage) -> ExtractionCost:
        return ExtractionCost()

    async def extract(self, passages: Sequence[Passage]) -> list[ExtractionOutcome]:
        return [
            ExtractionOutcome(ExtractedItems(tuple(self.read(passage.text))))
            for passage in passages
        ]

    def read(self, text: str) -> list[items.Item]:
        word = text.split()[0][:12].rstrip("|")
        span = 0, len(word)
        return [
            Entity(word, "Disease", *span, standard=f"{word} {self.told}", synonyms=("thing",)),
            EntityRelation(word, "leads to", self.told, *span),
            KnowledgePoint(
                word, "Factual", self.told, *span, entities=(word,), questions=(f"{word}?",)
            ),
            TextTable("", (word,), ((self.told,),), *span),
            OutlineHeading(f"about {self.told}", *span),
            ChunkSummary(f"{word}, {self.told}", (word,), *span),
        ]


DOCUMENTS = st.sampled_from("abc")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), DOCUMENTS, st.sampled_from(WORDS)),
        st.tuples(st.just("remove"), DOCUMENTS, st.just("")),
        st.tuples(st.just("forget"), DOCUMENTS, st.just("")),
        st.tuples(st.just("extract"), DOCUMENTS, st.just("")),
        st.tuples(st.just("tell"), DOCUMENTS, st.sampled_from(["x", "y"])),
        st.tuples(st.just("index"), DOCUMENTS, st.sampled_from(KINDS)),
        st.tuples(st.just("drop"), DOCUMENTS, st.sampled_from(KINDS)),
        st.tuples(st.just("follow"), DOCUMENTS, st.just("")),
    ),
    min_size=3,
    max_size=9,
)


@settings(max_examples=25, deadline=None)
@given(STEPS)
def test_no_entry_of_any_index_outlives_its_text(steps: list[tuple[str, str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        with (
            KnowledgeBase.create(root / "kb", derived=EXTRACTED_FACTS) as kb,
            Graph.create(root / "kb") as graph,
        ):
            graph.add([Name("OURS:1", "smoking")])
            held: dict[str, str] = {}
            for number, step in enumerate([("put", "a", WORDS[1]), *steps]):
                _step(kb, root, held, number, *step)
                _check(kb)
            for step in (("extract", "", ""), ("tell", "", "z"), ("follow", "", "")):
                _step(kb, root, held, 97, *step)
            _is_in_step(kb)
            kb.build(HashingEncoder())
            _finds_what_is_there(kb)
            for document in list(held):
                _step(kb, root, held, 99, "forget", document, "")
            _check(kb)
            _is_empty(kb)


def _step(
    kb: KnowledgeBase,
    root: Path,
    held: dict[str, str],
    number: int,
    what: str,
    document: str,
    text: str,
) -> None:
    path, encoder = root / f"{document}.jsonl", HashingEncoder()
    match what:
        case "put":
            line = {"id": document, "title": "Smoking", "content": text, "contents": text}
            path.write_text(json.dumps(line), encoding="utf-8")
            os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))
            kb.add([path], source="book")
            held[document] = text
        case "remove" if _stands(kb, document):
            kb.remove(source="book", document=document)
            held.pop(document)
        case "forget" if document in held:
            path.unlink()
            kb.update(prune=True)
            del held[document]
        case "extract":
            with Graph.open(kb.path) as graph, DictionaryExtractor(graph) as chosen:
                asyncio.run(job.run_extraction(kb.path, chosen))
            publish.publish_items(kb.path)
        case "tell":
            asyncio.run(job.run_extraction(kb.path, Teller(text)))
        case "index":
            indexing.make_indexes(kb.path, [_kind(text)], encoder)
        case "drop":
            indexing.drop_indexes(kb.path, [_kind(text)])
        case "follow":
            indexing.follow_indexes(kb.path, encoder)


def _kind(text: str) -> Kind:
    return next(kind for kind in KINDS if kind == text)


def _stands(kb: KnowledgeBase, document: str) -> bool:
    """A document whose text another one has already is a counted drop: nothing to take out."""
    with closing(sqlite3.connect(kb.path / "kb.sqlite")) as db:
        return db.execute("SELECT 1 FROM document WHERE id = ?", (document,)).fetchone() is not None


def _check(kb: KnowledgeBase) -> None:
    """Nothing hangs loose, and the words of an index are those of its entries."""
    assert [problem for problem in kb.verify() if "is not built" not in problem] == []
    with closing(sqlite3.connect(kb.path / "kb.sqlite")) as db:
        if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'index_words'").fetchone():
            check = "INSERT INTO index_words(index_words, rank) VALUES ('integrity-check', 1)"
            db.execute(check)  # raises where the two differ
    _is_of_the_texts(kb)


def _is_of_the_texts(kb: KnowledgeBase) -> None:
    """The graph of names and chunks has no other chunk, and no name that none of them has."""
    web = Extractions.of(kb).webs.load_current()
    with closing(sqlite3.connect(kb.path / "kb.sqlite")) as db:
        numbers = {number for (number,) in db.execute("SELECT number FROM passage")}
        said = [one.item for one in extracted.all_items(db)]
    assert set(web.passages.tolist()) <= numbers
    known = {normalize_name(item.name) for item in said if isinstance(item, Entity)}
    known |= {normalize_name(item.standard) for item in said if isinstance(item, Entity)}
    known |= {normalize_name(other) for i in said if isinstance(i, Entity) for other in i.synonyms}
    assert {name for name in web.entities.of if not name.startswith("=")} <= known


def _is_in_step(kb: KnowledgeBase) -> None:
    """An index holds just what the items of each passage give."""
    with closing(sqlite3.connect(kb.path / "kb.sqlite")) as db:
        ids = [id for (id,) in db.execute("SELECT id FROM passage")]
        for cost in indexing.index_costs(kb.path):
            assert cost.pending == 0
        for kind in indexing.kept_kinds(kb.path):
            for id in ids:
                query = (
                    "SELECT e.text FROM index_entry AS e JOIN passage ON number = e.passage"
                    " WHERE e.kind = ? AND id = ? ORDER BY extractor, e.n"
                )
                stored = [text for (text,) in db.execute(query, (kind, id))]
                wanted = [
                    text
                    for by in ("dictionary", Teller.name)
                    for text in entry_texts(
                        kind,
                        kb.get(id),
                        [one.item for one in extracted.of_passage(db, id, extractor=by)],
                    )
                ]
                assert stored == wanted


def _finds_what_is_there(kb: KnowledgeBase) -> None:
    kinds = indexing.kept_kinds(kb.path)
    found = IndexedRetriever(
        kb,
        HashingEncoder(),
        kinds,
        NameRankings(Extractions.of(kb).webs, fuzzy=False),
        chunks=False,
    )
    for query in ("Does HF lead to oedema?", "哮喘的原因是什么？", "about z"):
        for hit in asyncio.run(found.search(query, k=5)):
            assert kb.get(hit.passage.id) == hit.passage


def _is_empty(kb: KnowledgeBase) -> None:
    tables = ("index_of", "index_entry", "index_vector", "index_words_docsize")
    with closing(sqlite3.connect(kb.path / "kb.sqlite")) as db:
        there = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
        for table in there.intersection(tables):
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)  # noqa: S608
    web = Extractions.of(kb).webs.load_current()
    assert (web.entities.count, len(web.passages)) == (0, 0)


NAME = st.sampled_from(["mi", "heart attack", "myocardial infarction", "metformin", "糖尿病"])
CLAIM = st.builds(
    NameClaim,
    NAME,
    st.lists(st.sampled_from(["C:1", "C:2"]), max_size=2, unique=True).map(tuple),
    NAME | st.just(""),
    st.lists(NAME, max_size=2).map(tuple),
    st.sampled_from(["", "Disease", "Drug"]),
)


@given(st.lists(CLAIM, max_size=8), st.randoms(use_true_random=False))
def test_what_names_mean_does_not_depend_on_the_order_of_chunks(
    claims: list[NameClaim], chance: object
) -> None:
    once = resolve_entities(claims)
    chance.shuffle(claims)  # type: ignore[attr-defined]
    assert resolve_entities(claims) == once
    assert sorted({*once.of.values()}) == list(range(once.count))
    assert len({*once.of.values()}) == once.count
    assert {claim.name for claim in claims} <= once.of.keys()


@given(st.text(alphabet="a|\t\n- 表", max_size=60))
def test_a_table_found_in_any_text_lies_inside_it(text: str) -> None:
    for table in written_tables(text):
        assert 0 <= table.start < table.end <= len(text)
        assert len(table.rows) >= 1


@given(st.text(max_size=120), st.sampled_from(KINDS))
def test_any_chunk_gives_entries_that_are_no_longer_than_a_chunk(text: str, kind: Kind) -> None:
    found = entry_texts(kind, Passage("book:x#0", text, "book", ""), [])
    assert all(0 < len(entry) <= 1000 for entry in found)
    assert len(found) == len(set(found))
