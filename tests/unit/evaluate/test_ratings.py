"""Table 5 from people's sheets."""

from pathlib import Path

import pytest

from osler.errors import BadRun, MalformedSource
from osler_lab.evaluate.agreement import require_logged, tabulate_ratings
from osler_lab.evaluate.judges import read_ratings

HEAD = "strategy,task,id,rater,relevance,completeness,proficiency,interpretability\n"
ROWS = (
    "direct,liveqa,q1,ann,2,1,3,-\n"
    "direct,liveqa,q1,bob,4,1,3,-\n"
    "direct,liveqa,q2,ann,5,2,3,\n"
    "rag,liveqa,q1,ann,5,5,4,5\n"
    "rag,medicationqa,m1,ann,3,4,4,1\n"
)


@pytest.fixture
def sheet(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text(HEAD + ROWS, encoding="utf-8")
    return path


def test_an_answer_counts_once_however_many_people_rated_it(sheet: Path) -> None:
    """Of direct: (2 + 4) / 2 and 5 have the mean 4; by ratings it would be 11 / 3."""
    table = tabulate_ratings(read_ratings(sheet))
    direct, live, medication = table.cells
    assert (direct.strategy, direct.task, direct.answers, direct.raters) == (
        "direct",
        "liveqa",
        2,
        2,
    )
    assert (direct.means["relevance"].value, direct.means["relevance"].n) == (4.0, 2)
    assert "interpretability" not in direct.means
    assert live.means["interpretability"].value == 5
    assert medication.means["interpretability"].value == 1


def test_how_far_raters_agree_is_told(sheet: Path) -> None:
    """One pair, 2 and 4: seen (2 - 4)^2 = 4; by chance, of the margins {2, 4}, the mean is 2."""
    found = {one.dimension: one for one in tabulate_ratings(read_ratings(sheet)).agreement}
    assert found["relevance"].n == 1
    assert found["relevance"].kappa == pytest.approx(1 - 4 / 2)
    assert found["completeness"].kappa is None
    assert "interpretability" not in found


def test_an_empty_sheet_has_no_table(tmp_path: Path) -> None:
    (tmp_path / "none.csv").write_text(HEAD, encoding="utf-8")
    with pytest.raises(BadRun, match="holds no rating"):
        tabulate_ratings(read_ratings(tmp_path / "none.csv"))


def test_a_mark_of_six_is_named_by_its_line(sheet: Path) -> None:
    sheet.write_text(f"{HEAD}direct,liveqa,q1,ann,6,1,3,-\n", encoding="utf-8")
    with pytest.raises(MalformedSource, match=r"people\.csv:2: '6' is not a mark"):
        read_ratings(sheet)


def test_a_rating_of_an_answer_that_nobody_gave_is_refused(sheet: Path, tmp_path: Path) -> None:
    with pytest.raises(BadRun, match="no answer of direct to q1 of liveqa"):
        require_logged(tmp_path, read_ratings(sheet))
