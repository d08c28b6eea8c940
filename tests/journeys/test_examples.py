"""Every example runs as its first lines say, and so does the tutorial."""

import asyncio
import os
import re
import shutil
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from loopback_servers import (
    answer_chats_only,
    chat_reply,
    json_reply,
    serve_loopback,
)

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
TUTORIAL = ROOT / "docs" / "tutorial"
NOTES = "# Anaemia\n\nOral iron treats iron deficiency anaemia. It is taken once a day.\n"


def run(name: str, *words: str) -> str:
    done = subprocess.run(  # noqa: S603
        [sys.executable, str(EXAMPLES / name), *words],
        capture_output=True,
        text=True,
        timeout=300,
        env=dict(os.environ),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.usefixtures("home")
def test_asking_over_your_own_files(tmp_path: Path) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text(NOTES, encoding="utf-8")
    said = run("01_ask.py", str(notes), "What treats iron deficiency anaemia?")
    assert "1 documents, 1 passages" in said
    assert "Oral iron treats iron deficiency anaemia." in said
    assert "notes#0: 'Oral iron" in said


@pytest.mark.usefixtures("home")
def test_a_strategy_in_ten_lines() -> None:
    said = run("02_a_strategy_of_your_own.py")
    assert said.splitlines().count("retrieval.done") == 2
    assert "[1]" in said


@pytest.mark.usefixtures("home")
def test_your_own_corpus_is_read_and_follows_its_changes() -> None:
    said = run("03_your_own_corpus.py").splitlines()
    assert said[0] == "3 documents; dropped: {'no text': 1}"
    assert "5 mg/kg" in said[1]
    assert said[2:4] == ["1 document changed, 2 kept", "from notes.jsonl, trust 4"]
    assert "7 mg/kg" in said[4]
    assert "5 mg/kg" not in said[4]


@pytest.mark.usefixtures("home")
def test_your_own_strategy_stops_at_the_first_source_that_answers() -> None:
    said = run("04_your_own_strategy.py").splitlines()
    mine = [line.split() for line in said if line.startswith("  trusted-first")]
    assert [line[1] for line in mine] == ["converged", "converged", "no_evidence", "budget"]
    assert [line[3] for line in mine] == ["guideline", "book", "-", "-"]
    assert sum(line.startswith("  rag") for line in said) == 3


@pytest.mark.usefixtures("home")
def test_your_own_model_server_needs_one_route() -> None:
    said = run("05_your_own_model_server.py")
    assert said.startswith("Warfarin is stopped five days before elective surgery. [1] (written")


@pytest.mark.usefixtures("home")
async def test_another_model_server_is_asked_by_its_address_and_name() -> None:
    reply = json_reply(chat_reply("Warfarin is stopped five days before surgery. [1]"))
    async with serve_loopback(answer_chats_only(reply)) as place:
        said = await asyncio.to_thread(run, "05_your_own_model_server.py", place.url, "ward-model")
    assert said.startswith("Warfarin is stopped five days before surgery. [1] (written")
    assert {body["model"] for body in place.bodies_of("/v1/chat/completions")} == {"ward-model"}


def test_no_example_is_left_out() -> None:
    # 06_verify_an_audit_proof.py is run by tests/unit/serve/test_audited_requests.py.
    tested = Path(__file__).read_text(encoding="utf-8")
    assert all(path.name in tested for path in EXAMPLES.glob("*.py"))


@pytest.mark.usefixtures("home")
@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not there")
def test_the_tutorial_runs_from_its_first_command_to_its_last(tmp_path: Path) -> None:
    pages = [page.read_text(encoding="utf-8") for page in sorted(TUTORIAL.glob("[1-9]-*.md"))]
    commands = [found for page in pages for found in re.findall(r"(?ms)^```sh\n(.*?)^```", page)]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    shutil.copytree(TUTORIAL / "ward", tmp_path / "ward")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(  # noqa: S603
        ["bash", "-ec", "\n".join(commands).replace("8642", port)],  # noqa: S607
        capture_output=True,
        text=True,
        timeout=900,
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for shown in ("75 ml of 20 % glucose", "500 mg three times a day", '"status":"ready"'):
        assert shown in done.stdout


@pytest.mark.usefixtures("home")
def test_a_package_of_your_own_adds_a_format_and_a_strategy(tmp_path: Path) -> None:
    """As `pip install examples/plugin` leaves it, without installing into this environment."""
    folder = EXAMPLES / "plugin"
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [
        line
        for group, entries in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {place}" for name, place in entries.items()))
    ]
    installed = tmp_path / "osler_example-1.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: osler-example\nVersion: 1\n")
    (installed / "entry_points.txt").write_text("\n".join(lines))
    (tmp_path / "anaemia.note").write_text(NOTES.removeprefix("# "), encoding="utf-8")
    paths = os.pathsep.join((str(tmp_path), str(folder)))

    def osler(*words: str) -> str:
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-m", "osler", *words],
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, "PYTHONPATH": paths, "OSLER__HOME": str(tmp_path / "home")},
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    osler("kb", "add", str(tmp_path / "anaemia.note"), "--source", "wiki")
    osler("kb", "build")
    said = osler("ask", "--strategy", "ask-twice", "What treats iron deficiency anaemia?")
    assert "Oral iron treats iron deficiency anaemia." in " ".join(said.split())
    assert "ask-twice" in said
