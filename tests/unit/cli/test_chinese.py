"""What the terminal says in Chinese: the list of lines, and where it is spoken."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from osler.cli.ask import read_question
from osler.cli.help_page import count_columns, fold_text
from osler.cli.words import LANGUAGE, choose_language, say, say_all

PACKAGES = Path(__file__).parents[3] / "packages"
LIST = PACKAGES / "osler/src/osler/cli/zh.tsv"
LINES = dict(row.split("\t") for row in LIST.read_text(encoding="utf-8").splitlines())
# Words of typer and click, of pydantic, TOML, HTTP and the system; lines that several places put
# together.
OTHERS = 121


@cache
def _worded() -> frozenset[str]:
    """Every text that the packages word, with {} for what is put in; docstrings by paragraph."""
    return frozenset(
        " ".join(part.split())
        for file in PACKAGES.glob("*/src/**/*.py")
        for text in map(_text_of, ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
        for part in (text, *text.split("\n\n"))
    )


def _text_of(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        parts = (v.value if isinstance(v, ast.Constant) else "{}" for v in node.values)
        return "".join(map(str, parts))
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def test_the_list_has_no_line_that_nothing_says() -> None:
    single = {line for line in LINES if " " in line and " ".join(line.split()) not in _worded()}
    assert len(single) <= OTHERS, sorted(single)


def test_a_line_and_its_chinese_have_the_same_holes() -> None:
    for english, chinese in LINES.items():
        assert len(re.findall(r"\{\}", english)) == len(re.findall(r"\{\d?\}", chinese)), english


def _raised(file: Path) -> Iterator[str]:
    """Messages and remedies of the errors that a module raises, in the words of one text each."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            if ast.unparse(node.exc.func) in ("TypeError", "RuntimeError"):
                continue
            given = [*node.exc.args, *(keyword.value for keyword in node.exc.keywords)]
            yield from (text for text in map(_text_of, given) if re.search(r"[a-z]{2} ", text))


@pytest.mark.parametrize("part", ["cli", "kb", "settings", "questions.py", "build", "sources"])
def test_nine_errors_of_ten_have_their_chinese(part: str) -> None:
    place = PACKAGES / "osler/src/osler" / part
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place]
    raised = {" ".join(text.split()) for file in files for text in _raised(file)}
    lacking = {text for text in raised if say(text, "zh") == text}
    assert len(lacking) <= len(raised) / 10, sorted(lacking)


def test_names_stay_and_reasons_are_told_in_chinese() -> None:
    told = say("a/b.txt cannot be read: No such file or directory", "zh")
    assert told == "无法读取 a/b.txt：没有这个文件或文件夹"
    assert say("no run 'x' in /runs", "zh") == "/runs 里没有运行 'x'"
    assert say("a line that nothing says", "zh") == "a line that nothing says"
    told = say("no text passes the filter: since 2018-05; of kind rct, guideline", "zh")
    assert told == "没有文本符合筛选条件：2018-05 起；类型 rct, guideline"
    told = say("did you mean 'tc-rag'? known: direct, rag", "zh")
    assert told == "是不是 'tc-rag'？已知：direct, rag"
    told = say("[Errno 2] No such file or directory: '没有.txt'", "zh")
    assert told == "没有这个文件或文件夹：'没有.txt'"
    assert say("the nearest are a#2 and b#0", "zh") == "最接近的是 a#2 和 b#0"
    assert say("no run 'x' in /runs", "en") == "no run 'x' in /runs"


def test_lines_in_one_are_told_one_by_one() -> None:
    kept = LANGUAGE.set("zh")
    try:
        told = say_all("passages taken out: 7; next: osler kb build")
        assert told == "取出的段落：7；接下来：osler kb build"
        assert say_all("x.csv: malformed row") == "x.csv：格式错误的行"
    finally:
        LANGUAGE.reset(kept)


def test_signs_without_a_word_are_of_the_language_of_the_command_line() -> None:
    assert [read_question(text, ()).language for text in ("？？", "gout?")] == ["en", "en"]
    kept = LANGUAGE.set("zh")
    try:
        assert [read_question(text, ()).language for text in ("？？", "gout?")] == ["zh", "en"]
    finally:
        LANGUAGE.reset(kept)


@pytest.mark.parametrize(
    ("environment", "args", "language"),
    [
        ({"LANG": "zh_CN.UTF-8"}, ["doctor"], "zh"),
        ({"LANG": "en_GB.UTF-8"}, ["doctor"], "en"),
        ({"LANG": "en_GB.UTF-8"}, ["ask", "房颤如何抗凝？"], "zh"),
        ({"LC_ALL": "C.UTF-8", "LANG": "zh_CN.UTF-8"}, ["doctor"], "en"),
        ({"LC_MESSAGES": "zh_TW.UTF-8", "LANG": "en_GB.UTF-8"}, [], "zh"),
    ],
)
def test_the_system_or_the_words_choose_the_language(
    environment: dict[str, str], args: list[str], language: str
) -> None:
    assert choose_language(environment, args) == language


def test_help_and_usage_are_chinese(osler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Ask:" in osler("--help").stdout
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    monkeypatch.delenv("LC_ALL", raising=False)
    shown = osler("kb", "add", "--help").stdout
    assert shown.startswith("用法：")
    assert "--wait <数>" in shown
    assert "[默认：30.0；x>=0]" in shown
    assert all(count_columns(line) <= 80 for line in shown.splitlines())
    wrong = osler("kb", "rm")
    assert wrong.exit_code == 2
    assert wrong.stderr.endswith("缺少选项 '--source' / '-s'。\n")
    assert "没有命令 'askk'。是不是 'ask'？" in osler("askk").stderr
    monkeypatch.setenv("LANG", "en_GB.UTF-8")
    assert "Usage:" in osler("kb", "add", "--help").stdout


def test_a_line_is_folded_by_its_columns() -> None:
    lines = [*fold_text("先检索 `osler kb add PATH`，再回答。", 16)]
    assert lines == ["先检索 `osler kb", "add PATH`，再回", "答。"]
