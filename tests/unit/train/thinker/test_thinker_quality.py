"""The data evaluation framework against samples that people have labelled (App. 10)."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from osler.errors import BadRun, MalformedOutput, MalformedSource
from osler.llm.core.base import Message
from osler.trace import Run
from osler_lab.testing.scripted import KeyedModel
from osler_lab.train.thinker.quality import (
    DIMENSIONS,
    FRAMEWORK,
    Inspection,
    InspectorChain,
    ModelInspector,
    QualityItem,
    aspects_grammar,
    parse_aspects,
    read_items,
    shorten_text,
)
from osler_lab.train.thinker.rules import RuleInspector, inspect_by_rules
from osler_lab.train.thinker.tables import ALL, validate_judge, verdict_shares

LABELLED = Path(__file__).parent / "labelled.jsonl"
"""Six good samples and twenty-six with one fault each, English and Chinese; written for this."""
NEED_A_READER = {
    "bad-scorn-of-people",
    "bad-beside-the-point",
    "bad-contradicts",
    "bad-rude",
}
"""What no rule can see."""
ITEMS = {item.id: item for item in read_items(LABELLED)}
SECURITY, ACCURACY = FRAMEWORK[:2]


def passing(*bad: str) -> dict[str, Sequence[str]]:
    """A judge's replies by dimension; `bad` as "logic.flow"."""
    replies: dict[str, Sequence[str]] = {}
    for dimension in FRAMEWORK:
        told = ", ".join(
            f"{name} {'fail' if f'{dimension.name}.{name}' in bad else 'pass'}"
            for name in dimension.aspects
        )
        for asked in ("one dimension only: ", "仅从一个维度评判下面的样本："):
            replies[f"{asked}{dimension.name}"] = [f"So it is. <aspects>{told}</aspects>"]
    return replies


def test_the_framework_has_the_paper_s_six_dimensions_and_twenty_three_aspects() -> None:
    assert DIMENSIONS == ("security", "accuracy", "relevance", "logic", "fluency", "emotion")
    assert [len(d.aspects) for d in FRAMEWORK] == [4, 7, 3, 3, 3, 3]


@pytest.mark.parametrize("id", [id for id in ITEMS if id.startswith("good-")])
def test_rules_condemn_no_good_sample(id: str) -> None:
    assert inspect_by_rules(ITEMS[id]).reasons == ()


@pytest.mark.parametrize("id", sorted(set(ITEMS) - NEED_A_READER))
def test_rules_find_what_is_mechanical(id: str) -> None:
    item = ITEMS[id]
    found = inspect_by_rules(item)
    assert {name for name, good in item.labels.items() if not good} <= set(found.bad)


def test_the_rules_against_the_labels_are_told_as_in_tables_12_and_13() -> None:
    items = list(ITEMS.values())
    found = [inspect_by_rules(item) for item in items]
    made = validate_judge(items, found)
    good = {(line.domain, line.dimension): line for line in made.good}
    bad = {(line.domain, line.dimension): line for line in made.bad}
    # Rules condemn; they do not find anything good, and what they leave open is not called so.
    assert (good["medical", ALL].right, good["medical", ALL].wrong) == (0, 4)
    assert verdict_shares(found).good == 0
    assert verdict_shares(found).undecided[ALL] == sum(one.good is None for one in found)
    assert (bad["medical", ALL].right, bad["medical", ALL].wrong) == (14, 2)
    assert bad["general", "security"].accuracy == 0.5
    held = {one.dimension: one for one in made.held}
    assert held["accuracy"].kappa == 1.0
    assert held[ALL].agreement.precision == 1.0
    assert [bad[domain, ALL].accuracy for domain in ("general", "medical")] == [0.8, 0.875]


def test_kappa_and_accuracy_are_those_worked_by_hand() -> None:
    """Of 4 good samples 3 are called good, of 2 bad ones 1 is called bad: observed 4/6; by
    chance (4·4 + 2·2)/36 = 5/9; kappa (2/3 - 5/9)/(1 - 5/9) = 1/4."""
    items = [item(str(n), labels=dict.fromkeys(DIMENSIONS, n < 4)) for n in range(6)]
    found = [verdict(one.id, bad=one.id in ("3", "4")) for one in items]
    made = validate_judge(items, found)
    (logic,) = [one for one in made.held if one.dimension == "logic"]
    assert logic.kappa == pytest.approx(0.25)
    assert logic.agreement.accuracy == pytest.approx(4 / 6)
    lines = [*made.good, *made.bad]
    assert [(x.right, x.wrong) for x in lines if x.dimension == "logic"] == [(3, 1), (1, 1)]


def item(id: str, labels: dict[str, bool] | None = None) -> QualityItem:
    return QualityItem(
        id, (Message("user", "?"), Message("assistant", "!")), "?", labels=labels or {}
    )


def verdict(id: str, *, bad: bool) -> Inspection:
    aspects = {d.name: dict.fromkeys(d.aspects, True) for d in FRAMEWORK}
    if bad:
        aspects["logic"]["flow"] = False
    return Inspection(id, "hand", aspects)


