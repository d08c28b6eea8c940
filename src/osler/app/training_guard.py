"""No model is measured by questions that it was trained on: weights in use, against samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from osler.app.config import Settings
from osler.app.wiring import reads_knowledge, roles_of
from osler.app.wiring.experts import PACKAGED, SWITCHES, expert_in_use
from osler.errors import BadConfig
from osler.evaluate.record import Sample
from osler.evaluate.trained_on import count_seen, list_beside, read_trained_on
from osler.retrieve.experts.shelf import packaged_folder


def trained_weights(settings: Settings) -> tuple[Path, ...]:
    """Files and folders of weights that a strategy of these settings uses, without doubles."""
    return tuple(dict.fromkeys(_weights_in_use(settings)))


def _weights_in_use(settings: Settings) -> Iterator[Path]:
    chosen: list[Path | None] = []
    for role in roles_of(settings):
        model = settings.model_for(role)
        chosen += [model.path, model.adapter]
    if reads_knowledge(settings):
        chosen += [settings.embedder.path, settings.embedder.passage_path, settings.reranker.path]
        used = {name: expert_in_use(settings, name) for name in SWITCHES}
        chosen += [packaged_folder() / name for name, how in used.items() if how == PACKAGED]
    yield from (path for path in chosen if path is not None)


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
