"""Pages of `osler train`."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from osler.cli.tables import make_table, plain_table

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from osler.kb.encoders.base import Encoder
    from osler.train.journal import JobStage
    from osler.train.spo.explore import ExploredCase
    from osler.train.spo.judge import JudgedCase
    from osler.train.spo.units import Unit
    from osler.train.tune.corpus import SourceCount
    from osler.train.tune.estimate import TrainingEstimate
    from osler.train.tune.loop import TuningResult


# Questions whose queries' diversity is measured: it needs their vectors.
_DIVERSE = 200


def plain_page(values: dict[str, Any]) -> Table:
    rows = ((name.replace("_", " "), _format_value(value)) for name, value in values.items())
    return make_table(("what", "value"), rows, numeric={"value"})


def _format_value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {count}" for key, count in value.items()) or "-"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "-"
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def _format_diversity(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def explored_summary(stage: JobStage[ExploredCase], encoder: Encoder) -> dict[str, Any]:
    """Questions, queries a source, their diversity (Eq. 5), and what it cost."""
    from osler.evaluate.planning import (
        diversity_by_count,
        diversity_per_plan,
        queries_per_source,
    )
    from osler.methods.omni.plan import SourcePlan
    from osler.types import Usage

    plans, usage, seconds, names = [], Usage(), 0.0, dict[str, None]()
    for explored in stage.results():
        plans.append(SourcePlan.of(query.query for query in explored.queries))
        usage += explored.usage
        seconds += explored.searching_s
        names |= {query.source: None for query in explored.queries}
    failed = stage.failed_reasons()
    return {
        "questions": len(plans),
        "failed": failed,
        "queries": queries_per_source(plans, names) if plans else {},
        "diversity": diversity_per_plan(plans[:_DIVERSE], names, encoder),
        "diversity_by_queries": diversity_by_count(plans[:_DIVERSE], names, encoder),
        "calls": usage.calls,
        "tokens": usage.tokens,
        "inference_s": round(usage.seconds, 1),
        "searches": usage.searches,
        "search_s": round(seconds, 1),
    }


def explored_page(summary: dict[str, Any]) -> RenderableType:
    from rich.console import Group

    keys = ("questions", "calls", "tokens", "inference_s", "searches", "search_s")
    names = ("source", "queries a question", "diversity")
    by_source = (
        (source, f"{count:.2f}", _format_diversity(summary["diversity"].get(source)))
        for source, count in summary["queries"].items()
    )
    return Group(
        plain_page({key: summary[key] for key in keys} | _seconds_a_question(summary)),
        make_table(names, by_source, numeric=names[1:]),
        _diversity_table(summary["diversity_by_queries"]),
        *_failure_rows(summary["failed"]),
    )


def _seconds_a_question(summary: dict[str, Any]) -> dict[str, float]:
    """Seconds in the model and in searches, each a question (Omni-RAG Tables 11 and 14)."""
    questions = summary["questions"]
    wanted = [key for key in ("inference_s", "search_s") if key in summary] if questions else []
    return {f"{key}_a_question": round(summary[key] / questions, 2) for key in wanted}


def _diversity_table(by_source: dict[str, dict[int, float | None]]) -> Table:
    """Diversity of the first queries, a column for each source (Omni-RAG Fig. 6)."""
    counts = sorted({count for values in by_source.values() for count in values})
    rows = (
        (str(count), *(_format_diversity(values.get(count)) for values in by_source.values()))
        for count in counts
    )
    return make_table(("first queries", *by_source), rows, numeric={*by_source})


def judged_summary(name: str, stage: JobStage[JudgedCase]) -> dict[str, Any]:
    """Verdicts by source, and what they cost."""
    from osler.types import Usage

    verdicts: dict[str, Counter[str]] = defaultdict(Counter)
    usage, asked, questions, positive, both = Usage(), 0, 0, 0, 0
    for judged in stage.results():
        questions += 1
        usage += judged.usage
        asked += judged.asked
        # `None` is a reply that could not be read: it is neither.
        signs = {verdict.positive for verdict in judged.verdicts}
        positive += True in signs
        both += {True, False} <= signs
        for verdict in judged.verdicts:
            verdicts[verdict.source][_WORD[verdict.positive]] += 1
    return {
        "judge": name,
        "questions": questions,
        "with_a_positive": positive,
        "with_both": both,
        "failed": stage.failed_reasons(),
        "verdicts": {source: dict(counts) for source, counts in verdicts.items()},
        "asked": asked,
        "calls": usage.calls,
        "tokens": usage.tokens,
        "inference_s": round(usage.seconds, 1),
    }


_WORD = {True: "positive", False: "negative", None: "unread"}


def judged_page(summary: dict[str, Any]) -> RenderableType:
    from rich.console import Group

    words = [*_WORD.values()]
    rows = (
        (source, *(f"{counts.get(word, 0):,}" for word in words))
        for source, counts in summary["verdicts"].items()
    )
    shown = make_table(("source", *words), rows, numeric=words)
    keys = ("judge", "questions", "with_a_positive", "with_both", "asked", "calls", "tokens")
    told = {key: summary[key] for key in (*keys, "inference_s")} | _seconds_a_question(summary)
    return Group(plain_page(told), shown, *_failure_rows(summary["failed"]))


def judging_load(folder: Path, by: str, unit: Unit) -> dict[str, Any]:
    """Estimates the cost of judging a folder. Raises `BadRun` for one that is not explored."""
    from osler.train.spo.job import exploration_of, explored_in
    from osler.train.spo.judge import JudgeLoad, at_most, plain_load

    exploration_of(folder)
    paper, ours, queries, questions = JudgeLoad(), JudgeLoad(), 0, 0
    reads = by in ("model", "likelihood")
    for explored in explored_in(folder).results():
        questions += 1
        queries += len(explored.queries)
        if reads and explored.case.gold:
            paper += plain_load(explored)
            ours += at_most(explored, unit if by == "model" else "document")
    load: dict[str, Any] = {"questions": questions, "queries": queries}
    if reads:
        load |= {
            "calls_at_most": ours.calls,
            "prompt_tokens_at_most": ours.tokens,
            "calls_of_the_plain_recipe": paper.calls,
            "prompt_tokens_of_the_plain_recipe": paper.tokens,
        }
    return load


def made_page(summary: dict[str, Any]) -> RenderableType:
    return plain_page({key: value for key, value in summary.items() if value not in ({}, [], "")})


def _failure_rows(failed: dict[str, str]) -> list[RenderableType]:
    return [make_table(("failed", "why"), islice(failed.items(), 10))] if failed else []


def plan_page(plan: TrainingEstimate) -> Table:
    """The table of `--dry-run`."""
    logs = "log.jsonl" + (" and TensorBoard's events" if plan.tensorboard else "")
    return plain_table(
        [
            ("samples", f"{plan.samples:,}, and {plan.long:,} left out for their length"),
            ("tokens", f"{plan.tokens:,}, the longest sample {plan.longest:,}"),
            ("steps", f"{plan.steps:,}"),
            ("parameters", f"{plan.parameters:,}, of which {plan.trained:,} are trained"),
            ("memory", f"about {plan.memory / 2**30:.1f} GiB"),
            ("time", f"about {_format_time(plan.seconds)}, by one micro-batch"),
            ("logs", logs),
            *((f"source {one.name}", _source_row(one)) for one in plan.sources),
        ]
    )


def tuned_page(tuned: TuningResult) -> Table:
    """The results of a training."""
    began = f", from step {tuned.resumed:,}" if tuned.resumed else ""
    return plain_table(
        [
            ("steps", f"{tuned.steps:,}{began}"),
            ("loss", f"{tuned.first:.4f} at first, {tuned.last:.4f} at last"),
            ("time", _format_time(tuned.seconds)),
            *_perplexity_rows(tuned),
        ]
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
