"""Labels of drugs by name: which is shown, which stand beside it, and what stays closed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from osler.errors import UnknownPassage
from osler.kb.base import KnowledgeBase
from osler.retrieve.labels import find_labels, ingredient_of, shared_headings
from osler.sources.catalogue import DRUG_LABEL
from osler.types import Locator, Passage


def passages(
    id: str, title: str, day: str, *sections: tuple[str, str], source: str = "label"
) -> list[Passage]:
    said = [("Product", f"Brand: X\nEffective: {day}"), *sections]
    return [
        Passage(
            f"{source}:{id}#{n}", text, source, title, Locator(section, kind=DRUG_LABEL, code=id)
        )
        for n, (section, text) in enumerate(said)
    ]


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.create(tmp_path_factory.mktemp("labels") / "kb") as kb:
        kb.put(
            passages(
                "m1", "Metformin hydrochloride (Glucophage)", "2019-05-01", ("Overdosage", "A.")
            )
        )
        kb.put(
            passages(
                "m2",
                "Metformin hydrochloride",
                "2021-05-01",
                ("Use in specific populations > Pregnancy", "B."),
                ("Contraindications", "C."),
                ("Storage at home", "D."),
            )
        )
        kb.put(passages("c1", "Sitagliptin and metformin hydrochloride (Janumet)", "2024-01-01"))
        kb.put(passages("p1", "Acetaminophen (Tylenol)", "2020-01-01", ("Warnings", "E.")))
        kb.put(passages("x1", "Metformin", "2025-01-01", source="closed"))
        kb.put([Passage("book:m#0", "Metformin.", "book", "Metformin", Locator(kind="chapter"))])
        yield kb


def is_open(source: str, document: str) -> bool:
    return source != "closed"


@pytest.mark.parametrize("name", ["metformin", "Glucophage", "m2"])
def test_the_latest_label_of_the_drug_alone_is_shown(kb: KnowledgeBase, name: str) -> None:
    assert find_labels(kb, name, is_open).shown.document == "label:m2"


def test_the_others_of_the_name_are_told_and_the_closed_are_not(kb: KnowledgeBase) -> None:
    found = find_labels(kb, "metformin", is_open)
    assert [one.document for one in found.others] == ["label:m1", "label:c1"]
    assert find_labels(kb, "metformin", lambda source, _: True).shown.document == "closed:x1"


def test_another_name_of_the_ingredient_finds_it(kb: KnowledgeBase) -> None:
    assert find_labels(kb, "paracetamol", is_open).shown.title == "Acetaminophen (Tylenol)"


@pytest.mark.parametrize("name", ["warfarin", "met", "book"])
def test_what_no_label_names_is_said(kb: KnowledgeBase, name: str) -> None:
    with pytest.raises(UnknownPassage, match="no label names"):
        find_labels(kb, name, is_open)


def test_headings_stand_in_reading_order_and_can_be_chosen(kb: KnowledgeBase) -> None:
    found = [find_labels(kb, name, is_open) for name in ("metformin", "tylenol")]
    order = ["Product", "Contraindications", "Warnings", "Pregnancy", "Storage at home"]
    assert shared_headings(found) == order
    assert shared_headings(found, ["preg", "WARN"]) == ["Warnings", "Pregnancy"]
    assert [one.text for one in found[0].sections["Pregnancy"]] == ["B."]


@pytest.mark.parametrize(
    ("title", "ingredient"),
    [
        ("Metoprolol succinate (Toprol-XL)", "metoprolol"),
        ("Metoprolol tartrate", "metoprolol"),
        ("Potassium chloride", "potassium chloride"),
        ("Amlodipine besylate and valsartan (Exforge)", "amlodipine and valsartan"),
    ],
)
def test_salts_of_an_ingredient_stand_together(title: str, ingredient: str) -> None:
    assert ingredient_of(title) == ingredient
