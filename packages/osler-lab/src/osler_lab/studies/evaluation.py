"""Settings → an evaluation: which strategies run on which data, into which log folder."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path

from osler.build import Parts, graphs, reads_knowledge, roles_of, run_budget, run_prices
from osler.build.composers import note_roles
from osler.build.knowledge import open_knowledge_base
from osler.build.live import live_parts, record_parts
from osler.build.models import load_roles
from osler.build.strategies import build_solver
from osler.errors import BadConfig, KnowledgeBaseError
from osler.kb.ingest.bulk import WorkerPool
from osler.llm.recording.tape import Tape
from osler.retrieve.experts.cards import packaged_folder
from osler.settings import STRATEGIES, Settings, read_presets
from osler.settings.plugins import ATTENTION, CHAINS, CHECKPOINT, methods_by_kind
from osler.trace import Solver
from osler_lab.build.experts import PACKAGED, SWITCHES, expert_in_use
from osler_lab.evaluate import plan as planning
from osler_lab.evaluate.judged import Form, Judgement, JudgingRun
from osler_lab.evaluate.judges import Judge
from osler_lab.evaluate.plan import EvaluationPlan
from osler_lab.evaluate.record import Sample
from osler_lab.evaluate.runner import (
    EvaluationRunner,
    Keep,
    ReadyStrategy,
    RunnerCell,
    SolvedRun,
)
from osler_lab.evaluate.searches import WatchedRetriever
from osler_lab.evaluate.trained_on import count_seen, list_beside, read_trained_on, unseen_samples
from osler_lab.jobs.runner import Progress
from osler_lab.studies.plans import plan_once
from osler_lab.studies.replies import ResponseCache, remember_replies
from osler_lab.studies.tasks import kind_of, read_task, require_files

# Keeps a finished run with its tape; returns its name below `runs/` of the log folder.
KeepRun = Callable[[Settings, Parts, Tape, SolvedRun], str]
# Stands for every strategy, with what follows it for each: "all:answer.statements=1".
ALL = "all"
# What a method may need that is not there, in words, and how to get it.
_LACKS = {
    ATTENTION: (
        f"the model's {ATTENTION}",
        'set model.kind = "transformers", or take dragin-entropy',
    ),
    CHECKPOINT: (
        CHECKPOINT,
        "set the model to one, or take self-rag-prompted, which asks any model in words",
    ),
    CHAINS: ("a concept graph, and the knowledge base has none", "`osler kb graph add` one"),
}
# Flags by dotted key, and a preset or `None` → the settings in force.
Load = Callable[[Mapping[str, object], str | None], Settings]


@dataclass(frozen=True)
class Trial:
    """The evaluation that one command runs."""

    settings: Mapping[str, Settings]
    """Label to settings, in the order in which they run."""
    plan: EvaluationPlan
    cells: tuple[RunnerCell, ...]


def strategy_settings(label: str, load: Load) -> Settings:
    """The settings of a strategy as it is named: "rag", "tc-rag:metric=uct", "tc-rag-uct".

    A name is a strategy or a preset; after it come settings, those without a dot of the
    strategy itself ("cot:answer.options=letters"). Raises `BadConfig`.
    """
    # A colon parts two settings only before KEY=: an address has colons too.
    name, *given = (part.strip() for part in re.split(r":(?=\s*[\w.-]+\s*=)", label))
    name, colon, word = name.partition(":")
    if colon:
        raise BadConfig(
            f"{label!r}: {word!r} is not KEY=VALUE", fix='write it as "tc-rag:metric=uct"'
        )
    flags = dict[str, object]()
    for key, _, value in (part.partition("=") for part in given):
        flag = key.strip() if "." in key else f"strategy.{key.strip()}"
        if flag in flags:
            raise BadConfig(f"{label!r}: {key.strip()} is given twice", fix="give it once")
        flags[flag] = value
    if name in read_presets() and name not in STRATEGIES:
        return load(flags, name)
    return load({"strategy.kind": name, **flags}, None)


def labels_of(words: Sequence[str], load: Load) -> tuple[list[str], dict[str, str]]:
    """The labels of what is asked for, each once; beside them who is not in `all`, and why.

    Presets are not in `all`: each is a strategy with other settings.
    """
    labels: list[str] = []
    left_out: dict[str, str] = {}
    for word in words:
        name, colon, settings = word.partition(":")
        if name.strip() != ALL:
            labels.append(word)
            continue
        for kind in STRATEGIES:
            label = f"{kind}{colon}{settings}"
            settings_of_kind = strategy_settings(label, load)
            if needs := _unmet_need(settings_of_kind) or _unknown_need(settings_of_kind):
                left_out[kind] = f"it needs {_LACKS[needs][0]}"
            else:
                labels.append(label)
    return list(dict.fromkeys(labels)), left_out


def _unmet_need(settings: Settings) -> str:
    """The strategy's unmet need: a key of `_LACKS`, or empty."""
    method = methods_by_kind().get(settings.strategy.kind)
    needs = method.needs if method else ""
    if needs == ATTENTION and settings.model_for("reader").kind != "transformers":
        return needs
    if needs == CHECKPOINT:
        return needs if settings.model_for("reader").kind == "packaged" else ""
    return needs if needs == CHAINS and not graphs.has_graph(settings) else ""


