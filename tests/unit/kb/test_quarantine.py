"""New documents of sources that are not trusted are found once they are released."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from osler.build.knowledge import searched_sources
from osler.errors import KnowledgeBaseError
from osler.kb.base import KnowledgeBase
from osler.kb.upkeep import release
from osler.settings import Settings


def test_held_documents_are_found_after_their_release(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n\nAspirin is given.\n")
    access = {"held": ("web",), "sources": ("public",)}
    settings = Settings.model_validate({"home": str(tmp_path), "access": access})
    assert settings.access.source_of_new("guideline") == "guideline"
    with KnowledgeBase.create(settings.kb.path) as kb:
        kb.add([tmp_path / "a.md"], source=settings.access.source_of_new("web"), trust=2)
        kb.build(None)
        assert kb.sources == ("web.held",)
        assert searched_sources(settings, kb) == ()
        assert not settings.access.may_open("web.held", "web.held:a")
        (done,) = release(kb, "web")
        kb.build(None)
        assert done.documents == 1
        assert searched_sources(settings, kb) == kb.sources == ("web",)
        with pytest.raises(KnowledgeBaseError, match="nothing of web is held"):
            release(kb, "web")


def test_held_documents_whose_files_are_gone_stay_held(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / f"{name}.txt").write_text(f"Aspirin is given, says {name}.")
    with KnowledgeBase.create(tmp_path / "kb") as kb:
        kb.add([tmp_path / "in"], source="web.held")
        (tmp_path / "in" / "a.txt").rename(tmp_path / "a.txt")
        (tmp_path / "in" / "b.txt").write_bytes(b"")
        with pytest.raises(KnowledgeBaseError, match="2 documents of web stay held"):
            release(kb, "web")
        kb.build(None)
        found = {passage.id for passage, _ in kb.by_words(["aspirin"], k=9)}
        assert found == {"web.held:a#0", "web.held:b#0", "web:c#0"}
        (tmp_path / "a.txt").rename(tmp_path / "in" / "a.txt")
        kb.remove(source="web.held", document="b")
        release(kb, "web")
        assert kb.sources == ("web",)
        assert kb.info().documents == 2


def test_records_of_patients_cannot_be_held() -> None:
    """They lie in `emr` alone: every one of them would be refused when it is added."""
    with pytest.raises(ValidationError, match="cannot be held"):
        Settings.model_validate({"access": {"held": ("web", "emr")}})
