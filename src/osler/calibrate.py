"""Fits TC-RAG's sigma to a model: the scale of its state value is the model's own.

The method: for each calibration question, what the strategy finds and would conclude from it
at once, valued as in a run. Sigma is a quantile of those values: with 0.9, nine in ten of such
conclusions may stand. It is written into the settings file with what it was fitted to, and is
used only there (`wiring.threshold`).
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Literal

from osler import wiring
from osler.config import Loaded, Settings, TcRag
from osler.errors import BadConfig, BadQuestion
from osler.kb.base import Progress
from osler.questions import parse_question
from osler.retrieve.lookup import look_up
from osler.trace import Run
from osler.types import Language, Question

PACKAGED = "packaged calibration questions"
_LEAST = 5
"""Conclusions below which a quantile says nothing."""


@dataclass(frozen=True, slots=True)
class Valued:
    """A question and the state value of its first conclusion."""

    question: Question
    value: float | None
    """`None` where the evidence did not answer it."""


@dataclass(frozen=True, slots=True)
class Measured:
    model: str
    """Identity of the planner, whose state value it is."""
    metric: Literal["cppl", "uct"]
    values: tuple[Valued, ...]

    def known(self, language: Language | None = None) -> list[float]:
        """The values there are, of one language or of all."""
        return [
            valued.value
            for valued in self.values
            if valued.value is not None and language in (None, valued.question.language)
        ]


@dataclass(frozen=True, slots=True)
class Fitted:
    """What goes into [calibration]."""

    sigma: float
    metric: Literal["cppl", "uct"]
    model: str
    quantile: float
    n: int
    date: str
    questions: str


def packaged_questions() -> list[Question]:
    """The 24 calibration questions of the sample texts; no benchmark reports on them."""
    found: list[Question] = []
    for name in ("calibration_en.jsonl", "calibration_zh.jsonl"):
        text = files("osler.sample").joinpath(name).read_text(encoding="utf-8")
        found += _questions(text, name)
    return found


def read_questions(path: Path) -> list[Question]:
    """Questions of a file: JSON Lines with `question` and, if it has any, `options`.

    Raises `BadQuestion` naming file, line and fix.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadQuestion(
            f"{path} cannot be read: {error}", fix="name a file of JSON Lines with --questions"
        ) from error
    if not (found := _questions(text, str(path))):
        raise BadQuestion(f"{path} has no question", fix='write lines like {"question": "…"}')
    return found


def _questions(text: str, name: str) -> list[Question]:
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            options = row.get("options") or ()
            listed = options.values() if isinstance(options, dict) else options
            found.append(parse_question(row["question"], options=tuple(map(str, listed))))
        except (ValueError, TypeError, AttributeError, KeyError, BadQuestion) as error:
            raise BadQuestion(
                f"{name}:{number}: no question: {error}",
                fix='write lines like {"question": "…", "options": ["…", "…"]}',
            ) from error
    return found


async def measure(
    settings: Settings, questions: Sequence[Question], *, progress: Progress | None = None
) -> Measured:
    """The value of each question. Raises `BadConfig` unless the strategy is a monitored TC-RAG."""
    chosen, metric = _monitored(settings)
    parts = await wiring.live(settings)
    machine = wiring.machine(settings, chosen, parts)
    found = parts.retriever("calibrate", parts.sources)
    values = []
    for number, question in enumerate(questions):
        if progress is not None:
            progress("questions", number, len(questions))
        run = Run(seed=settings.sampling.seed)
        hits = (await look_up(found, question.text, run, k=chosen.k)).hits
        value = await machine.first_value(question, hits, run) if hits else None
        values.append(Valued(question, value))
    return Measured(machine.model.name, metric, tuple(values))