def test_a_dimension_is_bad_with_one_bad_aspect_and_good_with_all_good() -> None:
    sound = verdict("1", bad=False)
    assert (sound.good, sound.bad) == (True, ())
    unsound = verdict("2", bad=True)
    assert (unsound.good, unsound.bad) == (False, ("logic",))
    open_ = Inspection("3", "hand", {"logic": {"flow": True, "reasoning": None, "world": True}})
    assert open_.dimension_verdict("logic") is None
    assert open_.good is None


async def test_a_model_is_asked_once_for_each_dimension() -> None:
    model, run = KeyedModel(passing("logic.reasoning")), Run()
    found = await ModelInspector(model).inspect(ITEMS["bad-contradicts"], run)
    assert found.bad == ("logic",)
    assert found.reasons == ("logic.reasoning: So it is.",)
    assert run.usage.calls == 6


async def test_a_verdict_that_cannot_be_read_is_not_decided() -> None:
    replies = passing()
    replies["one dimension only: emotion"] = ["A fine sample."]
    replies["could not be read"] = ["Still fine."]
    found = await ModelInspector(KeyedModel(replies)).inspect(ITEMS["good-A"], Run())
    assert found.dimension_verdict("emotion") is None
    assert found.dimension_verdict("logic") is True
    assert found.good is None


async def test_what_the_rules_condemn_costs_no_call() -> None:
    model = KeyedModel(passing())
    both = InspectorChain((RuleInspector(), ModelInspector(model)))
    assert both.name == "rules+keyed"
    assert (await both.inspect(ITEMS["bad-letter"], Run())).bad == ("accuracy",)
    assert model.asked == []
    assert (await both.inspect(ITEMS["good-C"], Run())).good is True
    assert len(model.asked) == 6


async def test_rules_and_a_reader_together_find_every_labelled_fault() -> None:
    seen = {
        "people from his village": "security.content",
        "worked on a ship": "relevance.topic",
        "aspirin and not": "logic.reasoning",
        "这么简单": "emotion.manners",
    }
    items = list(ITEMS.values())
    found = []
    for one in items:
        faults = [aspect for words, aspect in seen.items() if words in one.transcript]
        judge = InspectorChain((RuleInspector(), ModelInspector(KeyedModel(passing(*faults)))))
        found.append(await judge.inspect(one, Run()))
    made = validate_judge(items, found)
    assert all(line.accuracy in (1.0, None) for line in made.bad)


def test_a_golden_verdict_reads_and_others_do_not() -> None:
    told = "<aspects>content pass, privacy FAIL, risk: pass, consequences pass</aspects>"
    assert parse_aspects(told, SECURITY) == {
        "content": True,
        "privacy": False,
        "risk": True,
        "consequences": True,
    }
    for wrong in ("content pass", told.replace("risk: pass", ""), f"{told[:-10]}, risk fail"):
        with pytest.raises(MalformedOutput, match="pass or fail each"):
            parse_aspects(wrong, SECURITY)


@pytest.mark.parametrize("dimension", FRAMEWORK, ids=lambda d: d.name)
def test_what_the_grammar_lets_through_is_read(dimension: object) -> None:
    chosen = next(d for d in FRAMEWORK if d is dimension)
    told = ", ".join(f"{name} fail" for name in chosen.aspects)
    reply = f"Everything is wrong.\n<aspects>{told}</aspects>"
    assert aspects_grammar(chosen).accepts(reply)
    assert set(parse_aspects(reply, chosen).values()) == {False}


def test_of_a_long_transcript_beginning_and_end_are_shown() -> None:
    text = shorten_text("a" * 50 + "b" * 50, 20)
    assert text == "a" * 10 + "\n[…]\n" + "b" * 10


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "x.jsonl:1: not a sample"),
        ('{"messages": []}', "turns with text"),
        ('{"messages": [{"role": "user"}]}', "content"),
        ('{"messages": [{"role": "user", "content": "?"}], "labels": ["taste"]}', "taste"),
        ('{"messages": [{"role": "user", "content": "?"}], "labels": 3}', "labels are"),
        ("", "holds no sample"),
    ],
)
def test_a_line_that_is_no_sample_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(line, encoding="utf-8")
    with pytest.raises(MalformedSource, match=message):
        read_items(path)


def test_labels_may_be_an_object_and_a_question_may_be_untold(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "为什么？"}, {"role": "assistant", "content": "不知道。"}]
    line = json.dumps({"messages": said, "labels": {"logic": False}})
    (tmp_path / "data.jsonl").write_text(line, encoding="utf-8")
    (one,) = read_items(tmp_path)
    assert (one.question, one.language, one.labels) == ("为什么？", "zh", {"logic": False})


def test_without_labels_there_is_nothing_to_validate() -> None:
    with pytest.raises(BadRun, match="no sample is labelled"):
        validate_judge([item("1")], [verdict("1", bad=False)])
    with pytest.raises(ValueError, match="no samples"):
        verdict_shares(empty())


def empty() -> Sequence[Inspection]:
    return []
