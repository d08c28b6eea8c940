"""Marked texts as columns and as JSON, and the strict F1 of spans."""

import json
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osler.errors import MalformedSource
from osler.train.recognise import strict_scores
from osler.train.recognise.corpus import (
    MarkedEntity,
    MarkedText,
    read_marked,
    split_texts,
    split_units,
    split_windows,
    types_of,
)

ENGLISH = "Oral O\niron B-Drug\ntreats O\niron B-Disease\ndeficiency I-Disease\n. O\n"
CHINESE = "口 O\n服 O\n铁 B-Drug\n剂 E-Drug\n\n铁 S-Drug\n"


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def named(one: MarkedText) -> list[tuple[str, str]]:
    return [(one.text[e.start : e.end], e.type) for e in one.entities]


def test_columns_of_words_are_joined_with_spaces(tmp_path: Path) -> None:
    (one,) = read_marked(written(tmp_path, "x.conll", f"-DOCSTART- O\n\n{ENGLISH}"))
    assert one.text == "Oral iron treats iron deficiency ."
    assert named(one) == [("iron", "Drug"), ("iron deficiency", "Disease")]


def test_columns_of_chinese_characters_are_joined_without(tmp_path: Path) -> None:
    first, second = read_marked(written(tmp_path, "x.bio", CHINESE))
    assert (first.text, named(first)) == ("口服铁剂", [("铁剂", "Drug")])
    assert named(second) == [("铁", "Drug")]


def test_an_inside_without_a_beginning_begins_and_another_type_begins_anew(tmp_path: Path) -> None:
    (one,) = read_marked(written(tmp_path, "x.bio", "a I-X\nb I-Y\nc I-Y\nd B-Y\n"))
    assert named(one) == [("a", "X"), ("b c", "Y"), ("d", "Y")]


def test_json_lines_lists_and_cmeee_are_read(tmp_path: Path) -> None:
    lines = '{"text": "iron helps", "entities": [{"start": 0, "end": 4, "type": "Drug"}]}\n'
    assert named(read_marked(written(tmp_path, "a.jsonl", lines))[0]) == [("iron", "Drug")]
    inclusive = {"start_idx": 2, "end_idx": 3, "type": "dru", "entity": "铁剂"}
    exclusive = {"start_idx": 2, "end_idx": 4, "type": "dru", "entity": "铁剂"}
    for told in (inclusive, exclusive):
        text = json.dumps([{"text": "口服铁剂。", "entities": [told]}], ensure_ascii=False)
        assert named(read_marked(written(tmp_path, "b.json", text))[0]) == [("铁剂", "dru")]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.bio", "iron B-Drug\nhelps\n", r"a\.bio:2: no unit with a tag"),
        ("a.bio", "iron X-Drug\n", r"a\.bio:1"),
        ("a.jsonl", "{", "not JSON"),
        ("a.jsonl", '{"text": 3, "entities": [{}]}', r"a\.jsonl:1: not a marked text"),
        (
            "a.jsonl",
            '{"text": "x", "entities": [{"start": 0, "end": 9, "type": "D"}]}',
            "0:9 is not a span of 1 characters",
        ),
        ("a.bio", "\n\n", "holds no text"),
    ],
)
def test_a_bad_file_names_its_line(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(MalformedSource, match=message):
        read_marked(written(tmp_path, name, text))


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(MalformedSource, match="cannot be read"):
        read_marked(tmp_path / "none.bio")


def test_units_are_words_numbers_marks_and_single_characters() -> None:
    text = "500mg铁剂, COVID-19"
    assert [text[a:b] for a, b in split_units(text)] == [
        "500", "mg", "铁", "剂", ",", "COVID", "-", "19",
    ]  # fmt: skip


@given(st.text(max_size=60))
def test_units_stand_in_order_and_hold_all_that_is_no_space(text: str) -> None:
    places = split_units(text)
    assert all(a[1] <= b[0] for a, b in pairwise(places))
    assert "".join(text[a:b] for a, b in places) == "".join(text.split())


def test_sentences_are_read_apart_and_a_long_one_in_windows_that_overlap() -> None:
    assert [len(part) for part in split_windows("One is here. 这是二。")] == [4, 4]
    long = split_windows(" ".join(["word"] * 300))
    assert [len(part) for part in long] == [160, 160, 60]
    assert long[0][120:] == long[1][:40]
    assert split_windows("  ") == []


@given(st.text(max_size=200))
def test_every_unit_stands_in_some_window(text: str) -> None:
    assert {place for part in split_windows(text) for place in part} == set(split_units(text))


@given(st.text(alphabet="ab 铁剂.", min_size=1, max_size=30), st.data())
def test_what_is_written_reads_back(
    tmp_path_factory: pytest.TempPathFactory, text: str, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    path = tmp_path_factory.mktemp("law") / "x.jsonl"
    told = [MarkedText(text, (MarkedEntity(start, end, "Drug"),)), MarkedText(text)]
    lines = (json.dumps(asdict(one), ensure_ascii=False) for one in told)
    path.write_text("\n".join(lines), encoding="utf-8")
    assert read_marked(path) == told


def test_equal_texts_stay_on_one_side_of_a_seeded_split() -> None:
    texts = [MarkedText(f"text {n % 10}") for n in range(40)]
    train, test = split_texts(texts, 0.3, 1)
    assert (len(train), len(test)) == (28, 12)
    assert not {x.text for x in train} & {x.text for x in test}
    assert split_texts(texts, 0.3, 1) == (train, test)


def test_types_come_by_frequency() -> None:
    entities = (MarkedEntity(0, 1, "B"), MarkedEntity(1, 2, "A"), MarkedEntity(2, 3, "A"))
    assert types_of([MarkedText("abc", entities)]) == ("A", "B")


def test_strict_f1_is_that_worked_by_hand() -> None:
    """Of three found two are gold's four: a wrong type and a wrong end do not count."""
    gold = [
        [MarkedEntity(0, 4, "Drug"), MarkedEntity(5, 9, "Disease")],
        [MarkedEntity(0, 2, "Drug")],
        [],
    ]
    found = [
        [MarkedEntity(0, 4, "Drug"), MarkedEntity(5, 8, "Disease")],
        [MarkedEntity(0, 2, "Disease")],
        [],
    ]
    scores = strict_scores(found, gold)
    assert (scores.micro.right, scores.micro.found, scores.micro.gold) == (1, 3, 3)
    assert scores.micro.f1 == pytest.approx(1 / 3)
    assert scores.types["Drug"].precision == 1.0
    assert scores.types["Drug"].recall == 0.5
    assert scores.types["Disease"].f1 == 0.0
    assert strict_scores([[]], [[]]).micro.f1 == 0.0
