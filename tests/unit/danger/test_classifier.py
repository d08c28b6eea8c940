"""The classifier beside the rules: what it was fitted to, what it adds, and its switch."""

from __future__ import annotations

import hashlib
import importlib.resources
import json
import zlib
from collections.abc import Collection
from math import sqrt
from pathlib import Path

import danger
import pytest

from osler.build.danger import danger_notice, question_meaning
from osler.danger.notice import (
    BUCKETS,
    KINDS,
    _says_too_little,
    hash_features,
    packaged_classifier,
)
from osler.danger.phrases import Spelling
from osler.settings import Settings
from osler.types import DangerKind, Question

FOLDER = importlib.resources.files("osler.danger")
CARD = json.loads(FOLDER.joinpath("classifier.json").read_text(encoding="utf-8"))
UNSEEN = list(danger.read_cases(danger.UNSEEN))
# Written, and committed, before the weights that are measured on them.
UNSEEN_HASHES = {
    "thirty_first": "7727a5a925cc3970918663db0db7a697726f0aa2be7a6057de28f72182041d30",
    "thirty_second": "83b8874164143d946c15988ec8338206fa4de1d8f5ea1931e99496f7634d0076",
    "thirty_third": "bde536aabcea695813e3d78ea80882af4822986b31e1c6cdbb8f5cf4308ca760",
    "thirty_fourth": "061f14dc3ec550c2baa1f0cfac583fb52422e59c3abfc0889ea70965ac9e39b8",
}
NO_RULE = {
    "en": "I have stopped drinking water, hopefully it won't take long",
    "zh": "我不喝水了，希望快一点",
}


def test_what_it_is_measured_on_was_never_fitted_to() -> None:
    files = {part: (danger.CASES / f"{part}.jsonl").read_bytes() for part in danger.UNSEEN}
    assert {part: hashlib.sha256(text).hexdigest() for part, text in files.items()} == UNSEEN_HASHES
    assert UNSEEN_HASHES.keys().isdisjoint(name.split(":")[0] for name in CARD["fitted to"])
    fitted = {case.text for case in danger.read_cases(danger.TRAINED_ON)}
    assert fitted.isdisjoint(case.text for case in UNSEEN)


def test_the_weights_are_those_of_the_card_and_small() -> None:
    weights = FOLDER.joinpath("classifier.bin").read_bytes()
    assert hashlib.sha256(weights).hexdigest() == CARD["weights"]
    assert len(weights) <= 300_000
    pieces = FOLDER.joinpath("meaning.npz").read_bytes()
    assert hashlib.sha256(pieces).hexdigest() == CARD["weights of pieces"]
    assert len(pieces) <= 1_000_000
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


def share_seen(
    label: str, language: str, seen: danger.Seen, parts: Collection[str] = danger.UNSEEN
) -> float:
    own = [
        case
        for case in UNSEEN
        if (case.label, case.language) == (label, language) and case.part in parts
    ]
    return sum(bool(seen(c.text)) and label in (danger.NONE, *seen(c.text)) for c in own) / len(own)


# Short and hurried, by a hand each for both languages: English 126 of 128 emergencies and all 7 of
# self-harm, Chinese 106 of 107 and 7 (research/log/safety.md).
@pytest.mark.parametrize(("label", "least"), [("emergency", 0.98), ("self-harm", 0.98)])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_of_unseen_questions_most_are_seen(label: str, least: float, language: str) -> None:
    seen = share_seen(label, language, danger.seen_by_both)
    assert seen >= least > share_seen(label, language, danger.seen_by_rules)


# The last two sets have two to ten words a text ("car engine choking on startup fix").
@pytest.mark.parametrize(("parts", "most"), [(danger.UNSEEN[:2], 0.03), (danger.UNSEEN[2:], 0.1)])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_few_look_alikes_are_taken_for_danger(
    language: str, parts: Collection[str], most: float
) -> None:
    assert share_seen(danger.NONE, language, danger.seen_by_both, parts) <= most


def test_a_set_left_out_is_seen_better_with_an_encoder_than_by_words() -> None:
    """By the card: each figure is of sets by other hands than those that were trained on."""
    for language, least in (("en", 0.92), ("zh", 0.93)):
        read = CARD["sets left out, with an encoder"][language]
        assert read["recall"] >= least > CARD["sets left out, by words"][language]["recall"]
        assert read["false alarms"] <= 0.03
        assert read["false alarms, plain questions"] <= 0.02


CALM = (
    "how long is a insulin pen good for once its been started",
    "the iron pills upset my tummy. Would it be just as good to swallow them every other day?",
    "Been on fluoxetine since the spring and I feel like myself again. How much longer should I"
    " stay on it?",
)


@pytest.mark.parametrize("text", CALM)
def test_everyday_questions_about_medicines_have_no_notice(text: str) -> None:
    assert danger.seen_by_both(text) == danger.seen_by_words(text) == frozenset()


