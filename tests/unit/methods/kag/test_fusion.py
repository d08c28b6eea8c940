"""Groups of retrievers by priority, and the two ways to merge what they found (KAG 0.8)."""

import pytest

from osler.llm.core.speaker import Speaker
from osler.methods.kag.boundary import NoBoundary
from osler.methods.kag.depth import DepthSolver
from osler.methods.kag.focus import Focuser
from osler.methods.kag.fusion import fuse_hits
from osler.methods.kag.logical_forms import LogicalPlan, Retrieval
from osler.testing.scripted import KeyedModel, ScriptedRetriever
from osler.trace import Run
from osler.types import Hit, Passage


def hit(name: str, score: float, source: str = "book") -> Hit:
    return Hit(Passage(f"{source}:{name}#0", name, source, name), score, 1, "q", source)


def test_scores_of_two_scales_are_brought_to_one() -> None:
    """By hand: a 1 + 0, b 0.5, c 0 + 1, d 0.9 of the second scale's 10 to 20."""
    first = [hit("a", 1.0), hit("b", 0.5), hit("c", 0.0)]
    second = [hit("c", 20.0), hit("d", 19.0), hit("a", 10.0)]
    by_scores = [each.passage.text for each in fuse_hits([first, second], "scores")]
    assert by_scores == ["a", "c", "d", "b"]
    by_ranks = [each.passage.text for each in fuse_hits([first, second], "ranks")]
    assert by_ranks == ["a", "c", "b", "d"]


def test_equal_scores_count_in_full_and_nothing_found_counts_for_nothing() -> None:
    same = [hit("a", 0.3), hit("b", 0.3)]
    assert [each.passage.text for each in fuse_hits([[], same], "scores")] == ["a", "b"]
    assert fuse_hits([[], []], "scores") == []


class FormsFound:
    def __init__(self, hits: list[Hit]) -> None:
        self.hits = hits

    async def find_form(self, form: Retrieval, *, k: int) -> list[Hit]:
        return self.hits


@pytest.mark.parametrize(("found", "asked"), [([hit("fact", 1.0, "graph")], []), ([], ["Who?"])])
async def test_texts_are_searched_only_where_the_graph_finds_nothing(
    found: list[Hit], asked: list[str]
) -> None:
    model = KeyedModel(
        {
            "analyze the relationship": ["<answer>Yes</answer><reason>all</reason>"],
            "Answer the question from the references": [r"<answer>\boxed{she}</answer>"],
        }
    )
    speaker = Speaker(model, "reader")
    texts = ScriptedRetriever({"": [Passage("book:a#0", "She did.", "book", "A")]})
    solver = DepthSolver(
        speaker, texts, NoBoundary(), Focuser(speaker), FormsFound(found), graph_first=True
    )
    (step,) = LogicalPlan.single_retrieval("Who?").steps
    answer = await solver.solve(step, step.question, (), "en", Run())
    assert texts.asked == asked
    assert answer.hits
