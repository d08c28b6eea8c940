"""Sentences of retrieved passages as candidate quotes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from osler.answer.named import find_drugs
from osler.retrieve.entity_names import ReadText
from osler.retrieve.experts.judge import JudgedText
from osler.sources.catalogue import TABLE
from osler.text import split_sentences
from osler.types import Evidence, Hit, Language

_PAGE = (
    r"(?:web ?pages?|pages?|sections?(?! of (?:a|the) hospital)|summary|summaries|booklets?"
    r"|fact ?sheets?|brochures?|links?)"
)
_MORE = r"(?:more|further|additional|general|other|detailed)"
_SEEN = (
    r"(?:also|the|our|this|these|following|below|above|more|section|table|figure|chapter|page|pdq|"
    r"drugs approved|for more|[\"“‘'])"
)
_CARERS = (
    r"(?:doctor|physician|gp|specialist|nurse|dentist|midwife|pharmacist|health|medical|provider|"
    r"clinician|optician)"
)
_LEADING = (
    # "See the doctor" is advice, "See the section on …" a way elsewhere.
    rf"(?:please )?see (?!\w+ (?:\w+ )?{_CARERS}){_SEEN}\b",
    r"(?:please )?(?:click|scroll|browse|skip to|back to|watch the)\b",
    rf"(?:also,? )?(?:please )?(?:visit|go to|refer to|check) .*(?:\b{_PAGE}\b|list of)",
    rf"(?:for|to (?:get|find|read|learn)|get|find|read|learn|obtain) {_MORE} (?:\w+ )?"
    r"(?:information|details|on|about|at|in)\b|for information (?:about|on) .* (?:see|visit)\b",
    r"(?:learn|read|find out) (?:how|about|what|why)\b",
    rf"(?:{_MORE} )?(?:information|details) (?:about|on|regarding|is|can|may) .*(?:available|found|"
    r"viewed|provided|obtained|visit)",
    r"(?:to enlarge|to view|last (?:reviewed|updated|modified)|page last|top of (?:the )?page|"
    r"contact us|follow us|related (?:topics?|links?|pages?|articles?)|more on\b|listed below|"
    r"below,? (?:is|are|we)\b)",
    rf"(?:this|these|the following) (?:\w+ ){{0,2}}{_PAGE} (?:\w+ )?(?:give|describe|provide|"
    r"explain|contain|cover|offer|list|discuss|answer|will|is|has)",
    r"(?:these|the following) (?:\w+ )?(?:resource|organi[sz]ation|site)s? (?:\w+ ){0,2}(?:address|"
    r"provide|offer|may|can|have)\b",
    r"(?:thanks?(?! to\b)|many thanks|thank you|hi|hello|best wishes|best regards|kind regards|"
    r"good luck|welcome to)\b",
    r"(?:请|可|另)?(?:参见|参阅|详见|请见|另见|点击|查看|访问|浏览)",
)
_ANYWHERE = (
    r"https?://|\bwww\.|\bweb ?sites?\b|\bclick (?:here|on)\b",
    rf"\bprovides? {_MORE} information\b",
    r"\b(?:on this page|for more information|provides the following list of signs and symptoms)\b",
    r"\b(?:table|list|links?|chart|section) below\b|\blist of online resources\b",
    r"\b(?:thank you for|thanks for|we appreciate your|sorry to hear|hope (?:this|that) helps)\b",
    # How a table of symptoms is to be read.
    r"\bdictionary to look up\b|\bnumber of the fraction\b|\ba frequency of \d+/\d+ means\b",
    r"\bno information on frequency\b|\bmuch of this information comes from\b",
    r"\bthe frequency (?:of a sign or symptom is usually|may also be) listed\b|\bthese frequencies"
    r" are based on\b|\bin these cases, the sign or symptom may be\b|^information on how often\b",
    # Lists of links.
    r"\bgenetic testing registry:|\bgene review:|\bmedlineplus encyclopedia:"
    r"|\bregistry (?:\(GTR\) )?is a centralized\b|\baudience for the GTR\b",
    r"\bfeel free to (?:contact|ask|write|call|email)\b",
    r"(?:更多|详细|进一步)的?(?:信息|资料|内容|介绍)|见下表|见下图|本页|网站|返回顶部|相关链接|相关阅读",
    r"谢谢|感谢您|您好|祝您",
)
_EMPTY = re.compile(rf"^[^\w]*(?:{'|'.join(_LEADING)})|{'|'.join(_ANYWHERE)}", re.IGNORECASE)
_CLOSING = " \t\r\n\"'”’»)]）】」』*_。."
_ASKS = ("?", "？", "吗", "呢")


def states_something(sentence: str) -> bool:
    """Whether a sentence may be quoted as an answer: it asks nothing, leads nowhere, thanks nobody.

    A question in quotes or brackets counts as one.
    """
    bare = sentence.strip(_CLOSING)
    return bool(bare) and not bare.endswith(_ASKS) and not _EMPTY.search(" ".join(sentence.split()))


_LEANS = {
    "en": re.compile(
        r"(?:its?|they|their|them|he|his|she|this|these|those|such|both|neither|either|otherwise|"
        r"the (?:others?|rest|former|latter|same)|if (?:no|an?(?:other)?) (?:\w+ )?alternative|"
        r"(?:(?:in|if|for|with|unless|until|after|before|when|where) )?"
        r"(?:half|part|most|all|some|each|none|many|much|one|any) of (?:it|th(?:em|is|ese|at|ose))|"
        r"(?:in|if|for|with|unless|until|after|before|when|where) "
        r"(?:it|they|this|these|those|such|so|not|both|neither))\b",
        re.IGNORECASE,
    ),
    "zh": re.compile(
        r"(?:其|此|这|那|该|它|两(?:者|类|种|药)|二者|三者|前者|后者|上述|以上|同样|否则|反之|"
        r"若(?:用|仍|无|不|未|有)|如(?:仍|无|不|未)|但|而)|[^，。]{2,30}者，"
    ),
}
"""How sentences begin that cannot be understood, or are misunderstood, without the one before."""
_MOST_BEFORE = 3
"""Sentences that are brought with one."""
_STEP = re.compile(
    r"(?:then|next|last(?:ly)?|finally|second(?:ly)?|third(?:ly)?|after(?:wards?| this| that))\b"
    r"(?! \w+ (?:is|was|are|were)\b)|(?:其次|然后|接着|随后|最后|再次)",
    re.IGNORECASE,
)
"""How a further step begins: it is brought with the first, and what stands between."""
_FIRST_STEP = re.compile(r"first(?:ly)?\b,?(?! \w+ (?:is|was|are|were)\b)|首先|先", re.IGNORECASE)
_LONGEST_STEPS = 600
"""Characters of steps that are brought with one."""
_LONGEST_LIST = 400
"""Characters of a list that is brought with its lead-in."""
_MOST_AFTER = 2
"""Sentences with which the first quote of an answer goes on."""
_LONGEST_AFTER: Mapping[Language, int] = {"en": 400, "zh": 140}
"""Characters of them."""
_LONGEST_LEAD = 600
"""Characters from a lead-in to the end of an item that it is brought with."""
_ITEM = re.compile(r"[ \t]*[-*•·‣–] +(?P<part>[^\W\dA-Z_])?")
"""How an item of a list begins; as a part of a sentence it begins with a small letter."""
_DENIES = re.compile(r"\b(?:not?|never|avoid|without|n[’']t)\b|[不勿禁忌]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class QuoteCandidate:
    hit: Hit
    start: int
    end: int
    relevance: float
    failed: frozenset[str] = frozenset()
    """Checks about medicine (`osler.answer.checks`) that it fails."""
    favour: float = 0.0
    """What counts for it in the order and not in the probability."""

    @property
    def text(self) -> str:
        return self.hit.passage.text[self.start : self.end]

    def as_evidence(self, use: str) -> Evidence:
        return Evidence(self.hit, self.start, self.end, use)


def quotable_spans(hit: Hit, shortest: int = 30) -> list[tuple[int, int]]:
    """Start and end of the sentences that are long enough and state something, in order."""
    text = hit.passage.text
    if hit.passage.locator.kind == TABLE:  # a cell without its column's name says little
        return [(0, len(text))]
    least = 8 if hit.passage.language == "zh" else shortest
    return [
        (start, end)
        for start, end in split_sentences(text)
        if end - start >= least
        and states_something(text[start:end])
        and _says_enough(text, start, end)
    ]


def _says_enough(text: str, start: int, end: int) -> bool:
    """Whether a sentence is no item of a list, or one that can be quoted with its lead-in, or
    without: "- take nitrates" says nothing without "Do not use it if you:"."""
    if (item := _ITEM.match(text, _line_start(text, start))) is None:
        return True
    lead = _find_lead(text, start)
    if lead is not None and end - lead <= _LONGEST_LEAD:
        return True
    said = "" if lead is None else text[lead : text.index("\n", lead)]
    return not item["part"] and not _DENIES.search(said)


def add_neighbours(
    quotes: Sequence[QuoteCandidate], most: int, *, goes_on: bool = False
) -> list[QuoteCandidate]:
    """At most `most` quotes; one that leans on the sentence before begins with that one, an item
    of a list with what leads in the list, and one that leads in a list ends with it.

    "The others should take …" says who only with what stands before it. Nothing else is brought
    before over a line break, nor what is quoted above; what was brought is not quoted again below.
    If the first `goes_on`, it ends with what its line says next: what the dose is, or what to do.
    """
    found: list[QuoteCandidate] = []
    for one in quotes:
        if len(found) == most:
            break
        if any(_holds(other, one) for other in found):
            continue
        quoted = {(other.hit.passage.id, other.end) for other in found}
        end = _find_end(one)
        if goes_on and not found and end == one.end:
            end = _find_next(one)
        whole = replace(one, start=_find_start(one, quoted), end=end)
        beside = next((at for at, other in enumerate(found) if _overlap(other, whole)), None)
        if beside is None:
            found.append(whole)
        else:
            start = min(found[beside].start, whole.start)
            found[beside] = replace(
                found[beside], start=start, end=max(found[beside].end, whole.end)
            )
    return found


def _overlap(one: QuoteCandidate, other: QuoteCandidate) -> bool:
    same = one.hit.passage.id == other.hit.passage.id
    return same and one.start < other.end and other.start < one.end


def _holds(whole: QuoteCandidate, part: QuoteCandidate) -> bool:
    same = whole.hit.passage.id == part.hit.passage.id
    return same and whole.start <= part.start and part.end <= whole.end


def _find_end(quote: QuoteCandidate) -> int:
    """Where the list ends that the quote leads in; else the quote's own end."""
    text, end = quote.hit.passage.text, quote.end
    if not text[quote.start : end].rstrip().endswith((":", "：")):
        return end
    for start, stop in split_sentences(text):
        if start >= quote.end:
            if stop - quote.end > _LONGEST_LIST or "\n\n" in text[end:start]:
                break
            end = stop
    return end


