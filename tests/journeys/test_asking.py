"""From an empty home to a cited answer, and back again by replay."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Osler = Callable[..., "subprocess.CompletedProcess[str]"]
WARFARIN = "A patient who takes warfarin is started on amiodarone. What happens to the INR?"


@pytest.fixture(scope="module")
def page(built: Osler) -> str:
    """The answer as a terminal shows it. The model works on this question once, for all tests."""
    asked = ("ask", WARFARIN, "--strategy", "tc-rag", "--seed", "1", "--film")
    done = built("--set", "budget.calls=6", *asked)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def document(built: Osler, page: str) -> dict[str, Any]:
    """The same run as one document, made from its tape by the command that the page names."""
    named = re.search(r"osler replay (\S+?)\)", page)
    assert named, page
    done = built("replay", named[1], "--json")
    assert done.returncode == 0, done.stderr
    loaded: dict[str, Any] = json.loads(done.stdout)
    return loaded


def test_an_answer_is_one_document_with_all_that_is_needed_to_check_it(
    document: dict[str, Any],
) -> None:
    assert document["grounding"] == "grounded"
    assert document["halt"] in {"converged", "budget"}
    packaged = "smollm2-135m-instruct-q8_0"
    assert document["models"] == dict.fromkeys(("planner", "summariser", "reader"), packaged)
    assert len(document["snapshot"]) == 16
    assert document["usage"]["calls"] > 0
    assert document["answer"]["authorship"] == "extractive"
    assert "No writing model is set up" in document["answer"]["note"]


def test_every_citation_opens_and_its_quote_is_in_the_passage(
    built: Osler, document: dict[str, Any]
) -> None:
    citations = document["answer"]["citations"]
    assert citations
    for citation in citations:
        opened = built("kb", "get", citation["passage_id"], "--json")
        assert opened.returncode == 0
        text = json.loads(opened.stdout)["text"]
        start, end = citation["quote_span"]
        assert text[start:end] == citation["quote"]
        assert document["answer"]["text"][slice(*citation["span"])] == citation["quote"]


def test_a_replay_gives_the_same_event_log_byte_for_byte(
    built: Osler, document: dict[str, Any], home: Path, tmp_path: Path
) -> None:
    log = home / "runs" / document["run_id"] / "events.jsonl"
    again = tmp_path / "again.jsonl"
    done = built("replay", document["run_id"], "--trace", str(again))
    assert done.returncode == 0, done.stderr
    assert again.read_bytes() == log.read_bytes()


def test_a_replay_needs_neither_models_nor_knowledge_base(
    built: Osler, document: dict[str, Any], home: Path, tmp_path: Path
) -> None:
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for file in (home / "runs" / document["run_id"]).iterdir():
        (moved / file.name).write_bytes(file.read_bytes())
    bare = tmp_path / "empty"
    done = built("--kb", str(bare), "replay", str(moved))
    assert done.returncode == 0, done.stderr
    assert not bare.exists()


def test_the_page_shows_answer_passages_film_reason_and_cost(page: str) -> None:
    for part in ("[1]", "book · ", "«", "illustrative", "+ User_Query", "sigma 45", "halt"):
        assert part in page
    assert "smollm2-135m-instruct-q8_0" in page
    assert "osler replay" in page


def test_what_the_texts_do_not_answer_is_not_answered(built: Osler) -> None:
    done = built("ask", "How do I mend a puncture in a bicycle tyre?", "--strategy", "rag")
    assert done.returncode == 1
    assert "The evidence does not say." in done.stdout
    assert "«" not in done.stdout


def test_a_chinese_question_is_answered_from_chinese_passages(built: Osler) -> None:
    done = built("ask", "高血压患者每天食盐不应超过多少？", "--strategy", "rag", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert "食盐" in document["answer"]["text"]
    assert document["answer"]["language"] == "zh"


@pytest.mark.parametrize("strategy", ["direct", "cot"])
def test_without_evidence_an_open_question_is_refused(built: Osler, strategy: str) -> None:
    done = built("ask", WARFARIN, "--strategy", strategy)
    assert done.returncode == 7
    assert "no writing model is set up" in done.stdout


def test_options_are_chosen_from(built: Osler) -> None:
    question = (
        "Which drug is the antidote of opioid overdose?\nA. naloxone\nB. atropine\nC. heparin"
    )
    done = built("ask", question, "--strategy", "rag", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["answer"]["option"] in {"A", "B", "C"}


def test_a_plan_is_shown_without_asking_a_model(built: Osler) -> None:
    done = built("ask", WARFARIN, "--plan-only", "--json")
    assert done.returncode == 0, done.stderr
    assert "book" in done.stdout


def test_the_doctor_finds_nothing_wrong(built: Osler) -> None:
    done = built("doctor", "--all")
    assert done.returncode == 0, done.stdout + done.stderr
    for part in ("planner", "scores", "GBNF"):
        assert part in done.stdout


def test_a_role_whose_server_is_down_is_an_error_and_no_other_model_answers(built: Osler) -> None:
    down = ("kind=openai", "url=http://127.0.0.1:9/v1", "name=big")
    words = [word for one in down for word in ("--set", f"roles.reader.{one}")]
    done = built(*words, "ask", WARFARIN, "--strategy", "rag")
    assert done.returncode == 5
    assert done.stdout == ""
    assert "roles.reader.url" in done.stderr


def test_a_spent_budget_is_told_and_replayed(built: Osler) -> None:
    asked = ("ask", WARFARIN, "--strategy", "tc-rag", "--seed", "1", "--json")
    done = built("--set", "budget.calls=3", *asked)
    document = json.loads(done.stdout)
    assert (document["halt"], document["usage"]["calls"]) == ("budget", 3)
    assert "spent: calls 3 of 3" in document["why"]
    assert built("replay", document["run_id"], "--quiet").returncode == done.returncode


@pytest.mark.parametrize(
    ("question", "strategy", "subjects"),
    [
        ("二甲双胍的常见不良反应是什么？", "rag", ("二甲双胍", "metformin")),
        ("二甲双胍的常见不良反应是什么？", "omni-rag", ("二甲双胍", "metformin")),
        ("二甲双胍的常见不良反应是什么？", "tc-rag", ("二甲双胍", "metformin")),
        ("氯氮平的常见不良反应是什么？", "rag", ("氯氮平", "clozapine")),
    ],
)
def test_what_is_quoted_names_the_drug_or_disease_that_was_asked_about(
    built: Osler, question: str, strategy: str, subjects: tuple[str, ...]
) -> None:
    # Six calls are a thought and its first searches: what is quoted of these is what is tested.
    asked = ("ask", question, "--strategy", strategy, "--json", "--seed", "1")
    done = built("--set", "budget.calls=6", *asked)
    document = json.loads(done.stdout)
    # Of the evidence the passage alone: the query that found it names the subject anyway.
    read = [each["passage"] for each in document["evidence"]]
    passages = {each["id"]: (each["title"], each["text"]) for each in read}
    for citation in document["answer"]["citations"]:
        told = json.dumps(passages[citation["passage_id"]], ensure_ascii=False).casefold()
        assert any(name in told for name in subjects), citation["quote"]
    if not document["answer"]["citations"]:
        assert document["grounding"] == "abstained"
