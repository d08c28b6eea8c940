"""What the gate knows of each case, kept on disk, so that a measuring that was stopped goes on.

Nothing of it depends on the weights of `answerable`: they are learnt from it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from osler.answer.gate import EvidenceGate, QuoteThresholds
from osler.retrieve.experts.answerable import PassageSigns
from osler.retrieve.naming import has_no_one_subject
from osler.train.experts.evidence_cases import EvidenceCase, names_subject
from osler.train.experts.searches import SearchQuestion
from osler.types import Hit

RULES: Mapping[str, QuoteThresholds] = {"entity gate": QuoteThresholds(0.49, 0.5)}
"""The rule that stood before, with the thresholds of the settings' defaults."""
QUOTED = 3


@dataclass(frozen=True, slots=True)
class MeasuredCase:
    """A case with what the gate knows of its passages, and what the rules do with it."""

    id: str
    text: str
    source: str
    absent: bool
    golds: tuple[bool, ...]
    """Of each passage found, whether it is of a gold document."""
    others: tuple[bool, ...]
    """Whether it neither is gold nor names the subject or a synonym (MedQuAD)."""
    signs: tuple[PassageSigns, ...]
    quoted: Mapping[str, bool]
    """By rule, whether anything was quoted."""
    other: Mapping[str, bool]
    """By rule, whether one of the first quotes is of a passage on another subject."""

    @property
    def is_letter(self) -> bool:
        return has_no_one_subject(self.text)

    @property
    def has_gold(self) -> bool:
        return any(self.golds)


async def measure_case(
    gate: EvidenceGate, case: EvidenceCase, names: Iterable[str], *, by_rule: bool
) -> MeasuredCase:
    """Measures the passages; `by_rule` asks the rules as well, which takes longest."""
    named = tuple(names)

    def is_other(hit: Hit) -> bool:
        gold = not case.absent and case.is_gold(hit)
        return bool(named) and not gold and not names_subject(hit.passage, named)

    measured = await gate.measure_passages(case.question, case.hits)
    quoted, other = {}, {}
    for rule, least in RULES.items() if by_rule else ():
        plain = replace(gate, expert=None, least={"en": least})
        quotes = await plain.find_evidence(case.question, case.hits)
        quoted[rule] = bool(quotes)
        other[rule] = any(is_other(quote.hit) for quote in quotes[:QUOTED])
    return MeasuredCase(
        case.asked.id,
        case.asked.text,
        case.asked.source,
        case.absent,
        tuple(not case.absent and case.is_gold(hit) for hit in case.hits),
        tuple(map(is_other, case.hits)),
        tuple(one.signs for one in measured),
        quoted,
        other,
    )


@dataclass(frozen=True)
class CaseFile:
    """Measured cases of one part, a line each."""

    path: Path

    def read_cases(self) -> list[MeasuredCase]:
        """All whole lines: the last may have been cut by a stop."""
        return [_case_of(row) for row in self._read_rows()]

    def find_missing(self, asked: Sequence[SearchQuestion]) -> list[SearchQuestion]:
        known = {row["id"] for row in self._read_rows() if row["absent"]}
        return [one for one in asked if one.id not in known]

    def add_cases(self, cases: Sequence[MeasuredCase]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        cut = self.path.is_file() and self.path.read_bytes()[-1:] not in (b"", b"\n")
        text = "\n" * cut + "".join(json.dumps(asdict(one)) + "\n" for one in cases)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(text)

    def _read_rows(self) -> Iterator[dict[str, Any]]:
        if not self.path.is_file():
            return
        for line in self.path.read_text(encoding="utf-8").split("\n"):
            # What a stop cut short is no JSON.
            with suppress(ValueError):
                yield json.loads(line)


def _case_of(row: Mapping[str, Any]) -> MeasuredCase:
    signs = tuple(PassageSigns(**one) for one in row["signs"])
    pairs = {name: tuple(row[name]) for name in ("golds", "others")}
    return MeasuredCase(**{**row, **pairs, "signs": signs})
