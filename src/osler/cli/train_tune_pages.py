"""What a training takes and came to, as tables. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from osler.train.tune.corpus import SourceCount
    from osler.train.tune.estimate import TrainingEstimate
    from osler.train.tune.loop import TuningResult


def plan_page(plan: TrainingEstimate) -> Table:
    """What `--dry-run` says."""
    logs = "log.jsonl" + (" and TensorBoard's events" if plan.tensorboard else "")
    return _bare_table(
        ("samples", f"{plan.samples:,}, and {plan.long:,} left out for their length"),
        ("tokens", f"{plan.tokens:,}, the longest sample {plan.longest:,}"),
        ("steps", f"{plan.steps:,}"),
        ("parameters", f"{plan.parameters:,}, of which {plan.trained:,} are trained"),
        ("memory", f"about {plan.memory / 2**30:.1f} GiB"),
        ("time", f"about {_format_time(plan.seconds)}, by one micro-batch"),
        ("logs", logs),
        *((f"source {one.name}", _source_row(one)) for one in plan.sources),
    )


def tuned_page(tuned: TuningResult) -> Table:
    """What a training came to."""
    began = f", from step {tuned.resumed:,}" if tuned.resumed else ""
    return _bare_table(
        ("steps", f"{tuned.steps:,}{began}"),
        ("loss", f"{tuned.first:.4f} at first, {tuned.last:.4f} at last"),
        ("time", _format_time(tuned.seconds)),
        *_perplexity_rows(tuned),
    )


def _source_row(count: SourceCount) -> str:
    return (
        f"{count.texts:,} texts, {count.held_out:,} held out, {count.doubles:,} doubles left out;"
        f" {count.tokens:,} tokens; {count.share:.1%} of what is read"
    )


def _perplexity_rows(tuned: TuningResult) -> list[tuple[str, str]]:
    if tuned.perplexity is None:
        return []
    before, after = tuned.perplexity
    return [
        (f"perplexity, {name}", f"{value:,.2f} before, {after[name]:,.2f} after")
        for name, value in before.items()
    ]


def _format_time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _bare_table(*rows: tuple[str, str]) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, value in rows:
        table.add_row(Text(name), Text(value))
    return table
