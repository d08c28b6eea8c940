"""`osler train tune|export`: weights that change (extra `train`)."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from osler.cli.progress import show_progress
from osler.cli.session import CliSession
from osler_lab.cli.options_train import Base, Result, TrainingData, TuningOptions

if TYPE_CHECKING:
    from osler_lab.train.tune.corpus import Corpus
    from osler_lab.train.tune.jobs import Kind
    from osler_lab.train.tune.recipe import TuningRecipe


def tune(
    here: CliSession,
    way: Annotated[
        Literal["sft", "dpo", "thinker", "pretrain"],
        typer.Argument(
            help="sft: replies, by LoRA (Omni-RAG Eq. 2); dpo: which of two replies is better, by"
            " LoRA (Eq. 3-4); thinker: all turns of dialogues, all weights (KAG-Thinker App. 11);"
            " pretrain: every next token of a mixed corpus, all weights (TC-RAG App. 8.3)."
        ),
    ],
    data: TrainingData,
    out: Result,
    adapter: Annotated[
        Path | None,
        typer.Option(help="Go on from this adapter; for dpo it is the reference, too."),
    ] = None,
    lora: Annotated[
        bool | None, typer.Option("--lora/--full", help="LoRA or all weights, whatever is usual.")
    ] = None,
    skip_long: Annotated[
        bool,
        typer.Option("--skip-long", help="Leave longer samples out, instead of refusing them."),
    ] = False,
    beta: Annotated[float | None, typer.Option(help="dpo: beta of Eq. 4; 0.1 by default.")] = None,
    weight: Annotated[
        list[str] | None,
        typer.Option(help="pretrain: NAME=N, the source's share of what is read; else its size."),
    ] = None,
    held_out: Annotated[
        float | None,
        typer.Option(help="pretrain: share of the texts held out to measure perplexity, 0.02."),
    ] = None,
    *,
    options: TuningOptions,
) -> None:
    """Tune a model on training data. A stopped training resumes."""
    _refuse_others(way, {"dpo": beta, "pretrain": weight or held_out})
    if (adapter and way == "pretrain") or (lora is False and way == "dpo"):
        raise typer.BadParameter(f"{way} takes no {'--adapter' if adapter else '--full'}")
    start = _start_recipe(way, lora, adapter, beta)
    if way == "pretrain":
        read: Path | Corpus = _read_corpus(here, data, weight or [], held_out)
    elif len(data) == 1:
        read = Path(data[0])
    else:
        raise typer.BadParameter("name one folder, or one file")
    _run_tuning(here, way, read, out, start, options, adapter=adapter, skip_long=skip_long)


def _refuse_others(way: str, own: dict[str, object]) -> None:
    """Raises a usage error for an option that belongs to another way."""
    for name, value in own.items():
        if value is not None and name != way:
            raise typer.BadParameter(f"an option of {name} is given with {way}")


def _start_recipe(
    way: str, lora: bool | None, adapter: Path | None, beta: float | None
) -> TuningRecipe:
    """The paper's values for a way, with LoRA or without."""
    from osler_lab.train.tune import recipe

    start = {
        "sft": recipe.OMNI_SFT,
        "dpo": recipe.OMNI_DPO.with_changes(beta=beta),
        "thinker": recipe.THINKER,
        "pretrain": recipe.PRETRAIN,
    }[way]
    if lora is False:
        return replace(start, lora=None)
    if start.lora is None and (lora or adapter):
        # What is trained is small then: nothing need be computed twice.
        start = replace(start, lora=recipe.LoraSettings())
        return replace(start, recompute=False) if way == "thinker" else start
    return start


def _read_corpus(
    here: CliSession, words: list[str], weights: list[str], held_out: float | None
) -> Corpus:
    from osler.errors import BadConfig
    from osler_lab.train.tune.corpus import HELD_OUT, Corpus, parse_source

    weighed = dict(map(_parse_weight, weights))
    sources = tuple(parse_source(one, here.load_settings().kb.path, weighed) for one in words)
    if unknown := weighed.keys() - {one.name for one in sources}:
        raise BadConfig(
            f"a weight for {', '.join(sorted(unknown))}, which is not a source",
            fix=f"the sources are {', '.join(one.name for one in sources)}",
        )
    return Corpus(sources, HELD_OUT if held_out is None else held_out)


