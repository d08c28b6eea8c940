"""Bad input at the command line: one line with the place and the fix, the documented code.

Where a process of its own adds nothing the command line runs in the tests' own.
"""

import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from osler.cli import app

Osler = Callable[..., "subprocess.CompletedProcess[str]"]
Q = "What is the first-line treatment of anaphylaxis?"


@pytest.fixture
def called(built: Osler, home: Path, monkeypatch: pytest.MonkeyPatch) -> Osler:
    """`built` in this process."""
    monkeypatch.setenv("OSLER__HOME", str(home))

    def call(
        *words: str, cwd: Path = home, stdin: bytes | None = None
    ) -> "subprocess.CompletedProcess[str]":
        monkeypatch.chdir(cwd)
        done = CliRunner().invoke(app, list(words), input=stdin)
        return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)

    return call


def refused(done: "subprocess.CompletedProcess[str]", code: int, *parts: str) -> None:
    assert done.returncode == code, done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("osler: ")
    for part in parts:
        assert part in lines[0]


@pytest.mark.parametrize(
    ("question", "part"),
    [
        (b"", "empty"),
        (b"   \n", "empty"),
        (b"\x89PNG\r\n\x1a\n\x00", "not UTF-8"),
        (b"what\x00is", "binary"),
        (b"x" * 9_000, "limit is 8,000"),
        (b"A. aspirin\nB. heparin", "options but no question"),
    ],
)
def test_a_bad_question_is_refused_with_2(called: Osler, question: bytes, part: str) -> None:
    refused(called("ask", "-", stdin=question), 2, part)


def test_an_absent_knowledge_base_names_the_command_that_makes_one(
    osler: Osler, tmp_path: Path
) -> None:
    absent = tmp_path / "none"
    refused(osler("--kb", str(absent), "ask", Q), 4, str(absent), "osler kb build --sample")
    assert not absent.exists()


def broken(name: str) -> Callable[[Path], None]:
    def schema(path: Path) -> None:
        _execute(path, "UPDATE meta SET value = '999' WHERE key = 'schema'")

    def encoder(path: Path) -> None:
        _execute(path, "UPDATE meta SET value = 'another-model' WHERE key = 'encoder'")
        # The sum of what was built is over its encoder too.
        _execute(path, "DELETE FROM meta WHERE key = 'contents'")

    def half(path: Path) -> None:
        _execute(path, "DELETE FROM vector WHERE passage IN (SELECT passage FROM vector LIMIT 9)")
        _execute(path, "UPDATE meta SET value = '' WHERE key = 'built'")

    def noise(path: Path) -> None:
        (path / "kb.sqlite").write_bytes(b"this is no database" * 100)

    return {"schema": schema, "encoder": encoder, "half": half, "noise": noise}[name]


def _execute(path: Path, statement: str) -> None:
    with sqlite3.connect(path / "kb.sqlite") as db:
        assert db.execute(statement).rowcount > 0


@pytest.mark.parametrize(
    ("what", "parts"),
    [
        ("schema", ("schema", "999")),
        ("encoder", ("another-model", "osler kb build --rebuild")),
        ("noise", ("kb.sqlite",)),
    ],
)
def test_a_knowledge_base_that_does_not_fit_is_refused_with_4(
    called: Osler, home: Path, tmp_path: Path, what: str, parts: tuple[str, ...]
) -> None:
    copy = tmp_path / "kb"
    shutil.copytree(home / "kb", copy)
    broken(what)(copy)
    refused(called("--kb", str(copy), "ask", Q), 4, *parts)


def test_a_half_built_knowledge_base_is_finished_by_the_command_it_names(
    called: Osler, home: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "kb"
    shutil.copytree(home / "kb", copy)
    broken("half")(copy)
    asked = called("--kb", str(copy), "ask", Q, "--strategy", "rag")
    assert asked.returncode == 0, asked.stderr
    told = " ".join(asked.stdout.split())
    assert "Passages without a vector yet, searched by words alone: 9." in told
    assert called("--kb", str(copy), "kb", "build").returncode == 0
    assert called("--kb", str(copy), "kb", "info", "--verify").returncode == 0
    assert called("--kb", str(copy), "kb", "search", "anaphylaxis").returncode == 0


@pytest.mark.model
@pytest.mark.parametrize("content", [None, b"", b"GGUF and then nothing", b"hello"])
def test_a_missing_or_truncated_model_is_refused_with_5(
    called: Osler, tmp_path: Path, content: bytes | None
) -> None:
    model = tmp_path / "model.gguf"
    if content is not None:
        model.write_bytes(content)
    (tmp_path / "osler.toml").write_text(
        f'[model]\nkind = "gguf"\npath = "{model}"\n', encoding="utf-8"
    )
    refused(called("ask", Q, cwd=tmp_path), 5, "model.gguf")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('[strategy]\nkind = "magic"\n', ("osler.toml", "magic", "tc-rag")),
        ("[retreive]\nk = 3\n", ("osler.toml", "retreive", "retrieve")),
        ("[retrieve]\nk = 0\n", ("osler.toml", "k")),
        ("[retrieve\n", ("osler.toml", "line 1")),
    ],
)
def test_a_bad_setting_is_refused_with_3_where_it_stands(
    called: Osler, tmp_path: Path, text: str, parts: tuple[str, ...]
) -> None:
    (tmp_path / "osler.toml").write_text(text, encoding="utf-8")
    refused(called("ask", Q, cwd=tmp_path), 3, *parts)


def test_an_unknown_strategy_is_refused_with_3(built: Osler) -> None:
    refused(built("ask", Q, "--strategy", "magic"), 3, "magic", "tc-rag")


def test_an_unknown_passage_ends_with_2_and_the_nearest_are_named(built: Osler) -> None:
    refused(built("kb", "get", "book:emergency#999"), 2, "book:emergency#0")
