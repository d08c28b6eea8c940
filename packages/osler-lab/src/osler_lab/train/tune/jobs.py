"""Tuning from files to files: the work of `osler train tune`.

FOLDER/run.json         what is trained on what, and how: another training is refused here
FOLDER/log.jsonl        a line a step
FOLDER/checkpoints/     the last two, with the optimizer's state
FOLDER/reference.json   DPO: log-probabilities under the reference
FOLDER/perplexity.json  pre-training: of the texts held out, before the first step
FOLDER/adapter_*, README.md   the result, in PEFT's and the hub's form (or whole weights)
FOLDER/trained-on.txt   digests of the questions that it has learnt
FOLDER/result.json      written last
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from osler.errors import BadConfig, BadRun
from osler.llm.core.cache import hash_file, write_whole
from osler.llm.transformers.hub import (
    ModelPair,
    PinnedModel,
    Weights,
    silence_transformers,
    weights_fingerprint,
    weights_name,
)
from osler_lab.evaluate.trained_on import list_beside, pass_on, read_trained_on, write_trained_on
from osler_lab.jobs.runner import Progress
from osler_lab.train.record import (
    data_file,
    question_digests,
    read_dialogues,
    read_preferences,
    read_samples,
    render_rows,
    write_card,
)
from osler_lab.train.tune.corpus import Corpus, PackedCorpus, SourceCount, pack_corpus, read_texts
from osler_lab.train.tune.encode import ChatEncoder, FittedRows, encode_all, fit_rows
from osler_lab.train.tune.loop import ALL, TuningResult, steps_of, train_model
from osler_lab.train.tune.loss import (
    Objective,
    PreferenceGain,
    ReferencedPair,
    ReplyLikelihood,
    perplexity,
    reference_logprobs,
)
from osler_lab.train.tune.model import count_parameters, matrix_products, prepare_model
from osler_lab.train.tune.recipe import TuningRecipe


@dataclass(frozen=True, slots=True)
class TrainingEstimate:
    """Sizes of a training, before it is begun."""

    samples: int
    long: int
    """Samples left out for their length."""
    tokens: int
    """Tokens of all samples, counted once."""
    longest: int
    steps: int
    parameters: int
    trained: int
    sources: tuple[SourceCount, ...] = ()
    """Sources of a corpus for pre-training."""


Kind: TypeAlias = Literal["sft", "dpo", "thinker", "pretrain"]
RUN, RESULT, REFERENCE = "run.json", "result.json", "reference.json"
PERPLEXITY = "perplexity.json"


@dataclass(frozen=True)
class TuningJob:
    """Description of one training."""

    kind: Kind
    base: Weights
    data: Path | Corpus
    """A corpus for pre-training, else the folder or file of the samples."""
    folder: Path
    recipe: TuningRecipe
    adapter: Path | None = None
    """The SFT adapter that DPO goes on from, and refers to."""
    skip_long: bool = False
    threads: int | None = None
    name: str = ""
    """Name of the base model, for cards; its own file's or folder's by default."""

    @property
    def base_name(self) -> str:
        return self.name or (
            self.base.name if isinstance(self.base, PinnedModel) else weights_name(self.base)
        )

    def data_sha256(self) -> str:
        if isinstance(self.data, Corpus):
            return self.data.digest()
        return hash_file(data_file(self.data))


def dry_run(job: TuningJob, progress: Progress | None = None) -> TrainingEstimate:
    """Counts samples, tokens, steps and parameters, with all data read. Nothing is written."""
    parts = _make_parts(job, progress)
    total, trained = count_parameters(parts.pair.model)
    return TrainingEstimate(
        samples=len(parts.rows),
        long=len(parts.long),
        tokens=sum(map(len, parts.rows)),
        longest=max(map(len, parts.rows)),
        steps=steps_of(len(parts.rows), job.recipe),
        parameters=total,
        trained=trained,
        sources=parts.packed.counts if parts.packed else (),
    )


def run_tuning(job: TuningJob, progress: Progress | None = None) -> TuningResult:
    """Trains, or goes on, or finds it done. Raises as its parts, and `BadConfig` where the
    folder holds another training."""
    job.folder.mkdir(parents=True, exist_ok=True)
    facts = _job_facts(job)
    _require_same(job.folder / RUN, facts)
    # After the facts are compared: a finished folder of another training is refused, too.
    result = job.folder / RESULT
    if result.is_file():
        return TuningResult(**json.loads(result.read_text(encoding="utf-8"))["tuned"])
    parts = _make_parts(job, progress)
    rows: Sequence[Any] = parts.rows
    if job.kind == "dpo":
        with matrix_products(job.recipe.precision, job.threads):
            rows = _reference_pairs(job, parts, progress)
    # Before `train_model`, which changes the weights in place; a resumed job reads the file.
    before = _perplexity_before(job, parts)
    tuned = train_model(
        parts.pair,
        rows,
        parts.objective,
        job.recipe,
        job.folder,
        threads=job.threads,
        progress=progress,
    )
    if before:
        tuned = replace(tuned, perplexity=(before, _perplexity(job, parts)))
    _finish_job(job, parts, tuned, facts)
    return tuned


@dataclass(frozen=True)
class _TuningParts:
    """Parts that are ready before the first step."""

    pair: ModelPair
    rows: Sequence[Any]
    long: tuple[str, ...]
    objective: Objective
    packed: PackedCorpus | None = None


def _make_parts(job: TuningJob, progress: Progress | None) -> _TuningParts:
    """Reads the data first: its faults are reported before weights are loaded."""
    if isinstance(job.data, Corpus):
        return _make_windows(job, job.data, progress)
    read: dict[Kind, Callable[[Path], Sequence[Any]]] = {
        "sft": read_samples,
        "dpo": read_preferences,
        "thinker": read_dialogues,
    }
    data = read[job.kind](job.data)
    pair = prepare_model(job.base, job.recipe, adapter=job.adapter)
    encoder = ChatEncoder(pair.tokenizer, name=job.base_name)
    encode: dict[Kind, Callable[[Any], tuple[Any, ...]]] = {
        "sft": lambda sample: (encoder.encode_sample(sample),),
        "dpo": lambda sample: (encoder.encode_pair(sample),),
        "thinker": encoder.encode_dialogue,
    }
    most = _longest_row(pair.model, job.recipe)
    fitted: FittedRows = fit_rows(
        encode_all(data, encode[job.kind], progress), most, skip_long=job.skip_long
    )
    share = not job.recipe.recompute
    objective: Objective = (
        PreferenceGain(job.recipe.beta, share) if job.kind == "dpo" else ReplyLikelihood(share)
    )
    return _TuningParts(pair, fitted.rows, fitted.long, objective)


def _make_windows(job: TuningJob, corpus: Corpus, progress: Progress | None) -> _TuningParts:
    for part in corpus.sources:
        # One text of each source: a wrong path is found before the model is loaded.
        next(read_texts(part), None)
    pair = prepare_model(job.base, job.recipe, adapter=job.adapter)
    size = _longest_row(pair.model, job.recipe)
    packed = pack_corpus(corpus, pair.tokenizer, size=size, seed=job.recipe.seed, progress=progress)
    return _TuningParts(pair, packed.rows, (), ReplyLikelihood(share=False), packed)


def _perplexity_before(job: TuningJob, parts: _TuningParts) -> dict[str, float]:
    """Perplexity before the first step, worked out once and kept; empty without held-out texts."""
    if parts.packed is None or not parts.packed.held:
        return {}
    path = job.folder / PERPLEXITY
    if path.is_file():
        return dict(json.loads(path.read_text(encoding="utf-8")))
    figures = _perplexity(job, parts)
    _write_json(path, figures)
    return figures


def _perplexity(job: TuningJob, parts: _TuningParts) -> dict[str, float]:
    """Perplexity of every source's held-out windows, and of all of them."""
    held = parts.packed.held if parts.packed else {}
    every = {**held, ALL: tuple(row for rows in held.values() for row in rows)}
    with matrix_products(job.recipe.precision, job.threads):
        return {name: round(perplexity(parts.pair.model, rows), 4) for name, rows in every.items()}


