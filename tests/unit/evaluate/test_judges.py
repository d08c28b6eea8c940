"""Judges: marks, right or wrong, entailment, over a log folder, paid for, against people."""

from __future__ import annotations

from dataclasses import replace
from math import isclose
from pathlib import Path

import pytest

from osler.errors import BadRun, MalformedOutput, MalformedSource
from osler.trace import FormNode, FormsPlanned, Run
from osler.types import Question
from osler_lab.evaluate import plan as planning
from osler_lab.evaluate.agreement import compare_with_people, weighted_kappa
from osler_lab.evaluate.judged import Form, Judgement, JudgingRun, read_judgements
from osler_lab.evaluate.judges import (
    DIMENSIONS,
    NO_DOCUMENTS,
    Judge,
    marks_grammar,
    parse_marks,
    unread_verdicts,
)
from osler_lab.evaluate.log import LogWriter
from osler_lab.evaluate.metrics.choice import Entailment
from osler_lab.evaluate.plan import EvaluatedTask, EvaluationPlan
from osler_lab.evaluate.record import (
    Gold,
    Kind,
    RecordedEvidence,
    RecordedOutcome,
    RecordedStatement,
    Sample,
    SampleRecord,
)
from osler_lab.evaluate.report import build_report, render_markdown
from osler_lab.testing.scripted import ScriptedModel, TextOnly

LABELS = ("rag:sampling.seed=1", "rag:sampling.seed=2", "cot")
CITED = (RecordedEvidence("book:a#0", "Anaphylaxis", "A1", "Adrenaline is first."),)


def tried(label: str, id: str, text: str, kind: Kind = "long") -> SampleRecord:
    question = Question(id, f"What is given for {id}?")
    sample = Sample("liveqa", kind, question, Gold((), ("Adrenaline into the thigh.",)))
    said = tuple(RecordedStatement(part) for part in text.split("|") if part)
    cited = () if label == "cot" else CITED
    outcome = RecordedOutcome(text=text, statements=said, evidence=cited)
    return SampleRecord(label, sample, "done", "2026-01-01T00:00:00", 1.0, 0, outcome)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """RAG under two seeds and CoT, on two questions with a reference text."""
    folder = tmp_path / "log"
    entrants = {
        label: planning.make_entrant(
            label,
            {"strategy": {"kind": label[:3]}, "sampling": {"seed": seed, "temperature": 0.7}},
        )
        for label, seed in zip(LABELS, (1, 2, 1), strict=True)
    }
    task = EvaluatedTask("liveqa", "long", "d" * 64, 2, 2)
    planning.save_plan(
        folder,
        EvaluationPlan(
            0, {"liveqa": task}, entrants, {label: {"liveqa": 2} for label in LABELS}, "0.1"
        ),
    )
    with LogWriter(folder, "w") as writer:
        for label in LABELS:
            for id in ("shock", "hives"):
                node = FormNode(1, "Retrieval", f"What for {id}?", "Retrieval(…)", ())
                trace = writer.write_trace([FormsPlanned((node,))])
                writer.write_record(replace(tried(label, id, f"Give it for {id}."), trace=trace))
    return folder


def one_file(folder: Path) -> Path:
    (path,) = folder.glob("judgements-*.jsonl")
    return path


async def made(folder: Path, form: Form, model: object, **more: int) -> list[Judgement]:
    judge = Judge(model)  # type: ignore[arg-type]
    return [one async for one in JudgingRun(folder, form, judge, **more).run()]


async def test_marks_are_asked_with_reference_and_documents_and_paid_for() -> None:
    reply = "Good. <marks>relevance 4, completeness 3, proficiency 5, interpretability 2</marks>"
    model, run = ScriptedModel([reply]), Run()
    found = await Judge(model).give_marks(
        Question("q", "Why?"), "the reference", "the answer", ["the source"], run
    )
    assert found == dict(zip(DIMENSIONS, (4, 3, 5, 2), strict=True))
    asked = model.seen[0][0].content
    assert all(word in asked for word in ("the reference", "the answer", "the source"))
    assert (run.usage.calls, model.samplings[0].temperature) == (1, 0.0)


async def test_an_answer_without_documents_has_no_interpretability() -> None:
    model = ScriptedModel(["<marks>relevance 4, completeness 3, proficiency 5</marks>"])
    question = Question("q", "为什么？", language="zh")
    found = await Judge(model).give_marks(question, "参考", "答案", [], Run())
    assert found == {"relevance": 4, "completeness": 3, "proficiency": 5}
    assert "可解释性" not in model.seen[0][0].content


