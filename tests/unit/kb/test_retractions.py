"""Retraction Watch's list, joined to a knowledge base by PMID and DOI."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osler.errors import MalformedSource
from osler.kb.base import KnowledgeBase
from osler.kb.search.base import EVERYTHING, PassageFilter
from osler.retrieve.hybrid import search
from osler.sources.notices import Notice, choose_notice
from osler_lab.testing.scripted import HashingEncoder

COLUMNS = (
    """
Record ID|Title|Subject|Institution|Journal|Publisher|Country|Author|URLS|ArticleType|RetractionDate
RetractionDOI|RetractionPubMedID|OriginalPaperDate|OriginalPaperDOI|OriginalPaperPubMedID
RetractionNature|Reason|Paywalled|Notes
""".strip()
    .replace("\n", "|")
    .split("|")
)
ARTICLES = """PMID- {n}
TI  - Oral iron in trial {n}.
AB  - Oral iron in group {n} treats iron deficiency anaemia.
LID - 10.1000/Iron.{n} [doi]
DP  - 2020

"""
REASON = "+Falsification/Fabrication of Data;+Error in Data;"
MARK = "Retraction, 2022-07-14: Falsification/Fabrication of Data; Error in Data"


def write_list(path: Path, *rows: Mapping[str, str]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, restval="")
        table.writeheader()
        table.writerows(rows)
    return path


def notice(
    pmid: object = "0", nature: str = "Retraction", day: str = "7/14/2022 0:00", doi: str = ""
) -> dict[str, str]:
    return {
        "RetractionNature": nature,
        "RetractionDate": day,
        "Reason": REASON,
        "OriginalPaperPubMedID": str(pmid),
        "OriginalPaperDOI": doi or "unavailable",
    }


def write_articles(path: Path, *numbers: int) -> Path:
    path.write_text("".join(ARTICLES.format(n=n) for n in numbers), encoding="utf-8")
    return path


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.create(tmp_path / "kb") as made:
        made.add([write_articles(tmp_path / "a.nbib", 1, 2, 3)], source="research")
        made.build(HashingEncoder())
        yield made


def notices(kb: KnowledgeBase) -> dict[str, str]:
    ids = [f"research:{n}#0" for n in range(1, 9)]
    held = {one.id for group in kb.read_documents("research") for one in group}
    return {id[9]: told for id in ids if id in held and (told := kb.get(id).locator.notice)}


def found(kb: KnowledgeBase, within: PassageFilter = EVERYTHING) -> list[str]:
    return [one.id for one, _ in kb.by_words(["iron"], k=9, within=within)]


def test_works_are_joined_by_pmid_and_by_doi_whatever_its_case(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    rows = (notice(1), notice(doi="10.1000/IRON.2"), notice(99), notice(), notice(3, nature=""))
    done = kb.mark_retractions(write_list(tmp_path / "rw.csv", *rows))
    assert notices(kb) == {"1": MARK, "2": MARK}
    assert (done.notices, done.changed, done.marked) == (3, 2, {"Retraction": 2})
    assert done.drops == {"neither PMID nor DOI": 1, "no nature": 1}
    assert kb.list_retracted() == {"research:1", "research:2"}


def test_of_two_works_in_one_issue_the_retracted_one_is_marked(tmp_path: Path) -> None:
    doi = "10.1002/(SICI)1097-0258(1998)17:15/16<{n}::AID-SIM{n}>3.0.CO;2-2"
    work = f"TY  - JOUR\nTI  - Trial {{n}}\nAB  - Iron {{n}}.\nDO  - {doi}\nER  - \n"
    (tmp_path / "a.ris").write_text(work.format(n=8) + work.format(n=9))
    with KnowledgeBase.create(tmp_path / "kb") as kb:
        assert kb.add([tmp_path / "a.ris"], source="research").documents == 2
        kb.mark_retractions(write_list(tmp_path / "rw.csv", notice(doi=doi.format(n=9))))
        assert [one.text for one, _ in kb.by_words(["iron"], k=9)] == ["Iron 8."]


def test_what_is_retracted_is_found_only_where_asked_for_and_then_last(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    kb.mark_retractions(write_list(tmp_path / "rw.csv", notice(1)))
    assert found(kb) == ["research:2#0", "research:3#0"]
    assert found(kb, PassageFilter(retracted=True))[-1] == "research:1#0"
    kb.build(HashingEncoder())
    hits = search(kb, "oral iron in trial 1", k=3, encoder=HashingEncoder())
    assert {hit.passage.id for hit in hits} == {"research:2#0", "research:3#0"}


@pytest.mark.parametrize("nature", ["Expression of concern", "Correction"])
def test_a_lesser_notice_is_a_mark_and_the_work_is_still_found(
    kb: KnowledgeBase, tmp_path: Path, nature: str
) -> None:
    kb.mark_retractions(write_list(tmp_path / "rw.csv", notice(1, nature)))
    assert notices(kb)["1"].startswith(f"{nature}, 2022-07-14: ")
    assert len(found(kb)) == 3


def test_a_document_that_comes_in_later_is_marked_as_it_comes(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    kb.mark_retractions(write_list(tmp_path / "rw.csv", notice(5)))
    kb.add([write_articles(tmp_path / "b.nbib", 4, 5)], source="research")
    assert notices(kb) == {"5": MARK}
    assert kb.provenance("research:5#0").retracted


def test_a_file_that_is_read_again_does_not_lose_its_marks(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    kb.mark_retractions(write_list(tmp_path / "rw.csv", notice(1)))
    write_articles(tmp_path / "a.nbib", 1, 2, 3, 4)
    kb.update(checksum=True)
    assert notices(kb) == {"1": MARK}
    assert "research:1#0" not in found(kb)


def test_an_update_asks_the_list_anew_and_a_mark_that_went_goes(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    path = write_list(tmp_path / "rw.csv", notice(1))
    kb.mark_retractions(path)
    write_list(path, notice(2), notice(3, "Correction"))
    os.utime(path, ns=(1, 1))
    kb.update()
    assert set(notices(kb)) == {"2", "3"}
    assert kb.list_retracted() == {"research:2"}
    path.unlink()
    kb.update()
    assert set(notices(kb)) == {"2", "3"}, "the list holds where its file is gone"


def test_another_table_is_refused_and_the_marks_stay(kb: KnowledgeBase, tmp_path: Path) -> None:
    kb.mark_retractions(write_list(tmp_path / "rw.csv", notice(1)))
    other = tmp_path / "other.csv"
    other.write_text("PMID,Reason\n2,x\n")
    with pytest.raises(MalformedSource, match="has no column"):
        kb.mark_retractions(other)
    assert set(notices(kb)) == {"1"}


def told(nature: str, day: int) -> Notice:
    return Notice(nature, (date(2020, 1, 1) + timedelta(day)).isoformat(), "")


GRAVE = ["Correction", "Expression of concern", "Retraction"]


@given(st.lists(st.tuples(st.sampled_from(GRAVE), st.integers(0, 900)), min_size=1))
def test_the_gravest_notice_stands_whatever_the_order(rows: list[tuple[str, int]]) -> None:
    chosen = choose_notice(told(*row) for row in rows)
    assert chosen is not None
    assert chosen.nature == max((nature for nature, _ in rows), key=GRAVE.index)
    assert chosen == choose_notice(told(*row) for row in reversed(rows))


@pytest.mark.parametrize("nature", GRAVE)
def test_a_notice_without_a_day_stands_and_a_reinstatement_without_one_ends_nothing(
    nature: str,
) -> None:
    undated, dated = Notice(nature, "", ""), told(nature, 1)
    assert choose_notice([undated, told("Reinstatement", 401)]) == undated
    assert choose_notice([dated, Notice("Reinstatement", "", "")]) == dated


@pytest.mark.parametrize("swap", [1, -1])
def test_a_reinstatement_ends_what_is_of_its_day_whatever_the_order(swap: int) -> None:
    assert choose_notice([told("Retraction", 1), told("Reinstatement", 1)][::swap]) == told(
        "Reinstatement", 1
    )


def test_days_are_read_with_their_time_and_those_that_cannot_be_are_counted(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    days = ("2022-07-14T00:00:00", "2022/07/14", "last summer")
    rows = [notice(n, day=day) for n, day in enumerate(days, 1)]
    done = kb.mark_retractions(write_list(tmp_path / "rw.csv", *rows))
    assert notices(kb) == {"1": MARK, "2": MARK, "3": MARK.replace(", 2022-07-14", "")}
    assert (done.notices, done.drops) == (3, {"unknown day": 1})


@given(st.integers(0, 400), st.integers(401, 900))
def test_a_reinstatement_ends_what_is_older_and_nothing_later(first: int, second: int) -> None:
    old, new = told("Retraction", first), told("Retraction", second)
    back = told("Reinstatement", 401)
    assert choose_notice([back, old]) == back
    assert choose_notice([new, back, old]) == (new if second > 401 else back)
