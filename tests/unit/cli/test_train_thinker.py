"""`osler train thinker-data` and `evaluate-data` through the real command line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from osler.build import models
from osler_lab.build import training as teaching
from osler_lab.testing.scripted import HashingEncoder, KeyedModel
from osler_lab.train.thinker.quality import FRAMEWORK

REFUSED = "I can't answer this question, I need to retrieve external knowledge."
PLAN = """<think>One hop.</think><answer>Step1: Who is the director of Red Kite?
Action1: Retrieval(s=s1:film['Red Kite'], p=p1:director, o=o1:director)</answer>"""
BOX = r"<answer>\boxed{Peter Berg}</answer>"
SERVER = '[model]\nkind = "openai"\nurl = "http://127.0.0.1:9/v1"\nname = "teacher"\n'


@pytest.fixture
def teacher(monkeypatch: pytest.MonkeyPatch) -> KeyedModel:
    """Stands in for the configured models."""
    replies: dict[str, Sequence[str]] = {}
    for dimension in FRAMEWORK:  # first: what is inspected holds the other prompts
        told = ", ".join(f"{name} pass" for name in dimension.aspects)
        replies[f"one dimension only: {dimension.name}"] = [f"<aspects>{told}</aspects>"]
    replies |= {
        "decompose the user question": [PLAN],
        "Can you answer": [REFUSED],
        "analyze the relationship": ["<answer>Yes</answer><reason>It names him.</reason>"],
        "Answer the question from the references": [BOX],
        "Thought:": ["The reference names him."],
        "Answer the last question": [f"It is a film of his. [1] {BOX}"],
    }
    one = KeyedModel(replies)

    async def cast(_: object, roles: Sequence[str]) -> dict[str, models.LoadedModel]:
        return {role: models.LoadedModel(one) for role in roles}

    monkeypatch.setattr(teaching, "load_roles", cast)
    for place in ("osler.build.models", "osler_lab.build.training"):
        monkeypatch.setattr(f"{place}.load_encoder", lambda _: HashingEncoder())
    return one


@pytest.fixture
def questions(osler: Any, teacher: KeyedModel, folder: Path) -> str:
    """A knowledge base that knows the film, and two questions about it."""
    (folder / "osler.toml").write_text(SERVER, encoding="utf-8")
    (folder / "a.md").write_text("# Red Kite\n\nRed Kite is a film of Peter Berg.\n", "utf-8")
    assert osler("kb", "add", str(folder / "a.md"), "--source", "book").exit_code == 0
    assert osler("kb", "build").exit_code == 0
    lines = [
        {"id": id, "question": "Who directed Red Kite?", "golden_answers": [gold]}
        for id, gold in (("right", "Peter Berg"), ("wrong", "Anna Holm"))
    ]
    file = folder / "films.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return f"nq={file}"


def test_a_teacher_s_right_answers_become_a_data_set(
    osler: Any, teacher: KeyedModel, questions: str
) -> None:
    common = ("train", "thinker-data", "--log-dir", "log", "--tasks", questions, "--part", "all")
    dry = json.loads(osler(*common, "--dry-run", "--json").stdout)
    assert (dry["questions"], dry["left"], dry["most_calls"]) == (2, 2, 96)
    assert teacher.asked == []
    done = osler(*common, "--rounds", "2", "--out", "set", "--json")
    assert done.exit_code == 0, done.stderr
    document = json.loads(done.stdout)
    (stage,) = document["stages"]
    assert (stage["kept"], stage["tries"]) == (1, 3)
    assert stage["dropped"] == {"wrong answer": 2}
    assert document["written"]["lines"] == 1
    (line,) = Path("set/data.jsonl").read_text("utf-8").splitlines()
    assert json.loads(line)["id"] == "thinker.nq.right"
    assert 'license: "other"' in Path("set/README.md").read_text("utf-8")
    asked = len(teacher.asked)
    assert osler(*common, "--rounds", "2").exit_code == 0
    assert len(teacher.asked) == asked
    measured = json.loads(osler(*common, "--dry-run", "--json").stdout)
    assert (measured["kept"], measured["left"], measured["most_calls"]) == (1, 1, 48)


def test_questions_that_are_held_out_are_not_taught(
    osler: Any, teacher: KeyedModel, folder: Path
) -> None:
    lines = [
        {"id": str(n), "question": f"Who directed film {n}?", "golden_answers": ["him"]}
        for n in range(200)
    ]
    (folder / "q.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines), encoding="utf-8")
    common = ("train", "thinker-data", "--log-dir", "log", "--tasks", "nq=q.jsonl", "--dry-run")

    def counted(*more: str) -> int:
        questions: int = json.loads(osler(*common, "--json", *more).stdout)["questions"]
        return questions

    assert 120 < counted() < 190
    assert counted() + counted("--part", "held-out") == counted("--part", "all") == 200
    none = osler(*common, "--part", "held-out", "--held-out", "0")
    assert (none.exit_code, "no question is in the part" in none.stderr) == (3, True)


def test_plans_alone_need_no_knowledge_base(osler: Any, teacher: KeyedModel, folder: Path) -> None:
    (folder / "osler.toml").write_text(SERVER, encoding="utf-8")
    line = {"id": "1", "question": "Who directed Red Kite?", "golden_answers": ["Peter Berg"]}
    (folder / "q.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    done = osler(
        "train", "thinker-data", "--log-dir", "log", "--tasks", "nq=q.jsonl", "--part", "all",
        "--stage", "logical-form", "--out", "set", "--json",
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["written"]["lines"] == 1
    assert teacher.asked == ["decompose the user question"]


def test_what_was_made_is_judged_by_rules_and_by_a_model(
    osler: Any, teacher: KeyedModel, questions: str
) -> None:
    made = osler(
        "train", "thinker-data", "--log-dir", "log", "--tasks", questions,
        "--part", "all", "--rounds", "1",
        "--inspect", "both", "--out", "set",
    )  # fmt: skip
    assert made.exit_code == 0, made.stderr
    assert osler("train", "evaluate-data", "set").exit_code == 0
    by_model = ("train", "evaluate-data", "set", "--by", "model", "--verdicts", "v.jsonl", "--json")
    first = json.loads(osler(*by_model).stdout)
    assert first["shares"]["undecided"]["logic"] == 0
    assert first["usage"]["calls"] == 6
    assert json.loads(osler(*by_model).stdout)["usage"]["calls"] == 0


def test_labelled_samples_give_the_paper_s_tables(osler: Any, folder: Path) -> None:
    said = [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": r"\boxed{him"}]
    line = {"id": "1", "messages": said, "labels": ["accuracy"], "meta": {"domain": "medical"}}
    (folder / "x.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    done = osler("train", "evaluate-data", "x.jsonl", "--json")
    assert done.exit_code == 1
    document = json.loads(done.stdout)
    assert document["bad"] == {"1": ["accuracy.rejection: reply 1 has no boxed answer"]}
    bad = [one for one in document["against"]["bad"] if one["dimension"] == "accuracy"]
    assert [(one["domain"], one["right"], one["accuracy"]) for one in bad] == [("medical", 1, 1.0)]


def test_nothing_kept_is_an_error_with_its_reasons(
    osler: Any, teacher: KeyedModel, questions: str
) -> None:
    teacher.replies["Answer the last question"] = ["no idea"]
    done = osler(
        "train", "thinker-data", "--log-dir", "log", "--tasks", questions,
        "--part", "all", "--rounds", "1",
        "--out", "set",
    )  # fmt: skip
    assert done.exit_code == 1
    assert "2 × no answer" in done.stderr
