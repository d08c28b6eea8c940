"""Which sentences state something: no question, no way to other pages, no thanks.

Such sentences are near to a question in their words and answer none. Advice to see a doctor or to
call for help is a statement.
"""

from __future__ import annotations

import re

_PAGE = (
    r"(?:web ?pages?|pages?|sections?|summary|summaries|booklets?|fact ?sheets?|brochures?|links?)"
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
    r"(?:thanks?|many thanks|thank you|hi|hello|best wishes|best regards|kind regards|good luck|"
    r"welcome to)\b",
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
