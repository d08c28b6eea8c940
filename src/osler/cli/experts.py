"""`osler experts …`: small trained parts, what they are worth, and which of them are in use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from osler.cli.progress import show_progress
from osler.cli.session import CliSession

if TYPE_CHECKING:
    from osler.train.experts.jobs import ExpertJob, JobChoices

ExpertName = Annotated[str, typer.Argument(help="Name of the expert: judge, match, supports.")]
ExpertFolder = Annotated[
    Path | None, typer.Option(help="An expert of your own; else the one that comes with Osler.")
]
TrainingData = Annotated[
    Path, typer.Option(help="Folder that holds the data sets, as published, at any depth.")
]
WorkFolder = Annotated[
    Path | None, typer.Option(help="Folder of checkpoints: a stopped training goes on there.")
]
SplitFile = Annotated[Path, typer.Option(help="Hashes of the train, dev and test items.")]


def list_experts(here: CliSession) -> None:
    """List the experts that come with Osler: what each decides, its size, and whether it is in
    use."""
    settings = here.load_settings()
    from osler.app.wiring.experts import expert_in_use
    from osler.cli.expert_pages import experts_page
    from osler.retrieve.experts.shelf import packaged_experts

    rows = [(one, expert_in_use(settings, one.card.name)) for one in packaged_experts()]
    document = [
        {"name": one.card.name, "question": one.card.question, "bytes": one.bytes, "use": use}
        for one, use in rows
    ]
    here.show_result(experts_page(rows), {"experts": document})


def show(here: CliSession, name: ExpertName, folder: ExpertFolder = None) -> None:
    """Show an expert's card: base, data, figures beside the rule, and what it is bad at."""
    from osler.cli.expert_pages import card_page
    from osler.retrieve.experts.shelf import open_expert

    found = open_expert(name, folder)
    here.show_result(card_page(found), found.card.model_dump(mode="json"))


def train(
    here: CliSession,
    name: Annotated[
        str, typer.Argument(help="judge, match, supports, or teacher of the first two.")
    ],
    data: TrainingData,
    out: Annotated[
        Path, typer.Option(help="Folder for weights and card; a teacher's is the others' --work.")
    ],
    split: SplitFile,
    work: WorkFolder = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Steps, instead of the default (not of supports).")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same expert.")] = 0,
    threads: Annotated[int, typer.Option(min=1, help="Threads that compute.")] = 1,
    device: Annotated[
        str, typer.Option(help="What computes, as torch names it: cpu, cuda (not supports).")
    ] = "cpu",
    teacher: Annotated[
        Path | None, typer.Option(help="Folder of a larger encoder that teaches judge or match.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, max=3, help="Teachers that are averaged; 3 by default.")
    ] = None,
) -> None:
    """Train an expert on the train part of the data (extra train for judge and match).

    The dev part calibrates it; the test part is not read. A stopped training goes on when the
    same command is given again. With --teacher, the larger encoder is tuned first, once for all
    that share --work; `osler experts train teacher` does that alone.
    """
    from osler.train.experts.jobs import JobChoices, teach_cases
    from osler.train.experts.teacher import TEACHER

    chosen = JobChoices(threads, device, steps, seed, teacher, seeds)
    if name == TEACHER:
        with show_progress(here) as report:
            scored = teach_cases(data, split, out, chosen, report)
        said = f"{out}: {scored} texts scored; next: osler experts train judge … --work {out}"
        here.report_line(said, {"path": str(out), "texts": scored})
        return
    job = _open_job(name, data, split, out, work, chosen)
    with show_progress(here) as report:
        card = job.train(report)
    from osler.cli.expert_pages import card_page
    from osler.retrieve.experts.shelf import open_expert

    here.show_result(card_page(open_expert(name, out)), card.model_dump(mode="json"))
    here.print_line(
        f"next: osler experts evaluate {name} --folder {out} --data {data} --split {split}"
    )


def evaluate(
    here: CliSession,
    name: ExpertName,
    data: TrainingData,
    split: SplitFile,
    folder: Annotated[Path, typer.Option(help="The expert's folder; its card gets the figures.")],
    limit: Annotated[
        int | None, typer.Option(min=1, help="At most so many questions of each task.")
    ] = None,
    work: WorkFolder = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads that compute.")] = 1,
) -> None:
    """Measure an expert on the test part, beside the rule that it replaces, with intervals."""
    from osler.train.experts.jobs import JobChoices

    job = _open_job(name, data, split, folder, work, JobChoices(threads))
    with show_progress(here) as report:
        card = job.evaluate(report, limit=limit)
    from osler.cli.expert_pages import card_page
    from osler.retrieve.experts.shelf import open_expert

    here.show_result(card_page(open_expert(name, folder)), card.model_dump(mode="json"))


def export(
    here: CliSession,
    name: ExpertName,
    out: Annotated[Path, typer.Option(help="Folder to write to; it must not exist yet.")],
    folder: ExpertFolder = None,
) -> None:
    """Write an expert to a folder of its own: card and weights, and a pair model as ONNX."""
    from osler.app.wiring.experts import export_expert

    files = export_expert(name, folder, out)
    here.report_line(f"{out}: {', '.join(files)}", {"path": str(out), "files": files})


def use(here: CliSession, name: ExpertName, folder: ExpertFolder = None) -> None:
    """Put an expert in the place of its rule: written into the settings file."""
    from osler.retrieve.experts.shelf import open_expert

    card = open_expert(name, folder).card
    _write_choice(here, name, folder.resolve() if folder else None, used=True)
    for figure in card.figures:
        if figure.gain is not None and figure.gain.high < 0:
            gain = f"{figure.measure} {figure.gain}, n = {figure.n}"
            here.print_line(f"the rule is better there: {figure.on}: {gain}")


def off(here: CliSession, name: ExpertName) -> None:
    """Give an expert's rule back: written into the settings file."""
    _write_choice(here, name, None, used=False)


def _write_choice(here: CliSession, name: str, folder: Path | None, *, used: bool) -> None:
    from osler.app.wiring.experts import write_choice

    path = Path.cwd() / (here.file or "osler.toml")
    written = write_choice(path, name, folder, used=used)
    document = {"path": str(path), "expert": name, "used": used, "set": written}
    here.report_line(f"{path}: {written}", document)


def _open_job(
    name: str, data: Path, split: Path, out: Path, work: Path | None, chosen: JobChoices
) -> ExpertJob:
    from osler.train.experts.jobs import make_job

    return make_job(name, data, split, out, work or out.with_name(f"{out.name}.work"), chosen)
