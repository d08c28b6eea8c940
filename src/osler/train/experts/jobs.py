"""One job for each expert: trained on the train part, measured on the test part."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Protocol, assert_never, get_args

from osler.jobs.runner import Progress
from osler.retrieve.experts.cards import CARD, ExpertCard, read_card
from osler.train import choose_named

ExpertKind = Literal["answers", "supports", "retrieve", "answerable"]
EXPERT_KINDS: tuple[ExpertKind, ...] = get_args(ExpertKind)


class ExpertJob(Protocol):
    """What makes an expert, from data and split to a folder with weights and card."""

    def train(self, progress: Progress | None = None) -> ExpertCard:
        """Trains on the train part alone; dev chooses and calibrates."""

    def evaluate(self, progress: Progress | None = None, *, limit: int | None = None) -> ExpertCard:
        """Measures on the test part; the card of the folder gets the figures."""


def make_job(
    name: str,
    data: Path,
    split: Path,
    out: Path,
    work: Path,
    *,
    threads: int = 1,
    steps: int | None = None,
    seed: int = 0,
    share: float | None = None,
) -> ExpertJob:
    """The job of an expert; without `share` that of the card in `out`, or 1.

    Raises `BadConfig` for a name that has no job.
    """
    kind = choose_named(name, EXPERT_KINDS, "expert")
    if share is None:
        share = read_card(out).parameters.get("share", 1.0) if (out / CARD).is_file() else 1.0
    match kind:
        case "answers":
            from osler.train.experts.answers_job import AnswersJob
            from osler.train.experts.pair_training import PairRecipe

            recipe = PairRecipe(steps=steps or PairRecipe().steps, seed=seed)
            return AnswersJob(data, split, out, work, recipe, threads)
        case "supports":
            from osler.train.experts.supports_job import SupportsJob

            return SupportsJob(data, split, out, work, seed, threads)
        case "retrieve":
            from osler.train.experts.query_map import MapRecipe
            from osler.train.experts.retrieve_job import RetrieveJob

            map_recipe = MapRecipe(steps=steps or MapRecipe().steps, seed=seed)
            return RetrieveJob(data, split, out, work, map_recipe, threads, share)
        case "answerable":
            from osler.train.experts.answerable_job import AnswerableJob

            return AnswerableJob(data, split, out, work, seed, threads, share)
        case _ as never:
            assert_never(never)
