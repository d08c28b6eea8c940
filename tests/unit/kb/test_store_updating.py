"""Updating: what changed is read again, what did not costs nothing, what is gone is told."""

import json
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from osler.errors import KnowledgeBaseError
from osler.kb.base import KnowledgeBase
from osler.kb.ingest import files
from osler_lab.testing.scripted import HashingEncoder

OLD = 1_600_000_000


def jsonl(path: Path, **texts: str) -> Path:
    """A file of documents by id, written long ago; another content is of another second."""
    lines = [
        json.dumps({"id": id, "title": id.title(), "content": text, "contents": text})
        for id, text in texts.items()
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    moment = OLD + len(path.read_bytes())
    os.utime(path, (moment, moment))
    return path


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.create(tmp_path / "kb") as made:
        yield made


@pytest.fixture
def books(tmp_path: Path) -> Path:
    jsonl(tmp_path / "books" / "a.jsonl", anaemia="Iron is low.", asthma="Airways narrow.")
    jsonl(tmp_path / "books" / "b.jsonl", gout="Urate crystals form.")
    return tmp_path / "books"


def ids(kb: KnowledgeBase) -> set[str]:
    terms = ["iron", "airways", "urate", "scurvy", "ferritin"]
    return {passage.id.split(":")[1] for passage, _ in kb.by_words(terms, k=50)}


def test_an_update_of_what_did_not_change_opens_no_file(
    kb: KnowledgeBase, books: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb.add([books], source="book")

    def refuse(*_: Any) -> str:
        raise AssertionError("a file was read")

    monkeypatch.setattr(files, "hash_tree", refuse)
    monkeypatch.setattr("osler.sources.discover.open_file", refuse)
    updated = kb.update()
    assert (updated.files, updated.unchanged, updated.documents) == (0, 2, 0)


def test_an_archive_that_did_not_change_is_not_opened(
    kb: KnowledgeBase, books: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "books.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(books, "books")
    os.utime(archive, (OLD, OLD))
    assert kb.add([archive], source="book").documents == 3
    monkeypatch.setattr(
        "osler.sources.discover.open_members", lambda *_: pytest.fail("it was opened")
    )
    assert kb.update().unchanged == 1


def test_new_and_changed_files_come_in(kb: KnowledgeBase, books: Path) -> None:
    kb.add([books], source="book", licence="CC0")
    jsonl(books / "b.jsonl", gout="Urate crystals form in joints.")
    jsonl(books / "c.jsonl", scurvy="Scurvy comes of too little vitamin C.")
    updated = kb.update()
    assert (updated.files, updated.unchanged, updated.documents) == (2, 1, 2)
    assert ids(kb) == {"anaemia#0", "asthma#0", "gout#0", "scurvy#0"}
    assert kb.get("book:scurvy#0").licence == "CC0", "the terms of the addition hold"
    assert "joints" in kb.get("book:gout#0").text


def test_of_a_changed_file_the_documents_that_stayed_keep_their_vectors(
    kb: KnowledgeBase, books: Path
) -> None:
    kb.add([books], source="book")
    kb.build(HashingEncoder())
    jsonl(books / "a.jsonl", anaemia="Ferritin is low.", asthma="Airways narrow.")
    updated = kb.update()
    assert (updated.documents, updated.kept, updated.gone) == (1, 1, 0)
    assert kb.build(HashingEncoder()).encoded == 1
    assert kb.verify() == []


def test_what_a_changed_file_no_longer_holds_goes(kb: KnowledgeBase, books: Path) -> None:
    kb.add([books], source="book")
    jsonl(books / "a.jsonl", anaemia="Iron is low.")
    assert kb.update().gone == 1
    assert ids(kb) == {"anaemia#0", "gout#0"}


def test_an_incremental_update_gives_what_a_new_beginning_gives(
    kb: KnowledgeBase, books: Path, tmp_path: Path
) -> None:
    kb.add([books], source="book")
    kb.build(HashingEncoder())
    jsonl(books / "a.jsonl", asthma="Airways narrow.", scurvy="Scurvy comes of want.")
    kb.update()
    with KnowledgeBase.create(tmp_path / "other") as other:
        other.add([books], source="book")
        assert kb.build(HashingEncoder()).snapshot == other.build(HashingEncoder()).snapshot


def test_the_same_size_and_time_are_seen_through_by_their_checksum(
    kb: KnowledgeBase, books: Path
) -> None:
    kb.add([books], source="book")
    before = (books / "b.jsonl").stat()
    text = (books / "b.jsonl").read_text().replace("Urate", "URATE")
    (books / "b.jsonl").write_text(text)
    os.utime(books / "b.jsonl", ns=(before.st_mtime_ns, before.st_mtime_ns))
    assert kb.update().unchanged == 2
    assert kb.update(checksum=True).documents == 1


def test_a_file_written_in_the_second_of_its_reading_is_looked_at_again(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    file = jsonl(tmp_path / "a.jsonl", gout="Urate one.")
    os.utime(file)
    stamp = file.stat().st_mtime_ns
    kb.add([file], source="book")
    file.write_text(file.read_text().replace("one", "two"))
    os.utime(file, ns=(stamp, stamp))
    assert kb.update().documents == 1
    assert "two" in kb.get("book:gout#0").text


def test_a_time_from_the_future_is_not_trusted(kb: KnowledgeBase, tmp_path: Path) -> None:
    file = jsonl(tmp_path / "a.jsonl", gout="Urate one.")
    os.utime(file, (4_000_000_000, 4_000_000_000))
    kb.add([file], source="book")
    file.write_text(file.read_text().replace("one", "two"))
    os.utime(file, (4_000_000_000, 4_000_000_000))
    assert kb.update().documents == 1


def test_a_file_that_is_gone_is_listed_and_its_documents_stay(
    kb: KnowledgeBase, books: Path
) -> None:
    kb.add([books], source="book")
    (books / "b.jsonl").unlink()
    assert kb.update().vanished == [str(books / "b.jsonl")]
    assert "gout#0" in ids(kb)
    pruned = kb.update(prune=True)
    assert (pruned.gone, pruned.vanished) == (1, [])
    assert "gout#0" not in ids(kb)
    assert kb.update().vanished == []
    kb.build(HashingEncoder())
    assert kb.verify() == []


def test_a_folder_that_is_gone_is_listed_file_by_file(
    kb: KnowledgeBase, books: Path, tmp_path: Path
) -> None:
    kb.add([books], source="book")
    books.rename(tmp_path / "elsewhere")
    assert len(kb.update().vanished) == 2


def test_a_folder_that_moved_is_known_again(kb: KnowledgeBase, books: Path, tmp_path: Path) -> None:
    kb.add([books], source="book")
    (tmp_path / "new").mkdir()
    moved = books.rename(tmp_path / "new" / "books")
    added = kb.add([moved], source="book")
    assert (added.files, added.unchanged) == (0, 2)
    assert kb.provenance("book:gout#0").origin == str(moved / "b.jsonl")
    assert kb.update().vanished == []


def test_what_is_added_apart_from_its_folder_keeps_its_own_terms(
    kb: KnowledgeBase, books: Path
) -> None:
    kb.add([books], source="book", trust=5)
    kb.add([jsonl(books / "sub" / "c.jsonl", scurvy="Scurvy comes of want.")], source="book")
    kb.add([books / "a.jsonl"], source="book", trust=1)
    for _ in range(2):
        kb.build(None)
        again = kb.update()
        assert (again.files, again.documents, again.unchanged) == (0, 0, 3)
        assert again.drops == {"in a path that was added apart": 2}
        assert kb.info().built
        trust = [kb.provenance(f"book:{id}#0").trust for id in ("anaemia", "gout", "scurvy")]
        assert trust == [1, 5, 4]
    kb.add([books], source="book", trust=3)
    assert kb.provenance("book:anaemia#0").trust == 1
    assert kb.update(prune=True).gone == 0


def test_only_the_source_that_is_named_is_updated(kb: KnowledgeBase, books: Path) -> None:
    kb.add([books / "a.jsonl"], source="book")
    kb.add([books / "b.jsonl"], source="wiki")
    jsonl(books / "a.jsonl", anaemia="Iron is very low.")
    jsonl(books / "b.jsonl", gout="Urate is very high.")
    assert kb.update(source="wiki").documents == 1
    assert kb.update().documents == 1


@pytest.mark.parametrize("source", [None, "wiki"])
def test_where_nothing_was_added_nothing_can_be_updated(
    kb: KnowledgeBase, source: str | None
) -> None:
    with pytest.raises(KnowledgeBaseError, match="nothing was added"):
        kb.update(source=source)


def test_a_document_taken_out_by_hand_stays_out(kb: KnowledgeBase, books: Path) -> None:
    kb.add([books], source="book")
    kb.remove(source="book", document="asthma")
    kb.update(checksum=True)
    assert "asthma#0" not in ids(kb)
    jsonl(books / "a.jsonl", anaemia="Ferritin is low.", asthma="Airways narrow, still.")
    kb.update()
    assert "asthma#0" not in ids(kb)
    kb.add([books], source="book")
    assert "asthma#0" in ids(kb)


def test_a_file_that_could_not_be_read_is_tried_at_each_update(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    broken = tmp_path / "a.jsonl.gz"
    broken.write_bytes(b"\x1f\x8b\x08\x00 broken")
    os.utime(broken, (OLD, OLD))
    kb.add([broken], source="book")
    for _ in range(2):
        (letter,) = kb.dead_letters()
        assert letter.path.endswith("a.jsonl.gz")
        assert (letter.record, letter.reason) == (None, "truncated or damaged")
        assert len(kb.update().failed) == 1


def test_a_record_that_could_not_be_read_is_a_dead_letter_with_its_place(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    file = jsonl(tmp_path / "a.jsonl", gout="Urate.", scurvy="Scurvy.")
    lines = file.read_text().splitlines()
    file.write_text("\n".join((lines[0], "{broken", lines[1])) + "\n")
    os.utime(file, (OLD, OLD))
    kb.add([file], source="book")
    (letter,) = kb.dead_letters()
    assert (letter.source, letter.path, letter.member) == ("book", str(file), "")
    assert (letter.record, letter.reason) == (2, "not JSON")
    assert letter.at > OLD
    assert kb.info().sources[0].failed == 1
    assert kb.update().files == 0, "nothing tells that it could be read now"
    assert kb.update(retry=True).files == 1
    assert kb.dead_letters("wiki") == []


def test_another_reader_tries_dead_letters_again(
    kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(jsonl(file, gout="Urate.").read_text() + "{broken\n")
    os.utime(file, (OLD, OLD))
    kb.add([file], source="book")
    monkeypatch.setattr(files, "READER", "next")
    assert kb.update().files == 1
    assert kb.update().files == 0


def test_what_a_kill_left_waiting_is_read_by_an_update(
    kb: KnowledgeBase, books: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_TOGETHER", 0)

    def interrupt(what: str, done: int, total: int | None) -> None:
        if (what, done) == ("files", 1):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kb.add([books], source="book", progress=interrupt)
    (source,) = kb.info().sources
    assert (source.documents, source.waiting) == (2, 1)
    assert kb.update().documents == 1
    assert kb.info().sources[0].waiting == 0


# Doubles


def test_the_same_text_under_another_id_is_a_drop_that_names_the_first(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    jsonl(tmp_path / "in" / "a.jsonl", gout="Urate crystals  form.")
    row = {"id": "podagra", "title": "GOUT", "content": "urate CRYSTALS form.", "contents": ""}
    (tmp_path / "in" / "b.jsonl").write_text(json.dumps(row) + "\n")
    added = kb.add([tmp_path / "in"], source="book")
    assert added.drops == {"same title and text as another document": 1}
    assert ids(kb) == {"gout#0"}
    assert kb.dead_letters() == []


def test_the_same_text_under_another_title_is_another_document(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    added = kb.add(
        [jsonl(tmp_path / "a.jsonl", gout="See urate.", podagra="See urate.")], source="book"
    )
    assert added.documents == 2


def test_a_double_comes_in_when_the_first_one_goes(kb: KnowledgeBase, tmp_path: Path) -> None:
    jsonl(tmp_path / "in" / "a.jsonl", gout="Urate.")
    row = {"id": "podagra", "title": "Gout", "content": "Urate.", "contents": ""}
    (tmp_path / "in" / "b.jsonl").write_text(json.dumps(row) + "\n")
    kb.add([tmp_path / "in"], source="book")
    jsonl(tmp_path / "in" / "a.jsonl", scurvy="Scurvy.")
    assert kb.update().documents == 2
    assert ids(kb) == {"scurvy#0", "podagra#0"}
    assert kb.info().sources[0].drops == {}


# Trust and provenance


def test_a_source_has_its_trust_and_the_user_may_set_another(
    kb: KnowledgeBase, books: Path
) -> None:
    kb.add([books / "a.jsonl"], source="guideline")
    kb.add([books / "b.jsonl"], source="web", trust=4)
    assert kb.provenance("guideline:anaemia#0").trust == 5
    assert kb.provenance("web:gout#0").trust == 4
    assert {source.source: source.trust for source in kb.info().sources} == {
        "guideline": {5: 2},
        "web": {4: 1},
    }
    kb.add([books / "b.jsonl"], source="web", trust=1)
    assert kb.provenance("web:gout#0").trust == 1


@pytest.mark.parametrize("trust", [0, 6])
def test_trust_goes_from_one_to_five(kb: KnowledgeBase, books: Path, trust: int) -> None:
    with pytest.raises(KnowledgeBaseError, match="trust must be 1 to 5"):
        kb.add([books], source="web", trust=trust)


def test_a_passage_knows_its_file_and_its_state(kb: KnowledgeBase, books: Path) -> None:
    import hashlib

    kb.add([books], source="book")
    found = kb.provenance("book:gout#0")
    file = books / "b.jsonl"
    assert (found.origin, found.format) == (str(file), "medrag-jsonl")
    assert found.checksum == hashlib.sha256(file.read_bytes()).hexdigest()
    assert found.added > OLD
    assert (found.state, kb.info().sources[0].stored) == ("stored", 3)
    kb.build(HashingEncoder())
    assert kb.provenance("book:gout#0").state == "indexed"
    assert (kb.info().sources[0].stored, kb.info().sources[0].indexed) == (0, 3)
