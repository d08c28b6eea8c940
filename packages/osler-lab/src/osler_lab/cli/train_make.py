"""`osler train make`: records of what was judged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from osler.cli.session import CliSession
from osler_lab.cli.options_train import (
    Ablation,
    CountOnly,
    JudgedBy,
    JudgedFolder,
    Records,
    SelectionOptions,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from osler_lab.train.record import Kind
    from osler_lab.train.spo.recipe import RecordRecipe


def make(
    here: CliSession,
    kind: Annotated[
        Literal["sft", "dpo"],
        typer.Argument(help="sft: positive plans (Eq. 2); dpo: a better and a worse (Eq. 3-4)."),
    ],
    log_dir: JudgedFolder,
    out: Records,
    judged_by: JudgedBy = "",
    ablation: Ablation = None,
    negative: Annotated[
        bool,
        typer.Option("--negative", help="sft: learn the negative plans (Omni-RAG Table 10)."),
    ] = False,
    *,
    selection: SelectionOptions,
    dry_run: CountOnly = False,
) -> None:
    """Write prompts with plans, for supervised fine-tuning or for DPO (Omni-RAG Eq. 2-4)."""
    recipe = _record_recipe(log_dir, selection)
    if negative:
        recipe = replace(recipe, learns="negative")
    _make_records(here, kind, log_dir, out, judged_by, recipe, ablation, dry_run=dry_run)


def _record_recipe(log_dir: Path, selection: SelectionOptions) -> RecordRecipe:
    from osler_lab.train.spo.job import offers_of
    from osler_lab.train.spo.recipe import RecordRecipe

    offers = offers_of(log_dir)
    names = [offer.name for offer in offers]
    left_out = tuple(selection.without_source or ())
    _require_explored(left_out, names)
    return RecordRecipe(
        offers,
        seed=selection.seed,
        at_most=selection.queries,
        ratio=selection.ratio,
        without_tasks=tuple(selection.without_task or ()),
        without_sources=left_out,
        longest=selection.longest,
    )


def _require_explored(left_out: Sequence[str], names: Sequence[str]) -> None:
    """Raises `BadConfig` for a source that is to be left out and was never asked."""
    from osler.errors import BadConfig

    if unknown := [name for name in left_out if name not in names]:
        raise BadConfig(f"{unknown[0]!r} was not explored", fix=f"it has {', '.join(names)}")


def _make_records(
    here: CliSession,
    kind: Kind,
    log_dir: Path,
    out: Path,
    judged_by: str,
    recipe: RecordRecipe,
    ablation: str | None,
    *,
    dry_run: bool,
) -> None:
    from osler_lab.train import ablations
    from osler_lab.train.record import write_records
    from osler_lab.train.spo import recipe as recipes
    from osler_lab.train.spo.job import chosen_judge, exploration_of

    if ablation:
        recipe = ablations.read_variant(ablation).recipe(recipe, kind)
        _require_explored(recipe.without_sources, [offer.name for offer in recipe.offers])
    name, stage = chosen_judge(log_dir, judged_by)
    made = recipes.RecordTally()
    records = (recipes.sft_records if kind == "sft" else recipes.dpo_records)(
        recipe, stage.results(), made
    )
    lines = (record.line for record in records)
    # Records are made lazily and counted as they pass; a dry run lets them pass.
    if dry_run:
        for _ in lines:
            pass
    else:
        write_records(out, lines)
    document = _record_document(made)
    if not dry_run:
        explored = exploration_of(log_dir)
        facts = recipes.recipe_facts(recipe, made, explored, name, ablation or "")
        recipes.write_record_card(out, kind, made, facts)
    here.show({"out": str(out), "judge": name, **document})
    if not dry_run:
        here.print_line(f"written to {out}; next: osler train tune {kind} {out}")


def _record_document(made: Any) -> dict[str, Any]:
    size = made.size
    return {
        "questions": made.cases,
        "records": size.records,
        "left_out": dict(made.left_out),
        "tasks": dict(made.tasks),
        "queries": dict(made.queries),
        "prompt_tokens": size.prompt,
        "reply_tokens": size.reply,
        "longest": size.longest,
    }
