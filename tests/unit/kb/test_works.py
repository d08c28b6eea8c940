"""Authors and journal of a document stand on each of its passages, and go out with an export."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from osler.kb.base import KnowledgeBase
from osler.kb.search.base import PassageFilter
from osler.kb.store.access import FILE
from osler_lab.testing.scripted import HashingEncoder

PUBMED = """<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID Version="1">12230038</PMID>
<Article><Journal><JournalIssue><PubDate><Year>2021</Year><Month>Mar</Month></PubDate></JournalIssue></Journal>
<ArticleTitle>Oral iron every other day.</ArticleTitle>
<ELocationID EIdType="doi">10.1000/Iron.1</ELocationID>
<Abstract><AbstractText>Oral iron on alternate days is absorbed better.</AbstractText></Abstract>
<AuthorList><Author><LastName>Smith</LastName><ForeName>Jane</ForeName><Initials>J</Initials>
<AffiliationInfo><Affiliation>Somewhere</Affiliation></AffiliationInfo></Author>
<Author><LastName>Lee</LastName><Initials>K</Initials></Author>
<Author><CollectiveName>Iron Study Group</CollectiveName></Author></AuthorList>
<PublicationTypeList><PublicationType>Journal Article</PublicationType></PublicationTypeList>
</Article><MedlineJournalInfo><MedlineTA>J Iron</MedlineTA></MedlineJournalInfo>
{links}</MedlineCitation></PubmedArticle></PubmedArticleSet>"""
OLD = "DROP TABLE work; DROP TABLE notice; ALTER TABLE document DROP COLUMN date"


def add_article(folder: Path, links: str = "") -> KnowledgeBase:
    file = folder / "pubmed.xml"
    file.write_text(PUBMED.format(links=links), encoding="utf-8")
    kb = KnowledgeBase.create(folder / "kb")
    kb.add([file], source="research")
    kb.build(HashingEncoder())
    return kb


def test_a_passage_names_authors_year_and_journal(tmp_path: Path) -> None:
    with add_article(tmp_path) as kb:
        place = kb.get("research:12230038#0").locator
    assert place.authors == ("Smith J", "Lee K", "Iron Study Group")
    assert place.byline == "Smith J, Lee K et al. · 2021-03 · J Iron"
    assert str(place) == f"{place.byline} · Journal Article, PMID:12230038"


def test_authors_come_back_from_an_export(tmp_path: Path) -> None:
    with add_article(tmp_path) as kb:
        before = kb.get("research:12230038#0")
        kb.export(tmp_path / "out.jsonl")
    with KnowledgeBase.create(tmp_path / "again") as other:
        other.add_export([tmp_path / "out.jsonl"])
        assert other.get(before.id) == before


def test_a_base_from_before_authors_still_opens_and_takes_new_documents(tmp_path: Path) -> None:
    with add_article(tmp_path) as kb:
        pass
    with closing(sqlite3.connect(kb.path / FILE)) as db:
        db.executescript(OLD)
    with KnowledgeBase.open(kb.path) as old:
        assert old.get("research:12230038#0").locator.byline == ""
        assert [one.id for one, _ in old.by_words(["iron"], k=3)] == ["research:12230038#0"]
        # It keeps the year alone, which counts as of its last day.
        for day, found in ((20210401, 0), (20211231, 1)):
            within = PassageFilter(days=(None, day), as_of=day)
            assert len(old.by_words(["iron"], k=3, within=within)) == found
        old.export(tmp_path / "old.jsonl")
        later = (tmp_path / "pubmed.xml").read_text(encoding="utf-8").replace("12230038", "12")
        (tmp_path / "later.xml").write_text(later.replace("every", "each"), encoding="utf-8")
        old.add([tmp_path / "later.xml"], source="research")
        place = old.get("research:12#0").locator
        assert (place.journal, place.date) == ("J Iron", "2021-03")
        within = PassageFilter(days=(None, 20210401), as_of=20210401)
        assert [one.id for one, _ in old.by_words(["iron"], k=3, within=within)] == [
            "research:12#0"
        ]


@pytest.mark.parametrize(
    ("kind", "mark", "retracted"),
    [
        ("RetractionIn", "Retraction: J Iron. 2022 Feb 1;3:4", True),
        ("RetractedandRepublishedIn", "Retraction: J Iron. 2022 Feb 1;3:4", True),
        ("ExpressionOfConcernIn", "Expression of concern: J Iron. 2022 Feb 1;3:4", False),
        ("ErratumIn", "Correction: J Iron. 2022 Feb 1;3:4", False),
        ("CommentIn", "", False),
    ],
)
def test_notices_in_a_pubmed_record_are_marks_with_their_place(
    tmp_path: Path, kind: str, mark: str, retracted: bool
) -> None:
    links = (
        f'<CommentsCorrectionsList><CommentsCorrections RefType="{kind}">'
        "<RefSource>J Iron. 2022 Feb 1;3:4</RefSource></CommentsCorrections>"
        "</CommentsCorrectionsList>"
    )
    with add_article(tmp_path, links) as kb:
        passage = kb.get("research:12230038#0")
        assert passage.locator.notice == mark
        assert passage.locator.is_retracted == retracted
        assert kb.provenance(passage.id).retracted == retracted
        assert bool(kb.by_words(["iron"], k=3)) != retracted
