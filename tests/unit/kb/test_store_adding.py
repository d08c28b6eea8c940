"""Adding, replacing and removing files: what goes in, what is left out, and what stays whole."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from osler.errors import BadConfig, KnowledgeBaseError, MalformedSource
from osler.kb.base import KnowledgeBase
from osler.kb.ingest import files
from osler_lab.testing.scripted import HashingEncoder

Row = tuple[str, str, str]

ANAEMIA: Row = ("anaemia", "Anaemia", "Iron deficiency is the commonest cause of anaemia.")
ASTHMA: Row = ("asthma", "Asthma", "Asthma narrows the airways; salbutamol widens them.")
TANGNIAOBING: Row = ("糖尿病", "糖尿病", "糖尿病患者应控制血糖，二甲双胍是首选药物。")


def jsonl(path: Path, *rows: Row) -> Path:
    lines = [json.dumps({"id": i, "title": t, "content": c, "contents": c}) for i, t, c in rows]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.create(tmp_path / "kb") as made:
        yield made


def documents(kb: KnowledgeBase) -> int:
    return kb.info().documents


def test_what_was_added_can_be_got_back_with_its_place(kb: KnowledgeBase, tmp_path: Path) -> None:
    added = kb.add([jsonl(tmp_path / "a.jsonl", ANAEMIA, ASTHMA)], source="book", licence="CC0")
    assert (added.files, added.documents, added.passages) == (1, 2, 2)
    passage = kb.get("book:anaemia#0")
    assert passage.text == ANAEMIA[2]
    assert passage.title == "Anaemia"
    assert (passage.source, passage.licence, passage.language) == ("book", "CC0", "en")
    assert not passage.illustrative


def test_samples_are_marked_as_such(kb: KnowledgeBase, tmp_path: Path) -> None:
    kb.add([jsonl(tmp_path / "a.jsonl", ANAEMIA)], source="book", illustrative=True)
    assert kb.get("book:anaemia#0").illustrative


def test_a_file_that_did_not_change_is_skipped(kb: KnowledgeBase, tmp_path: Path) -> None:
    file = jsonl(tmp_path / "a.jsonl", ANAEMIA)
    kb.add([file], source="book")
    again = kb.add([file], source="book")
    assert (again.files, again.unchanged, again.documents) == (0, 1, 0)
    assert documents(kb) == 1


def test_the_same_content_under_another_path_is_skipped(kb: KnowledgeBase, tmp_path: Path) -> None:
    kb.add([jsonl(tmp_path / "a.jsonl", ANAEMIA)], source="book")
    assert kb.add([jsonl(tmp_path / "b.jsonl", ANAEMIA)], source="book").unchanged == 1


def test_the_same_file_may_go_into_two_sources(kb: KnowledgeBase, tmp_path: Path) -> None:
    file = jsonl(tmp_path / "a.jsonl", ANAEMIA)
    kb.add([file], source="book")
    assert kb.add([file], source="wiki").documents == 1
    assert kb.sources == ("book", "wiki")


def test_a_changed_file_takes_the_place_of_what_it_held(kb: KnowledgeBase, tmp_path: Path) -> None:
    file = jsonl(tmp_path / "a.jsonl", ANAEMIA, ASTHMA)
    kb.add([file], source="book")
    jsonl(file, ("anaemia", "Anaemia", "Ferritin is low in iron deficiency."))
    kb.add([file], source="book")
    assert documents(kb) == 1
    assert "Ferritin" in kb.get("book:anaemia#0").text
    assert kb.by_words(["salbutamol"], k=5) == []


def test_a_file_read_under_another_licence_is_read_again(kb: KnowledgeBase, tmp_path: Path) -> None:
    file = jsonl(tmp_path / "a.jsonl", ANAEMIA)
    kb.add([file], source="book", licence="CC BY 4.0")
    assert kb.add([file], source="book", licence="CC0").files == 1
    assert kb.get("book:anaemia#0").licence == "CC0"


def test_a_second_document_of_the_same_name_is_a_counted_drop(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    kb.add([jsonl(tmp_path / "a.jsonl", ANAEMIA)], source="book")
    other = jsonl(tmp_path / "b.jsonl", ("anaemia", "Anaemia", "Another text."), ASTHMA)
    added = kb.add([other], source="book")
    assert added.drops == {"duplicate document id": 1}
    assert added.documents == 1
    assert kb.get("book:anaemia#0").text == ANAEMIA[2]
    assert kb.info().sources[0].drops == {"duplicate document id": 1}


def test_identifiers_that_differ_in_a_sign_are_those_of_several_documents(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    own = [("a/b", "A", "Of one."), ("a b", "B", "Of two."), ("a-b", "C", "Of three.")]
    first, second = (
        jsonl(tmp_path / "1.jsonl", *own[:2], ("a b", "B", "Of a misprint.")),
        jsonl(tmp_path / "2.jsonl", own[2]),
    )
    for _ in range(2):
        kb.add([first, second], source="book")
        told = {d[0].text: d[0].id for d in kb.read_documents("book")}
        assert [*told] == ["Of one.", "Of two.", "Of three."]
        assert told["Of one."] == "book:a-b#0"
    jsonl(second, own[2], ("c", "C", "Of four."))
    kb.add([first, second], source="book")
    assert told.items() < {d[0].text: d[0].id for d in kb.read_documents("book")}.items()
    (lost,) = kb.dead_letters()
    assert (Path(lost.path).name, lost.record, lost.reason) == (
        *("1.jsonl", 3),
        "duplicate document id",
    )


def test_a_double_comes_in_once_its_original_is_gone(kb: KnowledgeBase, tmp_path: Path) -> None:
    first = jsonl(tmp_path / "a.jsonl", ANAEMIA)
    second = jsonl(tmp_path / "b.jsonl", ("anaemia", "Anaemia", "Another text."))
    kb.add([first, second], source="book")
    jsonl(first, ASTHMA)
    kb.add([first, second], source="book")
    assert kb.get("book:anaemia#0").text == "Another text."


def test_the_same_id_in_two_sources_is_two_documents(kb: KnowledgeBase, tmp_path: Path) -> None:
    file = jsonl(tmp_path / "a.jsonl", ANAEMIA)
    kb.add([file], source="book")
    kb.add([file], source="wiki")
    assert kb.get("book:anaemia#0").text == kb.get("wiki:anaemia#0").text


def test_a_bad_record_is_dropped_and_the_rest_of_its_file_goes_in(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    file = jsonl(tmp_path / "a.jsonl", ANAEMIA, ("empty", "Empty", ""), ASTHMA)
    added = kb.add([file], source="book")
    assert added.documents == 2
    assert added.drops == {"no text": 1}


def test_a_file_of_no_known_format_is_named(kb: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "image.bin").write_bytes(bytes(range(256)))
    for _ in range(2):
        added = kb.add([tmp_path / "image.bin"], source="book")
        assert added.files == 0
        assert len(added.unknown) == 1
        assert added.unknown[0].endswith("image.bin")
    assert kb.info().sources[0].drops == {"unknown format": 1}
    kb.remove(source="book")
    assert kb.info().sources == ()


def truncated(path: Path, *rows: Row) -> Path:
    whole = gzip.compress(jsonl(path.with_suffix(""), *rows).read_bytes())
    path.with_suffix("").unlink()
    path.write_bytes(whole[: len(whole) * 2 // 3])
    return path


def many(count: int) -> list[Row]:
    return [
        (f"d{i}", f"Title {i}", f"Text number {i} on iron, salbutamol {i * i}.")
        for i in range(count)
    ]


def test_of_a_file_that_breaks_off_nothing_stays(kb: KnowledgeBase, tmp_path: Path) -> None:
    broken = truncated(tmp_path / "a.jsonl.gz", *many(2000))
    whole = jsonl(tmp_path / "b.jsonl", ASTHMA)
    added = kb.add([broken, whole], source="book")
    assert len(added.failed) == 1
    assert "a.jsonl.gz" in added.failed[0]
    assert (added.files, added.documents) == (1, 1)
    assert kb.info().sources[0].drops == {"truncated or damaged": 1}


def test_a_file_that_breaks_off_leaves_what_it_held_before(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    file = tmp_path / "a.jsonl.gz"
    rows = many(2000)
    content = jsonl(tmp_path / "a.jsonl", *rows).read_bytes()
    file.write_bytes(gzip.compress(content))
    kb.add([file], source="book")
    truncated(file, ASTHMA, *rows)
    for _ in range(2):
        assert len(kb.add([file], source="book").failed) == 1
    assert documents(kb) == 2000
    assert kb.info().sources[0].drops == {"truncated or damaged": 1}
    file.write_bytes(gzip.compress(content))
    assert kb.add([file], source="book").files == 1
    assert kb.info().sources[0].drops == {}


def test_a_path_that_is_not_there_is_an_error(kb: KnowledgeBase, tmp_path: Path) -> None:
    with pytest.raises(MalformedSource, match="does not exist"):
        kb.add([tmp_path / "nothing"], source="book")


def test_an_unknown_format_name_is_an_error(kb: KnowledgeBase, tmp_path: Path) -> None:
    with pytest.raises(BadConfig):
        kb.add([jsonl(tmp_path / "a.jsonl", ANAEMIA)], source="book", fmt="hieroglyphs")


@pytest.mark.parametrize("name", ["", "Book", "my notes", "a:b", "a#b", "../x", "x" * 65, "-a"])
def test_a_name_that_cannot_stand_in_an_id_names_no_source(kb: KnowledgeBase, name: str) -> None:
    with pytest.raises(KnowledgeBaseError, match="cannot name a source"):
        kb.add([], source=name)


def test_a_source_of_the_users_own_is_a_source(kb: KnowledgeBase, tmp_path: Path) -> None:
    kb.add([jsonl(tmp_path / "a.jsonl", ANAEMIA)], source="ward-notes_2")
    assert kb.sources == ("ward-notes_2",)


def test_a_patient_s_record_is_taken_by_the_source_of_patients_alone(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    """Under another source every search would find the patient."""
    person = {"resourceType": "Patient", "id": "p1", "gender": "female", "birthDate": "1950-06-15"}
    code = {"coding": [{"system": "http://snomed.info/sct", "code": "44054006", "display": "DM 2"}]}
    ill = {"resourceType": "Condition", "subject": {"reference": "Patient/p1"}, "code": code}
    bundle = {"resourceType": "Bundle", "entry": [{"resource": person}, {"resource": ill}]}
    (tmp_path / "jane.json").write_text(json.dumps(bundle))

    refused = kb.add([tmp_path / "jane.json"], source="ward")

    assert refused.documents == 0
    assert dict(refused.drops) == {"a patient's record outside the source emr": 1}
    assert kb.add([tmp_path / "jane.json"], source="emr").documents == 1


def test_interrupting_an_addition_leaves_no_half_of_a_file(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    first = jsonl(tmp_path / "a.jsonl", ANAEMIA)
    second = jsonl(tmp_path / "b.jsonl", *many(500))

    def interrupt(what: str, done: int, total: int | None) -> None:
        if what == "documents":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kb.add([first, second], source="book", progress=interrupt)
    assert documents(kb) == 1
    assert kb.add([first, second], source="book").documents == 500


def test_an_interrupted_small_file_is_not_there_by_half_and_is_read_again(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    paths = [jsonl(tmp_path / "a.jsonl", ANAEMIA), jsonl(tmp_path / "b.jsonl", *many(150))]

    def interrupt(what: str, done: int, total: int | None) -> None:
        if what == "documents":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kb.add(paths, source="book", progress=interrupt)
    assert documents(kb) in {0, 1}
    kb.add(paths, source="book")
    assert documents(kb) == 151


def test_files_that_progress_counts_as_read_are_there_for_everybody(
    kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_TOGETHER", 0.02)
    for n, row in enumerate(many(60)):
        jsonl(tmp_path / "in" / f"{n:03}.jsonl", row)
    counted: list[tuple[int, int]] = []

    def look(what: str, done: int, total: int | None) -> None:
        with KnowledgeBase.open(kb.path) as other:
            counted.append((done, documents(other)))

    kb.add([tmp_path / "in"], source="book", progress=look)
    assert len(counted) > 1
    assert all(done == there for done, there in counted), counted


def test_progress_counts_files_and_documents(kb: KnowledgeBase, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int | None]] = []
    file = jsonl(tmp_path / "b.jsonl", *many(250))
    kb.add([file], source="book", progress=lambda *step: seen.append(step))
    assert [step for step in seen if step[0] == "documents"] == [
        ("documents", 100, None),
        ("documents", 200, None),
    ]
    assert ("files", 0, None) in seen


def test_adding_means_that_it_must_be_built_again(kb: KnowledgeBase, tmp_path: Path) -> None:
    file = jsonl(tmp_path / "a.jsonl", ANAEMIA)
    kb.add([file], source="book")
    kb.build(HashingEncoder())
    kb.add([file], source="book")
    assert kb.info().built, "an addition that changed nothing needs no build"
    kb.add([jsonl(tmp_path / "b.jsonl", ASTHMA)], source="book")
    assert not kb.info().built


def test_a_removed_document_is_gone_from_store_and_indexes(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    kb.add([jsonl(tmp_path / "a.jsonl", ANAEMIA, ASTHMA)], source="book")
    kb.build(HashingEncoder())
    assert kb.remove(source="book", document="asthma") == 1
    assert kb.by_words(["salbutamol"], k=5) == []
    assert documents(kb) == 1
    assert not kb.info().built
    kb.build(HashingEncoder())
    assert kb.verify() == []


def test_a_removed_document_comes_back_with_its_file(kb: KnowledgeBase, tmp_path: Path) -> None:
    file = jsonl(tmp_path / "a.jsonl", ANAEMIA, ASTHMA)
    kb.add([file], source="book")
    kb.remove(source="book", document="asthma")
    kb.add([file], source="book")
    assert documents(kb) == 2


def test_a_removed_source_is_gone_with_its_files_and_drops(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    file = jsonl(tmp_path / "a.jsonl", ANAEMIA, ("empty", "Empty", ""))
    kb.add([file], source="book")
    kb.add([jsonl(tmp_path / "z.jsonl", TANGNIAOBING)], source="wiki")
    kb.remove(source="book")
    assert kb.sources == ("wiki",)
    assert [source.source for source in kb.info().sources] == ["wiki"]
    assert kb.add([file], source="book").documents == 1


@pytest.mark.parametrize(
    ("source", "document"), [("wiki", None), ("book", "nothing"), ("book", "")]
)
def test_what_is_not_there_cannot_be_removed(
    kb: KnowledgeBase, tmp_path: Path, source: str, document: str | None
) -> None:
    kb.add([jsonl(tmp_path / "a.jsonl", ANAEMIA)], source="book")
    with pytest.raises(KnowledgeBaseError, match="there is no"):
        kb.remove(source=source, document=document)
    assert documents(kb) == 1


def test_a_long_document_is_cut_and_its_passages_know_their_neighbours(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    text = " ".join(f"Sentence number {i} of a long text on anaemia." for i in range(300))
    kb.add([jsonl(tmp_path / "a.jsonl", ("long", "Long", text))], source="book")
    count = kb.info().passages
    assert count > 11, "the order of ten and nine must be seen"
    middle = kb.neighbours("book:long#10", 1)
    assert [passage.id for passage in middle] == [f"book:long#{n}" for n in (9, 10, 11)]
    assert [passage.id for passage in kb.neighbours("book:long#0", 1)] == [
        "book:long#0",
        "book:long#1",
    ]
    assert kb.neighbours("book:long#3", 0) == (kb.get("book:long#3"),)


def test_info_counts_english_words_and_chinese_characters(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    kb.add([jsonl(tmp_path / "a.jsonl", ANAEMIA)], source="wiki", licence="CC0")
    kb.add([jsonl(tmp_path / "z.jsonl", TANGNIAOBING)], source="wiki", licence="CC BY-SA 4.0")
    (wiki,) = kb.info().sources
    assert wiki.words == {"en": 8.0, "zh": 19.0}
    assert wiki.licences == ("CC BY-SA 4.0", "CC0")
    assert (wiki.files, wiki.documents, wiki.passages) == (2, 2, 2)
