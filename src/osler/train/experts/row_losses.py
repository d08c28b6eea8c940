"""What the scores of a step's rows should be, and how far they are from it.

Labels are hard targets: which of a row's sentences answers, and whether one does at all. A
teacher's logits are soft ones (Hinton et al. 2015). A step's rows may be read in parts: what counts
how much is set for the step as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from osler.llm.transformers.hub import import_extra
from osler.train.experts.judge_batches import JudgeRow

_FARTHEST = 6.0
"""Logits from which a difference counts no more."""


@dataclass(frozen=True, slots=True)
class RowTargets:
    """Tensors of a step: targets of shape (rows, texts), and what each counts; 0 = unknown."""

    worth: Any
    taught: Any
    labelled: Any
    """What each label counts, shape (rows, texts)."""
    scored: Any
    """What each of the teacher's logits counts."""
    answered: Any
    """What each row counts whose texts are all labelled, one of them right."""
    ranked: Any
    """What each row counts of which the teacher scored two or more texts."""

    @classmethod
    def of(cls, rows: Sequence[JudgeRow], hard: float, device: str) -> RowTargets:
        """The targets of whole rows; labels count `hard` beside a teacher, and 1 without."""
        torch = import_extra("torch")
        worth = _number_table([row.worth for row in rows], device)
        taught = _number_table([row.taught for row in rows], device)
        known, heard = ~worth.isnan(), ~taught.isnan()
        weight = hard if heard.any() else 1.0
        worth, taught = torch.nan_to_num(worth), torch.nan_to_num(taught)
        answered = known.all(1) & (worth.sum(1) > 0)
        return cls(
            worth,
            taught,
            weight * _share_among(known),
            _share_among(heard),
            weight * _share_among(answered),
            _share_among(heard.sum(1) >= 2),
        )

    def take_rows(self, rows: slice) -> RowTargets:
        """Some of the rows, which count what they count in the step."""
        return RowTargets(*(getattr(self, one.name)[rows] for one in fields(self)))


def _number_table(rows: Sequence[Sequence[float | None]], device: str) -> Any:
    torch = import_extra("torch")
    unknown = float("nan")
    table = [[unknown if one is None else one for one in row] for row in rows]
    return torch.tensor(table, dtype=torch.float32, device=device)


def _share_among(chosen: Any) -> Any:
    return chosen.float() / chosen.sum().clamp(min=1)


def pair_loss(scores: Any, targets: RowTargets) -> Any:
    """How far logits of pairs are from their targets.

    Which text answers, and whether each does, by labels and by the teacher; scores can be compared
    between questions.
    """
    labelled = _logistic_loss(scores, targets.worth, targets.labelled)
    whether = _logistic_loss(scores, targets.taught.sigmoid(), targets.scored)
    apart = (scores - targets.taught).clamp(-_FARTHEST, _FARTHEST) ** 2
    clearly = (targets.scored * apart).sum()
    which = _choice_loss(scores, targets) + _ranking_loss(scores, targets)
    return which + 0.5 * labelled + 0.5 * whether + 0.1 * clearly


def cosine_loss(scores: Any, targets: RowTargets) -> Any:
    """How far scores that are compared within a row alone are from their targets."""
    return _choice_loss(scores, targets) + _ranking_loss(scores, targets)


def _choice_loss(scores: Any, targets: RowTargets) -> Any:
    """Which text answers: the softmax over a row against its labels."""
    torch = import_extra("torch")
    shares = targets.worth / targets.worth.sum(1, keepdim=True).clamp(min=1e-6)
    return -(targets.answered[:, None] * shares * torch.log_softmax(scores, 1)).sum()


def _ranking_loss(scores: Any, targets: RowTargets) -> Any:
    """Kullback and Leibler's divergence of a row's softmax from the teacher's, over the texts that
    it scored."""
    torch = import_extra("torch")
    unknown = (targets.scored == 0) * -1e4
    wanted = torch.log_softmax(targets.taught + unknown, 1)
    found = torch.log_softmax(scores + unknown, 1)
    return (targets.ranked[:, None] * wanted.exp() * (wanted - found)).sum()


def _logistic_loss(scores: Any, wanted: Any, counts: Any) -> Any:
    whether = import_extra("torch").nn.functional.binary_cross_entropy_with_logits
    return (counts * whether(scores, wanted, reduction="none")).sum()