def _monitored(settings: Settings) -> tuple[TcRag, Literal["cppl", "uct"]]:
    chosen = settings.strategy
    if not isinstance(chosen, TcRag) or chosen.metric == "off":
        raise BadConfig(
            "only a monitored TC-RAG has a sigma to calibrate",
            fix='set strategy.kind = "tc-rag" and strategy.metric = "cppl" or "uct"',
        )
    return chosen, chosen.metric


def fit(measured: Measured, *, quantile: float, questions: str, today: date) -> Fitted:
    """The quantile of the values, to three digits. Raises `BadConfig` for too few values."""
    known = measured.known()
    if len(known) < _LEAST:
        raise BadConfig(
            f"{len(known)} of {len(measured.values)} questions were answered from the knowledge"
            f" base; {_LEAST} are needed",
            fix="give questions that it answers, with --questions FILE",
        )
    return Fitted(
        float(f"{quantile_of(known, quantile):.3g}"),
        measured.metric,
        measured.model,
        quantile,
        len(known),
        today.isoformat(),
        questions,
    )


def quantile_of(known: Sequence[float], share: float) -> float:
    """By linear interpolation between the two values that stand around it; `known` not empty."""
    ordered = sorted(known)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def refuse_hand_set(loaded: Loaded) -> None:
    """Raises `BadConfig` where strategy.sigma is set: it would go before any calibration."""
    chosen = loaded.settings.strategy
    if isinstance(chosen, TcRag) and chosen.sigma is not None:
        raise BadConfig(
            f"{loaded.origins['strategy.sigma']}: strategy.sigma = {chosen.sigma:g} is set by hand,"
            " and goes before a calibrated one",
            fix="take it out, or let --force take it out of the settings file",
        )


def write(found: Fitted, path: Path, *, force: bool = False) -> None:
    """Puts the fit into the file's [calibration], and keeps every other line as it is.

    `force` comments out a strategy.sigma. Raises `BadConfig` where the file cannot be written.
    """
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        lines = _without_sigma(text.splitlines()) if force else text.splitlines()
        told = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in _pairs(found)]
        made = "\n".join(_replaced(lines, told)) + "\n"
        tomllib.loads(made)
        draft = path.with_name(f".{path.name}.partial")
        draft.write_text(made, encoding="utf-8")
        draft.replace(path)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadConfig(
            f"cannot write {path}: {error}", fix="name another file with --config"
        ) from error


def _pairs(found: Fitted) -> list[tuple[str, object]]:
    return [(name, getattr(found, name)) for name in Fitted.__dataclass_fields__]


_TABLE = re.compile(r"^\s*\[")
_CALIBRATION = re.compile(r"^\s*\[\s*calibration\s*\]")
_STRATEGY = re.compile(r"^\s*\[\s*strategy\s*\]")
_SIGMA = re.compile(r"^\s*sigma\s*=")


def _block(lines: Sequence[str], header: re.Pattern[str]) -> tuple[int, int] | None:
    """Where a table stands: its header's line, and that of the next table."""
    start = next((i for i, line in enumerate(lines) if header.match(line)), None)
    if start is None:
        return None
    later = (i for i in range(start + 1, len(lines)) if _TABLE.match(lines[i]))
    return start, next(later, len(lines))


def _without_sigma(lines: Sequence[str]) -> list[str]:
    found = _block(lines, _STRATEGY)
    within = range(*found) if found else range(0)
    return [
        f"#{line}" if i in within and _SIGMA.match(line) else line for i, line in enumerate(lines)
    ]


def _replaced(lines: list[str], told: list[str]) -> list[str]:
    """The lines with the table's keys as told; its comments stay, and so do those after it."""
    found = _block(lines, _CALIBRATION)
    if found is None:
        gap = [""] if lines and lines[-1].strip() else []
        return [*lines, *gap, "[calibration]", *told]
    start, end = found
    keys = {line.partition(" ")[0] for line in told}
    kept = [line for line in lines[start + 1 : end] if line.split("=")[0].strip(" #\t") not in keys]
    return [*lines[: start + 1], *told, *kept, *lines[end:]]
