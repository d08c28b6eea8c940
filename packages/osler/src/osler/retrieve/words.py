"""Content words of a query."""

from __future__ import annotations

from osler.text import is_cjk, split_words

# "who" is none of them: in medicine it is also the WHO. Nor is "not".
_FUNCTION_WORDS = (
    "a about after all also am an and any are as at be because been before being between both but"
    " by can could did do does doing during each for from had has have having he her here him his"
    " how i if in into is it its itself me more most my of on once only or other our ours out over"
    " own s same she should so some such than that the their them then there these they this"
    " those through to too under until up very was we were what when where which while why will"
    " with would you your"
)
STOP_WORDS = frozenset(_FUNCTION_WORDS.split())
# Characters that hardly ever occur inside a content word.
_PARTICLES = frozenset("的了吗呢吧啊么什怎哪是")
# Function characters that also occur inside words, unlike particles.
STOP_CHARACTERS = _PARTICLES | frozenset(
    "在和与或些个有就也都而及其被把对为以于这那之你我他她它们请问如何"
)


def content_terms(text: str) -> list[str]:
    """Distinct content words in order of appearance; possibly none.

    A pair of Chinese characters is dropped when both are function characters ("如何") or one is a
    particle ("病的"): such a pair is no word, and rare enough to distort the ranking.
    """
    return list(dict.fromkeys(word for word in split_words(text) if not _is_empty(word)))


def _is_empty(word: str) -> bool:
    if word in STOP_WORDS or STOP_CHARACTERS.issuperset(word):
        return True
    return not _PARTICLES.isdisjoint(word)


def term_weight(term: str) -> float:
    """Weight of a term: a single Chinese character counts half, since it recurs in one or two
    pairs."""
    return 0.5 if len(term) == 1 and is_cjk(term) else 1.0
