"""A context that is too small for all passages is shown the first of them, and that is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from mannered_runs import IRON, TEA, run_mannered
from manners import Manners

from osler.errors import PromptTooLong

LONG = tuple(
    replace(TEA, id=f"book:tea#{n}", text=f"{TEA.text} " + "Tea is drunk in the morning. " * 40)
    for n in range(1, 8)
)
NO_ROOM = "The model's context had no room for all passages: the last of them were not read."


@pytest.mark.parametrize("kind", ["rag", "medrag", "omni-rag"])
async def test_the_first_passages_are_read_where_not_all_fit(kind: str, tmp_path: Path) -> None:
    manners = Manners(context=1700)
    done = await run_mannered({"kind": kind, "k": 8}, manners, tmp_path, passages=(IRON, *LONG))
    assert done.text.startswith("Oral iron treats iron deficiency anaemia.")
    assert done.text.endswith(NO_ROOM)
    assert "had room for 2 of 8 passages" in done.notes or "4 of 8" in done.notes


@pytest.mark.parametrize("kind", ["rag", "omni-rag"])
async def test_a_context_that_no_passage_fits_is_an_error_with_its_fix(
    kind: str, tmp_path: Path
) -> None:
    with pytest.raises(PromptTooLong) as refused:
        await run_mannered({"kind": kind}, Manners(context=520), tmp_path)
    assert "give the model a larger context" in refused.value.fix


async def test_nothing_is_said_where_all_fit(tmp_path: Path) -> None:
    done = await run_mannered({"kind": "rag"}, Manners(), tmp_path)
    assert NO_ROOM not in done.text
