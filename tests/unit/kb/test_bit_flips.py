"""A bit that a disk turned over in any file of a knowledge base: nothing is quoted from it, and
`osler kb info --verify` names it, unless it changed nothing that is kept."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest
from graph_readings import communities_of
from served import TEXTS, fill_knowledge_base

from osler.errors import KnowledgeBaseError, KnowledgeBaseMissing, OslerError
from osler.extract.derived import EXTRACTED_FACTS
from osler.graph import communities
from osler.graph.items import Definition, Name, Relation
from osler.graph.lookup import NameVectors
from osler.graph.store import Graph
from osler.kb.base import KnowledgeBase
from osler.kb.search import edge, generation
from osler.kb.search.base import BackendChoice
from osler.kb.store.access import FILE
from osler.sources.patients import FILE as KEY
from osler.sources.patients import use_secret
from osler.text import split_words
from osler.types import Passage
from osler_lab.testing.scripted import HashingEncoder

FLIPS = 10
QUESTIONS = ("adrenaline given first", "substance 7 condition", "首选 肾上腺素", "hostile page")
MORE = {
    "research": "".join(
        f"# Topic {n}\n\nSubstance {n} treats condition {n} within {n + 3} days.\n\n"
        for n in range(40)
    )
}
FORGOTTEN = {"root", "file", "dropped", "deleted", "lease", "work", "notice", "sqlite_sequence"}
"""Tables that no quote is made of: they are written anew when files are read again."""

Told = list[tuple[list[Passage], list[Passage]]]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A knowledge base with a file of every kind."""
    home = tmp_path_factory.mktemp("flips") / "home"
    home.mkdir()
    fill_knowledge_base(home, {**TEXTS, **MORE}, engine())
    with KnowledgeBase.open(home / "kb", engine(), EXTRACTED_FACTS) as kb:
        kb.take_snapshot("first")
    with Graph.create(home / "kb") as graph:
        graph.add(facts())
        graph.load_arrays()
        communities.build_communities(graph)
        NameVectors(graph, HashingEncoder()).build()
    with closing(sqlite3.connect(home / "kb" / FILE)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return home / "kb"


def engine() -> BackendChoice:
    return BackendChoice(kind="edge" if edge.is_installed() else "sqlite")


def facts() -> Iterator[Name | Definition | Relation]:
    for n in range(12):
        yield Name(f"T:{n}", f"condition {n}")
        yield Definition(f"T:{n}", f"Condition {n} is treated within {n + 3} days.")
        yield Relation(f"T:{n}", "leads to", f"T:{(n + 1) % 12}")


def search(folder: Path) -> Told:
    """What four questions find by vectors and by words: whole passages. Raises `OslerError`."""
    encoder = HashingEncoder()
    told = []
    with KnowledgeBase.open(folder, engine()) as kb:
        kb.count_unindexed(encoder.identity)
        for question in QUESTIONS:
            (asked,) = encoder.encode([question], kind="query")
            terms = split_words(question)
            found = kb.rank_by_both(terms, asked, encoder=encoder.identity, k=8)
            passages = kb.get_passages(number for of in found for number, _ in of)
            first, second = ([passages[n] for n, _ in of if n in passages] for of in found)
            told.append((first, second))
    return told


def read_graph(folder: Path) -> list[Passage]:
    """Definitions, a community and a name that is near: what is quoted of the graph."""
    encoder = HashingEncoder()
    with Graph.open(folder) as graph:
        found = [graph.get_passage(f"graph:T:{n}#def") for n in range(12)]
        near = NameVectors(graph, encoder).find_near("condition 3", k=1, least=0.1)
        assert [one.concept for one in near] == ["T:3"]
        with suppress(KnowledgeBaseMissing):  # said, with the command that finds them anew
            held = communities.Communities(graph)
            found += [held.write_extract(one) for one in communities_of(held, "T:3")]
        return found


def verify(folder: Path) -> list[str]:
    try:
        with KnowledgeBase.open(folder, engine(), EXTRACTED_FACTS) as kb:
            return kb.verify()
    except OslerError as error:
        return [error.message]


def dump(file: Path) -> object:
    """All that a file keeps: bytes that SQLite does not use say nothing. `None`: not to be read."""
    tables = (
        "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
    )
    try:
        with closing(sqlite3.connect(f"file:{file}?immutable=1", uri=True)) as db:
            names = {name for (name,) in db.execute(tables)} - FORGOTTEN
            selects = {name: f"SELECT * FROM {name}" for name in sorted(names)}  # noqa: S608
            return [(name, db.execute(select).fetchall()) for name, select in selects.items()]
    except sqlite3.DatabaseError:
        return None


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "kb")


