"""`osler train sft|dpo|thinker|pretrain|merge|gguf`: weights that change (extra `train`)."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from osler.cli.options import grouped
from osler.cli.options_train import (
    Base,
    Fitting,
    GoOnFrom,
    MaxTokens,
    OnlyLora,
    Pace,
    Result,
    SkipLong,
    TrainingData,
)
from osler.cli.progress import progress
from osler.cli.session import Json, Quiet, Session, session

if TYPE_CHECKING:
    from osler.train.tune.corpus import Corpus
    from osler.train.tune.jobs import Job, Kind
    from osler.train.tune.recipe import Recipe


@grouped
def sft(
    context: typer.Context,
    data: TrainingData,
    out: Result,
    base: Base = None,
    adapter: GoOnFrom = None,
    full: Annotated[bool, typer.Option("--full", help="All weights, not LoRA.")] = False,
    *,
    pace: Pace,
    max_tokens: MaxTokens = None,
    skip_long: SkipLong = False,
    fitting: Fitting,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Teach a model its replies (Omni-RAG, Eq. 2), by LoRA. It goes on where it was stopped."""
    here = session(context, as_json=as_json, quiet=quiet)
    from osler.train.tune.recipe import OMNI_SFT

    start = replace(OMNI_SFT, lora=None) if full else OMNI_SFT
    recipe = _recipe(start, pace, max_tokens, fitting)
    job = _job("sft", data, out, recipe, base, fitting, adapter=adapter, skip_long=skip_long)
    _work(here, job, dry_run=fitting.dry_run)


