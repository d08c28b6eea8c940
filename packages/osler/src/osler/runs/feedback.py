"""Feedback of readers on answers and of clinicians on cards: one SQLite file in home."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from osler.kb.store.durable import HomeStore
from osler.runs.files import EVENTS, read_run_events
from osler.settings import Settings
from osler.trace import Answered, Started
from osler.types import LETTERS, Answer, Question

FILE = "feedback.sqlite"
WORKSPACE = "default"
FeedbackKind = Literal["run", "card"]
Verdict = Literal["helpful", "wrong", "unsafe", "accepted", "overridden"]
_TABLES = """
CREATE TABLE IF NOT EXISTS feedback(
  id INTEGER PRIMARY KEY, workspace TEXT NOT NULL, kind TEXT NOT NULL, about TEXT NOT NULL,
  verdict TEXT NOT NULL, reason TEXT NOT NULL, note TEXT NOT NULL, place TEXT NOT NULL,
  at TEXT NOT NULL);
"""


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True, slots=True)
class Feedback:
    """One verdict."""

    kind: FeedbackKind
    about: str
    """Of a run its id, of a card its UUID."""
    verdict: Verdict
    """helpful, wrong or unsafe of a run; accepted or overridden of a card."""
    reason: str = ""
    """Code of the reason for which a card was overridden."""
    note: str = ""
    where: str = ""
    """The service that sent the card."""
    at: str = ""
    """ISO 8601; empty = now."""


class FeedbackStore:
    """The feedback of one home. Safe for several processes; every method blocks."""

    def __init__(self, home: Path) -> None:
        self._file = HomeStore(home / FILE, _TABLES)

    def add_all(self, given: Sequence[Feedback], workspace: str = WORKSPACE) -> list[Feedback]:
        """Adds all of it or, where one cannot be stored, none; as it is kept."""
        kept = [replace(one, at=one.at or _now()) for one in given]
        rows = [(workspace, *astuple(one)) for one in kept]
        insert = (
            "INSERT INTO feedback(workspace, kind, about, verdict, reason, note, place, at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        )
        with self._file.open_to_write() as db:
            db.executemany(insert, rows)
        return kept

    def delete_run(self, id: str) -> None:
        """Deletes what was said of a run."""
        with self._file.open_to_write() as db:
            db.execute("DELETE FROM feedback WHERE kind = 'run' AND about = ?", (id,))

    def read_all(self, workspace: str = WORKSPACE, limit: int = 10_000) -> list[Feedback]:
        """The newest first."""
        select = (
            "SELECT kind, about, verdict, reason, note, place, at FROM feedback"
            " WHERE workspace = ? ORDER BY id DESC LIMIT ?"
        )
        with self._file.open_to_read() as db:
            return [Feedback(*row) for row in db.execute(select, (workspace, limit))]


def helpful_questions(settings: Settings) -> Iterator[dict[str, Any]]:
    """Questions whose last verdict was helpful, as rows of the sets `sample-open` and
    `sample`: the answer that was given is the right one, and rests on what it cites.

    Runs that are gone, or gave no answer, are left out.
    """
    judged: dict[str, Verdict] = {}
    for one in FeedbackStore(settings.home).read_all():  # the newest first
        if one.kind == "run":
            judged.setdefault(one.about, one.verdict)
    for run, verdict in judged.items():
        log = settings.runs.path / run / EVENTS
        if verdict != "helpful" or not log.is_file():
            continue
        events = read_run_events(log)
        begun = next((one for one in events if isinstance(one, Started)), None)
        if begun is not None and isinstance(events[-1], Answered):
            yield from _question_row(run, begun.question, events[-1].solution.answer)


def _question_row(run: str, asked: Question, answer: Answer) -> Iterator[dict[str, Any]]:
    words = " ".join(one.text for one in answer.claims)
    given = answer.option if asked.options else words
    if not given:
        return
    cited = {n for statement in answer.statements for n in statement.cites}
    gold = [one.passage.id for n, one in enumerate(answer.evidence, 1) if n in cited]
    yield {
        "id": run,
        "kind": "choice" if asked.options else "open",
        "language": asked.language,
        "question": asked.text,
        "options": dict(zip(LETTERS, asked.options, strict=False)),
        "answer": given,
        "gold": [{"passage": id} for id in dict.fromkeys(gold)],
    }
