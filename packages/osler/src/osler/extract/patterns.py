"""Recognises the relation that the words between two names state.

The cue must fill the gap, apart from a few function words around it, so that the relation is
stated and not guessed; a gap with a negation states none. The predicates are ours, directional
and of several words (KAG-Thinker Table 16, rule 2).
"""

from __future__ import annotations

import re

from osler.types import Language

LONGEST_GAP = 60
"""Characters of a gap that is examined."""

_NEGATED = re.compile(
    r"\b(?:not|no|never|neither|nor|without|rarely|unlikely)\b|n't|[不未无非]|没有|缺乏",
    re.IGNORECASE,
)
_BEFORE = (
    r"^\s*(?:\([^()]*\)\s*)?,?\s*(?:(?:which|that|can|could|may|might|often|usually|commonly|mainly"
    r"|typically|frequently|generally|also|sometimes|is|are|was|were|be|been|has|have|and)\s+)*"
)
_AFTER = (
    r"(?:\s+(?:the|a|an|some|many|most|severe|mild|acute|chronic|patients with|people with"
    r"|adults with|symptoms such as|drugs such as|oral|as|like))*\s*$"
)
_CUES: tuple[tuple[str, str], ...] = (
    (r"caused by|due to|(?:result|resulting|results) from|secondary to", "is caused by"),
    (
        r"causes?|caused|causing|leads? to|leading to|results? in|resulting in|induces?|triggers?",
        "leads to",
    ),
    (
        r"(?:first-line |standard |preferred )?(?:treated|managed|relieved) (?:with|by|using)",
        "is treated with",
    ),
    (
        r"treats|(?:used|given|prescribed|recommended) (?:to treat|for treating"
        r"|for the treatment of|in the treatment of|for|in)"
        r"|indicated (?:for|in)|effective (?:against|for|in)"
        r"|(?:the )?(?:drug|treatment) of choice (?:for|in)|(?:a |the )?treatment (?:for|of)"
        r"|first-line (?:treatment|therapy) (?:for|in)",
        "is used to treat",
    ),
    (
        r"prevents?|(?:used|given) (?:to prevent|for prevention of)|protects? against",
        "helps prevent",
    ),
    (
        r"(?:presents?|presenting|manifests?) (?:with|as)|characteri[sz]ed by|(?:symptoms|signs)"
        r" (?:of which )?(?:include|are)|symptoms include",
        "presents with",
    ),
    (
        r"(?:diagnosed|confirmed|detected|identified) (?:by|with|using|on|through)",
        "is diagnosed by",
    ),
    (r"contraindicated (?:in|for|during)", "is contraindicated in"),
    (
        r"(?:increases?|raises?) the risk of|(?:an? )?(?:\w+ )?risk factors? for|predisposes? to",
        "raises the risk of",
    ),
    (r"(?:reduces?|lowers?|decreases?) the risk of", "lowers the risk of"),
    (r"interacts? with", "interacts with"),
    (r"(?:associated|linked) with", "is associated with"),
    (r"(?:an? )?(?:type|kind|form|subtype|class) of", "is a kind of"),
    (r"(?:is|are) an?(?: \w+)?", "is a kind of"),
)
_ENGLISH = tuple(
    (re.compile(_BEFORE + f"(?:{cue})" + _AFTER, re.IGNORECASE), predicate)
    for cue, predicate in _CUES
)
_BEFORE_ZH = (
    r"^\s*(?:[（(][^（）()]*[)）])?[，,]?"
    r"(?:可|能|会|常|多|主要|一般|通常|最常|也|还|均|可以|能够|患者|病人|的)*"
)
_AFTER_ZH = r"(?:的|急性|慢性|重度|轻度|各种|患者|等)*\s*$"
_CUES_ZH: tuple[tuple[str, str], ...] = (
    ("引起|导致|造成|诱发|引发", "可以导致"),
    ("(?:可|适)?用于(?:治疗)?|(?:可)?治疗|适用于|的首选(?:药物?|治疗)(?:是|为)?治疗", "用于治疗"),
    (
        "(?:的)?(?:首选|一线)(?:治疗|药物?)?(?:是|为|用)?|的治疗(?:包括|用|以)|应用|给予|选用",
        "治疗选用",
    ),
    ("(?:用于)?预防|防止", "用于预防"),
    (
        "(?:的)?(?:临床|主要|典型|常见)*(?:表现|症状|体征)(?:有|为|是|包括)|表现(?:为|有)|以",
        "临床表现为",
    ),
    ("(?:的)?(?:诊断|确诊)(?:依靠|依赖|需要?|首选|主要靠)|通过", "诊断依靠"),
    ("(?:禁用于|忌用于)", "禁止用于"),
    ("(?:增加|升高)(?:了)?(?:患)?", "增加风险"),
    ("是一种|是一类|属于|是", "属于一种"),
)
_CHINESE = tuple(
    (re.compile(_BEFORE_ZH + f"(?:{cue})" + _AFTER_ZH), predicate) for cue, predicate in _CUES_ZH
)
_LIST = re.compile(
    r"^\s*(?:,|and|or|,\s*and|,\s*or|and/or|as well as|[、，和及与或]|以及)\s*$", re.IGNORECASE
)

PREDICATES: dict[Language, tuple[str, ...]] = {
    "en": tuple(dict.fromkeys(predicate for _, predicate in _CUES)),
    "zh": tuple(dict.fromkeys(predicate for _, predicate in _CUES_ZH)),
}
"""All predicates that a cue can state."""
TOGETHER: dict[Language, str] = {"en": "is mentioned with", "zh": "一同提及"}
"""The predicate of two names that merely share a sentence."""


def predicate_between(gap: str, language: Language) -> str | None:
    """The predicate stated by the words between two names; `None` without one."""
    # A negation anywhere in the gap cancels the cue.
    if not 0 < len(gap) <= LONGEST_GAP or _NEGATED.search(gap):
        return None
    for pattern, predicate in _CHINESE if language == "zh" else _ENGLISH:
        if pattern.match(gap):
            return predicate
    return None


def goes_on(gap: str) -> bool:
    """Whether the words between two names merely enumerate them."""
    return _LIST.match(gap) is not None
