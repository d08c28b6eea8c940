"""Checks about medicine: what a sentence must have, beside relevance, to answer a question.

Each is a rule about what is asked and not about a data set, and each takes away odds of an answer
(`PENALTY`), so that a sentence which fails one may still be the nearest. Their ablations are in
`benchmarks/LOG.md`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from osler.answer.sentences import QuoteCandidate
from osler.retrieve.asked import AskedQuestion
from osler.retrieve.entity_names import DRUG, NonproprietaryNames, ReadText, packaged_names
from osler.retrieve.lexicon import packaged_lexicon

PENALTY = 2.0
"""Taken from a sentence's logit for each check that it fails."""
_AMOUNT_ASKED = re.compile(
    r"\b(?:dos(?:e|es|age|ing)|how (?:much|many|strong|often|long|fast|high|low|far)|what (?:rate|level|volume|strength)"
    r"|maximum|max|minimum|ceiling|cut-?off|threshold|limit|interval|mg|ml|units?|percentage|per cent)\b"
    r"|剂量|用量|多少|几(?:次|片|天|周|月|年|毫克|岁|小时)|多久|多长时间|最大量|上限|下限|多高|多低",
    re.IGNORECASE,
)
_AMOUNT = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|half|third|quarter|once|twice|daily|weekly|monthly"
    r"|hourly|nightly|annually|yearly|immediately|first|lifelong|life-long|indefinitely)\b|[一二两三四五六七八九十半]|每",
    re.IGNORECASE,
)
_DOSE_ASKED = re.compile(
    r"\bdos(?:e|es|age|ing)\b|\bhow (?:much|many)\b|\bmg\b|剂量|用量|多少|几片", re.IGNORECASE
)
_DOSED = re.compile(
    r"\d\s*(?:mg|g|mcg|micrograms?|milligrams?|grams?|ml|mL|units?|IU|mmol|%|per cent|毫克|克|微克|毫升|单位|片|粒|丸|袋)(?![a-z])",
    re.IGNORECASE,
)
_BACKGROUND = re.compile(
    r"^\W*(?:background|introduction|objectives?|aims?|purpose|methods?|design|setting|participants|patients and methods|context"
    r"|study selection|data sources?)\s*:|^\W*(?:the aims? of (?:this|the)|this (?:study|review|trial|article) (?:aim|was|examin|investigat|evaluat|assess)"
    r"|we (?:aimed|sought|set out|investigated|hypothesi[sz]ed|conducted|performed|searched)|to (?:determine|evaluate|assess|investigate|examine|compare) )"
    r"|^\W*(?:背景|目的|方法|引言)\s*[:：]",
    re.IGNORECASE,
)
_CONDITIONS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(words, re.IGNORECASE)
    for name, words in {
        "pregnancy": r"\bpregnan|\bexpecting a (?:baby|boy|girl|child)|\btrimester|\bgestation|\bantenatal|\bprenatal|\bfetus|\bfoetus|\bfetal|\bbirth defects?|\bteratogen|妊娠|怀孕|孕",
        "breastfeeding": r"\bbreast-?\s?feed|\bbreast ?milk|\blactat|\bnursing (?:her|him|my|the|a) ?(?:baby|son|daughter|infant|newborn|myself)?|哺乳|母乳|喂奶",
        "children": r"\bchild|\bpa?ediatric|\binfant|\bbab(?:y|ies)\b|\bneonat|\bnewborn|\btoddler|\b(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten)[- ](?:year|month|week)s?[- ]olds?\b|\bmy (?:son|daughter|little (?:boy|girl|one))|\badolescen|儿童|小儿|婴|新生儿|孩子|宝宝",
        "kidney": r"\bkidneys?\b|\brenal|\begfr\b|\bglomerular|\bcreatinine|\bcrcl\b|\bckd\b|\bdialysis|肾",
        "liver": r"\bliver|\bhepati(?:c|tis)|\bcirrho|肝",
        "valve": r"\bmechanical (?:heart )?valve|机械瓣",
    }.items()
}
_CELL = " | "
"""Between the cells of a table's row, of which the first names what the row is about."""
_WITHOUT = re.compile(
    r"\b(?:without|no|not having|free of|absence of)\s+(?:an? |any |the )?((?:\w+[- ]){0,2}\w+)",
    re.IGNORECASE,
)
_BOTH = re.compile(
    r"\b(?:interact|together|combin|alongside|mix(?:ing|ed)?|versus|vs\.?|compared (?:to|with)|better than|rather than|instead of)\b|\bor\b"
    r"|\b(?:with|while (?:on|taking)|on top of|and)\b|一起|合用|同服|同用|联用|相互作用|还是|哪个",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class DrugName:
    """A drug that a text names, by all names under which another text may have it."""

    written: str
    names: tuple[str, ...]
    classes: tuple[str, ...] = ()
    """By which a text may speak of it among others: "thiazides"."""

    def is_in(self, text: ReadText, *, itself: bool = False) -> bool:
        """Whether a text names it, or its class where `itself` is not asked for."""
        return text.has_any(self.names) or (not itself and text.has_any(self.classes))


def find_drugs(text: str) -> list[DrugName]:
    """The drugs that a text names, each once: by the tables of names, brands and name endings."""
    found: dict[str, DrugName] = {}
    lexicon = packaged_lexicon()
    entities = (*packaged_names().find_entities(text), *NonproprietaryNames().find_entities(text))
    for entity in entities:
        if entity.kind == DRUG:
            key = entity.written.casefold()
            known = found.get(key, DrugName(entity.written, ()))
            names = tuple(dict.fromkeys((*known.names, *entity.names)))
            found[key] = DrugName(entity.written, names, lexicon.find_classes(names))
    for one in lexicon.find_names(text):
        written = text[one.start : one.end]
        if lexicon.drugs.issuperset(name.casefold() for name in one.names):
            classes = lexicon.find_classes(one.names)
            found.setdefault(written.casefold(), DrugName(written, (written, *one.names), classes))
    for name in lexicon.find_drugs(text):
        found.setdefault(name.casefold(), DrugName(name, (name,), lexicon.find_classes([name])))
    return list(found.values())


@dataclass(frozen=True)
class AskedFacts:
    """What a question asks for, as far as the checks look at it."""

    asked: AskedQuestion

    @cached_property
    def text(self) -> str:
        return self.asked.full

    @cached_property
    def drugs(self) -> list[DrugName]:
        return find_drugs(self.asked.text)

    @cached_property
    def conditions(self) -> list[str]:
        return [name for name, words in _CONDITIONS.items() if words.search(self.asked.text)]

    @cached_property
    def wants_amount(self) -> bool:
        return _AMOUNT_ASKED.search(self.asked.text) is not None

    @cached_property
    def wants_dose(self) -> bool:
        return bool(self.drugs) and _DOSE_ASKED.search(self.asked.text) is not None

    @cached_property
    def wants_both(self) -> bool:
        return len(self.drugs) == 2 and _BOTH.search(self.asked.text) is not None


@dataclass(frozen=True)
class ReadQuote:
    """A candidate with what stands around it."""

    sentence: str
    heading: str
    before: str
    passage: str

    @classmethod
    def of_candidate(cls, quote: QuoteCandidate) -> ReadQuote:
        text = quote.hit.passage.text
        before = text[: quote.start].rstrip()
        cut = max(before.rfind(". ", 0, -1), before.rfind("\n"), before.rfind("。", 0, -1))
        return cls(quote.text, quote.hit.passage.heading, before[cut + 1 :], text)

    @cached_property
    def near(self) -> str:
        """The sentence under its heading, behind the sentence before."""
        return f"{self.heading}. {self.before} {self.sentence}"


def lacks_amount(facts: AskedFacts, quote: ReadQuote) -> bool:
    """An amount is asked for, and the sentence has none."""
    if facts.wants_dose and not _DOSED.search(quote.sentence):
        return not _AMOUNT.search(quote.sentence)
    return facts.wants_amount and not _AMOUNT.search(quote.sentence)


def is_of_another_drug(facts: AskedFacts, quote: ReadQuote) -> bool:
    """Of the drugs asked about the sentence names none, but it names another; nor does its heading
    name one."""
    if not facts.drugs:
        return False
    exact = facts.wants_dose
    sentence, near = ReadText(quote.sentence), ReadText(quote.near)
    if any(drug.is_in(sentence, itself=exact) for drug in facts.drugs):
        return False
    if exact and (_CELL in quote.sentence or find_drugs(quote.sentence)):
        return True
    return not any(drug.is_in(near, itself=exact) for drug in facts.drugs)


def lacks_condition(facts: AskedFacts, quote: ReadQuote) -> bool:
    """It is asked about a state of the patient that stands neither in the sentence nor before it."""
    return any(not _CONDITIONS[name].search(quote.near) for name in facts.conditions)


def names_one_of_two(facts: AskedFacts, quote: ReadQuote) -> bool:
    """Two drugs are asked about together, and the sentence under its heading does not name both."""
    if not facts.wants_both:
        return False
    read = ReadText(quote.near)
    return not all(drug.is_in(read) for drug in facts.drugs)


def is_background(facts: AskedFacts, quote: ReadQuote) -> bool:
    """It says why or how a study was made, not what it found."""
    return _BACKGROUND.match(quote.sentence) is not None


def says_without(facts: AskedFacts, quote: ReadQuote) -> bool:
    """It speaks of patients without what the question says the patient has."""
    asked = f" {facts.asked.text.casefold()} "
    for found in _WITHOUT.finditer(quote.sentence):
        what = found[1].casefold()
        if f" {what} " in asked and not re.search(
            rf"\b(?:without|no|not)\b[^.]*{re.escape(what)}", asked
        ):
            return True
    return False


CHECKS: Mapping[str, Callable[[AskedFacts, ReadQuote], bool]] = {
    "amount": lacks_amount,
    "another drug": is_of_another_drug,
    "condition": lacks_condition,
    "both": names_one_of_two,
    "background": is_background,
    "without": says_without,
}
"""Name → whether a sentence fails."""


def failed_checks(
    facts: AskedFacts, quote: QuoteCandidate, names: Sequence[str] = tuple(CHECKS)
) -> list[str]:
    """Names of the checks that the sentence fails, of those that are asked for."""
    read = ReadQuote.of_candidate(quote)
    return [name for name in names if CHECKS[name](facts, read)]
