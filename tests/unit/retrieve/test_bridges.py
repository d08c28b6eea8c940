"""Names that a question of several hops asks through and does not name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from osler.retrieve.bridges import bridge_names, is_looked_up, missing_names, named_titles
from osler.types import Hit, Passage, Question

FILM = Passage(
    "w#0",
    "Parachute Nurse is a 1942 American film made at Columbia Pictures and directed by Charles "
    "Barton. It stars Marguerite Chapman.",
    "wiki",
    "Parachute Nurse",
)
OTHER = Passage("w#1", "The Galloping Kid was directed by Nat Ross.", "wiki", "The Galloping Kid")
WARD = Passage(
    "b#0",
    "In moderate pneumonia clarithromycin is added to amoxicillin. Simvastatin is for the heart.",
    "book",
    "Pneumonia",
)
ASKED = "Which film has the older director, The Galloping Kid or Parachute Nurse?"
CASE = (
    "A man of 66 takes simvastatin for his heart. He is admitted with pneumonia of moderate "
    "severity. What is to be done with his tablets?"
)


def hits(*passages: Passage, query: str = "") -> list[Hit]:
    return [Hit(one, 1.0, n, query, one.source) for n, one in enumerate(passages, 1)]


def test_documents_that_a_question_names_are_known_by_their_titles() -> None:
    short = Passage("w#2", "A nurse cares for patients.", "wiki", "Nurse")
    named = named_titles(ASKED, hits(short, OTHER, FILM))
    assert named == [OTHER, FILM], "a title within another one's is not what was named"


def test_a_name_near_a_word_of_the_question_comes_first() -> None:
    assert bridge_names(ASKED, FILM)[0] == "Charles Barton"
    assert "Parachute Nurse" not in bridge_names(ASKED, FILM)


def test_what_the_question_asks_through_is_looked_up() -> None:
    names = missing_names(Question("q", ASKED), hits(FILM, OTHER))
    assert names == ("Charles Barton", "Nat Ross")


@pytest.mark.parametrize("asked", ["What is pneumonia?", "How is the INR watched on warfarin?"])
def test_a_question_of_one_step_lacks_nothing(asked: str) -> None:
    assert missing_names(Question("q", asked), hits(WARD, FILM)) == ()


def test_a_case_asks_through_the_drugs_that_are_given_for_it() -> None:
    names = missing_names(Question("q", CASE), hits(WARD))
    assert names == ("simvastatin + clarithromycin", "simvastatin + amoxicillin")


@pytest.mark.parametrize(
    ("query", "title", "text", "found"),
    [
        ("Charles Barton", "Charles Barton (director)", "He made films.", True),
        ("Charles Barton", "Parachute Nurse", "Directed by Charles Barton.", False),
        ("simvastatin + clarithromycin", "Drugs", "Clarithromycin raises simvastatin.", True),
        ("simvastatin + clarithromycin", "Drugs", "Clarithromycin is a macrolide.", False),
    ],
)
def test_found_is_what_bears_the_name_or_has_both(
    query: str, title: str, text: str, found: bool
) -> None:
    (hit,) = hits(Passage("x#0", text, "wiki", title), query=query)
    assert is_looked_up(hit) is found


def test_two_drugs_that_are_asked_about_lack_no_third() -> None:
    both = Passage("b#1", "Clarithromycin raises simvastatin; use azithromycin.", "book", "Drugs")
    asked = Question("q", "He takes simvastatin. May he have clarithromycin with it for a week?")
    assert missing_names(asked, hits(both)) == ()
    third = replace(both, text="Amoxicillin is the first choice.")
    assert missing_names(asked, hits(third))[0] == "simvastatin + amoxicillin"


def test_more_names_than_can_be_asked_are_cut() -> None:
    films: Sequence[Passage] = [
        Passage(f"w#{n}", f"{name} was directed by Ann {name}son.", "wiki", f"{name} Story")
        for n, name in enumerate(("Alpha", "Bravo", "Carol", "Delta", "Early"))
    ]
    asked = "Which director was born first, of " + ", ".join(one.title for one in films) + "?"
    assert len(missing_names(Question("q", asked), hits(*films))) == 4
