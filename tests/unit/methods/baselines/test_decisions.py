"""What a method decides is what it answers, whether its model may word medicine or not.

Every script decides for Bob, while the model's likelihoods would choose Ann.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from osler.llm.core.base import Message, Scored
from osler.types import Authorship, DecidedBy, Halt, Passage, Question
from osler_lab.baselines.build import BASELINES
from osler_lab.testing.scripted import ScriptedModel

from .conftest import Hiding, Play, ReflectingModel, Unsure, cited, passage

SONG = Question("song", "Who sang the original recording of the song?", ("Ann", "Bob", "Cy"))
RECORD = passage("record", "Bob sang the original recording of the song in 1970.", "Record")
COVER = passage("cover", "Ann sang the song again for a film in 1992.", "Cover")
SCORES = {"Ann": 0.9, "A": 0.9}
STATED = "Bob recorded it in 1970. So the answer is Bob."
CHAIN = "First, the record is of 1970.\nSecond, Bob sang it.\nThe answer is B."
JSON = json.dumps({"step_by_step_thinking": "Bob recorded it.", "answer_choice": "B"})
PLAN = json.dumps({"1": {"query": "Who recorded it?", "dependent_task_ids": []}})


@dataclass(frozen=True)
class Script:
    """A method that decides for Bob."""

    kind: str
    replies: Sequence[str]
    scores: dict[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.kind


@dataclass
class NotingModel(ScriptedModel):
    """A script that notes after which words of the model's own it was scored."""

    after: set[str] = field(default_factory=set)

    async def score(self, context: Sequence[Message] | str, text: str) -> Scored:
        assert not isinstance(context, str)
        self.after |= {turn.content for turn in context if turn.role == "assistant"}
        return await super().score(context, text)


DECIDING = [
    Script("cot", [STATED]),
    Script("fl-rag", [STATED]),
    Script("fs-rag", ["Bob recorded it in 1970.", "So the answer is Bob."]),
    Script("flare", ["Bob recorded it in 1970.", "So the answer is Bob."]),
    Script("dragin-entropy", [STATED]),
    Script(
        "chain-of-note", ["Note 1: it names Bob.\nAnswer: Bob sang it first. <answer>B</answer>"]
    ),
    Script("chain-of-knowledge", [CHAIN] * 5),
    Script("sure", ["A\nB", "Ann sang.", "Bob sang first.", "False", "True", "2", "1"]),
    Script("react", ["It was Bob.\nAction 1: Finish[Bob]"]),
    Script("search-o1", ["It was recorded by Bob: \\boxed{B}"]),
    Script("r1-gen", ["<think>It was Bob.</think><answer>Bob"]),
    Script("search-r1", ["<think>It was Bob.</think><answer>Bob"]),
    Script("zero-search", ["<think>It was Bob.</think><answer>B"]),
    Script("step-search", ["<think>It was Bob.</think><answer>Bob"]),
    Script("research", ["<think>It was Bob.</think><answer>\\boxed{Bob}"]),
    Script("kag-static", [PLAN, "Bob", "Bob recorded it. <answer>B</answer>"]),
    Script("medrag", [JSON]),
    Script("i-medrag", ["I know enough.", JSON]),
]
READING = ["rag", "hykge", "hipporag", "pike-rag", "ircot"]
"""Methods that find passages and leave the answer to a reader, by their papers."""


@pytest.mark.parametrize("writes", ["yes", "no"])
@pytest.mark.parametrize("script", DECIDING, ids=str)
async def test_the_option_that_a_method_decides_for_is_its_answer(
    script: Script, writes: str, play: Play
) -> None:
    model = Unsure(list(script.replies), probability=0.9, scores=SCORES)
    played = await play(
        {"kind": script.kind},
        SONG,
        model,
        {"": [COVER, RECORD]},
        writes=writes,
    )
    solution = played.solution
    assert solution.answer.option == "B"
    assert solution.decided is DecidedBy.METHOD
    author = Authorship.WRITTEN if writes == "yes" else Authorship.EXTRACTIVE
    assert solution.answer.authorship is author


@pytest.mark.parametrize("writes", ["yes", "no"])
@pytest.mark.parametrize("kind", ["self-rag", "self-rag-prompted"])
async def test_the_segment_that_self_rag_chooses_is_its_answer_with_its_passage(
    kind: str, writes: str, play: Play
) -> None:
    wrong, right = "Ann sang the song. <answer>A</answer>", "It was Bob. <answer>B</answer>"
    model: ScriptedModel | Hiding
    if kind == "self-rag":
        scores = {"[Retrieval]": 0.9, "[No Retrieval]": 0.1, **SCORES}
        model = ReflectingModel([wrong, right], low={"Ann": 0.01}, probability=0.9, scores=scores)
    else:
        critiques = [["[Irrelevant]", wrong, "No support / Contradictory", "[Utility:1]"]]
        critiques += [["Relevant", right, "Fully supported", "[Utility:5]"]]
        model = Hiding(ScriptedModel(["[Retrieval]", *critiques[0], *critiques[1]]))
    played = await play({"kind": kind}, SONG, model, {"": [COVER, RECORD]}, writes=writes)
    assert played.solution.answer.option == "B"
    assert played.solution.decided is DecidedBy.METHOD
    assert cited(played.solution.answer) <= {RECORD.id}


