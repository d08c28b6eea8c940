"""A solver measured in one call."""

from dataclasses import replace

import pytest

from osler.errors import BadConfig, BadRun, MalformedSource
from osler.trace import Run
from osler.types import Answer, Halt, Question, Solution
from osler_lab.evaluate.measuring import measure_solver
from osler_lab.evaluate.record import Gold, Sample

SAMPLES = [
    Sample("quiz", "choice", Question(id, "Which?", ("this", "that")), Gold((right,)))
    for id, right in (("a", "A"), ("b", "B"), ("c", "A"))
]


class FirstUnlessC:
    async def solve(self, question: Question, run: Run) -> Solution:
        if question.id.startswith("c"):
            raise ValueError("not this one")
        return Solution(Answer(option="A"), Halt.CONVERGED, "")


async def test_the_usual_measure_counts_a_failed_sample_as_wrong_and_names_it() -> None:
    measured = await measure_solver(SAMPLES, FirstUnlessC(), jobs=2)
    (accuracy,) = measured.figures.values()
    assert accuracy
    assert (accuracy.n, round(accuracy.value, 3)) == (3, 0.333)
    assert accuracy.low < accuracy.value < accuracy.high
    assert measured.failed.keys() == {"c"}
    assert "not this one" in measured.failed["c"]


async def test_a_call_that_fails_wholly_says_that_nothing_is_kept() -> None:
    many = [
        replace(SAMPLES[2], question=replace(SAMPLES[2].question, id=f"c{n}")) for n in range(20)
    ]
    with pytest.raises(BadRun, match="20 samples in a row have failed") as caught:
        await measure_solver(many, FirstUnlessC())
    assert "nothing of this call is kept" in caught.value.fix


async def test_a_measure_that_applies_to_no_sample_is_said_to_be_none() -> None:
    measured = await measure_solver(SAMPLES[:2], FirstUnlessC(), ["rouge_l", "unparsed"])
    assert measured.figures["rouge_l"] is None
    assert measured.figures["unparsed"]
    assert measured.figures["unparsed"].value == 0


async def test_an_unknown_measure_and_missing_files_are_refused() -> None:
    with pytest.raises(BadConfig, match="no measure 'acuracy'"):
        await measure_solver(SAMPLES, FirstUnlessC(), ["acuracy"])
    with pytest.raises(MalformedSource):
        await measure_solver("medqa-us", FirstUnlessC())
