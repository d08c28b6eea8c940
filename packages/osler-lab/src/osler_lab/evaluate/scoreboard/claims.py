"""What the papers claim, and what was shown of it here.

`claims.toml` holds a claim with the papers' figure, ours, and one sentence of reason. A claim is
`shown` only by an effect whose 95 % interval leaves out no effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from pydantic import TypeAdapter

from osler.text import read_packaged_table
from osler_lab.evaluate.intervals import difference, proportion
from osler_lab.evaluate.scoreboard.scores import ScoredLog, of_task
from osler_lab.evaluate.scoreboard.tables import require_same_conditions

Status = Literal["shown", "refuted here", "cannot be shown with these models"]
STATUSES: tuple[Status, ...] = get_args(Status)


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of a paper beside what was measured here."""

    paper: Literal["TC-RAG", "KAG-Thinker", "Omni-RAG"]
    place: str
    claim: str
    theirs: str
    """The paper's figure."""
    status: Status
    measured: str
    """What was measured here, on how many questions."""
    why: str
    """One sentence: why it has this status."""
    source: str
    """Where the figure stands: a heading of the evaluation log, or "this page"."""
    effect: tuple[float, float, float] | None = None
    """Our figure with its 95 % interval; `None` if absent."""
    no_effect: float = 0.0
    """What `effect` would be without any effect."""
    compared: tuple[str, str, str] | None = None
    """Data set and two strategies: status and figure follow from their scores, second less first;
    the status that is written stands where the scores lack them."""

    def __post_init__(self) -> None:
        """Raises `ValueError` for a claim that is shown without an interval that says so."""
        if self.status != "shown":
            return
        if self.effect is None:
            raise ValueError(f"{self.place}: shown, and no effect with an interval")
        _, low, high = self.effect
        if low <= self.no_effect <= high:
            raise ValueError(f"{self.place}: the interval [{low}, {high}] holds no effect")

    @property
    def ours(self) -> str:
        """Our figure as a table shows it."""
        if self.effect is None:
            return "–"
        value, low, high = self.effect
        return f"{value:.3g} [{low:.3g}, {high:.3g}]"


def read_claims() -> Sequence[Claim]:
    """The packaged claims, in the order of the papers."""
    rows = read_packaged_table(__package__, "claims.toml")["claim"]
    return TypeAdapter(tuple[Claim, ...]).validate_python(rows)


def settle_claim(claim: Claim, log: ScoredLog) -> Claim:
    """The claim as the scores have it; as it is where it rests on the evaluation log alone."""
    if claim.compared is None:
        return claim
    task, first, second = claim.compared
    found = of_task(log.scores, task, (first, second))
    if len(found) < 2:
        return replace(claim, measured=f"{second} less {first} on {task}: not in these scores")
    require_same_conditions(log, task, found)
    ids = sorted(found[first])
    gain = difference([found[first][i].right for i in ids], [found[second][i].right for i in ids])
    if gain.value == 1:  # a bootstrap of ones has no width
        gain = proportion(gain.n, gain.n)
    status: Status = "cannot be shown with these models"
    if gain.low > 0 or gain.high < 0:
        status = "shown" if gain.low > 0 else "refuted here"
    return replace(
        claim,
        status=status,
        measured=f"share right on {task}, {second} less {first}, n = {gain.n}, paired",
        effect=(gain.value, gain.low, gain.high),
    )


def count_statuses(claims: Sequence[Claim]) -> dict[Status, int]:
    """How many claims have each status."""
    return {status: sum(one.status == status for one in claims) for status in STATUSES}
