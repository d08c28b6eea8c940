"""Other words for what a question names."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osler.retrieve.lexicon import MEANS, Lexicon, packaged_lexicon
from osler.text import read_packaged

LEXICON = packaged_lexicon()
ROWS = [
    tuple(line.split("\t"))
    for line in read_packaged("osler.retrieve", "lexicon.tsv").splitlines()
    if line and not line.startswith("#")
]
SAID = st.sampled_from(sorted(LEXICON.means))
TYPED = st.text(max_size=200) | st.lists(SAID | st.text(max_size=8), max_size=12).map(" ".join)


def drugs_in(text: str, lexicon: Lexicon = LEXICON) -> list[str]:
    return [text[start:end] for start, end in lexicon.find_drugs(text)]


def names_in(text: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(text[one.start : one.end], one.names) for one in LEXICON.find_names(text)]


@pytest.mark.parametrize(
    ("text", "said", "name"),
    [
        ("Can I take Advil?", "Advil", "ibuprofen"),
        ("after a heart attack", "heart attack", "myocardial infarction"),
        ("Does it affect the pill?", "the pill", "combined oral contraceptive"),
        ("my cholesterol pill", "cholesterol pill", "statin"),
        ("What is the eGFR limit?", "eGFR", "estimated glomerular filtration rate"),
        ("Tylenol’s dose", "Tylenol’s", "paracetamol"),
        ("WATER TABLETS", "WATER TABLETS", "diuretic"),
        ("Two Advils a day", "Advils", "ibuprofen"),
        ("how long DAPT after STEMI", "DAPT", "dual antiplatelet therapy"),
        ("MDR TB regimen", "MDR TB", "multidrug-resistant tuberculosis"),
    ],
)
def test_a_brand_a_lay_word_and_an_abbreviation_have_the_names_of_texts(
    text: str, said: str, name: str
) -> None:
    ((written, names),) = [one for one in names_in(text) if one[0] == said]
    assert written == said
    assert name in names


def test_the_longest_entry_is_meant() -> None:
    (found,) = names_in("He had a mild heart attack.")
    assert found[0] == "mild heart attack"


@pytest.mark.parametrize(
    "text", ["", "Which one is better?", "糖尿病怎么治疗？", "? ? !", "his as"]
)
def test_a_text_without_entries_has_no_names(text: str) -> None:
    assert names_in(text) == []


def test_members_of_a_class_know_it_by_any_spelling() -> None:
    assert "statin" in LEXICON.find_classes(["Atorvastatin"])
    assert LEXICON.find_classes(["atorvastatin", "simvastatin"]).count("statin") == 1
    assert LEXICON.find_classes(["tea", ""]) == ()


def test_drugs_are_found_as_a_text_writes_them_and_only_as_whole_words() -> None:
    assert drugs_in("IBUPROFEN with Furosemide") == ["IBUPROFEN", "Furosemide"]
    assert drugs_in("ibuprofenlike") == []


def test_a_small_lexicon_reads_only_its_own() -> None:
    own = Lexicon({"spuds": ("potato",)}, {}, frozenset({"potato"}), 1)
    assert [one.names for one in own.find_names("spuds and Advil")] == [("potato",)]
    assert drugs_in("A potato a day", own) == ["potato"]


# The table


def test_each_row_has_a_kind_what_is_said_and_what_it_means() -> None:
    assert {kind for kind, *_ in ROWS} == {*MEANS, "class"}
    for row in ROWS:
        assert len(row) == 3, row
        kind, said, meant = row
        assert said == said.strip() != ""
        assert all(name == name.strip() != "" for name in meant.split("; ")), row
        if kind in MEANS:
            assert said == said.casefold(), row


def test_no_row_says_a_thing_of_itself_or_twice() -> None:
    assert len({(kind, said) for kind, said, _ in ROWS}) == len(ROWS)
    for _, said, meant in ROWS:
        names = [name.casefold() for name in meant.split("; ")]
        assert said not in names
        assert len(set(names)) == len(names), said


@pytest.mark.parametrize(("kind", "said", "meant"), [row for row in ROWS if row[0] in MEANS][::37])
def test_what_a_row_says_is_found(kind: str, said: str, meant: str) -> None:
    found = [names for written, names in names_in(f"Is {said} bad?") if written == said]
    assert found, (kind, said)
    assert set(meant.split("; ")) <= set(found[0])


def test_every_row_s_words_are_found_where_they_are_typed() -> None:
    lost = [
        said
        for kind, said, _ in ROWS
        if kind in MEANS and said not in dict(names_in(f"Is {said}?"))
    ]
    assert lost == []


# Laws


@given(TYPED)
def test_names_found_do_not_overlap_and_stand_in_order(text: str) -> None:
    found = LEXICON.find_names(text)
    ends = [0]
    for one in found:
        assert ends[-1] <= one.start < one.end <= len(text)
        assert one.names
        ends.append(one.end)


@given(TYPED)
def test_case_makes_no_difference_to_what_is_meant(text: str) -> None:
    if text.isascii():
        lower, upper = LEXICON.find_names(text.lower()), LEXICON.find_names(text.upper())
        assert lower == upper


@given(TYPED)
def test_what_is_found_is_found_alone_as_well(text: str) -> None:
    for one in LEXICON.find_names(text):
        assert [names for _, names in names_in(text[one.start : one.end])] == [one.names]


@given(TYPED)
def test_drugs_found_are_drugs_and_do_not_overlap(text: str) -> None:
    spans = LEXICON.find_drugs(text)
    assert all(one[1] <= after[0] for one, after in pairwise(spans))
    assert all(one.casefold() in LEXICON.drugs for one in drugs_in(text) if one.isascii())
