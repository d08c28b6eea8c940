"""How sure an answer is, in plain words."""

from __future__ import annotations

from osler.types import Language, Sureness

_WORDS = {
    "en": "Estimated probability that this evidence answers the question: {:.0f} %.",
    "zh": "据估计，这些证据能回答该问题的概率为 {:.0f}%。",
}


def describe_sureness(sureness: Sureness, language: Language) -> str:
    """A sentence for the reader; a calibrated estimate is never called certain."""
    return _WORDS[language].format(min(99.0, max(1.0, 100 * sureness.probability)))
