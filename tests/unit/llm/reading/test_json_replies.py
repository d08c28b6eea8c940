"""JSON is found wherever a model puts it, and however it writes it."""

import pytest

from osler.llm.reading.json_replies import json_in, json_values, read_json, read_list

GOOD = {"name": "aspirin", "doses": [1, 2]}

FOUND = {
    "alone": '{"name": "aspirin", "doses": [1, 2]}',
    "prose before and after": 'Sure! {"name": "aspirin", "doses": [1, 2]} Hope it helps!',
    "fenced": '```json\n{"name": "aspirin", "doses": [1, 2]}\n```',
    "fenced after prose": 'Here:\n\n```json\n{"name": "aspirin", "doses": [1, 2]}\n```\nDone.',
    "trailing commas": '{"name": "aspirin", "doses": [1, 2,],}',
    "comments": '{\n  // the drug\n  "name": "aspirin", /* mg */ "doses": [1, 2]\n}',
    "single quotes": "{'name': 'aspirin', 'doses': [1, 2]}",
    "bare keys": "{name: 'aspirin', doses: [1, 2]}",
    "braces in prose before": r'In \boxed{x} {see below}: {"name": "aspirin", "doses": [1, 2]}',
    "an apostrophe before": 'It\'s this one: {"name": "aspirin", "doses": [1, 2]}',
    "an example before": '{"name": "…"} is the form. {"name": "aspirin", "doses": [1, 2]}',
    "thoughts with a quote open": 'The "drug: {"name": "aspirin", "doses": [1, 2]}',
}


@pytest.mark.parametrize("manner", FOUND)
def test_json_is_found_in_every_manner(manner: str) -> None:
    assert json_in(FOUND[manner]) == GOOD


@pytest.mark.parametrize("text", ["", "no brace", "{oops", "{", "{}}{"])
def test_what_is_no_json_is_none(text: str) -> None:
    assert json_in(text) in (None, {})


def test_apostrophes_inside_single_quotes_are_text() -> None:
    assert json_in("{'name': 'Crohn's disease', 'of': 'gut'}") == {
        "name": "Crohn's disease",
        "of": "gut",
    }


def test_lists_and_all_values_are_told_apart() -> None:
    assert json_in("first ['a', 'b',] then", "[") == ["a", "b"]
    assert list(json_values('{"a": 1} and {"b": {"c": 2}}')) == [{"a": 1}, {"b": {"c": 2}}]


def test_python_writes_true_and_none_in_its_own_way() -> None:
    assert read_json("{'a': True, 'b': None}") == {"a": True, "b": None}


@pytest.mark.parametrize("text", ["[" * 50_000, "{" * 50_000, "{'" * 20_000])
def test_endless_openings_end(text: str) -> None:
    assert json_in(text, text[0]) is None


def test_a_bullet_is_no_part_of_an_item_and_a_number_of_its_name_is() -> None:
    lines = "1. 25-hydroxyvitamin D\n2) 5-HT3 antagonists\n- 6-mercaptopurine\n* 2,3-DPG\n1.5 mg"
    items = ["25-hydroxyvitamin D", "5-HT3 antagonists", "6-mercaptopurine", "2,3-DPG", "1.5 mg"]
    assert read_list(lines, 9) == items
    assert read_list("•铁剂\n2、叶酸", 9) == ["铁剂", "叶酸"]


def test_surrogates_are_joined() -> None:
    assert json_in(r'{"a": ["\ud800"]}') == {"a": ["\ufffd"]}
