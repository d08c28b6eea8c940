"""The scoreboard: every strategy on the same questions, made from scored answers alone.

| Module | Has |
|---|---|
| `scores` | a line for each answer (score, cost, who decided), from a log folder or a file |
| `tables` | rows with intervals, tests, costs, risk over coverage; what may not stand together |
| `page` | the page of all of it, its CSV, and what was shown of the papers' claims |

A log folder holds questions and answers, which may be under a licence that forbids to publish
them; the file of scores holds hashes and numbers, so that everybody can make the page again.
"""

from osler_lab.evaluate.experiments import Experiment, read_description


def read_scoreboard(name: str) -> Experiment:
    """Reads a packaged scoreboard or the user's own TOML file. Raises `BadConfig`."""
    return read_description(name, __name__, Experiment)
