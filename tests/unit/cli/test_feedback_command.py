"""`osler feedback`: verdicts become questions that strategies are measured on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from osler.runs.feedback import Feedback, FeedbackStore, Verdict
from osler.trace import Answered, Budget, Started, to_line
from osler.types import Answer, Evidence, Halt, Hit, Passage, Question, Solution, Statement
from osler_lab.studies.tasks import read_task

CITED, FOUND = (Passage(f"book:pages#{n}", "book", "Page", "Adrenaline.") for n in range(2))
EVIDENCE = tuple(Evidence(Hit(p, 1.0, 1, "what", "book"), 0, 4) for p in (CITED, FOUND))
OPTIONS = ("salbutamol", "adrenaline")


def judge_run(home: Path, id: str, question: Question, answer: Answer, *said: Verdict) -> None:
    """A recorded run, and what a reader said of it, one after the other."""
    log = home / "runs" / id / "events.jsonl"
    log.parent.mkdir(parents=True)
    begun = Started(id, "rag", question, "", {}, 1, Budget())
    ended = Answered(Solution(answer, Halt.CONVERGED, "read"))
    log.write_text("".join(f"{to_line(one)}\n" for one in (begun, ended)), encoding="utf-8")
    FeedbackStore(home).add_all([Feedback("run", id, one) for one in said])


def test_helpful_answers_become_questions_that_eval_reads(osler: Any, folder: Path) -> None:
    home = Path(json.loads(osler("config", "--json").stdout)["home"])
    refused = osler("feedback", "--out", "none.jsonl")
    assert "no answer was called helpful" in refused.output
    given = Answer((Statement("Adrenaline is given.", (1,)),), evidence=EVIDENCE)
    chosen = Answer((Statement("It is B.", (2,)),), option="B", evidence=EVIDENCE)
    judge_run(home, "open", Question("", "What is given?"), given, "wrong", "helpful")
    judge_run(home, "choice", Question("", "Which?", OPTIONS), chosen, "helpful")
    judge_run(home, "bad", Question("", "What else?"), given, "helpful", "unsafe")
    judge_run(home, "silent", Question("", "Who?"), Answer(()), "helpful")
    FeedbackStore(home).add_all([Feedback("run", "gone", "helpful", note="so it is")])
    assert "so it is" in osler("feedback").stdout
    assert osler("feedback", "--out", "judged.jsonl").exit_code == 0
    (asked,) = read_task("sample-open=judged.jsonl", None).samples
    assert (asked.question.text, asked.gold.support) == ("What is given?", (CITED.id,))
    assert asked.gold.texts == ("Adrenaline is given.",)
    (choice,) = read_task("sample=judged.jsonl", None).samples
    assert (choice.question.options, choice.gold.letters) == (OPTIONS, ("B",))
    assert choice.gold.support == (FOUND.id,)
