"""Checks about medicine: what counts against a sentence as an answer, and what does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osler.answer.check_words import find_subjects
from osler.answer.checks import (
    CHECKS,
    AskedFacts,
    failed_checks,
    is_named_nowhere,
    tells_of_both,
)
from osler.answer.named import find_drugs
from osler.answer.sentences import QuoteCandidate
from osler.retrieve.asked import QuestionReader
from osler.types import Hit, Passage

READER = QuestionReader()


def fails(
    check: str, question: str, sentence: str, *, title: str = "", before: str = "", after: str = ""
) -> bool:
    text = " ".join(filter(None, (before, sentence, after)))
    hit = Hit(Passage("book:a#0", text, "book", title), 1.0, 1, "q", "book")
    start = text.index(sentence)
    quote = QuoteCandidate(hit, start, start + len(sentence), 1.0)
    return failed_checks(AskedFacts(READER.read(question)), quote, [check]) == [check]


@pytest.mark.parametrize(
    ("sentence", "title", "told"),
    [
        ("Ibuprofen with warfarin raises the risk of bleeding.", "", True),
        ("NSAIDs raise the risk of bleeding.", "Warfarin", True),
        ("It raises the risk of bleeding.", "Warfarin > Ibuprofen", False),
        ("Ibuprofen relieves pain.", "", False),
    ],
)
def test_of_drugs_asked_about_together_a_sentence_tells_that_names_one_under_two(
    sentence: str, title: str, told: bool
) -> None:
    hit = Hit(Passage("book:a#0", sentence, "book", title), 1.0, 1, "q", "book")
    quote = QuoteCandidate(hit, 0, len(sentence), 1.0)
    facts = AskedFacts(READER.read("can I take ibuprofen with warfarin"))
    assert tells_of_both(facts, quote) is told
    assert not tells_of_both(AskedFacts(READER.read("can I take ibuprofen?")), quote)


@pytest.mark.parametrize(
    ("question", "sentence", "title", "lacks"),
    [
        ("how much does apixaban cost", "Apixaban 5 mg is taken twice a day.", "", True),
        ("can i drive on levodopa", "Do not drive for one month.", "Stroke", True),
        ("can i drive on levodopa", "Do not drive until you know its effect.", "Levodopa", False),
        ("forgot my warfarin last night", "Stop warfarin above an INR of 8.", "", True),
        ("i never missed a warfarin tablet", "Stop warfarin above an INR of 8.", "", False),
        ("what goes into the syringe driver", "Halve the morphine.", "", False),
        ("is rivaroxaban taken with food", "Rivaroxaban is taken with food.", "", False),
        ("秋水仙碱多少钱一盒", "秋水仙碱首剂1 mg，1小时后再给0.5 mg。", "痛风", True),
        ("华法林漏服一次怎么办", "华法林相关大出血给凝血酶原复合物。", "华法林", True),
        ("利福平饭前吃还是饭后吃", "应空腹服用，饭前1小时或饭后2小时。", "利福平", False),
        ("阿司匹林早上吃还是晚上吃", "立即嚼服阿司匹林150～300 mg。", "", True),
        ("秋水仙碱怎么保存", "秋水仙碱首剂1 mg。", "痛风", True),
        ("痛风挂什么科", "每年发作两次以上者应长期降尿酸。", "内科常见疾病 > 痛风", True),
        ("甲亢能打新冠疫苗吗", "长期服用胺碘酮者可甲亢。", "甲亢", True),
        ("is haemophilia inherited", "Both genes lie on the X chromosome.", "Haemophilia", False),
        (
            "can I fly with a DVT",
            "Anticoagulation lasts three months.",
            "Deep vein thrombosis",
            True,
        ),
    ],
)
def test_what_is_asked_of_daily_life_is_told_by_a_sentence_on_it(
    question: str, sentence: str, title: str, lacks: bool
) -> None:
    assert fails("matter", question, sentence, title=title) is lacks


def test_a_dose_for_one_disease_is_none_for_another() -> None:
    dose = "High-dose amoxicillin is 80 to 90 mg/kg a day."
    asked = "what dose of amoxicillin for pneumonia"
    assert fails("another disease", asked, dose, title="Otitis media in children")
    assert not fails("another disease", asked, dose, title="Community-acquired pneumonia")
    assert not fails("another disease", asked, dose, title="Antibiotics")
    interaction = "I take warfarin, now amiodarone for atrial fibrillation is added: is it safe?"
    assert not fails("another disease", interaction, "Halve warfarin.", title="Stroke")


@pytest.mark.parametrize(
    ("question", "sentence", "failed"),
    [
        ("How much aspirin is given in stroke?", "Aspirin is given early in stroke.", True),
        ("How much aspirin is given in stroke?", "Aspirin 300 mg is given in stroke.", False),
        ("How often is it given?", "It is given twice daily.", False),
        ("Why is aspirin given in stroke?", "Aspirin is given early in stroke.", False),
        ("Does low-dose aspirin help in stroke?", "Aspirin helps early in stroke.", False),
        ("for how many days is it given", "Two tablets are given.", True),
        ("for how many days is it given", "It is given for one week.", False),
        ("How long is aspirin given in stroke?", "Aspirin 300 mg is given.", True),
        ("How many micrograms do I start with?", "Begin with three tablets.", True),
        ("How many micrograms do I start with?", "Begin with 0.05 mg.", False),
        ("at what rate in units per minute", "It runs at 0.03 units a minute.", False),
        ("how many puffs of the blue inhaler", "Give 400 micrograms.", True),
        ("How many people have it?", "It is rare: 4 in 100,000.", False),
        ("阿司匹林要吃几天？", "阿司匹林300 mg，每次两片。", True),
        ("阿司匹林要吃几天？", "共服用14天。", False),
        ("痛得走不了，这几天阿司匹林要停吗？", "阿司匹林不要停用。", False),
        ("阿司匹林的剂量是多少？", "卒中后应尽早服用阿司匹林。", True),
        ("阿司匹林的剂量是多少？", "卒中后服用阿司匹林300 mg。", False),
    ],
)
def test_where_an_amount_is_asked_for_a_sentence_has_one(
    question: str, sentence: str, failed: bool
) -> None:
    assert fails("amount", question, sentence) is failed


@pytest.mark.parametrize(
    ("sentence", "title", "failed", "by_name"),
    [
        ("Amoxicillin may cause a rash.", "", False, False),
        ("It may cause a rash in children.", "Amoxicillin", False, False),
        ("It may cause a rash in children.", "Antibiotics", True, False),
        ("Doxycycline may cause a rash.", "Antibiotics", True, True),
        ("Penicillins may cause a rash.", "Antibiotics", False, False),
    ],
)
def test_a_sentence_about_another_drug_counts_less_and_least_where_it_names_one(
    sentence: str, title: str, failed: bool, by_name: bool
) -> None:
    asked = "Can amoxicillin cause a rash?"
    assert fails("another drug", asked, sentence, title=title) is failed
    assert fails("another drug by name", asked, sentence, title=title) is by_name


@pytest.mark.parametrize(
    ("sentence", "title", "failed"),
    [
        ("ACE inhibitors harm the fetus.", "Pre-eclampsia", False),
        ("Ramipril harms the fetus.", "Pre-eclampsia", False),
        ("The drug is contraindicated in pregnancy.", "Methotrexate", True),
    ],
)
def test_a_class_is_asked_about_as_its_members_are(sentence: str, title: str, failed: bool) -> None:
    assert (
        fails("another drug", "can I take ACE inhibitors in pregnancy", sentence, title=title)
        is failed
    )


def test_the_dose_of_a_drug_is_that_of_no_other_one_of_its_class() -> None:
    asked, other = "What is the dose of amoxicillin?", "Doxycycline: 100 mg daily."
    assert fails("another drug", asked, other, title="Amoxicillin and doxycycline")
    assert fails("another drug", asked, "Penicillins are given daily.", title="Penicillins")
    assert not fails("another drug", asked, "500 mg three times daily.", title="Amoxicillin")


def test_a_brand_is_its_ingredient_by_all_its_names() -> None:
    asked, said = "I take Epilim. Can it hurt the baby?", "Valproate causes malformations."
    assert not fails("another drug by name", asked, said, title="Epilepsy")


def test_a_question_without_a_drug_is_answered_by_any() -> None:
    assert not fails("another drug", "How is gout treated?", "Colchicine relieves an attack.")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("Is warfarin safe in pregnancy?", "Warfarin harms the fetus."),
        ("Can I take it while breastfeeding?", "It passes into breast milk."),
        ("What is the dose for my 5-year-old?", "Children take half a tablet."),
        ("Is metformin safe with kidney disease?", "Stop it when the eGFR falls below 30."),
        ("May I take it with cirrhosis?", "It is not given in hepatic failure."),
        ("孕妇能用华法林吗？", "妊娠期禁用华法林。"),
    ],
)
def test_a_state_of_the_patient_is_spoken_of_near_the_sentence(asked: str, said: str) -> None:
    plain = "It is taken once a day with water."
    assert fails("condition", asked, plain)
    assert not fails("condition", asked, said)
    assert not fails("condition", asked, plain, title=said)
    assert not fails("condition", asked, plain, before=said)
    assert fails("condition", asked, plain, before=f"{said} Take care of it.")
    assert not fails("condition", "How is it taken?", plain)


def test_in_chinese_what_stands_under_another_disease_is_of_that_one() -> None:
    said, asked = "首选药物是肾上腺素，肌内注射。", "高血压首选什么药"
    assert fails("another disease", asked, said, title="过敏性休克")
    assert not fails("another disease", asked, "一线药物包括钙通道阻滞剂。", title="高血压")
    assert not fails("another disease", "没有高血压，首选什么药", said, title="过敏性休克")
    assert fails("another disease", asked, said, title="过敏性休克", after="高血压者慎用。")


@pytest.mark.parametrize(
    ("question", "sentence", "failed"),
    [
        ("Dose of alteplase in stroke?", "Alteplase is given within 4.5 hours of onset.", True),
        ("Dose of alteplase in stroke?", "Alteplase 0.9 mg/kg is given.", False),
        ("what's the starting dose of levodopa", "Levodopa is taken three times a day.", False),
        ("what's the starting dose of levodopa", "Levodopa is taken daily.", True),
        ("warfarin dose", "Warfarin is checked weekly.", True),
        ("how many mg of digoxin", "Digoxin is given once a day.", True),
        ("I missed my dose of warfarin, what do I do?", "Take warfarin as soon as you can.", False),
        ("does the dose of digoxin change in renal failure", "Digoxin is halved.", False),
        ("how many hours between doses of ibuprofen", "Ibuprofen every six hours.", False),
        ("Dose of fluids?", "Give them at once.", False),
        ("bisoprolol max dose in heart failure", "Bisoprolol: one third fewer deaths.", True),
        ("dose of azathioprine", "Azathioprine is reduced to one third.", False),
        ("氯吡格雷的剂量是多少", "24小时内起用氯吡格雷。", True),
        ("氯吡格雷的剂量是多少", "氯吡格雷首剂300 mg。", False),
        ("异烟肼手脚发麻，维生素B6加到多少毫克", "加到每日100 mg左右，多数可恢复。", False),
        ("华法林漏服一次剂量怎么补", "华法林想起来即服。", False),
    ],
)
def test_where_nothing_but_a_dose_answers_a_sentence_has_one(
    question: str, sentence: str, failed: bool
) -> None:
    assert fails("no dose", question, sentence) is failed


@pytest.mark.parametrize(
    ("question", "sentence", "failed"),
    [
        ("孕妇可以吃二甲双胍吗", "二甲双胍在eGFR低于30时禁用。", True),
        ("孕妇能用华法林吗", "妊娠早期华法林致畸。", False),
        ("吃德巴金想要孩子，影响胎儿吗", "丙戊酸致畸并影响胎儿智力。", False),
        ("想要孩子，能吃甲氨蝶呤吗", "甲氨蝶呤每周一次。", True),
        ("哺乳期能吃对乙酰氨基酚吗", "对乙酰氨基酚每日不超过4 g。", True),
        ("吃甲硝唑能喝酒吗", "甲硝唑可升高INR。", True),
        ("肾不好能吃二甲双胍吗", "二甲双胍是起始药物。", False),  # no such state
    ],
)
def test_what_is_asked_of_pregnancy_milk_and_drink_is_told_of_them(
    question: str, sentence: str, failed: bool
) -> None:
    assert fails("state", question, sentence) is failed


@pytest.mark.parametrize(
    "question", ["想要孩子还能吃吗", "肾功能正常，术前停几天", "肾移植后能打疫苗吗"]
)
def test_who_wants_a_child_is_none_and_sound_kidneys_are_no_illness(question: str) -> None:
    facts = AskedFacts(READER.read(question))
    assert not {"children", "kidney"} & {*facts.conditions}


def test_a_dose_asked_for_a_child_is_no_adults() -> None:
    asked, check = "How much modafinil for a nine-year-old?", "dose of other patients"
    assert fails(check, asked, "Modafinil is started at 100 mg a day.", title="Modafinil")
    assert not fails(check, asked, "In children modafinil is started at 50 mg a day.")
    assert not fails(check, asked, "Modafinil is not for everybody.", title="Modafinil")
    assert not fails(check, "Is modafinil safe in children?", "Modafinil 100 mg is started.")


@pytest.mark.parametrize(
    ("question", "of_a_child"),
    [
        ("how much for a 4 year old", True),
        ("how much for a 17-year-old", True),
        ("how much for a 30 week old", True),
        ("can a 70 year old take it", False),
        ("5 岁能吃吗", True),
        ("小孩能吃吗", True),
        ("75岁能吃吗", False),
    ],
)
def test_an_age_is_a_childs_up_to_seventeen_years(question: str, of_a_child: bool) -> None:
    assert fails("condition", question, "Two tablets are taken.") is of_a_child


@pytest.mark.parametrize(
    ("sentence", "failed"),
    [
        ("Spironolactone is started at 25 mg a day.", False),
        ("Give spironolactone once daily.", False),
        ("Take two tablets of spironolactone.", False),
        ("Spironolactone is added if potassium is 4.5 mmol/L or less.", True),
        ("Four groups of drugs lengthen life, spironolactone among them.", True),
    ],
)
def test_a_dose_is_no_level_in_the_blood_and_no_count(sentence: str, failed: bool) -> None:
    assert fails("amount", "usual dose of spironolactone in heart failure", sentence) is failed


def test_what_two_drugs_do_with_a_third_is_no_answer() -> None:
    asked = "Can I take ibuprofen with lisinopril and furosemide?"
    lithium = "Drug interactions > Lithium > Diuretics, ACE inhibitors and NSAIDs"
    assert fails("both", asked, "Loop diuretics have less effect.", title=lithium)
    triple = "Drug interactions > Diuretics, ACE inhibitors and NSAIDs"
    assert not fails("both", asked, "Together they can cause kidney injury.", title=triple)


def test_two_drugs_that_are_asked_about_together_are_both_named() -> None:
    asked = "Can I take ibuprofen with warfarin?"
    assert fails("both", asked, "Ibuprofen relieves pain and fever.")
    assert not fails("both", asked, "Ibuprofen with warfarin raises the risk of bleeding.")
    assert not fails("both", asked, "NSAIDs raise the risk of bleeding.", title="Warfarin")
    assert not fails("both", "Can I take ibuprofen?", "Ibuprofen relieves pain and fever.")
    under = "Drug interactions > Warfarin > Amiodarone and analgesics"
    assert not fails("both", asked, "NSAIDs are different: bleeding is more likely.", title=under)
    assert fails("both", asked, "The dose has to be cut by a third to a half.", title=under)


@pytest.mark.parametrize(
    ("sentence", "failed"),
    [
        ("OBJECTIVE: To see whether aspirin prevents stroke.", True),
        ("The aim of this study was to see whether aspirin prevents stroke.", True),
        ("We searched three databases for trials of aspirin.", True),
        ("目的：探讨阿司匹林的作用。", True),
        ("RESULTS: Aspirin prevented strokes.", False),
        ("Aspirin prevented strokes in this study.", False),
    ],
)
def test_why_a_study_was_made_is_no_finding(sentence: str, failed: bool) -> None:
    assert fails("background", "Does aspirin prevent stroke?", sentence) is failed


def test_patients_without_what_this_one_has_are_others() -> None:
    asked = "How is cystitis treated in a man with diabetes and fever?"
    assert fails("without", asked, "In patients without diabetes, three days are enough.")
    assert not fails("without", asked, "In patients with diabetes seven days are given.")
    assert not fails("without", asked, "In men without asthma, seven days are given.")
    valve = "Which anticoagulant suits atrial fibrillation with a mechanical valve?"
    other = "Offer a direct oral anticoagulant to patients without a mechanical valve and stenosis."
    assert fails("without", valve, other)
    healthy = "How is cystitis treated in a man without diabetes and fever?"
    assert not fails("without", healthy, "In patients without diabetes, three days are enough.")


def test_what_the_patient_has_not_is_of_others_too() -> None:
    asked = "INR飙到12，没出血。维K口服多少？"
    assert fails("without", asked, "发生大出血时，静脉缓慢给予维生素K 5～10 mg。")
    assert not fails("without", asked, "超过10而无出血者停药并口服维生素K 2.5～5 mg。")
    assert not fails("without", asked, "口服维生素K可减少出血。")
    assert fails("without", "INR 12 and no bleeding?", "Major bleeding is treated at once.")


@pytest.mark.parametrize(
    ("question", "subjects"),
    [
        ("What are the symptoms of alpha-mannosidosis?", ["alpha-mannosidosis"]),
        ("What is an aneurysm?", ["aneurysm"]),
        ("Is glycogen storage disease type IV inherited?", ["glycogen storage disease type IV"]),
        ("gout treatment", ["gout"]),
        ("How is gout treated?", ["gout"]),
        ("Hello. What can be done against gout?", ["gout"]),
        ("My son is 9 and has Krabbe disease. What treatment is there?", ["Krabbe disease"]),
        ("I was told that I have gout. How long will it last?", ["gout"]),
        ("how long do i take antibiotics for a uti", ["uti"]),
        ("which antibiotic for cellulitis?", ["cellulitis"]),
        ("How long should the tablets for gout be taken?", ["gout"]),
        ("How long should the steroids for a COPD flare be taken?", []),
        ("what antibiotics are used for my leg", []),
        ("My wife has gout. Can she take ibuprofen?", []),
        ("What is the dose of aspirin after a stroke?", []),
        ("What are the symptoms of gout and pseudogout?", []),
        ("Can gout be inherited from my mother?", []),
        ("", []),
        ("how do i know if i have alveolar rhabdomyosarcoma", ["alveolar rhabdomyosarcoma"]),
        ("How can you tell if someone is having a stroke?", ["stroke"]),
        ("could my son have croup", ["croup"]),
        ("What is the treatment for a wart of the foot?", ["wart of the foot"]),
        ("How do I know if my INR is too high?", []),
        ("best treatment for scabies", ["scabies"]),
        ("whats the first-line drug for gout", ["gout"]),
        ("First line treatment for status epilepticus in a child?", ["status epilepticus"]),
        ("treatment of croup in children", ["croup"]),
        ("warning signs of parkinsons years before the shaking?", []),
        ("stroke symptoms started 2 hours ago whats the treatment", []),
    ],
)
def test_what_one_thing_is_asked_of_is_read(question: str, subjects: list[str]) -> None:
    assert find_subjects(question) == subjects


@pytest.mark.parametrize(
    ("question", "sentence", "failed"),
    [
        (
            "What are the symptoms of alpha-mannosidosis?",
            "Beta-mannosidosis causes deafness.",
            True,
        ),
        (
            "What are the symptoms of alpha-mannosidosis?",
            "Alpha-mannosidosis causes deafness.",
            False,
        ),
        (
            "Is amoxicillin or doxycycline better for lyme disease?",
            "Doxycycline suits pneumonia in those allergic to penicillin.",
            True,
        ),
        ("Is Lowe syndrome inherited?", "Down syndrome is rarely inherited.", True),
        ("What is a heart attack?", "Myocardial infarction is the death of muscle.", False),
        ("What is a tumour?", "A tumor is a growth of cells.", False),
        ("Does alpha-mannosidosis cause deafness in most?", "Beta-mannosidosis does.", False),
    ],
)
def test_what_is_asked_of_one_subject_needs_a_passage_that_names_it_whole(
    question: str, sentence: str, failed: bool
) -> None:
    assert fails("another subject", question, sentence) is failed


def test_the_passage_or_its_heading_may_name_the_subject() -> None:
    asked, said = "What are the symptoms of gout?", "The big toe is red and swollen."
    assert fails("another subject", asked, said)
    assert not fails("another subject", asked, said, title="Gout")
    assert not fails("another subject", asked, said, after="Gout is common.")


def test_what_is_said_under_another_disease_is_of_that_one() -> None:
    asked = "how long after a heart attack can I drive"
    month = "In the United Kingdom patients must not drive a car for one month."
    assert fails("another disease", asked, month, title="Stroke")
    assert not fails("another disease", asked, month, title="Myocardial infarction")
    assert not fails("another disease", asked, month, title="Driving")
    both = f"{month} So it is after a heart attack."
    assert not fails("another disease", asked, both, title="Stroke")
    fit = "when can i drive after a seizure"
    assert fails("another disease", fit, month, title="Transient ischaemic attack")
    assert not fails("another disease", fit, month, title="Epilepsy")
    drug = "Can I drive on diazepam after a heart attack?"
    assert not fails("another disease", drug, month, title="Stroke")
    assert fails("another disease", "心肌梗死后多久能开车", "一个月内不能开车。", title="脑卒中")


def test_a_drug_in_one_disease_is_not_told_by_what_stands_under_another() -> None:
    asked, said = "Can I give amoxicillin in infectious mononucleosis?", "Amoxicillin is given."
    assert fails("another disease", asked, said, title="Pneumonia")
    assert not fails("another disease", asked, said, title="Glandular fever")
    assert not fails("another disease", asked, said, title="Amoxicillin")
    seen_in = "He has pneumonia and came out in hives: amoxicillin?"
    assert not fails("another disease", seen_in, said, title="Pneumonia")


@pytest.mark.parametrize(
    ("question", "nowhere"),
    [
        ("can i fly after a pneumothorax", True),
        ("can i fly after a stroke", False),
        ("which tablets for my sore throat", True),
        ("can i take warfarin after a pneumothorax", False),
        ("stroke, no pneumothorax: may I fly?", False),
        ("dad has no pneumothorax, may he fly?", False),
        ("气胸多久能坐飞机", True),
        ("中风后多久能坐飞机", False),
        ("没有气胸，能坐飞机吗", False),
        ("大便黑黑的要紧吗", False),
    ],
)
def test_a_disease_that_no_text_names_is_named_nowhere(question: str, nowhere: bool) -> None:
    texts = ["Stroke. Do not drive or fly until advised.", "脑卒中后未经同意不要驾车或乘飞机。"]
    assert is_named_nowhere(AskedFacts(READER.read(question)), texts) is nowhere


def test_a_class_is_no_other_name_of_a_drug() -> None:
    (drug,) = find_drugs("高血压怀孕能吃洛汀新吗")
    assert "贝那普利" in drug.names
    assert "ACEI" in drug.classes
    assert not {"ACEI", "普利类"} & {*drug.names}
    asked = "洛汀新吃两周肌酐升高要停吗"
    assert not fails(
        "another drug", asked, "用ACEI后肌酐升幅不超过30%可以继续。", title="慢性肾脏病"
    )


def test_a_drug_is_found_once_by_any_of_its_names() -> None:
    (found,) = find_drugs("Tylenol (paracetamol) helps.")
    assert {"paracetamol"} <= {name.casefold() for name in found.names}
    assert find_drugs("Tea helps.") == []


TEXT = st.text(max_size=80) | st.sampled_from(
    ["What is the dose of aspirin?", "孕妇能用华法林吗？", "No fever. (((", "Is gout inherited?"]
)


@given(TEXT, TEXT.filter(str.strip), TEXT)
def test_checks_never_raise_and_name_themselves(asked: str, said: str, title: str) -> None:
    hit = Hit(Passage("book:a#0", said, "book", title), 1.0, 1, "q", "book")
    quote = QuoteCandidate(hit, 0, len(said), 1.0)
    found = failed_checks(AskedFacts(READER.read(asked)), quote)
    assert set(found) <= set(CHECKS)
    assert failed_checks(AskedFacts(READER.read(asked)), quote, ()) == []
