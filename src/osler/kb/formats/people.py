"""Ages of people as a de-identified record may tell them."""

from __future__ import annotations

from datetime import date

_OLDEST = 89
"""Above it an age can point to a person (HIPAA, 45 CFR 164.514(b)(2)(i)(C))."""


def age_between(born: date, then: date) -> int:
    """Whole years of age on the day `then`; not below 0."""
    had_no_birthday = (then.month, then.day) < (born.month, born.day)
    return max(0, then.year - born.year - had_no_birthday)


def age_text(age: int | None) -> str:
    """ "70", "90 or over", "unknown"."""
    if age is None:
        return "unknown"
    return str(age) if age <= _OLDEST else "90 or over"
