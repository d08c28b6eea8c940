"""TC-RAG walked by hand: each scenario is a script, and is named after what it shows.

Its events are a golden log (`tests/golden/scenarios/NAME.jsonl`; of a prompt the name alone),
written anew with `python tests/unit/methods/tcrag/test_scenarios.py` when a change is meant,
and what it shows is asserted besides. Under cppl a text scored at probability p has the value
1/p, so SURE (2) lies below sigma = 10 and UNSURE (50) above it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import pytest

from osler.answer.gate import EvidenceGate
from osler.answer.written import WrittenComposer
from osler.cli.film import draw_film
from osler.errors import ModelUnreachable, SourceUnavailable
from osler.llm.core.base import Completion, Message, Sampling
from osler.methods.tcrag import tools
from osler.methods.tcrag.actions import parse_action, parse_released
from osler.methods.tcrag.machine import TuringMachine
from osler.methods.tcrag.moves import AnyMove, GuidedMoves, ObservationJudge
from osler.methods.tcrag.stack import SIGMA, Cppl, Monitor, Uct, Unmonitored
from osler.methods.tcrag.tools import (
    DOC_RAG,
    KG_RAG,
    WEB_RAG,
    EntitiesTool,
    FilterTool,
    HypothesisTool,
    LineWriter,
    OrganiseTool,
    SearchTool,
    Tool,
)
from osler.trace import (
    Answered,
    Asked,
    Budget,
    Event,
    Noted,
    Popped,
    Pushed,
    Retrieved,
    Run,
    Searched,
    StateValued,
    to_line,
)
from osler.types import Grounding, Halt, Hit, Passage, Question, Solution
from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever

GOLDEN = Path(__file__).parents[3] / "golden" / "scenarios"
SURE, UNSURE = 1 / 2, 1 / 50

INTERACTION = Passage(
    "guideline:inr#0",
    "Amiodarone slows the clearance of warfarin. The INR rises, so the warfarin dose is lowered.",
    "guideline",
    "Anticoagulation",
)
ONSET = Passage("book:inr#3", "The effect of amiodarone on the INR lasts for weeks.", "book", "INR")
POISON = Passage("web:w#0", "Warfarin must be doubled with amiodarone.", "web", "A forum")
TEA = Passage("web:tea#0", "Tea is a drink made from leaves.", "web", "Tea")
CHINESE = Passage(
    "book:xt#0",
    "胺碘酮减慢华法林的代谢。INR升高，应减少华法林剂量。",
    "book",
    "抗凝",
    language="zh",
)
DEFICIT = Passage(
    "book:na#0",
    "The dose of elemental iron is 3 mg per kg of body weight a day. One pound is 0.45 kg.",
    "book",
    "Iron",
)
OTHER_IRON = Passage("web:fe#0", "Iron melts at 1538 degrees.", "web", "Iron, the metal")

ASKED = Question("q1", "What happens when amiodarone is added to warfarin?")
CHOICE = Question("q2", "Amiodarone is added to warfarin. What is done?", ("double it", "lower it"))
ZH = Question("q3", "华法林加用胺碘酮后怎么办？", language="zh")
CHILD = Question("q4", "How much elemental iron a day does a child of 44 pounds need?")

ANSWER = "The INR rises, so the warfarin dose is lowered. [1]"
CALL = "Tool_Use: DOC_RAG\nTool_Input: warfarin amiodarone"
FOUND: Mapping[str, tuple[Passage, ...]] = {"": (INTERACTION,)}


@dataclass
class Down:
    """A source that cannot be searched."""

    async def search(self, query: str, *, k: int) -> list[Hit]:
        raise SourceUnavailable("the index cannot be read")


@dataclass
class Silent:
    """A server that is gone."""

    name: str = "gone"

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        raise ModelUnreachable("no server at 127.0.0.1:1")


class Names:
    """What bears on the question names a drug of it."""

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        return tuple(float("arfarin" in text) for text in texts)


GATE = EvidenceGate(Names())


@dataclass(frozen=True)
class Scenario:
    name: str
    replies: tuple[str, ...]
    shows: Callable[[Film], bool]
    """What the golden log is about, in one expression."""
    scores: dict[str, float] = field(default_factory=dict)
    question: Question = ASKED
    docs: Mapping[str, tuple[Passage, ...]] = field(default_factory=lambda: FOUND)
    web: Mapping[str, tuple[Passage, ...]] = field(default_factory=lambda: {"": (TEA,)})
    metric: Literal["cppl", "uct", "off"] = "cppl"
    max_loop: int = 8
    without: frozenset[str] = frozenset()
    """Ablations: "backtrack", "summary"."""
    guided: bool = False
    released: bool = False
    calls: int | None = None
    """The budget."""
    docs_down: bool = False
    helper_down: bool = False
    helped: tuple[str, ...] = ()
    """What the helpers' own model says."""


