"""A publisher's updates: newer versions, withdrawals, and files in any order (PubMed)."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from osler.kb.base import KnowledgeBase
from osler.sources.formats import registry
from osler.sources.records import Deleted, Document, Record, Section
from osler_lab.testing.scripted import HashingEncoder


class Updates:
    """Lines such as "7 2 text" (id, version, text) and "-7" (withdrawn)."""

    name = "updates"

    def matches(self, name: str, head: bytes) -> bool:
        return name.endswith(".upd")

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        for line in stream.read().decode().splitlines():
            if line.startswith("-"):
                yield Deleted(line[1:], f"{name}: {line[1:]}")
            else:
                id, version, text = line.split(" ", 2)
                yield Document(id, f"Study {id}", (Section(text),), version=int(version))


@pytest.fixture
def kb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KnowledgeBase]:
    monkeypatch.setattr(registry, "PARSERS", (Updates(), *registry.PARSERS))
    with KnowledgeBase.create(tmp_path / "kb") as made:
        yield made


def file(folder: Path, name: str, *lines: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.upd"
    path.write_text("\n".join(lines) + "\n")
    return path


def texts(kb: KnowledgeBase) -> dict[str, str]:
    found = kb.by_words(["iron", "zinc", "gold", "lead"], k=50)
    return {passage.id: passage.text for passage, _ in found}


def test_a_newer_version_takes_the_place_of_an_older_one(kb: KnowledgeBase, tmp_path: Path) -> None:
    first = file(tmp_path, "n1", "7 1 iron", "8 1 zinc")
    second = file(tmp_path, "n2", "7 2 gold")
    kb.add([first], source="research")
    kb.build(HashingEncoder())
    assert kb.add([second], source="research").documents == 1
    assert texts(kb) == {"research:7#0": "gold", "research:8#0": "zinc"}
    assert kb.info().documents == 2
    assert kb.info().sources[0].drops == {"a newer version is there": 1}
    kb.build(HashingEncoder())
    assert kb.verify() == []


def test_an_older_version_that_comes_later_is_a_drop(kb: KnowledgeBase, tmp_path: Path) -> None:
    kb.add([file(tmp_path, "n1", "7 2 gold")], source="research")
    added = kb.add([file(tmp_path, "n2", "7 1 iron")], source="research")
    assert added.drops == {"a newer version is there": 1}
    assert texts(kb) == {"research:7#0": "gold"}


def test_equal_document_versions_keep_that_of_the_later_file(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    kb.add([file(tmp_path, "n1", "7 1 iron")], source="research")
    kb.add([file(tmp_path, "n2", "7 1 gold")], source="research")
    kb.update(checksum=True)
    assert texts(kb) == {"research:7#0": "gold"}


def test_within_a_file_the_later_version_stays(kb: KnowledgeBase, tmp_path: Path) -> None:
    kb.add([file(tmp_path, "n1", "7 1 iron", "7 2 gold", "7 1 lead")], source="research")
    assert texts(kb) == {"research:7#0": "gold"}
    kb.build(HashingEncoder())
    assert kb.verify() == []


def test_a_new_version_with_the_same_text_keeps_its_vector(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    kb.add([file(tmp_path, "n1", "7 1 iron")], source="research")
    kb.build(HashingEncoder())
    kb.add([file(tmp_path, "n2", "7 2 iron")], source="research")
    assert kb.provenance("research:7#0").version == 2
    assert kb.provenance("research:7#0").origin.endswith("n2.upd")
    assert kb.build(HashingEncoder()).encoded == 0


def test_a_withdrawn_document_goes_and_stays_away(kb: KnowledgeBase, tmp_path: Path) -> None:
    first = file(tmp_path, "n1", "7 1 iron", "8 1 zinc")
    kb.add([first], source="research")
    added = kb.add([file(tmp_path, "n2", "-7")], source="research")
    assert added.gone == 1
    assert texts(kb) == {"research:8#0": "zinc"}
    first.write_text("7 1 iron, corrected\n8 1 zinc\n")
    kb.update()
    assert texts(kb) == {"research:8#0": "zinc"}
    assert kb.info().sources[0].drops == {"withdrawn by its publisher": 1}


def test_what_is_issued_again_after_its_withdrawal_comes_back(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    kb.add([file(tmp_path, "n1", "7 1 iron"), file(tmp_path, "n2", "-7")], source="research")
    kb.add([file(tmp_path, "n3", "7 1 iron")], source="research")
    assert texts(kb) == {"research:7#0": "iron"}


def test_a_withdrawal_in_an_older_file_does_not_touch_a_newer_document(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    kb.add([file(tmp_path, "n3", "7 1 iron")], source="research")
    assert kb.add([file(tmp_path, "n2", "-7")], source="research").gone == 0
    assert texts(kb) == {"research:7#0": "iron"}


def test_document_versions_do_not_depend_on_file_order(kb: KnowledgeBase, tmp_path: Path) -> None:
    files = [
        file(tmp_path, "n1", "1 1 iron", "2 1 zinc", "3 1 gold"),
        file(tmp_path, "n2", "1 2 lead", "-2"),
        file(tmp_path, "n3", "3 1 zinc and gold"),
    ]
    expected = {"research:1#0": "lead", "research:3#0": "zinc and gold"}
    for number, order in enumerate(itertools.permutations(files)):
        with KnowledgeBase.create(tmp_path / f"kb{number}") as other:
            for one in order:
                other.add([one], source="research")
            assert texts(other) == expected, [path.name for path in order]


def test_when_an_update_file_goes_what_it_replaced_comes_back(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    file(folder, "n1", "7 1 iron", "8 1 zinc")
    update = file(folder, "n2", "7 2 gold", "-8")
    kb.add([folder], source="research")
    assert texts(kb) == {"research:7#0": "gold"}
    update.unlink()
    kb.update(prune=True)
    assert texts(kb) == {"research:7#0": "iron", "research:8#0": "zinc"}
    assert kb.info().sources[0].drops == {}


def test_documents_without_versions_keep_the_first(kb: KnowledgeBase, tmp_path: Path) -> None:
    kb.add([file(tmp_path, "n1", "7 0 iron")], source="book")
    added = kb.add([file(tmp_path, "n2", "7 0 gold")], source="book")
    assert added.drops == {"duplicate document id": 1}
