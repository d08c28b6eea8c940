"""Words of an answer beside those of the gold: exact match, F1, BLEU and ROUGE-L.

All scores lie in 0 to 1. Several references: BLEU counts against all of them, ROUGE takes the
best one.
"""

from __future__ import annotations

import math
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from osler.text import has_cjk, is_cjk
from osler.types import Language

# The characters that sacrebleu's zh sets apart. From U+2001 on they are its own slip (five
# hexadecimal digits written as four and one); "Ⅱ" and "①" are among them, so it is kept.
_APART = re.compile(
    "([\u2001-\u2a6d\u2e80-\u2fa1\u2ff0-\u303f\u3100-\u312f\u31a0-\u31bf\u31c0-\u31ef\u3200-\u33ff"
    "\u3400-\u4db5\u4e00-\u9fbb\uf900-\ufad9\ufe10-\ufe1f\ufe30-\ufe4f\uff00-\uffef])"
)
_MARKS = re.compile(r"([{-~\[-` -&(-+:-@/])")
_AFTER_OTHER = re.compile(r"([^0-9])([.,])")
_BEFORE_OTHER = re.compile(r"([.,])([^0-9])")
_DASH = re.compile(r"([0-9])(-)")
_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))


def bleu_tokens(text: str, language: Language) -> list[str]:
    """Tokenizes as sacrebleu does: 13a (mteval-v13a); zh for Chinese, a token per character."""
    line = text.replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    for entity, character in _ENTITIES:
        line = line.replace(entity, character)
    if language == "zh":
        line = _APART.sub(r" \1 ", line.strip())
    line = _MARKS.sub(r" \1 ", f" {line} ")
    line = _BEFORE_OTHER.sub(r" \1 \2", _AFTER_OTHER.sub(r"\1 \2 ", line))
    return _DASH.sub(r"\1 \2 ", line).split()


@dataclass(frozen=True, slots=True)
class NgramMatches:
    """N-gram counts that BLEU needs of an answer."""

    matched: tuple[int, ...]
    """n-grams of the answer that are in a reference, for n from 1."""
    total: tuple[int, ...]
    said: int
    """Tokens of the answer, and of the reference that is nearest in length."""
    meant: int


def count_matches(
    said: Sequence[str], references: Sequence[Sequence[str]], order: int
) -> NgramMatches:
    """Raises `ValueError` for no references."""
    if not references:
        raise ValueError("BLEU needs a reference")
    hits, totals = [], []
    for n in range(1, order + 1):
        ngrams = _ngrams(said, n)
        allowed: Counter[tuple[str, ...]] = Counter()
        for reference in references:
            # The maximum over references, n-gram by n-gram: BLEU's clipped counts.
            allowed |= _ngrams(reference, n)
        hits.append(sum((ngrams & allowed).values()))
        totals.append(sum(ngrams.values()))
    # Of equally near references the shorter one, as in mteval.
    nearest = min((abs(len(r) - len(said)), len(r)) for r in references)[1]
    return NgramMatches(tuple(hits), tuple(totals), len(said), nearest)


def _ngrams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def brevity_penalty(said: int, meant: int) -> float:
    """BLEU's brevity penalty."""
    if said >= meant:
        return 1.0
    return math.exp(1 - meant / said) if said else 0.0


def bleu(answer: str, references: Sequence[str], order: int = 4) -> float:
    """BLEU-`order` of one answer: weights 1/order each, on `bleu_tokens`.

    Precisions without a match are smoothed as in mteval; orders that the answer is too short for
    are left out, as is usual for single sentences. A Han character anywhere makes it Chinese.
    Raises `ValueError` for no references.
    """
    counts = _count_tokenized(answer, references, order)
    if not any(counts.matched):
        return 0.0
    logs, halves = [], 1
    for matched, total in zip(counts.matched, counts.total, strict=True):
        if not total:
            break
        if not matched:
            # mteval's smoothing: the k-th order without a match counts 1 / (2^k * total).
            halves *= 2
        logs.append(math.log(matched / total if matched else 1 / (halves * total)))
    return brevity_penalty(counts.said, counts.meant) * math.exp(sum(logs) / len(logs))


