"""Algorithm 1, walked line by line with scripted replies.

Probabilities are chosen so that cppl = 1/p: a text scored at p = 1/2 has cppl 2
(under sigma = 10), at p = 1/50 it has cppl 50 (over it).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import log

import pytest

from osler.answer import UNDECIDED, Decision
from osler.answer.gate import EvidenceGate
from osler.answer.written import WrittenComposer
from osler.errors import CapabilityMissing, SourceUnavailable
from osler.llm.core.base import Completion, Message, Sampling
from osler.methods.tcrag.actions import Move
from osler.methods.tcrag.machine import TuringMachine
from osler.methods.tcrag.moves import AnyMove, GuidedMoves, ObservationJudge, TriedMoves
from osler.methods.tcrag.stack import (
    SIGMA,
    Cppl,
    FrameKind,
    MemoryStack,
    Monitor,
    Uct,
    Unmonitored,
    cppl,
)
from osler.methods.tcrag.tools import DOC_RAG, KG_RAG, SearchTool, ToolCall
from osler.trace import (
    Asked,
    Budget,
    Noted,
    Popped,
    Pushed,
    Run,
    StateValued,
    list_read_passages,
)
from osler.types import Answer, DecidedBy, Grounding, Halt, Hit, Passage, Question, Statement
from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever, TextOnly, tokens_of

QUESTION = Question("q1", "What happens when amiodarone is added to warfarin?")
INTERACTION = Passage(
    "guideline:inr#0",
    "Amiodarone slows the clearance of warfarin. The INR rises, so the warfarin dose is lowered.",
    "guideline",
    "Anticoagulation",
)
NOISE = Passage("wiki:tea#0", "Tea is a drink made from leaves.", "wiki", "Tea")
SURE, UNSURE = 1 / 2, 1 / 50
ANSWER = "The INR rises, so the warfarin dose is lowered. [1]"
CLAIM = "The INR rises, so the warfarin dose is lowered."


@dataclass(frozen=True)
class Unscored:
    """A model that tells the log-probabilities of its replies and scores no given text."""

    script: ScriptedModel
    name: str = "unscored"

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        return await self.script.complete(messages, sampling)


@dataclass(frozen=True)
class Composes:
    """Answers with a sentence of the evidence, whatever the model concludes."""

    uses_draft: bool = False
    writes_answer: bool = True

    async def conclude(
        self,
        question: Question,
        hits: Sequence[Hit],
        draft: str,
        run: Run,
        *,
        decision: Decision = UNDECIDED,
    ) -> Answer:
        return Answer((Statement(CLAIM),), option=decision.option)


def machine(
    model: ScriptedModel | TextOnly | Unscored,
    monitor: Monitor | None = None,
    retriever: ScriptedRetriever | None = None,
    *,
    moves: AnyMove | None = None,
    **options: object,
) -> TuringMachine:
    found = retriever or ScriptedRetriever({"": [INTERACTION]})
    if monitor is None:
        assert isinstance(model, ScriptedModel)
        monitor = Cppl(model)
    return TuringMachine(
        model,
        (SearchTool(DOC_RAG, found), SearchTool(KG_RAG, ScriptedRetriever({"": [NOISE]}))),
        monitor,
        WrittenComposer(),
        moves or AnyMove(frozenset({DOC_RAG, KG_RAG})),
        sigma=SIGMA[monitor.metric],
        **options,  # type: ignore[arg-type]
    )


def notes(run: Run) -> str:
    return "\n".join(event.text for event in run.events if isinstance(event, Noted))


def pushed(run: Run) -> list[str]:
    return [event.kind for event in run.events if isinstance(event, Pushed)]


def values(run: Run) -> list[StateValued]:
    return [event for event in run.events if isinstance(event, StateValued)]


async def test_a_further_search_shows_what_memory_lacks() -> None:
    found = [Passage(f"book:p#{n}", f"Passage {n}.", "book", "P") for n in range(4)]
    tool, run = SearchTool(DOC_RAG, ScriptedRetriever({"": found}), k=2), Run()
    question = Question("q", "What is said?")
    first = await tool.call_tool(ToolCall("a", question, fresh=True), run)
    again = ToolCall("b", question, first.hits, fresh=True)
    second = await tool.call_tool(again, run)
    assert [hit.passage.id for hit in (*first.hits, *second.hits)] == [one.id for one in found]
    assert second.text.startswith("[3] P: Passage 2.")
    # Where memory has all that there is, it is shown again, by its numbers.
    third = await tool.call_tool(replace(again, known=(*first.hits, *second.hits)), run)
    assert third.text.startswith("[1] P: Passage 0.")
    as_before = await tool.call_tool(replace(again, fresh=False), run)
    assert [hit.passage.id for hit in as_before.hits] == [one.id for one in found[:2]]


async def test_of_a_further_search_that_counts_as_read_which_is_shown() -> None:
    found = [Passage(f"book:p#{n}", f"Passage {n}.", "book", "P") for n in range(4)]
    tool, run = SearchTool(DOC_RAG, ScriptedRetriever({"": found}), k=2), Run()
    known = (Hit(found[3], 1.0, 1, "a", "words"),)
    await tool.call_tool(ToolCall("b", Question("q", "What is said?"), known, fresh=True), run)
    assert list_read_passages(run.events) == ("book:p#0", "book:p#1")


async def test_a_sure_conclusion_halts_and_is_cited() -> None:
    script = ScriptedModel(
        ["Tool_Use: DOC_RAG\nTool_Input: warfarin amiodarone", f"Conclusion: {ANSWER}"],
        scores={ANSWER: SURE},
    )
    run = Run()
    solution = await machine(script).solve(QUESTION, run)
    script.finish()
    assert solution.halt is Halt.CONVERGED
    assert solution.why == "cppl 2 < sigma 10"
    assert solution.answer.grounding is Grounding.GROUNDED
    assert solution.answer.evidence[0].passage.id == INTERACTION.id
    assert pushed(run) == [FrameKind.QUERY, FrameKind.OBSERVATION, FrameKind.CONCLUSION]


async def test_an_unsure_conclusion_becomes_a_thought_and_work_goes_on() -> None:
    """Lines 11-13: relabelled, pushed, and the state is its value."""
    script = ScriptedModel(
        ["Conclusion: Perhaps nothing.", "Tool_Use: DOC_RAG", f"Conclusion: {ANSWER}"],
        scores={"Perhaps nothing.": UNSURE, ANSWER: SURE},
    )
    run = Run()
    solution = await machine(script).solve(QUESTION, run)
    assert pushed(run) == [
        FrameKind.QUERY,
        FrameKind.THOUGHT,
        FrameKind.OBSERVATION,
        FrameKind.CONCLUSION,
    ]
    assert [round(v.value) for v in values(run)] == [50, 2]
    assert [v.halted for v in values(run)] == [False, True]
    assert solution.halt is Halt.CONVERGED


async def test_a_thought_never_halts_however_sure_it_is() -> None:
    """Line 17: s below sigma is lifted to sigma."""
    script = ScriptedModel(["Thought: The answer is clear."] * 3, scores={})
    run = Run()
    solution = await machine(script, max_loop=3).solve(QUESTION, run)
    assert all(v.value < 10 and not v.halted for v in values(run))
    assert solution.halt is Halt.BUDGET
    assert "max_loop 3" in solution.why


async def test_backtrack_removes_the_whole_tool_step_and_restores_the_state() -> None:
    """Lines 22-24: the call goes with its observation, and the model no longer sees either."""
    script = ScriptedModel(
        [
            "Thought: I look in the graph.",
            "Tool_Use: KG_RAG\nTool_Input: tea",
            "Backtrack: about tea",
            "Tool_Use: DOC_RAG",
            f"Conclusion: {ANSWER}",
        ],
        scores={"I look in the graph.": UNSURE, ANSWER: SURE},
    )
    run = Run()
    await machine(script).solve(QUESTION, run)
    popped = [event for event in run.events if isinstance(event, Popped)]
    assert [(p.kind, p.depth, round(p.restored or 0)) for p in popped] == [
        (FrameKind.OBSERVATION, 2, 50)
    ]
    after = "\n".join(message.content for message in script.seen[3])
    assert "Tea" not in after
    assert "KG_RAG\nTool_Input" not in after
    assert script.seen[3] == script.seen[1], "after the pop the prompt is what it was"


async def test_backtracking_over_a_thought_brings_its_predecessor_s_value_back() -> None:
    """Line 24, with an unsure thought (50) under one scored at p = 1/100."""
    script = ScriptedModel(
        ["Thought: one", "Thought: two", "Backtrack: no"], scores={"one": 1 / 50, "two": 1 / 100}
    )
    run = Run()
    await machine(script, max_loop=3).solve(QUESTION, run)
    popped = next(event for event in run.events if isinstance(event, Popped))
    assert popped.restored == pytest.approx(50)


async def test_backtrack_on_the_bare_query_is_an_event_that_costs_a_step() -> None:
    script = ScriptedModel(["Backtrack: nothing here"] * 2)
    run = Run()
    solution = await machine(script, max_loop=2).solve(QUESTION, run)
    popped = [event for event in run.events if isinstance(event, Popped)]
    assert [(p.kind, p.depth, p.restored) for p in popped] == [("", 1, None)] * 2
    assert solution.halt is Halt.NO_EVIDENCE


async def test_a_summary_takes_the_place_of_the_top_and_keeps_its_passages() -> None:
    """Lines 25-27."""
    script = ScriptedModel(
        ["Tool_Use: DOC_RAG", "Summary: INR rises with amiodarone.", f"Conclusion: {ANSWER}"],
        scores={ANSWER: SURE},
    )
    run = Run()
    solution = await machine(script).solve(QUESTION, run)
    last = "\n".join(message.content for message in script.seen[2])
    assert "Summary: INR rises with amiodarone." in last
    assert "slows the clearance" not in last
    assert solution.answer.evidence[0].passage.id == INTERACTION.id


async def test_a_spent_loop_gives_the_last_thought_marked_never_an_observation() -> None:
    script = ScriptedModel([f"Thought: {CLAIM}", "Tool_Use: DOC_RAG"], scores={CLAIM: UNSURE})
    solution = await machine(script, max_loop=2).solve(QUESTION, Run())
    assert solution.halt is Halt.BUDGET
    assert solution.why == "not converged: max_loop 2 is spent"
    assert solution.answer.text.startswith(CLAIM)


async def test_without_a_state_monitor_the_model_s_own_conclusion_ends() -> None:
    """§6.3, w/o State Monitor: a black box, also for a model without log-probabilities."""
    hidden = TextOnly(ScriptedModel([f"Conclusion: {ANSWER}"]))
    solution = await machine(hidden, Unmonitored()).solve(QUESTION, Run())
    assert solution.halt is Halt.CONVERGED
    assert solution.why == "the model concluded (no state monitor)"


async def test_uct_is_over_the_conclusion_s_own_tokens_not_its_tag() -> None:
    """Eq. 5 with p = 1/2 each: N/2 · ln 2 over the N tokens of the text alone.

    The first of them is " yes": it begins with the space after the tag.
    """
    script = ScriptedModel(["Conclusion: yes it does"], probability=1 / 2)
    run = Run()
    await machine(script, Uct(script), max_loop=1).solve(QUESTION, run)
    assert values(run)[0].value == pytest.approx(3 / 2 * log(2))


async def test_a_conclusion_of_one_token_is_valued_without_a_second_reading() -> None:
    """Of a model that tells log-probabilities of its reply and can score no given text."""
    script = ScriptedModel(["Conclusion: B"], probability=1 / 2)
    told = Unscored(script)
    run = Run()
    solution = await machine(told, Uct(told), max_loop=1).solve(QUESTION, run)
    assert solution.halt is Halt.CONVERGED
    assert values(run)[0].value == pytest.approx(1 / 2 * log(2))


async def test_a_text_that_cannot_be_valued_is_not_sure_and_does_not_end_the_run() -> None:
    """A composed answer has no tokens of its own, and this model scores none."""
    told = Unscored(ScriptedModel([f"Conclusion: {ANSWER}", "Thought: so be it"]))
    run = Run()
    composed = replace(machine(told, Uct(told), max_loop=2), composer=Composes())
    solution = await composed.solve(QUESTION, run)
    assert solution.halt is Halt.BUDGET
    assert "no state value: uct needs token log-probabilities" in notes(run)


async def test_a_model_without_any_log_probabilities_is_refused_with_what_to_do() -> None:
    hidden = TextOnly(ScriptedModel([f"Conclusion: {ANSWER}"]))
    with pytest.raises(CapabilityMissing) as refused:
        await machine(hidden, Uct(hidden)).solve(QUESTION, Run())
    assert refused.value.fix == 'set strategy.metric = "off"'


async def test_a_value_equal_to_sigma_is_not_below_it() -> None:
    """Line 8: f < sigma."""
    script = ScriptedModel([f"Conclusion: {ANSWER}"], scores={ANSWER: SURE})
    value = cppl([token.logprob for token in tokens_of(ANSWER, SURE)])
    run = Run()
    exact = replace(machine(script, max_loop=1), sigma=value)
    assert (await exact.solve(QUESTION, run)).halt is not Halt.CONVERGED
    assert [v.halted for v in values(run)] == [False]


async def test_a_refused_conclusion_leaves_its_own_value_behind() -> None:
    """Line 12: s becomes f; the large value of the start is gone."""
    script = ScriptedModel(["Conclusion: Perhaps."], scores={"Perhaps.": UNSURE})
    memory = MemoryStack(QUESTION)
    await machine(script, max_loop=1).solve_over(memory, Run())
    assert memory.state == pytest.approx(50)
    assert memory.top.before == float("inf")


@pytest.mark.parametrize(("own", "left"), [(1 / 30, 30), (SURE, 10)])
async def test_a_refused_conclusion_is_not_valued_as_the_quotes_that_replaced_it(
    own: float, left: int
) -> None:
    """Its own value, at least sigma: as a Thought it ends nothing (line 17)."""
    script = ScriptedModel(["Conclusion: DOC_RAG"], scores={CLAIM: UNSURE, "DOC_RAG": own})
    memory, run = MemoryStack(QUESTION), Run()
    composed = replace(machine(script, max_loop=1), composer=Composes())
    await composed.solve_over(memory, run)
    assert (memory.top.kind, memory.top.text) == (FrameKind.THOUGHT, "DOC_RAG")
    assert memory.state == pytest.approx(left)
    assert [(round(v.value), v.note, v.halted) for v in values(run)] == [
        (50, "of the composed answer", False),
        (round(1 / own), "", False),
    ]


async def test_what_was_composed_is_told_apart_from_what_the_model_wrote() -> None:
    script = ScriptedModel(["Conclusion: DOC_RAG"], scores={CLAIM: SURE})
    run = Run()
    await replace(machine(script), composer=Composes()).solve(QUESTION, run)
    last = [event for event in run.events if isinstance(event, Pushed)][-1]
    assert (last.kind, last.text) == (FrameKind.CONCLUSION, CLAIM)
    assert (last.draft, last.writer) == ("DOC_RAG", "")


@pytest.mark.parametrize(
    ("concluded", "option", "decided"),
    [
        ("B. The INR rises.", "B", DecidedBy.METHOD),
        ("DOC_RAG", None, DecidedBy.FALLBACK),
        ("A or B", None, DecidedBy.FALLBACK),
    ],
)
async def test_an_option_that_a_conclusion_names_is_answered_whoever_words_it(
    concluded: str, option: str | None, decided: DecidedBy
) -> None:
    script = ScriptedModel([f"Conclusion: {concluded}"])
    asked = replace(QUESTION, options=("The INR falls", "The INR rises"))
    composing = replace(machine(script, Unmonitored()), composer=Composes())
    solution = await composing.solve(asked, Run())
    script.finish()
    assert (solution.answer.option, solution.decided) == (option, decided)


async def test_a_model_that_words_its_answer_has_decided_it() -> None:
    script = ScriptedModel([f"Conclusion: {ANSWER}"])
    solution = await machine(script, Unmonitored()).solve(QUESTION, Run())
    assert solution.decided is DecidedBy.METHOD


async def test_a_conclusion_in_the_model_s_words_is_told_once() -> None:
    script = ScriptedModel([f"Conclusion: {ANSWER}"], scores={ANSWER: SURE})
    run = Run()
    await machine(script).solve(QUESTION, run)
    told = [event for event in run.events if isinstance(event, Pushed)]
    assert [(event.writer, event.draft) for event in told] == [("", ""), ("planner", "")]


async def test_a_summary_of_a_thought_leaves_the_state_as_it_is() -> None:
    """Line 26 pops and says nothing of s."""
    script = ScriptedModel(["Thought: a long one", "Summary: short"], probability=UNSURE)
    memory = MemoryStack(QUESTION)
    await machine(script, max_loop=2).solve_over(memory, Run())
    assert memory.state == pytest.approx(50.0)


async def test_line_31_returns_the_top_whatever_it_is() -> None:
    replies = [f"Thought: {CLAIM}", "Tool_Use: DOC_RAG"]
    script = ScriptedModel(replies, scores={CLAIM: UNSURE})
    top = machine(script, max_loop=2, exhausted="top")
    solution = await top.solve(QUESTION, Run())
    assert solution.halt is Halt.BUDGET
    assert "slows the clearance" in solution.answer.text


async def test_the_query_alone_is_no_conclusion() -> None:
    script = ScriptedModel(["Backtrack: no"])
    solution = await machine(script, max_loop=1, exhausted="top").solve(QUESTION, Run())
    assert solution.halt is Halt.NO_EVIDENCE


async def test_the_ablations_take_an_action_away() -> None:
    tools = frozenset({DOC_RAG, KG_RAG})
    without = AnyMove(tools, backtrack=False, summary=False)
    assert without.taught_moves == {Move.THOUGHT, Move.TOOL_USE, Move.CONCLUSION}
    script = ScriptedModel(
        ["Backtrack: x", "Thought: fine", "Summary: y", "Summary: y", "Summary: y"]
    )
    run = Run()
    await machine(script, moves=without, max_loop=2).solve(QUESTION, run)
    system = script.seen[0][0].content
    assert "Backtrack" not in system
    assert "Summary" not in system
    assert pushed(run) == [FrameKind.QUERY, FrameKind.THOUGHT]
    assert any(isinstance(event, Noted) for event in run.events), "the lost step is told"
    assert [
        e.repaired != "" for e in run.events if isinstance(e, Asked) and e.role == "planner"
    ] == [
        False,
        True,
        False,
        True,
        True,
    ]


async def test_a_tool_that_is_down_is_an_observation_and_an_event() -> None:
    @dataclass
    class Down:
        asked: list[str] = field(default_factory=list)

        async def search(self, query: str, *, k: int) -> list[Hit]:
            raise SourceUnavailable("the guideline index cannot be read")

    script = ScriptedModel(["Tool_Use: DOC_RAG", "Conclusion: I cannot say."])
    down = TuringMachine(
        script,
        (SearchTool(DOC_RAG, Down()),),
        Unmonitored(),
        WrittenComposer(),
        AnyMove(frozenset({DOC_RAG})),
        sigma=1.0,
    )
    run = Run()
    await down.solve(QUESTION, run)
    observed = [
        e.text for e in run.events if isinstance(e, Pushed) and e.kind == FrameKind.OBSERVATION
    ]
    assert observed == ["DOC_RAG: The tool is not available: the guideline index cannot be read"]


async def test_the_run_s_budget_ends_the_loop_and_says_which_bound() -> None:
    script = ScriptedModel(["Thought: on", "Thought: and on"])
    run = Run(budget=Budget(calls=2))
    solution = await machine(script).solve(QUESTION, run)
    assert solution.why == "not converged: spent: calls 2 of 2"


async def test_the_prompt_only_grows_until_something_is_popped() -> None:
    script = ScriptedModel(
        ["Thought: a", "Tool_Use: DOC_RAG", "Thought: b", "Thought: c"], probability=UNSURE
    )
    await machine(script, max_loop=4).solve(QUESTION, Run())
    texts = ["".join(f"<{m.role}>{m.content}" for m in seen) for seen in script.seen]
    for before, after in pairwise(texts):
        assert after.startswith(before.rstrip("\n"))


class Plain:
    """Coverage by whether the text names a drug of the question."""

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        return tuple(1.0 if "warfarin" in text else 0.0 for text in texts)


async def test_guided_moves_withhold_only_what_makes_no_sense() -> None:
    tools = frozenset({DOC_RAG, KG_RAG})
    gate = EvidenceGate(Plain())
    guided = GuidedMoves(AnyMove(tools), ObservationJudge(gate), long=40)
    memory = MemoryStack(QUESTION)
    start = await guided.offer_moves(memory, TriedMoves(), last=False)
    assert start.moves == {Move.TOOL_USE, Move.THOUGHT}
    memory.push(FrameKind.OBSERVATION, "tea", hits=(Hit(NOISE, 1, 1, "", "wiki"),))
    noisy = await guided.offer_moves(memory, TriedMoves({KG_RAG}), last=False)
    assert noisy.moves == {Move.BACKTRACK}
    memory.pop()
    one = Hit(INTERACTION, 1, 1, "", "guideline")
    memory.push(FrameKind.OBSERVATION, "x" * 50, hits=(one,))
    alone = await guided.offer_moves(memory, TriedMoves({KG_RAG, DOC_RAG}), last=False)
    assert alone.moves == {Move.CONCLUSION, Move.THOUGHT}, "one passage needs no summary"
    memory.pop()
    second = replace(INTERACTION, id="guideline:interaction#9")
    memory.push(FrameKind.OBSERVATION, "x" * 50, hits=(one, replace(one, passage=second)))
    useful = await guided.offer_moves(memory, TriedMoves({KG_RAG, DOC_RAG}), last=False)
    assert useful.moves == {Move.CONCLUSION, Move.THOUGHT, Move.SUMMARY}
    last = await guided.offer_moves(memory, TriedMoves(), last=True)
    assert last.moves == {Move.CONCLUSION}
    tried = TriedMoves({KG_RAG, DOC_RAG})
    tried.refuse_evidence(memory)
    over = await guided.offer_moves(memory, tried, last=False)
    assert over.moves == {Move.SUMMARY, Move.THOUGHT}
    memory.push(FrameKind.THOUGHT, "and now?")
    assert (await guided.offer_moves(memory, tried, last=False)).moves == frozenset()


async def test_a_thought_that_the_evidence_contradicts_is_popped_before_anything_else() -> None:
    gate = EvidenceGate(Plain())
    guided = GuidedMoves(AnyMove(frozenset({DOC_RAG})), ObservationJudge(gate))
    dose = replace(INTERACTION, text="Halve the warfarin dose to 2 mg a day with amiodarone.")
    memory = MemoryStack(QUESTION)
    memory.push(FrameKind.OBSERVATION, dose.text, hits=(Hit(dose, 1, 1, "", "guideline"),))
    memory.push(FrameKind.THOUGHT, "The warfarin dose with amiodarone is 2 mg a day.", state=12.0)
    agreed = await guided.offer_moves(memory, TriedMoves(), last=False)
    assert Move.BACKTRACK not in agreed.moves
    memory.push(FrameKind.THOUGHT, "The warfarin dose with amiodarone is 9 mg a day.", state=7.0)
    offered = await guided.offer_moves(memory, TriedMoves(), last=False)
    assert offered.moves == {Move.BACKTRACK}
    memory.pop()
    assert memory.state == 12.0, "the state value of before it stands again"
    without = replace(guided, widest=replace(guided.widest, backtrack=False))
    memory.push(FrameKind.THOUGHT, "The warfarin dose with amiodarone is 9 mg a day.")
    assert Move.BACKTRACK not in (await without.offer_moves(memory, TriedMoves(), last=False)).moves


async def test_a_run_with_nothing_left_to_try_ends_and_says_so() -> None:
    tools = frozenset({DOC_RAG})
    never = EvidenceGate(Plain())
    script = ScriptedModel(
        ["Tool_Use: DOC_RAG", "Conclusion: unsure", "Thought: hm", "Thought: hm"], scores={}
    )
    guided = TuringMachine(
        script,
        (SearchTool(DOC_RAG, ScriptedRetriever({"": [INTERACTION]})),),
        Cppl(script),
        WrittenComposer(),
        GuidedMoves(AnyMove(tools), ObservationJudge(never)),
        sigma=1.5,
    )
    solution = await guided.solve(QUESTION, Run())
    assert solution.why == "not converged: no sensible move is left"
    assert len(script.seen) == 2


def test_the_paper_s_machine_takes_the_first_metric_that_its_model_can_be_valued_by() -> None:
    found, blind = ScriptedRetriever({"": [INTERACTION]}), TextOnly(ScriptedModel([]))
    scoring = TuringMachine.from_model(ScriptedModel([]), found)
    assert (scoring.monitor.metric, scoring.sigma) == ("cppl", 10)
    telling = TuringMachine.from_model(blind, found)
    assert (telling.monitor.metric, telling.sigma) == ("uct", 20)
    assert TuringMachine.from_model(blind, found, metric="off").monitor.metric == "off"
    with pytest.raises(CapabilityMissing, match="likelihood of a given text"):
        TuringMachine.from_model(blind, found, metric="cppl")


async def test_a_conclusion_that_no_call_is_left_to_value_is_the_answer() -> None:
    model = ScriptedModel(["Tool_Use: DOC_RAG", "Thought: I shall see.", f"Conclusion: {ANSWER}"])
    run = Run(budget=Budget(calls=4))
    solution = await machine(model, closes=True).solve(QUESTION, run)
    assert solution.answer.text == ANSWER
    assert (solution.halt, solution.why) == (Halt.BUDGET, "not converged: spent: calls 4 of 4")


async def test_where_only_searches_are_spent_the_model_concludes() -> None:
    more = ["Thought: Once more.", "Tool_Use: KG_RAG"]
    model = ScriptedModel(["Tool_Use: DOC_RAG", *more, f"Conclusion: {ANSWER}"])
    run = Run(budget=Budget(searches=1))
    solution = await machine(model, closes=True).solve(QUESTION, run)
    assert (solution.answer.text, solution.halt) == (ANSWER, Halt.BUDGET)


@pytest.mark.parametrize("said", ["I do not know.", "The evidence does not say."])
async def test_who_abstains_at_the_close_is_not_overruled_by_an_older_thought(said: str) -> None:
    model = ScriptedModel(["Thought: I need PubMed.", f"Conclusion: {said}"])
    solution = await machine(model, max_loop=1, closes=True).solve(QUESTION, Run())
    assert (solution.answer.text, solution.halt) == ("", Halt.NO_EVIDENCE)


@pytest.mark.parametrize("said", ["", "<think>Okay, the user", "I cannot help with that."])
async def test_a_summariser_that_says_nothing_leaves_the_model_s_own_summary(said: str) -> None:
    model = ScriptedModel(["Tool_Use: DOC_RAG", f"Summary: {CLAIM}", f"Conclusion: {ANSWER}"])
    run, summariser = Run(), ScriptedModel([said], cut={0} if "think" in said else set())
    solution = await machine(model, summariser=summariser).solve(QUESTION, run)
    assert solution.halt is Halt.CONVERGED
    assert any(isinstance(one, Pushed) and one.text == CLAIM for one in run.events)
    assert "the summariser said nothing" in notes(run)


async def test_nothing_is_summed_up_by_another_model_over_the_bare_query() -> None:
    model = ScriptedModel([f"Summary: {CLAIM}", f"Conclusion: {ANSWER}"])
    run, summariser = Run(), ScriptedModel([])
    await machine(model, summariser=summariser).solve(QUESTION, run)
    assert pushed(run) == ["User_Query", "Summary", "Conclusion"]
