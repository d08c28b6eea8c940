"""What a reply may copy from a chunk, and that whatever a grammar lets through is read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, get_args

import pytest
from derivations import grammar_texts
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from osler.errors import ModelMissing
from osler.extract import anchor, reply_format
from osler.extract.anchor import Anchors
from osler.extract.items import UNANCHORED, Unit, medicine_schema
from osler.extract.model import ModelExtractor
from osler.llm.core.base import Completion, Message, Sampling
from osler.llm.core.grammar import Grammar
from osler.llm.local.gguf_files import default_gguf
from osler.llm.local.model import LlamaCpp
from osler.types import Language, Passage
from osler_lab.testing.scripted import ScriptedModel

ENGLISH = "Metformin treats type 2 diabetes. Nausea (mild) is common.\nDose | Days\n500 mg | 7"
CHINESE = "二甲双胍用于治疗2型糖尿病。常见恶心和腹泻。\n剂量 | 天数\n500毫克 | 7天"
PASSAGES = [
    Passage("book:m#0", ENGLISH, "book", "Metformin"),
    Passage("book:z#0", CHINESE, "book", "二甲双胍", language="zh"),
]
UNITS: tuple[Unit, ...] = get_args(Unit)


def among(passage: Passage) -> reply_format.CopyChoices:
    names = ("二甲双胍", "糖尿病") if passage.language == "zh" else ("Metformin", "Nausea")
    return replace(reply_format.copy_choices(passage.text, passage.language), names=names)


Form = tuple[str, type[Any], Grammar]


def forms(passage: Passage) -> Iterator[Form]:
    language, held = passage.language, among(passage)
    for unit in UNITS:
        yield (
            f"{unit} {language}",
            reply_format.WIRES[unit],
            reply_format.unit_grammar(unit, medicine_schema(), held),
        )
        free = reply_format.unit_grammar(unit, medicine_schema(), reply_format.CopyChoices())
        yield f"free {unit} {language}", reply_format.WIRES[unit], free


FORMS = [form for passage in PASSAGES for form in forms(passage)]
IDS = [name for name, *_ in FORMS]


def test_phrases_lie_between_marks_and_begin_and_end_with_a_word_of_weight() -> None:
    found = anchor.copyable_phrases(
        "The risk of stroke, and of heart failure, is high (see 4).", "en"
    )
    assert found == (
        *("risk", "risk of stroke", "stroke", "heart", "heart failure", "failure"),
        *("high", "see", "see 4"),
    )
    assert "糖尿病" in anchor.copyable_phrases("2型糖尿病的治疗", "zh")
    assert not any("的" in phrase for phrase in anchor.copyable_phrases("2型糖尿病的治疗", "zh"))


def test_openings_are_the_first_words_of_sentences_and_cells_those_of_tables() -> None:
    assert anchor.sentence_openings(ENGLISH)[:2] == (
        "Metformin treats type 2 diabetes.",
        "Nausea (mild) is common.",
    )
    assert anchor.table_cells(ENGLISH) == ("Dose", "Days", "500 mg", "7")
    assert anchor.table_cells("No table here.") == ()


@given(st.text(max_size=200), st.sampled_from(["en", "zh"]))
def test_what_may_be_copied_stands_in_the_text(text: str, language: Language) -> None:
    at = Anchors(text)
    for phrase in (
        *anchor.copyable_phrases(text, language),
        *anchor.sentence_openings(text),
        *anchor.table_cells(text),
    ):
        assert phrase in text
        assert at.first_span(phrase) is not None


@pytest.mark.parametrize(("name", "form", "grammar"), FORMS, ids=IDS)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_whatever_a_grammar_lets_through_is_read_whole_or_cut(
    name: str, form: type[Any], grammar: Grammar, data: st.DataObject
) -> None:
    text = data.draw(grammar_texts(grammar))
    value, was_cut = reply_format.read_reply(form, Completion(text))
    assert not was_cut
    assert isinstance(value, form)
    place = data.draw(st.integers(0, len(text) - 1))
    part, was_cut = reply_format.read_reply(form, Completion(text[:place], finish="length"))
    assert was_cut
    assert isinstance(part, form)


@pytest.mark.parametrize(("name", "form", "grammar"), FORMS, ids=IDS)
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_of_a_reply_held_to_the_chunk_no_name_is_dropped(
    name: str, form: type[Any], grammar: Grammar, data: st.DataObject
) -> None:
    if "free" in name:
        return
    unit: Any = name.split()[0]
    passage = PASSAGES[name.endswith("zh")]
    replies = [data.draw(grammar_texts(grammar))]
    if unit == "relations":
        replies.insert(0, _both(passage))
    model = ScriptedModel(replies)
    extractor = ModelExtractor(model, wanted=(unit,))
    (outcome,) = asyncio.run(extractor.extract([passage]))
    assert not outcome.failed
    assert UNANCHORED not in dict(outcome.found.drops)


def _both(passage: Passage) -> str:
    empty = {"domain": "", "explain": "", "standard": "", "synonyms": []}
    said = [{"name": name, "type": "Drug", **empty} for name in among(passage).names]
    return json.dumps({"entities": said})


def test_a_chunk_without_words_or_tables_costs_no_call() -> None:
    model = ScriptedModel([])
    wanted: Any = UNITS
    bare = Passage("book:n#0", "12 + 7 = 19", "book", "")
    (outcome,) = asyncio.run(ModelExtractor(model, wanted=wanted).extract([bare]))
    assert outcome.usage.calls == 0
    plain = Passage("book:p#0", "Nausea is common.", "book", "")
    (outcome,) = asyncio.run(ModelExtractor(model, wanted=("tables",)).extract([plain]))
    assert outcome.usage.calls == 0


def test_of_a_summary_that_was_cut_whole_sentences_are_kept() -> None:
    text = '{"about":["Nausea"],"text":"Nausea is common. It goes aw'
    value, was_cut = reply_format.read_reply(
        reply_format.SummaryWire, Completion(text, finish="length")
    )
    assert was_cut
    assert value.text == "Nausea is common."


@pytest.fixture(scope="module")
def packaged() -> LlamaCpp:
    try:
        return LlamaCpp(default_gguf(), name="packaged", context=2048)
    except ModelMissing as error:
        pytest.skip(f"the packaged model is not there: {error}")


@pytest.mark.model
@pytest.mark.parametrize("unit", UNITS)
async def test_the_packaged_model_is_held_to_the_grammar_of_each_unit(
    packaged: LlamaCpp, unit: Unit
) -> None:
    """Cut early: that a grammar compiles and that its beginning is read is what is asked."""
    form: type[Any] = reply_format.WIRES[unit]
    for passage in PASSAGES:
        held = reply_format.unit_grammar(unit, medicine_schema(), among(passage))
        asked = Message("user", passage.text)  # the prompts have tests of their own
        short = Sampling(temperature=0.0, max_tokens=24, top=0, grammar=held)
        reply = await packaged.complete([asked], short)
        assert held.accepts_prefix(reply.text)
        value, _ = reply_format.read_reply(form, reply)
        assert isinstance(value, form)