@pytest.mark.parametrize("writes", ["yes", "no"])
async def test_the_quotes_of_a_chosen_segment_are_of_its_passage_alone(
    writes: str, play: Play
) -> None:
    """Both passages answer the question; the segment was written from the second."""
    other = passage("other", "The original recording of the song was sung by Ann in 1969.")
    text = "Bob sang the original recording of the song in 1970."
    scores = {"[Retrieval]": 0.9, "[No Retrieval]": 0.1}
    model = ReflectingModel(
        ["Ann did.", text], low={"Ann": 0.01, "did": 0.01}, probability=0.9, scores=scores
    )
    question = Question("open", SONG.text)
    played = await play({"kind": "self-rag"}, question, model, {"": [other, RECORD]}, writes=writes)
    assert cited(played.solution.answer) == {RECORD.id}


@pytest.mark.parametrize("kind", READING)
def test_a_method_that_leaves_the_answer_to_a_reader_is_no_deciding_one(kind: str) -> None:
    assert kind not in {script.kind for script in DECIDING}


def test_every_baseline_decides_or_leaves_it_to_a_reader() -> None:
    known = {script.kind for script in DECIDING} | {*READING, "self-rag", "self-rag-prompted"}
    # Adaptive-RAG is one of three methods, DRAGIN's loop is that of its imitation.
    assert set(BASELINES) <= known | {"adaptive-rag", "dragin"}


@pytest.mark.parametrize("writes", ["yes", "no"])
async def test_a_reader_of_what_was_found_is_said_to_have_decided(writes: str, play: Play) -> None:
    model = ScriptedModel(["Bob did. <answer>B</answer>"] * (writes == "yes"), scores={"Bob": 0.9})
    played = await play({"kind": "rag"}, SONG, model, {"": [RECORD]}, writes=writes)
    assert played.solution.answer.option == "B"
    assert played.solution.decided is DecidedBy.READER


@pytest.mark.parametrize("writes", ["yes", "no"])
async def test_a_method_without_a_decision_says_that_a_reader_stood_in(
    writes: str, play: Play
) -> None:
    """ReAct that never finishes, and SuRe that names no candidate."""
    turns = [f"Perhaps.\nAction {n}: Search[song]" for n in (1, 2)]
    played = await play(
        {"kind": "react", "steps": 2}, SONG, ScriptedModel(turns), {"": [RECORD]}, writes=writes
    )
    assert played.solution.decided is DecidedBy.FALLBACK
    assert played.solution.halt is Halt.BUDGET
    played = await play({"kind": "sure"}, SONG, ScriptedModel(["?"]), {"": [RECORD]}, writes=writes)
    assert played.solution.decided is DecidedBy.FALLBACK


async def test_an_option_that_the_words_do_not_name_is_weighed_after_them(play: Play) -> None:
    model = NotingModel(["It was a man in 1970."], scores={"Cy": 0.9})
    played = await play({"kind": "fs-rag", "sentences": 1}, SONG, model, {"": [COVER]}, writes="no")
    assert played.solution.answer.option == "C"
    assert played.solution.decided is DecidedBy.METHOD
    assert model.after == {"It was a man in 1970.\n"}


@pytest.mark.parametrize("writes", ["yes", "no"])
async def test_a_method_that_finds_the_evidence_silent_abstains(writes: str, play: Play) -> None:
    model = ScriptedModel(["Answer: The evidence does not say."], scores=SCORES)
    played = await play({"kind": "chain-of-note"}, SONG, model, {"": [RECORD]}, writes=writes)
    assert played.solution.answer.option is None
    assert played.solution.answer.statements == ()
    assert played.solution.halt is Halt.NO_EVIDENCE


async def test_words_of_a_method_are_never_shown_where_its_model_may_not_write(play: Play) -> None:
    question = Question("open", "In which year was the song sung?")
    long = [
        Passage(
            f"wiki:p{n}#0", f"The song was sung in {1970 + n} by singer number {n}.", "wiki", "s"
        )
        for n in range(9)
    ]
    model = ScriptedModel(["The song was sung in 1977 by singer number 7."])
    played = await play(
        {"kind": "fs-rag", "sentences": 1, "k": 9}, question, model, {"": long}, writes="no"
    )
    answer = played.solution.answer
    assert answer.authorship is Authorship.EXTRACTIVE
    quoted = {statement.text for statement in answer.statements if statement.cites}
    assert quoted <= {one.text for one in long}
    assert all(
        statement.text != model.replies[0] or statement.cites for statement in answer.statements
    )
