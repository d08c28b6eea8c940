"""Laws of extraction: what is anchored stands there, and nothing outlives its text."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from osler.extract import items, job, names, publish
from osler.extract.anchor import Anchors
from osler.extract.derived import EXTRACTED_FACTS
from osler.extract.dictionary import DictionaryExtractor
from osler.extract.items import (
    ChunkSummary,
    Entity,
    EntityRelation,
    KnowledgePoint,
    OutlineHeading,
    TextTable,
)
from osler.graph.derive import normalize_name
from osler.graph.items import Name
from osler.graph.store import Graph
from osler.kb.base import KnowledgeBase
from osler.types import Passage

TEXT = st.text(max_size=40) | st.sampled_from(
    ["COVID-19 ", "2型糖尿病（T2DM）", "heart failure (HF)", "ﬁbrosis", "İ", "x" * 30]
)


@given(TEXT, TEXT, TEXT)
def test_what_is_anchored_stands_there(before: str, name: str, after: str) -> None:
    text = f"{before} {name} {after}"
    for start, end in Anchors(text).all_spans(name):
        assert normalize_name(text[start:end]) == normalize_name(name)


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=200), st.text(max_size=20))
def test_reading_any_text_raises_nothing_and_stays_inside_it(text: str, title: str) -> None:
    passage = Passage("book:x#0", text, "book", title)
    with DictionaryExtractor() as extractor:
        extractor.learn_names(iter([passage]))
        for item in extractor.read_passage(passage).items:
            assert 0 <= item.start < item.end <= len(text)


@given(st.text(min_size=1, max_size=10), st.text(max_size=60))
def test_a_long_form_is_the_end_of_what_stands_before(short: str, before: str) -> None:
    long = names.long_form(short, before)
    assert long in " ".join(before.split())


WORD = st.text(max_size=8)
SPAN = st.tuples(st.integers(0, 9), st.integers(10, 20))
ITEMS = st.one_of(
    st.builds(lambda n, s, w: Entity(n, "Drug", s[0], s[1], synonyms=(w,)), WORD, SPAN, WORD),
    st.builds(lambda n, s, w: EntityRelation(n, w, n, *s), WORD, SPAN, WORD),
    st.builds(
        lambda n, s, w: KnowledgePoint(n, "Factual", w, s[0], s[1], questions=(w,)),
        WORD,
        SPAN,
        WORD,
    ),
    st.builds(lambda n, s, w: TextTable(n, (w,), ((w, n),), *s), WORD, SPAN, WORD),
    st.builds(lambda n, s: OutlineHeading(n, *s), WORD, SPAN),
    st.builds(lambda n, s: ChunkSummary(n, (n,), *s), WORD, SPAN),
)


@given(st.lists(ITEMS, max_size=5))
def test_items_come_back_from_the_store_as_they_were(found: list[items.Item]) -> None:
    assert items.load_items(items.dump_items(found)) == tuple(found)


WORDS = (
    "Asthma is a disease.",
    "Heart failure (HF) leads to oedema.",
    "HF is caused by smoking.",
    "Oedema is a sign. Smoking leads to asthma.",
    "哮喘是一种疾病。吸烟可导致哮喘。",
)
DOCUMENTS = st.sampled_from("abc")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), DOCUMENTS, st.sampled_from(WORDS)),
        st.tuples(st.just("remove"), DOCUMENTS, st.just("")),
        st.tuples(st.just("forget"), DOCUMENTS, st.just("")),
        st.tuples(st.just("extract"), DOCUMENTS, st.just("")),
    ),
    min_size=3,
    max_size=8,
)


@settings(max_examples=25, deadline=None)
@given(STEPS)
def test_no_item_and_nothing_in_the_graph_outlives_its_text(
    steps: list[tuple[str, str, str]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        with (
            KnowledgeBase.create(root / "kb", derived=EXTRACTED_FACTS) as kb,
            Graph.create(root / "kb") as graph,
        ):
            graph.add([Name("OURS:1", "smoking")])
            held: dict[str, str] = {}
            for number, (what, document, text) in enumerate([*steps, ("extract", "a", "")]):
                _step(kb, root, held, number, what, document, text)
                _check(kb)
            _is_whole(kb, graph)
            for document in list(held):
                _step(kb, root, held, 99, "forget", document, "")
            _check(kb)
            info = graph.get_info()
            assert (info.concepts, info.names, info.relations) == (1, 1, 0)


def _step(
    kb: KnowledgeBase,
    root: Path,
    held: dict[str, str],
    number: int,
    what: str,
    document: str,
    text: str,
) -> None:
    path = root / f"{document}.jsonl"
    if what == "put":
        line = {"id": document, "title": "Smoking", "content": text, "contents": text}
        path.write_text(json.dumps(line), encoding="utf-8")
        os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))
        kb.add([path], source="book")
        held[document] = text
    elif what == "remove" and _stands(kb, document):
        kb.remove(source="book", document=document)
        held.pop(document)
    elif what == "forget" and document in held:
        path.unlink()
        kb.update(prune=True)
        del held[document]
    elif what == "extract":
        with Graph.open(kb.path) as graph, DictionaryExtractor(graph) as chosen:
            asyncio.run(job.run_extraction(kb.path, chosen))
        publish.publish_items(kb.path)


def _stands(kb: KnowledgeBase, document: str) -> bool:
    """A document whose text another one has already is a counted drop: nothing to take out."""
    with closing(sqlite3.connect(kb.path / "kb.sqlite")) as db:
        return db.execute("SELECT 1 FROM document WHERE id = ?", (document,)).fetchone() is not None


def _check(kb: KnowledgeBase) -> None:
    assert [problem for problem in kb.verify() if "is not built" not in problem] == []


def _is_whole(kb: KnowledgeBase, graph: Graph) -> None:
    """After a run the graph holds just what the items say, and each note opens."""
    with graph.open_reader() as db:
        notes = {text for (text,) in db.execute("SELECT text FROM note")}
        called = {text for (text,) in db.execute("SELECT text FROM name WHERE rank >= 5")}
        bare = db.execute("SELECT count(*) FROM concept WHERE n NOT IN (SELECT concept FROM name)")
        assert bare.fetchone() == (0,)
        loose = db.execute(
            "SELECT count(*) FROM edge WHERE subject NOT IN (SELECT n FROM concept)"
            " OR object NOT IN (SELECT n FROM concept)"
        )
        assert loose.fetchone() == (0,)
    texts = [kb.get(note).text.casefold() for note in notes]
    assert all(texts)
    with closing(sqlite3.connect(kb.path / "kb.sqlite")) as db:
        said = " ".join(text for (text,) in db.execute("SELECT text FROM passage")).casefold()
    assert all(text.casefold() in said for text in called)
