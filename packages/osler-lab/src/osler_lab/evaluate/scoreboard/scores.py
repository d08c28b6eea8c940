"""Scored answers: one line each, with all that the scoreboard needs and no text of the data."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_type_hints

from osler.errors import BadRun, translate_os_errors
from osler_lab.evaluate.log import read_records
from osler_lab.evaluate.measures import BY_NAME, measure_value
from osler_lab.evaluate.plan import Entrant, EvaluationPlan, read_plan
from osler_lab.evaluate.record import Kind, Sample, SampleRecord
from osler_lab.evaluate.report.opponents import most_common

RIGHT: Mapping[Kind, str] = {
    "choice": "accuracy",
    "choices": "accuracy",
    "short": "held",
    "long": "citation_recall",
}
"""What "right" is for each kind of question: the option, the gold in the answer, a cited gold
document."""
MAJORITY = "majority"
"""Strategy of the row that always gives one option."""
Half = Literal["dev", "held"]


@dataclass(frozen=True, slots=True)
class ScoredAnswer:
    """One answer: no word of question or answer, only what was measured."""

    task: str
    strategy: str
    question: str
    """Hash of the question's words, and of its id where others of its data set have the same."""
    kind: str
    """`osler_lab.evaluate.record.Kind`."""
    right: float
    """0 or 1; a sample that failed is 0."""
    answered: float
    """0 where the strategy abstained."""
    grounded: float
    """1 where every statement is cited."""
    decided: str
    """Who decided (`osler.types.DecidedBy`); empty for a sample that failed."""
    calls: int
    tokens: int
    searches: int
    seconds: float
    """Wall clock; at least what its model's replies took when they were made, whoever asked first:
    strategies share replies, and the later one would seem the cheaper."""
    sureness: float | None = None
    recall: float | None = None
    """Share of the gold documents among the first 10 found."""
    rank: float | None = None
    """Reciprocal rank of the first gold document."""

    @property
    def half(self) -> Half:
        """The half that the question is in: rules are chosen on dev and reported on held."""
        return "held" if int(self.question[:8], 16) % 2 else "dev"


@dataclass(frozen=True, slots=True)
class ScoredLog:
    """Scored answers, and under what they were made."""

    seed: int
    version: str
    conditions: dict[str, str]
    """"TASK STRATEGY" → "DIGEST@BASE": a digest of all settings but the strategy's own
    (option chooser, retrieval, order, decoding), and the snapshot of the knowledge base, empty
    where none is read."""
    facts: dict[str, str]
    """What the page says of them: models, knowledge base, data."""
    scores: tuple[ScoredAnswer, ...]

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.task for one in self.scores))


def score_log(folder: Path) -> ScoredLog:
    """Scores a log folder; no model is asked. Strategies that have not tried every question of a
    data set are left out there. Raises `BadRun`."""
    plan = read_plan(folder)
    tried = {label for label, entrant in plan.entrants.items() if entrant.models}
    records = [*read_records(folder)]
    digests = _digest_questions(record.sample for record in records)
    scores = _whole_cells(plan, [_score_record(record, digests) for record in records])
    samples = [record.sample for record in records]
    golds = {(one.task, digests[one.task, one.id]): one.gold.letters for one in samples}
    scores += _score_majority(scores, golds)
    order = {label: n for n, label in enumerate((*plan.asked, MAJORITY))}
    tasks = {name: n for n, name in enumerate(plan.tasks)}
    scores.sort(key=lambda one: (tasks[one.task], order[one.strategy], one.question))
    entrants = [plan.entrants[label] for label in plan.asked if label in tried]
    models = sorted({name for entrant in entrants for name in entrant.models.values()})
    bases = sorted({entrant.snapshot for entrant in entrants if entrant.snapshot})
    facts = {"models": ", ".join(models), "knowledge base": ", ".join(bases)}
    facts |= {name: f"SHA-256 {task.digest[:16]}" for name, task in plan.tasks.items()}
    conditions = {
        f"{task} {entrant.label}": _condition_of(entrant)
        for entrant in entrants
        for task in plan.asked[entrant.label]
    }
    chosen = {one.task for one in scores if one.strategy == MAJORITY}
    for name, condition in [*conditions.items()]:
        if (task := name.partition(" ")[0]) in chosen:
            # The majority answer fits every setting, and reads no knowledge base.
            conditions.setdefault(f"{task} {MAJORITY}", f"{condition.partition('@')[0]}@")
    return ScoredLog(plan.seed, plan.version, conditions, facts, tuple(scores))


def _whole_cells(plan: EvaluationPlan, scores: list[ScoredAnswer]) -> list[ScoredAnswer]:
    """The answers of strategies that tried all that any strategy is to try on a data set."""
    wanted = {
        task: max(counts.get(task, 0) for counts in plan.asked.values()) for task in plan.tasks
    }
    tried = Counter((one.task, one.strategy) for one in scores)
    return [one for one in scores if tried[one.task, one.strategy] == wanted[one.task]]