def _parse_weight(word: str) -> tuple[str, float]:
    from osler.errors import BadConfig

    name, _, number = word.rpartition("=")
    try:
        return name, float(number)
    except ValueError:
        raise BadConfig(f"{word!r} is not a weight", fix="write NAME=2.5") from None


def _tune_recipe(start: TuningRecipe, options: TuningOptions) -> TuningRecipe:
    """The recipe with what was given on the command line."""
    batch, micro = options.batch or start.batch, options.micro
    if micro is None and batch % start.micro:
        # A small batch that was asked for is worked on in one piece, or one by one.
        micro = batch if batch < start.micro else 1
    lora = start.lora
    if lora is not None:
        rank = options.rank or lora.rank
        # Alpha is twice the rank, so that another rank keeps the size of an update.
        lora = replace(lora, rank=rank, alpha=2 * rank, dropout=0.0, top=options.layers)
    recipe = replace(
        start,
        lora=lora,
        precision=options.precision,
        recompute=options.recompute or start.recompute,
    )
    return recipe.with_changes(
        epochs=options.epochs,
        learning_rate=options.learning_rate,
        batch=options.batch,
        micro=micro,
        max_tokens=options.max_tokens,
        seed=options.seed,
        save_every=options.save_every,
    )


def _base_weights(given: str | None) -> tuple[Any, str]:
    """The weights and their name for cards."""
    from osler.llm.local.gguf_files import default_gguf
    from osler.llm.transformers.hub import PinnedModel

    if given is None:
        return default_gguf(), "HuggingFaceTB/SmolLM2-135M-Instruct"
    # A folder may have an @ in its name; only what is no path is a hub id.
    if not Path(given).exists() and "@" in given:
        owner, _, revision = given.partition("@")
        return PinnedModel(owner, revision), owner
    return Path(given), ""


def _run_tuning(
    here: CliSession,
    kind: Kind,
    data: Path | Corpus,
    out: Path,
    start: TuningRecipe,
    options: TuningOptions,
    *,
    adapter: Path | None = None,
    skip_long: bool = False,
) -> None:
    from osler_lab.train.tune import jobs

    base, name = _base_weights(options.base)
    job = jobs.TuningJob(
        kind,
        base,
        data,
        out,
        _tune_recipe(start, options),
        adapter=adapter,
        skip_long=skip_long,
        threads=options.threads,
        name=name,
    )
    if options.dry_run:
        with show_progress(here) as progress:
            estimate = jobs.dry_run(job, progress)
        here.show(asdict(estimate))
        return
    with show_progress(here) as progress:
        tuned = jobs.run_tuning(job, progress)
    document = {**asdict(tuned), "folder": str(job.folder)}
    before, after = tuned.perplexity or ({}, {})
    learnt = {
        f"perplexity, {name}": f"{value:,.2f} before, {after[name]:,.2f} after"
        for name, value in before.items()
    }
    here.show(document, {**document, "perplexity": "", **learnt})
    here.print_line(f"written to {job.folder}")


def export(
    here: CliSession,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            help="FILE.gguf for the embedded engine; else a folder for transformers and vLLM.",
        ),
    ],
    adapter: Annotated[
        Path | None,
        typer.Option(help="Folder of an adapter: it is merged with its base."),
    ] = None,
    base: Base = None,
    like: Annotated[
        Path | None,
        typer.Option(
            help="GGUF file of the base model; else the base itself, or the packaged one."
        ),
    ] = None,
    storage: Annotated[
        Literal["f32", "f16", "q8_0"],
        typer.Option(
            help="Storage type of the matrices; q8_0 may round away what a small adapter learnt."
        ),
    ] = "f16",
) -> None:
    """Write a tuned model whole: as a GGUF file, or as a folder with its adapter merged."""
    from osler.llm.local.gguf_files import default_gguf
    from osler_lab.train.tune import export as files

    weights, _ = _base_weights(base)
    if out.suffix != ".gguf":
        if adapter is None:
            raise typer.BadParameter("a folder is written of an --adapter and its base")
        _show_written(here, files.merge_adapter(weights, adapter, out))
        return
    if like is None:
        own = isinstance(weights, Path) and weights.suffix == ".gguf"
        like = weights if own else default_gguf()
    _show_written(here, files.write_gguf(weights, like, out, adapter=adapter, storage=storage))


def _show_written(here: CliSession, path: Path) -> None:
    files = path.rglob("*") if path.is_dir() else (path,)
    size = sum(file.stat().st_size for file in files if file.is_file())
    here.show({"path": str(path), "bytes": size})
