"""An identifier leads to its document, or is said to lead nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from osler.answer.export.layout import resolve_reference
from osler.errors import UnknownPassage
from osler.kb.base import KnowledgeBase

EU_TRIAL = """EudraCT Number: 2010-018418-26
A.3 Full title of the trial: Examplol in samplosis
E.1.1 Medical condition(s) being investigated: Samplosis
"""
MEDLINE = "PMID- 33012345\nTI  - Examplol in samplosis\nAB  - Examplol helped.\n"


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    (tmp_path / "one.txt").write_text(MEDLINE)
    (tmp_path / "99.md").write_text("# Ninety-nine\n\nA file of the user's own.\n")
    (tmp_path / "trial.txt").write_text(EU_TRIAL)
    with KnowledgeBase.create(tmp_path / "kb") as made:
        made.add([tmp_path / "one.txt"], source="research")
        made.add([tmp_path / "99.md"], source="own")
        made.add([tmp_path / "trial.txt"], source="trial")
        yield made


def test_an_identifier_leads_to_its_document(kb: KnowledgeBase) -> None:
    (found,) = resolve_reference(kb, "PMID: 33012345")
    assert found.id == "research:33012345#0"
    assert resolve_reference(kb, "https://pubmed.ncbi.nlm.nih.gov/33012345/") == (found,)


def test_words_that_name_no_work_lead_nowhere(kb: KnowledgeBase) -> None:
    assert resolve_reference(kb, "research:33012345#0") == ()


@pytest.mark.parametrize(
    "words", ["PMID:99", "NCT00000001", "doi:10.1/none", "ISBN 978-0-306-40615-8", "PMID:012"]
)
def test_an_identifier_of_nothing_here_is_refused(kb: KnowledgeBase, words: str) -> None:
    if words == "doi:10.1/none":  # too short a prefix for a DOI
        assert resolve_reference(kb, words) == ()
        return
    with pytest.raises(UnknownPassage):
        resolve_reference(kb, words)
