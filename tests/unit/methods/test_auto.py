"""`auto`: who answers which question, and where the reason stands."""

import pytest

from osler.methods.auto import REASONS, AutoRoute, AutoSolver
from osler.trace import Noted, Run
from osler.types import Answer, Halt, Question, Solution, Statement


def solution(said: str) -> Solution:
    return Solution(Answer((Statement(said),), note="quoted."), Halt.CONVERGED, "done")


class Knows:
    """Answers questions that hold a word, and leaves the others."""

    def __init__(self, word: str, said: str) -> None:
        self.word, self.said = word, said

    async def solve(self, question: Question, run: Run) -> Solution | None:
        return solution(self.said) if self.word in question.text else None


SOLVER = AutoSolver(
    (
        AutoRoute("formula", "kag-thinker", Knows("clearance", "the formula")),
        AutoRoute("steps", "kag-thinker", Knows("both", "the graph")),
        AutoRoute("verdict", "rag", Knows("", "a verdict")),
        AutoRoute("options", "omni-rag", Knows("", "an option")),
        AutoRoute("fact", "tc-rag", Knows("", "a fact")),
    )
)


@pytest.mark.parametrize(
    ("text", "options", "said", "kind", "method"),
    [
        ("What is the clearance?", (), "the formula", "formula", "kag-thinker"),
        ("Which drug treats both?", (), "the graph", "steps", "kag-thinker"),
        ("Does it help?", ("yes", "no"), "a verdict", "verdict", "rag"),
        ("Does it help?", ("Yes", "No", "Maybe"), "a verdict", "verdict", "rag"),
        ("Which drug?", ("aspirin", "no drug"), "an option", "options", "omni-rag"),
        ("What is asthma?", (), "a fact", "fact", "tc-rag"),
    ],
)
async def test_each_question_goes_to_the_method_for_its_kind_and_the_run_says_why(
    text: str, options: tuple[str, ...], said: str, kind: str, method: str
) -> None:
    run = Run()
    found = await SOLVER.solve(Question("q", text, options), run)
    assert found.answer.statements[0].text == said
    assert found.why == f"{method} ({kind}); done"
    assert run.events == [Noted(f"Method: {REASONS[kind]} ({method}).")]


async def test_the_answer_itself_says_nothing_of_methods() -> None:
    found = await SOLVER.solve(Question("q", "What is asthma?"), Run())
    assert found.answer == solution("a fact").answer


async def test_what_no_route_takes_is_an_error_and_never_silence() -> None:
    with pytest.raises(LookupError, match="no route"):
        await AutoSolver(SOLVER.routes[:2]).solve(Question("q", "What is asthma?"), Run())
