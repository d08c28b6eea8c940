"""The classifier beside the rules: what it was fitted to, what it adds, and its switch."""

from __future__ import annotations

import hashlib
import json
import zlib
from importlib.resources import files
from math import sqrt

import danger
import pytest

from osler.app.config import Settings
from osler.app.danger import danger_notice
from osler.danger.classifier import BUCKETS, hash_features, packaged_classifier
from osler.danger.phrases import Spelling
from osler.types import Question

FOLDER = files("osler.danger")
CARD = json.loads(FOLDER.joinpath("classifier.json").read_text(encoding="utf-8"))
UNSEEN = list(danger.read_cases(["ninth"]))
# It was written, and committed, before the weights that are measured on it.
UNSEEN_HASH = "bc5ef2e169cadc43b01a445d111110e1565bb3cf85d757f4d2ff0d277400edf9"
NO_RULE = {
    "en": "I have stopped drinking water, hopefully it won't take long",
    "zh": "我不喝水了，希望快一点",
}


def test_what_it_is_measured_on_was_never_fitted_to() -> None:
    file = danger.CASES / "ninth.jsonl"
    assert hashlib.sha256(file.read_bytes()).hexdigest() == UNSEEN_HASH
    assert "ninth" not in {name.split(":")[0] for name in CARD["fitted to"]}
    fitted = {case.text for case in danger.read_cases(danger.TRAINED_ON)}
    assert fitted.isdisjoint(case.text for case in UNSEEN)


def test_the_weights_are_those_of_the_card_and_small() -> None:
    weights = FOLDER.joinpath("classifier.bin").read_bytes()
    assert hashlib.sha256(weights).hexdigest() == CARD["weights"]
    assert len(weights) <= 300_000
    assert len(packaged_classifier().weights) == 2 * BUCKETS


def test_features_are_hashed_by_groups_of_length_one() -> None:
    def places(group: str, *features: str) -> set[int]:
        return {zlib.crc32(f"{group}{feature}".encode()) % BUCKETS for feature in features}

    values = hash_features("He fell, he", Spelling())
    words = places("w", "he", "fell", "he fell", "fell he")
    letters = places("l", " he", "he ", " he ", " fe", "fel", "ell", "ll ")
    letters |= places("l", " fel", "fell", "ell ", " fell", "fell ")
    assert values.keys() == words | letters
    assert {values[place] for place in words} == {1 / sqrt(4)}
    assert {values[place] for place in letters} == {1 / sqrt(12)}
    assert hash_features("12片", Spelling()).keys() - places("w", "12") - places(
        "l", " 12", "12 "
    ) == (places("c", "\u3007", "片", "\u3007片") | places("l", " 12 "))
    assert hash_features("", Spelling()) == {}


@pytest.mark.parametrize("label", ["emergency", "self-harm"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_of_unseen_questions_more_than_the_rules_see_are_seen(label: str, language: str) -> None:
    own = [case for case in UNSEEN if (case.label, case.language) == (label, language)]
    rules = sum(danger.is_right(case, danger.seen_by_rules(case.text)) for case in own)
    both = sum(danger.is_right(case, danger.seen_by_both(case.text)) for case in own)
    assert both >= rules + 4


def test_few_look_alikes_are_taken_for_danger_by_it_alone() -> None:
    calm = [case for case in UNSEEN if case.label == danger.NONE]
    seen = sum(bool(packaged_classifier().find_signs(case.text)) for case in calm)
    assert seen <= 0.05 * len(calm)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_it_speaks_where_no_rule_does_and_can_be_switched_off(language: str) -> None:
    asked = Question("q", NO_RULE[language])
    on = Settings.model_validate({})
    off = Settings.model_validate({"danger": {"classifier": "off"}})
    assert danger.seen_by_rules(asked.text) == frozenset()
    notice = danger_notice(on, asked)
    assert notice is not None
    assert notice.kinds == ("self-harm",)
    assert notice.rules == ("classifier: self-harm",)
    assert danger_notice(off, asked) is None
    assert danger_notice(off, Question("q", "how many paracetamol to die")) is not None


def test_any_text_has_a_score_and_the_same_one_twice() -> None:
    for text in ("", "?!", "\ud800", "a" * 100_000, "胸" * 5_000, "chest pain " * 9_999):
        assert packaged_classifier().score(text) == packaged_classifier().score(text)