def flips(path: Path, seed: int, count: int = FLIPS) -> Iterator[int]:
    """Turns one bit after the other, each alone; the file is whole again at the end."""
    data, chance = path.read_bytes(), random.Random(seed)
    for _ in range(count):
        at = chance.randrange(len(data))
        turned = bytearray(data)
        turned[at] ^= 1 << chance.randrange(8)
        path.write_bytes(turned)
        yield at
        path.write_bytes(data)
        for ending in ("-wal", "-shm"):
            path.with_name(path.name + ending).unlink(missing_ok=True)


def check_quotes(folder: Path, known: dict[str, Passage]) -> None:
    with suppress(OslerError):
        for of in search(folder):
            for passage in (*of[0], *of[1]):
                assert passage == known[passage.id]


@pytest.fixture(scope="module")
def known(whole: Path) -> dict[str, Passage]:
    return {passage.id: passage for of in search(whole) for each in of for passage in each}


def test_nothing_is_found_wrong_in_what_is_whole(folder: Path) -> None:
    assert verify(folder) == []
    assert len(read_graph(folder)) == 13
    kinds = {path.name for path in folder.rglob("*")}
    assert {FILE, KEY, "graph.sqlite", "graph.arrays", "graph.communities", "names.vectors"} < kinds


def test_no_passage_of_a_damaged_file_is_quoted(folder: Path, known: dict[str, Passage]) -> None:
    kept = dump(folder / FILE)
    for at in flips(folder / FILE, 46, 2 * FLIPS):
        check_quotes(folder, known)
        assert verify(folder) or dump(folder / FILE) == kept, at
    assert verify(folder) == []


@pytest.mark.parametrize("column", ["id", "text", "source", "title", "section", "licence"])
def test_no_passage_with_a_changed_column_is_quoted(folder: Path, column: str) -> None:
    with closing(sqlite3.connect(folder / FILE)) as db, db:
        db.execute(f"UPDATE passage SET {column} = {column} || 'x' WHERE text LIKE 'Adrenaline%'")  # noqa: S608
    with pytest.raises(KnowledgeBaseError, match=r"kb\.sqlite is damaged"):
        search(folder)
    assert any("is not as it was stored" in problem for problem in verify(folder))


def test_a_damaged_document_can_be_taken_out_and_added_again(tmp_path: Path) -> None:
    (tmp_path / "iron.txt").write_text("Iron treats anaemia.")
    with KnowledgeBase.create(tmp_path / "kb") as kb:
        kb.add([tmp_path / "iron.txt"], source="notes")
        kb.build(None)
        (id,) = [passage.id for passage, _ in kb.by_words(["iron"], k=1)]
        with closing(sqlite3.connect(tmp_path / "kb" / FILE)) as db, db:
            db.execute("UPDATE passage SET text = 'Tea harms.'")
        with pytest.raises(KnowledgeBaseError, match="damaged") as damage:
            kb.build(None, rebuild=True)
        assert f"--source notes --document {id[6:-2]}`" in damage.value.fix
        assert kb.remove(source="notes", document=id[6:-2]) == 1
        assert kb.add([tmp_path / "iron.txt"], source="notes").documents == 1
        kb.build(None)
        assert [passage.text for passage, _ in kb.by_words(["iron"], k=5)] == [
            "Iron treats anaemia."
        ]
        assert kb.verify() == []


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE document SET retracted = 1 - retracted WHERE number = 2",
        "UPDATE document SET trust = 5 WHERE number = 2",
        "UPDATE lexical_docsize SET sz = x'0101' WHERE id = 3",
        "UPDATE lexical_data SET block = block || x'00' WHERE id = 1",
        "UPDATE vector SET value = zeroblob(length(value) - 4) || x'0000803f' WHERE passage = 3",
        "UPDATE meta SET value = 'en' WHERE key = 'languages'",
    ],
)
def test_verify_names_what_searches_go_by(folder: Path, change: str) -> None:
    with closing(sqlite3.connect(folder / FILE)) as db, db:
        db.execute(change)
    assert verify(folder)


