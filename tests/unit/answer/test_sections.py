"""Questions that ask for a whole section, and what is quoted of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from osler.answer.checks import AskedFacts
from osler.answer.sections import (
    FAVOUR,
    LABEL_SECTION,
    SURE,
    choose_subject,
    favour_kind,
    find_asked_kind,
    find_subject,
    lead_with_section,
    quote_section,
    weigh_label_sections,
)
from osler.answer.sentences import QuoteCandidate
from osler.retrieve.asked import QuestionReader
from osler.retrieve.experts.kinds import Kind
from osler.types import Hit, Locator, Passage

DEFINED = "Migraine is a throbbing, often one-sided headache of hours."
SEEN = "Nausea and dislike of light are typical of an attack."
TREATED = "Take a triptan with an anti-inflammatory drug early in the attack."
WARNED = "Triptans are not given in coronary disease."


@dataclass
class KnownKinds:
    """Sentences that are of the kind asked for, and that may be; all others are not."""

    telling: Sequence[str] = ()
    doubtful: Sequence[str] = ()
    asked: list[str] = field(default_factory=list)

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        self.asked.append(query)
        shares = {**dict.fromkeys(self.doubtful, 0.2), **dict.fromkeys(self.telling, 0.9)}
        return tuple(shares.get(text, 0.05) for text in texts)


def hit(*sentences: str, title: str, section: str, rank: int = 1, source: str = "book") -> Hit:
    text = " ".join(sentences)
    passage = Passage(f"{source}:{title}{rank}#0", text, source, title, Locator(section))
    return Hit(passage, 1.0, rank, "q", source)


@pytest.mark.parametrize(
    ("question", "kind", "name"),
    [
        ("treatment of migraine", "treatment", "Migraine"),
        ("How is migraine treated?", "treatment", "Migraine"),
        (
            "My mum has just been told she has Graves disease. How is it treated?",
            "treatment",
            "Graves disease",
        ),
        ("Graves' disease - which drugs are usual", "treatment", "Graves disease"),
        ("what do i give first in anaphylaxis", "treatment", "Anaphylaxis"),
        ("gout attack, what helps?", "treatment", "Gout"),
        ("what are the first signs of lupus?", "symptoms", "Lupus"),
        ("how do you diagnose gout", "diagnosis", "Gout"),
        ("what causes gout", "causes", "Gout"),
        ("how can we prevent malaria?", "prevention", "Malaria"),
    ],
)
def test_what_is_asked_of_one_subject_is_read(question: str, kind: Kind, name: str) -> None:
    assert find_asked_kind(question) == kind
    assert find_subject(question, kind, [name, "another name"]) > 0
    assert find_subject(question, kind, ["Psoriasis", "银屑病"]) == 0


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("treatment of hypertension in pregnancy", "Hypertension"),
        ("treatment of hypertension in a toddler", "Hypertension"),
        ("Which antibiotics treat pneumonia after a cruise?", "Pneumonia"),
        ("treatment of familial migraine", "Migraine"),
    ],
)
def test_what_says_more_asks_for_no_section(question: str, name: str) -> None:
    assert find_asked_kind(question) == "treatment"
    assert find_subject(question, "treatment", [name]) == 0


@pytest.mark.parametrize(
    "question",
    [
        "How much adrenaline is injected in anaphylaxis?",
        "Is warfarin safe with ibuprofen?",
        "What are the symptoms and the treatment of gout?",
        "布洛芬和华法林",
    ],
)
def test_what_is_of_no_kind_or_of_several_asks_for_no_section(question: str) -> None:
    assert find_asked_kind(question) is None


async def quoted(question: str, kinds: KnownKinds | None, *hits: Hit) -> list[str]:
    own = choose_subject(question, hits)
    return [one.text for one in await quote_section(question, own, kinds)]


async def test_a_section_of_several_things_begins_where_the_kind_begins() -> None:
    section = hit(
        DEFINED, SEEN, TREATED, WARNED, title="Migraine", section="Features and treatment"
    )
    kinds = KnownKinds([TREATED])
    assert await quoted("treatment of migraine", kinds, section) == [TREATED, WARNED]
    assert kinds.asked == ["treatment"]
    assert await quoted("treatment of migraine", None, section) == []
    assert await quoted("偏头痛怎么治疗", kinds, section) == []


async def test_it_begins_with_no_sentence_that_is_far_less_of_the_kind_than_others() -> None:
    section = hit(DEFINED, SEEN, TREATED, title="Migraine", section="Features and treatment")
    sure, unsure = KnownKinds([TREATED], [SEEN]), KnownKinds([], [SEEN])
    assert await quoted("treatment of migraine", sure, section) == [TREATED]
    assert await quoted("treatment of migraine", unsure, section) == [SEEN, TREATED]


async def test_a_section_of_one_thing_may_begin_with_one_sentence_of_another_kind() -> None:
    section = hit(DEFINED, TREATED, WARNED, title="Migraine", section="Treatment")
    assert await quoted("migraine treatment", KnownKinds([WARNED]), section) == [TREATED, WARNED]


async def test_further_sentences_at_the_beginning_are_left_out_unless_they_name_a_drug() -> None:
    ecg, first = "The tracing shows tall waves.", "First protect the heart with calcium gluconate."
    said = "Two schemes begin with an ACE inhibitor."
    shown = hit(DEFINED, ecg, first, title="Migraine", section="Treatment")
    assert await quoted("migraine treatment", KnownKinds([first]), shown) == [first]
    named = hit(DEFINED, said, first, title="Migraine", section="Treatment")
    assert await quoted("migraine treatment", KnownKinds([first]), named) == [said, first]


async def test_only_what_is_headed_by_the_subject_itself_is_a_section_of_it() -> None:
    other = hit(TREATED, title="Familial migraine", section="Treatment")
    own = hit(WARNED, title="Migraines (headache)", section="Treatment", rank=9)
    assert await quoted("treatment of migraine", KnownKinds(), other) == []
    assert await quoted("treatment of migraine", KnownKinds(), other, own) == [WARNED]
    assert await quoted("Can triptans be given in coronary disease?", KnownKinds(), own) == []


def test_what_nobody_vouches_for_is_chosen_where_nothing_else_was_found() -> None:
    page = hit(TREATED, title="Migraine", section="Treatment", source="web")
    book = hit(WARNED, title="Migraine", section="Treatment", rank=20)
    other = hit(SEEN, title="Headache", section="Treatment", rank=2)
    assert choose_subject("treatment of migraine", [page]) == [page]
    assert choose_subject("treatment of migraine", [page, book]) == [book]
    # A page that anybody may send in does not lead before what is vouched for.
    assert choose_subject("treatment of migraine", [page, other]) == []


@pytest.mark.parametrize(
    ("question", "chosen"),
    [
        ("高血压首选什么药", True),
        ("我妈得了高血压，怎么治疗？", True),
        ("高血压的症状有哪些", True),
        ("孕妇高血压怎么治疗", False),
        ("高血压合并糖尿病怎么治疗", False),
        ("高血压能喝咖啡吗", False),
    ],
)
def test_in_chinese_a_question_for_one_subject_is_read_in_its_own_passages(
    question: str, chosen: bool
) -> None:
    text = "一线药物包括钙通道阻滞剂。"
    own, other = (
        replace(one, passage=replace(one.passage, text=text, language="zh"))
        for one in (
            hit(text, title="高血压", section="治疗", rank=2),
            hit(text, title="急性心肌梗死", section="治疗"),
        )
    )
    assert choose_subject(question, [other, own]) == ([own] if chosen else [])


def test_in_chinese_the_heading_that_says_more_of_what_is_asked_is_chosen() -> None:
    text = "首选秋水仙碱。"
    usual, attack = (
        replace(one, passage=replace(one.passage, text=text, language="zh"))
        for one in (
            hit(text, title="痛风", section="降尿酸治疗"),
            hit(text, title="痛风", section="急性发作", rank=2),
        )
    )
    assert choose_subject("痛风发作吃什么药", [usual, attack]) == [attack]
    assert choose_subject("痛风怎么治疗", [usual, attack]) == [usual, attack]


def test_in_chinese_passages_headed_by_what_is_asked_are_chosen_where_there_are_any() -> None:
    found, treated, told = (
        replace(one, passage=replace(one.passage, text="收缩压140 mmHg以上。", language="zh"))
        for one in (
            hit("", title="高血压", section="诊断"),
            hit("", title="高血压", section="治疗", rank=2),
            hit("", title="高血压", section="概述", rank=3),
        )
    )
    assert choose_subject("高血压用什么药", [found, treated, told]) == [treated]
    assert choose_subject("高血压怎么诊断", [found, treated, told]) == [found]
    assert choose_subject("高血压用什么药", [found, told]) == [found, told]


async def test_a_section_without_a_telling_heading_is_one_by_its_sentences() -> None:
    section = hit(DEFINED, TREATED, title="Migraine", section="Triptans")
    assert await quoted("treatment of migraine", KnownKinds([TREATED]), section) == []
    rich = hit(TREATED, WARNED, title="Migraine", section="Triptans")
    (first, _) = await quote_section("treatment of migraine", [rich], KnownKinds([TREATED, WARNED]))
    assert (first.text, first.relevance) == (TREATED, 0.0)


async def test_the_heading_that_says_more_of_what_is_asked_comes_first() -> None:
    usual = hit(WARNED, title="Migraine", section="Long-term treatment")
    acute = hit(TREATED, title="Migraine", section="Acute attack", rank=2)
    bad = hit(SEEN, title="Migraine", section="Drugs to avoid")
    assert await quoted("treatment of a migraine attack", KnownKinds(), usual, acute, bad) == [
        TREATED
    ]
    assert await quoted("treatment of migraine", KnownKinds(), bad) == []
    raising = hit(SEEN, title="Migraine", section="Drugs that bring it on")
    assert await quoted("treatment of migraine", KnownKinds(), raising) == []


async def test_the_section_leads_and_is_at_least_as_sure_as_its_heading() -> None:
    section = hit(TREATED, WARNED, title="Migraine", section="Treatment")
    quotes = await quote_section("treatment of migraine", [section], KnownKinds())
    near = QuoteCandidate(hit(DEFINED, title="Pain", section=""), 0, len(DEFINED), 0.3)
    again = QuoteCandidate(section, 0, len(TREATED), 0.2)
    led = lead_with_section(quotes, [near, again])
    assert [(one.text, one.relevance) for one in led] == [
        (TREATED, SURE),
        (WARNED, SURE),
        (DEFINED, 0.3),
    ]
    assert lead_with_section([], [near]) == [near]
    assert lead_with_section(quotes, []) == []


def read(question: str) -> AskedFacts:
    return AskedFacts(QuestionReader().read(question))


@dataclass
class NearHeadings:
    """A scorer to which the question is as near to each heading and each sentence as it is told."""

    heading: float
    sentence: float

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        return tuple(
            self.sentence if text.endswith((".", "。")) else self.heading for text in texts
        )


@pytest.mark.parametrize(
    ("question", "sentences"),
    [
        ("medicines for my migraine on the ferry?", (DEFINED, TREATED)),
        ("偏头痛老是不好，平时怎么治才行", ("偏头痛是一侧的搏动性头痛。", "发作早期口服曲普坦。")),
    ],
)
async def test_a_question_that_is_nearest_to_a_heading_favours_what_is_of_its_kind(
    question: str, sentences: tuple[str, str]
) -> None:
    one = hit(*sentences, title="Migraine", section="Acute treatment")
    at = len(sentences[0])
    end = at + 1 + len(sentences[1])
    found = [QuoteCandidate(one, 0, at, 0.9), QuoteCandidate(one, at + 1, end, 0.8)]
    kinds = KnownKinds(telling=[sentences[1]])
    favoured = await favour_kind(read(question), found, kinds, NearHeadings(0.9, 0.5))
    assert [one.favour for one in favoured] == [0.05 * FAVOUR, 0.9 * FAVOUR]
    assert [one.relevance for one in favoured] == [0.9, 0.8]
    assert await favour_kind(read(question), found, kinds, NearHeadings(0.5, 0.5)) == found
    of_two_kinds = "why migraine, and how is it treated?"
    assert await favour_kind(read(of_two_kinds), found, kinds, NearHeadings(1, 0)) == found
    assert await favour_kind(read(question), [], kinds, NearHeadings(1, 0)) == []


@pytest.mark.parametrize(
    ("question", "title", "fails"),
    [
        ("medicines for migraine?", "Migraine", False),
        ("medicines for pulmonary embolism?", "Migraine", True),
        ("medicines for pulmonary embolism?", "Sumatriptan", True),
        ("medicines for pulmonary embolism?", "Ward protocol", False),
    ],
)
async def test_what_stands_under_anothers_name_only_mentions_a_topics_disease(
    question: str, title: str, fails: bool
) -> None:
    one = hit(DEFINED, title=title, section="Acute treatment")
    found = [QuoteCandidate(one, 0, len(DEFINED), 0.9)]
    # It says nothing beside the disease and the kind: however near a sentence is, it is a topic.
    (favoured,) = await favour_kind(read(question), found, KnownKinds(), NearHeadings(0.1, 0.9))
    assert favoured.failed == ({"another disease", "another subject"} if fails else frozenset())


@dataclass
class AskedHeadings:
    """A scorer for which one heading is asked for."""

    heading: str

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        return tuple(float(text == self.heading) for text in texts)


async def test_the_section_of_a_label_that_is_asked_for_gains() -> None:
    question, sections = "how many tablets a day", AskedHeadings("Dosage and administration")
    dose = hit(TREATED, title="Zolmitriptan (ZOMIG)", section="Dosage and administration")
    locator = replace(dose.passage.locator, kind="Drug label")
    label = replace(dose, passage=replace(dose.passage, locator=locator))
    assert await weigh_label_sections(question, [label, dose], sections) == [LABEL_SECTION, 0.0]
    assert await weigh_label_sections(question, [dose], sections) == [0.0]
    assert await weigh_label_sections("一天几片", [label], sections) == [0.0]
    assert await weigh_label_sections(question, [label], None) == [0.0]
