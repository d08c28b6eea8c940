"""Files of strangers are read by another process, and cost at most what they may."""

from __future__ import annotations

import pickle
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from osler.errors import KnowledgeBaseError
from osler.kb.base import KnowledgeBase
from osler.kb.ingest import reader_process
from osler.kb.ingest.reader_process import FileTooCostly, ReadLimits

ENOUGH = ReadLimits(seconds=30, memory=2 << 30, documents=2)
PARTS = [f"# Heading {n}\n\nText number {n}.\n\n" for n in range(102)]
HEADINGS = "".join(PARTS)
RECORDS = "".join(f'{{"id": "{n}", "title": "t", "content": "Word {n}."}}\n' for n in range(3))


@pytest.fixture
def kb(tmp_path: Path) -> KnowledgeBase:
    return KnowledgeBase.create(tmp_path / "kb")


def write(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_within_the_limits_a_file_is_read_as_without_them(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    file = write(tmp_path, "a.md", "".join(PARTS[:100]))
    assert kb.add([file], source="free").passages == 100
    assert kb.add([file], source="bound", limits=ENOUGH).passages == 100
    texts = [[[one.text for one in doc] for doc in kb.read_documents(s)] for s in kb.sources]
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("name", "text", "limits", "said"),
    [
        ("slow.md", HEADINGS, replace(ENOUGH, seconds=0.02), "cannot be read in 0.02 s"),
        ("many.jsonl", RECORDS, ENOUGH, "over 2 documents"),
        ("long.md", HEADINGS, ENOUGH, "or 100 sections"),
    ],
)
def test_a_file_over_a_limit_is_refused_and_nothing_of_it_stays(
    name: str, text: str, limits: ReadLimits, said: str, kb: KnowledgeBase, tmp_path: Path
) -> None:
    kb.add([write(tmp_path, "held.md", "# Held\n\nThis was there.\n")], source="ward")
    with pytest.raises(FileTooCostly, match=said):
        kb.add([write(tmp_path, name, text)], source="ward", limits=limits)
    assert [doc[0].title for doc in kb.read_documents("ward")] == ["Held"]


def test_a_file_that_wants_more_memory_than_its_reader_has_is_named(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    large = write(tmp_path, "wide.md", "Word. " * 2_500_000)
    with suppress(FileTooCostly):  # it may end in the middle of a word, or tell
        done = kb.add([large], source="ward", limits=replace(ENOUGH, memory=150 << 20))
        assert ["more memory than there is" in one for one in done.failed] == [True]
    assert kb.sources == ()


def test_a_reader_can_send_nothing_but_records(
    kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = tmp_path / "taken"

    class Bomb:
        def __reduce__(self) -> tuple[object, ...]:
            return Path.touch, (taken,)

    for sent in (pickle.dumps(Bomb()), b'[{"id": 1}]\n', b'{"id": "a"}\nnull\n', b"\xff\n"):
        child = f"import sys; sys.stdout.buffer.write({sent!r})".replace("{", "{{").replace(
            "}", "}}"
        )
        monkeypatch.setattr(reader_process, "_CHILD", child)
        with pytest.raises(KnowledgeBaseError):
            kb.add([write(tmp_path, "a.md", HEADINGS)], source="ward", limits=ENOUGH)
    assert not taken.exists()
    assert kb.sources == ()