@dataclass(frozen=True)
class Film:
    """A scenario that was run."""

    solution: Solution
    events: list[Event]
    prompts: list[str]
    """What the planner read, step by step."""

    def pushed(self) -> list[str]:
        return [e.kind for e in self.events if isinstance(e, Pushed)]

    def popped(self) -> list[Popped]:
        return [e for e in self.events if isinstance(e, Popped)]

    def values(self) -> list[int]:
        return [round(e.value) for e in self.events if isinstance(e, StateValued)]

    def notes(self) -> str:
        return "\n".join(e.text for e in self.events if isinstance(e, Noted))

    def observed(self) -> list[str]:
        return [
            e.text for e in self.events if isinstance(e, Pushed) and e.kind == "Tool_Observation"
        ]

    def cited(self) -> list[str]:
        return [evidence.passage.id for evidence in self.solution.answer.evidence]


def machine(told: Scenario, model: ScriptedModel) -> TuringMachine:
    helper = ScriptedModel(list(told.helped), name="helper")
    scribe = LineWriter(Silent() if told.helper_down else helper)
    offered: tuple[Tool, ...] = (
        SearchTool(DOC_RAG, Down() if told.docs_down else ScriptedRetriever(dict(told.docs))),
        SearchTool(WEB_RAG, ScriptedRetriever(dict(told.web))),
    )
    if told.helped or told.helper_down:
        terms = [Passage("graph:w#mention", "warfarin (drug)", "graph", "warfarin")]
        offered += (
            HypothesisTool(scribe),
            EntitiesTool(ScriptedRetriever({"warfarin": terms})),
            OrganiseTool(scribe),
            FilterTool(GATE),
        )
    names = frozenset(tool.name for tool in offered)
    widest = AnyMove(names, "backtrack" not in told.without, "summary" not in told.without)
    monitors: dict[str, Monitor] = {
        "cppl": Cppl(model),
        "uct": Uct(model),
        "off": Unmonitored(),
    }
    return TuringMachine(
        model,
        offered,
        monitors[told.metric],
        WrittenComposer(),
        GuidedMoves(widest, ObservationJudge(GATE)) if told.guided else widest,
        sigma=SIGMA[told.metric],
        max_loop=told.max_loop,
        read=parse_released if told.released else parse_action,
        sampling=Sampling(top=1),
    )


async def play(told: Scenario) -> Film:
    model = ScriptedModel(list(told.replies), scores=told.scores)
    run = Run(id=told.name, budget=Budget(calls=told.calls))
    solution = await machine(told, model).solve(told.question, run)
    model.finish()
    run.emit(Answered(solution))
    prompts = ["\n".join(m.content for m in seen) for seen in model.seen]
    return Film(solution, run.events, prompts)


