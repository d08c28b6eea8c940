"""What evidence says by its words: negation, findings, hedges, directions, p-values.

A yes/no question and the sentences found for it become a row of numbers. Sentences weigh by the
share of the question's content words that they have, so what is beside the point says little.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import log1p
from typing import TYPE_CHECKING

from osler.retrieve.words import content_terms

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    Row: TypeAlias = NDArray[np.float64]


def _pattern(words: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{words})\b", re.IGNORECASE)


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
    "rise": _pattern(r"increas\w*|higher|elevat\w*|greater|rais\w*|enhanc\w*|up-?regulat\w*"),
    "fall": _pattern(r"decreas\w*|lower\w*|reduc\w*|fewer|less|inhibit\w*|down-?regulat\w*"),
    "hedge": _pattern(
        r"may|might|could|possib(?:le|ly)|potential(?:ly)?|suggest\w*|appear(?:s|ed)?|seem\w*"
        r"|likely|probabl[ey]|whether|hypothes\w*"
    ),
    "doubt": _pattern(
        r"unclear|unknown|controvers\w*|conflicting|inconsistent|inconclusive|debat\w*"
        r"|further (?:studies|research|investigation)|remains?|limited|however|although|despite"
        r"|but|only"
    ),
    "p small": re.compile(r"\bp\s*(?:<|≤|=\s*0?\.0[0-4]|<=)\s*0?\.?\d*", re.IGNORECASE),
    "p large": re.compile(
        r"\bp\s*(?:>|≥|=\s*0?\.(?:0[5-9]|[1-9]))|\b(?:NS|n\.s\.)(?!\w)", re.IGNORECASE
    ),
    "conclusion": _pattern(r"conclu(?:de|sion|sions)|in summary|our (?:results|findings|data)"),
}
"""Cues of a sentence, each present or not."""
ASKED: Mapping[str, re.Pattern[str]] = {
    "asks negation": _pattern(r"not|no|without|lack|fail|ineffective|unsafe"),
    "asks whether one can": _pattern(r"can|could|may|should|do we|need"),
    "asks for benefit": _pattern(
        r"effective|efficac\w*|benefi\w*|improv\w*|useful|helpful|safe|recommended|treat\w*|prevent\w*"
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
}
"""Cues of a question."""
_SUMS = ("mean", "best", "first")
FEATURES: tuple[str, ...] = (
    *(f"{name}, {kind}" for name in CUES for kind in _SUMS),
    *ASKED,
    *(f"{asked} x {said}" for asked in ASKED for said in ("negation", "null finding")),
    "sentences",
    "best overlap",
    "mean overlap",
)
"""Names of the numbers, in order."""


def measure_cues(question: str, sentences: Sequence[str]) -> Row:
    """The numbers of a question and its evidence, of shape (len(FEATURES),).

    `mean` weighs a cue's presence by the sentences' overlap with the question, `best` is its
    presence in the sentence of the highest overlap, `first` in the first sentence.
    """
    import numpy as np

    asked = set(content_terms(question))
    overlap = np.array([_overlap_of(asked, sentence) for sentence in sentences] or [0.0])
    said = np.array(
        [[bool(cue.search(one)) for cue in CUES.values()] for one in sentences]
        or [[False] * len(CUES)],
        float,
    )
    # A little for each, so that evidence without a shared word still says something.
    weights = overlap + 0.05
    mean = weights @ said / weights.sum()
    best, first = said[int(overlap.argmax())], said[0]
    wants = np.array([bool(cue.search(question)) for cue in ASKED.values()], float)
    names = list(CUES)
    crossed = np.outer(wants, mean[[names.index("negation"), names.index("null finding")]])
    size = [log1p(len(sentences)), overlap.max(), overlap.mean()]
    per_cue = np.stack([mean, best, first], 1).ravel()
    return np.concatenate([per_cue, wants, crossed.ravel(), size])


def _overlap_of(asked: set[str], sentence: str) -> float:
    """Share of the question's content words that the sentence has."""
    return len(asked & set(content_terms(sentence))) / len(asked) if asked else 0.0
