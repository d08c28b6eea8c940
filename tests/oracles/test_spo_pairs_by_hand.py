"""The plans of one case, worked by hand (Omni-RAG §4.2.3).

    book        q1 + , q2 + , q3 + , q4 + , q5 - , q6 -
    guideline   q1 - , q2 -
    research    q1 + , q2 unread
    graph       (none explored)

P⁺ has three of book's four, none of guideline, research's one; P⁻ has book's two, guideline's
two, none of research. Book is the only source with a choice: 4 plans of 3, each drawn about as
often over many seeds.
"""

from collections import Counter
from math import isclose

from osler.types import Question
from osler_lab.evaluate.record import Gold, Sample
from osler_lab.train.spo.explore import TrainingCase
from osler_lab.train.spo.judge import JudgedCase, QueryVerdict
from osler_lab.train.spo.recipe import case_random, plan_pair

SOURCES = ("book", "guideline", "research", "graph")
SAID = [
    *(QueryVerdict("book", f"b{n}", n <= 4) for n in range(1, 7)),
    QueryVerdict("guideline", "g1", False),
    QueryVerdict("guideline", "g2", False),
    QueryVerdict("research", "r1", True),
    QueryVerdict("research", "r2", None),
]
JUDGED = JudgedCase(TrainingCase(Sample("t", "long", Question("q", "Why?"), Gold())), tuple(SAID))


def test_the_negative_plan_has_no_choice() -> None:
    pair = plan_pair(JUDGED, case_random(0, "q"), sources=SOURCES)
    assert {q.wire for q in pair.negative.of_source("book")} == {"b5", "b6"}
    assert {q.wire for q in pair.negative.of_source("guideline")} == {"g1", "g2"}
    assert pair.negative.of_source("research") == ()


def test_the_positive_plan_leaves_out_one_of_book_each_as_often() -> None:
    left = Counter[str]()
    for seed in range(2000):
        plan = plan_pair(JUDGED, case_random(seed, "q"), sources=SOURCES).positive
        (out,) = {"b1", "b2", "b3", "b4"} - {q.wire for q in plan.of_source("book")}
        left[out] += 1
        assert [q.wire for q in plan.of_source("research")] == ["r1"]
    assert all(isclose(count / 2000, 0.25, abs_tol=0.05) for count in left.values())
