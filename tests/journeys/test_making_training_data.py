"""From questions to what a planner learns from, by the command line on the sample texts."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from loopback_servers import LoopbackRequest, chat_reply, json_reply, serve_loopback
from typer.testing import CliRunner

from osler.build.knowledge import open_knowledge_base
from osler.cli import app
from osler.settings import Settings

Osler = Any
Call = Callable[..., Any]


@pytest.fixture
def called(built: Osler, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """`osler` in this process, over the sample knowledge base."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OSLER__HOME", str(home))
    return lambda *words: CliRunner().invoke(app, list(words))


def _propose(asked: LoopbackRequest) -> bytes:
    """Two queries a source about what the question is about, and the first document before the
    others; no other door is known."""
    if "rerank" in asked.path:
        count = len(asked.body["documents"])
        scores = [{"index": n, "relevance_score": 3.0 - n} for n in range(count)]
        return json_reply({"results": scores})
    if "chat" not in asked.path:
        return json_reply({"error": "unknown"}, 404)
    said = str(asked.body)
    subject = next((name for _, _, name in QUESTIONS if name in said), "fever")
    names = ("book", "guideline", "wiki")
    plan = "".join(f"<{name}> {subject} first treatment ; tea </{name}>" for name in names)
    return json_reply(chat_reply(plan))


@pytest.fixture
def expert(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A model server in the role that explores; its address."""
    ready, loop = Event(), asyncio.new_event_loop()
    place: list[str] = []
    done = asyncio.Event()

    async def serve() -> None:
        async with serve_loopback(_propose) as server:
            place.append(server.url)
            ready.set()
            await done.wait()

    thread = Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    ready.wait()
    planner = {"KIND": "openai", "URL": place[0], "NAME": "expert"}
    for name, value in planner.items():
        monkeypatch.setenv(f"OSLER__ROLES__PLANNER__{name}", value)
    yield place[0]
    loop.call_soon_threadsafe(done.set)
    thread.join()
    loop.close()


QUESTIONS = [
    ("Which drug is given first in anaphylaxis?", "adrenaline", "anaphylaxis"),
    ("What is the first treatment of iron deficiency anaemia?", "oral iron", "iron"),
    ("How is community-acquired pneumonia treated?", "amoxicillin", "pneumonia"),
    ("What is used for an acute asthma attack?", "salbutamol", "asthma"),
]


def _written(folder: Path, home: Path) -> Path:
    """The questions, each with the book's documents that name its subject as gold."""
    with open_knowledge_base(Settings.model_validate({"home": home})) as kb:
        passages = [passage for found in kb.read_documents("book") for passage in found]
    lines = []
    for text, answer, subject in QUESTIONS:
        held = [p.id for p in passages if subject in f"{p.heading} {p.text}".casefold()]
        documents = sorted({id.partition(":")[2].rpartition("#")[0] for id in held})
        lines.append({"question": text, "answer": answer, "documents": documents})
    path = folder / "questions.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


def test_questions_become_plans_to_learn(
    called: Call, expert: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = str(_written(tmp_path, home))

    def train(*words: str) -> dict[str, Any]:
        done = called("train", *words, "--json")
        assert done.exit_code == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    explore = ["explore", "--log-dir", "spo", "--questions", questions, "--part", "all"]
    explore += ["--sources", "book,guideline,wiki"]
    size = train(*explore, "--dry-run")
    assert (size["questions"], size["calls"], size["searches"]) == (4, 4, 72)
    assert not (tmp_path / "spo").exists()
    explored = train(*explore, "--workers", "2")
    assert explored["questions"] == 4
    assert set(explored["queries"]) == {"book", "guideline", "wiki"}
    assert explored["diversity"]["book"] > 0

    load = train("judge", "--log-dir", "spo", "--by", "model", "--dry-run")
    assert 0 < load["calls_at_most"] < load["queries"]
    gold = train("judge", "--log-dir", "spo", "--by", "gold")
    assert gold["verdicts"]["book"]["positive"] > 0
    assert "positive" not in gold["verdicts"]["wiki"]
    for name, value in {"KIND": "openai", "URL": expert, "NAME": "second"}.items():
        monkeypatch.setenv(f"OSLER__RERANKER__{name}", value)
    told = train("judge", "--log-dir", "spo", "--by", "rerank", "--against", "gold")
    assert "positive" in told["verdicts"]["book"]
    assert 0 <= told["agreement"]["accuracy"] <= 1
    two = called("train", "make", "sft", "--log-dir", "spo", "--out", "sft")
    assert two.exit_code == 1
    assert "2 judges of spo are named" in two.stderr

    sft = train("make", "sft", "--log-dir", "spo", "--out", "sft", "--judge", "gold")
    dpo = train("make", "dpo", "--log-dir", "spo", "--out", "dpo", "--judge", "gold")
    assert (sft["records"], dpo["records"]) == (4, 4)
    first = json.loads((tmp_path / "sft" / "data.jsonl").read_text("utf-8").splitlines()[0])
    assert first["completion"].startswith("<book> ")
    assert "<wiki></wiki>" in first["completion"]
    assert "| judge | gold documents |" in (tmp_path / "sft" / "README.md").read_text("utf-8")
    less = train(
        "make", "sft", "--log-dir", "spo", "--out", "less", "--judge", "gold",
        "--ablation", "uncertainty:sft-negative", "--without-source", "guideline",
    )  # fmt: skip
    assert "wiki" in less["queries"]
    assert "guideline" not in less["queries"]

    # The same command does nothing again; another seed would mean another exploration.
    other = called("train", *explore, "--seed", "1")
    assert other.exit_code == 1
    assert "seed 0, now 1" in other.stderr


@pytest.mark.usefixtures("expert")
def test_what_cannot_be_trained_on_is_told_before_hours_are_spent(
    called: Call, tmp_path: Path
) -> None:
    def refused(*words: str) -> str:
        done = called("train", *words)
        assert done.exit_code != 0
        assert done.exception is None or isinstance(done.exception, SystemExit)
        return str(done.stderr)

    assert "nothing is explored" in refused("judge", "--log-dir", "none", "--by", "gold")
    assert "there is no judge" in refused("judge", "--log-dir", "none", "--by", "nobody")
    assert "cannot be read" in refused("make", "sft", "--log-dir", "none", "--out", "x")
    assert "give either" in refused("explore", "--log-dir", "spo")
    assert "there is no part" in refused("explore", "--log-dir", "spo", "--part", "x")
    (tmp_path / "q.jsonl").write_text('{"question": "Why?"}\n', encoding="utf-8")
    words = ["--log-dir", "spo", "--questions", "q.jsonl", "--part", "all"]
    alone = called("train", "explore", *words, "--sources", "book")
    assert alone.exit_code == 0, alone.stderr
    other = [*words[:-1], "train", "--held-out", "0"]
    assert "part 'all', now 'train'" in refused("explore", *other)
    # There is nothing that a judge could compare with: each case says so, and the code is 6.
    lacking = called("train", "judge", "--log-dir", "spo", "--by", "gold")
    assert lacking.exit_code == 6
    assert "names no gold documents" in lacking.stdout
    assert "no case is left" in refused("make", "sft", "--log-dir", "spo", "--out", "x")
    assert not (tmp_path / "x" / "data.jsonl").exists()
