"""`osler doctor --model` and `osler init --model URL`, against a real server on loopback."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from competent import CompetentModel
from mannered import MODEL, serve_manners
from manners import Manners

from osler.cli.model_probe import _complete_url
from osler.settings import load, render_template

QWEN = Manners(server="Ollama", context=4096, thinking="apart", tags="bold", logprobs=False)


async def call(osler: Any, *words: str) -> Any:
    """Calls the program in a thread, while the server answers in this one."""
    return await asyncio.to_thread(osler, *words)


async def test_init_asks_the_server_and_writes_what_follows(osler: Any, folder: Path) -> None:
    async with serve_manners(CompetentModel(), QWEN) as place:
        done = await call(osler, "init", "--model", place.url, "--name", MODEL)
    assert done.exit_code == 0
    for line in (
        f"pass  replies: {MODEL} on Ollama at {place.url} answers",
        "pass  thinks: apart from the text, about ",
        "; switched off by think=false",
        "pass  follows tags: yes, in a style of its own",
        "pass  cites: yes, as [2]",
        "pass  context: 4,096 tokens of 32,768",
        'pass  state value of tc-rag: none can be had (metric = "auto")',
        "set   model.request = think=false, options.num_ctx=8192",
        "osler kb build --sample, then osler ask QUESTION",
    ):
        assert line in done.stdout.replace("\n", " ") or line in done.stdout
    settings = load({}, cwd=folder, env={}).settings
    assert (settings.model.kind, settings.model.url) == ("openai", place.url)
    assert settings.model.name == MODEL
    assert settings.model.request == ("think=false", "options.num_ctx=8192")
    # All other lines are the template's, and what is set stands below its comment.
    text = (folder / "osler.toml").read_text("utf-8")
    assert f'# The model\'s name on the server, or its id on the hub.\nname = "{MODEL}"\n' in text
    missing = set(render_template().splitlines()) - set(text.splitlines())
    assert all(line.startswith("#") for line in missing)
    assert (await call(osler, "config")).exit_code == 0


@pytest.mark.parametrize(("present", "first"), [(False, "osler download-models, "), (True, "")])
async def test_init_says_what_is_to_be_fetched_first(
    osler: Any, monkeypatch: pytest.MonkeyPatch, *, present: bool, first: str
) -> None:
    monkeypatch.setattr("osler.llm.local.weights.is_present", lambda _: present)
    async with serve_manners(CompetentModel(), Manners()) as place:
        done = await call(osler, "init", "--model", place.url)
    assert f"next: {first}osler kb build --sample" in done.stdout


async def test_the_only_model_of_a_server_needs_no_name(osler: Any, folder: Path) -> None:
    async with serve_manners(CompetentModel(), Manners()) as place:
        address = place.url.removeprefix("http://").removesuffix("/v1")
        done = await call(osler, "init", "--model", address, "--json")
    told = json.loads(done.stdout)
    assert told["ok"]
    assert load({}, cwd=folder, env={}).settings.model.name == MODEL
    (model,) = told["models"]
    assert (model["tags"], model["cites"], model["scores"]) == ("plain", "yes", True)
    assert [row["name"] for row in model["rows"]][:2] == ["replies", "continues a message"]


async def test_nothing_is_written_for_a_server_that_cannot_be_used(
    osler: Any, folder: Path
) -> None:
    async with serve_manners(CompetentModel(), Manners(silent=True)) as place:
        done = await call(osler, "init", "--model", place.url)
    assert done.exit_code == 1
    assert "fail  replies: an easy question is answered with nothing" in done.stdout
    assert "set   " not in done.stdout
    assert not (folder / "osler.toml").exists()
    (folder / "osler.toml").write_text("[retrieve]\nk = 7\n")
    assert (await call(osler, "init", "--model", place.url)).exit_code == 3
    down = await call(osler, "init", "--model", "127.0.0.1:9")
    assert down.exit_code == 3, "the file is there already"
    (folder / "osler.toml").unlink()
    down = await call(osler, "init", "--model", "127.0.0.1:9")
    assert down.exit_code == 5
    assert "check that a model server runs at" in down.stderr


async def test_doctor_shows_and_with_write_writes(osler: Any, folder: Path) -> None:
    file = folder / "osler.toml"
    async with serve_manners(CompetentModel(), QWEN) as place:
        text = (
            f'[model]\nkind = "openai"\nurl = "{place.url}"  # mine\nname = "{MODEL}"\n'
            '[strategy]\nkind = "tc-rag"\nmetric = "cppl"\n'
        )
        file.write_text(text)
        shown = await call(osler, "doctor", "--model")
        assert shown.exit_code == 0
        assert file.read_text() == text
        assert "set   strategy.metric = auto" in shown.stdout
        assert "next: osler doctor --model --write" in shown.stdout
        written = await call(osler, "doctor", "--model", "--write")
        assert written.exit_code == 0
        again = await call(osler, "doctor", "--model")
        assert again.exit_code == 0
        assert "all of it is set already" in again.stdout
    assert "# mine" in file.read_text()
    settings = load({}, cwd=folder, env={}).settings
    assert settings.model.request == ("think=false", "options.num_ctx=8192")
    strategy: Any = settings.strategy
    assert strategy.metric == "auto"


async def test_each_role_with_a_server_of_its_own_is_asked(osler: Any, folder: Path) -> None:
    async with serve_manners(CompetentModel(), Manners(calls="native")) as place:
        (folder / "osler.toml").write_text(
            f'[roles.reader]\nkind = "openai"\nurl = "{place.url}"\nname = "{MODEL}"\n'
        )
        done = await call(osler, "doctor", "--model", "--write", "--json")
    (model,) = json.loads(done.stdout)["models"]
    assert (model["section"], model["tools"]) == ("roles.reader", True)
    settings = load({}, cwd=folder, env={}).settings
    assert settings.model.kind == "packaged"
    assert settings.model_for("reader").parallel == 8


def test_without_a_server_there_is_nobody_to_ask(osler: Any) -> None:
    done = osler("doctor", "--model")
    assert done.exit_code == 3
    assert 'no model server is set: [model] has kind = "packaged"' in done.stderr
    assert "osler init --model URL" in done.stderr
    assert osler("doctor", "--write").exit_code == 2


@pytest.mark.parametrize(
    ("given", "whole"),
    [
        ("localhost:11434", "http://localhost:11434/v1"),
        ("http://localhost:11434/", "http://localhost:11434/v1"),
        ("https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1"),
        ("http://host:1/v1/", "http://host:1/v1"),
    ],
)
def test_an_address_is_completed(given: str, whole: str) -> None:
    assert _complete_url(given) == whole


async def test_a_scoreboard_is_run_with_the_model_that_is_named(osler: Any, folder: Path) -> None:
    (folder / "b.toml").write_text(
        'about = "one question"\ntasks = ["sample"]\nstrategies = ["direct"]\nlimit = 1\n'
    )
    words = ("scoreboard", "--plan", "b.toml", "--log-dir", "log")
    async with serve_manners(CompetentModel(), QWEN) as place:
        done = await call(osler, *words, "--model", place.url, "--name", MODEL)
    assert done.exit_code == 0, done.stderr
    assert "set   model.request = think=false, options.num_ctx=8192" in done.stdout
    (plan,) = (folder / "log").glob("plan.json")
    assert place.url in plan.read_text("utf-8")
    assert not (folder / "osler.toml").exists()
    down = await call(osler, *words, "--model", "127.0.0.1:9")
    assert down.exit_code == 5
