"""ReAct, IRCoT, Search-o1, Adaptive-RAG and the protocols of trained search models."""

import pytest

from osler.types import Grounding, Halt, Question
from osler_lab.baselines.acting import last_action
from osler_lab.baselines.weighing import classify_complexity
from osler_lab.testing.scripted import ScriptedModel

from .conftest import Play, cited, passage

REMOTE = Question(
    "remote",
    "Aside from the Apple Remote, what other device can control the program Apple Remote was"
    " originally designed to interact with?",
)
APPLE = passage(
    "apple",
    "The Apple Remote is a remote control introduced in October 2005. It was originally designed"
    " to control the Front Row media center program.",
    "Apple Remote",
)
FRONT = passage(
    "front",
    "Front Row is a discontinued media center software application. Front Row is controlled by an"
    " Apple Remote or the keyboard function keys.",
    "Front Row",
)


async def test_thought_action_observation_until_finish(play: Play) -> None:
    """Figure 1 (1d) of the paper, with its look-up in a page."""
    model = ScriptedModel(
        [
            " I need to search Apple Remote.\nAction 1: Search[Apple Remote]",
            " I need to search Front Row next.\nAction 2: Search[Front Row (software)]",
            " What controls it?\nAction 3: Lookup[controlled by]",
            " Front Row is controlled by an Apple Remote or the keyboard function keys."
            "\nAction 4: Finish[keyboard function keys]",
        ]
    )
    played = await play({"kind": "react"}, REMOTE, model, {"Front Row": [FRONT], "": [APPLE]})
    assert played.queries == ["Apple Remote", "Front Row (software)"]
    assert "Observation 1: [1] Apple Remote: The Apple Remote is" in played.asked[1]
    assert (
        "Observation 3: (Result 1 / 1) Front Row is controlled by an Apple Remote or the keyboard"
        in played.asked[3]
    )
    assert played.asked[3].endswith("Thought 4:")
    assert model.samplings[0].stop == ("\nObservation 1:",)
    answer = played.solution.answer
    assert "keyboard function keys" in answer.text
    assert [e.passage.id for e in answer.evidence] == [FRONT.id]
    assert played.solution.why == "finished"


async def test_a_thought_without_an_action_is_asked_for_one(play: Play) -> None:
    model = ScriptedModel([" I only think.", " Search[Apple Remote]", " So.\nAction 2: Finish[it]"])
    played = await play({"kind": "react"}, REMOTE, model, {"": [APPLE]})
    assert played.asked[1] == "Thought 1: I only think.\nAction 1:"
    assert played.queries == ["Apple Remote"]


async def test_steps_that_are_used_up_are_a_bound_that_was_reached(play: Play) -> None:
    turn = " I look.\nAction 1: Lookup[nothing]"
    played = await play({"kind": "react", "steps": 2}, REMOTE, ScriptedModel([turn] * 2), {})
    assert played.solution.halt is Halt.BUDGET
    assert played.solution.why == "2 steps without Finish"


LOST = Question("lost", "In what country was Lost Gravity manufactured?")
GRAVITY = passage("gravity", "Lost Gravity was manufactured by Mack Rides.", "Lost Gravity")
MACK = passage("mack", "Mack Rides is a company from Germany.", "Mack Rides")


async def test_each_sentence_of_the_reasoning_is_a_search(play: Play) -> None:
    """Figure 1 of the paper."""
    model = ScriptedModel(
        [
            "The Lost Gravity was manufactured by Mack Rides. More.",
            "Mack Rides is a company from Germany.",
            "So the answer is: Germany.",
            "Mack Rides is a company from Germany. [2]",
        ]
    )
    played = await play({"kind": "ircot"}, LOST, model, {"Mack": [MACK], "": [GRAVITY]})
    assert played.queries == [
        LOST.text,
        "The Lost Gravity was manufactured by Mack Rides.",
        "Mack Rides is a company from Germany.",
    ]
    assert played.asked[2] == (
        "The Lost Gravity was manufactured by Mack Rides. Mack Rides is a company from Germany."
    )
    assert "[1] Lost Gravity" in played.asked[3], "the reader sees what was collected"
    assert "[2] Mack Rides" in played.asked[3]
    assert played.solution.answer.grounding is Grounding.GROUNDED


CHEMISTRY = Question(
    "chemistry",
    "trans-Cinnamaldehyde was treated with methylmagnesium bromide, forming product 1. How many"
    " carbon atoms are there in product 3?",
    ("10", "11", "12"),
)
ALDEHYDE = passage("aldehyde", "trans-Cinnamaldehyde has the formula C9H8O.", "Cinnamaldehyde")


async def test_search_o1_reads_what_it_finds_by_itself(play: Play) -> None:
    """Figure 2 of the paper: the structure is looked up in the middle of the reasoning."""
    query = "structure of trans-Cinnamaldehyde"
    model = ScriptedModel(
        [
            f"I need its structure. <|begin_search_query|> {query} ",
            "Analysis.\n**Final Information**\n\nIt has the formula C9H8O. [1]",
            f"Again? <|begin_search_query|>{query}",
            "Nine and one and one are 11. The answer is \\boxed{11}.",
        ]
    )
    played = await play({"kind": "search-o1"}, CHEMISTRY, model, {"": [ALDEHYDE]})
    assert played.queries == [query]
    assert played.asked[2].endswith(
        "<|begin_search_result|>It has the formula C9H8O. [1]<|end_search_result|>\n\n"
    )
    assert "You have searched this query." in played.asked[3]
    assert played.solution.answer.option == "B"
    assert played.solution.halt is Halt.CONVERGED


