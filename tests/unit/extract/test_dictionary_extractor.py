"""Without a model: names of the graph and of the texts, and which stand in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from osler.extract import names
from osler.extract.dictionary import DictionaryExtractor
from osler.extract.items import Entity, EntityRelation, ExtractedItems
from osler.graph.items import Name, SemanticType
from osler.graph.store import Graph
from osler.types import Language, Passage


def passage(text: str, title: str = "", language: Language = "en") -> Passage:
    return Passage("book:x#0", text, "book", title, language=language)


def read(*passages: Passage, graph: Graph | None = None) -> list[ExtractedItems]:
    with DictionaryExtractor(graph) as extractor:
        extractor.learn_names(iter(passages))
        return [extractor.read_passage(one) for one in passages]


def triples(found: ExtractedItems) -> list[tuple[str, str, str]]:
    items = [item for item in found.items if isinstance(item, EntityRelation)]
    return [(item.subject, item.predicate, item.object) for item in items]


def test_an_abbreviation_and_its_long_form_are_one_concept() -> None:
    text = "Chronic obstructive pulmonary disease (COPD) is common. COPD is treatable."
    (found,) = read(passage(text))
    long, short = (item for item in found.items if isinstance(item, Entity))
    assert (long.name, short.name) == ("Chronic obstructive pulmonary disease", "COPD")
    assert long.concepts == short.concepts == (names.text_concept_id(long.name),)


@pytest.mark.parametrize(
    ("short", "before", "long"),
    [
        ("CKD", "Patients with chronic kidney disease", "chronic kidney disease"),
        ("HT", "the 5-hydroxytryptamine", ""),
        ("ACE", "inhibitors of angiotensin-converting enzyme", "angiotensin-converting enzyme"),
        ("XYZ", "chronic kidney disease", ""),
        ("AF", "atrial fibrillation", "atrial fibrillation"),
    ],
)
def test_long_forms_by_hand(short: str, before: str, long: str) -> None:
    assert names.long_form(short, before) == long


def test_titles_definitions_and_other_names_are_learnt_in_both_languages() -> None:
    english = "Heart failure, also known as cardiac failure, is common. Asthma is a disease."
    learnt = list(names.introduced_names(passage(english, "Dyspnoea")))
    assert names.IntroducedName("Dyspnoea") in learnt
    assert names.IntroducedName("Heart failure", "cardiac failure") in learnt
    assert names.IntroducedName("Asthma") in learnt
    chinese = "糖尿病是一种代谢疾病，又称消渴症。该病是一种慢性病。"
    learnt = list(names.introduced_names(passage(chinese, "二甲双胍", "zh"), by_form=False))
    assert learnt == [
        names.IntroducedName("二甲双胍"),
        names.IntroducedName("糖尿病", "消渴症"),
        names.IntroducedName("糖尿病"),
    ]
    assert list(names.introduced_names(passage("This is a test.", "Introduction"))) == []


FORMS = [
    (
        "Amoxicillin treats acute otitis media; the patient stays in a hospital ward.",
        [("Amoxicillin", "Drug"), ("otitis", "Disease")],
    ),
    (
        "Chronic kidney disease raises blood pressure. A disease is a burden.",
        [("Chronic kidney disease", "Disease"), ("blood pressure", "ObservationTarget")],
    ),
    (
        "Laparoscopic cholecystectomy is an operation.",
        [("Laparoscopic cholecystectomy", "SurgicalProcedure")],
    ),
    ("Hepatitis B vaccine is given at birth.", [("Hepatitis B vaccine", "Vaccine")]),
    ("Diagnosis and prognosis; a coma; the program; patients.", []),
    (
        "阿莫西林用于治疗急性中耳炎，患者出现发热。",
        [("阿莫西林", "Drug"), ("急性中耳炎", "Disease"), ("发热", "Symptom")],
    ),
    ("疾病与检查。患者的表现。", []),
]


@pytest.mark.parametrize(("text", "wanted"), FORMS)
def test_names_are_known_by_their_form(text: str, wanted: list[tuple[str, str]]) -> None:
    said = [text[start:end] for start, end in names.find_names(text)]
    assert [(name, names.type_of(name)) for name in said] == wanted


def test_without_forms_only_what_texts_introduce_is_a_name() -> None:
    one = passage("Gastritis may lead to anaemia.")
    with DictionaryExtractor(forms=False) as plain, DictionaryExtractor() as full:
        for extractor in (plain, full):
            extractor.learn_names(iter([one]))
        assert plain.read_passage(one) == ExtractedItems()
        assert triples(full.read_passage(one)) == [("Gastritis", "is mentioned with", "anaemia")]
        assert [e.type for e in full.read_passage(one).items if isinstance(e, Entity)] == [
            "Disease"
        ] * 2
        assert plain.result_key(one) != full.result_key(one)


def test_names_of_one_sentence_are_mentioned_together_once() -> None:
    titles = [passage("x", title) for title in ("Smoking", "Asthma", "Cancer", "Emphysema")]
    text = "Smoking leads to cancer and asthma. Cancer is not caused by smoking. Emphysema is rare."
    found, *_ = read(passage(text), *titles)
    assert triples(found) == [
        ("Smoking", "is mentioned with", "cancer"),
        ("Smoking", "is mentioned with", "asthma"),
        ("cancer", "is mentioned with", "asthma"),
    ]
    for item in found.items:
        assert text[item.start : item.end].strip()


def test_chinese_names_are_mentioned_together_in_chinese() -> None:
    titles = [passage("x", t, "zh") for t in ("糖尿病", "二甲双胍")]
    found, *_ = read(passage("二甲双胍用于治疗糖尿病。", language="zh"), *titles)
    assert triples(found) == [("二甲双胍", "一同提及", "糖尿病")]


def test_the_graph_s_concepts_and_types_come_first(tmp_path: Path) -> None:
    with Graph.create(tmp_path) as graph:
        graph.add([Name("UMLS:C1", "asthma"), SemanticType("UMLS:C1", "Disease or Syndrome")])
        (found,) = read(passage("Asthma is a disease.", "Asthma"), graph=graph)
        (entity,) = (item for item in found.items if item.kind == "entity")
        assert isinstance(entity, Entity)
        assert (entity.concepts, entity.type) == (("UMLS:C1",), "Disease")


def test_a_greater_vocabulary_makes_all_keys_new_but_names_of_texts_do_not(tmp_path: Path) -> None:
    one = passage("Asthma.")
    with Graph.create(tmp_path) as graph:
        first = DictionaryExtractor(graph).result_key(one)
        graph.add([Name("TEXT:1", "asthma", "text/dictionary")])
        assert DictionaryExtractor(graph).result_key(one) == first
        graph.add([Name("UMLS:C1", "asthma", "MSH")])
        assert DictionaryExtractor(graph).result_key(one) != first


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("二甲双胍用于2型糖尿病（T2DM）。", "2型糖尿病"),
        ("给予β受体阻滞剂（BB）。", "β受体阻滞剂"),
        ("对乙酰氨基酚（APAP）可退热。", "对乙酰氨基酚"),
        ("患者合并非小细胞肺癌（NSCLC）。", "非小细胞肺癌"),
    ],
)
def test_a_chinese_name_keeps_its_figures_letters_and_what_makes_it_another(
    text: str, name: str
) -> None:
    """Types 1 and 2 of diabetes were one concept: both abbreviated "型糖尿病"."""
    [found] = names._find_abbreviations(text)
    assert found.name == name