def _find_next(quote: QuoteCandidate) -> int:
    """Where the sentences end that go on with the quote on its line; its own end where the line
    spoke of another drug before, to which they may return: of colchicine's dose to allopurinol."""
    passage, end = quote.hit.passage, quote.end
    said = ReadText(quote.text)
    before = passage.text[_line_start(passage.text, quote.start) : quote.start]
    if find_drugs(quote.text) and any(not one.is_in(said) for one in find_drugs(before)):
        return end
    most = quote.end + _LONGEST_AFTER[passage.language]
    after = [span for span in split_sentences(passage.text) if span[0] >= quote.end]
    for start, stop in after[:_MOST_AFTER]:
        stated = states_something(passage.text[start:stop])
        if "\n" in passage.text[end:start] or stop > most or not stated:
            break
        end = stop
    return end


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _find_lead(text: str, start: int) -> int | None:
    """Where the sentence begins that leads in the list in which an item stands; `None` = none."""
    at = _line_start(text, start)
    while at > 0:
        end, at = at - 1, _line_start(text, at - 1)
        line = text[at:end]
        if line.rstrip().endswith((":", "：")):
            return at + split_sentences(line)[-1][0]
        if line.strip() and not _ITEM.match(line):
            return None
    return None


def _find_first_step(quote: QuoteCandidate, before: Sequence[tuple[int, int]]) -> int | None:
    """Where the steps begin of which the quote is a further one; `None` = it is none."""
    text = quote.hit.passage.text
    if not _STEP.match(text, quote.start):
        return None
    near = [at for at, _ in before if quote.end - at <= _LONGEST_STEPS]
    firsts = [at for at in near if _FIRST_STEP.match(text, at)]
    return firsts[-1] if firsts and "\n" not in text[firsts[-1] : quote.start] else None