def _score_majority(
    scores: Sequence[ScoredAnswer], golds: Mapping[tuple[str, str], Sequence[str]]
) -> list[ScoredAnswer]:
    """Who always gives the option that is right most often among these very questions."""
    asked = {(one.task, one.question): one.kind for one in scores if one.kind.startswith("choice")}
    rows = []
    for task in dict.fromkeys(task for task, _ in asked):
        sets = {id: " ".join(sorted(golds[of, id])) for of, id in asked if of == task}
        said = most_common([*sets.values()])
        rows += [
            ScoredAnswer(
                task, MAJORITY, id, asked[task, id], float(gold == said), 1, 0, "", 0, 0, 0, 0
            )
            for id, gold in sets.items()
        ]
    return rows


def _condition_of(entrant: Entrant) -> str:
    """What must be the same in one table: a digest, and the knowledge base where there is one."""
    shared = {name: value for name, value in entrant.settings.items() if name != "strategy"}
    text = json.dumps(shared, sort_keys=True)
    return f"{hashlib.sha256(text.encode()).hexdigest()[:12]}@{entrant.snapshot}"


def _digest_questions(samples: Iterable[Sample]) -> dict[tuple[str, str], str]:
    """Task and id → hash of the question's words; of words that come again, of the id as well."""
    words = {(s.task, s.id): f"{s.question.text}\n{s.question.options}" for s in samples}
    times = Counter((task, said) for (task, _), said in words.items())
    for (task, id), said in words.items():
        words[task, id] = said if times[task, said] == 1 else f"{said}\n{id}"
    return {key: hashlib.sha256(text.encode()).hexdigest()[:12] for key, text in words.items()}


def _score_record(record: SampleRecord, digests: Mapping[tuple[str, str], str]) -> ScoredAnswer:
    sample, outcome = record.sample, record.outcome
    usage = outcome.usage
    right = measure_value(BY_NAME[RIGHT[sample.kind]], record) or 0.0
    return ScoredAnswer(
        sample.task,
        record.strategy,
        digests[sample.task, sample.id],
        sample.kind,
        float(right > 0),
        float(record.status == "done" and outcome.grounding != "abstained"),
        float(outcome.grounding == "grounded"),
        outcome.decided,
        usage.calls,
        usage.tokens,
        usage.searches,
        round(max(record.seconds, usage.seconds), 3),
        None if outcome.sureness is None else round(outcome.sureness, 4),
        measure_value(BY_NAME["recall_10"], record),
        measure_value(BY_NAME["mrr"], record),
    )


_COLUMNS = tuple(field.name for field in fields(ScoredAnswer))
_TYPES = get_type_hints(ScoredAnswer)


def format_scores(log: ScoredLog) -> str:
    """The file of scores: a line of JSON with the conditions, then CSV; it repeats to the byte."""
    text = io.StringIO()
    head = {"seed": log.seed, "version": log.version, "conditions": log.conditions}
    text.write(json.dumps({**head, "facts": log.facts}, ensure_ascii=False, sort_keys=True) + "\n")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for one in log.scores:
        writer.writerow(format_cell(value) for value in asdict(one).values())
    return text.getvalue()


def format_cell(value: object) -> str:
    """A cell of a CSV file: six digits of a number, empty for `None`."""
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def read_scores(path: Path) -> ScoredLog:
    """Reads a file of scores, or scores a log folder. Raises `BadRun`."""
    if path.is_dir():
        return score_log(path)
    with translate_os_errors(f"{path} cannot be read", BadRun):
        head, _, rows = path.read_text(encoding="utf-8").partition("\n")
    try:
        stored = json.loads(head)
        scores = tuple(_parse_row(row) for row in csv.DictReader(io.StringIO(rows)))
        return ScoredLog(
            stored["seed"], stored["version"], stored["conditions"], stored["facts"], scores
        )
    except (ValueError, KeyError, TypeError) as error:
        raise BadRun(f"{path} is not a file of scores: {error!r}") from error


def join_logs(logs: Sequence[ScoredLog]) -> ScoredLog:
    """Several logs as one: other data sets, or other strategies on the same questions.

    Raises `BadRun` for an answer that two of them hold.
    """
    scores = tuple(one for log in logs for one in log.scores)
    if len({(one.task, one.strategy, one.question) for one in scores}) < len(scores):
        raise BadRun("the logs hold answers of the same strategy to the same questions")
    conditions, facts = dict[str, str](), dict[str, str]()
    for log in logs:
        conditions |= log.conditions
        for name, fact in log.facts.items():
            words = f"{facts.get(name, '')}, {fact}".split(", ")
            facts[name] = ", ".join(dict.fromkeys(filter(None, words)))
    return ScoredLog(logs[0].seed, logs[0].version, conditions, facts, scores)


def _parse_row(row: Mapping[str, str]) -> ScoredAnswer:
    values: dict[str, Any] = {}
    for name in _COLUMNS:
        cell, kind = row[name], _TYPES[name]
        if kind is str:
            values[name] = cell
        elif kind is int:
            values[name] = int(cell)
        else:
            values[name] = float(cell) if cell else None
    return ScoredAnswer(**values)


def of_task(
    scores: Iterable[ScoredAnswer], task: str, strategies: Sequence[str] = ()
) -> dict[str, dict[str, ScoredAnswer]]:
    """Strategy → question → answer of one data set; all strategies where none are named."""
    found: dict[str, dict[str, ScoredAnswer]] = {}
    for one in scores:
        if one.task == task and (not strategies or one.strategy in strategies):
            found.setdefault(one.strategy, {})[one.question] = one
    return found
