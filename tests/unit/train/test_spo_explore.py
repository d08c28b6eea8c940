"""Exploration: by a model, and by the question's own words."""

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from osler.errors import MalformedOutput, SourceUnavailable
from osler.llm.core.ask import Speaker
from osler.methods.omni.plan import Query
from osler.methods.omni.planners import SourceDescription
from osler.methods.omni.retriever import PlannedRetriever
from osler.types import Hit, Passage, Question
from osler_lab.evaluate.record import Gold, Sample
from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever
from osler_lab.train.spo.explore import (
    ExpertExplorer,
    Exploration,
    QuestionWords,
    TrainingCase,
    cut_words,
    terms_in_words,
)

PASSAGE = Passage("book:d1#0", "Adrenaline is given first.", "book", "Anaphylaxis")
OFFERS = (SourceDescription("book"), SourceDescription("graph"))
CASE = TrainingCase(Sample("t", "long", Question("q", "Which drug treats anaphylaxis?"), Gold()))
REPLY = (
    "<book> anaphylaxis treatment ; adrenaline dose ; a ; b ; c ; d ; e </book>\n"
    "<graph> Anaphylaxis , treated by </graph>"
)


def rarity(terms: Sequence[str]) -> Mapping[str, float]:
    return {term: float(len(term)) for term in terms}


def exploration(model: ScriptedModel, book: object = None) -> Exploration:
    found = ScriptedRetriever({"adrenaline": [PASSAGE], "anaphylaxis": [PASSAGE]})
    sources = {"book": book or found, "graph": ScriptedRetriever({})}
    return Exploration(ExpertExplorer(Speaker(model, "planner")), OFFERS, PlannedRetriever(sources))  # type: ignore[arg-type]


def test_the_expert_is_asked_for_six_queries_a_source_and_each_is_searched() -> None:
    model = ScriptedModel([REPLY])
    explored = asyncio.run(exploration(model).explore(CASE))
    prompt = model.seen[0][-1].content
    assert "Each source should have 6 queries" in prompt
    assert "0 to 3" not in prompt
    assert [(q.source, q.wire) for q in explored.queries] == [
        ("book", "anaphylaxis treatment"),
        ("book", "adrenaline dose"),
        *(("book", word) for word in "abcd"),
        ("graph", "Anaphylaxis , treated by"),
    ]
    assert explored.queries[0].found == ("book:d1#0",)
    assert explored.passages == {"book:d1#0": "Anaphylaxis\nAdrenaline is given first."}
    assert (explored.usage.calls, explored.usage.searches) == (1, 7)


def test_a_source_that_was_left_out_is_noted() -> None:
    explored = asyncio.run(exploration(ScriptedModel(["<book> adrenaline </book>"])).explore(CASE))
    assert explored.notes == ("no queries for graph",)


def test_a_plan_of_nothing_is_no_exploration() -> None:
    with pytest.raises(MalformedOutput, match="at least one query"):
        asyncio.run(exploration(ScriptedModel(["<book></book><graph></graph>"])).explore(CASE))


def test_a_source_that_is_down_is_an_error_not_a_source_without_documents() -> None:
    class Down:
        async def search(self, query: str, *, k: int) -> list[Hit]:
            raise SourceUnavailable("the book is down")

    with pytest.raises(SourceUnavailable, match="the book is down"):
        asyncio.run(exploration(ScriptedModel([REPLY]), Down()).explore(CASE))


def queries(text: str, source: str = "guideline", count: int = 6) -> list[Query]:
    question = Question("q", text, language="zh" if "？" in text else "en")
    made = QuestionWords(rarity, count).queries(question, (SourceDescription(source),), None)  # type: ignore[arg-type]
    return asyncio.run(made)


def test_the_question_s_words_make_different_queries() -> None:
    text = (
        "My mother was told that she has WHIM syndrome. She is 60 and takes no tablets."
        " Is plerixafor a treatment for her?"
    )
    wires = [query.wire for query in queries(text)]
    assert wires[0] == "Is plerixafor a treatment for her?"
    assert "plerixafor treatment" in wires
    assert len(set(wires)) == len(wires) == 6
    assert all(len(wire) <= 120 for wire in wires)
    assert any(wire.endswith("recommendations") for wire in wires)


def test_chinese_questions_are_cut_at_function_characters() -> None:
    wires = [query.wire for query in queries("过敏性休克的首选药物是什么？")]
    assert any("过敏性休克" in wire and "首选药物" in wire for wire in wires)
    assert terms_in_words("过敏性休克的首选药物") == ["过敏性休克", "首选药物"]


def test_the_graph_is_asked_about_what_is_named() -> None:
    made = queries("Is plerixafor used in WHIM Syndrome?", "graph")
    assert made
    assert all(query.term for query in made)


def test_a_question_without_words_asks_nothing() -> None:
    assert queries("???") == []


def test_no_more_queries_than_wanted() -> None:
    assert len(queries("Is plerixafor a good treatment of WHIM Syndrome in adults?", count=2)) == 2


def test_a_long_text_is_cut_at_a_word() -> None:
    assert cut_words("alpha beta gamma", 11) == "alpha beta"
    assert cut_words("肾上腺素" * 40, 10) == ("肾上腺素" * 40)[:10]
