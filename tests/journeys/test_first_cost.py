"""What `osler ask` costs before it answers, in counts: they are the same on every machine."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# Runs the command line, and tells what it opened and imported.
COUNT = """
import json, sys
opened = set()
def note(event, values):
    if event == "open" and isinstance(values[0], str):
        opened.add(values[0])
sys.addaudithook(note)
sys.argv = ["osler", "ask", sys.argv[1]]
from osler.cli import main
try:
    main()
except SystemExit:
    pass
told = {"modules": sorted(sys.modules), "opened": sorted(opened)}
print(json.dumps(told), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def counted(built: object, home: Path) -> dict[str, Any]:
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", COUNT, "Does amiodarone raise the INR of warfarin?"],
        env={**os.environ, "OSLER__HOME": str(home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )
    assert b"[1]" in done.stdout
    told: dict[str, Any] = json.loads(done.stderr.splitlines()[-1])
    return told


def test_few_modules_are_imported(counted: dict[str, Any]) -> None:
    # 700 and 212 when this was written; a tenth is left for other versions of libraries.
    assert len(counted["modules"]) <= 770
    assert len([one for one in counted["modules"] if one.startswith("osler")]) <= 235


@pytest.mark.parametrize(
    "name", ["httpx2", "fastapi", "llama_cpp", "transformers", "torch", "tokenizers", "qdrant_edge"]
)
def test_what_no_question_of_texts_needs_is_not_imported(
    counted: dict[str, Any], name: str
) -> None:
    assert name not in counted["modules"]


def test_no_language_model_and_no_encoder_of_another_language_is_opened(
    counted: dict[str, Any],
) -> None:
    opened = [Path(one).name for one in counted["opened"]]
    assert not [name for name in opened if name.endswith(".gguf")]
    assert not [name for name in opened if "e5-small" in name and not name.endswith(".verified")]


def test_few_files_are_opened(counted: dict[str, Any]) -> None:
    # Beside code, and what tells which packages are installed: 87 when this was written.
    others = (".py", ".pyc", ".so", ".pth", "entry_points.txt")
    assert len([one for one in counted["opened"] if not one.endswith(others)]) <= 100


LIBRARIES = "import numpy, onnxruntime, pydantic, typer"


def seconds_of(home: Path, bytecode: Path, *words: str) -> float:
    """Processor seconds of a fresh process, code compiled before: another's load counts little."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(  # noqa: S603
        [sys.executable, *words],
        env={
            **{name: of for name, of in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
            "OSLER__HOME": str(home),
            "PYTHONPYCACHEPREFIX": str(bytecode),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize(
    ("question", "most"),
    # 6.6 and 7.6 when this was written; a fifth more fails.
    [("Does amiodarone raise the INR of warfarin?", 8.0), ("胺碘酮会使华法林的INR升高吗？", 9.2)],
)
def test_an_answer_costs_so_many_times_what_importing_its_libraries_does(
    built: object, home: Path, tmp_path: Path, question: str, most: float
) -> None:
    commands = (("-m", "osler", "ask", question), ("-c", LIBRARIES))
    # Of one round, in which both met the same load; the first compiles.
    rounds = [[seconds_of(home, tmp_path, *words) for words in commands] for _ in range(4)]
    assert min(answer / libraries for answer, libraries in rounds[1:]) <= most
