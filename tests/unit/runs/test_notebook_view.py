"""A finished run as a notebook shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason='not installed: pip install "osler[serve]"')

from served import FixedModel, fill_knowledge_base, loaded_shelf, serving_settings

from osler.questions import parse_question
from osler.runs.answering import ask

DANGER = "My throat swells after a wasp sting and I cannot <b>breathe</b>."


async def test_a_notebook_shows_danger_then_the_answer_with_its_references(tmp_path: Path) -> None:
    fill_knowledge_base(tmp_path)
    settings = serving_settings(tmp_path)
    shelf = loaded_shelf(settings, FixedModel())
    try:
        parts = await shelf.parts_for(settings)
        asked = f"{DANGER} Which drug is given first, into the outer thigh, at once?"
        shown = (await ask(settings, parse_question(asked), parts=parts))._repr_html_()
    finally:
        shelf.close()
    assert shown is not None
    assert shown.startswith('<p class="danger">')
    assert "Adrenaline is given first." in shown
    assert "&lt;b&gt;breathe" in shown
    assert 'class="reference"' in shown
    assert "<b>" not in shown
