"""Which kinds of evidence differ."""

from __future__ import annotations

import pytest

from osler.answer.cautions import find_cautions
from osler.answer.sides import word_sides
from osler.types import Answer, Evidence, Hit, Language, Locator, Passage, Statement


def _passage(name: str, text: str, source: str = "guideline", year: int | None = 2016) -> Passage:
    return Passage(f"{source}:{name}#0", text, source, name, Locator(year=year))


def test_two_guidelines_differ_with_their_years() -> None:
    old = _passage("Samplosis", "Samplosis is treated with examplol 10 mg once a day.")
    new = _passage("Doses", "Examplol 40 mg once a day is how samplosis is treated.", year=2022)
    quote = Evidence(Hit(old, 1.0, 1, "q", "x"), 0, len(old.text))
    answer = Answer((Statement(old.text, (1,)),), (quote,))
    texts = [c.text for c in find_cautions(answer, [Hit(new, 1.0, 2, "q", "x")])]
    assert any(text.startswith("Two guidelines differ (2016 and 2022). [1] ") for text in texts)


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "A guideline and an encyclopaedia article differ (2016 and 2010). "),
        ("zh", "指南与百科条目说法不一（2016、2010）。"),
    ],
)
def test_two_kinds_are_named(language: Language, said: str) -> None:
    assert word_sides(_passage("a", "x"), _passage("b", "y", "wiki", 2010), language) == said


def test_what_is_not_known_is_not_said() -> None:
    assert word_sides(_passage("a", "x"), _passage("b", "Pain.", "own"), "en") == ""
    undated = word_sides(_passage("a", "x"), _passage("b", "y", year=None), "en")
    assert undated == "Two guidelines differ. "
