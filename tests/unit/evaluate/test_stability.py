"""Two seeds, one question: the same way of solving it, or another (KAG-Thinker §4.4)."""

from dataclasses import dataclass

import pytest
from stability import measure_stability, process_of_run

from osler.trace import FormNode, FormSolved, FormsPlanned, Run
from osler.types import Answer, Halt, Question, Solution, Statement, Usage
from osler_lab.evaluate.judged import Judgement
from osler_lab.evaluate.judges import Judge
from osler_lab.evaluate.record import SampleKey
from osler_lab.evaluate.report.build import judged_cells
from osler_lab.testing.scripted import ScriptedModel

QUESTIONS = [Question("a", "Who made it?"), Question("b", "是谁做的？", language="zh")]


@dataclass
class Planned:
    """Asks one step more where its seed is among `longer`."""

    longer: bool

    async def solve(self, question: Question, run: Run) -> Solution:
        nodes = [FormNode(1, "Retrieval", question.text, "Retrieval(s=s1, p=p1, o=o1)", ())]
        if self.longer:
            nodes.append(FormNode(2, "Output", "Give it.", "Output(o1)", (1,)))
        run.emit(FormsPlanned(tuple(nodes)))
        run.emit(FormSolved(1, "done", f"Ann, drawn by {run.seed}"))
        return Solution(Answer((Statement("Ann"),)), Halt.CONVERGED, "")


async def test_the_score_is_the_share_that_the_judge_calls_consistent() -> None:
    model = ScriptedModel(["<answer>yes</answer>", "不同。<answer>no</answer>"])
    found = await measure_stability(lambda seed: Planned(False), Judge(model), QUESTIONS)
    model.finish()
    assert found.judged is not None
    assert (found.judged.value, found.judged.n, found.unread) == (0.5, 2, 0)
    assert found.alike.value == 1.0
    english, chinese = (seen[-1].content for seen in model.seen)
    assert "Ann, drawn by 0" in english
    assert "Ann, drawn by 1" in english
    assert "是谁做的？" in chinese
    assert "两个解题过程" in chinese
    assert all(sampling.temperature == 0.0 for sampling in model.samplings)


async def test_plans_of_another_shape_are_told_apart_without_a_judge() -> None:
    model = ScriptedModel(["<answer>yes</answer>"] * 2)
    found = await measure_stability(lambda seed: Planned(seed == 1), Judge(model), QUESTIONS)
    assert found.judged is not None
    assert (found.judged.value, found.alike.value) == (1.0, 0.0)


async def test_a_verdict_that_cannot_be_read_is_in_no_figure_and_is_told() -> None:
    model = ScriptedModel(["<answer>yes</answer>", *["perhaps"] * 3])
    found = await measure_stability(lambda seed: Planned(False), Judge(model), QUESTIONS)
    assert found.judged is not None
    assert (found.judged.value, found.judged.n, found.unread) == (1.0, 1, 1)
    assert found.alike.n == 2


async def test_where_no_verdict_can_be_read_there_is_no_figure() -> None:
    model = ScriptedModel(["perhaps"] * 6)
    found = await measure_stability(lambda seed: Planned(False), Judge(model), QUESTIONS)
    assert (found.judged, found.unread) == (None, 2)


async def test_an_unread_verdict_counts_alike_in_a_study_and_in_a_report() -> None:
    model = ScriptedModel(["<answer>no</answer>", *["perhaps"] * 3])
    study = await measure_stability(lambda seed: Planned(False), Judge(model), QUESTIONS)
    judgements = [
        Judgement(
            *("stability", "judge", SampleKey("rag", "made", pair.question.id)),
            {"alike": 1.0} | ({} if pair.stable is None else {"stable": float(pair.stable)}),
            *((), Usage(), ""),
        )
        for pair in study.pairs
    ]
    (cell,) = judged_cells(judgements, seed=0)
    assert (cell.estimates["stable"], cell.unread) == (study.judged, study.unread)


async def test_duplicate_seed_is_refused() -> None:
    with pytest.raises(ValueError, match="two seeds"):
        await measure_stability(
            lambda seed: Planned(False), Judge(ScriptedModel([])), QUESTIONS, seeds=(3, 3)
        )


def test_a_process_is_told_by_its_plan_its_steps_and_its_answer() -> None:
    run = Run()
    run.emit(FormsPlanned((FormNode(1, "Retrieval", "Who?", "Retrieval(…)", ()),)))
    run.emit(FormSolved(1, "failed", ""))
    found = process_of_run(run, Solution(Answer(option="B"), Halt.CONVERGED, ""))
    assert found.text == "Step1: Who?\nAction1: Retrieval(…)\n#1 unknown\nB"
    assert found.shape == (("Retrieval", ()),)
