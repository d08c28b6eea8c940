"""Training ablations as data: the variants, and the table or figure of a paper they repeat."""

from __future__ import annotations

from dataclasses import dataclass, replace

from osler.errors import BadConfig
from osler.sources.catalogue import ALL_SOURCES
from osler_lab.evaluate.experiments import (
    described,
    read_description,
    require_known,
    require_tasks,
)
from osler_lab.train.record import Kind
from osler_lab.train.spo.recipe import Learns, RecordRecipe


@described
@dataclass(frozen=True, slots=True)
class AblationVariant:
    """Row of an ablation."""

    name: str
    stages: tuple[Kind, ...] = ("sft", "dpo")
    """Stages of its training, in order; empty = not trained."""
    learns: Learns = "positive"
    ratio: float = 1.0
    without_tasks: tuple[str, ...] = ()
    """Data sets that it is not trained on, in all their splits."""
    without_sources: tuple[str, ...] = ()
    offered: tuple[str, ...] = ()
    """Sources on offer when it is tested (`osler eval run --ablation`); empty = all."""
    tested_on: tuple[str, ...] = ()
    """Data sets that it is tested on by `osler eval run --ablation`; empty = as asked for."""
    judge: str = ""
    """Value for `osler train judge --by`; empty = the judge at hand."""
    settings: tuple[str, ...] = ()
    """Settings of its judge, as "roles.judge.name=…"."""

    def __post_init__(self) -> None:
        require_tasks("without_tasks", self.without_tasks)
        require_tasks("tested_on", self.tested_on)
        # A source of the user's own is known to his knowledge base alone.
        require_known("without_sources", self.without_sources, ALL_SOURCES, others=True)
        require_known("offered", self.offered, ALL_SOURCES, others=True)

    def tested_label(self, strategy: str) -> str:
        """The strategy as it is tested: "omni-rag:kb.sources=book"."""
        return f"{strategy}:kb.sources={','.join(self.offered)}" if self.offered else strategy

    def recipe(self, base: RecordRecipe, stage: Kind) -> RecordRecipe:
        """The base with what this row changes. Raises `BadConfig` for a stage that it has not."""
        if stage not in self.stages:
            raise BadConfig(
                f"{self.name} has no {stage.upper()}",
                fix=f"it is trained by {', '.join(self.stages) or 'nothing'}",
            )
        return replace(
            base,
            learns=self.learns,
            ratio=self.ratio,
            # An ablation narrows what the user asked for, and never takes back an exclusion.
            without_tasks=(*base.without_tasks, *self.without_tasks),
            without_sources=(*base.without_sources, *self.without_sources),
        )


@described
@dataclass(frozen=True, slots=True)
class Ablation:
    """Description of an ablation: a file of this folder, or one of the user's own."""

    name: str
    repeats: str
    """The paper's table or figure."""
    about: str
    variants: tuple[AblationVariant, ...]

    def __post_init__(self) -> None:
        names = [variant.name for variant in self.variants]
        if not names or len(set(names)) < len(names):
            raise ValueError("an ablation has variants, each of its own name")

    def variant(self, name: str) -> AblationVariant:
        """Raises `BadConfig`."""
        by_name = {variant.name: variant for variant in self.variants}
        if name not in by_name:
            raise BadConfig(
                f"{self.name} has no {name!r}",
                fix="choose one of " + ", ".join(f"{self.name}:{known}" for known in by_name),
            )
        return by_name[name]


def read_ablation(name: str) -> Ablation:
    """Reads a packaged ablation or the user's own TOML file. Raises `BadConfig`."""
    return read_description(name, __name__, Ablation)


def read_variant(word: str) -> AblationVariant:
    """Reads a row as the command line names it: "data-ratio:0.25". Raises `BadConfig`."""
    name, _, row = word.rpartition(":")
    return read_ablation(name or row).variant(row if name else "")
