"""A model's replies become anchored items; what does not stand in the text is counted."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from osler.extract.items import (
    UNANCHORED,
    Entity,
    EntityRelation,
    ExtractedItems,
    KnowledgePoint,
    OutlineHeading,
    TextTable,
    medicine_schema,
)
from osler.extract.model import ModelExtractor
from osler.extract.reply_format import Entities, _written_values
from osler.types import Passage
from osler_lab.testing.scripted import ScriptedModel

TEXT = "Metformin 500 mg twice daily is used to treat Type-2 diabetes. Nausea is common."
PASSAGE = Passage("book:m#0", TEXT, "book", "Metformin")


def entity(name: str, type: str = "Drug", **more: Any) -> dict[str, Any]:
    empty = {"domain": "", "explain": "", "standard": "", "synonyms": []}
    return {"name": name, "type": type, **empty, **more}


def entities(*said: dict[str, Any]) -> str:
    return json.dumps({"entities": said})


def read(model: ScriptedModel, *units: str, passage: Passage = PASSAGE) -> ExtractedItems:
    wanted: Any = units
    (outcome,) = asyncio.run(ModelExtractor(model, wanted=wanted).extract([passage]))
    assert not outcome.failed, outcome.failed
    model.finish()
    return outcome.found


def test_a_name_is_kept_as_it_stands_in_the_text_and_another_is_dropped_and_counted() -> None:
    reply = entities(
        entity("metformin", synonyms=["Glucophage", "METFORMIN"], standard="Metformin"),
        entity("type 2 diabetes", "Disease", standard="diabetes mellitus type 2"),
        entity("insulin"),
        entity("Nausea", "Wish"),
        entity("Metformin"),
    )
    found = read(ScriptedModel([reply]), "entities")
    drug, disease = found.items
    assert drug == Entity("Metformin", "Drug", 0, 9, synonyms=("Glucophage",))
    assert isinstance(disease, Entity)
    assert TEXT[disease.start : disease.end] == disease.name == "Type-2 diabetes"
    assert disease.standard == "diabetes mellitus type 2"
    drops = {UNANCHORED: 1, "type not in the schema": 1, "said twice": 1}
    assert dict(found.drops) == drops


def test_a_relation_under_another_condition_is_another_relation() -> None:
    said = entities(entity("Metformin"), entity("Type-2 diabetes", "Disease"))
    ends = [
        ("Metformin", "is used to treat", "Type-2 diabetes", "adults 500 mg"),
        ("Metformin", "is used to treat", "Type-2 diabetes", "children 40 mg/kg"),
        ("metformin", "is used to treat", "type-2 diabetes", "Adults 500 mg"),
        ("Metformin", "is used to treat", "Type-2 diabetes", ""),
    ]
    keys = ("subject", "predicate", "object", "constraint")
    related = json.dumps({"relations": [dict(zip(keys, end, strict=True)) for end in ends]})
    found = read(ScriptedModel([said, related]), "relations")
    kept = [item for item in found.items if isinstance(item, EntityRelation)]
    assert [item.constraint for item in kept] == ["adults 500 mg", "children 40 mg/kg"]
    assert dict(found.drops) == {"said twice": 2}


def test_relations_stand_between_entities_that_were_found() -> None:
    said = entities(entity("Metformin"), entity("Type-2 diabetes", "Disease"), entity("Nausea"))
    ends = [
        ("metformin", "is used to treat", "type 2 diabetes", "twice daily"),
        ("Metformin", "is used to treat", "Type-2 diabetes", ""),
        ("Metformin 500 mg", "may lead to", "Nausea", ""),
        ("Metformin", "leads to", "coma", ""),
        ("twice daily", "comes before", "Nausea", ""),
        ("Nausea", "is", "nausea", ""),
    ]
    keys = ("subject", "predicate", "object", "constraint")
    related = json.dumps({"relations": [dict(zip(keys, end, strict=True)) for end in ends]})
    model = ScriptedModel([said, related])
    found = read(model, "relations")
    first, second = (item for item in found.items if item.kind == "relation")
    assert isinstance(first, EntityRelation)
    assert isinstance(second, EntityRelation)
    assert (first.subject, first.object) == ("Metformin", "Type-2 diabetes")
    assert TEXT[first.start : first.end].startswith("Metformin")
    assert TEXT[first.start : first.end].endswith("diabetes")
    assert first.constraint == "twice daily"
    assert second.subject == "Metformin 500 mg"
    assert dict(found.drops) == {
        "said twice": 1,
        UNANCHORED: 1,
        "end that is no entity": 1,
        "relation of a thing with itself": 1,
    }
    held = model.samplings[1].grammar
    assert held is not None
    assert not held.accepts(related)  # "coma" is no entity: the grammar does not let it be written


def test_without_two_entities_no_call_is_spent_on_relations() -> None:
    model = ScriptedModel([entities(entity("Metformin"))])
    assert len(read(model, "relations").items) == 1


def test_a_point_rests_on_the_core_entities_that_stand_in_the_text() -> None:
    point = {
        "name": "Metformin in diabetes",
        "type": "Declarative Knowledge",
        "content": "Metformin treats diabetes.",
        "structured": "",
        "domain": "Medicine > Endocrinology",
        "core": ["metformin", "type-2 diabetes", "glycogen"],
        "questions": ["What is metformin used for?", ""],
        "extended": ["Side effects"],
    }
    lost = {**point, "core": ["glycogen"]}
    found = read(ScriptedModel([json.dumps({"points": [point, lost]})]), "points")
    (kept,) = found.items
    assert isinstance(kept, KnowledgePoint)
    assert kept.type == "Declarative"
    assert kept.entities == ("Metformin", "Type-2 diabetes")
    assert kept.questions == ("What is metformin used for?",)
    assert dict(found.drops) == {
        UNANCHORED: 2,
        "point without a core entity in the text": 1,
    }


def test_tables_outlines_and_summaries_stand_in_the_text() -> None:
    text = "Dose | Days\n500 mg | 7\nThen stop. Nausea is common."
    passage = Passage("book:t#0", text, "book", "Doses")
    good = {"title": "Doses", "header": ["Dose", "Days"], "rows": [["500 mg", "7"]]}
    bad = {"title": "Doses", "header": ["Dose"], "rows": [["900 mg"]]}
    parts = [{"title": "When to stop", "begins": "then stop"}, {"title": "x", "begins": "never"}]
    found = read(
        ScriptedModel(
            [
                json.dumps({"tables": [good, bad]}),
                json.dumps({"parts": parts}),
                json.dumps({"about": ["nausea", "coma"], "text": "A dose for a week."}),
            ]
        ),
        *("tables", "outline", "summary"),
        passage=passage,
    )
    table, heading, summary = found.items
    assert isinstance(table, TextTable)
    assert table.rows == (("500 mg", "7"),)
    assert isinstance(heading, OutlineHeading)
    assert text[heading.start : heading.end] == "Then stop"
    assert summary.kind == "summary"
    assert summary.about == ("Nausea",)
    assert dict(found.drops) == {
        "table with a cell that is not in the text": 1,
        UNANCHORED: 2,
    }


def test_of_a_reply_that_was_cut_whole_entries_are_kept() -> None:
    whole = entities(entity("Metformin"), entity("Nausea", "Symptom"))
    found = read(ScriptedModel([whole[: whole.index("Symptom")]], cut={0}), "entities")
    assert [item.kind for item in found.items] == ["entity"]
    assert found.cut == 1


def test_a_fenced_reply_is_read_and_a_chunk_that_cannot_be_read_has_failed() -> None:
    fenced = f"```json\n{entities(entity('Metformin'))}\n```"
    assert len(read(ScriptedModel([fenced]), "entities").items) == 1
    model = ScriptedModel(["no JSON"] * 3)
    (outcome,) = asyncio.run(ModelExtractor(model, wanted=("entities",)).extract([PASSAGE]))
    assert "expected JSON of Entities" in outcome.failed
    assert outcome.usage.calls == 3
    assert outcome.found == ExtractedItems()


def test_a_chinese_chunk_is_asked_about_in_chinese() -> None:
    text = "二甲双胍用于治疗２型糖尿病。"
    passage = Passage("book:z#0", text, "book", "二甲双胍", language="zh")
    model = ScriptedModel([entities(entity("2型糖尿病", "Disease"))])
    (found,) = read(model, "entities", passage=passage).items
    assert isinstance(found, Entity)
    assert found.name == "２型糖尿病"  # as it stands in the text
    assert "疾病名称" in model.seen[0][-1].content


def test_a_key_changes_with_text_title_prompt_schema_and_model() -> None:
    base = ModelExtractor(ScriptedModel([]))
    other = medicine_schema().model_copy(update={"name": "mine"})
    keys = {
        base.result_key(PASSAGE),
        base.result_key(Passage("book:m#0", TEXT + " ", "book", "Metformin")),
        base.result_key(Passage("book:m#0", TEXT, "book", "Another")),
        base.result_key(Passage("book:m#0", TEXT, "book", "Metformin", language="zh")),
        ModelExtractor(ScriptedModel([]), other).result_key(PASSAGE),
        ModelExtractor(ScriptedModel([], name="b")).result_key(PASSAGE),
        ModelExtractor(ScriptedModel([]), wanted=("summary",)).result_key(PASSAGE),
    }
    assert len(keys) == 7
    assert base.result_key(Passage("other:m#7", TEXT, "other", "Metformin")) in keys


DRUG = entities(entity("metformin"))


@pytest.mark.parametrize(
    "reply",
    [
        f"Here are the entities:\n\n{DRUG}\n\nLet me know if you need more!",
        f"Sure!\n```json\n{DRUG}\n```\nHope this helps.",
        DRUG.replace("]}]}", "],},],}"),
        DRUG.replace('"', "'"),
        DRUG.replace('{"entities": ', '{\n  // the drugs\n  "entities": '),
        DRUG.removeprefix('{"entities": ').removesuffix("}"),
    ],
    ids=["prose", "fence and prose", "trailing commas", "single quotes", "comment", "bare list"],
)
def test_json_is_read_whatever_a_model_puts_around_it(reply: str) -> None:
    (drug,) = read(ScriptedModel([reply]), "entities").items
    assert drug == Entity("Metformin", "Drug", 0, 9)


def test_of_a_reply_that_was_cut_behind_prose_the_complete_entries_are_kept() -> None:
    whole = entities(entity("metformin"), entity("Nausea", "Symptom"))
    reply = f"Here they are: {whole[: whole.index('Nausea') + 3]}"
    found = read(ScriptedModel([reply], cut={0}), "entities")
    assert [item.name for item in found.items if isinstance(item, Entity)] == ["Metformin"]


def test_a_list_that_does_not_close_is_not_the_empty_one_of_an_entry() -> None:
    """Else the chunk is stored as read, with nothing in it."""
    whole = '{"name": "metformin", "synonyms": []}'
    broken = f'[{whole}, {{"name": "cough", "explain": "the "dry" one", "synonyms": []}}]'
    values = list(_written_values(Entities, broken))
    assert '{"entities": []}' not in values
    assert '{"entities": []}' in list(_written_values(Entities, "None: [ ] {}"))
