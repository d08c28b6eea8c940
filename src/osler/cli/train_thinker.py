"""`osler train thinker-data`, `evaluate-data` and `recogniser`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from osler.cli.progress import progress
from osler.cli.session import Json, Quiet, Session, session

if TYPE_CHECKING:
    from rich.table import Table

    from osler.evaluate.sample import Sample
    from osler.train.thinker.export import Tally

Stage = Literal["logical-form", "deep-search", "thinker"]


def thinker_data(
    context: typer.Context,
    log_dir: Annotated[
        Path, typer.Option("--log-dir", help="Folder of the job; it is also the checkpoint.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the data set of what was kept here.")
    ] = None,
    tasks: Annotated[
        str | None,
        typer.Option(help='Data sets, as for `osler eval run`: "nq=FILE"; none = only write.'),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder with the files of the data sets, as published.")
    ] = None,
    stage: Annotated[
        Stage, typer.Option(help="Plans; single-hop searches; or the whole way to the answer.")
    ] = "thinker",
    boundary: Annotated[
        Literal["both", "twice", "none"],
        typer.Option(
            help="What the reader knows: by both signals; confirmed twice (medical); not asked."
        ),
    ] = "both",
    inspect: Annotated[
        Literal["rules", "model", "both", "none"],
        typer.Option(help="Who judges quality: rules, the role judge, one after the other."),
    ] = "rules",
    grade: Annotated[
        bool, typer.Option("--grade", help="The role judge grades what no formula can.")
    ] = False,
    restructure: Annotated[
        bool, typer.Option(help="Have reasons reworded as thoughts, a call for each search.")
    ] = True,
    rounds: Annotated[
        int, typer.Option(min=1, max=100, help="Tries of each question by this teacher.")
    ] = 3,
    layout: Annotated[
        Literal["dialogue", "calls"],
        typer.Option(help="A chat a question, as the paper; or a sample a call of the solver."),
    ] = "dialogue",
    licence: Annotated[str, typer.Option(help="A word of the hub, for the card.")] = "other",
    part: Annotated[
        Literal["train", "held-out", "all"],
        typer.Option(help="By a hash of the question's words, as in `osler train explore`."),
    ] = "train",
    held_out: Annotated[
        float, typer.Option(min=0, max=0.9, help="Share of the questions that are held out.")
    ] = 0.2,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Questions of each data set, at most.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Same seed, same samples.")] = None,
    jobs: Annotated[int, typer.Option(min=1, max=256, help="Questions at once.")] = 1,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would take, and do nothing.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Have the planner solve questions as KAG-Thinker, and keep what is right as training data.

    What the log folder holds is not done again; several processes and hosts may share it. Exit
    code 6: some tries failed.
    """
    here = session(context, as_json=as_json, quiet=quiet)
    settings = here.settings({"strategy.kind": "kag-thinker", "sampling.seed": seed})
    from osler.train.spo.case import part_of

    seeded = settings.sampling.seed
    samples = [
        sample
        for sample in _samples(tasks, data)
        if part in ("all", part_of(sample.question, seed=seeded, held_out=held_out))
    ]
    samples = _limited(samples, limit, seeded)
    if tasks and not samples:
        from osler.errors import BadConfig

        raise BadConfig(f"no question is in the part {part}", fix="change --part or --held-out")
    if dry_run:
        _say_load(here, log_dir, stage, samples, rounds)
        return
    from osler.train.thinker import export
    from osler.train.thinker.rounds import Class
    from osler.wiring import teaching

    async def work() -> None:
        course = await teaching.course(
            settings,
            stage,
            knows=boundary,
            rounds=rounds,
            by=inspect,
            grades=grade,
            restructure=restructure,
        )
        with progress(here) as report:
            await Class(log_dir, course, jobs, report).run(samples)

    if samples:
        asyncio.run(work())
    told = export.tallies(log_dir)
    written = None
    if out is not None:
        written = export.write(log_dir, out, stages=(stage,), layout=layout, licence=licence)
    here.show(
        _tally_page(told),
        {
            "log": str(log_dir),
            "stages": [asdict(tally) for tally in told],
            "written": asdict(written) if written else None,
        },
    )
    if written is not None:
        here.say(f"{written.lines:,} lines in {written.folder}; next: osler train evaluate-data")
    if any(tally.failed for tally in told):
        from osler.cli.session import PARTIAL

        raise typer.Exit(PARTIAL)


def _samples(tasks: str | None, data: Path | None) -> list[Sample]:
    if not tasks:
        return []
    from osler.trials import read_task

    words = [word.strip() for word in tasks.split(",") if word.strip()]
    return [sample for word in words for sample in read_task(word, data).samples]


def _limited(samples: Sequence[Sample], limit: int | None, seed: int) -> list[Sample]:
    """Of each data set so many, which the seed decides."""
    from osler.evaluate.plan import chosen

    names = dict.fromkeys(sample.task for sample in samples)
    return [
        one for name in names for one in chosen([s for s in samples if s.task == name], limit, seed)
    ]


def _say_load(
    here: Session, folder: Path, stage: Stage, samples: Sequence[Sample], rounds: int
) -> None:
    """What is left to do, by the mean of what was done, where anything was."""
    from osler.train.thinker.load import load_of

    found = load_of(folder, stage, samples, rounds)
    rows = [(name.replace("_", " "), f"{value:,}") for name, value in asdict(found).items()]
    here.show(_table(("", ""), rows), asdict(found))


