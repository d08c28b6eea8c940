"""Global options, exit codes and the one line of an error."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from osler import errors
from osler.cli import RootGroup, app
from osler.cli import session as sessions
from osler.cli.session import CliSession, complete_preset, complete_strategy
from osler.errors import MalformedOutput, OslerError, UnknownPassage


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Makes `osler config` fail with `error`, wherever settings are read."""

    def loaded(*_: object) -> Any:
        raise error

    monkeypatch.setattr(CliSession, "load_layers", loaded)


def kinds(root: type[OslerError]) -> list[type[OslerError]]:
    ours = [child for child in root.__subclasses__() if child.__module__ == root.__module__]
    return [root, *(kind for child in ours for kind in kinds(child))]


def test_version_is_said_before_anything_else(osler: Any) -> None:
    result = osler("--version")
    assert result.exit_code == 0
    assert result.stdout.startswith("osler ")


@pytest.mark.parametrize("arguments", [["-h"], ["kb", "-h"], ["kb", "add", "-h"], ["ask", "-h"]])
def test_help_has_a_short_name_at_every_level(osler: Any, arguments: list[str]) -> None:
    assert osler(*arguments).exit_code == 0


def leaves_of(group: Any) -> Iterator[Any]:
    """The commands of a group and of the groups within it."""
    for entry in group.commands.values():
        if hasattr(entry, "commands"):
            yield from leaves_of(entry)
        else:
            yield entry


def test_every_command_takes_json_after_the_verb(osler: Any) -> None:
    group: Any = typer.main.get_command(app)
    leaves = list(leaves_of(group))
    assert 50 <= len(leaves) <= 60, "a verb is a cost: let an option do"
    for command in leaves:
        assert any("--json" in parameter.opts for parameter in command.params), command.name
        assert command.help, command.name


@pytest.mark.parametrize("kind", kinds(OslerError), ids=lambda kind: kind.__name__)
def test_every_error_is_one_line_and_its_own_exit_code(
    osler: Any, monkeypatch: pytest.MonkeyPatch, kind: type[OslerError]
) -> None:
    error = MalformedOutput("x", expected="y") if kind is MalformedOutput else None
    failing(monkeypatch, error or kind("it is\nbroken", fix="mend it"))
    result = osler("config")
    assert result.exit_code == kind.exit_code
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("osler: ")
    if error is None:
        assert result.stderr == "osler: it is broken; mend it\n"


def test_the_guide_has_every_exit_code_and_no_other() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "guide" / "cli.md").read_text(encoding="utf-8")
    table = guide.partition("## Exit codes")[2].partition("\n## ")[0]
    said = {int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)}
    ours = {"ABSTAINED", "USAGE", "PARTIAL", "REFUSED", "INTERRUPTED"}
    codes = {getattr(sessions, name) for name in ours}
    assert said == {0, *codes, *(kind.exit_code for kind in kinds(OslerError))}


@pytest.mark.parametrize("arguments", [["--json", "config"], ["config", "--json"]])
def test_with_json_an_error_is_an_object(
    osler: Any, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    failing(monkeypatch, UnknownPassage("there is none", fix="look"))
    result = osler(*arguments)
    assert result.exit_code == 2
    assert json.loads(result.stderr) == {
        "error": {
            "type": "UnknownPassage",
            "message": "there is none",
            "fix": "look",
            "exit_code": 2,
        }
    }


def test_terminal_escape_sequences_in_an_error_are_removed(
    osler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, errors.BadConfig("\x1b[2J"))
    assert "\x1b" not in osler("config").stderr


def test_an_unexpected_exception_is_not_swallowed(
    osler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        osler("config")


def test_an_interruption_says_how_to_go_on(osler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, KeyboardInterrupt())
    result = osler("--kb", "my kb", "config")
    assert result.exit_code == 130
    assert result.stderr == ("osler: interrupted; to go on, run again: osler --kb 'my kb' config\n")


@pytest.mark.parametrize(
    "arguments", [["nothing"], ["kb", "add"], ["ask", "q", "--k", "0"], ["--progress", "loud"]]
)
def test_wrong_usage_ends_with_2(osler: Any, arguments: list[str]) -> None:
    assert osler(*arguments).exit_code == 2


def processor_seconds(*words: str) -> float:
    """The least of several runs, in processor time: another process's load does not count."""
    spent = []
    for _ in range(4):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *words], capture_output=True, check=True)  # noqa: S603
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(spent)


def test_help_takes_at_most_twelve_bare_starts_of_python() -> None:
    assert processor_seconds("-m", "osler", "--help") <= 12 * processor_seconds("-c", "pass")


def test_the_words_of_the_first_help_are_those_of_the_docstrings() -> None:
    group = typer.main.get_command(app)
    assert isinstance(group, RootGroup)
    for name, verb in group.lazy.verbs.items():
        if verb.place:
            command: Any = verb.make_command(name)
            first = " ".join(command.help.partition("\n\n")[0].split())
            assert first.startswith(verb.summary), name


def test_help_imports_neither_pydantic_nor_the_library() -> None:
    heavy = (
        "pydantic",
        "numpy",
        "onnxruntime",
        "osler.trace",
        "osler.settings",
        "osler.build",
    )
    program = (
        "import sys; from osler.cli import app\n"
        f"sys.stdout.write(' '.join(name for name in {heavy!r} if name in sys.modules))"
    )
    done = subprocess.run(  # noqa: S603  our own interpreter, our own words
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == ""


@pytest.mark.parametrize("module", ["osler_lab.cli", "osler_serve.cli.serve"])
def test_commands_of_another_package_are_imported_before_those_of_the_core(module: str) -> None:
    subprocess.run([sys.executable, "-c", f"import {module}"], check=True)  # noqa: S603


def test_the_console_script_runs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from osler.cli import main; main()", "config"],
        capture_output=True,
        text=True,
        check=False,
        env={"HOME": str(tmp_path), "PYTHONIOENCODING": "ascii"},
        cwd=tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "[retrieve]" in done.stdout


def test_a_terminal_without_chinese_shows_numbers(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from osler.cli import main; main()", "config"],
        capture_output=True,
        text=True,
        check=False,
        env={"HOME": str(tmp_path), "PYTHONIOENCODING": "ascii", "OSLER__HOME": "/贫血"},
        cwd=tmp_path,
    )
    assert done.returncode == 0
    assert "\\u8d2b" in done.stdout


def test_the_settings_file_can_be_named(osler: Any, folder: Path) -> None:
    (folder / "mine.toml").write_text("[retrieve]\nk = 7")
    shown = json.loads(osler("--config", "mine.toml", "--json", "config").stdout)
    assert shown["retrieve.k"] == 7


def test_the_knowledge_base_can_be_named(osler: Any) -> None:
    shown = osler("--kb", "elsewhere", "config", "--origin").stdout
    assert 'path = "elsewhere"  # command line' in shown


def test_a_profile_is_a_preset(osler: Any) -> None:
    shown = json.loads(osler("--profile", "fast", "config", "--json").stdout)
    assert shown["strategy.kind"] == "rag"


def test_the_shell_completes_presets_and_strategies() -> None:
    assert complete_preset("tc-rag-c") == ["tc-rag-cppl"]
    assert complete_strategy("dir") == ["direct"]
