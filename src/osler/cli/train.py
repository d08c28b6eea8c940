"""`osler train …`: what models learn from, and how they learn it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from osler.cli import train_thinker
from osler.cli.progress import progress
from osler.cli.session import Json, Quiet, Session, session
from osler.cli.train_make import agree, card, make_dpo, make_sft

if TYPE_CHECKING:
    from osler.train.spo.case import Case, Part
    from osler.wiring.training import Exploring, Judging, Work

app = typer.Typer(no_args_is_help=True)
app.command("make-sft")(make_sft)
app.command("make-dpo")(make_dpo)
app.command()(card)
app.command()(agree)
app.command("thinker-data")(train_thinker.thinker_data)
app.command("evaluate-data")(train_thinker.evaluate_data)
app.command()(train_thinker.recogniser)


LogDir = Annotated[
    Path, typer.Option("--log-dir", help="Folder of the job; it is also the checkpoint.")
]
Jobs = Annotated[int, typer.Option(min=1, max=256, help="Questions at once, in each worker.")]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Processes, or tasks of a Ray cluster, on one folder.")
]
On = Annotated[str, typer.Option(help="Where workers run: processes or ray (extra ray).")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what it would take, and do nothing.")]


@app.command()
def explore(
    context: typer.Context,
    log_dir: LogDir,
    questions: Annotated[
        Path | None,
        typer.Option(
            help="Questions as JSON Lines: question, answer, and options, documents (ids), task,"
            " id where there are any."
        ),
    ] = None,
    tasks: Annotated[
        str | None, typer.Option(help='Data sets instead, as for `osler eval run`: "bioasq".')
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder with the files of the data sets, as published.")
    ] = None,
    by: Annotated[
        str,
        typer.Option(
            help="expert: the model in the role planner; wording: the question's own words,"
            " without a model."
        ),
    ] = "expert",
    queries: Annotated[
        int, typer.Option(min=1, max=20, help="Queries a source (Omni-RAG App. A.1).")
    ] = 6,
    part: Annotated[
        str,
        typer.Option(help="train, held-out or all; by a hash of the question's words."),
    ] = "train",
    held_out: Annotated[
        float, typer.Option(min=0, max=0.9, help="Share of the questions that are held out.")
    ] = 0.2,
    limit: Annotated[int | None, typer.Option(min=1, help="Questions, at most.")] = None,
    sources: Annotated[
        str | None, typer.Option(help='Sources on offer, as in "book,guideline".')
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Same seed, same split.")] = None,
    jobs: Jobs = 1,
    workers: Workers = None,
    on: On = "processes",
    dry_run: DryRun = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Propose diverse queries for each source, and search them (Omni-RAG §4.2.1).

    What the folder holds is not done again. Exit code 6: some questions failed.
    """
    here = session(context, as_json=as_json, quiet=quiet)
    flags = {"strategy.kind": "omni-rag", "kb.sources": sources, "sampling.seed": seed}
    settings = here.settings(flags)
    from osler import wiring
    from osler.train.spo.job import explored_in
    from osler.wiring import training

    cases = _cases(questions, tasks, data, _part(part), held_out, settings.sampling.seed)
    cases = cases[:limit]
    work = training.Exploring(settings, log_dir, tuple(cases), training.by_named(by), queries, jobs)
    if dry_run:
        _say_exploring(here, work)
        return
    _run(here, work, workers, on)
    from osler.cli.train_pages import explored_page, explored_summary

    found = explored_summary(explored_in(log_dir), wiring.encoder(settings))
    here.show(explored_page(found), {"log": str(log_dir), **found})
    here.say(f"next: osler train judge --log-dir {log_dir}")
    _partial(found)


def _cases(
    questions: Path | None,
    tasks: str | None,
    data: Path | None,
    part: Part,
    share: float,
    seed: int,
) -> list[Case]:
    from osler.errors import BadConfig
    from osler.train.spo.case import cases_of, of_part, read_cases

    if (questions is None) == (tasks is None):
        raise BadConfig("give either --questions or --tasks")
    if questions is not None:
        cases = read_cases(questions)
    else:
        from osler.trials import read_task

        words = [word.strip() for word in (tasks or "").split(",") if word.strip()]
        cases = [case for word in words for case in cases_of(read_task(word, data).samples)]
    found = of_part(cases, part, seed=seed, held_out=share)
    if not found:
        raise BadConfig(
            f"none of {len(cases)} questions is in the part {part}", fix="change --held-out"
        )
    return found


