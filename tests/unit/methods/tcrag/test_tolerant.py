"""TC-RAG reads what models write: any dress, several actions in a reply, any server's abilities."""

from pathlib import Path
from typing import Any

import pytest
from mannered_runs import ManneredRun, run_mannered
from manners import Manners

from osler.errors import CapabilityMissing, MalformedOutput
from osler.llm.core.base import Completion
from osler.methods.tcrag.actions import (
    Backtrack,
    Conclusion,
    Move,
    Summary,
    Thought,
    ToolUse,
    parse_tolerant,
    render_action,
)
from osler.methods.tcrag.moves import OfferedMoves
from osler.methods.tcrag.parts import read_steps
from osler.trace import Pushed, StateValued
from osler.types import Halt

TOOLS = ("DOC_RAG", "KG_RAG")
SAID = "Oral iron treats iron deficiency anaemia. [1]"
BARE: Any = {"scores": False, "logprobs": False}

REPLIES = {
    "Thought: I look.\nTool_Use: DOC_RAG\nTool_Input: iron": (
        Thought("I look."),
        ToolUse("DOC_RAG", "iron"),
    ),
    # What follows a call is invented: its observation is not known yet.
    "Tool_Use: DOC_RAG\nThought: It says so.\nConclusion: Salt.": (ToolUse("DOC_RAG", ""),),
    # A reason is no step: pushed, it would be what is popped or summed up.
    "Thought: It is about tea.\nBacktrack: tea\nTool_Use: KG_RAG": (
        Backtrack("tea"),
        ToolUse("KG_RAG", ""),
    ),
    "It is long.\nThought: I shorten it.\nSummary: iron": (Summary("iron"),),
    # A format filled in to its last line.
    "Backtrack: Not needed.\nSummary: none\nThought: So.\nConclusion: Salt.": (
        Thought("So."),
        Conclusion("Salt."),
    ),
    "Thought: So.\nTool_Use: None\nTool_Input: N/A\nConclusion: Salt.": (
        Thought("So."),
        Conclusion("Salt."),
    ),
    "回溯：不需要回溯。\n结论：无": (Conclusion("无"),),
    "Backtrack: No answer in it.": (Backtrack("No answer in it."),),
    "Backtrack: Not applicable to children.": (Backtrack("Not applicable to children."),),
    "回溯：不需要这一段": (Backtrack("不需要这一段"),),
    "Backtrack: tea\nTool_Use: KG_RAG": (Backtrack("tea"), ToolUse("KG_RAG", "")),
    "**结论：**口服铁剂。[1]": (Conclusion("口服铁剂。[1]"),),
    # Without a tag it concludes where it cites.
    "Oral iron treats it (Reference 1).": (Conclusion("Oral iron treats it (Reference 1)."),),
    "I should look it up.": (Thought("I should look it up."),),
}


@pytest.mark.parametrize(("reply", "steps"), REPLIES.items())
def test_a_reply_is_its_steps(reply: str, steps: tuple[object, ...]) -> None:
    assert tuple(one.action for one in parse_tolerant(reply, tools=TOOLS)) == steps


@pytest.mark.parametrize(
    "reply",
    [
        *("", " \n", "Tool_Use: GOOGLE", "Tool_Use:", "```\n```", "Backtrack: None"),
        # With the thought alone the model would never be told that there is no such tool.
        "Thought: I look.\nTool_Use: GOOGLE",
    ],
)
def test_what_is_no_step_is_refused(reply: str) -> None:
    with pytest.raises(MalformedOutput):
        parse_tolerant(reply, tools=TOOLS)


@pytest.mark.parametrize("offered", [Move.CONCLUSION, Move.TOOL_USE])
def test_a_thought_that_is_not_offered_hides_no_step_that_is(offered: Move) -> None:
    """A calibration, or guided moves, would refuse the reply whole, to the end."""
    said = {Move.CONCLUSION: "Conclusion: Salt.", Move.TOOL_USE: "Tool_Use: DOC_RAG"}[offered]
    offer = OfferedMoves(frozenset({offered}), frozenset(TOOLS))
    (step,) = read_steps(parse_tolerant, Completion(f"Thought: So.\n{said}"), (), offer, 3)
    assert (step.i, render_action(step.parsed.action)) == (3, said)


async def run(manners: Manners, home: Path, **strategy: Any) -> ManneredRun:
    return await run_mannered({"kind": "tc-rag", **strategy}, manners, home)


@pytest.mark.parametrize(
    "manners",
    [
        Manners(),
        *(Manners(tags=dress) for dress in ("bold", "headed", "fenced", "bulleted", "chinese")),
        *(Manners(calls=way) for way in ("native", "json", "tool_call", "function")),
        Manners(actions="invented"),
        Manners(chatter=True),
        Manners(continues=False, thinking="text", tags="bold", chatter=True, **BARE),
    ],
    ids=str,
)
async def test_one_search_takes_two_calls_in_any_manner(manners: Manners, tmp_path: Path) -> None:
    done = await run(manners, tmp_path)
    assert done.solution.answer.text == SAID
    assert done.solution.halt is Halt.CONVERGED
    assert done.chats == 2


async def test_a_thought_and_the_action_after_it_are_two_steps(tmp_path: Path) -> None:
    done = await run(Manners(), tmp_path)
    kinds = [(event.i, event.kind) for event in done.run.events if isinstance(event, Pushed)]
    assert [kind for _, kind in kinds] == [
        "User_Query",
        "Thought",
        "Tool_Observation",
        "Thought",
        "Conclusion",
    ]
    assert [i for i, _ in kinds] == [0, 1, 2, 3, 4]
    # Line 16 values each Thought; one that its own reply acts on can change nothing by it.
    assert [event.i for event in done.run.events if isinstance(event, StateValued)] == [4]


async def test_the_paper_s_dialect_takes_one_action_a_reply(tmp_path: Path) -> None:
    done = await run(Manners(), tmp_path, dialect="paper")
    assert done.solution.answer.text == SAID
    assert done.chats == 4


async def test_a_spent_loop_writes_a_conclusion(tmp_path: Path) -> None:
    """It was "I should look up the relevant evidence."."""
    done = await run(Manners(), tmp_path, max_loop=1)
    assert done.solution.answer.text == SAID
    assert done.solution.halt is Halt.BUDGET
    assert "max_loop 1" in done.solution.why
    assert done.chats == 2


@pytest.mark.parametrize(
    ("able", "metric"),
    [
        ({}, "cppl"),
        ({"scores": False}, "uct"),
        (BARE, "no state monitor"),
        ({**BARE, "continues": False}, "no state monitor"),
    ],
)
async def test_the_metric_is_one_that_the_model_can_be_valued_by(
    able: dict[str, Any], metric: str, tmp_path: Path
) -> None:
    done = await run(Manners(**able), tmp_path)
    assert metric in done.solution.why


async def test_a_metric_that_was_named_is_refused_where_it_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(CapabilityMissing, match="cppl needs"):
        await run(Manners(**BARE), tmp_path, metric="cppl")


async def test_sureness_of_a_model_s_own_words_is_refused(tmp_path: Path) -> None:
    """No expert judges them, so that no Conclusion could ever converge."""
    with pytest.raises(CapabilityMissing, match="sureness is of quoted answers"):
        await run(Manners(), tmp_path, metric="sureness")


async def test_unified_begins_on_a_server_that_only_speaks(tmp_path: Path) -> None:
    done = await run_mannered({"kind": "unified"}, Manners(**BARE), tmp_path)
    assert SAID[:-4] in done.solution.answer.text
