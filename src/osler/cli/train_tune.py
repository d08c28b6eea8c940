"""`osler train sft|dpo|thinker|pretrain|merge|gguf`: weights that change (extra `train`)."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from osler.cli.progress import progress
from osler.cli.session import Json, Quiet, Session, session

if TYPE_CHECKING:
    from osler.train.tune.corpus import Corpus
    from osler.train.tune.jobs import Job, Kind
    from osler.train.tune.recipe import Recipe

Data = Annotated[
    Path, typer.Argument(help="Folder with data.jsonl, or the file, as `make-sft` writes it.")
]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder of the result and its checkpoints.")]
Base = Annotated[
    str | None,
    typer.Option(help="Model folder, GGUF file or OWNER/MODEL@COMMIT; else the packaged one."),
]
Epochs = Annotated[float | None, typer.Option(help="Passes over the data; the paper's by default.")]
Rate = Annotated[
    float | None, typer.Option("--learning-rate", help="The peak; the paper's by default.")
]
BatchSize = Annotated[int | None, typer.Option("--batch", help="Samples a step.")]
Micro = Annotated[
    int | None, typer.Option(help="Samples worked on at once: less memory, the same result.")
]
MaxTokens = Annotated[int | None, typer.Option("--max-tokens", help="Of prompt and answer.")]
SkipLong = Annotated[
    bool, typer.Option("--skip-long", help="Leave longer samples out, instead of refusing them.")
]
Layers = Annotated[int | None, typer.Option(help="LoRA beside so many layers only, from the last.")]
Rank = Annotated[int | None, typer.Option(help="Of LoRA.")]
Seed = Annotated[int | None, typer.Option(help="Of the order of samples and of fresh weights.")]
SaveEvery = Annotated[int | None, typer.Option("--save-every", help="Steps between checkpoints.")]
Threads = Annotated[int | None, typer.Option(help="Processor threads; by default those free.")]
Precision = Annotated[
    Literal["auto", "float32", "mixed", "bfloat16"], typer.Option(help="Of numbers and products.")
]
Recompute = Annotated[bool, typer.Option("--recompute", help="Less memory, a third more time.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Sizes, steps, memory and time; nothing is written.")
]


def sft(
    context: typer.Context,
    data: Data,
    out: Out,
    base: Base = None,
    adapter: Annotated[Path | None, typer.Option(help="Go on from this adapter.")] = None,
    full: Annotated[bool, typer.Option("--full", help="All weights, not LoRA.")] = False,
    epochs: Epochs = None,
    learning_rate: Rate = None,
    batch: BatchSize = None,
    micro: Micro = None,
    max_tokens: MaxTokens = None,
    skip_long: SkipLong = False,
    layers: Layers = None,
    rank: Rank = None,
    seed: Seed = None,
    save_every: SaveEvery = None,
    threads: Threads = None,
    precision: Precision = "auto",
    recompute: Recompute = False,
    dry_run: DryRun = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Teach a model its replies (Omni-RAG, Eq. 2), by LoRA. It goes on where it was stopped."""
    here = session(context, as_json=as_json, quiet=quiet)
    from osler.train.tune.recipe import OMNI_SFT

    recipe = _recipe(OMNI_SFT, locals())
    _work(here, _job("sft", locals(), recipe), dry_run=dry_run)


