"""A Chinese reader's way: no English word but names, paths, options and commands."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

JOURNEY = (
    ("--help",),
    ("doctor",),
    ("ask", "服用华法林的患者加用胺碘酮，INR会怎样变化？"),
    ("ask", "今天北京天气怎么样"),
    ("ask", "我想自杀"),
    ("ask", "房颤", "--strategy", "foo"),
    ("ask", "房颤", "--since", "3000"),
    ("ask", "房颤", "--k", "0"),
    ("ask", ""),
    ("kb", "add", ".", "--source", "my"),
    ("kb", "add", "/nonexistent"),
    ("kb", "info", "--dead"),
    ("kb", "rm", "--source", "other"),
    ("kb", "add", "--help"),
    ("trace",),
    ("trace", "last"),
    ("trace", "zzz"),
    ("config", "--set", "retrieve.kk=1"),
)
# Sources, strategies and roles go by their names, and so do a model and what it is of.
NAMES = {"book", "guideline", "research", "wiki", "graph", "web", "emr", "my", "auto", "rag"}
NAMES |= {
    "osler",
    "passage",
    "question",
    "fixed",
    "planner",
    "reader",
    "judge",
    "summariser",
    "systemd",
    "compose",
    "sigma",
    "tau",
    "token",
    "shell",
    "other",
}
# What is typed or named: a command, a word in quotes, an address or an identifier.
TYPED = re.compile(
    r"(?m)^ +[a-z-]+(?=  )|`[^`]*`|\"[^\"]*\"|'[^']*'|osler(?:\s+[a-z-]+)+|<[^>]*>|[^\s，。；：（）]*[-_./=:#@\d][^\s，。；：（）]*"  # noqa: E501
    r"|(?:已知|可用)：.*|chmod.*|\[[a-z]+\]|\w*[A-Z]\w*"
)


# The commands one after the other, each behind a mark; a process for each takes twice as long.
EACH = """
import json, sys
from osler.cli import main
for words in json.loads(sys.argv[1]):
    for out in (sys.stdout, sys.stderr):
        out.write("\\0")
        out.flush()
    sys.argv = ["osler", *words]
    try:
        main()
    except SystemExit:
        pass
"""


def _find_english(shown: str) -> set[str]:
    return (
        set(re.findall(r"[a-z]{2,}", TYPED.sub(" ", re.sub(r"(?<=[a-z])\n(?=[a-z])", "", shown))))
        - NAMES
    )


def test_what_is_english_is_found() -> None:
    assert _find_english("请运行 `osler kb build`\n2 files read") == {"files", "read"}
    assert _find_english("经过：auto；(osler trace 2026-x)\n--set KEY=VALUE 一项设置") == set()


@pytest.mark.usefixtures("built")
def test_a_chinese_reader_meets_no_english_word(home: Path, tmp_path: Path) -> None:
    own = tmp_path.with_name(f"{tmp_path.name}-home")
    shutil.copytree(home, own, ignore=shutil.ignore_patterns("runs", "*.socket"))
    (tmp_path / "痛风.md").write_text("# 痛风\n\n急性发作时可用秋水仙碱。\n", encoding="utf-8")
    (tmp_path / "坏.pdf").write_bytes(b"x")
    (tmp_path / "空.txt").write_bytes(b"")
    (tmp_path / "乱.txt").write_bytes(b"\xff\xfe\xc0abc\x80")
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", EACH, json.dumps(JOURNEY)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd=tmp_path,
        env={**os.environ, "OSLER__HOME": str(own), "LANG": "zh_CN.UTF-8", "LC_ALL": ""},
        timeout=600,
        check=False,
    )
    told, problems = (out.decode().split("\0")[1:] for out in (done.stdout, done.stderr))
    assert len(told) == len(problems) == len(JOURNEY)
    found = {
        " ".join(words): sorted(english)
        for words, *shown in zip(JOURNEY, told, problems, strict=True)
        if (english := _find_english("".join(shown)))
    }
    assert found == {}


@pytest.mark.usefixtures("home")
def test_the_tutorial_runs_from_its_first_command_to_its_last(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/zh/tutorial.md").read_text(encoding="utf-8")
    commands = re.findall(r"(?ms)^```sh\n(.*?)^```", page)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(  # noqa: S603
        ["bash", "-ec", "\n".join(commands)],  # noqa: S607
        capture_output=True,
        text=True,
        timeout=600,
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "LANG": "zh_CN.UTF-8", "LC_ALL": ""},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for shown in ("静脉注射50%葡萄糖40", "前5天停用华法林", "退出码 1", "500 mg，每日三次"):
        assert shown in "".join(done.stdout.split("\n"))
