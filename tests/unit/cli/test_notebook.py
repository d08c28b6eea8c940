"""Progress in a notebook, by the real IPython (`make test-libraries`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason='not installed: pip install "osler[serve]"')
pytest.importorskip("IPython", reason="`make test-libraries` installs it")

from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from served import FixedModel, fill_knowledge_base, loaded_shelf, serving_settings

from osler import ask, parse_question
from osler.cli.notebook import NotebookProgress


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """What a notebook was sent."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("HOME", str(tmp_path))
    shell = InteractiveShell.instance()
    publisher = CapturingDisplayPublisher(shell=shell)
    before, shell.display_pub = shell.display_pub, publisher
    yield publisher.outputs
    shell.display_pub = before
    InteractiveShell.clear_instance()


async def test_a_run_writes_over_one_line_until_its_answer(
    tmp_path: Path, shown: list[dict[str, Any]]
) -> None:
    fill_knowledge_base(tmp_path)
    settings = serving_settings(tmp_path)
    shelf = loaded_shelf(settings, FixedModel())
    asked = "My throat swells after a wasp sting and I cannot breathe. What is given first?"
    try:
        parts = await shelf.parts_for(settings)
        progress = NotebookProgress(clock=iter(range(1_000)).__next__)
        run = await ask(settings, parse_question(asked), parts=parts, sink=progress)
    finally:
        shelf.close()
    lines = [one["data"]["text/html"] for one in shown]
    assert {one["transient"]["display_id"] for one in shown} == {
        shown[0]["transient"]["display_id"]
    }
    assert [bool(one["update"]) for one in shown] == [False] + [True] * (len(shown) - 1)
    assert "opening the knowledge base" in lines[0]
    assert any("<progress></progress> searching" in line for line in lines)
    assert all(line.startswith('<p class="danger">') for line in lines[1:])
    assert " steps, " in lines[-1]
    assert "<progress>" not in lines[-1]
    assert run.solution is not None


def test_what_a_question_holds_is_shown_as_text(shown: list[dict[str, Any]]) -> None:
    from osler.trace import FormBegun

    fields = dict.fromkeys(FormBegun.__dataclass_fields__)
    progress = NotebookProgress(clock=lambda: 0.0)
    progress(FormBegun(**{**fields, "n": 1, "question": "<script>x</script>"}))  # type: ignore[arg-type]
    assert "<script>" not in shown[-1]["data"]["text/html"]
    assert "&lt;script&gt;" in shown[-1]["data"]["text/html"]
