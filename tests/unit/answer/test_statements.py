"""Sentences that may be quoted: statements alone."""

import pytest

from osler.answer.sentences import states_something

STATEMENTS = (
    "Adrenaline is given into the muscle of the outer thigh.",
    "See a doctor if the fever lasts longer than three days.",
    "See your doctor right away if you have chest pain.",
    "Call 911 right away if you have symptoms of a stroke.",
    "Go to the emergency department at once.",
    "For more severe cases, surgery may be recommended.",
    "More than half of the children need surgery.",
    "Vitamin K reverses warfarin (see Table 2).",
    "Your doctor may order other tests if more information is needed.",
    "These organisms may colonise the airways.",
    "A frequency of more than 10 seizures a day means that the medicine must be changed.",
    "The link between the two diseases is not yet understood.",
    "Thanks to vaccination measles is rare.",
    "Go to the emergency section of a hospital.",
    "Refer to the nearest burns section of a hospital at once.",
    "维生素C缺乏引起坏血病。",
)
EMPTY = (
    "What are the symptoms of gout?",
    'For more, go to "How Is Asthma Treated?"',
    "(Do you have pain?)",
    "See the section on anticoagulants for the dose.",
    "(See the PDQ summary on Liver Cancer for more information.)",
    "For more information about gout, see the links below.",
    "Read more about Physical Activity and Your Heart.",
    "Click here to view the page.",
    "If the information is available, the table below includes how often the symptom is seen.",
    "These resources address the diagnosis or management of hypochondroplasia.",
    "General information about clinical trials is available from the NCI website.",
    "More information is available at www.nccam.nih.gov.",
    "This section describes treatments that are being studied.",
    "Thank you for your question about your medicine.",
    "Thanks for writing to us.",
    "I hope this helps.",
    "You can use the MedlinePlus Medical Dictionary to look up the definitions for these terms.",
    "The first number of the fraction is how many people had the symptom, and the second number is"
    " the total number of people who were examined in one study.",
    "For example, a frequency of 25/25 means that in a study of 25 people all had that symptom.",
    "Much of this information comes from Orphanet, a European rare disease database.",
    "Sometimes, no information on frequency is available.",
    "请参见本章第二节。",
    "更多信息请访问我们的网站。",
    "感谢您的咨询，祝您健康。",
    "痛风有哪些症状？",
    "...",
)


@pytest.mark.parametrize("sentence", STATEMENTS)
def test_statements_and_advice_may_be_quoted(sentence: str) -> None:
    assert states_something(sentence)


@pytest.mark.parametrize("sentence", EMPTY)
def test_questions_ways_elsewhere_and_thanks_may_not(sentence: str) -> None:
    assert not states_something(sentence)


def test_white_space_does_not_matter() -> None:
    assert not states_something("See\nthe  section on gout.")
