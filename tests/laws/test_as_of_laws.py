"""What is searched as of a year is what a knowledge base without later documents gives."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from osler.kb.base import KnowledgeBase
from osler.kb.search.base import PassageFilter
from osler.types import Locator, Passage

WORDS = ("iron", "anaemia", "treats", "treatment", "1.5", "dose", "贫血", "quinine", "quinidine")
texts = st.lists(
    st.tuples(
        st.sampled_from(["book", "guideline"]),
        st.sampled_from([None, 2018, 2019, 2020, 2021]),
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=30),
    ),
    min_size=1,
    max_size=12,
)


def make_base(folder: Path, passages: list[Passage]) -> KnowledgeBase:
    kb = KnowledgeBase.create(folder)
    for one in passages:
        kb.put([one])
    return kb


def spread(written: list[tuple[str, int | None, list[str]]]) -> list[Passage]:
    return [
        Passage(
            f"{source}:d{n}#0", f"{n} {' '.join(words)}.", source, f"Title {n}", Locator(year=year)
        )
        for n, (source, year, words) in enumerate(written)
    ]


@given(texts, st.lists(st.sampled_from(WORDS), min_size=1, max_size=4, unique=True))
def test_words_weigh_as_in_a_base_that_was_frozen_then(
    written: list[tuple[str, int | None, list[str]]], asked: list[str]
) -> None:
    passages = spread(written)
    known = [one for one in passages if one.locator.year and one.locator.year <= 2019]
    with TemporaryDirectory() as folder:
        whole, frozen = (
            make_base(Path(folder) / name, held)
            for name, held in (("whole", passages), ("frozen", known))
        )
        with whole, frozen:
            for scope in (None, ("book",)):
                within = PassageFilter(scope, (None, 2019), as_of=20191231)
                now = whole.by_words(asked, k=20, within=within)
                then = frozen.by_words(asked, k=20, within=PassageFilter(scope))
                assert [one.id for one, _ in now] == [one.id for one, _ in then]
                for (_, mine), (_, theirs) in zip(now, then, strict=True):
                    assert abs(mine - theirs) < 1e-6
            assert whole.term_rarity(asked, as_of=20191231) == frozen.term_rarity(asked)
            assert whole.near_terms("quinine", as_of=20191231) == frozen.near_terms("quinine")


def test_a_question_of_many_terms_keeps_the_rarest_known_then() -> None:
    words = [f"word{n}x" for n in range(90)]
    passages = spread([("book", 2018 + n % 4, words[n : n + 9]) for n in range(80)])
    known = [one for one in passages if one.locator.year and one.locator.year <= 2019]
    with TemporaryDirectory() as folder:
        whole = make_base(Path(folder) / "whole", passages)
        frozen = make_base(Path(folder) / "frozen", known)
        with whole, frozen:
            within = PassageFilter(None, (None, 2019), as_of=20191231)
            now, then = whole.by_words(words, k=50, within=within), frozen.by_words(words, k=50)
            assert [one.id for one, _ in now] == [one.id for one, _ in then] != []
