"""`osler train sft|alora|dpo|thinker|pretrain|merge|gguf`: weights that change (extra `train`)."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from osler.cli.progress import show_progress
from osler.cli.session import CliSession
from osler_lab.cli.options_train import (
    Base,
    GoOnFrom,
    OnlyLora,
    Result,
    SkipLong,
    TrainingData,
    TuningOptions,
)

if TYPE_CHECKING:
    from osler_lab.train.tune.corpus import Corpus
    from osler_lab.train.tune.jobs import Kind
    from osler_lab.train.tune.recipe import TuningRecipe


def sft(
    here: CliSession,
    data: TrainingData,
    out: Result,
    adapter: GoOnFrom = None,
    full: Annotated[bool, typer.Option("--full", help="All weights, not LoRA.")] = False,
    skip_long: SkipLong = False,
    *,
    options: TuningOptions,
) -> None:
    """Tune a model on replies (Omni-RAG Eq. 2), by LoRA. A stopped training resumes."""
    from osler_lab.train.tune.recipe import OMNI_SFT

    start = replace(OMNI_SFT, lora=None) if full else OMNI_SFT
    _run_tuning(here, "sft", data, out, start, options, adapter=adapter, skip_long=skip_long)


def alora(
    here: CliSession,
    data: TrainingData,
    out: Result,
    prompt: Annotated[
        str, typer.Option(help='Name of the prompts that it learns to answer: "omni/plan".')
    ],
    invocation: Annotated[
        str, typer.Option(help="What it waits for, from a special token on.")
    ] = "<|im_end|>plan\n",
    skip_long: SkipLong = False,
    *,
    options: TuningOptions,
) -> None:
    """Tune a role adapter on replies: an aLoRA, which leaves all before its invocation as it is."""
    from osler_lab.train.tune.recipe import OMNI_SFT, AloraSettings

    start = replace(OMNI_SFT, lora=AloraSettings(prompt=prompt, invocation=invocation))
    _run_tuning(here, "sft", data, out, start, options, skip_long=skip_long)


def dpo(
    here: CliSession,
    data: TrainingData,
    out: Result,
    adapter: Annotated[
        Path | None,
        typer.Option(help="The SFT adapter: it is trained on, and it is the reference."),
    ] = None,
    beta: Annotated[float | None, typer.Option(help="Beta of Eq. 4; 0.1 by default.")] = None,
    skip_long: SkipLong = False,
    *,
    options: TuningOptions,
) -> None:
    """Teach a model which of two replies is better (Omni-RAG, Eq. 3-4), by LoRA."""
    from osler_lab.train.tune.recipe import OMNI_DPO

    start = OMNI_DPO.with_changes(beta=beta)
    _run_tuning(here, "dpo", data, out, start, options, adapter=adapter, skip_long=skip_long)


def thinker(
    here: CliSession,
    data: TrainingData,
    out: Result,
    adapter: GoOnFrom = None,
    lora: OnlyLora = False,
    skip_long: SkipLong = False,
    *,
    options: TuningOptions,
) -> None:
    """Teach a model all its turns of dialogues (KAG-Thinker, App. 11), all weights."""
    from osler_lab.train.tune.recipe import THINKER, LoraSettings

    start = (
        THINKER.with_changes(lora=LoraSettings(), recompute=False) if lora or adapter else THINKER
    )
    _run_tuning(here, "thinker", data, out, start, options, adapter=adapter, skip_long=skip_long)


def pretrain(
    here: CliSession,
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
        typer.Option(
            "--held-out", help="Share of the texts held out to measure perplexity; 0.02 by default."
        ),
    ] = None,
    lora: OnlyLora = False,
    *,
    options: TuningOptions,
) -> None:
    """Continue pre-training on a mixed corpus (TC-RAG App. 8.3): every next token, all weights."""
    from osler_lab.train.tune.recipe import PRETRAIN, LoraSettings

    start = PRETRAIN.with_changes(lora=LoraSettings()) if lora else PRETRAIN
    texts = _read_corpus(here, corpus, weight or [], held_out)
    _run_tuning(here, "pretrain", texts, out, start, options)


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
    from osler.llm.local.quantise import default_gguf
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


def merge(
    here: CliSession,
    adapter: Annotated[Path, typer.Argument(help="Folder of the adapter.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the merged model.")],
    base: Base = None,
) -> None:
    """Make one model of an adapter and its base, for transformers and vLLM."""
    from osler_lab.train.tune import export

    weights, _ = _base_weights(base)
    _show_written(here, export.merge_adapter(weights, adapter, out))


def gguf(
    here: CliSession,
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.")],
    adapter: Annotated[
        Path | None,
        typer.Option(help="Folder of an adapter: it is merged, an aLoRA written by itself."),
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
    """Write a tuned model as a GGUF file, which the embedded engine serves."""
    from osler.llm.local.quantise import default_gguf
    from osler_lab.train.tune import export

    weights, _ = _base_weights(base)
    if like is None:
        own = isinstance(weights, Path) and weights.suffix == ".gguf"
        like = weights if own else default_gguf()
    if adapter is not None and export.is_alora(adapter):
        _show_written(here, export.write_adapter_gguf(adapter, like, out))
        return
    _show_written(here, export.write_gguf(weights, like, out, adapter=adapter, storage=storage))


def _show_written(here: CliSession, path: Path) -> None:
    here.show({"path": str(path), "bytes": _folder_bytes(path)})


def _folder_bytes(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else (path,)
    return sum(file.stat().st_size for file in files if file.is_file())