def _part(word: str) -> Part:
    from osler.errors import BadConfig
    from osler.train.spo.case import PARTS

    for part in PARTS:
        if part == word:
            return part
    raise BadConfig(f"there is no part {word!r}", fix=f"choose of {', '.join(PARTS)}")


@app.command()
def judge(
    context: typer.Context,
    log_dir: LogDir,
    by: Annotated[
        str | None,
        typer.Option(
            help="gold: known gold documents; answer: the gold answer's words in what was found;"
            " gold-or-answer: the second where no documents are known; model: the prompt of"
            " Omni-RAG E.4 (role judge);"
            " likelihood: one word's probability; improvement: of the reader; rerank: a score"
            " over a threshold."
        ),
    ] = None,
    unit: Annotated[
        str,
        typer.Option(
            help="What a model judges at once: list (ten documents, each once however many"
            " queries found it), document (one), or set (a query's documents, as in the paper)."
        ),
    ] = "list",
    least: Annotated[
        float | None,
        typer.Option(help="Threshold of likelihood and answer (0.5), and of rerank (2.3)."),
    ] = None,
    ablation: Annotated[
        str | None, typer.Option(help='A judge of an ablation, as in "judges:rafe".')
    ] = None,
    jobs: Jobs = 1,
    workers: Workers = None,
    on: On = "processes",
    dry_run: DryRun = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say which queries found what supports the gold answer (Omni-RAG §4.2.2).

    Several judges may judge one folder. Exit code 6: some questions failed.
    """
    here = session(context, as_json=as_json, quiet=quiet)
    from osler.cli.session import settings_of
    from osler.train import ablations
    from osler.wiring import training

    row = ablations.variant(ablation) if ablation else None
    settings = here.settings(
        {"strategy.kind": "omni-rag", **(settings_of(row.settings) if row else {})}
    )
    named = training.judge_named(by or (row.judge if row else "") or "model")
    work = training.Judging(settings, log_dir, named, training.unit_named(unit), least, jobs)
    if dry_run:
        _say_judging(here, work)
        return
    name = _run(here, work, workers, on)
    from osler.cli.train_pages import judged_page, judged_summary
    from osler.train.spo.job import judged_in

    found = judged_summary(name, judged_in(log_dir, name))
    here.show(judged_page(found), {"log": str(log_dir), **found})
    here.say(f"next: osler train make-sft --log-dir {log_dir} --out FOLDER")
    _partial(found)


def _run(here: Session, work: Work, workers: int | None, on: str) -> str:
    """The name of who did it."""
    from osler.errors import BadConfig
    from osler.wiring import training

    if on not in ("processes", "ray"):
        raise BadConfig(f"nothing runs on {on!r}", fix="choose of processes, ray")
    if on == "ray" or (workers or 1) > 1:
        return training.on_workers(work, "ray" if on == "ray" else "processes", workers)
    with progress(here) as report:
        return asyncio.run(work.run(report))


def _partial(found: dict[str, Any]) -> None:
    from osler.cli.session import PARTIAL

    if found["failed"]:
        raise typer.Exit(PARTIAL)


def _say_exploring(here: Session, work: Exploring) -> None:
    from osler.cli.train_pages import plain_page
    from osler.train.spo.job import explored_in
    from osler.wiring import training

    offers = training.sources_on_offer(work.settings)
    held = explored_in(work.folder).places() if work.folder.is_dir() else {}
    left = sum(case.key not in held for case in work.cases)
    found = {
        "questions": len(work.cases),
        "done": len(work.cases) - left,
        "sources": [offer.name for offer in offers],
        "calls": left if work.by == "expert" else 0,
        "searches": left * len(offers) * work.queries,
    }
    here.show(plain_page(found), found)


def _say_judging(here: Session, work: Judging) -> None:
    from osler.cli.train_pages import judging_load, plain_page

    found = judging_load(work.folder, work.by, work.unit)
    here.show(plain_page(found), found)
