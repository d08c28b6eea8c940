"""Questions to ask next, made from the headings of passages that a search has found.

No model words them: each names a section of a text, so that a search for it finds that section. Of
30 sections of the sample texts in either language each question is answered from its own section.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from osler.retrieve import STOP_WORDS
from osler.sources.catalogue import TABLE
from osler.text import language_of
from osler.types import Passage, Question

MOST = 3
_LONGEST = 100
_PLAIN = re.compile(
    r"(?:abstract|appendix|background|conclusions?|contents|discussion|history|introduction"
    r"|methods?|notes?|overview|references|results|see also|sources|summary"
    r"|摘要|背景|结论|目录|讨论|引言|方法|注释|概述|参考文献|结果|小结|历史)",
    re.IGNORECASE,
)
"""Headings that say nothing of their subject."""


_DONE = {
    "assessment": "assessed",
    "classification": "classified",
    "definition": "defined",
    "diagnosis": "diagnosed",
    "management": "managed",
    "monitoring": "monitored",
    "prevention": "prevented",
    "recognition": "recognised",
    "therapy": "treated",
    "treatment": "treated",
}
"""Headings of what is done about a subject."""
_OF = re.compile(
    r"(?!.*\b(?:after|during|for|in|of|on|to|with)\b)"
    rf".*\b(?:{'|'.join(_DONE)}|causes?|complications|contraindications|course|duration|effects"
    r"|features|indications|interactions|mechanisms?|outlook|prognosis|reactions|(?:risk )?factors"
    r"|safety|severity|signs|stages|symptoms|toxicity|types|uses?)",
    re.IGNORECASE,
)
"""What a subject has: "the adverse effects of" it."""
_CLAUSE = re.compile(
    r"(?:.*\byou\b|after|are|before|can|do|does|how|if|is|should|what|when|where|which|while|who|why)\b",
    re.IGNORECASE,
)
_PLURAL = re.compile(r"(?:[^suie]s|[cdsx]es|(?<!rab)(?<!cab)(?<!car)ies)$")
_AND = re.compile(r", (?:and )?| and ")
_DONE_ZH = re.compile(
    r"(?:(?:与|和|及|、)?(?:治疗|诊断|预防|急救|处理|监测|随访|分期|分级|评估|选药|护理|筛查))+"
)
_HAS_ZH = re.compile(
    r"(?:(?:与|和|及|、)?(?:病因|症状|体征|临床表现|特征|不良反应|副作用|禁忌证?|适应证|用途"
    r"|并发症|(?:药物)?相互作用))+"
)


def suggest_questions(
    question: Question, found: Sequence[Passage], cited: Iterable[Passage] = ()
) -> list[str]:
    """At most `MOST`, in the order of `found`; none about a section that is cited already, that the
    question names itself, or that another language has. Where something is cited, its subject or
    what is asked about shares half of its words with each."""
    cited = list(cited)
    known = {one.heading for one in cited}
    about = _words(" ".join((question.text, *map(_subject_of, cited))))
    texts = " ".join(passage.text for passage in found)
    asked = _words(question.text)
    made: dict[str, None] = {}
    for passage in found:
        parts = [part.strip() for part in passage.locator.section.split(" > ") if part.strip()]
        if not parts or passage.language != question.language or passage.heading in known:
            continue
        if passage.locator.kind == TABLE:  # its section is the file's name
            continue
        known.add(passage.heading)
        subject = _subject_of(passage)
        own = _words(subject)
        if cited and len(own & about) * 2 < len(own):
            continue
        made_of = _words(f"{subject} {parts[-1]}")
        if _PLAIN.fullmatch(parts[-1]) or made_of <= asked:
            continue
        text = _word_question(subject, parts[-1].rstrip("?？"), texts)
        is_new = not _words(text) <= asked
        if is_new and len(text) <= _LONGEST and language_of(text) == question.language:
            made[text] = None
    return [*made][:MOST]


def _subject_of(passage: Passage) -> str:
    """The heading over that of a passage, or its document's title."""
    parts = [part.strip() for part in passage.locator.section.split(" > ") if part.strip()]
    return parts[-2] if len(parts) > 1 else passage.title.partition(" | ")[0]


def _word_question(subject: str, leaf: str, text: str) -> str:
    """A question about the section `leaf` of a document about `subject`, among texts."""
    subject = re.sub(r"\s*[(（][^()（）]*[)）]$|: .*", "", subject).strip()
    if language_of(f"{subject} {leaf}") == "zh":
        return _word_chinese(subject, leaf)
    if not subject or subject.casefold() == leaf.casefold():
        return f"{leaf}?"
    # An abbreviation, or a word that begins a formula, keeps its letters.
    leaf = leaf if not leaf[1:2].islower() else leaf[:1].lower() + leaf[1:]
    parts = _AND.split(leaf)
    within = _lower_within(subject, text)
    if all(part in _DONE for part in parts):
        done = " and ".join(dict.fromkeys(_DONE[part] for part in parts))
        are = " and " in subject or _PLURAL.search(subject)
        return f"How {'are' if are else 'is'} {within} {done}?"
    if all(_OF.fullmatch(part) for part in parts):
        verb = "are" if len(parts) > 1 or re.search("[^siu]s$", leaf) else "is"
        return f"What {verb} the {leaf} of {within}?"
    return f"{subject}: {leaf}?" if _CLAUSE.match(leaf) else f"{subject}: what about {leaf}?"


def _word_chinese(subject: str, leaf: str) -> str:
    if not subject or subject == leaf:
        return f"{leaf}？"
    if _DONE_ZH.fullmatch(leaf):
        return f"{subject}如何{leaf}？"
    if leaf.startswith("与"):
        return f"{subject}{leaf}要注意什么？"
    joined = f"{subject}{'：' if '的' in leaf else '的'}{leaf}"
    return f"{joined}有哪些？" if _HAS_ZH.fullmatch(leaf) else f"{joined}有哪些要点？"


def _lower_within(subject: str, text: str) -> str:
    """As it stands within a sentence: small where a text writes its first word so."""
    word = subject.split()[0]
    small = word[:1].lower() + word[1:]
    is_small = re.search(rf"\b{re.escape(small)}\b", text)
    return small + subject[len(word) :] if is_small else subject


def _words(text: str) -> set[str]:
    """What a heading and a question are compared by; Chinese by its signs."""
    return set(re.findall(r"[a-z0-9]+|[\u4e00-\u9fff]", text.casefold())) - STOP_WORDS