async def test_search_o1_is_not_allowed_beyond_its_limit(play: Play) -> None:
    model = ScriptedModel([f"<|begin_search_query|>q{n}" for n in range(7)])
    played = await play({"kind": "search-o1", "refine": False}, CHEMISTRY, model, {"": [ALDEHYDE]})
    assert played.queries == [f"q{n}" for n in range(5)]
    assert "The maximum search limit is exceeded." in played.asked[6]
    assert played.solution.halt is Halt.BUDGET


CURIOUS = Question("curious", "Curious is a women's fragrance by a singer born in what city?")
SPEARS = passage("spears", "Britney Spears was born in McComb, Mississippi.", "Britney Spears")
PERFUME = passage("perfume", "Curious is a women's fragrance by Britney Spears.", "Curious")
FOUND = {"born": [SPEARS], "": [PERFUME]}


@pytest.mark.parametrize(
    ("kind", "tag", "answer"),
    [
        ("search-r1", "information", " McComb, Mississippi "),
        ("zero-search", "information", " McComb, Mississippi "),
        ("step-search", "information", " McComb, Mississippi "),
        ("research", "result", " It is \\[ \\boxed{McComb, Mississippi} \\] "),
    ],
)
async def test_a_protocol_runs_as_its_checkpoints_speak_it(
    kind: str, tag: str, answer: str, play: Play
) -> None:
    """The case study of Search-R1's paper."""
    model = ScriptedModel(
        [
            "<think> I need the singer. </think>\n<search> Curious fragrance ",
            "<think> It is Britney Spears. </think>\n<search> Britney Spears born ",
            f"<think> Britney Spears was born in McComb, Mississippi. </think>\n<answer>{answer}",
        ]
    )
    played = await play({"kind": kind}, CURIOUS, model, FOUND)
    assert played.queries == ["Curious fragrance", "Britney Spears born"]
    assert played.asked[1] == (
        "<think>I need the singer.</think>\n<search> Curious fragrance </search>\n\n"
        f"<{tag}>Doc 1(Title: Curious) Curious is a women's fragrance by Britney Spears.\n</{tag}>"
        "\n\n"
    )
    assert "Doc 2(Title: Britney Spears)" in played.asked[2]
    assert model.samplings[0].stop == ("</search>", "</answer>")
    said = played.solution.answer
    assert "McComb, Mississippi" in said.text
    assert SPEARS.id in {evidence.passage.id for evidence in said.evidence}
    assert played.solution.why == "answered in its own protocol"


async def test_a_turn_that_does_neither_is_told_so(play: Play) -> None:
    model = ScriptedModel(["I am lost.", "<answer>McComb"])
    played = await play({"kind": "search-r1"}, CURIOUS, model, FOUND)
    assert "My previous action is invalid." in played.asked[1]
    assert played.solution.answer.text.startswith("McComb")


async def test_turns_without_an_answer_are_a_bound(play: Play) -> None:
    model = ScriptedModel([f"<search>{n}" for n in range(3)])
    played = await play({"kind": "search-r1", "turns": 2}, CURIOUS, model, FOUND)
    assert played.solution.halt is Halt.BUDGET
    assert played.solution.why == "2 turns without an answer"
    assert played.run.usage.searches == 2


async def test_r1_gen_reasons_without_a_search(play: Play) -> None:
    model = ScriptedModel(["<think>Britney Spears.</think><answer>McComb"])
    played = await play({"kind": "r1-gen"}, CURIOUS, model, FOUND)
    assert (played.queries, played.run.usage.calls) == ([], 1)
    assert played.solution.answer.grounding is Grounding.UNGROUNDED


def test_an_example_in_the_thoughts_is_no_action() -> None:
    assert last_action("<search>a</search><information>b</information>") == ("", "")
    assert last_action("<search>a</search> <answer> b ") == ("answer", "b")


MALAKOFF = Question(
    "malakoff",
    "When did the people who captured Malakoff come to the region where Philipsburg is located?",
)
FRENCH = passage("french", "The French captured Malakoff.", "Malakoff")


@pytest.mark.parametrize(
    ("verdict", "more", "searches"),
    [
        ("A", ["The French came in 1629."], 0),
        ("B", ["The French captured Malakoff. [1]"], 1),
        (
            "C. Several steps",
            ["The French captured Malakoff.", "So the answer is: 1629.", "The French. [1]"],
            2,
        ),
    ],
)
async def test_a_question_goes_to_the_method_for_its_complexity(
    verdict: str, more: list[str], searches: int, play: Play
) -> None:
    """Figure 1 of the paper: the question of several steps."""
    model = ScriptedModel([verdict, *more])
    played = await play({"kind": "adaptive-rag"}, MALAKOFF, model, {"": [FRENCH]})
    assert played.run.usage.searches == searches
    assert played.solution.usage == played.run.usage
    assert cited(played.solution.answer) == ({FRENCH.id} if searches else set())


async def test_the_form_without_several_steps_reads_once_instead(play: Play) -> None:
    model = ScriptedModel(["C", "The French captured Malakoff. [1]"])
    played = await play({"kind": "adaptive-rag", "several": False}, MALAKOFF, model, {"": [FRENCH]})
    assert played.run.usage.searches == 1
    assert "C: it needs several" not in played.asked[0]


def test_an_unreadable_verdict_is_b() -> None:
    assert [classify_complexity(said) for said in ("A", "(C)", "答案：A", "ABC", "")] == [
        "A",
        "C",
        "A",
        "B",
        "B",
    ]
