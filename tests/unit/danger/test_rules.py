"""Rules: all of, one of, none of, within a distance; and a clear error for what is no rule."""

from __future__ import annotations

import pytest

from osler.danger.notice import ANYWHERE, find_danger, region_names, regional_contacts
from osler.danger.rules import DangerRules, packaged_rules, parse_rules
from osler.errors import BadConfig

FILE = """
[lists.fall]
en = ["fell", "fall"]
but_not = ["fell ill"]
[lists.head]
en = ["head"]
zh = ["头"]
[lists.neck]
en = ["neck"]
[lists.study]
en = ["study"]
[lists.me]
en = ["my"]
[look_alikes."a study"]
any = ["study"]
unless = ["me"]
[kinds.emergency]
none = ["a study"]
[[rules]]
name = "a fall on the head"
kind = "emergency"
all = ["fall", "head | neck"]
within = 3
[[rules]]
name = "two heads"
kind = "self-harm"
all = ["head", "head"]
within = 2
"""


@pytest.fixture(scope="module")
def rules() -> DangerRules:
    return parse_rules(FILE, "own.toml")


def names(rules: DangerRules, text: str) -> list[str]:
    return [rule.name for rule in rules.match(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("he fell on his head", ["a fall on the head"]),
        ("his neck hurt in a fall", ["a fall on the head"]),
        ("he fell and then much later hit his head", []),  # too far
        ("he fell", []),
        ("he fell ill, head down", []),  # `but_not`
        ("a study of who fell on the head", []),  # a look-alike
        ("a study of my mum: she fell on the head", ["a fall on the head"]),  # unless
        ("head to head", ["two heads"]),
        ("head", []),  # one phrase is not two
    ],
)
def test_a_rule_applies_where_all_its_entries_are_near(
    rules: DangerRules, text: str, found: list[str]
) -> None:
    assert names(rules, text) == found


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('kind = "self-harm"', 'kind = "harm"', 'own.toml: rule "two heads": kind: '),
        ("within = 3", "within = 0", 'rule "a fall on the head": within: '),
        ("within = 3", "", 'rule "a fall on the head": within: Field required'),
        ("within = 3", "within = 3\nnear = 4", 'rule "a fall on the head": near: Extra inputs'),
        (
            '"head | neck"',
            '"head | nek"',
            "rule \"a fall on the head\": all: there is no list 'nek'",
        ),
        ('unless = ["me"]', 'unless = ["we"]', "look-alike \"a study\": there is no list 'we'"),
        ('none = ["a study"]', 'none = ["x"]', "kind emergency: none: there is no look-alike 'x'"),
        ('en = ["neck"]', "", "lists.neck: has no phrases"),
        ('en = ["neck"]', 'en = ["... neck"]', "list neck: '... neck' begins or ends with ..."),
        ("[lists.fall]", "[lists.fall", "not TOML"),
        ('name = "two heads"', "", "rule number 2: name: Field required"),
    ],
)
def test_a_mistake_is_told_by_file_rule_and_field(before: str, after: str, said: str) -> None:
    with pytest.raises(BadConfig) as told:
        parse_rules(FILE.replace(before, after, 1), "own.toml")
    assert said in str(told.value)
    assert str(told.value).startswith("own.toml: ")
    assert told.value.fix


def test_every_region_names_whom_to_call_in_both_languages() -> None:
    assert {ANYWHERE, "us", "gb", "cn", "eu"} <= set(region_names())
    for region in region_names():
        contacts = regional_contacts(region)
        for language in ("en", "zh"):
            notice = find_danger(
                ["I swallowed thirty sleeping pills because I want to die"],
                packaged_rules(),
                contacts,
                language,
            )
            assert notice is not None
            assert notice.kinds == ("emergency", "self-harm")
            assert contacts.emergency[language] in notice.text
            assert contacts.crisis[language] in notice.text
            assert "{" not in notice.text


def test_numbers_of_one_s_own_take_the_place_of_the_region_s() -> None:
    contacts = regional_contacts("us", emergency="2222", crisis="Sister Mary", note="Ward 5.")
    notice = find_danger(["how many paracetamol to die"], packaged_rules(), contacts, "en")
    assert notice is not None
    assert "2222" in notice.text
    assert "Sister Mary" in notice.text
    assert notice.text.endswith(" Ward 5.")
    assert "911" not in notice.text
    assert "988" not in notice.text


def test_no_danger_is_no_notice() -> None:
    contacts = regional_contacts(ANYWHERE)
    assert find_danger(["What is angina?", ""], packaged_rules(), contacts, "en") is None
