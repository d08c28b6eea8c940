"""The paper's schema, and what is said of a bad one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from osler.errors import BadConfig
from osler.extract import items
from osler.extract.reply_format import WIRES, CopyChoices, unit_grammar

OWN = """
name = "ward"
predicates = ["is given for"]
[[entity]]
name = "Medicine"
en = "what is given"
[[entity]]
name = "Illness"
"""


def test_the_packaged_schema_has_table_15_and_the_five_kinds_of_table_17() -> None:
    found = items.medicine_schema()
    assert len(found.types) == 24
    assert (found.types[0], found.types[-1]) == ("Disease", "ObservationTarget")
    kinds = [kind.name for kind in found.knowledge]
    assert kinds == ["Declarative", "Case-Based", "Factual", "Procedural", "Inferential"]
    assert all(kind.en and kind.zh for kind in (*found.entity, *found.knowledge))


def test_a_schema_of_one_s_own_holds_types_and_predicates(tmp_path: Path) -> None:
    (tmp_path / "ward.toml").write_text(OWN, encoding="utf-8")
    found = items.load_schema(tmp_path / "ward.toml")
    assert found.types == ("Medicine", "Illness")
    assert found.knowledge == items.medicine_schema().knowledge
    assert found.entity[0].describe_in("zh") == "Medicine：what is given"
    (tmp_path / "ward.json").write_text(found.model_dump_json(), encoding="utf-8")
    assert items.load_schema(tmp_path / "ward.json").identity == found.identity
    held = unit_grammar("relations", found, CopyChoices(names=("a", "b")))
    assert held.accepts(
        '{"relations":[{"subject":"a","predicate":"is given for","object":"b","constraint":""}]}'
    )
    assert not held.accepts(
        '{"relations":[{"subject":"a","predicate":"cures","object":"b","constraint":""}]}'
    )


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.toml", "name = 'x'", "entity: Field required"),
        ("a.toml", "name = 'x'\nentity = []", "entity: Tuple should have at least 1 item"),
        ("a.toml", OWN + '[[entity]]\nname = "Illness"', "Illness occurs twice"),
        ("a.toml", OWN + 'colour = "red"', "entity.1.colour: Extra inputs"),
        ("a.toml", OWN + '[[entity]]\nname = "two\\nlines"', "must be one line"),
        ("a.toml", "name =", "Invalid value"),
        ("a.json", "{", "Expecting property name"),
        ("a.yaml", "name: x", "neither .toml nor .json"),
    ],
)
def test_a_bad_schema_is_told_with_file_and_place(
    tmp_path: Path, name: str, text: str, told: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(BadConfig, match=name) as caught:
        items.load_schema(tmp_path / name)
    assert told in caught.value.message
    assert caught.value.fix


def test_a_schema_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="cannot be read"):
        items.load_schema(tmp_path / "none.toml")


@pytest.mark.parametrize("unit", WIRES)
def test_every_unit_has_a_grammar_that_its_own_json_passes(unit: str) -> None:
    empty = {"about": ["x"], "text": "y"} if unit == "summary" else None
    wire = WIRES[unit]  # type: ignore[index]
    value = empty or {next(iter(wire.model_fields)): []}
    text = json.dumps(value, separators=(",", ":"))
    held = unit_grammar(unit, items.medicine_schema(), CopyChoices(("x",), ("x",), ("x",), ("x",)))  # type: ignore[arg-type]
    assert held.accepts(text)
    assert wire.model_validate_json(text)
    assert not held.accepts("{}")
