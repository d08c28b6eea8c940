"""Questions that chain relations, answered from invented texts without a model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from osler.answer import UNDECIDED, Decision
from osler.methods.kag.pool import QuestionSearch
from osler.methods.kag.text_route import FactFinder, TextRoute
from osler.methods.kag.text_route.open_spans import find_open_span
from osler.methods.kag.text_route.reading import Chain, TextQuery, read_question
from osler.methods.kag.text_route.relations import read_text_vocabulary
from osler.methods.kag.text_route.spans import find_span, read_date
from osler.retrieve import rank_hits
from osler.trace import FormSolved, FormsPlanned, Run
from osler.types import Answer, Grounding, Halt, Hit, Passage, Question, Solution

PAGES = {
    "The Lamp Room": "The Lamp Room is a 1951 British drama film directed by Ada Quill.",
    "Salt Road": "Salt Road is a 1960 film. Directed by Boris Amsel, it stars Ida Fenn.",
    "Ada Quill": "Ada Quill( 3 May 1902 – March 9, 1980) was an English film director.",
    "Boris Amsel": "Boris Amsel (born 12 June 1920 in Lund, Sweden) is a Swedish director."
    " His father, Nils Amsel, was a painter.",
    "Nils Amsel": "Nils Amsel (Uppsala, 1 January 1880 – 2 February 1950) was a Swedish painter.",
    "Lund": "Lund is a city. The first hospital of Lund opened in 1768.",
}


@dataclass
class Words:
    """Ranks passages by the share of the query's words that they have."""

    async def search(self, query: str, *, k: int) -> list[Hit]:
        wanted = set(re.findall(r"\w+", query.casefold()))
        passages = [
            Passage(f"wiki:{title}#0", text, "wiki", title) for title, text in PAGES.items()
        ]
        scored = [
            (one, len(wanted & set(re.findall(r"\w+", f"{one.title} {one.text}".casefold()))))
            for one in passages
        ]
        best = sorted(((p, float(n)) for p, n in scored if n), key=lambda pair: -pair[1])
        return rank_hits(best[:k], query, "wiki")


@dataclass
class Titles:
    """A composer that keeps the titles of what it was given and abstains."""

    uses_draft = False
    writes_answer = False
    titles: tuple[str, ...] = ()

    async def conclude(
        self,
        question: Question,
        hits: Sequence[Hit],
        draft: str,
        run: Run,
        *,
        decision: Decision = UNDECIDED,
    ) -> Answer:
        self.titles = tuple(hit.passage.title for hit in hits)
        return Answer()


async def ask(text: str, composer: Titles | None = None) -> tuple[Solution | None, Run]:
    run = Run(seed=0)
    route = TextRoute(FactFinder(Words()), composer or Titles(), QuestionSearch(Words()))
    return await route.solve(Question("q", text), run), run


@pytest.mark.parametrize(
    ("asked", "answer", "values"),
    [
        (
            "Where was the director of film Salt Road born?",
            "Lund, Sweden.",
            ["Boris Amsel", "Lund, Sweden"],
        ),
        ("When did Boris Amsel's father die?", "2 February 1950.", ["Nils Amsel"]),
        (
            "Which film has the director who was born first, The Lamp Room or Salt Road?",
            "The Lamp Room.",
            ["Ada Quill", "3 May 1902", "Boris Amsel", "12 June 1920"],
        ),
        ("Who lived longer, Ada Quill or Nils Amsel?", "Ada Quill.", []),
        ("Was The Lamp Room or Salt Road released first?", "The Lamp Room.", ["1951", "1960"]),
        (
            "Are the directors of films The Lamp Room and Salt Road from the same country?",
            "No.",
            ["Ada Quill", "English", "Boris Amsel", "Swedish"],
        ),
        ("Do Boris Amsel and Nils Amsel have the same nationality?", "Yes.", []),
    ],
)
async def test_each_step_takes_its_value_from_the_sentence_that_states_it(
    asked: str, answer: str, values: list[str]
) -> None:
    solution, run = await ask(asked)
    assert solution is not None
    assert solution.halt is Halt.CONVERGED
    assert solution.answer.statements[0].text == answer
    assert solution.answer.grounding is Grounding.GROUNDED
    solved = [event.answer for event in run.events if isinstance(event, FormSolved)]
    assert solved[: len(values)] == values
    assert len([event for event in run.events if isinstance(event, FormsPlanned)]) == 1
    for statement in solution.answer.statements[1:]:
        (number,) = statement.cites
        value = statement.text.rstrip(".").rpartition(" ")[2]
        quote = solution.answer.evidence[number - 1].quote
        assert value in quote or "years" in value