GRAVE = (
    "my son swallowed a button battery, he seems fine, can he eat",
    "dad's mouth is drooping, can he take aspirin first",
    "wile we wait for the ambulence, shoud i give my wife an asprin? looks like a stroke",
    "我爸中风了嘴歪，能先吃阿司匹林吗",
    "我爸像是心梗，120还在路上，先吃什么",
)


@pytest.mark.parametrize("text", GRAVE)
def test_who_asks_for_a_drug_first_has_the_notice(text: str) -> None:
    assert danger.seen_by_both(text) == {"emergency"}


IN_A_FEW_WORDS = (
    "baby choking what do I do",
    "choking on a grape, what now",
    "wife having a stroke what do I do",
    "man having a fit on the train",
    "宝宝噎住了怎么办",
)


@pytest.mark.parametrize("text", IN_A_FEW_WORDS)
def test_an_emergency_in_a_few_words_has_the_notice(text: str) -> None:
    assert text not in {case.text for case in danger.read_cases(danger.TRAINED_ON)}
    assert danger.seen_by_both(text) == {"emergency"}


def test_a_fever_and_its_dose_are_none() -> None:
    assert danger.seen_by_both("孩子发烧39度吃多少布洛芬") == frozenset()


def test_a_meaning_moves_the_odds_and_without_one_words_alone_count() -> None:
    weigh = packaged_classifier().weigh_signs
    calm = "扑热息痛的剂量是多少？"
    assert weigh(calm, {}, overrules=True, meaning=lambda _: None) == {}
    assert weigh(calm, {}, overrules=True, meaning=lambda _: (20.0, 0.0)) == {
        "classifier: emergency": "emergency"
    }


def test_encoders_that_are_not_there_or_not_ours_leave_the_rules_and_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OSLER_CACHE", str(tmp_path))
    meaning = question_meaning(Settings())
    assert meaning is not None
    assert meaning("chest pain") is None
    assert danger_notice(Settings(), Question("q", NO_RULE["en"])) is not None
    theirs = {"embedder": {"kind": "openai", "url": "http://127.0.0.1:9/v1", "name": "theirs"}}
    assert question_meaning(Settings.model_validate(theirs)) is None


# None of them is trained on; the last three differ from the others by what was meant.
ACCIDENTS = (
    "I burned my hand on the stove",
    "My daughter burned her hand on the stove",
    "I burned myself on a pan",
    "I hit my head on the cupboard door",
    "I cut my hand chopping onions",
)
ON_PURPOSE = (
    "I burned my hand on purpose",
    "I cut my thigh with a razor again",
    "I burned my arm with a cigarette so I would feel something",
)


def test_an_accident_at_home_is_no_self_harm_and_harm_on_purpose_is() -> None:
    fitted = {case.text for case in danger.read_cases(danger.TRAINED_ON)}
    assert fitted.isdisjoint((*ACCIDENTS, *ON_PURPOSE))
    assert [text for text in ACCIDENTS if danger.seen_by_both(text)] == []
    assert all("self-harm" in danger.seen_by_both(text) for text in ON_PURPOSE)


def test_a_packaged_rule_is_silenced_where_danger_is_unlikely_and_a_hospital_s_is_not() -> None:
    calm = "Where should weedkiller and medicines be kept so that visiting kids can't reach them?"
    assert danger.seen_by_rules(calm)
    signs: dict[str, DangerKind] = {"a rule": "emergency"}
    weigh = packaged_classifier().weigh_signs
    assert weigh(calm, signs, overrules=True) == {}
    assert weigh(calm, signs, overrules=False) == signs
    many = {**signs, "a second rule": "emergency", "a third rule": "emergency"}
    assert weigh(calm, many, overrules=True) == {}
    own = importlib.resources.files("osler.danger").joinpath("rules.toml")
    with importlib.resources.as_file(own) as path:
        hospital = Settings.model_validate({"danger": {"rules": str(path)}})
        assert danger_notice(hospital, Question("q", calm)) is not None
    assert danger_notice(Settings.model_validate({}), Question("q", calm)) is None


def test_a_rule_that_the_words_agree_with_counts_whatever_the_encoder_says() -> None:
    text = "My throat swells after a wasp sting and I cannot breathe. Which drug is given first?"
    weigh = packaged_classifier().weigh_signs
    signs: dict[str, DangerKind] = {"a rule": "emergency"}

    def meaning(_: str) -> tuple[float, float]:
        return -9.0, -9.0

    assert weigh(text, signs, overrules=True, meaning=meaning) == signs
    assert weigh(text, {}, overrules=True, meaning=meaning) == {}
    assert weigh("When is a throat swab taken?", signs, overrules=True, meaning=meaning) == {}


