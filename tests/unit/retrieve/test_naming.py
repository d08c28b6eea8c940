"""What a question is about: its names and telling words, in any spelling."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osler.graph.items import Name
from osler.graph.store import Graph
from osler.kb.search.sparse import stem_terms
from osler.retrieve.entity_names import (
    GraphNames,
    ReadText,
    defined_abbreviations,
    packaged_names,
)
from osler.retrieve.naming import find_respelt, telling_words


@pytest.mark.parametrize(
    ("word", "said", "found"),
    [
        ("diarrhoea", ["diarrhea", "fever"], "diarrhea"),
        ("tretment", ["asthma"], ""),
        ("metfromin", ["metformin"], "metformin"),
        ("microcephaly", ["macrocephaly"], ""),
        ("aspirin", ["aspirin"], "aspirin"),
        ("prednisone", ["prednisolone"], ""),
    ],
)
def test_a_word_is_found_in_another_spelling(word: str, said: list[str], found: str) -> None:
    assert find_respelt(word, said) == found


@pytest.mark.parametrize("question", ["What are its side effects?", "怎么治疗？", "", "Which one?"])
def test_generic_words_tell_no_subject(question: str) -> None:
    assert telling_words(question) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hemorrhoids", "A haemorrhoid is tied off."),
        ("Crohn's disease", "Crohn disease affects the bowel."),
        ("acute myocardial infarction", "In infarction, myocardial, acute: aspirin."),
        ("non-Hodgkin", "NonHodgkin lymphoma arises from lymphocytes."),
        ("liver metastases", "A liver metastasis may be removed."),
        ("AIDS", "AIDS is late HIV."),
    ],
)
def test_a_name_is_found_in_other_spellings_and_orders(name: str, text: str) -> None:
    assert ReadText(text).has_name(name)
    assert not ReadText("Acute pain; hearing aids.").has_name(name)


def test_abbreviations_are_compared_in_their_own_case() -> None:
    assert not packaged_names().find_entities("Do hearing aids help?")


def test_the_concept_graph_of_the_user_adds_its_names(tmp_path: Path) -> None:
    with Graph.create(tmp_path) as graph:
        graph.add([Name("X:1", "Zorblax syndrome"), Name("X:1", "佐布拉克斯综合征")])
        (found,) = GraphNames(graph).find_entities("佐布拉克斯综合征如何治疗？")
    assert "Zorblax syndrome" in found.names


def test_the_packaged_names_are_unique_and_each_has_a_kind() -> None:
    groups = packaged_names().groups
    names = [name.casefold() for group in groups for name in group.names]
    assert len(names) == len(set(names))
    assert {group.kind for group in groups} == {"drug", "disease", "test"}
    assert all(name == name.strip() and name for group in groups for name in group.names)


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("安达唐什么时候吃？", "达格列净"),
        ("诺和锐怎么打？", "门冬胰岛素"),
        ("希罗达的副作用", "卡培他滨"),
        ("达菲林多久打一次？", "曲普瑞林"),
        ("普利类为什么引起咳嗽？", "依那普利"),
        ("拉肚子怎么办？", "腹泻"),
        ("脑梗能恢复吗？", "脑梗死"),
    ],
)
def test_chinese_brands_classes_and_lay_words_have_the_names_of_texts(
    question: str, name: str
) -> None:
    (entity,) = packaged_names().find_entities(question)
    assert name in entity.names


@pytest.mark.parametrize("text", ["现代文明病", "过敏反应停止了", "疼痛来得时间短", "完全可利用"])
def test_brands_that_ordinary_chinese_contains_are_no_names(text: str) -> None:
    assert packaged_names().find_entities(text) == []


def test_definitions_are_read_as_schwartz_and_hearst_do() -> None:
    texts = [
        "Chronic kidney disease (CKD) is common. The World Health Organization（WHO）said so.",
        "This occurs (see below) and (2) not. Tumour necrosis factor-alpha (TNF-a).",
    ]
    found = defined_abbreviations(texts)
    assert found["CKD"] == "Chronic kidney disease"
    assert found["WHO"] == "World Health Organization"
    assert "see below" not in found
    assert "2" not in found


@given(st.text(max_size=200))
def test_any_text_has_its_definitions_read(text: str) -> None:
    defined_abbreviations([text])
    assert not ReadText(text).has_name("")


def test_stems_are_the_same_alone_together_and_again() -> None:
    terms = ["running", "1.5", "9.2", "diabetes", "diabetic", "...", "runs", "Sjögren"]
    alone = {term: stem for term in terms for stem in stem_terms([term]).values()}
    assert stem_terms(terms) == alone == stem_terms([*terms, *terms])
    assert alone["running"] == alone["runs"]
    assert (alone["1.5"], alone["9.2"]) == ("5", "2")
    assert "..." not in alone  # no word
