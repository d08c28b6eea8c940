"""A small knowledge base whose documents differ in everything that a filter knows."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from osler.kb.base import KnowledgeBase
from osler.kb.search.base import BackendChoice
from osler.kb.store import access
from osler.kb.store.passages import set_meta
from osler_lab.testing.scripted import HashingEncoder

TEXTS = {
    "research": {
        "old-trial": "A randomised trial of ferrous salts in iron deficiency anaemia.",
        "new-trial": "A later randomised trial of ferrous salts in iron deficiency anaemia.",
        "review": "This review sums up ferrous salts in iron deficiency anaemia.",
        "withdrawn": "Ferrous salts cure iron deficiency anaemia overnight, it was claimed.",
        "undated": "Ferrous salts in iron deficiency anaemia, a note without a date.",
    },
    "guideline": {"advice": "Give ferrous salts for iron deficiency anaemia on alternate days."},
    "wiki": {
        "zh": "缺铁性贫血用铁剂治疗，口服硫酸亚铁。",
        "asthma": "Salbutamol opens the airways.",
    },
    "emr": {"patient": "Patient 7 took ferrous salts for iron deficiency anaemia."},
}
COLUMNS: dict[str, dict[str, object]] = {
    "old-trial": {"year": 1999, "kinds": "Journal Article\nRandomized Controlled Trial"},
    "new-trial": {"year": 2021, "kinds": "Randomized Controlled Trial"},
    "review": {"year": 2015, "kinds": "Review\ntag:  Épilepsie"},
    "withdrawn": {"year": 2018, "kinds": "Journal Article", "retracted": 1},
    "advice": {"year": 2020, "date": "2020-03", "trust": 5},
}


def add(kb: KnowledgeBase, folder: Path, source: str, texts: dict[str, str]) -> None:
    file = folder / f"{source}-{len(list(folder.iterdir()))}.jsonl"
    rows = ({"id": id, "title": "", "content": text} for id, text in texts.items())
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    kb.add([file], source=source)


def describe(kb: KnowledgeBase, id: str, **columns: object) -> None:
    """What a parser of a richer format would have set."""
    with access.open_for_writing(kb.path) as db:
        for name, value in columns.items():
            db.execute(f"UPDATE document SET {name} = ? WHERE id = ?", (value, id))  # noqa: S608
        set_meta(db, built="")


def described(at: Path) -> Path:
    """A knowledge base of the texts with their columns, not built."""
    files = at / "files"
    files.mkdir()
    with KnowledgeBase.create(at / "kb", BackendChoice("sqlite")) as kb:
        for source, texts in TEXTS.items():
            add(kb, files, source, texts)
        for id, columns in COLUMNS.items():
            describe(kb, id, **columns)
    return at / "kb"


@contextmanager
def quick_folder() -> Iterator[Path]:
    """In memory where there is such a place: a build of the embedded index makes the disk
    confirm some hundred small files, which is most of the time of these tests."""
    memory = Path("/dev/shm")  # noqa: S108 - a folder of our own in it
    where = memory if memory.is_dir() else None
    # The embedded engine may write its last segment while the folder goes.
    with TemporaryDirectory(dir=where, ignore_cleanup_errors=True) as made:
        yield Path(made)


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    with quick_folder() as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return described(tmp_path)


@pytest.fixture(scope="session")
def built_edge() -> Iterator[Path]:
    """Built for the embedded engine, to be copied."""
    pytest.importorskip("qdrant_edge", reason="the extra edge is not installed")
    with quick_folder() as made:
        with KnowledgeBase.open(described(made), BackendChoice("edge")) as kb:
            kb.build(HashingEncoder())
        yield made


@pytest.fixture
def edge(built_edge: Path, tmp_path: Path) -> Iterator[KnowledgeBase]:
    """Built, and searched by the embedded engine."""
    shutil.copytree(built_edge, tmp_path, dirs_exist_ok=True)
    with KnowledgeBase.open(tmp_path / "kb", BackendChoice("edge")) as kb:
        yield kb