def _longest_row(model: Any, recipe: TuningRecipe) -> int:
    own: int | None = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return min(recipe.max_tokens, own or recipe.max_tokens)


def _name_base(model: Any, job: TuningJob) -> None:
    """An adapter names its base, not the folder of this machine where that lies."""
    for config in getattr(model, "peft_config", {}).values():
        config.base_model_name_or_path = job.base_name
        config.revision = job.base.revision if isinstance(job.base, PinnedModel) else None


def _job_facts(job: TuningJob) -> dict[str, Any]:
    return {
        "kind": job.kind,
        "base": job.base_name,
        "weights": weights_fingerprint(job.base),
        "adapter": weights_fingerprint(job.adapter) if job.adapter else None,
        "data_sha256": job.data_sha256(),
        "skip_long": job.skip_long,
        "recipe": asdict(job.recipe),
    }


def _require_same(path: Path, facts: dict[str, Any]) -> None:
    if not path.is_file():
        _write_json(path, facts)
        return
    fix = "give another folder, or the settings that it was begun with"
    try:
        there = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadRun(f"{path} cannot be read", fix=fix) from error
    other = [name for name, value in facts.items() if there.get(name) != value]
    if other:
        raise BadConfig(f"{path.parent} holds another training: {', '.join(other)}", fix=fix)