def _unknown_need(settings: Settings) -> str:
    """A need of which only the loaded model could tell whether it is met; `all` leaves it out."""
    method = methods_by_kind().get(settings.strategy.kind)
    return CHECKPOINT if method and method.needs == CHECKPOINT else ""


def make_trial(
    tasks: Sequence[str],
    labels: Sequence[str],
    load: Load,
    *,
    data: Path | None,
    limit: int | None,
    seed: int,
    experiment: str = "",
    trained_on: bool = False,
    unseen: bool = False,
) -> Trial:
    """Everything is read and checked before the first sample is tried.

    `unseen` leaves out, for every strategy alike, the questions that any strategy's models were
    trained on. Raises `BadConfig` for such questions without it, unless `trained_on` is given:
    then they are measured, and counted in the plan.
    """
    settings = {label: strategy_settings(label, load) for label in labels}
    for label, found in settings.items():
        if needs := _unmet_need(found):
            lacks, fix = _LACKS[needs]
            raise BadConfig(f"{label} needs {lacks}", fix=fix)
    entrants = {
        label: planning.make_entrant(label, found.model_dump(mode="json"))
        for label, found in settings.items()
    }
    noted, cells, kept = {}, [], []
    # Of all strategies together: rows of one table rest on the same questions.
    known = frozenset[str]().union(*map(trained_digests, settings.values()))
    require_files(tasks, data)
    for word in dict.fromkeys(tasks):
        loaded = read_task(word, data)
        task = planning.task_of(loaded, kind_of(loaded))
        if task.name in noted:  # the log knows samples by the set's name and their id
            raise BadConfig(f"{task.name} is named twice", fix="put its rows into one file")
        noted[task.name] = task
        fresh = unseen_samples(loaded.samples, known) if unseen else loaded.samples
        samples = planning.choose_samples(fresh, limit, seed)
        kept.append((task, samples))
    for label in labels:
        cells += [RunnerCell(label, task.name, samples) for task, samples in kept]
    asked = {label: {task.name: len(samples) for task, samples in kept} for label in labels}
    chosen = {task.name: samples for task, samples in kept}
    seen = count_trained_on(settings, chosen)
    if not trained_on:
        refuse_trained_on(seen, chosen)
    made = EvaluationPlan(seed, noted, entrants, asked, version("osler"), experiment, seen)
    return Trial(settings, made, tuple(cells))


async def run_trial(
    made: Trial,
    folder: Path,
    *,
    jobs: int = 1,
    again: bool = True,
    progress: Progress | None = None,
    keep: KeepRun | None = None,
    replies: ResponseCache | None = None,
    plans: Path | None = None,
) -> EvaluationPlan:
    """Tries what the log folder lacks; `keep`: every run with its tape.

    What `replies` knows is not asked of a model again, under whichever strategy. Omni-RAG's source
    plans are stored in `plans` with what they found, and read from there. Raises `BadRun` where
    the folder was made otherwise.
    """
    _refuse_changed_base(folder, made, planning.save_plan(folder, made.plan))

    async def prepare(label: str) -> ReadyStrategy:
        ready = await prepare_strategy(made.settings[label], keep, replies, plans)
        known = replace(
            made.plan.entrants[label], models=dict(ready.models), snapshot=ready.snapshot
        )
        planning.save_plan(folder, replace(made.plan, entrants={known.label: known}))
        return ready

    await EvaluationRunner(folder, prepare, jobs, again, progress).run(made.cells)
    return planning.read_plan(folder)


def _refuse_changed_base(folder: Path, made: Trial, whole: EvaluationPlan) -> None:
    """Raises `BadRun` where a strategy has begun on another knowledge base: with nothing left to
    try it would not be opened, and its former figures would be taken for new ones."""
    for label, settings in made.settings.items():
        begun = whole.entrants[label]
        if begun.snapshot:
            with suppress(KnowledgeBaseError):  # a log may be elsewhere than its knowledge base
                now = replace(begun, snapshot=open_knowledge_base(settings).snapshot)
                planning.save_plan(folder, replace(whole, entrants={label: now}))


@dataclass(frozen=True)
class SharedTrial:
    """A trial that workers share: each tries what no other has claimed in the log folder, which
    all see with the data and the knowledge base."""

    trial: Trial
    folder: Path
    jobs: int = 1
    again: bool = True
    plans: Path | None = None

    def run_on(self, pool: WorkerPool, workers: int) -> None:
        """Returns when every sample was tried. Raises as `run_trial` does."""
        planning.save_plan(self.folder, self.trial.plan)
        for _ in pool.map(self.make_stage, range(workers)):
            pass

    def make_stage(self) -> Callable[[int], None]:
        return self._take_part

    def _take_part(self, _worker: int) -> None:
        work = partial(run_trial, self.trial, self.folder, jobs=self.jobs)
        asyncio.run(work(again=self.again, plans=self.plans))