def dpo(
    context: typer.Context,
    data: Data,
    out: Out,
    base: Base = None,
    adapter: Annotated[
        Path | None,
        typer.Option(help="The SFT adapter: it is trained on, and it is the reference."),
    ] = None,
    beta: Annotated[float | None, typer.Option(help="Of Eq. 4; 0.1 by default.")] = None,
    epochs: Epochs = None,
    learning_rate: Rate = None,
    batch: BatchSize = None,
    micro: Micro = None,
    max_tokens: MaxTokens = None,
    skip_long: SkipLong = False,
    layers: Layers = None,
    rank: Rank = None,
    seed: Seed = None,
    save_every: SaveEvery = None,
    threads: Threads = None,
    precision: Precision = "auto",
    recompute: Recompute = False,
    dry_run: DryRun = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Teach a model which of two replies is better (Omni-RAG, Eq. 3-4), by LoRA."""
    here = session(context, as_json=as_json, quiet=quiet)
    from osler.train.tune.recipe import OMNI_DPO

    recipe = _recipe(OMNI_DPO.but(beta=beta), {**locals(), "full": False})
    _work(here, _job("dpo", locals(), recipe), dry_run=dry_run)


def thinker(
    context: typer.Context,
    data: Data,
    out: Out,
    base: Base = None,
    adapter: Annotated[Path | None, typer.Option(help="Go on from this adapter.")] = None,
    lora: Annotated[bool, typer.Option("--lora", help="LoRA, not all weights.")] = False,
    epochs: Epochs = None,
    learning_rate: Rate = None,
    batch: BatchSize = None,
    micro: Micro = None,
    max_tokens: MaxTokens = None,
    skip_long: SkipLong = False,
    layers: Layers = None,
    rank: Rank = None,
    seed: Seed = None,
    save_every: SaveEvery = None,
    threads: Threads = None,
    precision: Precision = "auto",
    recompute: Recompute = False,
    dry_run: DryRun = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Teach a model all its turns of dialogues (KAG-Thinker, App. 11), all weights."""
    here = session(context, as_json=as_json, quiet=quiet)
    from osler.train.tune.recipe import THINKER, Lora

    start = THINKER.but(lora=Lora(), recompute=False) if lora or adapter else THINKER
    recipe = _recipe(replace(start, recompute=recompute or start.recompute), locals())
    _work(here, _job("thinker", locals(), recipe), dry_run=dry_run)


def pretrain(
    context: typer.Context,
    corpus: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]WHERE...",
            help="Texts: FILE.txt|.md|.jsonl, a folder of such, or kb:SOURCE.",
        ),
    ],
    out: Out,
    weight: Annotated[
        list[str] | None,
        typer.Option(help="NAME=N: the source's share of what is read; without any, its size."),
    ] = None,
    held_out: Annotated[
        float | None,
        typer.Option("--held-out", help="Share of the texts that tells perplexity; 0.02."),
    ] = None,
    base: Base = None,
    lora: Annotated[bool, typer.Option("--lora", help="LoRA, not all weights.")] = False,
    epochs: Epochs = None,
    learning_rate: Rate = None,
    batch: BatchSize = None,
    micro: Micro = None,
    max_tokens: Annotated[int | None, typer.Option("--max-tokens", help="Of a window.")] = None,
    layers: Layers = None,
    rank: Rank = None,
    seed: Seed = None,
    save_every: SaveEvery = None,
    threads: Threads = None,
    precision: Precision = "auto",
    recompute: Recompute = False,
    dry_run: DryRun = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Have a model read a mixed corpus (TC-RAG, App. 8.3): every next word, all weights."""
    here = session(context, as_json=as_json, quiet=quiet)
    from osler.train.tune.recipe import PRETRAIN, Lora

    recipe = _recipe(PRETRAIN.but(lora=Lora()) if lora else PRETRAIN, locals())
    data = _corpus(here, corpus, weight or [], held_out)
    given = {**locals(), "data": data, "adapter": None, "skip_long": False}
    _work(here, _job("pretrain", given, recipe), dry_run=dry_run)


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


def _recipe(start: Recipe, given: dict[str, Any]) -> Recipe:
    """The recipe with what was given on the command line."""
    from osler.train.tune.recipe import Lora

    names = ("epochs", "learning_rate", "batch", "micro", "max_tokens", "seed", "save_every")
    batch, micro = given["batch"] or start.batch, given["micro"] or start.micro
    if given["micro"] is None and (batch % micro or batch < micro):
        # A small batch that was asked for is worked on in one piece, or one by one.
        given = {**given, "micro": batch if batch < micro else 1}
    lora = start.lora
    if given.get("full"):
        lora = None
    elif lora is not None:
        lora = Lora(
            given["rank"] or lora.rank, 2 * (given["rank"] or lora.rank), 0.0, given["layers"]
        )
    recipe = replace(start, lora=lora, precision=given["precision"])
    if given["recompute"]:
        recipe = replace(recipe, recompute=True)
    return recipe.but(**{name: given[name] for name in names})


def _job(kind: Kind, given: dict[str, Any], recipe: Recipe) -> Job:
    from osler.train.tune.jobs import Job

    weights, name = _base(given["base"])
    return Job(
        kind,
        weights,
        given["data"],
        given["out"],
        recipe,
        adapter=given["adapter"],
        skip_long=given["skip_long"],
        threads=given["threads"],
        name=name,
    )


def _base(given: str | None) -> tuple[Any, str]:
    """The weights and their name for cards."""
    from osler.llm.hub import Pinned
    from osler.llm.quantise import default_gguf

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
        Literal["f32", "f16", "q8_0"], typer.Option(help="Of the matrices.")
    ] = "q8_0",
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a tuned model as a GGUF file, which the embedded engine serves."""
    here = session(context, as_json=as_json, quiet=quiet)
    from osler.llm.quantise import default_gguf
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
