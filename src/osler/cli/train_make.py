"""`osler train make-sft|make-dpo|card|agree`: records of what was judged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from osler.cli.session import Json, Quiet, Session, session

if TYPE_CHECKING:
    from osler.train.record import Kind
    from osler.train.spo.recipe import Recipe

LogDir = Annotated[Path, typer.Option("--log-dir", help="Folder that was explored and judged.")]
Out = Annotated[Path, typer.Option(help="Folder for data.jsonl and its card, README.md.")]
JudgedBy = Annotated[
    str, typer.Option("--judge", help="Which judge, by the beginning of its name; if several.")
]
Ablation = Annotated[
    str | None,
    typer.Option(help='A row of a training ablation, as in "data-ratio:0.25" or FILE.toml:ROW.'),
]
Ratio = Annotated[float, typer.Option(min=0.001, max=1, help="Share of the questions.")]
Tasks = Annotated[list[str] | None, typer.Option(help="Leave a task out; repeatable.")]
Sources = Annotated[
    list[str] | None, typer.Option(help="Leave a source out of prompts and plans; repeatable.")
]
Choice = Annotated[
    str, typer.Option(help="Of more than three queries: random, as in the paper, or best.")
]
Prompt = Annotated[
    str,
    typer.Option(
        help="What the planner is asked: full, as in the paper, or brief, for small ones."
    ),
]
Queries = Annotated[
    int, typer.Option(min=1, max=20, help="Of a source in one plan, at most; 3 in the paper.")
]
Seed = Annotated[int, typer.Option(min=0, help="Same seed, same plans.")]
Longest = Annotated[
    int, typer.Option(min=1, help="Tokens of prompt and plan; longer records are left out.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Count, and write nothing.")]


def make_sft(
    context: typer.Context,
    log_dir: LogDir,
    out: Out,
    judged_by: JudgedBy = "",
    ablation: Ablation = None,
    negative: Annotated[
        bool, typer.Option("--negative", help="Learn the negative plans (Omni-RAG Table 10).")
    ] = False,
    ratio: Ratio = 1.0,
    without_task: Tasks = None,
    without_source: Sources = None,
    choice: Choice = "random",
    prompt: Prompt = "full",
    queries: Queries = 3,
    seed: Seed = 0,
    longest: Longest = 4096,
    dry_run: DryRun = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write prompts and positive plans, for supervised fine-tuning (Omni-RAG Eq. 2)."""
    here = session(context, as_json=as_json, quiet=quiet)
    from osler.train import ablations

    given = {
        "ratio": ratio,
        "without_tasks": tuple(without_task or ()),
        "without_sources": tuple(without_source or ()),
        "choice": _choice(choice),
        "form": _form(prompt),
        "at_most": queries,
        "learns": "negative" if negative else "positive",
        "seed": seed,
        "longest": longest,
    }
    recipe = _recipe(log_dir, given)
    if ablation:
        recipe = ablations.variant(ablation).recipe(recipe, "sft")
    _make(here, "sft", log_dir, out, judged_by, recipe, ablation or "", dry_run=dry_run)


