"""Small knowledge bases and log folders for tests, and how they are damaged."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path

from osler.kb.base import KnowledgeBase
from osler.kb.store import access
from osler.types import Question, Usage
from osler_lab.evaluate import plan as planning
from osler_lab.evaluate.log import LogWriter
from osler_lab.evaluate.plan import EvaluatedTask, EvaluationPlan
from osler_lab.evaluate.record import Gold, RecordedOutcome, RecordedStatement, Sample, SampleRecord


def write_corpus(path: Path, count: int, word: str = "iron", *, more: str = "") -> Path:
    """A file of so many records about the word, as MedRAG writes them; `more`: text of each."""
    rows = [
        {
            "id": f"{word}{i}",
            "title": f"Title {i}",
            "content": f"Text {i} on {word}.{more}",
            "contents": "",
        }
        for i in range(count)
    ]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return path


def damage_database(kb: KnowledgeBase, sql: str) -> None:
    """Damage from outside."""
    with sqlite3.connect(kb.path / access.FILE) as db:
        db.execute(sql)
    db.close()


QUESTIONS = 10
# Strategy to the number of questions that it has right.
RIGHTS = {"direct": 4, "rag:k=5": 9}
HOSTILE = '<img src=x onerror=alert(1)> & "quoted" 糖尿病？'


def write_log_folder(folder: Path) -> None:
    """Writes the folder; one sample of the second strategy failed, and one was not tried."""
    entrants = {}
    for label in RIGHTS:
        kind = label.partition(":")[0]
        entrant = planning.make_entrant(
            label, {"strategy": {"kind": kind}, "sampling": {"seed": 3}}
        )
        entrants[label] = replace(entrant, models={"reader": "tiny"}, snapshot="snap1")
    task = EvaluatedTask("pubmedqa", "choice", "d" * 64, 14, 12, {"no gold option": 2})
    asked = {"direct": {"pubmedqa": QUESTIONS}, "rag:k=5": {"pubmedqa": QUESTIONS + 2}}
    planning.save_plan(folder, EvaluationPlan(0, {"pubmedqa": task}, entrants, asked, "0.1"))
    with LogWriter(folder, "w") as writer:
        for number in range(QUESTIONS):
            for strategy, rights in RIGHTS.items():
                writer.write_record(_make_record(strategy, number, "A" if number < rights else "B"))
        failed = _make_record("rag:k=5", QUESTIONS, None)
        writer.write_record(replace(failed, status="failed", error="ModelUnreachable: away"))


def _make_record(strategy: str, number: int, option: str | None) -> SampleRecord:
    question = Question(f"q{number:02d}", f"Case {number}: {HOSTILE}", ("yes", "no"))
    sample = Sample("pubmedqa", "choice", question, Gold(("A",), ()))
    outcome = RecordedOutcome(
        option,
        "Because.",
        "ungrounded",
        "converged",
        "said so",
        (RecordedStatement("Because."),),
        usage=Usage(calls=2, prompt_tokens=100, seconds=0.5),
    )
    return SampleRecord(strategy, sample, "done", "2026-01-01T00:00:00", 1.5, 0, outcome)
