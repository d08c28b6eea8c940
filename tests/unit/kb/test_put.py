"""Passages that no file brought."""

from dataclasses import replace
from pathlib import Path

import pytest

from osler.errors import KnowledgeBaseError
from osler.kb.base import KnowledgeBase
from osler.retrieve.hybrid import search
from osler.types import Locator, Passage
from osler_lab.testing.scripted import HashingEncoder

FIRST = Passage("notes:iron#0", "Oral iron treats anaemia.", "notes", "Iron", Locator(page=3))
SECOND = Passage("notes:iron#1", "It is taken once a day.", "notes", "Iron")
OTHER = Passage("notes:warfarin#0", "Warfarin is stopped before surgery.", "notes", "Warfarin")


@pytest.fixture
def kb(tmp_path: Path) -> KnowledgeBase:
    return KnowledgeBase.create(tmp_path / "kb")


def test_passages_come_out_as_they_were_put(kb: KnowledgeBase) -> None:
    done = kb.put([FIRST, SECOND, OTHER])
    assert (done.documents, done.passages, done.drops) == (2, 3, {})
    assert kb.neighbours(FIRST.id) == (FIRST, SECOND)
    assert kb.get(OTHER.id) == OTHER


def test_a_document_put_again_takes_the_place_of_the_first_alone(kb: KnowledgeBase) -> None:
    kb.put([FIRST, SECOND, OTHER])
    kb.build(HashingEncoder())
    changed = replace(FIRST, text="Iron is given by mouth.")
    done = kb.put([changed, OTHER])
    assert (done.documents, done.kept) == (1, 1)
    assert kb.neighbours(FIRST.id, 5) == (changed,)
    assert kb.build(HashingEncoder()).encoded == 1
    assert kb.verify() == []


def test_an_update_leaves_them_and_a_removal_can_be_taken_back(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    file = tmp_path / "aspirin.md"
    file.write_text("# Aspirin\n\nAspirin thins the blood.\n")
    kb.add([file], source="notes")
    kb.put([OTHER])
    done = kb.update(prune=True, retry=True)
    assert (done.vanished, done.gone) == ([], 0)
    assert kb.remove(source="notes", document="warfarin") == 1
    assert kb.put([OTHER]).documents == 1


def test_what_a_file_brought_stays_and_is_said(kb: KnowledgeBase, tmp_path: Path) -> None:
    file = tmp_path / "iron.md"
    file.write_text("# Iron\n\nOf the file.\n")
    kb.add([file], source="notes")
    assert kb.put([FIRST]).drops == {"duplicate document id": 1}
    assert kb.get("notes:iron#0").text == "Of the file."


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (replace(OTHER, id="warfarin"), "no id of a passage"),
        (replace(OTHER, id="book:warfarin#0"), "no id of a passage"),
        (replace(OTHER, id="notes:a/b#0"), "no id of a passage"),
        (replace(OTHER, id="notes:warfarin#"), "no id of a passage"),
        (replace(OTHER, id="notes:warfarin#-1"), "no id of a passage"),
        (replace(OTHER, id="notes:warfarin#²"), "no id of a passage"),
        (replace(OTHER, id="notes:warfarin#01"), "no id of a passage"),
        (replace(OTHER, text=" "), "no text"),
        (replace(OTHER, source="No", id="No:a#0"), "cannot name a source"),
        (replace(OTHER, locator=Locator(kind="Patient")), "outside the source emr"),
        (FIRST, "two passages of one id"),
    ],
)
def test_a_wrong_passage_is_refused_and_nothing_is_written(
    kb: KnowledgeBase, wrong: Passage, said: str
) -> None:
    with pytest.raises(KnowledgeBaseError, match=said):
        kb.put([FIRST, wrong])
    assert kb.sources == ()


def test_a_source_that_loses_identifiers_takes_files_alone(kb: KnowledgeBase) -> None:
    kb.deidentified = ("notes",)
    with pytest.raises(KnowledgeBaseError, match="lose their identifiers"):
        kb.put([FIRST])


def test_a_search_in_one_call_is_by_words_and_by_meaning(kb: KnowledgeBase) -> None:
    kb.put([FIRST, SECOND, OTHER])
    encoder = HashingEncoder()
    kb.build(encoder)
    assert [hit.source for hit in search(kb, "oral iron", k=1)] == ["lexical"]
    assert [hit.source for hit in search(kb, "oral iron", k=1, encoder=encoder)] == ["dense"]
    assert search(kb, "oral iron", sources=["notes"])[0].passage == FIRST
