"""Figures of other benches: those that are copied from the log stand there."""

from __future__ import annotations

import csv
from pathlib import Path

ROOT = Path(__file__).parents[4]
FIGURES = ROOT / "benchmarks" / "scoreboard" / "figures"


def test_a_copied_figure_stands_in_the_log_under_its_heading() -> None:
    files = sorted((ROOT / "research" / "log").glob("*.md"))
    log = "\n".join(path.read_text(encoding="utf-8") for path in files)
    sections = {text.partition("\n")[0]: text.replace("−", "-") for text in log.split("\n## ")[1:]}
    for path in sorted(FIGURES.glob("*.csv")):
        for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
            found = [text for head, text in sections.items() if head.startswith(row["source"])]
            assert len(found) == 1, row["source"]
            for value in (float(row[name]) for name in ("value", "low", "high") if row[name]):
                assert any(spelling in found[0] for spelling in spellings(value)), row


def spellings(value: float) -> set[str]:
    """A number as the log may have it: .25, 0.250, 25.0, 11,560."""
    made = {f"{value:g}", f"{value:,.0f}"} if value == round(value) else {f"{value:g}"}
    made |= {f"{value:.{digits}f}" for digits in (2, 3) if round(value, digits) == value}
    made |= {f"{100 * value:.1f}"} if 0 < value < 1 else set()
    return made | {one.replace("0.", ".", 1) for one in made if one.lstrip("-").startswith("0.")}