# `save_plan` merges: it refuses what differs and adds what is new.


async def prepare_strategy(
    settings: Settings,
    keep: KeepRun | None = None,
    replies: ResponseCache | None = None,
    plans: Path | None = None,
) -> ReadyStrategy:
    """The strategy, with its models and its knowledge base open.

    Raises `BadConfig` for tapes together with stored plans: what a plan has found is on no tape.
    """
    if keep is not None and plans is not None:
        raise BadConfig("a run from a stored plan cannot be replayed", fix="leave out --tapes")
    parts = _watch_searches(await live_parts(settings))
    accelerators = count_accelerators(parts)
    if replies is not None:
        parts = remember_replies(settings, parts, replies)
    solver: Solver = build_solver(settings, parts)
    if plans is not None:
        solver = plan_once(solver, settings, parts, plans)

    def record_sample(keep: KeepRun) -> tuple[Solver, Keep]:
        tape = Tape()
        recorded = record_parts(parts, tape)
        return build_solver(settings, recorded), partial(keep, settings, recorded, tape)

    return ReadyStrategy(
        solver,
        {str(role): name for role, name in parts.names.items()},
        parts.snapshot,
        run_budget(settings),
        settings.sampling.seed,
        settings.strategy.kind,
        accelerators,
        None if keep is None else partial(record_sample, keep),
        note_roles(settings),
        run_prices(settings, parts.names),
    )


def _watch_searches(parts: Parts) -> Parts:
    """The same parts; what a search finds, and how long it takes, is noted for its sample."""
    return replace(
        parts, retriever=lambda name, sources: WatchedRetriever(parts.retriever(name, sources))
    )


def count_accelerators(parts: Parts) -> int:
    """Accelerators that the models run on; 0 where one of them has none, or does not say."""
    # Models behind a server have no such attribute: what they run on is not ours to know.
    counts = [getattr(ready.model, "accelerators", 0) for ready in parts.models.values()]
    return max(counts) if all(counts) and counts else 0


async def judge_answers(
    settings: Settings,
    folder: Path,
    form: Form,
    *,
    limit: int | None = None,
    progress: Progress | None = None,
) -> list[Judgement]:
    """New judgements by the model in the role `judge`. Raises `BadRun` where there is
    nothing to judge."""
    planning.read_plan(folder)
    ready = (await load_roles(settings, ("judge",)))["judge"]
    made = []
    async for one in JudgingRun(folder, form, Judge(ready.model, ready.constrains), limit).run():
        made.append(one)
        if progress is not None:
            progress(f"{form} by {one.judge}", len(made), None)
    return made


def trained_weights(settings: Settings) -> tuple[Path, ...]:
    """Files and folders of weights that a strategy of these settings uses, without doubles."""
    chosen: list[Path | None] = []
    for role in roles_of(settings):
        model = settings.model_for(role)
        chosen += [model.path, model.adapter]
    if reads_knowledge(settings):
        chosen += [settings.embedder.path, settings.embedder.passage_path, settings.reranker.path]
        used = {name: expert_in_use(settings, name) for name in SWITCHES}
        chosen += [packaged_folder() / name for name, how in used.items() if how == PACKAGED]
    return tuple(dict.fromkeys(path for path in chosen if path is not None))


def trained_digests(settings: Settings) -> frozenset[str]:
    """Digests of the questions that any weights in use were trained on. Raises `BadRun`."""
    lists = [read_trained_on(list_beside(path)) for path in trained_weights(settings)]
    return frozenset[str]().union(*lists)


def count_trained_on(
    settings: Mapping[str, Settings], tasks: Mapping[str, Sequence[Sample]]
) -> dict[str, dict[str, int]]:
    """Strategy → task → number of its samples that a model of the strategy was trained on.

    Pairs without any are left out. Raises `BadRun` for a damaged list.
    """
    counts: dict[str, dict[str, int]] = {}
    for label, found in settings.items():
        if not (digests := trained_digests(found)):
            continue
        for task, samples in tasks.items():
            if seen := count_seen(samples, digests):
                counts.setdefault(label, {})[task] = seen
    return counts


def refuse_trained_on(
    counts: Mapping[str, Mapping[str, int]], tasks: Mapping[str, Sequence[Sample]]
) -> None:
    """Raises `BadConfig` where a strategy was trained on questions that would measure it."""
    for label, by_task in counts.items():
        for task, seen in by_task.items():
            raise BadConfig(
                f"{label} was trained on {seen} of {len(tasks[task])} questions of {task}",
                fix="measure it on questions that it has not seen, or give --trained-on to measure"
                " it all the same and have the report say so",
            )