def make_dpo(
    context: typer.Context,
    log_dir: LogDir,
    out: Out,
    judged_by: JudgedBy = "",
    ablation: Ablation = None,
    ratio: Ratio = 1.0,
    without_task: Tasks = None,
    without_source: Sources = None,
    choice: Choice = "random",
    prompt: Prompt = "full",
    queries: Queries = 3,
    seed: Seed = 0,
    longest: Longest = 4096,
    dry_run: DryRun = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write prompts with a better and a worse plan, for DPO (Omni-RAG Eq. 3-4)."""
    here = session(context, as_json=as_json, quiet=quiet)
    from osler.train import ablations

    given = {
        "ratio": ratio,
        "without_tasks": tuple(without_task or ()),
        "without_sources": tuple(without_source or ()),
        "choice": _choice(choice),
        "form": _form(prompt),
        "at_most": queries,
        "seed": seed,
        "longest": longest,
    }
    recipe = _recipe(log_dir, given)
    if ablation:
        recipe = ablations.variant(ablation).recipe(recipe, "dpo")
    _make(here, "dpo", log_dir, out, judged_by, recipe, ablation or "", dry_run=dry_run)


def _choice(word: str) -> str:
    from osler.errors import BadConfig
    from osler.train.spo.pairs import CHOICES

    if word not in CHOICES:
        raise BadConfig(f"there is no choice {word!r}", fix=f"choose of {', '.join(CHOICES)}")
    return word


def _form(word: str) -> str:
    from osler.errors import BadConfig
    from osler.omni.planners.prompting import FORMS

    if word not in FORMS:
        raise BadConfig(f"there is no prompt {word!r}", fix=f"choose of {', '.join(FORMS)}")
    return word


def _recipe(log_dir: Path, given: dict[str, Any]) -> Recipe:
    from osler.errors import BadConfig
    from osler.train.spo.job import offers_of
    from osler.train.spo.recipe import Recipe

    offers = offers_of(log_dir)
    names = [offer.name for offer in offers]
    if unknown := [name for name in given["without_sources"] if name not in names]:
        raise BadConfig(f"{unknown[0]!r} was not explored", fix=f"it has {', '.join(names)}")
    return Recipe(offers, **given)


def _make(
    here: Session,
    kind: Kind,
    log_dir: Path,
    out: Path,
    judged_by: str,
    recipe: Recipe,
    ablation: str,
    *,
    dry_run: bool,
) -> None:
    from osler.cli.train_pages import made_page
    from osler.train.card import keep_facts, write_card
    from osler.train.record import write
    from osler.train.spo import recipe as recipes
    from osler.train.spo.job import chosen_judge, exploration_of

    name, stage = chosen_judge(log_dir, judged_by)
    made = recipes.Made()
    records = (recipes.sft if kind == "sft" else recipes.dpo)(recipe, stage.results(), made)
    lines = (record.line for record in records)
    if dry_run:
        for _ in lines:
            pass
    else:
        write(out, lines)
    found = _told(made)
    if not dry_run:
        explored = exploration_of(log_dir)
        keep_facts(out, recipes.facts(recipe, made, explored, name, ablation))
        write_card(out)
    here.show(made_page(found), {"out": str(out), "judge": name, **found})
    if not dry_run:
        here.say(f"written to {out}; next: osler train {kind} {out}")


def _told(made: Any) -> dict[str, Any]:
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


def card(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="Folder of records.")],
    title: Annotated[str, typer.Option(help="The data set's name.")] = "",
    licence: Annotated[str, typer.Option(help="A licence as the hub words it.")] = "other",
    write: Annotated[bool, typer.Option("--write", help="Write it as README.md.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show or write the card of a data set, in the form of the Hugging Face hub."""
    here = session(context, as_json=as_json, quiet=quiet)
    from osler.train import card as cards

    make = cards.write_card if write else cards.card
    text = make(folder, title=title, licence=licence)
    here.show(text, {"card": text})


def agree(
    context: typer.Context,
    log_dir: LogDir,
    judged_by: JudgedBy = "",
    reference: Annotated[
        str, typer.Option(help="The judge that is taken to be right, by its name's beginning.")
    ] = "",
    people: Annotated[
        Path | None,
        typer.Option(help="Or people: CSV with case, source, query, verdict (yes or no)."),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Hold one judge's verdicts against another's, or people's (Omni-RAG Table 9)."""
    here = session(context, as_json=as_json, quiet=quiet)
    from dataclasses import asdict

    from osler.cli.train_pages import plain_page
    from osler.errors import BadConfig
    from osler.train.spo import agree as comparing
    from osler.train.spo.job import chosen_judge

    if bool(reference) == (people is not None):
        raise BadConfig("give either --reference or --people")
    name, stage = chosen_judge(log_dir, judged_by)
    if people is not None:
        against, true = str(people), comparing.read_people(people)
    else:
        against, other = chosen_judge(log_dir, reference)
        true = comparing.verdicts(other.results())
    found = asdict(comparing.compared(comparing.verdicts(stage.results()), true))
    told = {"judge": name, "reference": against, **found}
    here.show(plain_page(told), told)
