"""Hard and soft targets of a step's rows, and what each counts."""

from typing import Any

import pytest

from osler.retrieve.experts.judge import JudgedText
from osler.train.experts.judge_batches import JudgeRow

pytestmark = pytest.mark.torch
TEXTS = (JudgedText("It is treated with drops."), JudgedText("It is rare."))
LABELLED = JudgeRow("how?", TEXTS, (1.0, 0.0), (None, None))
UNLABELLED = JudgeRow("why?", TEXTS, (None, None), (2.0, -3.0))
TAUGHT = JudgeRow("what?", TEXTS, (1.0, 0.0), (2.0, -3.0))


def targets_of(*rows: JudgeRow, hard: float = 0.25) -> Any:
    from osler.train.experts.row_losses import RowTargets

    return RowTargets.of(rows, hard, "cpu")


def losses_of(*rows: JudgeRow, scores: tuple[float, float]) -> tuple[float, float]:
    import torch

    from osler.train.experts.row_losses import cosine_loss, pair_loss

    found, targets = torch.tensor([scores] * len(rows)), targets_of(*rows)
    return pair_loss(found, targets).item(), cosine_loss(found, targets).item()


def test_an_unlabelled_row_has_no_hard_loss() -> None:
    targets = targets_of(LABELLED, UNLABELLED)
    assert targets.labelled.tolist() == [[0.125, 0.125], [0, 0]]
    assert targets.answered.tolist() == [0.25, 0]
    assert targets.scored.tolist() == [[0, 0], [0.5, 0.5]]
    assert targets.ranked.tolist() == [0, 1]


def test_labels_count_whole_without_a_teacher() -> None:
    assert targets_of(LABELLED).answered.tolist() == [1]
    assert targets_of(TAUGHT).answered.tolist() == [0.25]


@pytest.mark.parametrize("row", [LABELLED, UNLABELLED, TAUGHT])
def test_the_loss_is_least_where_the_scores_are_as_wanted(row: JudgeRow) -> None:
    right = losses_of(row, scores=(2.0, -3.0))
    for wrong in ((-3.0, 2.0), (0.0, 0.0)):
        assert all(a < b for a, b in zip(right, losses_of(row, scores=wrong), strict=True))
    if row is UNLABELLED:
        assert right[1] == pytest.approx(0, abs=1e-5)


def test_a_text_that_nobody_scored_changes_no_soft_loss() -> None:
    import torch

    from osler.train.experts.row_losses import cosine_loss

    row = JudgeRow("why?", (*TEXTS, TEXTS[0]), (None, None, 0.0), (2.0, -3.0, None))
    values = [
        cosine_loss(torch.tensor([[2.0, 1.0, far]]), targets_of(row)).item() for far in (-9.0, 9.0)
    ]
    assert values[0] == pytest.approx(values[1])


def test_parts_of_a_step_sum_up_to_it() -> None:
    import torch

    from osler.train.experts.row_losses import pair_loss

    targets = targets_of(LABELLED, UNLABELLED, TAUGHT)
    scores = torch.tensor([[1.0, 0.5], [-1.0, 0.0], [0.3, 2.0]])
    parts = [slice(0, 2), slice(2, 3)]
    summed = sum(pair_loss(scores[one], targets.take_rows(one)).item() for one in parts)
    assert summed == pytest.approx(pair_loss(scores, targets).item(), abs=1e-5)