def test_both_kinds_are_named_where_neither_is_less_likely() -> None:
    kinds = {"emergency", "self-harm"}
    found = "found my daughter unconscious beside empty pill packets and a goodbye note"
    assert danger.seen_by_both(found) == danger.seen_by_words(found) == kinds
    text = "daughter took all her pills and left a note, wont wake up"
    weigh = packaged_classifier().weigh_signs
    assert set(weigh(text, {}, overrules=True).values()) == kinds
    assert set(weigh(text, {"a rule": "emergency"}, overrules=True).values()) == kinds


@pytest.mark.parametrize("language", ["en", "zh"])
def test_it_speaks_where_no_rule_does_and_can_be_switched_off(language: str) -> None:
    asked = Question("q", NO_RULE[language])
    on = Settings.model_validate({})
    off = Settings.model_validate({"danger": {"classifier": "off"}})
    assert danger.seen_by_rules(asked.text) == frozenset()
    notice = danger_notice(on, asked)
    assert notice is not None
    assert "self-harm" in notice.kinds
    assert notice.rules == tuple(f"classifier: {kind}" for kind in notice.kinds)
    assert danger_notice(off, asked) is None
    assert danger_notice(off, Question("q", "how many paracetamol to die")) is not None


def test_any_text_has_a_score_and_the_same_one_twice() -> None:
    for text in ("", "?!", "\ud800", "a" * 100_000, "胸" * 5_000, "chest pain " * 9_999):
        assert packaged_classifier().score(text) == packaged_classifier().score(text)


def test_a_fragment_that_adds_to_the_question_before_is_read_by_rules_alone() -> None:
    def kinds(fragment: str) -> tuple[str, ...]:
        notice = danger_notice(Settings(), Question("q", fragment), ["How is cystitis treated?"])
        return () if notice is None else notice.kinds

    figures = ("BMI of 80 kg and 1.75 m?", "T 39.5")
    for fragment in (
        "And in pregnancy?",
        "And with neutropenia?",
        "What about after surgery?",
        *figures,
    ):
        assert kinds(fragment) == ()
    assert kinds("And with crushing chest pain?") == ("emergency",)


def test_no_labelled_text_is_such_a_fragment() -> None:
    """So that reading them by rules alone loses none of those in danger."""
    cases = [
        json.loads(line)
        for path in sorted(danger.CASES.glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    texts = [case["text"] for case in cases if case["label"] != danger.NONE]
    assert len(texts) > 3000
    assert not [text for text in texts if _says_too_little(text)]


def test_a_text_without_pieces_is_read_by_words() -> None:
    meaning = question_meaning(Settings())
    assert meaning is not None
    assert meaning("") is None
    told = meaning("爸爸倒在地上，没有呼吸了")
    assert told is not None
    assert len(told) == len(KINDS)
    assert told[0] > max(0, told[1])


def test_an_english_question_that_is_calm_by_its_words_is_not_encoded() -> None:
    encoded: list[str] = []

    def meaning(text: str) -> None:
        encoded.append(text)

    weigh = packaged_classifier().weigh_signs
    calm = "Which vaccines are recommended for healthy adults over sixty years of age?"
    assert weigh(calm, {}, overrules=True, meaning=meaning) == {}
    assert encoded == []
    weigh(NO_RULE["en"], {}, overrules=True, meaning=meaning)
    weigh("成年人要打哪些疫苗？", {}, overrules=True, meaning=meaning)
    assert len(encoded) == 2


PLAIN = {
    "en": "What is the usual dose of vitamin D in winter, and which foods have much of it? ",
    "zh": "成年人冬天每天应该补充多少维生素D，哪些食物里含量比较多？",
}


@pytest.mark.parametrize("before", [0, 1, 3])
@pytest.mark.parametrize(
    ("language", "said", "kinds"),
    [
        ("en", "My father collapsed and is not breathing.", {"emergency"}),
        ("en", "I have crushing chest pain and I cannot breathe.", {"emergency"}),
        ("en", "I took 40 paracetamol tablets and want to die.", {"emergency", "self-harm"}),
        ("en", "Is that safe? I took 40 paracetamol tablets and want to die.", {"self-harm"}),
        ("zh", "我爸突然胸口剧痛，喘不上气。", {"emergency"}),
        ("zh", "我吃了一整瓶安眠药，不想活了。", {"emergency", "self-harm"}),
    ],
)
def test_a_grave_sentence_is_seen_among_plain_ones(
    language: str, said: str, kinds: set[str], before: int
) -> None:
    asked = PLAIN[language] * before + said
    notice = danger_notice(Settings(), Question("q", asked, language=language))  # type: ignore[arg-type]
    assert notice is not None
    assert kinds & {*notice.kinds}
    assert danger_notice(Settings(), Question("q", PLAIN[language] * 4, language=language)) is None  # type: ignore[arg-type]