@grouped
def dpo(
    context: typer.Context,
    data: TrainingData,
    out: Result,
    base: Base = None,
    adapter: Annotated[
        Path | None,
        typer.Option(help="The SFT adapter: it is trained on, and it is the reference."),
    ] = None,
    beta: Annotated[float | None, typer.Option(help="Of Eq. 4; 0.1 by default.")] = None,
    *,
    pace: Pace,
    max_tokens: MaxTokens = None,
    skip_long: SkipLong = False,
    fitting: Fitting,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Teach a model which of two replies is better (Omni-RAG, Eq. 3-4), by LoRA."""
    here = session(context, as_json=as_json, quiet=quiet)
    from osler.train.tune.recipe import OMNI_DPO

    recipe = _recipe(OMNI_DPO.but(beta=beta), pace, max_tokens, fitting)
    job = _job("dpo", data, out, recipe, base, fitting, adapter=adapter, skip_long=skip_long)
    _work(here, job, dry_run=fitting.dry_run)


@grouped
def thinker(
    context: typer.Context,
    data: TrainingData,
    out: Result,
    base: Base = None,
    adapter: GoOnFrom = None,
    lora: OnlyLora = False,
    *,
    pace: Pace,
    max_tokens: MaxTokens = None,
    skip_long: SkipLong = False,
    fitting: Fitting,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Teach a model all its turns of dialogues (KAG-Thinker, App. 11), all weights."""
    here = session(context, as_json=as_json, quiet=quiet)
    from osler.train.tune.recipe import THINKER, Lora

    start = THINKER.but(lora=Lora(), recompute=False) if lora or adapter else THINKER
    recipe = _recipe(start, pace, max_tokens, fitting)
    job = _job("thinker", data, out, recipe, base, fitting, adapter=adapter, skip_long=skip_long)
    _work(here, job, dry_run=fitting.dry_run)


@grouped
def pretrain(
    context: typer.Context,
    corpus: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]WHERE...",
            help="Texts: FILE.txt|.md|.jsonl, a folder of such, or kb:SOURCE.",
        ),
    ],
    out: Result,
    weight: Annotated[
        list[str] | None,
        typer.Option(help="NAME=N: the source's share of what is read; without any, its size."),
    ] = None,
    held_out: Annotated[
        float | None,
        typer.Option("--held-out", help="Share of the texts that tells perplexity; 0.02."),
    ] = None,
    base: Base = None,
    lora: OnlyLora = False,
    *,
    pace: Pace,
    max_tokens: Annotated[int | None, typer.Option("--max-tokens", help="Of a window.")] = None,
    fitting: Fitting,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Have a model read a mixed corpus (TC-RAG, App. 8.3): every next word, all weights."""
    here = session(context, as_json=as_json, quiet=quiet)
    from osler.train.tune.recipe import PRETRAIN, Lora

    start = PRETRAIN.but(lora=Lora()) if lora else PRETRAIN
    recipe = _recipe(start, pace, max_tokens, fitting)
    texts = _corpus(here, corpus, weight or [], held_out)
    job = _job("pretrain", texts, out, recipe, base, fitting)
    _work(here, job, dry_run=fitting.dry_run)


def _corpus(here: Session, told: list[str], weights: list[str], held_out: float | None) -> Corpus:
    from osler.errors import BadConfig
    from osler.train.tune.corpus import HELD_OUT, Corpus, source

    weighed = dict(map(_weight, weights))
    sources = tuple(source(one, here.settings().kb.path, weighed) for one in told)
    if unknown := weighed.keys() - {one.name for one in sources}:
        raise BadConfig(
            f"a weight for {', '.join(sorted(unknown))}, which is no source",
            fix=f"the sources are {', '.join(one.name for one in sources)}",
        )
    return Corpus(sources, HELD_OUT if held_out is None else held_out)


def _weight(told: str) -> tuple[str, float]:
    from osler.errors import BadConfig

    name, _, number = told.rpartition("=")
    try:
        return name, float(number)
    except ValueError:
        raise BadConfig(f"{told!r} is no weight", fix="write NAME=2.5") from None


def _recipe(start: Recipe, pace: Pace, max_tokens: int | None, fitting: Fitting) -> Recipe:
    """The recipe with what was given on the command line."""
    from osler.train.tune.recipe import Lora

    batch, micro = pace.batch or start.batch, pace.micro
    if micro is None and batch % start.micro:
        # A small batch that was asked for is worked on in one piece, or one by one.
        micro = batch if batch < start.micro else 1
    lora = start.lora
    if lora is not None:
        rank = fitting.rank or lora.rank
        lora = Lora(rank, 2 * rank, 0.0, fitting.layers)
    recipe = replace(
        start,
        lora=lora,
        precision=fitting.precision,
        recompute=fitting.recompute or start.recompute,
    )
    return recipe.but(
        epochs=pace.epochs,
        learning_rate=pace.learning_rate,
        batch=pace.batch,
        micro=micro,
        max_tokens=max_tokens,
        seed=fitting.seed,
        save_every=fitting.save_every,
    )


def _job(
    kind: Kind,
    data: Path | Corpus,
    out: Path,
    recipe: Recipe,
    base: str | None,
    fitting: Fitting,
    *,
    adapter: Path | None = None,
    skip_long: bool = False,
) -> Job:
    from osler.train.tune.jobs import Job

    weights, name = _base(base)
    return Job(
        kind,
        weights,
        data,
        out,
        recipe,
        adapter=adapter,
        skip_long=skip_long,
        threads=fitting.threads,
        name=name,
    )


def _base(given: str | None) -> tuple[Any, str]:
    """The weights and their name for cards."""
    from osler.llm.local.quantise import default_gguf
    from osler.llm.transformers.hub import Pinned

    if given is None:
        return default_gguf(), "HuggingFaceTB/SmolLM2-135M-Instruct"
    if not Path(given).exists() and "@" in given:
        owner, _, revision = given.partition("@")
        return Pinned(owner, revision), owner
    return Path(given), ""


def _work(here: Session, job: Job, *, dry_run: bool) -> None:
    from osler.cli.train_tune_pages import plan_page, tuned_page
    from osler.train.tune import jobs

    with progress(here) as told:
        if dry_run:
            found = jobs.dry_run(job, told)
            page = plan_page(found)
            document = asdict(found)
        else:
            tuned = jobs.run(job, told)
            page = tuned_page(tuned)
            document = {**asdict(tuned), "folder": str(job.folder)}
    here.show(page, document)
    if not dry_run:
        here.say(f"written to {job.folder}")


def merge(
    context: typer.Context,
    adapter: Annotated[Path, typer.Argument(help="Folder of the adapter.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the merged model.")],
    base: Base = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make one model of an adapter and its base, for transformers and vLLM."""
    here = session(context, as_json=as_json, quiet=quiet)
    from osler.train.tune import export

    weights, _ = _base(base)
    _written(here, export.merge(weights, adapter, out))


def gguf(
    context: typer.Context,
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.")],
    adapter: Annotated[Path | None, typer.Option(help="Folder of an adapter to merge.")] = None,
    base: Base = None,
    like: Annotated[
        Path | None,
        typer.Option(
            help="GGUF file of the base model; else the base itself, or the packaged one."
        ),
    ] = None,
    storage: Annotated[
        Literal["f32", "f16", "q8_0"],
        typer.Option(help="Of the matrices; q8_0 may round away what a small adapter learnt."),
    ] = "f16",
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a tuned model as a GGUF file, which the embedded engine serves."""
    here = session(context, as_json=as_json, quiet=quiet)
    from osler.llm.local.quantise import default_gguf
    from osler.train.tune import export

    weights, _ = _base(base)
    if like is None:
        own = isinstance(weights, Path) and weights.suffix == ".gguf"
        like = weights if own else default_gguf()
    _written(here, export.write_gguf(weights, like, out, adapter=adapter, storage=storage))


def _written(here: Session, path: Path) -> None:
    from rich.text import Text

    here.show(Text(str(path)), {"path": str(path), "bytes": _bytes(path)})


def _bytes(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else (path,)
    return sum(file.stat().st_size for file in files if file.is_file())


COMMANDS = (sft, dpo, thinker, pretrain, merge, gguf)
