"""The scoreboard: every strategy on the same questions, made from scored answers alone.

| Module | Has |
|---|---|
| `scores` | a line for each answer (score, cost, who decided), from a log folder or a file |
| `tables` | rows with intervals, tests, costs, risk over coverage; what may not stand together |
| `page` | the page of all of it, its CSV, and what was shown of the papers' claims |

A log folder holds questions and answers, which may be under a licence that forbids to publish
them; the file of scores holds hashes and numbers, so that everybody can make the page again.
"""

from __future__ import annotations

from dataclasses import dataclass

from osler_lab.evaluate.experiments import described, read_description, require_tasks


@described
@dataclass(frozen=True, slots=True)
class Scoreboard:
    """Description of a scoreboard: a file of this folder, or one of the user's own."""

    name: str
    about: str
    tasks: tuple[str, ...]
    strategies: tuple[str, ...]
    ablations: tuple[str, ...] = ()
    """Strategies without one of their parts; they stand in a table of their own."""
    limit: int | None = None
    """Most questions of each data set."""
    seed: int = 0

    def __post_init__(self) -> None:
        require_tasks("tasks", self.tasks)

    @property
    def labels(self) -> tuple[str, ...]:
        return (*self.strategies, *self.ablations)


def read_scoreboard(name: str) -> Scoreboard:
    """Reads a packaged scoreboard or the user's own TOML file. Raises `BadConfig`."""
    return read_description(name, __name__, Scoreboard)