def _count_tokenized(answer: str, references: Sequence[str], order: int) -> NgramMatches:
    language = _language_of_texts(answer, references)
    wanted = [bleu_tokens(reference, language) for reference in references]
    return count_matches(bleu_tokens(answer, language), wanted, order)


def _language_of_texts(answer: str, references: Sequence[str]) -> Language:
    # One Han character on either side: both sides must be cut by the same rules.
    return "zh" if has_cjk("".join((answer, *references))) else "en"


def paper_bleu(answer: str, references: Sequence[str], order: int = 4) -> float:
    """Computes TC-RAG's own "BLEU-n": BP · p1^(1/n) on characters (`utils.py`, weights 1/n, 0 …).

    Higher than BLEU for every order above 1; only for comparison with the printed numbers.
    """
    counts = count_matches(list(answer), [list(reference) for reference in references], 1)
    if not counts.matched[0]:
        return 0.0
    precision = counts.matched[0] / counts.total[0]
    return brevity_penalty(counts.said, counts.meant) * math.pow(precision, 1 / order)


@dataclass(frozen=True, slots=True)
class RougeScore:
    precision: float
    recall: float

    @property
    def f1(self) -> float:
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


_WORD = re.compile("[a-z0-9]+")


def rouge_tokens(text: str, language: Language) -> list[str]:
    """Tokenizes as rouge-score does by default: runs of a-z and 0-9 in lower case, not stemmed.

    Articles stay, all other characters part words. Chinese, of which rouge-score keeps nothing:
    the same after NFKC, and each Han character is a token.
    """
    if language == "en":
        return _WORD.findall(text.lower())
    folded = unicodedata.normalize("NFKC", text).lower()
    return "".join(_set_apart(char) for char in folded).split()


def _set_apart(char: str) -> str:
    if is_cjk(char):
        return f" {char} "
    return char if _WORD.fullmatch(char) else " "


def rouge_l(answer: str, references: Sequence[str]) -> RougeScore:
    """Longest common subsequence on `rouge_tokens`; of several references the best by F1.

    Of equal F1 the first reference counts, as with rouge-score. Raises `ValueError` for no
    references.
    """
    return max(_score_each(answer, references), key=lambda found: found.f1)


def rouge_r(answer: str, references: Sequence[str]) -> float:
    """ROUGE-L recall, the best over the references (TC-RAG's ROUGE-R as its code has it)."""
    return max(found.recall for found in _score_each(answer, references))


def _score_each(answer: str, references: Sequence[str]) -> list[RougeScore]:
    language = _language_of_texts(answer, references)
    said = rouge_tokens(answer, language)
    return [_rouge(said, rouge_tokens(reference, language)) for reference in references]


def _rouge(said: Sequence[str], meant: Sequence[str]) -> RougeScore:
    if not said or not meant:
        return RougeScore(0.0, 0.0)
    length = _lcs(said, meant)
    return RougeScore(length / len(said), length / len(meant))


def _lcs(first: Sequence[str], second: Sequence[str]) -> int:
    """Length of the longest common subsequence, by bits: fast for texts of some thousand words."""
    places: dict[str, int] = {}
    for i, word in enumerate(second):
        places[word] = places.get(word, 0) | 1 << i
    free = whole = (1 << len(second)) - 1
    for word in first:
        # A cleared bit is a place where the subsequence has grown (Crochemore et al. 2001).
        hits = free & places.get(word, 0)
        free = ((free + hits) | (free - hits)) & whole
    return len(second) - free.bit_count()


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


def holds_any(said: str, golds: Sequence[str]) -> float:
    """Returns 1.0 when the text holds any of the golds, else 0.0."""
    return float(any(holds_answer(said, gold) for gold in golds))