def _reference_pairs(
    job: TuningJob, parts: _TuningParts, progress: Progress | None
) -> list[ReferencedPair]:
    """Pairs with their reference, kept in the folder, so that it is worked out once."""
    path = job.folder / REFERENCE
    kept: dict[str, list[float]] = {}
    if path.is_file():
        kept = json.loads(path.read_text(encoding="utf-8"))
    # Kept for these samples alone: after a change of --skip-long it is worked out anew.
    if set(kept) != {row.id for row in parts.rows}:
        share = not job.recipe.recompute
        logprobs = reference_logprobs(parts.pair.model, parts.rows, share=share, progress=progress)
        kept = {row.id: list(two) for row, two in zip(parts.rows, logprobs, strict=True)}
        _write_json(path, kept)
    return [ReferencedPair(row, (kept[row.id][0], kept[row.id][1])) for row in parts.rows]


def _finish_job(
    job: TuningJob, parts: _TuningParts, tuned: TuningResult, facts: dict[str, Any]
) -> None:
    _name_base(parts.pair.model, job)
    save_model(parts.pair, job.folder)
    _list_trained_on(job)
    result = {**facts, "samples": len(parts.rows), "long": list(parts.long), "tuned": asdict(tuned)}
    if parts.packed is not None:
        result["sources"] = [asdict(count) for count in parts.packed.counts]
    revision = job.base.revision if isinstance(job.base, PinnedModel) else ""
    write_model_card(job.folder, result, data=job.data.name, revision=revision)
    _write_json(job.folder / RESULT, result)


def _list_trained_on(job: TuningJob) -> None:
    """Lists the questions of the data, with those that base and adapter had learnt before."""
    pass_on([one for one in (job.base, job.adapter) if isinstance(one, Path)], job.folder)
    listed = list_beside(job.folder)
    known = read_trained_on(listed)
    if isinstance(job.data, Path):
        known |= question_digests(job.data)
    if known:
        write_trained_on(listed, known)


def _write_json(path: Path, value: object) -> None:
    with write_whole(path) as draft:
        draft.write_text(json.dumps(value, indent=2), encoding="utf-8")


def save_model(pair: ModelPair, folder: Path) -> None:
    """An adapter as PEFT writes it; whole weights with their tokenizer, in the hub's form."""
    adapter = hasattr(pair.model, "peft_config")
    with silence_transformers():
        pair.model.config.use_cache = True
        if adapter:
            # Told so, it does not ask the hub whether the vocabulary grew.
            pair.model.save_pretrained(folder, save_embedding_layers=False)
        else:
            pair.model.save_pretrained(folder)
            pair.tokenizer.save_pretrained(folder)


_TASKS = {
    "sft": "supervised fine-tuning (Omni-RAG, Eq. 2)",
    "dpo": "direct preference optimisation (Omni-RAG, Eq. 3-4)",
    "thinker": "supervised fine-tuning on dialogues of several turns (KAG-Thinker, App. 11)",
    "pretrain": "continued pre-training, causal objective (TC-RAG, App. 8.3)",
}


def write_model_card(folder: Path, result: Mapping[str, Any], *, data: str, revision: str) -> None:
    """Writes `README.md` of a tuned model; the folder's name is the model's.

    `data` names what it has learnt, `revision` the commit of its base; empty = none.
    """
    kind, base, lora = result["kind"], result["base"], result["recipe"]["lora"]
    head = {
        "base_model": base,
        "library_name": "peft" if lora else "transformers",
        "pipeline_tag": "text-generation",
        "tags": ["osler", "medical", kind, *(["lora"] if lora else [])],
    }
    what = "a LoRA adapter" if lora else "all weights"
    at = f" at revision {revision}" if revision else ""
    write_card(
        folder,
        head,
        folder.resolve().name,
        f"{what} for {base}{at}, trained by {_TASKS[kind]} with Osler.",
        "## Training",
        render_rows(_card_figures(result, data)),
        "## Use",
        _USE,
    )


def _card_figures(result: Mapping[str, Any], data: str) -> list[tuple[str, object]]:
    recipe, tuned = result["recipe"], result["tuned"]
    rows: list[tuple[str, object]] = [
        ("data", f"{data}, sha256 {result['data_sha256'][:16]}"),
        ("samples", f"{result['samples']}, and {len(result['long'])} left out for their length"),
        ("steps", tuned["steps"]),
        ("loss, first step and last", f"{tuned['first']:.4f}, {tuned['last']:.4f}"),
    ]
    if tuned["perplexity"]:
        before, after = (figures[ALL] for figures in tuned["perplexity"])
        rows.append(("perplexity, before and after", f"{before:.2f}, {after:.2f}"))
    keys = ("learning_rate", "schedule", "warmup", "epochs", "batch", "weight_decay", "clip")
    rows += [(key.replace("_", " "), recipe[key]) for key in (*keys, "max_tokens", "seed")]
    if lora := recipe["lora"]:
        rows.append(("LoRA", f"rank {lora['rank']}, alpha {lora['alpha']}"))
    if result["kind"] == "dpo":
        rows.append(("beta", recipe["beta"]))
    return rows


_USE = """It is a part of a system that finds evidence and cites it. It is made for research and for
health professionals who check what they read. Its own words are not medical advice, and it was
not tested as a medical device. It inherits the limits and the licence of its base model and of
the data it was trained on."""