def _tally_page(told: Sequence[Tally]) -> Table:
    rows = []
    for tally in told:
        rows += [
            (tally.stage, ""),
            ("  questions", f"{tally.questions:,}"),
            ("  kept", f"{tally.kept:,}"),
            ("  tries", f"{tally.tries:,}, {tally.failed:,} failed"),
            ("  calls", f"{tally.usage.calls:,}"),
            *((f"  dropped: {why}", f"{n:,}") for why, n in tally.dropped.items()),
        ]
    return _table(("", ""), rows)


def evaluate_data(
    context: typer.Context,
    data: Annotated[Path, typer.Argument(help="A folder with data.jsonl, or such a file.")],
    by: Annotated[
        Literal["rules", "model", "both"],
        typer.Option(help="Rules; the role judge; or rules first, and the judge for the rest."),
    ] = "rules",
    verdicts: Annotated[
        Path | None,
        typer.Option(help="Keep verdicts in this file; what it holds is not judged again."),
    ] = None,
    page: Annotated[
        Path | None, typer.Option("--report", help="Write the report as Markdown here.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Samples, at most.")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Judge training data in six dimensions; against labels, where lines have them.

    Exit code 1: some sample is bad.
    """
    here = session(context, as_json=as_json, quiet=quiet)
    from osler.cli.session import ABSTAINED
    from osler.train.thinker import tables
    from osler.train.thinker.quality import read_items
    from osler.train.thinker.verdicts import Judged, judged
    from osler.wiring import teaching

    items = read_items(data)[:limit]
    settings = here.settings()

    async def work() -> Judged:
        inspector = await teaching.data_inspector(settings, by)
        with progress(here) as report:
            return await judged(items, inspector, verdicts, report)

    made = asyncio.run(work())
    told = tables.shares(made.found)
    labelled = any(item.labels for item in items)
    against = tables.validate(items, made.found) if labelled else None
    text = tables.report(told, against)
    if page is not None:
        _write(page, text)
    from rich.markdown import Markdown

    here.show(
        Markdown(text),
        {
            "shares": asdict(told),
            "against": asdict(against) if against else None,
            "bad": {one.id: list(one.reasons) for one in made.found if one.good is False},
            "usage": asdict(made.usage),
        },
    )
    if told.good < told.n:
        raise typer.Exit(ABSTAINED)


def _write(path: Path, text: str) -> None:
    from osler.errors import BadRun

    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadRun(f"{path} cannot be written: {error.strerror}") from error


def _table(names: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Table:
    from rich.table import Table

    table = Table(box=None, show_header=any(names), header_style="bold", pad_edge=False)
    for place, name in enumerate(names):
        table.add_column(name, justify="right" if place else "left")
    for row in rows:
        table.add_row(*row)
    return table


def recogniser(
    context: typer.Context,
    data: Annotated[Path, typer.Argument(help="Marked texts: .jsonl, .json, or BIO columns.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder of the recogniser; else the knowledge base's own."),
    ] = None,
    test: Annotated[
        Path | None, typer.Option(help="Texts to measure on; else a share of the others.")
    ] = None,
    held_out: Annotated[
        float, typer.Option(min=0.01, max=0.9, help="That share, where no --test is given.")
    ] = 0.15,
    epochs: Annotated[int, typer.Option(min=1, max=10_000, help="At most.")] = 40,
    patience: Annotated[
        int, typer.Option(min=1, help="Epochs without a better F1 after which it ends.")
    ] = 8,
    batch: Annotated[int, typer.Option(min=1, help="Sentences at once.")] = 16,
    rate: Annotated[float, typer.Option(min=1e-6, max=1.0, help="Learning rate.")] = 3e-3,
    width: Annotated[int, typer.Option(min=8, max=1024, help="Size of the network.")] = 64,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same weights.")] = 0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would take, and do nothing.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train what finds names of diseases, drugs and the like in texts (extra train).

    In the knowledge base's own folder it links queries with the concept graph from then on.
    """
    here = session(context, as_json=as_json, quiet=quiet)
    from osler.train.recognise.corpus import read
    from osler.train.recognise.link import FOLDER
    from osler.train.recognise.loop import Recipe, prepare, train

    folder = out or here.settings().kb.path / FOLDER
    recipe = Recipe(epochs, patience, batch, rate, held_out=held_out, width=width, seed=seed)
    prepared = prepare(read(data), recipe, read(test) if test else None)
    load = {
        "texts": prepared.texts,
        "held_out": len(prepared.test),
        "types": len(prepared.shape.types),
        "nested": prepared.nested,
        "steps_at_most": prepared.steps(recipe),
        "parameters": prepared.shape.parameters,
        "dropped": prepared.dropped,
    }
    if dry_run:
        told = [(name.replace("_", " "), str(value)) for name, value in load.items()]
        here.show(_table(("", ""), told), load)
        return
    with progress(here) as report:
        made = train(prepared, recipe, log=folder / "log.jsonl", progress=report)
    made.recogniser.save(folder)
    lines = [("all", made.scores.micro), *made.scores.types.items()]
    rows = [
        (name, *(f"{x:.3f}" for x in (one.precision, one.recall, one.f1)), str(one.gold))
        for name, one in lines
    ]
    here.show(
        _table(("type", "precision", "recall", "F1", "n"), rows),
        {"folder": str(folder), **load, **made.recogniser.facts},
    )
    here.say(f"kept in {folder}; F1 is strict, on {len(prepared.test):,} texts held out")
