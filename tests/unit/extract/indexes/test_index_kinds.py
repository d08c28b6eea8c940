"""Under which texts each index holds a chunk: what a model wrote, else what the text shows."""

from __future__ import annotations

import pytest

from osler.extract.indexes import Kind, entry_texts, written_tables
from osler.extract.items import (
    ChunkSummary,
    Entity,
    EntityRelation,
    Item,
    KnowledgePoint,
    OutlineHeading,
    TextTable,
)
from osler.types import Locator, Passage

TEXT = "Anaemia is common. Iron is used to treat anaemia. It is taken with water."
PASSAGE = Passage("book:a#0", TEXT, "book", "Anaemia", Locator("Care > Iron"))
IRON, ANAEMIA = Entity("Iron", "Drug", 19, 23), Entity("anaemia", "Disease", 41, 48)
STATED = EntityRelation("Iron", "is used to treat", "anaemia", 19, 48, constraint="orally")
TOGETHER = EntityRelation("Iron", "is mentioned with", "water", 19, 72)
POINT = KnowledgePoint(
    "Iron in anaemia",
    "Factual",
    "Iron is used to treat it.",
    19,
    48,
    structured="iron -> anaemia",
    entities=("Iron",),
    questions=("What is iron for?",),
)
FROM_A_MODEL: list[Item] = [
    IRON,
    ANAEMIA,
    STATED,
    TOGETHER,
    POINT,
    OutlineHeading("Doses", 49, 51),
    ChunkSummary("Iron treats anaemia.", ("Iron",), 19, 23),
    TextTable("Doses", ("drug", "dose"), (("iron", "60 mg"),), 0, 5),
]


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        (
            "knowledge_unit",
            [
                "Iron in anaemia: Iron is used to treat it. iron -> anaemia",
                "Iron is used to treat anaemia orally",
            ],
        ),
        ("atomic_query", ["What is iron for?"]),
        ("outline", ["Anaemia > Doses"]),
        ("summary", ["Anaemia: Iron treats anaemia."]),
        ("table", ["Doses; drug: iron, dose: 60 mg"]),
    ],
)
def test_what_a_model_wrote_is_what_an_index_holds(kind: Kind, wanted: list[str]) -> None:
    assert entry_texts(kind, PASSAGE, FROM_A_MODEL) == wanted


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        (
            "knowledge_unit",
            [
                "Anaemia: Iron is used to treat anaemia.",
                "Iron is used to treat anaemia orally",
            ],
        ),
        (
            "atomic_query",
            ["Iron is used to treat what?", "What is used to treat anaemia?"],
        ),
        ("outline", ["Anaemia > Care > Iron"]),
        ("summary", ["Anaemia: Anaemia is common."]),
        ("table", []),
    ],
)
def test_without_a_model_the_text_says_what_it_can(kind: Kind, wanted: list[str]) -> None:
    found = entry_texts(kind, PASSAGE, [IRON, ANAEMIA, STATED, TOGETHER])
    assert [entry.strip() for entry in found] == wanted


def test_chinese_questions_have_no_blanks() -> None:
    passage = Passage("book:b#0", "吸烟可导致哮喘。", "book", "哮喘", language="zh")
    stated = EntityRelation("吸烟", "可以导致", "哮喘", 0, 7)
    assert entry_texts("atomic_query", passage, [stated]) == [
        "吸烟可以导致什么？",
        "什么可以导致哮喘？",
    ]
    assert entry_texts("knowledge_unit", passage, [stated]) == ["吸烟可以导致哮喘"]
    assert entry_texts("summary", passage, []) == ["哮喘: 吸烟可导致哮喘。"]


def test_a_table_in_the_text_is_read_with_its_headings() -> None:
    text = "Doses:\n| drug | dose |\n|---|---|\n| iron | 60 mg |\n| zinc | 15 mg |\nEnd."
    (table,) = written_tables(text)
    assert table.header == ("drug", "dose")
    assert table.rows == (("iron", "60 mg"), ("zinc", "15 mg"))
    assert text[table.start : table.end].startswith("| drug")
    assert text[table.start : table.end].endswith("15 mg |")
    passage = Passage("book:c#0", text, "book", "Doses")
    assert entry_texts("table", passage, []) == ["drug: iron, dose: 60 mg; drug: zinc, dose: 15 mg"]


def test_single_line_with_a_bar_is_no_table() -> None:
    assert written_tables("either | or") == []
    assert written_tables("a | b\n\nc | d") == []
