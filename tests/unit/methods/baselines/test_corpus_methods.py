"""HippoRAG 2, PIKE-RAG, KAG's static pipeline, MedRAG and i-MedRAG, after their papers."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import pytest

from osler.answer.written import WrittenComposer
from osler.llm.reading.json_replies import json_in, read_list
from osler.methods.episode import MethodDeps
from osler.trace import Noted, Run
from osler.types import Grounding, Language, Question
from osler_lab.baselines.decomposing import (
    KagStatic,
    PlannedTask,
    fill_query,
    order_tasks,
    read_plan,
    read_queries,
)
from osler_lab.baselines.indexing import pagerank, seed_weights
from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever

from .conftest import Play, notes, passage

ALHANDRA = Question("alhandra", "In which district was Alhandra born?")
BORN = passage("born", "Alhandra was born in Vila Franca de Xira.", "Alhandra")
TOWN = passage("town", "Vila Franca de Xira is a municipality in the District of Lisbon.", "Xira")
NOISE = passage("noise", "The Tagus is a river.", "Tagus")
BORN_IN = ["Alhandra", "born in", "Vila Franca de Xira"]
LIES_IN = ["Vila Franca de Xira", "is a municipality in", "District of Lisbon"]


async def test_a_walk_over_triples_finds_the_passage_of_the_second_hop(play: Play) -> None:
    """The running example of HippoRAG: the question names nothing of the second passage."""
    model = ScriptedModel(
        [
            '["Tagus"]',
            '[["Tagus", "is a", "river"]]',
            '["Alhandra", "Vila Franca de Xira"]',
            json.dumps([BORN_IN]),
            '["Vila Franca de Xira", "District of Lisbon"]',
            json.dumps([LIES_IN]),
            json.dumps([BORN_IN]),
            "Vila Franca de Xira is a municipality in the District of Lisbon. [2]",
        ]
    )
    played = await play({"kind": "hipporag", "k": 2}, ALHANDRA, model, {"": [NOISE, BORN, TOWN]})
    assert '"Alhandra"' not in model.seen[1][0].content
    assert "Named entities: Alhandra, Vila Franca de Xira" in model.seen[3][0].content
    reading = model.seen[7][0].content
    assert "[1] Alhandra" in reading
    assert "[2] Xira" in reading
    assert "Tagus" not in reading, "it stood first in the search, and no triple leads to it"
    assert played.solution.answer.grounding is Grounding.GROUNDED
    assert any(
        "1 of 3 triples recognised" in e.text for e in played.run.events if isinstance(e, Noted)
    )


async def test_where_nothing_is_recognised_the_first_search_stands(play: Play) -> None:
    model = ScriptedModel(["[]", json.dumps([BORN_IN]), "[]", "Alhandra was born there. [1]"])
    played = await play({"kind": "hipporag"}, ALHANDRA, model, {"": [BORN]})
    assert "[1] Alhandra" in played.asked[3]


def test_the_walk_by_hand() -> None:
    """Two passages that share a phrase; the walk starts at a phrase of the first alone.

    Edges p0-a, p0-b, a-b, p1-b; with damping 1/2 the shares solve a = 1/2 + (p0/2 + b/3)/2,
    b = (p0/2 + a/2 + p1)/2, p0 = (a/2 + b/3)/2, p1 = b/6.
    """
    stated = [[("A", "r", "B")], [("b", "s", "b")]]
    p0, p1 = pagerank(stated, {"a": 1.0}, 0.5)
    # Unknowns in terms of b: p1 = b/6; p0 = a/4 + b/6; a = 1/2 + p0/4 + b/6.
    # a = 1/2 + a/16 + b/24 + b/6  =>  15a/16 = 1/2 + 5b/24  =>  a = 8/15 + 2b/9.
    # b = p0/4 + a/4 + p1/2 = a/16 + b/24 + a/4 + b/12  =>  7b/8 = 5a/16  =>  b = 5a/14.
    a = Fraction(8, 15) / (1 - Fraction(2, 9) * Fraction(5, 14))
    b = 5 * a / 14
    assert abs(p0 - float(a / 4 + b / 6)) < 1e-8
    assert abs(p1 - float(b / 6)) < 1e-8


def test_seeds_are_mean_scores_of_phrases_and_small_weights_of_passages() -> None:
    start = seed_weights([(("A", "r", "B"), 0.8), (("A", "s", "C"), 0.4)], [2.0, 1.0], 0.05)
    assert start == {"a": 0.6000000000000001, "b": 0.8, "c": 0.4, 0: 0.05, 1: 0.0}


FDA = Question("fda", "How many interchangeable products of drug X are there?")
LIST = passage("list", "The Purple Book lists 3 interchangeable products of drug X.", "Purple Book")
OTHER = passage("other", "Drug X is a protein.", "Drug X")


async def test_a_passage_is_found_by_the_question_that_it_answers(play: Play) -> None:
    asked = "Which interchangeable products does the Purple Book list?"
    model = ScriptedModel(
        [
            json.dumps([asked]),
            json.dumps(["What is drug X?"]),
            json.dumps([asked, "What does the Purple Book list?"]),
            "1",
            "[]",
            "The Purple Book lists 3 interchangeable products of drug X. [1]",
        ]
    )
    played = await play({"kind": "pike-rag"}, FDA, model, {"": [OTHER, LIST]})
    assert played.queries == [asked]
    assert f"1. {asked}" in played.asked[3]
    assert "What is drug X?" not in played.asked[3], "too unlike what was proposed"
    assert "[1] Purple Book" in played.asked[4]
    assert "Drug X is a protein" not in played.asked[5]
    assert played.solution.answer.grounding is Grounding.GROUNDED


JOHN = Question("john", "Who is the paternal grandmother of John III, Duke Of Cleves?")
FATHER = passage("father", "The father of John III was John II, Duke of Cleves.", "John III")
MOTHER = passage("mother", "The mother of John II was Elizabeth of Nevers.", "John II")


async def test_a_plan_is_made_once_and_filled_in(play: Play) -> None:
    """The question of KAG-Thinker §4.4."""
    plan = {
        "2": {"query": "Who is the mother of {{1.output}}?", "dependent_task_ids": ["1"]},
        "1": {"query": "Who is the father of John III, Duke of Cleves?", "dependent_task_ids": []},
    }
    model = ScriptedModel(
        [
            f"Plan:\n{json.dumps(plan)}",
            "John II",
            "Who is the mother of John II?",
            "Elizabeth of Nevers",
            "The mother of John II was Elizabeth of Nevers. [2]",
        ]
    )
    played = await play({"kind": "kag-static"}, JOHN, model, {"mother": [MOTHER], "": [FATHER]})
    assert played.queries == [
        "Who is the father of John III, Duke of Cleves?",
        "Who is the mother of John II?",
    ]
    assert "#2 Who is the mother of John II? Elizabeth of Nevers" in played.asked[4]
    assert played.solution.answer.grounding is Grounding.GROUNDED


@dataclass
class Noting:
    """Solves a Math or a Deduce, and notes what it was given."""

    result: str
    given: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    async def __call__(self, query: str, known: Sequence[str], language: Language, run: Run) -> str:
        self.given.append((query, tuple(known)))
        return self.result


FORM = "Retrieval(s=s1:person['John III'], p=p1:father, o=o1:person)"
MOTHERS = "Retrieval(s=s2:person['{{1.output}}'], p=p2:mother, o=o2:person)"


async def test_a_lookup_goes_by_its_form_and_by_the_hybrid_and_a_deduce_by_its_solver() -> None:
    plan = {
        "1": {"executor": "Retriever", "query": "Who is his father?", "logical_form": FORM},
        "2": {
            "executor": "retriever",
            "query": "Who is the mother of {{1.output}}?",
            "dependent_task_ids": ["1"],
            "logical_form": MOTHERS,
        },
        "3": {"executor": "Deduce", "query": "Which is it?", "dependent_task_ids": ["1", "2"]},
        "4": {"executor": "Math", "query": "How old?", "dependent_task_ids": ["2"]},
    }
    rewritten = "Here it is.\n<answer>Who is the mother of John II?</answer>"
    replies = [json.dumps(plan), "John II", rewritten, "Elizabeth", "unknown", "Elizabeth. [1]"]
    model = ScriptedModel(replies)
    forms, hybrid = ScriptedRetriever({"": [FATHER]}), ScriptedRetriever({"": [MOTHER]})
    usual, deduce, math = ScriptedRetriever({}), Noting("Elizabeth of Nevers"), Noting("")
    kit = MethodDeps(model, usual, WrittenComposer(), ("wiki",))
    run = Run()
    method = KagStatic(kit, forms, hybrid, {"Deduce": deduce, "Math": math})
    solution = await method.solve(JOHN, run)
    model.finish()
    assert forms.asked == [FORM, MOTHERS.replace("{{1.output}}", "John II")]
    assert hybrid.asked == ["Who is his father?", "Who is the mother of John II?", "How old?"]
    # What came to nothing is looked up once more, with the question.
    assert usual.asked == [f"How old? {JOHN.text}"]
    step = model.seen[1][0].content
    assert step.index(FATHER.text) < step.index(MOTHER.text), "the graph's statement comes first"
    known = ("#1 Who is his father? John II", "#2 Who is the mother of John II? Elizabeth")
    assert deduce.given == [("Which is it?", known)]
    assert "#3 Which is it? Elizabeth of Nevers" in model.seen[5][0].content
    notes = [event.text for event in run.events if isinstance(event, Noted)]
    assert "#4 Math has no result: it is looked up" in notes
    assert solution.answer.text.startswith("Elizabeth.")


async def test_a_task_without_an_answer_is_looked_up_again_and_its_refusal_fills_no_query() -> None:
    plan = {
        "1": {"query": "Who is his father?"},
        "2": {"query": "Who is the mother of {{1.output}}?", "dependent_task_ids": ["1"]},
    }
    refusal = "The documents do not mention this."
    replies = [json.dumps(plan), refusal, "John II", refusal, refusal, "It is unknown. [1]"]
    model = ScriptedModel(replies)
    usual = ScriptedRetriever({"Who is his father? ": [MOTHER], "": []})
    kit = MethodDeps(model, usual, WrittenComposer(), ("wiki",))
    method = KagStatic(kit, None, ScriptedRetriever({"": [FATHER]}))
    await method.solve(JOHN, Run())
    model.finish()
    assert "Who is the mother of John II?" in model.seen[4][0].content
    assert "#2 Who is the mother of John II? unknown" in model.seen[5][0].content


@pytest.mark.parametrize(
    ("reply", "searched"),
    [
        ("<answer>Which doctor was the wife of Adam Ray?</answer>", "the wife of Adam Ray"),
        ("I cannot rewrite this.", "Who married Adam Ray (a doctor)?"),
        ("<answer>Who married {{1.output}}?</answer>", "Who married Adam Ray (a doctor)?"),
    ],
)
async def test_a_query_that_names_an_answer_is_rewritten_by_the_model(
    reply: str, searched: str
) -> None:
    plan = {"1": {"query": "Who is it?"}, "2": {"query": "Who married {{1.output}}?"}}
    first = "Adam Ray (a doctor)"
    model = ScriptedModel([json.dumps(plan), first, reply, "Eve", "Eve. [1]"])
    hybrid = ScriptedRetriever({"": [FATHER]})
    kit = MethodDeps(model, ScriptedRetriever({}), WrittenComposer(), ("wiki",))
    await KagStatic(kit, None, hybrid).solve(JOHN, Run())
    model.finish()
    assert searched in hybrid.asked[1]


async def test_without_any_graph_the_static_pipeline_says_what_stands_in(play: Play) -> None:
    model = ScriptedModel(["no plan", "unknown", "The evidence does not say."])
    played = await play({"kind": "kag-static"}, JOHN, model, {"": [FATHER]})
    assert notes(played)[0].startswith("no concept graph and no extracted corpus")


def test_plans_that_cannot_be_read_or_run_are_none_or_run_anyway() -> None:
    assert read_plan("no plan", 6) == []
    assert read_plan('{"1": {"query": 3}, "2": "x"}', 6) == []
    circle = [PlannedTask("1", "a", ("2",)), PlannedTask("2", "b", ("1",))]
    assert [task.name for task in order_tasks(circle)] == ["1", "2"]
    assert fill_query("mother of #1 and {{2.output}}", {"1": "A"}) == "mother of A and {{2.output}}"


INR = Question("inr", "What does amiodarone do to the INR of warfarin?", ("lowers", "raises"))
FACT = passage("fact", "Amiodarone raises the INR of patients on warfarin.", "INR")


async def test_medrag_reads_json(play: Play) -> None:
    said = {
        "step_by_step_thinking": "Amiodarone raises the INR of patients on warfarin. [1]",
        "answer_choice": "B",
    }
    model = ScriptedModel([f"```json\n{json.dumps(said)}\n```"])
    played = await play({"kind": "medrag"}, INR, model, {"": [FACT]})
    assert played.solution.answer.option == "B"
    assert played.solution.answer.grounding is Grounding.GROUNDED


async def test_follow_up_queries_are_answered_before_the_question(play: Play) -> None:
    asking = (
        "## Analysis\nI need the effect.\n## Queries\n1. amiodarone and CYP2C9\n2. warfarin INR"
    )
    thinking = "Amiodarone raises the INR of patients on warfarin. [1]"
    said = {"step_by_step_thinking": thinking, "answer_choice": "B"}
    model = ScriptedModel([asking, "It inhibits it.", "It rises. [1]", "Enough.", json.dumps(said)])
    played = await play({"kind": "i-medrag", "rounds": 2}, INR, model, {"": [FACT]})
    assert played.queries == ["amiodarone and CYP2C9", "warfarin INR"]
    assert "Query: warfarin INR\nAnswer: It rises. [1]" in played.asked[3]
    assert played.solution.answer.option == "B"


def test_queries_stand_under_their_heading() -> None:
    assert read_queries("## Analysis\nx\n## Queries\n- one\n- two\n- three", 2) == ["one", "two"]
    assert read_queries('["one", "two"]', 3) == ["one", "two"]
    assert read_queries("I know enough.", 3) == []


def test_the_last_value_counts_and_broken_ones_do_not() -> None:
    assert json_in('As {"a": 1}: {"b": {"c": 2}} }{') == {"b": {"c": 2}}
    assert json_in("{oops") is None
    assert json_in(r'{"a": ["\ud800"]}') == {"a": ["\ufffd"]}
    assert json_in("[" * 3_000, "[") is None
    began = time.process_time()
    assert json_in("[" * 50_000, "[") is None
    assert time.process_time() - began < 1
    assert read_list("Questions:\n1. a\n2. a\n3) b", 5) == ["a", "b"]
