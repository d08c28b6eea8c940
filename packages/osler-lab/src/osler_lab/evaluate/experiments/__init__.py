"""Experiments as data: the runs, and the table or figure of a paper that they repeat."""

from __future__ import annotations

from dataclasses import dataclass

from osler_lab.evaluate.descriptions import described, list_names, read_description, require_tasks


@described
@dataclass(frozen=True, slots=True)
class Experiment:
    """Description of an experiment: a file of this folder, or one of the user's own."""

    name: str
    repeats: str
    """The paper's table or figure."""
    about: str
    strategies: tuple[str, ...]
    tasks: tuple[str, ...] = ()
    limit: int | None = None
    seed: int = 0
    across: tuple[str, ...] = ()
    """Settings in turn ("roles.reader.name=…"): every strategy is run with each of them."""
    command: str = ""
    """Command that runs it, where `osler eval run` does not."""

    def __post_init__(self) -> None:
        if bool(self.tasks) == bool(self.command):
            raise ValueError("an experiment has either tasks or a command")
        require_tasks("tasks", self.tasks)

    @property
    def labels(self) -> tuple[str, ...]:
        """The strategies, each with each of `across`."""
        return tuple(
            f"{strategy}:{more}" if more else strategy
            for more in self.across or ("",)
            for strategy in self.strategies
        )


def experiment_names() -> tuple[str, ...]:
    """Returns the names of the packaged experiments."""
    return list_names(__name__)


def read_experiment(name: str) -> Experiment:
    """Reads a packaged experiment or the user's own TOML file. Raises `BadConfig`."""
    return read_description(name, __name__, Experiment)
