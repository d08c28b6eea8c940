"""What evidence says by its words: negation, findings, hedges, directions, p-values.

A yes/no question and the sentences found for it become a row of numbers. A sentence weighs by its
relevance to the question, and once more by how much it reads like the first document's conclusion:
what was asked and what was done says little of what was found.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log1p
from typing import TYPE_CHECKING

from osler.retrieve import content_terms

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    Row: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CuedSentence:
    """A sentence of the evidence."""

    text: str
    relevance: float
    """Cosine with the question."""
    first: bool = True
    """Whether it is of the document that the search puts first."""
    concludes: bool = False
    """Whether its section is labelled as the conclusion."""


def _pattern(words: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{words})\b", re.IGNORECASE)


_RISE = r"increas\w*|higher|elevat\w*|greater|rais\w*|enhanc\w*|up-?regulat\w*"
_FALL = r"decreas\w*|lower\w*|reduc\w*|fewer|less|inhibit\w*|down-?regulat\w*"
CUES: Mapping[str, re.Pattern[str]] = {
    "negation": _pattern(r"not|no|nor|neither|never|cannot|without|none|n't"),
    "null finding": _pattern(
        r"no (?:statistically )?significant\w*|not (?:statistically )?significant\w*"
        r"|non-?significant\w*|no differences?|not differ\w*|no (?:clear |strong )?evidence"
        r"|no (?:clear |significant )?(?:association|correlation|relationship|benefit|effect"
        r"|increase|improvement|impact|role|link)|did not|does not|do not|was not|were not"
        r"|is not|are not|fail(?:s|ed)? to|lack(?:s|ed|ing)?(?: of)?|unable to|similar"
        r"|comparable|unaffected|unchanged|ineffective|unlikely|insufficient"
    ),
    "no difference": _pattern(
        r"no (?:statistically |clinically )?(?:significant(?:ly)? )?(?:\w+ ){0,2}differen\w+"
        r"|not differ\w*|not (?:statistically |significantly )?different|similar(?:ly)?"
        r"|comparable|equivalent|equally|non-?inferior\w*|same"
    ),
    "not significant": _pattern(
        r"(?:not|no|non-?)\s*(?:statistically |clinically |any )?significan\w*|nonsignificant\w*"
        r"|did not reach|failed to reach|without (?:a )?significant"
    ),
    "no effect": _pattern(
        r"no (?:clear |strong |significant |convincing |consistent |direct )?(?:evidence"
        r"|association|correlation|relationship|benefit|effect|increase|improvement|impact|role"
        r"|link|influence|advantage|change|reduction)"
    ),
    "denial": _pattern(
        r"(?:did|does|do|was|were|is|are|has|have|had|could|can|may|should|would) not|cannot"
        r"|fail(?:s|ed|ure)? to|unable to|lack(?:s|ed|ing)?(?: of)?|unlikely|neither"
    ),
    "significant": re.compile(
        r"(?<!not )(?<!no )(?<!non-)(?<!statistically )\b(?:statistically )?significant(?:ly)?\b"
        r"(?! differen)",
        re.IGNORECASE,
    ),
    "finding": _pattern(
        r"significant(?:ly)?|associated with|correlat(?:ed|es|ion)|confirm(?:s|ed)?"
        r"|demonstrat(?:e|es|ed)|show(?:s|ed|n)? that|we found|proven|established|known to"
        r"|caus(?:e|es|ed)|leads? to|predict(?:s|ed|or)?|indicat(?:e|es|ed)|is an?|are"
    ),
    "benefit": _pattern(
        r"effective(?:ly|ness)?|efficac(?:y|ious)|improv(?:e|es|ed|ement|ing)|benefi(?:t|ts|cial)"
        r"|safe(?:ly)?|well tolerated|useful|successful(?:ly)?|promising|approved|recommended"
        r"|feasible|reliable|superior|protective"
    ),
    "harm": _pattern(
        r"adverse|toxic(?:ity)?|harm(?:ful|s)?|risk|unsafe|contraindicated|worse\w*|inferior"
        r"|complications?|mortality"
    ),
    "rise": _pattern(_RISE),
    "fall": _pattern(_FALL),
    "hedge": _pattern(
        r"may|might|could|possib(?:le|ly)|potential(?:ly)?|suggest\w*|appear(?:s|ed)?|seem\w*"
        r"|likely|probabl[ey]|whether|hypothes\w*"
    ),
    "doubt": _pattern(
        r"unclear|unknown|uncertain\w*|controvers\w*|conflicting|inconsistent|inconclusive"
        r"|debat\w*|insufficient|not (?:yet )?(?:been )?(?:known|clear|established|determined"
        r"|fully|well|understood)|remains? to be|questionable"
    ),
    "more to study": _pattern(
        r"further (?:\w+ ){0,2}(?:stud\w+|research|investigation\w*|trials?|work|evaluation)"
        r"|(?:more|larger|additional|future) (?:\w+ ){0,2}(?:stud\w+|research|trials?)"
        r"|should be (?:further|investigated)|is needed|are needed|warranted"
    ),
    "contrast": _pattern(r"however|although|despite|but|whereas|while|nevertheless|though"),
    "little": _pattern(r"only|rarely|rare|limited|few|little|some|partial(?:ly)?|small"),
    "advice": _pattern(
        r"recommend\w*|should|approved|indicated|licensed|first-line|authori[sz]ed"
        r"|is (?:a|an|the)"
    ),
    "ability": _pattern(r"can|able to|capable|allows?|enables?"),
    "result": _pattern(
        r"conclu\w+|in summary|our (?:results|findings|data|study)|these (?:results|findings|data)"
        r"|this study|the (?:results|findings|data)|suggest\w*|indicat\w+|demonstrat\w+"
        r"|show(?:s|ed|n)?"
    ),
    "relation": _pattern(
        r"associat\w+|correlat\w+|related|link\w*|predict\w*|depend\w*|influenc\w*|affect\w*"
    ),
    "p small": re.compile(r"\bp\s*(?:<|≤|=\s*0?\.0[0-4]|<=)\s*0?\.?\d*", re.IGNORECASE),
    "p large": re.compile(
        r"\bp\s*(?:>|≥|=\s*0?\.(?:0[5-9]|[1-9]))|\b(?:NS|n\.s\.)(?!\w)", re.IGNORECASE
    ),
}
"""Cues of a sentence, each present or not."""
ASKED: Mapping[str, re.Pattern[str]] = {
    "asks negation": _pattern(r"not|no|without|lack|fail|ineffective|unsafe"),
    "asks whether one can": _pattern(r"can|could|may|should|do we|need"),
    "asks for benefit": _pattern(
        r"effective|efficac\w*|benefi\w*|improv\w*|useful|helpful|safe|recommended|treat\w*"
        r"|prevent\w*"
    ),
    "asks for harm": _pattern(
        r"risk|harm\w*|adverse|cause|causes|toxic\w*|contraindicated|worse\w*"
    ),
    "asks for association": _pattern(
        r"associat\w*|related|correlat\w*|role|involved|implicated|linked|influence|affect\w*"
        r"|predict\w*|depend\w*"
    ),
    "asks for difference": _pattern(r"differ\w*|better|superior|more|less|higher|lower|same|equal"),
    "asks for membership": re.compile(r"^(?:is|are)\b.*\b(?:an?|the)\b", re.IGNORECASE),
    "begins with to be": re.compile(r"(?:is|are|was|were)\b", re.IGNORECASE),
    "begins with to do": re.compile(r"(?:does|do|did)\b", re.IGNORECASE),
    "begins with can": re.compile(r"(?:can|could|may|might)\b", re.IGNORECASE),
    "begins with should": re.compile(r"(?:should|must|need)\b", re.IGNORECASE),
    "begins with to have": re.compile(r"(?:has|have|had)\b", re.IGNORECASE),
    "asks for existence": _pattern(r"(?:is|are) there"),
    "has a title's colon": re.compile(":"),
    "asks for all": _pattern(
        r"all|always|every|only|never|any|most|completely|exclusively|necessary|essential"
        r"|required?|mandatory|enough|sufficient|really|still|routine(?:ly)?|need(?:ed)?"
    ),
    "asks for approval": _pattern(r"approved|fda|ema|licensed|available|vaccine"),
    "asks for a choice": _pattern(r"or|versus|vs"),
    "asks for safety": _pattern(
        r"safe(?:ly|ty)?|feasible|reliable|accurate|valid|useful|adequate|appropriate|possible"
    ),
    "asks for likeness": _pattern(
        r"alternative|as (?:\w+ )?as|equal\w*|equivalent|same|comparable|similar"
    ),
    "asks for change": _pattern(r"chang\w+|impact|influenc\w+|affect\w*|effect\w*|matter"),
    "asks for rise": _pattern(_RISE),
    "asks for fall": _pattern(_FALL),
    "asks for a sign": _pattern(r"predict\w*|prognos\w+|factor|marker|biomarker|indicator"),
}
"""Cues of a question."""
_UP = _pattern(
    _RISE + r"|improv\w*|more|better|promot\w*|activat\w*|stimulat\w*|induc\w*|cause[sd]?"
)
_DOWN = _pattern(
    _FALL + r"|worse\w*|prevent\w*|impair\w*|suppress\w*|attenuat\w*|block\w*|protect\w*"
)
_AIM = _pattern(
    r"aim(?:ed|s)?|purpose|objective|to (?:determine|investigate|evaluate|assess|compare|examine"
    r"|explore|describe|study|identify|test|analy[sz]e|report|review|establish)|whether|was to"
    r"|we (?:sought|investigated|evaluated|assessed|compared|examined|studied|tested"
    r"|hypothesi[sz]ed)|hypothes\w+"
)
_METHOD = _pattern(
    r"were (?:\w+ )?(?:included|enrolled|recruited|randomi[sz]ed|reviewed|analy[sz]ed|collected"
    r"|obtained|measured|assessed|evaluated|divided|performed|used|assigned|selected|asked"
    r"|identified|studied|interviewed|examined|recorded|treated|followed)|was (?:\w+ )?(?:performed"
    r"|used|measured|assessed|conducted|carried out|collected|evaluated|obtained|recorded"
    r"|calculated|determined)|retrospective(?:ly)?|prospective(?:ly)?|questionnaire|survey"
    r"|database|consecutive|cohort of"
)
_SUMS_UP = _pattern(
    r"conclu\w+|in summary|(?:these|our|the) (?:results|findings|data)|our (?:study|series"
    r"|experience)|(?:this|the present|the current) study|suggest\w*|recommend\w*"
    r"|further (?:stud|research|invest)\w*"
)
_STATES = _pattern(
    r"is|are|may|might|should|can|could|does|do|has|have|appears?|seems?|remains?|suggests?"
    r"|indicates?|supports?|shows?|demonstrates?|provides?|need(?:s|ed)?|not"
)
_PAST = _pattern(r"was|were|had|did")
_NEGATES = _pattern(r"not|no|nor|neither|never|cannot|without|none|lack\w*|fail\w*|absence|non")
_WORD = re.compile(r"[^\W_][\w-]*")
_SCOPE = 6
"""Words after a negation that it may deny."""
SAID = (
    *CUES,
    "a word of the question is denied",
    "same direction",
    "opposite direction",
    "no change of direction",
)
_WEIGHINGS = ("by relevance", "by conclusion", "in the conclusion")
FEATURES: tuple[str, ...] = (
    *(f"{name}, {weighing}" for weighing in _WEIGHINGS for name in SAID),
    *ASKED,
    "may be maybe",
    "words asked",
    "sentences",
    "relevance of the nearest",
    "relevance of the conclusion",
    "reads like a conclusion",
)
"""Names of the numbers, in order."""


def measure_cues(question: str, sentences: Sequence[CuedSentence], *, maybe: bool = True) -> Row:
    """The numbers of a question and its evidence, of shape (len(FEATURES),).

    `maybe`: whether it is offered as an answer.
    """
    import numpy as np

    wants = [float(bool(cue.search(question))) for cue in ASKED.values()]
    asked = [*wants, float(maybe), log1p(len(question.split()))]
    if not sentences:
        return np.array([0.0] * (len(FEATURES) - len(asked) - 4) + asked + [0.0] * 4)
    said = np.array([_read_cues(question, one.text) for one in sentences], float)
    near = np.array([one.relevance for one in sentences])
    weights = np.exp(8 * (near - near.max()))
    reads = np.array([score_conclusion(one) for one in sentences])
    own = np.array([1.0 if one.first else 0.02 for one in sentences])
    ends = weights * np.exp(reads) * own
    best = int(ends.argmax())
    sums = [weights @ said / weights.sum(), ends @ said / ends.sum(), said[best]]
    told = [log1p(len(sentences)), near.max(), near[best], reads[best]]
    return np.concatenate([*sums, asked, told])


def score_conclusion(sentence: CuedSentence) -> float:
    """How much a sentence reads like the conclusion of a study; a label decides."""
    text = sentence.text
    return (
        3.0 * sentence.concludes
        + 1.5 * bool(_SUMS_UP.search(text))
        + 0.7 * bool(_STATES.search(text))
        - 0.8 * any(map(str.isdigit, text))
        - 1.0 * bool(_AIM.search(text))
        - 1.2 * bool(_METHOD.search(text))
        - 0.4 * bool(_PAST.search(text))
    )


def _read_cues(question: str, text: str) -> list[bool]:
    """What a sentence says, in the order of `SAID`."""
    cues = {name: bool(cue.search(text)) for name, cue in CUES.items()}
    up, down = bool(_UP.search(text)), bool(_DOWN.search(text))
    asks_up, asks_down = bool(_UP.search(question)), bool(_DOWN.search(question))
    denied = cues["denial"] or cues["no effect"] or cues["not significant"]
    same = not denied and ((asks_up and up) or (asks_down and down))
    opposite = (asks_up and down and not up) or (asks_down and up and not down)
    unmoved = (asks_up or asks_down) and (denied or cues["no difference"])
    return [*cues.values(), _is_denied(question, text), same, opposite, unmoved]


def _is_denied(question: str, text: str) -> bool:
    """Whether a word of the question follows closely on a negation."""
    asked = {word[:6] for word in content_terms(question)}
    words = [word.lower() for word in _WORD.findall(text)]
    return any(
        not asked.isdisjoint(word[:6] for word in words[place + 1 : place + 1 + _SCOPE])
        for place, word in enumerate(words)
        if _NEGATES.fullmatch(word)
    )
