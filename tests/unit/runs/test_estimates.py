"""What an answer may cost: known, measured on former runs, or said to be unknown."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from osler.build.live import parts_around
from osler.build.models import LoadedModel
from osler.cli.tables import format_value
from osler.kb.base import KnowledgeBase
from osler.questions import parse_question
from osler.runs.answering import ask
from osler.runs.estimates import (
    DRY_RUNS,
    CostEstimate,
    CostRange,
    combine_estimates,
    estimate_cost,
)
from osler.settings import Settings
from osler.types import Question
from osler_lab.testing.scripted import ScriptedModel

QUESTION = parse_question("What causes scurvy?")
SERVER = {"kind": "openai", "url": "http://127.0.0.1:9/v1", "name": "big"}
PRICES = {"currency": "EUR", "models": ["big=2/0.5/1000000"]}


def settings_at(home: Path, kind: str = "direct", **sections: Any) -> Settings:
    tree = {"home": home, "model": SERVER, "strategy": {"kind": kind}, **sections}
    return Settings.model_validate(tree)


def fill_base(home: Path) -> None:
    (home / "a.md").write_text("# Scurvy\n\nScurvy is caused by lack of vitamin C.\n")
    with KnowledgeBase.create(home / "kb") as kb:
        kb.add([home / "a.md"], source="book")


def run_once(settings: Settings, reply: str, question: Question = QUESTION) -> None:
    models = {"reader": LoadedModel(ScriptedModel([reply], name="big on 127.0.0.1:9"))}
    parts = parts_around(settings, models)  # type: ignore[arg-type]
    asyncio.run(ask(settings, question, parts=parts))


def estimate(settings: Settings, **given: Any) -> Any:
    return asyncio.run(estimate_cost(settings, [QUESTION], **given))


def test_before_any_run_the_first_prompt_is_all_that_is_known(tmp_path: Path) -> None:
    found = estimate(settings_at(tmp_path))
    assert found.calls == CostRange(1, 1), "direct makes one call"
    assert found.prompt_tokens is not None
    assert found.prompt_tokens.low == found.prompt_tokens.high > 5
    assert found.completion_tokens == CostRange(0, 500)
    assert (found.seconds, found.money, found.runs) == (None, None, 0)
    assert "has not run here yet" in found.basis


def test_of_a_method_of_many_calls_the_least_is_said(tmp_path: Path) -> None:
    fill_base(tmp_path)
    found = estimate(settings_at(tmp_path, "tc-rag"))
    assert found.calls == CostRange(1, None)
    assert found.completion_tokens is None
    assert format_value(asdict(found)["calls"]) == "at least 1"
    assert format_value(found.money) == format_value(found.seconds) == "-"
    bounded = estimate(settings_at(tmp_path, "tc-rag", budget={"calls": 9}))
    assert bounded.calls == CostRange(1, 9)


def test_a_method_that_begins_with_its_steps_is_estimated_as_any_other(tmp_path: Path) -> None:
    fill_base(tmp_path)
    whole = settings_at(tmp_path, "kag-thinker")
    found = estimate(
        whole.model_copy(
            update={"strategy": whole.strategy.model_copy(update={"decompose": False})}
        )
    )
    assert found.calls == CostRange(1, None)


def test_former_runs_give_the_range(tmp_path: Path) -> None:
    settings = settings_at(tmp_path, prices=PRICES)
    run_once(settings, "Lack of it.")
    run_once(settings, "Lack of vitamin C, which is found in fresh fruit.")
    found = estimate(settings)
    assert found.runs == 2
    assert "2 former runs of direct with these settings" in found.basis
    assert found.calls == CostRange(1, 1, 1)
    least, most = found.completion_tokens.low, found.completion_tokens.high
    assert 0 < least < most
    assert found.money == CostRange(least, most, (least + most) / 2), "a unit for each token"
    assert found.currency == "EUR"
    words = format_value(asdict(found)["completion_tokens"])
    assert words.startswith(f"{least} to {most}, mostly about ")


def test_a_run_on_another_model_tells_calls_but_neither_seconds_nor_money(tmp_path: Path) -> None:
    run_once(settings_at(tmp_path), "Lack of it.")
    other = {**SERVER, "name": "other"}
    prices = {"currency": "EUR", "models": ["other=1/1/1"]}
    found = estimate(settings_at(tmp_path, model=other, prices=prices))
    assert "on other models" in found.basis
    assert found.calls == CostRange(1, 1, 1)
    assert (found.seconds, found.money) == (None, None)


def test_runs_of_another_strategy_and_those_that_may_not_be_seen_do_not_count(
    tmp_path: Path,
) -> None:
    run_once(settings_at(tmp_path, "cot"), "Lack of it.")
    assert estimate(settings_at(tmp_path)).runs == 0
    assert estimate(settings_at(tmp_path, "cot")).runs == 1
    assert estimate(settings_at(tmp_path, "cot"), opens=lambda _: False).runs == 0


def test_a_run_that_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    run_once(settings_at(tmp_path), "Lack of it.")
    (log,) = (tmp_path / "runs").glob("*/events.jsonl")
    log.write_text("{", encoding="utf-8")
    assert estimate(settings_at(tmp_path)).runs == 0


def test_what_needs_no_model_costs_nothing(tmp_path: Path) -> None:
    fill_base(tmp_path)
    packaged = {"kind": "packaged"}
    found = asyncio.run(
        estimate_cost(
            settings_at(tmp_path, "auto", model=packaged),
            [parse_question("What is the BMI of 80 kg and 1.75 m?")],
        )
    )
    assert found.calls == CostRange(0, 0, 0)
    assert "needed no model" in found.basis
    assert found.money is None, "no price is set"


@pytest.mark.parametrize("as_json", [True, False])
def test_the_command_says_it_and_asks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_json: bool
) -> None:
    from typer.testing import CliRunner

    from osler.cli import app

    monkeypatch.chdir(tmp_path)
    for key, value in SERVER.items():
        monkeypatch.setenv(f"OSLER__MODEL__{key.upper()}", value)
    monkeypatch.setenv("OSLER__HOME", str(tmp_path / "home"))
    words = ["ask", "What causes scurvy?", "--strategy", "direct", "--estimate"]
    done = CliRunner().invoke(app, [*words, *["--json"] * as_json], catch_exceptions=False)
    assert done.exit_code == 0, "the server is not there, and is not asked"
    assert not (tmp_path / "home" / "runs").exists()
    if as_json:
        assert json.loads(done.stdout)["calls"] == {"low": 1, "high": 1, "usual": None}
    else:
        assert "basis" in done.stdout


OTHERS = [
    parse_question(f"What causes {what}?") for what in ("gout", "rickets and its deformities")
]


def test_what_a_file_costs_is_the_sum_over_its_questions(tmp_path: Path) -> None:
    settings = settings_at(tmp_path)
    alone = [asyncio.run(estimate_cost(settings, [one])).prompt_tokens for one in OTHERS]
    found = asyncio.run(estimate_cost(settings, OTHERS))
    assert (found.questions, found.calls) == (2, CostRange(2, 2))
    assert found.prompt_tokens == CostRange(
        *(sum(getattr(o, s) for o in alone) for s in ("low", "high"))
    )
    run_once(settings, "Lack of it.", OTHERS[0])
    known = asyncio.run(estimate_cost(settings, OTHERS))
    assert known.calls == CostRange(2, 2, 2)
    assert "1 former run of direct" in known.basis


def test_questions_of_a_file_that_need_no_model_cost_nothing(tmp_path: Path) -> None:
    fill_base(tmp_path)
    settings = settings_at(tmp_path, "kag-thinker", strategy={"kind": "kag-thinker"})
    computed = parse_question("What is the BMI of 80 kg and 1.75 m?")
    found = asyncio.run(estimate_cost(settings, [computed, QUESTION]))
    assert found.calls is not None
    assert (found.questions, found.calls.low) == (2, 1)
    assert found.basis.startswith("2 questions, 1 of 2 need a model; ")


def test_of_very_many_questions_some_stand_for_all(tmp_path: Path) -> None:
    many = [parse_question(f"What causes disease {n:03d}?") for n in range(2 * DRY_RUNS)]
    found = asyncio.run(estimate_cost(settings_at(tmp_path), many))
    assert found.calls == CostRange(100, 100)
    assert found.basis.startswith("100 questions, 50 of them looked at, 50 of 50 need a model; ")


def test_what_is_known_of_one_strategy_alone_is_not_known_of_all() -> None:
    one = CostEstimate("rag", "", calls=CostRange(1, 1), money=CostRange(0.5, 1), currency="EUR")
    other = CostEstimate("cot", "", calls=CostRange(1, None))
    free = CostEstimate("auto", "", calls=CostRange(0, 0, 0))
    whole = combine_estimates([one, other])
    assert whole is not None
    assert (whole.calls, whole.money) == (CostRange(2, None), None)
    assert combine_estimates([free, one]) == replace(one, strategy="", questions=2)


@pytest.mark.parametrize("command", ["ask", "scoreboard", "eval"])
def test_many_questions_are_estimated_before_any_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    from typer.testing import CliRunner

    from osler.cli import app

    monkeypatch.chdir(tmp_path)
    for key, value in SERVER.items():
        monkeypatch.setenv(f"OSLER__MODEL__{key.upper()}", value)
    monkeypatch.setenv("OSLER__HOME", str(tmp_path / "home"))
    Path("q.txt").write_text("What causes scurvy?\nWhat causes gout?\n", encoding="utf-8")
    Path("b.toml").write_text(
        'about = "Two."\ntasks = ["sample-open"]\nstrategies = ["direct", "cot"]\nlimit = 2\n',
        encoding="utf-8",
    )
    tried = ["--tasks", "sample-open", "--strategies", "direct,cot", "--limit", "2"]
    words = {
        "ask": ["ask", "--file", "q.txt", "--strategy", "direct"],
        "scoreboard": ["scoreboard", "--plan", "b.toml", "--log-dir", "log"],
        "eval": ["eval", "run", *tried, "--log-dir", "log"],
    }[command]
    done = CliRunner().invoke(app, [*words, "--estimate", "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert not Path("log").exists()
    if command == "ask":
        assert (told["questions"], told["calls"]["low"]) == (2, 2)
        return
    assert told["strategies"]["direct"]["calls"] == {"low": 2, "high": 2, "usual": None}
    assert (told["in_all"]["questions"], told["in_all"]["calls"]["low"]) == (4, 4)
    page = CliRunner().invoke(app, [*words, "--estimate"], catch_exceptions=False).stdout
    assert "in all" in page
