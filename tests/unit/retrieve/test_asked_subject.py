"""What a plain question asks about, whole; and which passages name it so."""

from collections.abc import Sequence

import pytest

from osler.retrieve.asked_subject import WholeNaming, find_asked_subject
from osler.retrieve.naming import NamingRelevance

NAMING = NamingRelevance(lambda words: dict.fromkeys(words, 5.0))


def names_whole(question: str, *texts: str) -> Sequence[float]:
    return WholeNaming(NAMING).score_texts(question, texts)


@pytest.mark.parametrize(
    ("question", "subject"),
    [
        ("What is (are) Lynch syndrome ?", "Lynch syndrome"),
        ("What are the genetic changes related to Fanconi anemia ?", "Fanconi anemia"),
        ("What are the signs and symptoms of a stroke?", "stroke"),
        ("Is beta-mannosidosis inherited?", "beta-mannosidosis"),
        ("How can the common cold be treated?", "common cold"),
        ("what causes   gout", "gout"),
        ("What does ataxia mean?", "ataxia"),
        ("What are the treatments for asthma in pregnancy?", "asthma in pregnancy"),
        ("What is the target of adalimumab?", ""),
        ("What is filipin staining used for?", ""),
        ("Does aspirin prevent strokes?", ""),
        ("哮喘如何治疗？", ""),
        ("", ""),
    ],
)
def test_the_subject_is_what_a_plain_question_names(question: str, subject: str) -> None:
    assert find_asked_subject(question) == subject


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Is beta-mannosidosis inherited?", "alpha-mannosidosis. It is inherited."),
        ("What is sporadic hemiplegic migraine?", "Familial hemiplegic migraine type 2. An aura."),
        (
            "What are the symptoms of Osteopetrosis autosomal recessive 4 ?",
            "Osteopetrosis autosomal dominant type 2. Bones are dense; recessive forms differ.",
        ),
        ("What is holocarboxylase synthetase deficiency?", "Lipoic acid synthetase deficiency."),
        ("What are the symptoms of cataract and cardiomyopathy?", "Heart: cardiomyopathy. Eyes."),
        ("What causes microcephaly?", "Macrocephaly has many causes."),
        ("What are the symptoms of Pearson syndrome?", "A person with this syndrome is tired."),
        ("What are the treatments for asthma in pregnancy?", "Asthma is treated with steroids."),
    ],
)
def test_a_look_alike_that_shares_its_words_does_not_name_it(question: str, text: str) -> None:
    assert names_whole(question, text) == (0.0,)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Is beta-mannosidosis inherited?", "Beta mannosidosis is inherited."),
        ("What is the outlook for heart attack?", "After myocardial infarction most recover."),
        ("How is anaphilaxis treated?", "Anaphylaxis is treated with adrenaline."),
        ("What are the symptoms of non-Hodgkin lymphoma?", "Lymphoma, non-Hodgkin: swollen nodes."),
        ("What are the treatments for asthma in pregnancy?", "Pregnancy. Asthma is treated."),
        ("How is asthma treated in children?", "Asthma: an inhaler with a spacer is used."),
    ],
)
def test_a_name_in_another_form_is_the_same_subject(question: str, text: str) -> None:
    assert names_whole(question, text) == (1.0,)


def test_an_abbreviation_that_one_passage_defines_names_it_in_the_others() -> None:
    defined = "Postural tachycardia syndrome (POTS) is common."
    question = "What is the outlook for postural tachycardia syndrome?"
    assert names_whole(question, defined, "POTS may follow a relapsing course.") == (1.0, 1.0)
    assert names_whole(question, "POTS may follow a relapsing course.") == (0.0,)


@pytest.mark.parametrize(
    "question",
    [
        "What are the complications of simvastatin?",
        "Does exercise help in depression?",
        "My father is old. He has gout. What helps?",
        "How is it treated?",
    ],
)
async def test_drugs_and_other_questions_are_left_to_the_rule_for_words(question: str) -> None:
    texts = ("Statins cause muscle pain.", "Gout is painful.", "Exercise in depression: a trial.")
    assert names_whole(question, *texts) == NAMING.score_texts(question, texts)
    assert await WholeNaming(NAMING).relevance(question, texts) == names_whole(question, *texts)
    assert await WholeNaming(NAMING).relevance(question, ()) == ()
