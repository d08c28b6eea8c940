"""Exact match and F1 of short answers, English and Chinese."""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence

from osler.text import is_cjk

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_ASCII_MARKS = str.maketrans("", "", string.punctuation)
_VERDICTS = frozenset({"yes", "no", "noanswer"})


def normalise_answer(text: str) -> str:
    """Normalises as SQuAD does: lower case, no punctuation, no articles, single spaces.

    Beyond the released code, Chinese and other punctuation goes too (no code we know does
    that), and full-width letters are the plain ones.
    """
    # NFKC turns full-width letters and digits into plain ones before marks are removed.
    folded = unicodedata.normalize("NFKC", text).lower().translate(_ASCII_MARKS)
    bare = "".join(c for c in folded if not unicodedata.category(c).startswith("P"))
    return " ".join(_ARTICLES.sub(" ", bare).split())


def answer_tokens(text: str) -> list[str]:
    """Splits the normal form into words; each Han character is a word (KAG's evaUtils)."""
    spaced = "".join(f" {c} " if is_cjk(c) else c for c in normalise_answer(text))
    return spaced.split()


def exact_match(answer: str, golds: Sequence[str]) -> float:
    """Returns 1.0 when the answer's normal form is that of any gold answer, else 0.0.

    Chinese is compared without spaces. Raises `ValueError` for no golds.
    """
    return max(float(_strip_marks(answer) == _strip_marks(gold)) for gold in golds)


def _strip_marks(text: str) -> str:
    return " ".join(answer_tokens(text))


def f1(answer: str, golds: Sequence[str]) -> float:
    """F1 of the token multisets, the best over the golds (KAG's evaUtils uses one gold).

    Where one side is "yes", "no" or "noanswer", only the same word scores. Two empty sides
    are equal. Raises `ValueError` for no golds.
    """
    return max(_token_f1(answer, gold) for gold in golds)


def _token_f1(answer: str, gold: str) -> float:
    said, meant = answer_tokens(answer), answer_tokens(gold)
    answer_text, gold_text = " ".join(said), " ".join(meant)
    # HotpotQA's script: "yes" shares no partial credit with a longer answer.
    if answer_text != gold_text and (answer_text in _VERDICTS or gold_text in _VERDICTS):
        return 0.0
    if not said or not meant:
        return float(said == meant)
    shared = sum((Counter(said) & Counter(meant)).values())
    return 2 * shared / (len(said) + len(meant))


_NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?")
# Values are stated to three digits.
_ROUNDING = 0.006


def holds_answer(said: str, gold: str) -> bool:
    """Whether a text holds the gold: every part of "A; B" as whole words, or a number to 0.6 %."""
    try:
        wanted = float(gold)
    except ValueError:
        text = f" {' '.join(answer_tokens(said))} "
        return all(f" {' '.join(answer_tokens(part))} " in text for part in gold.split(";"))
    stated = (float(number.replace(",", "")) for number in _NUMBER.findall(said))
    return any(abs(one - wanted) <= _ROUNDING * max(abs(wanted), 1e-9) for one in stated)