def test_an_index_with_a_turned_bit_is_named(folder: Path, known: dict[str, Passage]) -> None:
    pytest.importorskip("qdrant_edge", reason='not installed: pip install "osler[edge]"')
    files = [
        path for path in (folder / "edge").rglob("*") if path.is_file() and path.stat().st_size
    ]
    assert len(files) > 10
    current = generation.read_current(folder)
    assert current is not None
    mine = {
        str(file.relative_to(folder / "edge" / current.name)): file
        for file in files
        if file.name != generation.CURRENT
    }
    with ExitStack() as turned:
        for seed, file in enumerate(mine.values()):
            turned.callback(deque, each := flips(file, seed, 1), maxlen=0)
            next(each)
        assert generation.find_changed(folder, current) == sorted(mine)
    assert generation.find_changed(folder, current) == []
    for at in flips(folder / "edge" / generation.CURRENT, 45, 2):
        assert verify(folder), at
    for seed, file in enumerate(random.Random(47).sample(files, 4)):
        for at in flips(file, seed, 1):
            check_quotes(folder, known)
            assert verify(folder), (file, at)
    with KnowledgeBase.open(folder, engine()) as kb:  # the engine writes itself what it mends
        kb.build(HashingEncoder(), rebuild=True)
    assert verify(folder) == []


@pytest.mark.parametrize(
    "name", ["graph.sqlite", "graph.arrays", "graph.communities", "names.vectors"]
)
def test_nothing_of_a_damaged_graph_is_quoted(folder: Path, name: str) -> None:
    told = read_graph(folder)
    for at in flips(folder / name, 48):
        try:
            found = read_graph(folder)
        except OslerError:
            assert name == "graph.sqlite"
        else:
            assert found in (told, told[:12]), at
    with Graph.open(folder) as graph:
        graph.add([Name("T:99", "a later one")])
    assert verify(folder) == []


def test_a_writer_that_was_killed_before_its_sum_is_no_damage(folder: Path) -> None:
    kept = (folder / "graph.sum").read_text()
    with Graph.open(folder) as graph:
        graph.add([Name("T:99", "a later one")])
    (folder / "graph.sum").write_text(kept)
    assert verify(folder) == []


def test_a_damaged_snapshot_is_not_gone_back_to(folder: Path, known: dict[str, Passage]) -> None:
    kept = dump(folder / "snapshots" / "first.sqlite")
    for at in flips(folder / "snapshots" / "first.sqlite", 49, FLIPS):
        is_same = dump(folder / "snapshots" / "first.sqlite") == kept
        try:
            KnowledgeBase.restore(folder, "first")
        except KnowledgeBaseError:
            continue
        check_quotes(folder, known)
        assert is_same or verify(folder), at


def test_pseudonyms_are_not_made_under_a_damaged_key(folder: Path) -> None:
    for _ in flips(folder / KEY, 50):
        with pytest.raises(KnowledgeBaseError, match="damaged"), use_secret(folder, ()):
            pass
    for _ in flips(folder / KEY, 51, 2):
        assert verify(folder)
    with use_secret(folder, ()):
        pass
