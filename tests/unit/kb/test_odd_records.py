"""Records that contradict themselves or lack their other half: nothing is guessed of them."""

from __future__ import annotations

from pathlib import Path

from osler.answer.cautions import split_current
from osler.answer.currency import retraction_notice
from osler.answer.evidence_table import design_of
from osler.kb.base import KnowledgeBase
from osler.types import Hit, Passage

ARTICLE = """<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID Version="1">{pmid}</PMID>
<Article><Journal><JournalIssue><PubDate><Year>2019</Year></PubDate></JournalIssue></Journal>
<ArticleTitle>{title}</ArticleTitle><Abstract><AbstractText>{text}</AbstractText></Abstract>
<PublicationTypeList><PublicationType>{kind}</PublicationType></PublicationTypeList></Article>
</MedlineCitation></PubmedArticle></PubmedArticleSet>"""


def _hits(kb: KnowledgeBase, source: str) -> list[Hit]:
    passages = [one for document in kb.read_documents(source) for one in document]
    return [Hit(one, 1.0, rank, "q", source) for rank, one in enumerate(passages, 1)]


def _texts(passages: list[Hit]) -> list[str]:
    return [hit.passage.text for hit in passages]


def test_a_retraction_notice_without_its_paper_retracts_nothing(tmp_path: Path) -> None:
    (tmp_path / "notice.xml").write_text(
        ARTICLE.format(
            pmid=7,
            title="Retraction: a trial of examplol.",
            text="The trial is retracted.",
            kind="Retraction of Publication",
        )
    )
    (tmp_path / "other.xml").write_text(
        ARTICLE.format(pmid=8, title="A trial.", text="Examplol helped.", kind="Journal Article")
    )
    with KnowledgeBase.create(tmp_path / "kb") as kb:
        kb.add([tmp_path / "notice.xml", tmp_path / "other.xml"], source="research")
        hits = _hits(kb, "research")
        assert kb.info().sources[0].retracted == 0
    assert [retraction_notice(hit.passage) for hit in hits] == ["", ""]
    standing, gone = split_current(hits)
    assert (len(standing), gone) == (2, ())
    assert design_of(hits[0].passage) is None


def test_of_two_editions_with_one_id_one_is_kept_and_the_other_counted(tmp_path: Path) -> None:
    for name, year in (("a", 2016), ("b", 2022)):
        (tmp_path / f"{name}.jsonl").write_text(
            f'{{"id": "g1", "title": "Samplosis {year}", "content": "Advice of {year}."}}\n'
        )
    with KnowledgeBase.create(tmp_path / "kb") as kb:
        added = kb.add([tmp_path / "a.jsonl", tmp_path / "b.jsonl"], source="guideline")
        hits = _hits(kb, "guideline")
    # Neither is mixed with the other, and nothing says which of them is in force.
    assert len(hits) == 1
    assert sum(added.drops.values()) == 1
    assert _texts(list(split_current(hits)[0])) == _texts(hits)


def test_a_passage_that_says_no_year_is_neither_old_nor_new() -> None:
    old = Passage("guideline:a#0", "Give examplol 10 mg.", "guideline", "Samplosis care handbook")
    new = Passage("guideline:b#0", "Give examplol 20 mg.", "guideline", "Samplosis care handbook")
    standing, gone = split_current([Hit(one, 1.0, 1, "q", "x") for one in (old, new)])
    assert (len(standing), gone) == (2, ())
