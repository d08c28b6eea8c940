"""The helpers of the released code: what they are asked, what they answer, how they fail."""

from __future__ import annotations

import pytest

from osler.errors import MalformedOutput
from osler.methods.tcrag.tools import (
    EntitiesTool,
    HypothesisTool,
    LineWriter,
    OrganiseTool,
    ReadEntitiesTool,
    ToolCall,
)
from osler.trace import Asked, Run
from osler.types import Hit, Passage, Question
from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever

QUESTION = Question("q", "What does amiodarone do to the INR?")
ZH = Question("q", "胺碘酮对INR有何影响？", language="zh")
PASSAGE = Passage("book:inr#0", "Amiodarone\nraises the INR.", "book", "INR")
HIT = Hit(PASSAGE, 1.0, 1, "", "book")


async def test_a_hypothesis_is_marked_as_none_and_brings_no_passage() -> None:
    model = ScriptedModel(["It rises,\n I think."])
    run = Run()
    seen = await HypothesisTool(LineWriter(model)).call_tool(ToolCall("INR?", QUESTION), run)
    assert (seen.text, seen.hits) == ("Hypothesis, not evidence: It rises, I think.", ())
    assert "INR?" in model.seen[0][0].content
    assert [e.role for e in run.events if isinstance(e, Asked)] == ["helper"]


async def test_a_chinese_question_is_helped_in_chinese() -> None:
    model = ScriptedModel(["INR升高", "胺碘酮；INR", "INR升高[1]"])
    scribe = LineWriter(model)
    call = ToolCall("胺碘酮", ZH, (HIT,))
    told = [
        (await helper.call_tool(call, Run())).text
        for helper in (HypothesisTool(scribe), ReadEntitiesTool(scribe), OrganiseTool(scribe))
    ]
    assert told == ["假设（并非证据）：INR升高", "医学实体：胺碘酮；INR", "INR升高[1]"]
    assert "只写一行" in model.seen[0][0].content


async def test_what_is_organised_are_the_passages_in_memory_with_their_numbers() -> None:
    model = ScriptedModel(["It rises [1]."])
    await OrganiseTool(LineWriter(model)).call_tool(ToolCall("x", QUESTION, (HIT,)), Run())
    assert "[1] INR: Amiodarone raises the INR." in model.seen[0][0].content


async def test_with_nothing_in_memory_no_model_is_asked() -> None:
    seen = await OrganiseTool(LineWriter(ScriptedModel([]))).call_tool(
        ToolCall("x", QUESTION), Run()
    )
    assert seen.text == "No passage is in memory yet."


async def test_a_text_without_terms_is_said() -> None:
    seen = await EntitiesTool(ScriptedRetriever({})).call_tool(ToolCall("x", QUESTION), Run())
    assert seen.text == "No medical term was found."


async def test_the_line_is_held_to_a_grammar_where_the_engine_can() -> None:
    model = ScriptedModel(["x", "y"])
    await HypothesisTool(LineWriter(model, constrains=True, longest=90)).call_tool(
        ToolCall("x", ZH), Run()
    )
    await HypothesisTool(LineWriter(model)).call_tool(ToolCall("x", ZH), Run())
    held, free = (sampling.grammar for sampling in model.samplings)
    assert free is None
    assert held is not None
    assert held.accepts("字" * 30)
    assert not held.accepts("字" * 31)


async def test_a_model_that_stays_silent_is_asked_again_and_then_refused() -> None:
    model = ScriptedModel(["", " ", "\n"])
    with pytest.raises(MalformedOutput, match="one line of text"):
        await HypothesisTool(LineWriter(model)).call_tool(ToolCall("x", QUESTION), Run())
    model.finish()