def _find_start(quote: QuoteCandidate, quoted: set[tuple[str, int]]) -> int:
    passage, start = quote.hit.passage, quote.start
    if _ITEM.match(passage.text, _line_start(passage.text, start)):
        lead = _find_lead(passage.text, start)
        return start if lead is None or quote.end - lead > _LONGEST_LEAD else lead
    before = [span for span in split_sentences(passage.text) if span[1] <= start]
    if (first := _find_first_step(quote, before)) is not None:
        return first
    for begin, end in reversed(before[-_MOST_BEFORE:]):
        is_clause = passage.text[end - 1] in "；;"
        leans = is_clause or _LEANS[passage.language].match(passage.text, start)
        if not leans or "\n" in passage.text[end:start] or (passage.id, end) in quoted:
            break
        start = begin
    return start


def judged_text(quote: QuoteCandidate) -> JudgedText:
    """The sentence under its heading, between its neighbours."""
    text = quote.hit.passage.text
    spans = split_sentences(text)
    before = next((span for span in reversed(spans) if span[1] <= quote.start), None)
    after = next((span for span in spans if span[0] >= quote.end), None)
    return JudgedText(
        quote.text,
        quote.hit.passage.heading,
        text[slice(*before)] if before else "",
        text[slice(*after)] if after else "",
    )
