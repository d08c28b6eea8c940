"""What the files on law name is there; what they leave out says why."""

import tomllib
from typing import Any

import pytest
from supply_chain import ROOT

from osler.settings import Settings

LAW = ROOT / "docs" / "law"
PARTS = {1: 4, 2: 4, 3: 2, 4: 4, 5: 2, 6: 4, 7: 5, 8: 4, 9: 2}
"""How many source attributes of a predictive intervention each paragraph of (iv)(B) has: 31."""
ROMAN = ("i", "ii", "iii", "iv", "v")


def rows_of(file: str, kind: str) -> list[dict[str, Any]]:
    document = tomllib.loads((LAW / file).read_text(encoding="utf-8"))
    assert list(document) == [kind]
    rows: list[dict[str, Any]] = document[kind]
    return rows


def test_all_31_attributes_are_answered_or_say_why_not() -> None:
    rows = rows_of("hti-1.toml", "attribute")
    wanted = [f"({part})({ROMAN[n]})" for part, count in PARTS.items() for n in range(count)]
    assert len(wanted) == 31
    assert [row["cite"] for row in rows] == wanted
    assert [row["cite"] for row in rows if ("answer" in row) == ("none" in row)] == []
    assert [row["cite"] for row in rows if "answer" in row and not row["see"]] == []
    assert [name for row in rows for name in row.get("see", ()) if not (ROOT / name).exists()] == []


def test_each_duty_of_the_ai_act_has_a_field_a_setting_or_a_gap() -> None:
    rows = rows_of("ai-act.toml", "duty")
    cites = [row["cite"] for row in rows]
    assert len(set(cites)) == len(cites)
    articles = {cite.partition("(")[0] for cite in cites}
    assert articles == {"12", "19", "26"}
    assert [row["cite"] for row in rows if not row.keys() & {"fields", "settings", "gap"}] == []


def test_each_setting_that_the_ai_act_s_file_names_exists() -> None:
    settings = Settings().model_dump()
    named = {one for row in rows_of("ai-act.toml", "duty") for one in row.get("settings", ())}
    assert named
    assert [one for one in named if one.split(".")[1] not in settings[one.split(".")[0]]] == []


@pytest.mark.parametrize("file", ["hti-1.toml", "ai-act.toml"])
def test_each_file_says_that_it_is_a_paraphrase_and_no_advice(file: str) -> None:
    text = (LAW / file).read_text(encoding="utf-8").casefold()
    assert "paraphrased" in text
    assert "not legal advice" in text.replace("\n# ", " ")
