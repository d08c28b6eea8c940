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


def test_records_of_patients_cannot_be_held() -> None:
    """They lie in `emr` alone: every one of them would be refused when it is added."""
    with pytest.raises(ValidationError, match="cannot be held"):
        Settings.model_validate({"access": {"held": ("web", "emr")}})
