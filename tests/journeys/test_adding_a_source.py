"""A new built-in source is one row of `sources.catalogue`: added here, it is planned, searched and
answered from, at the real command, with nothing else changed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from osler.sources import catalogue

ROW = """
    BuiltInSource(
        "registry",
        {"en": "trial registry", "zh": "试验注册库"},
        {"en": "The API provides access to registered trials.", "zh": "该接口提供注册试验。"},
        "DOC_RAG",
        trust=3,
        in_med_omni_kb=True,
    ),
"""
TRIAL = """# NCT00000001: zincolate in acute samplosis

In this randomised trial, zincolate 20 mg daily shortened acute samplosis by two days.
"""
RUN = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("osler.sources.catalogue", {path!r})
module = importlib.util.module_from_spec(spec)
sys.modules["osler.sources.catalogue"] = module
spec.loader.exec_module(module)
import osler.sources
osler.sources.catalogue = module
from osler.cli import main
sys.argv = ["osler", *{words!r}]
main()
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The catalogue's own file with one row more."""
    text = Path(catalogue.__file__).read_text(encoding="utf-8")
    head = "BUILT_IN: tuple[BuiltInSource, ...] = ("
    assert text.count(head) == 1
    path = tmp_path_factory.mktemp("table") / "catalogue.py"
    path.write_text(text.replace(head, f"{head}{ROW}"), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def folder(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("registry-home")
    (folder / "trial.md").write_text(TRIAL, encoding="utf-8")
    return folder


def run_osler(table: Path, folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    code = RUN.format(path=str(table), words=list(words))
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "OSLER__HOME": str(folder / "home"), "COLUMNS": "100"},
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def test_a_new_row_is_a_source_for_search_planner_tool_and_answer(
    table: Path, folder: Path
) -> None:
    run_osler(table, folder, "kb", "add", "trial.md", "--source", "registry")
    run_osler(table, folder, "kb", "build")

    found = json.loads(
        run_osler(table, folder, "kb", "search", "zincolate in samplosis", "--json").stdout
    )
    assert "registry" in json.dumps(found)

    planned = run_osler(
        table, folder, "plan", "Does zincolate shorten samplosis?", "--planner", "original"
    )
    assert "registry" in planned.stdout

    question = "Does zincolate 20 mg shorten acute samplosis?"
    answered = json.loads(
        run_osler(table, folder, "ask", question, "--strategy", "rag", "--json").stdout
    )
    cited = [one["passage_id"] for one in answered["answer"]["citations"]]
    assert cited
    assert all(id.startswith("registry:") for id in cited)


def test_the_row_feeds_trust_plans_tools_and_the_page(table: Path) -> None:
    code = (
        RUN.split("from osler.cli")[0].format(path=str(table))
        + "from osler.methods.tcrag.tools import SOURCES_OF\n"
        "from osler.methods.omni.planners import SourceDescription\n"
        "from osler.sources.catalogue import ALL_SOURCES, SOURCES, trust_of\n"
        "assert SOURCES[0] == ALL_SOURCES[0] == 'registry', SOURCES\n"
        "assert trust_of('registry') == 3\n"
        "assert 'registry' in SOURCES_OF['DOC_RAG'], SOURCES_OF\n"
        "described = SourceDescription('registry').describe_in('en')\n"
        "assert described.startswith('The API provides access to registered trials'), described\n"
    )
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_packaged_table_has_the_paper_s_five_sources_first() -> None:
    assert catalogue.SOURCES == ("book", "guideline", "research", "wiki", "graph")
    assert catalogue.ALL_SOURCES[: len(catalogue.SOURCES)] == catalogue.SOURCES
    assert all(1 <= one.trust <= 5 for one in catalogue.BUILT_IN)
    assert all(one.label.keys() >= {"en", "zh"} for one in catalogue.BUILT_IN)