@pytest.mark.parametrize(
    "reply",
    [
        "<marks>relevance 4, completeness 3</marks>",
        "<marks>relevance 6, completeness 3, proficiency 5</marks>",
        "<marks>relevance 4.5, completeness 3, proficiency 5</marks>",
        "<marks>relevance 4, relevance 2, completeness 3, proficiency 5</marks>",
        "<marks>relevance N, completeness N, proficiency N</marks>",
        "",
    ],
)
def test_marks_that_are_not_one_digit_a_dimension_are_no_marks(reply: str) -> None:
    with pytest.raises(MalformedOutput, match="from 1 to 5"):
        parse_marks(reply, NO_DOCUMENTS)


def test_what_the_grammar_of_marks_lets_through_is_read() -> None:
    reply = "It is short.\n<marks>relevance 4, completeness 3, proficiency 5</marks>"
    assert marks_grammar(NO_DOCUMENTS).accepts(reply)
    assert parse_marks(reply, NO_DOCUMENTS)["completeness"] == 3
    assert not marks_grammar(DIMENSIONS).accepts(reply)


async def test_a_verdict_that_cannot_be_read_is_none_and_is_paid_for_too() -> None:
    model, run = ScriptedModel(["perhaps"] * 2), Run()
    assert await Judge(model).is_right(Question("q", "Who?"), ["Ann"], "Bob", run) is None
    assert run.usage.calls == 2
    (unread,) = unread_verdicts(run)
    assert "got 'perhaps'" in unread


async def test_entailment_is_a_probability_where_the_model_scores() -> None:
    model = ScriptedModel([], scores={"A": 0.6, "B": 0.2, "C": 0.1})
    found = await Judge(model).score_entailment("It is given.", "Give it.", Run())
    assert found is not None
    assert isclose(found.entails, 0.6)
    assert isclose(found.share, 0.75)


async def test_entailment_is_said_where_it_cannot_be_scored() -> None:
    model = TextOnly(ScriptedModel(["<answer>B</answer>", "<answer>C</answer>"]))
    judge = Judge(model, constrains=True)
    assert await judge.score_entailment("a", "b", Run()) == Entailment(0.0, 1.0)
    assert await judge.score_entailment("a", "b", Run(), "zh") == Entailment(0.0, 0.0)


async def test_correctness_is_judged_once_and_shown_in_the_report(log: Path) -> None:
    replies = ["<answer>yes</answer>", "<answer>no</answer>"] * 3
    found = await made(log, "correct", ScriptedModel(replies))
    assert [one.values["correct"] for one in found] == [1.0, 0.0] * 3
    assert {one.key.strategy for one in found} == set(LABELS)
    assert await made(log, "correct", ScriptedModel([])) == []
    other = ScriptedModel(["<answer>no</answer>"] * 6, name="another judge")
    assert len(await made(log, "correct", other)) == 6
    report = build_report(log)
    assert {(one.judge, one.strategy) for one in report.judged} == {
        (judge, label) for judge in ("scripted", "another judge") for label in LABELS
    }
    row = "| correct | scripted | cot | liveqa | correct | 0.50 [0.09, 0.91] | 2 | 0 | 2 |"
    assert row in render_markdown(report)


async def test_the_rubric_is_for_answers_with_a_reference(log: Path) -> None:
    three = "<marks>relevance 4, completeness 3, proficiency 5</marks>"
    four = "<marks>relevance 4, completeness 3, proficiency 5, interpretability 1</marks>"
    found = await made(log, "rubric", ScriptedModel([three, four, four]), limit=1)
    judged = [set(one.values) for one in found]
    assert judged == [set(NO_DOCUMENTS), set(DIMENSIONS), set(DIMENSIONS)]
    assert found[0].prompts[0].startswith("evaluate/rate@")


async def test_stability_pairs_runs_that_differ_in_their_seed_alone(log: Path) -> None:
    model = ScriptedModel(["<answer>yes</answer>", "what?", "what?", "what?"])
    found = await made(log, "stability", model)
    assert [one.key.strategy for one in found] == ["rag", "rag"]
    assert found[0].values == {"stable": 1.0, "alike": 1.0}
    assert found[1].values == {"alike": 1.0}
    (row,) = build_report(log).judged
    assert (row.unread, row.usage.calls) == (1, 3)
    assert "What for hives?" in model.seen[0][-1].content


