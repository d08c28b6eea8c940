"""Rounds of teaching: what is kept, dropped and tried again, in a log that several share."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from waiting import TaskBarrier

from osler.errors import BadRun, ModelUnreachable
from osler.llm.core.ask import Speaker
from osler.llm.core.base import Completion, LanguageModel, Message, Sampling
from osler.types import Passage, Question
from osler_lab.evaluate.judges import Judge
from osler_lab.evaluate.record import Gold, Kind, Sample
from osler_lab.jobs.runner import HOPELESS
from osler_lab.testing.scripted import KeyedModel, ScriptedRetriever
from osler_lab.train.record import read_dialogues
from osler_lab.train.thinker.dialogue import FilterBounds
from osler_lab.train.thinker.export import export_data, stage_tallies
from osler_lab.train.thinker.quality import read_items
from osler_lab.train.thinker.rounds import (
    TeachingConfig,
    TeachingJob,
    golds_of,
    kept_tries,
    read_tries,
)
from osler_lab.train.thinker.rules import RuleInspector, inspect_by_rules
from osler_lab.train.thinker.teacher import Teacher

KITE = Passage("book:kite#0", "Red Kite is a film of Peter Berg.", "book", "Red Kite")
PLAN = """<think>One hop.</think><answer>Step1: Who is the director of Red Kite?
Action1: Retrieval(s=s1:film['Red Kite'], p=p1:director, o=o1:director)</answer>"""


def box(answer: str) -> str:
    return rf"<answer>\boxed{{{answer}}}</answer>"


def model(*finals: str, name: str = "keyed") -> KeyedModel:
    return KeyedModel(
        {
            "decompose the user question": [PLAN],
            "Can you answer": [
                "I can't answer this question, I need to retrieve external knowledge."
            ],
            "analyze the relationship": [
                "<answer>Yes</answer><reason>Reference 0 names him.</reason>"
            ],
            "Answer the question from the references": [box("Peter Berg")],
            "Thought:": ["The reference names him."],
            "Predicted answer": ["<answer>yes</answer>"],
            "Answer the last question": list(finals) or [f"It is his. [1] {box('Peter Berg')}"],
        },
        name=name,
    )


def course(said: LanguageModel, **changed: object) -> TeachingConfig:
    speaker = Speaker(said, "planner")
    found = ScriptedRetriever({"Red Kite": [KITE]})
    made = TeachingConfig(Teacher(speaker, speaker, speaker, found, k=1), inspector=RuleInspector())
    return replace(made, **changed)  # type: ignore[arg-type]


def sample(id: str, kind: Kind = "short", *golds: str) -> Sample:
    asked = Question(id, "Who directed Red Kite?")
    return Sample("films", kind, asked, Gold(texts=golds or ("Peter Berg",)))


async def test_what_is_kept_is_not_taught_again(tmp_path: Path) -> None:
    said = model()
    samples = [sample("1"), sample("2")]
    await TeachingJob(tmp_path, course(said)).run(samples)
    calls = len(said.asked)
    assert sorted(key.id for key in kept_tries(tmp_path)) == ["1", "2"]
    await TeachingJob(tmp_path, course(said)).run([*samples, sample("3")])
    assert len(said.asked) == calls * 3 // 2


async def test_a_wrong_answer_is_dropped_and_tried_again_with_another_seed(tmp_path: Path) -> None:
    said = model(box("Anna Holm"), box("unknown"), f"His. [1] {box('Peter Berg')}")
    await TeachingJob(tmp_path, course(said)).run([sample("1")])
    tries = list(read_tries(tmp_path))
    assert [one.why for one in tries] == ["wrong answer", "wrong answer", ""]
    assert [one.round for one in tries] == [1, 2, 3]
    assert len({one.seed for one in tries}) == 3
    (told,) = stage_tallies(tmp_path)
    assert (told.questions, told.kept, told.tries) == (1, 1, 3)
    assert told.dropped == {"wrong answer": 2}


async def test_rounds_end_and_another_teacher_has_rounds_of_its_own(tmp_path: Path) -> None:
    first = model(box("Anna Holm"))
    await TeachingJob(tmp_path, course(first, rounds=2)).run([sample("1")])
    await TeachingJob(tmp_path, course(first, rounds=2)).run([sample("1")])
    assert len(list(read_tries(tmp_path))) == 2
    await TeachingJob(tmp_path, course(model(name="trained"), rounds=2)).run([sample("1")])
    assert [one.teacher for one in kept_tries(tmp_path).values()] == ["trained"]


@dataclass
class Met(KeyedModel):
    """Replies once the other has been asked too."""

    meeting: TaskBarrier = field(default_factory=lambda: TaskBarrier(2))

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        await self.meeting.come(id(self))
        return await super().complete(messages, sampling)


async def test_two_processes_share_the_work(tmp_path: Path) -> None:
    samples = [sample(str(n)) for n in range(40)]
    meeting = TaskBarrier(2)
    a, b = (Met(model().replies, meeting=meeting) for _ in "ab")
    await asyncio.gather(
        TeachingJob(tmp_path, course(a), jobs=4).run(samples),
        TeachingJob(tmp_path, course(b), jobs=4).run(samples),
    )
    tries = list(read_tries(tmp_path))
    assert len(tries) == len({one.key for one in tries}) == 40
    assert a.asked
    assert b.asked


async def test_a_killed_writer_loses_half_a_line_and_no_more(tmp_path: Path) -> None:
    await TeachingJob(tmp_path, course(model())).run([sample("1")])
    copy_half(tmp_path)
    await TeachingJob(tmp_path, course(model())).run([sample("1")])
    assert len(list(read_tries(tmp_path))) == 1


def copy_half(folder: Path) -> None:
    whole = next(folder.glob("tries-*.jsonl")).read_bytes()
    (folder / "tries-other.jsonl").write_bytes(whole[: len(whole) // 2])


async def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "tries-x.jsonl").write_text("{}\n", encoding="utf-8")
    with pytest.raises(BadRun, match=r"tries-x\.jsonl at byte 0"):
        await TeachingJob(tmp_path, course(model())).run([sample("1")])


@dataclass
class Down:
    """A server that is not there."""

    name: str = "down"

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        raise ModelUnreachable("nobody is there", fix="start it")


async def test_where_nothing_succeeds_it_stops_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(BadRun, match=rf"{HOPELESS} questions in a row.*nobody is there"):
        await TeachingJob(tmp_path, course(Down())).run([sample(str(n)) for n in range(30)])
    failed = list(read_tries(tmp_path))
    assert {one.status for one in failed} == {"failed"}
    await TeachingJob(tmp_path, course(model())).run([sample("0")])
    assert [key.id for key in kept_tries(tmp_path)] == ["0"]


async def test_a_long_answer_needs_a_judge(tmp_path: Path) -> None:
    long = sample("1", "long", "It was directed by Peter Berg.")
    await TeachingJob(tmp_path, course(model(), rounds=1)).run([long])
    (one,) = read_tries(tmp_path)
    assert one.why == "a long answer without a judge"
    said = model()
    judged = course(said, rounds=2, judge=Judge(said))
    await TeachingJob(tmp_path, judged).run([long])
    assert len(kept_tries(tmp_path)) == 1


async def test_a_long_answer_that_the_judge_calls_wrong_is_dropped(tmp_path: Path) -> None:
    long = sample("1", "long", "It was directed by somebody else.")
    said = model()
    refused = Judge(KeyedModel({"": ["<answer>False</answer>"]}))
    await TeachingJob(tmp_path, course(said, rounds=1, judge=refused)).run([long])
    (one,) = read_tries(tmp_path)
    assert (one.why, one.trajectory) == ("wrong answer", None)
    assert not kept_tries(tmp_path)


async def test_what_the_inspector_condemns_is_dropped(tmp_path: Path) -> None:
    await TeachingJob(tmp_path, course(model(f"HE did!!! [1] {box('Peter Berg')}"), rounds=1)).run(
        [sample("1")]
    )
    (one,) = read_tries(tmp_path)
    assert one.why == "inspection: emotion"
    assert one.trajectory is None


async def test_a_chat_over_the_bound_and_a_spent_budget_are_reasons(tmp_path: Path) -> None:
    small = course(model(), rounds=1, bounds=FilterBounds(longest=100))
    await TeachingJob(tmp_path, small).run([sample("1")])
    few = course(model(), rounds=1)
    few = replace(few, teacher=replace(few.teacher, most_calls=2))
    await TeachingJob(tmp_path, few).run([sample("2")])
    whys = {one.sample.id: one.why for one in read_tries(tmp_path)}
    assert whys == {"1": "too long", "2": "the budget was spent"}


async def test_the_data_set_is_chats_with_a_card(tmp_path: Path) -> None:
    log, folder = tmp_path / "log", tmp_path / "set"
    for stage in ("logical-form", "deep-search", "thinker"):
        await TeachingJob(log, course(model(), stage=stage)).run([sample("b"), sample("a")])
    made = export_data(log, folder, stages=("thinker", "deep-search"))
    lines = [json.loads(line) for line in (folder / "data.jsonl").read_text("utf-8").splitlines()]
    assert made.lines == 4
    assert [line["id"] for line in lines] == [
        "deep-search.films.a",
        "deep-search.films.b",
        "thinker.films.a",
        "thinker.films.b",
    ]
    assert lines[3]["messages"][0]["role"] == "system"
    assert lines[3]["meta"]["passages"] == ["book:kite#0"]
    assert (lines[3]["meta"]["searches"], lines[3]["meta"]["known"]) == (1, 0)
    assert all(inspect_by_rules(item).reasons == () for item in read_items(folder))
    assert [len(one.messages) for one in read_dialogues(folder)] == [5, 5, 9, 9]  # by the trainer
    card = (folder / "README.md").read_text("utf-8")
    head = dict(line.split(": ", 1) for line in card.split("---\n")[1].splitlines())
    assert json.loads(head["size_categories"]) == ["n<1K"]
    assert json.loads(head["configs"])[0]["data_files"][0]["path"] == "data.jsonl"
    assert "| kept | 2 |" in card
    assert "## logical-form" not in card


async def test_where_nothing_was_kept_the_reasons_are_told(tmp_path: Path) -> None:
    await TeachingJob(tmp_path, course(model(box("Anna Holm")), rounds=2)).run([sample("1")])
    with pytest.raises(BadRun, match=r"nothing was kept.*2 × wrong answer"):
        export_data(tmp_path, tmp_path / "set", stages=("thinker",))
    with pytest.raises(BadRun, match="not a log of training data"):
        export_data(tmp_path / "set", tmp_path, stages=("thinker",))


async def test_an_option_is_right_by_its_letter(tmp_path: Path) -> None:
    asked = Question("1", "Who directed Red Kite?", ("Anna Holm", "Peter Berg"))
    chosen = Sample("films", "choice", asked, Gold(letters=("B",)))
    assert golds_of(chosen, "deep-search") == ("Peter Berg",)
    await TeachingJob(tmp_path, course(model(f"His. [1] {box('B')}"), rounds=1)).run([chosen])
    await TeachingJob(tmp_path, course(model(f"Hers. [1] {box('A')}", name="other"), rounds=1)).run(
        [replace(chosen, question=replace(asked, id="2"))]
    )
    whys = {one.sample.id: one.why for one in read_tries(tmp_path)}
    assert whys == {"1": "", "2": "wrong answer"}


async def test_seeds_are_equal_everywhere() -> None:
    one = course(model())
    assert one.seed_of(sample("1"), 1) == one.seed_of(sample("1"), 1)
    assert one.seed_of(sample("1"), 1) != one.seed_of(sample("1"), 2)
    assert one.seed_of(sample("1"), 1) == 3173478590