SCENARIOS = (
    Scenario(
        "a_sure_conclusion_over_evidence_halts",
        (CALL, f"Conclusion: {ANSWER}"),
        lambda f: f.solution.halt is Halt.CONVERGED and f.cited() == ["guideline:inr#0"],
        {ANSWER: SURE},
    ),
    Scenario(
        "an_unsure_conclusion_becomes_a_thought",
        ("Conclusion: Perhaps nothing.", CALL, f"Conclusion: {ANSWER}"),
        lambda f: f.pushed()[1] == "Thought" and f.values() == [50, 2],
        {"Perhaps nothing.": UNSURE, ANSWER: SURE},
    ),
    Scenario(
        "backtrack_removes_a_poisoned_observation",
        (
            "Tool_Use: WEB_RAG\nTool_Input: warfarin",
            "Backtrack: a forum contradicts what is known",
            CALL,
            f"Conclusion: {ANSWER}",
        ),
        lambda f: (
            "doubled" in f.prompts[1]
            and not any("doubled" in prompt for prompt in f.prompts[2:])
            and f.cited() == ["guideline:inr#0"]
        ),
        {ANSWER: SURE},
        web={"": (POISON,)},
    ),
    Scenario(
        "summary_shortens_and_keeps_the_passages",
        (CALL, "Summary: INR rises. [1]", f"Conclusion: {ANSWER}"),
        lambda f: "clearance" not in f.prompts[2] and f.cited() == ["guideline:inr#0"],
        {ANSWER: SURE},
    ),
    Scenario(
        "a_sure_thought_is_lifted_to_sigma_and_does_not_halt",
        ("Thought: It is clear.", "Thought: Look.", "Backtrack: no", CALL, f"Conclusion: {ANSWER}"),
        lambda f: f.popped()[0].restored == 10 and f.solution.halt is Halt.CONVERGED,
        {"It is clear.": SURE, "Look.": UNSURE, ANSWER: SURE},
    ),
    Scenario(
        "backtracking_a_thought_brings_the_value_before_it_back",
        ("Thought: one", "Thought: two", "Backtrack: no", CALL, f"Conclusion: {ANSWER}"),
        lambda f: round(f.popped()[0].restored or 0) == 50 and f.values()[:2] == [50, 100],
        {"one": UNSURE, "two": 1 / 100, ANSWER: SURE},
    ),
    Scenario(
        "two_backtracks_undo_two_steps_and_the_prompt_is_what_it_was",
        (
            "Thought: I search the web.",
            "Tool_Use: WEB_RAG",
            "Backtrack: tea",
            "Backtrack: the web was no good idea",
            CALL,
            f"Conclusion: {ANSWER}",
        ),
        lambda f: f.prompts[4] == f.prompts[0] and f.popped()[-1].restored is None,
        {"I search the web.": UNSURE, ANSWER: SURE},
    ),
    Scenario(
        "backtrack_on_the_query_costs_a_step_and_nothing_else",
        ("Backtrack: why not", CALL, f"Conclusion: {ANSWER}"),
        lambda f: f.popped()[0].kind == "" and f.prompts[1] == f.prompts[0],
        {ANSWER: SURE},
    ),
    Scenario(
        "a_tool_that_is_down_is_observed_and_another_is_asked",
        (CALL, "Backtrack: not available", "Tool_Use: WEB_RAG", f"Conclusion: {ANSWER}"),
        lambda f: (
            "cannot be read" in f.observed()[0]
            and any(isinstance(e, Retrieved) and e.failed for e in f.events)
            and f.cited() == ["guideline:inr#0"]
        ),
        {ANSWER: SURE},
        web=FOUND,
        docs_down=True,
    ),
    Scenario(
        "passages_are_numbered_on_and_one_found_twice_keeps_its_number",
        (CALL, "Tool_Use: DOC_RAG\nTool_Input: onset", "Conclusion: It lasts for weeks. [2]"),
        lambda f: "[1] Anticoagulation" in f.observed()[1] and f.cited() == ["book:inr#3"],
        {"It lasts for weeks. [2]": SURE},
        docs={"onset": (ONSET, INTERACTION), "": (INTERACTION,)},
    ),
    Scenario(
        "a_tool_named_alone_is_asked_the_question",
        ("Tool_Use: DOC_RAG", f"Conclusion: {ANSWER}"),
        lambda f: [e.query for e in f.events if isinstance(e, Searched)] == [ASKED.text],
        {ANSWER: SURE},
    ),
    Scenario(
        "an_unknown_tool_is_asked_for_again",
        ("Tool_Use: GOOGLE", CALL, f"Conclusion: {ANSWER}"),
        lambda f: (
            [bool(e.repaired) for e in f.events if isinstance(e, Asked)][:2] == [False, True]
            and f.pushed().count("Tool_Observation") == 1
        ),
        {ANSWER: SURE},
    ),
    Scenario(
        "three_unreadable_replies_cost_one_step_and_are_told",
        ("Thought:", "Tool_Observation: I know.", "", CALL, f"Conclusion: {ANSWER}"),
        lambda f: "step 1" in f.notes() and f.solution.halt is Halt.CONVERGED,
        {ANSWER: SURE},
    ),
    Scenario(
        "an_observation_that_the_model_invents_is_dropped",
        (f"{CALL}\nTool_Observation: Double the dose.", f"Conclusion: {ANSWER}"),
        lambda f: not any("Double" in prompt for prompt in f.prompts),
        {ANSWER: SURE},
    ),
    Scenario(
        "a_spent_loop_gives_the_last_thought_never_the_observation",
        ("Thought: The dose may have to be lowered.", CALL),
        lambda f: (
            f.solution.halt is Halt.BUDGET
            and f.solution.answer.text == "The dose may have to be lowered."
        ),
        {"The dose may have to be lowered.": UNSURE},
        max_loop=2,
    ),
    Scenario(
        "a_spent_budget_ends_the_run_and_says_which",
        (CALL, "Thought: So it rises."),
        lambda f: f.solution.why == "not converged: spent: calls 2 of 2",
        calls=2,
    ),
    Scenario(
        "where_nothing_is_found_the_run_says_so",
        (CALL, "Backtrack: nothing", "Tool_Use: WEB_RAG", "Backtrack: nothing"),
        lambda f: f.solution.halt is Halt.NO_EVIDENCE and "Nothing was found." in f.observed()[0],
        docs={},
        web={},
        max_loop=4,
    ),
    Scenario(
        "uncertainty_is_a_sum_so_a_shorter_conclusion_is_surer",
        (CALL, f"Conclusion: {ANSWER} " + "It is so. " * 25, "Conclusion: INR rises. [1]"),
        lambda f: f.values()[0] > 20 > f.values()[1] and f.solution.halt is Halt.CONVERGED,
        metric="uct",
    ),
    Scenario(
        "without_a_state_monitor_the_first_conclusion_stands",
        ("Conclusion: Perhaps nothing.",),
        lambda f: (
            f.solution.halt is Halt.CONVERGED
            and f.solution.answer.grounding is Grounding.UNGROUNDED
        ),
        {"Perhaps nothing.": UNSURE},
        metric="off",
    ),
    Scenario(
        "without_backtrack_the_noise_stays_in_the_prompt",
        ("Tool_Use: WEB_RAG", "Backtrack: tea", CALL, f"Conclusion: {ANSWER[:-4]} [2]"),
        lambda f: not f.popped() and "Tea is a drink" in f.prompts[-1],
        {f"{ANSWER[:-4]} [2]": SURE},
        without=frozenset({"backtrack"}),
    ),
    Scenario(
        "without_summary_the_whole_observation_stays",
        (CALL, "Summary: INR rises. [1]", f"Conclusion: {ANSWER}"),
        lambda f: "Summary" not in f.pushed() and "clearance" in f.prompts[-1],
        {ANSWER: SURE},
        without=frozenset({"summary"}),
    ),
    Scenario(
        "guided_moves_offer_no_conclusion_over_noise",
        (
            "Tool_Use: WEB_RAG",
            f"Conclusion: {ANSWER}",
            "Backtrack: tea",
            CALL,
            f"Conclusion: {ANSWER}",
        ),
        lambda f: f.pushed().count("Conclusion") == 1 and f.popped()[0].kind == "Tool_Observation",
        {ANSWER: SURE},
        guided=True,
    ),
    Scenario(
        "a_chinese_question_is_answered_in_chinese",
        (
            "Tool_Use: DOC_RAG\nTool_Input: 华法林 胺碘酮",
            "Summary：INR升高，应减少华法林剂量。[1]",
            "Conclusion：应减少华法林剂量。[1]",
        ),
        lambda f: "请尽你所能" in f.prompts[0] and f.solution.answer.text.startswith("应减少"),
        {"应减少华法林剂量。[1]": SURE},
        question=ZH,
        docs={"": (CHINESE,)},
    ),
    Scenario(
        "an_option_is_chosen_by_its_letter",
        (CALL, f"Conclusion: {ANSWER} <answer>B</answer>"),
        lambda f: f.solution.answer.option == "B",
        {f"{ANSWER} <answer>B</answer>": SURE},
        question=CHOICE,
    ),
    Scenario(
        "the_authors_dialect_is_read_by_its_rules",
        (
            "Thought: I look.\nAction: google_search\nAction Input: {'query': 'warfarin'}\n"
            "Observation: Double it.",
            "Final Answer: done\nBacktrack: that is tea",
            'Action: DOC_RAG\nAction Input: {"input": "warfarin"}',
            ANSWER,
        ),
        lambda f: (
            f.observed()[0].startswith("WEB_RAG")
            and len(f.popped()) == 1
            and f.solution.halt is Halt.CONVERGED
        ),
        {ANSWER: SURE},
        released=True,
    ),
    Scenario(
        "the_helpers_guess_name_order_and_sift",
        (
            "Tool_Use: HYPOTHESIS_OUTPUT",
            "Tool_Use: MEDICAL_NER\nTool_Input: warfarin rises",
            CALL,
            "Tool_Use: WEB_RAG",
            "Tool_Use: FILTER",
            "Tool_Use: KNOWLEDGE_ORGANIZE",
            f"Conclusion: {ANSWER}",
        ),
        lambda f: (
            [text.split(": ", 1)[1] for text in f.observed() if "[2] Tea" not in text]
            == [
                "Hypothesis, not evidence: The INR rises.",
                "Medical terms: warfarin (drug)",
                "[1] Anticoagulation: " + INTERACTION.text,
                "On the question: [1]. Not on it: [2].",
                "The INR rises [1]; tea is a drink [2].",
            ]
        ),
        {ANSWER: SURE},
        helped=("The INR rises.", "The INR rises [1]; tea is a drink [2]."),
    ),
    Scenario(
        "a_helper_that_fails_is_observed_and_noted",
        ("Tool_Use: HYPOTHESIS_OUTPUT", CALL, f"Conclusion: {ANSWER}"),
        lambda f: "HYPOTHESIS_OUTPUT failed" in f.notes() and "no server" in f.observed()[0],
        {ANSWER: SURE},
        helper_down=True,
    ),
    Scenario(
        "the_case_study_a_unit_is_converted_after_noise_was_popped",
        (
            "Thought: I need the dose of iron for each kg, and the child's weight in kg.",
            "Tool_Use: WEB_RAG\nTool_Input: iron",
            "Backtrack: that is iron, the metal",
            "Tool_Use: DOC_RAG\nTool_Input: elemental iron dose",
            "Conclusion: 3 x 44 = 132 mg a day. [1]",
            "Backtrack: 44 are pounds, not kg",
            "Summary: 3 mg per kg a day; one pound is 0.45 kg. [1]",
            "Conclusion: 44 x 0.45 = 19.8 kg, so about 60 mg a day. [1]",
        ),
        lambda f: (
            f.values() == [50, 25, 2]
            and not any("132" in prompt or "melts" in prompt for prompt in f.prompts[6:])
            and f.solution.answer.text.startswith("44 x 0.45")
        ),
        {
            "I need the dose of iron for each kg, and the child's weight in kg.": UNSURE,
            "3 x 44 = 132 mg a day. [1]": 1 / 25,
            "44 x 0.45 = 19.8 kg, so about 60 mg a day. [1]": SURE,
        },
        question=CHILD,
        docs={"": (DEFICIT,)},
        web={"": (OTHER_IRON,)},
    ),
)
NAMES = [scenario.name for scenario in SCENARIOS]


