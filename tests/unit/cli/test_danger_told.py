"""Whom to call stands first on the command line: before the run, and whatever becomes of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from danger_dialogues import DIALOGUES, expected_words

from osler.build import Parts, roles_of
from osler.build.models import LoadedModel
from osler.errors import KnowledgeBaseMissing
from osler.retrieve.relevance import OverlapRelevance
from osler.settings import Settings
from osler.types import DangerKind, Passage
from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever

RAG = ("--strategy", "rag")
CRY, CRY_KINDS = DIALOGUES[0]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, passage: Passage) -> list[str]:
    """What was on the screen when models and sources were opened. All else is real."""
    shown: list[str] = []

    async def live(settings: Settings) -> Parts:
        shown.append("opened")
        index = ScriptedRetriever({"anaphylaxis": [passage]})
        relevance = OverlapRelevance()
        models = {role: LoadedModel(ScriptedModel([])) for role in roles_of(settings)}
        return Parts(models, lambda *_: index, relevance, relevance, ("guideline",), "5f2a")

    monkeypatch.setattr("osler.runs.answering.live_parts", live)
    return shown


@pytest.fixture
def without_knowledge(monkeypatch: pytest.MonkeyPatch) -> None:
    async def live(settings: Settings) -> Parts:
        raise KnowledgeBaseMissing("there is no knowledge base", fix="osler kb add")

    monkeypatch.setattr("osler.runs.answering.live_parts", live)


@pytest.mark.parametrize(("question", "kinds"), DIALOGUES)
def test_whom_to_call_is_the_first_that_is_printed(
    osler: Any, opened: list[str], question: str, kinds: tuple[DangerKind, ...]
) -> None:
    result = osler("ask", question, *RAG)
    assert result.exit_code in (0, 1)
    shown = "".join(result.stdout.split())
    said = "".join(expected_words(question).split())
    assert shown.startswith("!") == bool(kinds)
    assert (said in shown) == bool(kinds)
    once = ("Oslergivesnofirstaid", "Osler不能代替急救")
    assert sum(shown.count(end) for end in once) == bool(kinds)
    assert opened == ["opened"]


@pytest.mark.parametrize(("question", "kinds"), DIALOGUES)
def test_the_document_bears_it_and_standard_error_has_it_before_the_run(
    osler: Any, opened: list[str], question: str, kinds: tuple[DangerKind, ...]
) -> None:
    result = osler("--json", "ask", question, *RAG)
    document = json.loads(result.stdout)
    assert next(iter(document)) == "danger"
    if not kinds:
        assert document["danger"] is None
        assert result.stderr == ""
        return
    assert tuple(document["danger"]["kinds"]) == kinds
    assert expected_words(question) in document["danger"]["text"]
    assert json.loads(result.stderr) == {"danger": document["danger"]}


@pytest.mark.parametrize("more", [(), ("--quiet",), ("--progress", "none")])
def test_it_is_said_where_there_is_no_knowledge_base(
    osler: Any, without_knowledge: None, more: tuple[str, ...]
) -> None:
    result = osler(*more, "ask", CRY, *RAG)
    assert result.exit_code == KnowledgeBaseMissing.exit_code
    assert result.stdout.startswith("! This may be an emergency.")
    assert "there is no knowledge base" in result.stderr


def test_a_failure_told_as_json_has_it_before_the_error(
    osler: Any, without_knowledge: None
) -> None:
    told = [json.loads(line) for line in osler("--json", "ask", CRY).stderr.splitlines()]
    assert [next(iter(one)) for one in told] == ["danger", "error"]


def test_with_json_progress_it_is_the_first_event(osler: Any, opened: list[str]) -> None:
    first = json.loads(osler("--progress", "json", "ask", CRY, *RAG).stderr.splitlines()[0])
    assert first["type"] == "run.danger"
    assert tuple(first["notice"]["kinds"]) == CRY_KINDS


def test_a_plan_is_written_to_the_output_and_the_notice_beside_it(
    osler: Any, opened: list[str]
) -> None:
    result = osler("plan", "--planner", "original", CRY)
    assert result.stderr.startswith("! This may be an emergency.")
    assert "emergency" not in result.stdout


def test_a_recorded_run_shows_it_first_and_is_replayed_with_it(
    osler: Any, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    osler("ask", CRY, *RAG)
    assert osler("trace", "last").stdout.startswith("! This may be an emergency.")
    # Another file of rules is set now: a replay needs none and says what was said then.
    monkeypatch.setenv("OSLER__DANGER__NOTICE", "off")
    again = osler("replay", "last")
    assert again.exit_code in (0, 1)
    assert again.stdout.startswith("! This may be an emergency.")


def test_a_report_to_print_has_it_above_the_answer(
    osler: Any, opened: list[str], tmp_path: Path
) -> None:
    osler("ask", CRY, *RAG)
    osler("trace", "last", "--html", str(tmp_path / "page.html"))
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.index('role="alert">This may be an emergency') < page.index(">Answer<")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("danger.region=gb",), "call 999 at once"),
        (("danger.region=us",), "call 911 at once"),
        (("danger.emergency=2222 (the crash team)",), "call 2222 (the crash team) at once"),
        (("danger.note=Ward sister: 55.",), "Ward sister: 55."),
    ],
)
def test_whose_numbers_are_named_is_a_setting(
    osler: Any, opened: list[str], flags: tuple[str, ...], said: str
) -> None:
    shown = osler(*(word for flag in flags for word in ("--set", flag)), "ask", CRY, *RAG).stdout
    assert said in " ".join(shown.split())


def test_it_can_be_switched_off(osler: Any, opened: list[str]) -> None:
    assert "emergency" not in osler("--set", "danger.notice=off", "ask", CRY, *RAG).stdout


Edit = Callable[[str], str]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda text: text.replace("within = 5", "within = 0"), 'rule "falls": within'),
        (lambda text: text.replace('kind = "emergency"', 'kind = "urgent"'), 'rule "falls": kind'),
        (lambda text: text.replace('["fall"]', '["tumble"]'), "there is no list 'tumble'"),
        (lambda text: text.replace("fell", "... fell"), "begins or ends with ..."),
        (lambda text: text + "[extra]\n", "extra: Extra inputs are not permitted"),
        (lambda text: "[[rules", "not TOML"),
    ],
)
def test_a_mistake_in_one_s_own_rules_is_told_by_file_rule_and_field(
    osler: Any, opened: list[str], tmp_path: Path, edit: Edit, said: str
) -> None:
    file = tmp_path / "rules.toml"
    text = (
        '[lists.fall]\nen = ["fell"]\n[[rules]]\nname = "falls"\nkind = "emergency"\n'
        'all = ["fall"]\nwithin = 5\n'
    )
    file.write_text(text, encoding="utf-8")
    own = ("--set", f"danger.rules={file}")
    assert osler(*own, "ask", "granny fell", *RAG).stdout.startswith("! This may be")
    bad = tmp_path / "bad.toml"
    bad.write_text(edit(text), encoding="utf-8")
    result = osler("--set", f"danger.rules={bad}", "ask", "granny fell", *RAG)
    assert result.exit_code == 3
    assert str(bad) in result.stderr
    assert said in result.stderr
