"""A watched folder, and old answers whose evidence changed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from osler.kb.base import KnowledgeBase
from osler.kb.upkeep import tick_every, watch_folder
from osler.runs.files import find_changed
from osler.settings import Settings
from osler.types import Answer, Evidence, Hit, Passage
from osler_lab.testing.scripted import HashingEncoder


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.create(tmp_path / "kb") as made:
        yield made


def _write(path: Path, text: str, second: int) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    os.utime(path, (second, second))


def test_what_comes_changes_or_goes_does_so_in_the_knowledge_base(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    folder = tmp_path / "inbox"
    _write(folder / "a.txt", "Urate crystals form.", 1)
    seen = watch_folder(kb, folder, "own", HashingEncoder(), iter(int, 1))
    first = next(seen)
    assert (first.documents, first.encoded, first.gone) == (1, 1, 0)
    assert not next(seen).is_change
    _write(folder / "a.txt", "Sodium urate forms.", 2)
    _write(folder / "b.txt", "Vitamin is low.", 2)
    changed = next(seen)
    assert (changed.documents, changed.encoded) == (2, 2)
    assert [p.text for p, _ in kb.by_words(["sodium"], k=5)] == ["Sodium urate forms."]
    (folder / "a.txt").unlink()
    assert next(seen).gone == 1
    assert kb.by_words(["sodium"], k=5) == []
    assert kb.verify() == []


def test_an_empty_folder_is_waited_for(kb: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "inbox").mkdir()
    seen = watch_folder(kb, tmp_path / "inbox", "own", None, range(2))
    assert [one.is_change for one in seen] == [False, False]


def test_a_folder_that_is_not_mounted_takes_nothing_out(kb: KnowledgeBase, tmp_path: Path) -> None:
    folder, away = tmp_path / "inbox", tmp_path / "away"
    _write(folder / "a.txt", "Urate crystals form.", 1)
    seen = watch_folder(kb, folder, "own", None, iter(int, 1))
    next(seen)
    folder.rename(away)
    assert (next(seen).gone, len(kb.by_words(["urate"], k=5))) == (0, 1)
    folder.mkdir()  # the place of a mount
    assert (next(seen).gone, len(kb.by_words(["urate"], k=5))) == (0, 1)
    folder.rmdir()
    away.rename(folder)
    assert not next(seen).is_change


def test_what_was_added_elsewhere_stays_while_it_is_not_mounted(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    share, folder = tmp_path / "share", tmp_path / "inbox"
    _write(share / "a.txt", "Urate crystals form.", 1)
    _write(folder / "b.txt", "Vitamin is low.", 1)
    kb.add([share], source="own")
    share.rename(tmp_path / "away")
    (seen,) = watch_folder(kb, folder, "own", None, [1])
    assert (seen.gone, seen.vanished, len(kb.by_words(["urate"], k=5))) == (0, 1, 1)


def test_a_share_in_the_watched_folder_takes_nothing_out_while_it_is_not_mounted(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    folder = tmp_path / "inbox"
    _write(folder / "b.txt", "Vitamin is low.", 1)
    _write(folder / "share" / "a.txt", "Urate crystals form.", 1)
    kb.add([folder / "share", folder / "b.txt"], source="own")
    (folder / "share" / "a.txt").rename(tmp_path / "a.txt")
    (folder / "b.txt").rename(folder / "c.txt")
    (seen,) = watch_folder(kb, folder, "own", None, [1])
    assert (seen.gone, len(kb.by_words(["urate"], k=5))) == (0, 1)
    (folder / "c.txt").unlink()
    (seen,) = watch_folder(kb, folder, "own", None, [1])
    assert (seen.gone, len(kb.by_words(["vitamin"], k=5))) == (1, 0)


def test_what_is_gone_or_cannot_be_read_is_told_once(kb: KnowledgeBase, tmp_path: Path) -> None:
    folder = tmp_path / "inbox"
    _write(folder / "a.txt", "Urate crystals form.", 1)
    (folder / "b.docx").write_bytes(b"PK\x03\x04half")
    seen = watch_folder(kb, folder, "own", None, iter(int, 1))
    first = next(seen)
    assert (first.documents, first.failed, first.vanished) == (1, 1, 0)
    assert not next(seen).is_change
    folder.rename(tmp_path / "away")
    away = next(seen)
    assert (away.failed, away.vanished) == (0, 2)
    assert not next(seen).is_change


def test_a_watch_keeps_the_terms_that_it_is_not_given(kb: KnowledgeBase, tmp_path: Path) -> None:
    folder = tmp_path / "inbox"
    _write(folder / "a.txt", "Urate crystals form.", 1)
    _write(folder / "b.txt", "Vitamin is low. " * 9, 1)
    kb.add([folder], source="own", trust=5, licence="CC0", chunk="30")
    before = kb.info()
    kb.remove(source="own", document="a")
    assert [one.documents for one in watch_folder(kb, folder, "own", None, [1])] == [0]
    assert [one.documents for one in watch_folder(kb, folder, "own", None, [1], trust=4)] == [1]
    (source,) = kb.info().sources
    assert (source.trust, source.licences) == ({4: 2}, ("CC0",))
    assert kb.info().passages == before.passages


def test_a_file_that_is_half_there_leaves_what_was_read_and_is_read_when_it_is_whole(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    folder, text = tmp_path / "inbox", "痛风 is gout. It hurts.".encode()
    _write(folder / "a.txt", "Urate crystals form.", 1)
    seen = watch_folder(kb, folder, "own", None, iter(int, 1))
    next(seen)
    (folder / "b.txt").write_bytes(text[:2])
    (folder / "c.docx").write_bytes(b"PK\x03\x04half")
    (folder / "a.txt").write_bytes(b"")
    os.symlink(folder, folder / "loop")
    os.symlink(tmp_path / "nowhere", folder / "dead.txt")
    os.mkfifo(folder / "pipe.txt")
    first = next(seen)
    assert (first.documents, first.gone) == (0, 0)
    assert first.failed
    assert len(kb.by_words(["urate"], k=5)) == 1
    (folder / "b.txt").write_bytes(text)
    assert next(seen).documents == 1
    assert len(kb.by_words(["gout"], k=5)) == 1
    assert kb.verify() == []


def test_a_look_during_another_write_is_made_up_for(kb: KnowledgeBase, tmp_path: Path) -> None:
    from osler.kb.store.access import hold_lock

    folder = tmp_path / "inbox"
    _write(folder / "a.txt", "Urate crystals form.", 1)

    def ticks() -> Iterator[int]:
        with hold_lock(kb.path):
            yield 1
        yield 2

    assert [one.documents for one in watch_folder(kb, folder, "own", None, ticks())] == [1]


def test_looks_are_so_many_seconds_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    ticks = tick_every(2.5)
    assert [next(ticks), next(ticks), next(ticks)] == [0, 1, 2]
    assert slept == [2.5, 2.5]


def _cite(passage: Passage, quote: str) -> Evidence:
    start = passage.text.index(quote)
    return Evidence(Hit(passage, 1.0, 1, "q", passage.source), start, start + len(quote))


def test_old_answers_say_what_of_their_evidence_changed(kb: KnowledgeBase, tmp_path: Path) -> None:
    folder = tmp_path / "inbox"
    _write(folder / "a.txt", "Urate crystals form. Pain follows.", 1)
    _write(folder / "b.txt", "Vitamin is low.", 1)
    kb.add([folder], source="own")
    settings = Settings.model_validate({"home": tmp_path})
    first, second = (kb.get(f"own:{name}#0") for name in ("a", "b"))
    elsewhere = Passage("graph:x#0", "A treats B.", "graph", "A")
    answer = Answer(
        evidence=(
            _cite(first, "Urate crystals form."),
            _cite(first, "Pain follows."),
            _cite(second, "Vitamin is low."),
            _cite(elsewhere, "A treats B."),
        )
    )
    assert find_changed(settings, kb, answer) == ()
    kb.correct("own:a#0", "Sodium urate forms. Pain follows.", None)
    kb.remove(source="own", document="b")
    found = find_changed(settings, kb, answer)
    assert [(one.number, one.passage, one.state) for one in found] == [
        (1, "own:a#0", "changed"),
        (3, "own:b#0", "gone"),
    ]
    assert str(found[0]) == "[1] this evidence changed since: own:a#0"