def log(played: Film) -> str:
    """The events as JSON Lines; of a prompt its name, for its wording has golden files."""
    named = [
        replace(e, prompt=e.prompt.split("@")[0]) if isinstance(e, Asked) else e
        for e in played.events
    ]
    return "".join(f"{to_line(event)}\n" for event in named)


def test_scenarios_are_at_least_twenty_and_every_golden_log_has_one() -> None:
    assert len(set(NAMES)) == len(NAMES) >= 20
    assert {path.stem for path in GOLDEN.glob("*.jsonl")} == set(NAMES)


@pytest.mark.parametrize("told", SCENARIOS, ids=NAMES)
async def test_a_scenario_goes_as_its_golden_log_and_shows_what_its_name_says(
    told: Scenario,
) -> None:
    played = await play(told)
    assert told.shows(played)
    assert log(played) == (GOLDEN / f"{told.name}.jsonl").read_text(encoding="utf-8")


async def test_the_case_study_is_a_film_of_stack_and_state() -> None:
    """§6.4 Fig. 2: what was pushed, what was popped and why, and the value beside sigma."""
    assert rendered(await play(SCENARIOS[-1])) == (GOLDEN / "case-study.txt").read_text("utf-8")


def test_every_tool_is_told_in_both_languages() -> None:
    every = {
        *tools.SOURCES_OF,
        *tools.CARRIERS,
        *tools.HELPERS,
        *tools.UNIFIED,
        tools.ALL_RAG,
    }
    assert every == tools.DESCRIPTIONS.keys()
    assert all(told.keys() == {"en", "zh"} for told in tools.DESCRIPTIONS.values())
    assert KG_RAG in every


def rendered(played: Film) -> str:
    return "".join(f"{line.plain}\n" for line in draw_film(played.events))


async def write() -> None:
    for told in SCENARIOS:
        played = await play(told)
        assert told.shows(played), (told.name, log(played))
        (GOLDEN / f"{told.name}.jsonl").write_text(log(played), encoding="utf-8")
    case = rendered(await play(SCENARIOS[-1]))
    (GOLDEN / "case-study.txt").write_text(case, encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(write())
