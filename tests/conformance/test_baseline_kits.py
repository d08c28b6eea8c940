"""Every method of another paper passes the kit of solvers, as the settings build it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import log
from pathlib import Path

import pytest

from conformance import SolverKit
from osler.build import Parts
from osler.build.models import LoadedModel
from osler.build.strategies import build_solver
from osler.llm.core.base import Attended, Message, Scored, TokenScore
from osler.retrieve.relevance import OverlapRelevance
from osler.settings import Settings
from osler.settings.plugins import methods_by_kind
from osler.trace import Run, Solver
from osler.types import Grounding, Passage, Question, Usage
from osler_lab.baselines.build import BASELINES
from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever, tokens_of

IRON = Passage(
    "book:iron#0", "Oral iron treats iron deficiency anaemia. It is taken daily.", "book", "Iron"
)
ZH = Passage("book:铁#0", "口服铁剂治疗缺铁性贫血。每天服用一次。", "book", "贫血", language="zh")
SAYS = {
    "en": "Oral iron treats iron deficiency anaemia. [1] So the answer is iron.",
    "zh": "口服铁剂治疗缺铁性贫血。[1]所以答案是铁剂。",
    "nothing": "",
    "junk": '[[}{ <search> <|begin_search_query|> Search[ 1 ["a", ["b", "c", "d"]]',
}

MOST = {kind: facts.most for kind, facts in methods_by_kind().items()}


@dataclass
class Parrot(ScriptedModel):
    """Says the same thing however often it is asked, and looks at everything alike."""

    replies: list[str] = field(default_factory=list)
    says: str = ""

    def __post_init__(self) -> None:
        self.replies = [self.says] * 999

    def __repr__(self) -> str:
        return "Parrot()"

    async def score(self, context: Sequence[Message] | str, text: str) -> Scored:
        if not text.startswith("["):
            return await super().score(context, text)
        # To a checkpoint of Self-RAG's a reflection token is one token.
        return Scored((TokenScore(text, 0, len(text), log(self.probability)),), Usage(calls=1))

    async def attend(self, context: Sequence[Message] | str, text: str) -> Attended:
        tokens = tokens_of(text, 0.5)
        weights = tuple((0.1,) * n for n in range(len(tokens)))
        usage = Usage(calls=1, scored_tokens=len(tokens))
        return Attended(tokens, (1.0,) * len(tokens), weights, usage)


@dataclass
class Shelf(ScriptedRetriever):
    def __repr__(self) -> str:
        return "Shelf()"


def built(kind: str, says: str, home: Path, writes: str) -> Solver:
    settings = Settings.model_validate(
        {"home": home, "strategy": {"kind": kind}, "model": {"writes": writes}}
    )
    found = Shelf({"贫血": [ZH], "": [IRON]})
    parts = Parts(
        {"reader": LoadedModel(Parrot(says=SAYS.get(says, says)))},
        lambda name, sources: found,
        OverlapRelevance(),
        OverlapRelevance(),
        ("book",),
    )
    return build_solver(settings, parts)


@pytest.fixture(params=["open", "choice", "zh"])
def question(request: pytest.FixtureRequest) -> Question:
    return {
        "open": Question("o", "What treats iron deficiency anaemia?"),
        "choice": Question("c", "What treats iron deficiency anaemia?", ("iron", "rest")),
        "zh": Question("z", "缺铁性贫血如何治疗？", language="zh"),
    }[request.param]


class TestBaselines(SolverKit):
    @pytest.fixture(params=[*BASELINES])
    def solver(self, request: pytest.FixtureRequest, question: Question, tmp_path: Path) -> Solver:
        return built(request.param, question.language, tmp_path, "yes")


class TestBaselinesThatQuote(SolverKit):
    """The same with a model that must not word medicine."""

    @pytest.fixture
    def question(self) -> Question:
        return Question("c", "What treats iron deficiency anaemia?", ("iron", "rest"))

    @pytest.fixture(params=[*BASELINES])
    def solver(self, request: pytest.FixtureRequest, question: Question, tmp_path: Path) -> Solver:
        return built(request.param, question.language, tmp_path, "no")


@pytest.mark.parametrize("says", ["nothing", "junk"])
@pytest.mark.parametrize("kind", [*BASELINES])
async def test_a_model_that_says_nothing_of_use_breaks_no_method(
    kind: str, says: str, question: Question, tmp_path: Path
) -> None:
    solution = await built(kind, says, tmp_path, "yes").solve(question, Run())
    assert solution.why
    assert solution.usage.calls <= MOST[kind]


PERSISTENT = {
    "flare": "An unsure sentence.",
    "dragin": "Unsure.",
    "dragin-entropy": "Unsure.",
    "fl-rag": "And so on",
    "fs-rag": "And so on.",
    "ircot": "And so on.",
    "adaptive-rag": "C",
    "react": "Search[iron]",
    "search-o1": "<|begin_search_query|>iron",
    "search-r1": "<search>iron",
    "zero-search": "<search>iron",
    "step-search": "<search>iron",
    "research": "<search>iron",
    "self-rag": "[Retrieval]",
    "self-rag-prompted": "[Retrieval]",
    "chain-of-knowledge": "First, iron. Second, more iron. The answer is iron.",
    "i-medrag": "## Queries\n1. a\n2. b\n3. c",
    "pike-rag": '["What treats iron deficiency anaemia?", "Iron?", "1"]',
    "kag-static": json.dumps({str(n): {"query": "a", "executor": "Math"} for n in range(9)}),
    "hipporag": '[["iron", "treats", "anaemia"]]',
}
"""What makes each method go on as long as it can."""


@pytest.mark.parametrize("kind", [*PERSISTENT])
async def test_no_method_asks_more_often_than_the_table_says(kind: str, tmp_path: Path) -> None:
    solver = built(kind, PERSISTENT[kind], tmp_path, "yes")
    question = Question("o", "What treats iron deficiency anaemia?")
    solution = await solver.solve(question, Run())
    assert 1 <= solution.usage.calls <= MOST[kind]


SILENT_ON_SEARCH = {"r1-gen", "react", "search-o1", "search-r1", "zero-search", "step-search"} | {
    "research",
    "adaptive-rag",
    "self-rag",
    "self-rag-prompted",
    "dragin",
    "dragin-entropy",
    "chain-of-knowledge",
    "pike-rag",
    "i-medrag",
}
"""Whether these search is the model's choice; that they cite what they find is in their
golden runs."""


@pytest.mark.parametrize("kind", [kind for kind in BASELINES if kind not in SILENT_ON_SEARCH])
async def test_what_it_found_is_cited(kind: str, question: Question, tmp_path: Path) -> None:
    solution = await built(kind, question.language, tmp_path, "yes").solve(question, Run())
    assert solution.answer.grounding in {Grounding.GROUNDED, Grounding.PARTLY}
    assert solution.answer.citations
