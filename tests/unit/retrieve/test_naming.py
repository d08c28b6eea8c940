"""Which passages speak of what a question is about."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osler.graph.items import Name
from osler.graph.store import Graph
from osler.kb.search.lexicon import stem_terms
from osler.retrieve.entity_names import (
    GraphNames,
    ReadText,
    defined_abbreviations,
    packaged_names,
)
from osler.retrieve.naming import NAMED, NamingRelevance

# Rarity in a knowledge base where these words are common, and all others rare.
COMMON = {"pregnancy": 2.0, "common": 1.0, "best": 1.0, "children": 1.5}


def names_subject(question: str, *texts: str, naming: NamingRelevance | None = None) -> list[bool]:
    naming = naming or NamingRelevance(
        lambda terms: {term: COMMON.get(term, 5.0) for term in terms}
    )
    scores = naming.score_texts(question, texts)
    assert all(0 <= score <= 1 for score in scores)
    return [score >= NAMED for score in scores]


OTHER_DRUGS = {
    "二甲双胍的常见不良反应是什么？": (
        ("二甲双胍最常见的不良反应是恶心和腹泻。", "Metformin often causes nausea and diarrhoea."),
        ("阿司匹林的常见不良反应是胃肠道出血。", "Warfarin: common adverse effects are bleeds."),
    ),
    "What are the common side effects of Glucophage?": (
        ("Metformin often causes nausea and diarrhoea.", "二甲双胍可引起腹泻。"),
        ("Common side effects of gliclazide are hypoglycaemia and weight gain.",),
    ),
    "白癜风的病因是什么？": (
        ("白癜风与自身免疫有关。", "Vitiligo is thought to be autoimmune."),
        ("类风湿关节炎的病因与自身免疫有关。", "银屑病的病因尚不清楚。"),
    ),
    "How is plaque psoriasis treated?": (
        ("Psoriasis is treated with topical steroids.", "Psoriatic plaques respond to steroids."),
        ("Plaque on the teeth is treated by a dentist.", "Eczema is treated with emollients."),
    ),
    "氯吡格雷过量如何处理？": (
        ("氯吡格雷没有特效解毒药。",),
        ("对乙酰氨基酚过量用乙酰半胱氨酸。", "三环类抗抑郁药过量用碳酸氢钠。"),
    ),
}


@pytest.mark.parametrize("question", OTHER_DRUGS)
def test_a_passage_about_another_drug_or_disease_does_not_name_the_subject(question: str) -> None:
    right, wrong = OTHER_DRUGS[question]
    found = names_subject(question, *right, *wrong)
    assert found == [True] * len(right) + [False] * len(wrong)


def test_an_absent_disease_of_no_table_is_told_by_its_rare_words() -> None:
    """The page of another syndrome says the right kind of thing of the wrong disease."""
    question = "What are the treatments for hyper-IgD syndrome?"
    right = "Hyper-IgD syndrome: there is no cure; anakinra may help."
    wrong = "There are no treatments for mal de debarquement syndrome (MDDS)."
    assert names_subject(question, right, wrong) == [True, False]


def test_of_a_comparison_each_passage_names_at_least_one_side() -> None:
    question = "Is apixaban or rivaroxaban better in atrial fibrillation?"
    texts = ("Apixaban causes fewer bleeds.", "Rivaroxaban is taken once daily.", "Warfarin in AF.")
    assert names_subject(question, *texts) == [True, True, False]


@pytest.mark.parametrize("question", ["What are its side effects?", "怎么治疗？", "", "Which one?"])
def test_a_question_without_a_subject_lets_everything_through(question: str) -> None:
    assert names_subject(question, "Iron is a metal.", "阿司匹林。") == [True, True]


def test_a_drug_of_no_table_is_known_by_how_its_name_is_built() -> None:
    question = "Does lucatumumab prolong survival in lymphoma?"
    texts = ("Lucatumumab was given to 111 patients.", "Rituximab prolongs survival in lymphoma.")
    assert names_subject(question, *texts) == [True, False]


def test_a_known_name_is_enough_whatever_else_the_question_says() -> None:
    """The rarest word of a small knowledge base may be any verb."""
    question = "Which bacterial enzyme is detected by the urea breath test?"
    text = "The urea breath test shows urease of Helicobacter pylori."
    assert names_subject(question, text, "Amylase is an enzyme.") == [True, False]


def test_a_name_that_nothing_knows_must_be_in_the_passage() -> None:
    gout = "Gout is treated with allopurinol."
    asked = "What does zorblaxine do in gout?"
    assert names_subject(asked, gout, "In gout, zorblaxine lowers the urate.") == [False, True]
    assert names_subject("Zorblaxine in gout?", gout) == [False]
    # Slips, verbs, and people's names are no names of drugs.
    for question in ("Which tretment does gout need?", "What forbids gout?", "Has Zbigniew gout?"):
        assert names_subject(question, gout) == [True], question


def test_whether_two_drugs_go_together_is_in_no_passage_on_one() -> None:
    one, both = (
        "Warfarin is an anticoagulant.",
        "Ibuprofen raises the risk of bleeding on warfarin.",
    )
    for asked in (
        "Can I take ibuprofen while on warfarin?",
        "Does ibuprofen interact with warfarin?",
        "Is it safe to take ibuprofen together with warfarin?",
    ):
        assert names_subject(asked, one, both) == [False, True], asked
    assert names_subject("Is warfarin or ibuprofen an anticoagulant?", one) == [True]


def test_a_case_in_several_sentences_has_no_one_subject() -> None:
    story = (
        "A woman of 58 kg has a deep vein thrombosis. Her creatinine is 160. Which dose of"
        " enoxaparin?"
    )
    assert names_subject(story, "Clearance is (140 - age) x weight / (72 x creatinine).") == [True]


def test_a_case_history_has_no_one_subject() -> None:
    story = (
        "A bricklayer presents with wheeze, clubbing, crackles, orthopnoea, oedema, jaundice,"
        " pruritus, dysphagia, haematuria, tremor, nystagmus and ptosis. What comes next?"
    )
    assert names_subject(story, "Spirometry is done first.") == [True]


def test_an_abbreviation_is_known_from_the_passages_themselves() -> None:
    defined = "Common variable immunodeficiency (CVID) begins in adults."
    question = "What are the complications of CVID?"
    other = "Patients with common variable immunodeficiency get bronchiectasis."
    assert names_subject(question, defined, other, "Asthma gets worse.") == [True, True, False]
    question = "What are the complications of common variable immunodeficiency?"
    assert names_subject(question, defined, "In CVID the spleen is large.", "Asthma.") == [
        True,
        True,
        False,
    ]


def test_abbreviations_are_compared_in_their_own_case() -> None:
    assert names_subject("How is AIDS treated?", "HIV infection needs lifelong drugs.") == [True]
    assert not packaged_names().find_entities("Do hearing aids help?")
    assert names_subject("What slows CKD?", "Chronic kidney disease is slowed by ramipril.") == [
        True
    ]


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Causes of diarrhoea?", "Diarrhea is caused by viruses."),
        ("Treatment of haemorrhoids", "A hemorrhoid is tied off."),
        ("What is hypertension?", "Hypertensive patients are treated."),
        ("More about aeortic valves", "The aortic valve has three cusps."),
        ("What are uterine fibroids?", "A fibroid is a benign tumour."),
        ("What is Crohn's disease?", "Crohn disease affects the bowel."),
        ("Treatment of acute myocardial infarction", "In infarction, myocardial, acute: aspirin."),
        ("What is non-Hodgkin lymphoma?", "NonHodgkin lymphoma arises from lymphocytes."),
        ("What is a brain tumour?", "A brain tumor grows in the skull."),
        ("Food allergies in children", "A food allergy is an immune reaction."),
        ("How are liver metastases treated?", "A liver metastasis may be removed."),
        ("What are lung abscesses?", "A lung abscess is a cavity with pus."),
        ("What slows ADPKD?", "Autosomal dominant polycystic kidney disease: tolvaptan."),
    ],
)
def test_inflections_spellings_and_slips_are_the_same_name(question: str, text: str) -> None:
    assert names_subject(question, text) == [True]


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Side effects of prednisone", "Prednisolone causes weight gain."),
        ("Is quinine safe?", "Quinidine is an antiarrhythmic."),
        ("Treatment of hyperkalaemia", "Hypokalaemia is treated with potassium."),
        ("Symptoms of hypothyroidism", "Hyperthyroidism causes palpitations."),
        ("What is hepatitis B?", "Hepatitis C is curable."),
        ("Treatment of type 1 diabetes insipidus", "Asthma is treated."),
        ("What slows ADPKD?", "Atopic dermatitis is a skin disease."),
        ("Symptoms of acute myocardial infarction", "Infarction of the spleen. Acute pain."),
    ],
)
def test_look_alikes_are_not_the_same_name(question: str, text: str) -> None:
    assert names_subject(question, text) == [False]


def test_a_wider_name_is_enough_in_a_passage_and_not_in_a_question() -> None:
    assert names_subject("Muscle pain from simvastatin?", "Statins cause muscle pain.") == [True]
    assert names_subject("How is type 2 diabetes treated?", "Diabetes is treated.") == [True]


def test_the_concept_graph_of_the_user_adds_its_names(tmp_path: Path) -> None:
    with Graph.create(tmp_path) as graph:
        graph.add(
            [
                Name("X:1", "Zorblax syndrome"),
                Name("X:1", "佐布拉克斯综合征"),
            ]
        )
        naming = NamingRelevance(lambda terms: dict.fromkeys(terms, 5.0), (GraphNames(graph),))
        question = "佐布拉克斯综合征如何治疗？"
        assert names_subject(question, "Zorblax syndrome is treated with rest.", naming=naming) == [
            True
        ]
        assert names_subject(question, "Asthma is treated.", naming=naming) == [False]
    assert names_subject(question, "Zorblax syndrome is treated with rest.") == [False]


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


@given(st.text(max_size=60), st.lists(st.text(max_size=60), max_size=3))
def test_any_text_is_scored(question: str, texts: list[str]) -> None:
    assert len(names_subject(question, *texts)) == len(texts)


@given(st.text(max_size=200))
def test_any_text_has_its_definitions_read(text: str) -> None:
    defined_abbreviations([text])
    assert not ReadText(text).has_name("")


def test_stems_are_the_same_alone_together_and_again() -> None:
    terms = ["running", "1.5", "diabetes", "diabetic", "...", "runs", "Sjögren"]
    alone = {term: stem for term in terms for stem in stem_terms([term]).values()}
    assert stem_terms(terms) == alone == stem_terms([*terms, *terms])
    assert alone["running"] == alone["runs"]
    assert alone["1.5"] == "5"
    assert "..." not in alone  # no word