async def test_a_step_without_a_sure_span_is_unknown_and_what_was_found_is_quoted() -> None:
    composer = Titles()
    solution, run = await ask("Who is the mother of the director of Salt Road?", composer)
    assert solution is not None
    assert "1 of 2 steps" in solution.why
    assert composer.titles[0] == "Salt Road"
    solved = [(event.status, event.answer) for event in run.events if isinstance(event, FormSolved)]
    assert solved == [("done", "Boris Amsel"), ("failed", ""), ("failed", "")]


async def test_a_question_of_no_known_relation_about_a_value_quotes_the_nearest_sentence() -> None:
    solution, run = await ask(
        "When did the first hospital open in the city where Boris Amsel was born?"
    )
    assert solution is not None
    assert solution.answer.statements[0].text == "The first hospital of Lund opened in 1768."
    assert [event.answer for event in run.events if isinstance(event, FormSolved)][1] == "1768"


@pytest.mark.parametrize(
    "asked",
    [
        "What is the treatment of pneumonia?",
        "Who directed Salt Road?",
        "What should a child with fever and a rash be given?",
        "Is metformin or insulin better for type 2 diabetes?",
        "Which antibiotic is given first, amoxicillin or doxycycline?",
        "Why did the patient die?",
        "My child has had a fever for three days. What is it?",
        "Is ABC1 an m6A writer or eraser?",
        "Which company developed Colvexin?",
        "二甲双胍的常见不良反应是什么？",
    ],
)
async def test_a_question_that_chains_nothing_is_left(asked: str) -> None:
    solution, run = await ask(asked)
    assert solution is None
    assert not run.events


def test_readings_of_a_question_keep_names_whole() -> None:
    asked = "Who is the paternal grandmother of Henry, Duke of Arden's wife?"
    assert TextQuery((Chain("Henry, Duke of Arden", ("spouse", "father", "mother")),)) in (
        read_question(asked)
    )
    (query, *_) = read_question("Who died first, Cat and Mouse or Dog or Wolf?")
    assert query.operation == "earliest"
    names = [
        tuple(chain.name for chain in one.chains)
        for one in read_question("Who is older, A or B or C?")
    ]
    assert names == [("A", "B or C"), ("A or B", "C")]


@pytest.mark.parametrize(
    ("relation", "text", "value"),
    [
        ("half_life", "The half-life of colvexin is 20 to 60 hours in adults.", "20 to 60 hours"),
        ("incubation_period", "The incubation period is usually 7-14 days.", "7-14 days"),
        ("pathogen", "It is caused by the bacterium Yersinia pestis.", "Yersinia pestis"),
        ("antidote", "The antidote is intravenous fomepizole, if in time.", "fomepizole"),
        ("founder", "The sign was first described by Otto Vane in 1899.", "Otto Vane"),
        ("mother", "She was a daughter of Duke Karl of Arden, and Ida of Metz.", "Ida of Metz"),
        ("father", "His father, Karl Amsel, was a smith.", "Karl Amsel"),
        (
            "date_of_death",
            "Ida Fenn( June 1, 1912 August 10, 2002) was a nurse.",
            "August 10, 2002",
        ),
        (
            "date_of_birth",
            "Ida Fenn( born Ida Koss; 1 June 19123 June 1996) was a nurse.",
            "1 June 1912",
        ),
        ("country", "Ida Fenn was a Hungarian-American nurse.", "Hungarian-American"),
        ("country", "The airport is near Bodo in British Columbia, Canada.", "Canada"),
    ],
)
def test_the_span_rule_reads_what_texts_state(relation: str, text: str, value: str) -> None:
    found = find_span(read_text_vocabulary().relations[relation], "Colvexin", text, own=True)
    assert found is not None
    assert found.value == value
    assert value in text[found.start : found.end]


def test_a_text_about_something_else_must_name_the_subject() -> None:
    relation = read_text_vocabulary().relations["country"]
    text = "The dam lies near Norra, Skane, Sweden."
    assert find_span(relation, "Norra", text, own=False)
    assert find_span(relation, "Lund", text, own=False) is None


def test_dates_are_compared_to_the_day() -> None:
    dates = ["3 May 1902", "May 4, 1902", "June 1902", "1903", "12 March 1903"]
    read = [read_date(each) for each in dates]
    assert read == sorted(read, key=lambda date: date or 0)
    assert read_date("spring") is None


def test_an_open_span_is_of_the_kind_that_is_asked_for() -> None:
    texts = ["Bees are insects.", "In Lund 40 nurses were trained in 1890 by Ida Fenn."]
    asked = [f"{words} nurses trained in Lund?" for words in ("When were", "How many", "Who had")]
    found = [find_open_span(each, texts) for each in asked]
    assert [(one[0], one[1].value) for one in found if one] == [
        (1, "1890"),
        (1, "40"),
        (1, "Ida Fenn"),
    ]
    assert find_open_span("Who painted the ceiling of the chapel?", texts) is None
