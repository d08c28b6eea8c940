"""Noise attacks (TC-RAG App. 8.6) on a scripted expert who follows the evidence."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from osler.answer.written import WrittenComposer
from osler.errors import MalformedSource
from osler.llm.core.base import Completion, Message, Sampling
from osler.methods.tcrag.machine import TuringMachine
from osler.methods.tcrag.moves import AnyMove
from osler.methods.tcrag.stack import Unmonitored
from osler.methods.tcrag.tools import DOC_RAG, SearchTool, ToolCall
from osler.trace import Run, Solver
from osler.types import Passage, Question, Retriever
from osler_lab.evaluate.attacks import (
    CELLS,
    AttackedRetriever,
    AttackState,
    Kind,
    Noise,
    Target,
    read_targets,
    run_attack,
    summarize_cell,
)
from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever

FACT = Passage("research:1#0", "Laparoscopic repair is feasible.", "research", "")
NEAR = Passage("research:2#0", "Laparoscopic surgery needs a camera.", "research", "")
FAR = Passage("web:3#0", "Bananas are yellow.", "web", "")
TARGET = Target(
    Question("t", "Is laparoscopic repair feasible?", ("yes", "no", "maybe")),
    "A",
    (FACT,),
    (NEAR,),
    (FAR,),
)


@dataclass
class Expert:
    """Looks it up; throws an answer away that holds no fact; sums one up that holds noise too."""

    name: str = "expert"

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        memory = "\n".join(message.content for message in messages[1:])
        fact = FACT.text in memory
        noise = NEAR.text in memory or FAR.text in memory
        if "Tool_Observation" not in memory and "Summary:" not in memory:
            return Completion("Tool_Use: DOC_RAG\nTool_Input: laparoscopic repair")
        if not fact:
            return Completion("Backtrack: this does not help")
        if noise:
            return Completion(f"Summary: {FACT.text}")
        return Completion(f"Conclusion: {FACT.text} [1] <answer>A</answer>")


def build(retriever: Retriever) -> TuringMachine:
    model = Expert()
    return TuringMachine(
        model,
        (SearchTool(DOC_RAG, retriever, ("research",)),),
        Unmonitored(),
        WrittenComposer(),
        AnyMove(frozenset({DOC_RAG})),
        sigma=10,
    )


@pytest.mark.parametrize(("kind", "noise"), CELLS)
async def test_an_expert_backtracks_from_a_replacement_and_sums_up_a_mixture(
    kind: Kind, noise: Noise
) -> None:
    (outcome,) = await run_attack(build, [TARGET], kind, noise)
    assert outcome.attacked is (kind != "clean")
    assert outcome.right
    assert outcome.cited
    assert outcome.backtracked is (kind == "structural")
    assert outcome.summarised is (kind == "partial")


@pytest.mark.parametrize(
    ("pops", "noticed"),
    [
        (["Thought: about bananas", "Backtrack: noise"], False),
        (["Thought: about bananas", "Backtrack: noise", "Backtrack: noise"], True),
        (["Summary: bananas", "Backtrack: noise"], True),
        (["Tool_Use: DOC_RAG", "Backtrack: twice"], False),
    ],
)
async def test_only_a_pop_of_the_attacked_observation_is_a_reaction(
    pops: list[str], noticed: bool
) -> None:
    model = ScriptedModel(
        ["Thought: hm", "Backtrack: no", "Tool_Use: DOC_RAG", *pops, "Conclusion: A"]
    )

    def follow(retriever: Retriever) -> Solver:
        return replace(build(retriever), model=model)

    (outcome,) = await run_attack(follow, [TARGET], "structural", "irrelevant")
    assert outcome.backtracked is noticed


async def test_only_the_first_call_of_a_run_is_attacked() -> None:
    honest = ScriptedRetriever({"": [FACT]})
    shot = AttackState()
    attacked = AttackedRetriever(honest, "structural", [FAR], shot)
    first = await attacked.search("x", k=5)
    second = await attacked.search("x", k=5)
    assert [hit.passage for hit in first] == [FAR]
    assert [hit.passage for hit in second] == [FACT]


async def test_a_partial_attack_stands_after_the_results() -> None:
    attacked = AttackedRetriever(
        ScriptedRetriever({"": [FACT]}), "partial", [FAR, NEAR], AttackState()
    )
    hits = await attacked.search("x", k=5)
    assert [(hit.passage, hit.rank) for hit in hits] == [(FACT, 1), (FAR, 2), (NEAR, 3)]


async def test_a_partial_attack_reaches_the_model_however_many_true_passages_there_are() -> None:
    facts = [replace(FACT, id=f"{FACT.id}{n}") for n in range(5)]
    attacked = AttackedRetriever(
        ScriptedRetriever({"": facts}), "partial", [FAR, NEAR], AttackState()
    )
    call = ToolCall("x", TARGET.question)
    shown = await SearchTool("DOC_RAG", attacked, k=5).call_tool(call, Run())
    assert [hit.passage for hit in shown.hits] == [*facts, FAR, NEAR]


async def test_a_target_without_such_noise_is_left_out() -> None:
    bare = Target(TARGET.question, "A", (FACT,), (), (FAR,))
    assert await run_attack(build, [bare], "partial", "relevant") == []


def test_mixed_noise_takes_turns() -> None:
    assert TARGET.noise_of("mixed") == (NEAR, FAR)


async def test_a_cell_counts_shares_with_intervals() -> None:
    outcomes = await run_attack(build, [TARGET] * 4, "structural", "relevant")
    found = summarize_cell("structural", "relevant", outcomes)
    assert (found.backtrack.value, found.summary.value, found.em.value) == (1.0, 0.0, 1.0)
    assert found.em.n == 4
    assert found.em.low == pytest.approx(0.5101, abs=1e-4)
    assert found.unattacked == 0


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "sets.jsonl"
    path.write_text(json.dumps({"id": "1", "question": "?", "answer": "perhaps"}) + "\n")
    with pytest.raises(MalformedSource, match=r"sets\.jsonl:1"):
        list(read_targets(path))


def noise_line(**changed: object) -> str:
    texts = [{"id": "1", "text": "首选肾上腺素。"}]
    record: dict[str, object] = {
        "id": "c1",
        "question": "过敏性休克首选什么药物？",
        "answer": "B",
        "options": {"B": "肾上腺素", "A": "阿司匹林"},
        "gold": texts,
        "distractor_relevant": texts,
        "distractor_out_of_domain": texts,
    }
    return json.dumps({**record, **changed}) + "\n"


@pytest.mark.parametrize("answer", ["B", "肾上腺素"])
def test_noise_of_an_exam_has_the_options_of_its_question(tmp_path: Path, answer: str) -> None:
    """App. 8.6 builds noise from CMB-Exam, whose options are not yes, no and maybe."""
    path = tmp_path / "sets.jsonl"
    path.write_text(noise_line(answer=answer), encoding="utf-8")
    (target,) = read_targets(path)
    assert (target.question.options, target.gold) == (("阿司匹林", "肾上腺素"), "B")
    assert target.question.language == target.passages[0].language == "zh"


@pytest.mark.parametrize("changed", [{"answer": "C"}, {"options": ["one"]}, {"options": 7}])
def test_an_answer_outside_the_options_is_refused(
    tmp_path: Path, changed: dict[str, object]
) -> None:
    path = tmp_path / "sets.jsonl"
    path.write_text(noise_line(**changed), encoding="utf-8")
    with pytest.raises(MalformedSource, match=r"sets\.jsonl:1"):
        list(read_targets(path))


def test_the_real_noise_sets_are_read(shared_data: Path) -> None:
    targets = list(read_targets(shared_data / "E_noise" / "medical_noise" / "noise_sets.jsonl"))
    assert len(targets) == 220
    assert all(target.passages and target.irrelevant for target in targets)
    assert sum(not target.relevant for target in targets) == 1
