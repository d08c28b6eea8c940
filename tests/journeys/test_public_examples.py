"""The examples of the public names run as they stand, in a folder of their own."""

import doctest
from pathlib import Path

import pytest

import osler
import osler_lab

EXAMPLES = {
    "osler.read": osler.read,
    "osler.chunk": osler.chunk,
    "osler.search": osler.search,
    "osler.KnowledgeBase.put": osler.KnowledgeBase.put,
    "osler.TuringMachine.from_model": osler.TuringMachine.from_model,
    "osler.Thinker.from_model": osler.Thinker.from_model,
    "osler.OmniRag.from_model": osler.OmniRag.from_model,
    "osler_lab.measure_solver": osler_lab.measure_solver,
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_says_what_it_gives(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = EXAMPLES[name].__doc__ or ""
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    assert example.examples
    said: list[str] = []
    found = doctest.DocTestRunner().run(example, out=said.append)
    assert found.failed == 0, "".join(said)