async def test_uncertainty_is_luq_over_the_answers_of_all_seeds(log: Path) -> None:
    """Two answers of one sentence: the mean of two shares, 0.9 / (0.9 + 0.3), is 0.75."""
    model = ScriptedModel([], scores={"A": 0.9, "B": 0.3})
    first, _ = await made(log, "luq", model)
    assert isclose(first.values["uncertainty"], 0.25)
    assert (first.key.strategy, first.of, first.usage.calls) == ("rag", 2, 6)


async def test_a_log_with_nothing_of_the_kind_says_what_is_needed(log: Path) -> None:
    path = log / "records-w.jsonl"
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if "cot" in line]
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    with pytest.raises(BadRun, match=r"sampling\.seed=2"):
        await made(log, "stability", ScriptedModel([]))


async def test_truncated_judgement_is_ignored_and_a_damaged_one_is_named(log: Path) -> None:
    await made(log, "correct", ScriptedModel(["<answer>yes</answer>"] * 3), limit=1)
    path = one_file(log)
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"form":"corr')
    assert len(read_judgements(log)) == 3
    path.write_bytes(whole + b"{}\n")
    with pytest.raises(BadRun, match=r"judgements-.*:4: not a judgement"):
        read_judgements(log)


PEOPLE = "strategy,task,id,rater,relevance,completeness,proficiency,interpretability\n"


async def test_a_judge_is_held_against_people_mark_by_mark(log: Path) -> None:
    replies = [
        f"<marks>relevance {n}, completeness 3, proficiency 5, interpretability 1</marks>"
        for n in (4, 2)
    ]
    mine = ["<marks>relevance 1, completeness 1, proficiency 1</marks>"] * 2
    await made(log, "rubric", ScriptedModel([*mine, *replies, *replies]))
    people = log.parent / "people.csv"
    rows = [f"{LABELS[0]},liveqa,{id},{who},{mark},3,1,-" for id, who, mark in RATED]
    people.write_text(PEOPLE + "\n".join([*rows, "rag,liveqa,other,ann,5,5,5,5"]), encoding="utf-8")
    found = {one.dimension: one for one in compare_with_people(log, people).marked}
    assert found.keys() == set(NO_DOCUMENTS)  # people gave no interpretability
    one = found["relevance"]
    assert (one.n, one.near, one.higher) == (3, 1.0, 0.0)
    assert one.same == pytest.approx(1 / 3)
    assert one.kappa == pytest.approx(1 - (2 / 3) / (22 / 9))  # by hand
    assert (found["completeness"].kappa, found["proficiency"].higher) == (None, 4.0)


RATED = (("hives", "ann", 5), ("hives", "bob", 3), ("shock", "ann", 2))


def test_kappa_agrees_with_scikit_learn() -> None:
    pairs = [(1, 1), (2, 4), (3, 3), (5, 4), (4, 4), (2, 1), (5, 5), (3, 1)]
    machine, person = zip(*pairs, strict=True)
    kappa = pytest.importorskip("sklearn.metrics").cohen_kappa_score
    wanted = kappa(machine, person, weights="quadratic")
    assert weighted_kappa(pairs) == pytest.approx(wanted, abs=1e-12)


async def test_verdicts_of_people_give_precision_and_recall(log: Path) -> None:
    await made(log, "correct", ScriptedModel(["<answer>yes</answer>", "<answer>no</answer>"] * 3))
    people = log.parent / "people.csv"
    rows = [
        "strategy,task,id,rater,verdict",
        "cot,liveqa,hives,ann,yes",
        "cot,liveqa,shock,ann,yes",
    ]
    people.write_text("\n".join(rows), encoding="utf-8")
    (found,) = compare_with_people(log, people).graded
    assert (found.agreement.accuracy, found.agreement.precision, found.agreement.recall) == (
        0.5,
        1.0,
        0.5,
    )
    people.write_text("\n".join([*rows, "cot,liveqa,hives,bob,maybe"]), encoding="utf-8")
    with pytest.raises(MalformedSource, match=r"people\.csv:4: 'maybe' is neither yes nor no"):
        compare_with_people(log, people)


async def test_people_who_judged_other_answers_are_told_apart(log: Path) -> None:
    people = log.parent / "people.csv"
    people.write_text("strategy,task,id,rater,verdict\ncot,liveqa,hives,ann,yes", encoding="utf-8")
    with pytest.raises(BadRun, match=r"no answer of .* was judged"):
        compare_with_people(log, people)
