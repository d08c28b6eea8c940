"""`osler ask`, `replay` and `trace`: real runs over a scripted model and a scripted index."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer import testing

from osler.answer.follow_up import Standalone
from osler.build import Parts
from osler.build.models import LoadedModel
from osler.errors import ModelMissing
from osler.kb.base import KnowledgeBase
from osler.retrieve.relevance import OverlapRelevance
from osler.runs import answering
from osler.runs.threads import FILE, MOST_TURNS, ThreadStore
from osler.settings import RagSettings, Settings
from osler.trace import Answered, Event, Retrieved, Searched, read_events
from osler.types import Halt, Hit, Passage, Question, Solution
from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever
from osler_serve.ops.asked_again import AnswerChange

QUESTION = "Where is adrenaline given in anaphylaxis?"
RAG = ("--strategy", "rag")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, passage: Passage) -> list[Settings]:
    """The settings of each run. Everything is real but the model and the index."""
    seen: list[Settings] = []

    async def live(settings: Settings) -> Parts:
        seen.append(settings)
        index = ScriptedRetriever({"anaphylaxis": [passage]})
        sources = settings.kb.sources or ("guideline",)
        return Parts(
            {"reader": LoadedModel(ScriptedModel([]))},
            lambda *_: index,
            OverlapRelevance(),
            OverlapRelevance(),
            sources,
            "5f2a",
        )

    monkeypatch.setattr("osler.runs.answering.live_parts", live)
    monkeypatch.setenv("OSLER__ANSWER__ANSWERS_FROM", "0.2")
    return seen


@dataclass
class Ending:
    """Makes `osler ask` end as the test wants, whatever the question."""

    monkeypatch: pytest.MonkeyPatch

    def __call__(self, solution: Solution | None, *events: Event) -> list[Question]:
        questions: list[Question] = []

        async def ask(
            settings: Settings, question: Question, *, sink: Any, plan_only: bool, plan: object
        ) -> answering.FinishedRun:
            questions.append(question)
            for event in events:
                sink(event)
            return answering.FinishedRun(
                "r1", None, solution, 1.5, {"reader": "m"}, "5f2a", "rag", events
            )

        self.monkeypatch.setattr(answering, "ask", ask)
        return questions


@pytest.fixture
def ending(monkeypatch: pytest.MonkeyPatch) -> Ending:
    return Ending(monkeypatch)


def test_the_answer_comes_first_then_its_source_then_one_line_on_how(
    osler: Any, asked: list[Settings]
) -> None:
    result = osler("ask", QUESTION, *RAG)
    assert result.exit_code == 0
    answer, evidence, how = result.stdout.split("\n\n")
    quote = "Give adrenaline into the outer thigh at once"
    assert quote in answer
    age = datetime.now(UTC).year - 2021
    assert evidence.splitlines() == [
        f"[1] guideline · Anaphylaxis · First minutes, p. 3, 2021 · {age} years old",
        "illustrative sample text, not a clinical reference",
    ]
    long = osler("ask", QUESTION, *RAG, "--long").stdout
    assert f"Anaphylaxis is a medical emergency. «{quote}" in " ".join(long.split())
    assert how.startswith("How: rag; 1 passage of guideline read; quoted; ")
    assert "(osler trace 2" in " ".join(how.split())
    assert result.stderr == "", "a wait of less than ten seconds is not told in a pipe"


def test_the_film_and_the_cost_are_shown_where_they_are_asked_for(
    osler: Any, asked: list[Settings]
) -> None:
    result = osler("ask", QUESTION, *RAG, "--film")
    assert "? Where is adrenaline given in anaphylaxis? (in guideline, k 10)" in result.stdout
    assert "halt       converged: one search was enough" in result.stdout
    assert "(osler replay 2" in result.stdout
    assert result.stderr.startswith("rag, seed 0\n")
    assert "1 passage: guideline:anaphylaxis#2" in result.stderr


@pytest.mark.parametrize("before", [["--progress", "none"], ["--quiet"], ["--json"]])
def test_the_live_film_can_be_left_out(
    osler: Any, asked: list[Settings], before: list[str]
) -> None:
    assert osler(*before, "ask", QUESTION, *RAG, "--film").stderr == ""


def test_with_json_progress_the_events_are_the_live_film(
    osler: Any, asked: list[Settings], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    log.write_text(osler("--progress", "json", "ask", QUESTION, *RAG).stderr, encoding="utf-8")
    assert isinstance(list(read_events(log))[-1], Answered)


def test_quiet_prints_the_answer_alone(osler: Any, asked: list[Settings]) -> None:
    shown = osler("ask", QUESTION, *RAG, "--quiet").stdout
    assert "Give adrenaline" in shown
    assert "halt" not in shown
    assert "Evidence" not in shown


def test_the_json_document_has_everything_and_its_spans_are_right(
    osler: Any, asked: list[Settings]
) -> None:
    document = json.loads(osler("ask", QUESTION, *RAG, "--json").stdout)
    assert {*document} == {
        *("answer", "evidence", "grounding", "halt", "why", "usage", "models", "snapshot"),
        *("run_id", "strategy", "seconds", "cautions", "danger", "decided", "state", "steps"),
        *("question", "options", "notes_of"),
    }
    answer, evidence = document["answer"], document["evidence"]
    assert {*answer} == {
        *("text", "option", "statements", "citations", "language", "authorship", "note"),
        "sureness",
    }
    for citation in answer["citations"]:
        cited = evidence[citation["number"] - 1]
        start, end = citation["quote_span"]
        assert citation["passage_id"] == cited["passage"]["id"]
        assert citation["quote"] == cited["passage"]["text"][start:end] == cited["quote"]
        assert answer["text"][slice(*citation["span"])] == citation["quote"]
    assert document["grounding"] == "grounded"
    assert document["strategy"] == "rag"
    assert document["snapshot"] == "5f2a"


def test_options_become_settings(osler: Any, asked: list[Settings]) -> None:
    osler("ask", QUESTION, *RAG, "--k", "2", "--seed", "7", "--source", "book,wiki")
    (settings,) = asked
    assert settings.strategy == RagSettings(k=2)
    assert settings.sampling.seed == 7
    assert settings.kb.sources == ("book", "wiki")


def test_the_preset_after_the_verb_comes_before_the_profile(
    osler: Any, asked: list[Settings]
) -> None:
    osler("--profile", "tc-rag-uct", "ask", QUESTION, "--preset", "fast")
    assert asked[0].strategy.kind == "rag"


def test_an_unknown_strategy_ends_with_3(osler: Any, asked: list[Settings]) -> None:
    result = osler("ask", QUESTION, "--strategy", "tcrag")
    assert result.exit_code == 3
    assert "did you mean 'tc-rag'?" in result.stderr
    assert not asked


def test_a_strategy_that_searches_nothing_takes_no_k(osler: Any, asked: list[Settings]) -> None:
    result = osler("ask", QUESTION, "--strategy", "direct", "--k", "3")
    assert result.exit_code == 3
    assert "unknown key 'k' in [strategy]" in result.stderr


def test_what_the_evidence_does_not_say_ends_with_1(osler: Any, asked: list[Settings]) -> None:
    result = osler("ask", "What is the capital of France?", *RAG)
    assert result.exit_code == 1
    assert "The evidence does not say." in result.stdout


def test_a_refusal_ends_with_7(osler: Any, asked: list[Settings]) -> None:
    result = osler("ask", QUESTION, "--strategy", "direct")
    assert result.exit_code == 7
    assert "How: direct; refused: " in result.stdout


def test_an_answer_without_a_source_that_was_down_ends_with_6(
    osler: Any, ending: Ending, solution: Solution
) -> None:
    ending(solution, Searched("q", 4, ("wiki",)), Retrieved("q", (), ("wiki: no index",)))
    result = osler("ask", QUESTION)
    assert result.exit_code == 6
    assert "! source down: wiki: no index" in result.stdout


def test_a_spent_budget_with_an_answer_is_an_answer(
    osler: Any, ending: Ending, solution: Solution
) -> None:
    ending(replace(solution, halt=Halt.BUDGET, why="calls 3 of 3"))
    result = osler("ask", QUESTION)
    assert result.exit_code == 0
    assert "; budget: calls 3 of 3; " in result.stdout
    assert "(not kept)" in result.stdout


def test_a_plan_is_told_and_nothing_is_kept(osler: Any, asked: list[Settings]) -> None:
    result = osler("ask", QUESTION, *RAG, "--plan-only")
    assert result.exit_code == 0
    assert f"plan (fixed): guideline: {QUESTION}" in result.stdout
    assert "halt" not in result.stdout
    assert osler("trace").stdout == "no runs yet\n"


def test_a_plan_as_json(osler: Any, asked: list[Settings]) -> None:
    document = json.loads(osler("ask", QUESTION, *RAG, "--plan-only", "--json").stdout)
    assert document["plan"] == [
        {
            "origin": "fixed",
            "queries": [{"source": "guideline", "j": 0, "query": QUESTION}],
        }
    ]


@pytest.mark.parametrize("arguments", [["-"], []])
def test_a_question_comes_from_standard_input(
    osler: Any, ending: Ending, solution: Solution, arguments: list[str]
) -> None:
    questions = ending(solution)
    result = osler("ask", *arguments, stdin="贫血怎么治？\n".encode())
    assert result.exit_code == 0
    assert (questions[0].text, questions[0].language) == ("贫血怎么治？", "zh")


@pytest.mark.parametrize("stdin", [b"\xff\xfe", b"a\0b", b"", b" \n", b"x" * 1_000_001])
def test_standard_input_that_is_no_question_ends_with_2(osler: Any, stdin: bytes) -> None:
    result = osler("ask", "-", stdin=stdin)
    assert result.exit_code == 2
    assert result.stderr.startswith("osler: the question ")


def test_without_a_question_a_terminal_has_a_conversation(
    osler: Any, asked: list[Settings], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(testing._NamedTextIOWrapper, "isatty", lambda _: True, raising=False)
    lines = (QUESTION, "And in anaphylaxis of children?", "", "not asked")
    talked = osler("ask", *RAG, stdin="\n".join(lines))
    assert talked.exit_code == 0
    assert talked.stdout.count("Give adrenaline into the outer thigh at once") == 2
    assert "searched for: " in talked.stdout
    (thread,) = ThreadStore(tmp_path / "osler").read_threads()
    assert len(thread.turns) == 2


@pytest.mark.parametrize(
    "words",
    [("--as", "Why?"), ("--thread", "mine", "--plan-only")],
)
def test_an_option_that_would_do_nothing_is_refused(
    osler: Any, asked: list[Settings], words: tuple[str, ...]
) -> None:
    result = osler("ask", QUESTION, *RAG, *words)
    assert (result.exit_code, "--thread" in result.stderr, asked) == (2, True, [])


def test_a_plan_of_no_question_is_no_conversation(
    osler: Any, asked: list[Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(testing._NamedTextIOWrapper, "isatty", lambda _: True, raising=False)
    assert osler("ask", "--plan-only", stdin=QUESTION).exit_code == 2
    assert asked == []


def test_options_are_given_one_by_one(osler: Any, ending: Ending, solution: Solution) -> None:
    questions = ending(replace(solution, answer=replace(solution.answer, option="B")))
    result = osler("ask", QUESTION, "--option", "aspirin", "--option", "adrenaline")
    assert questions[0].options == ("aspirin", "adrenaline")
    assert result.stdout.startswith("B. adrenaline\n")


def test_the_events_are_written_to_a_file_of_ones_own(
    osler: Any, asked: list[Settings], folder: Path
) -> None:
    osler("ask", QUESTION, *RAG, "--trace", "mine.jsonl")
    events = list(read_events(folder / "mine.jsonl"))
    assert isinstance(events[-1], Answered)
    assert "Give adrenaline" in osler("trace", "mine.jsonl").stdout


def test_the_events_are_in_the_file_while_the_run_goes_on(
    osler: Any, asked: list[Settings], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    search = ScriptedRetriever.search

    async def read_and_search(self: ScriptedRetriever, query: str, *, k: int) -> list[Hit]:
        written.append((folder / "mine.jsonl").read_text("utf-8"))
        return await search(self, query, k=k)

    monkeypatch.setattr(ScriptedRetriever, "search", read_and_search)
    osler("ask", QUESTION, *RAG, "--trace", "mine.jsonl")
    assert '"run.started"' in written[0]


def test_a_file_that_cannot_be_written_is_told_before_the_run(
    osler: Any, asked: list[Settings]
) -> None:
    result = osler("ask", QUESTION, *RAG, "--trace", "no/such/folder.jsonl")
    assert result.exit_code == 1
    assert "cannot write no/such/folder.jsonl" in result.stderr
    assert not asked


def test_a_missing_model_ends_with_5(osler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def live(_: Settings) -> Parts:
        raise ModelMissing("no weights", fix="run `osler download-models`")

    monkeypatch.setattr("osler.runs.answering.live_parts", live)
    result = osler("ask", QUESTION)
    assert result.exit_code == 5
    assert result.stderr == "osler: no weights; run `osler download-models`\n"


@pytest.fixture
def run(osler: Any, asked: list[Settings], tmp_path: Path) -> Path:
    """A run that is kept."""
    assert osler("ask", QUESTION, *RAG, "--quiet").exit_code == 0
    (folder,) = (tmp_path / "osler" / "runs").iterdir()
    return folder


@pytest.mark.parametrize("word", [lambda r: "last", lambda r: r.name[:-3], str])
def test_a_run_is_replayed_without_a_model(
    osler: Any, run: Path, monkeypatch: pytest.MonkeyPatch, word: Callable[[Path], str]
) -> None:
    monkeypatch.delattr("osler.runs.answering.live_parts")
    result = osler("replay", word(run))
    assert result.exit_code == 0
    events = len((run / "events.jsonl").read_text("utf-8").splitlines())
    assert result.stdout.startswith(f"replayed {events} events; all identical\n")
    assert f"(osler trace {run.name})" in " ".join(result.stdout.split())


def test_a_replay_that_differs_ends_with_1(osler: Any, run: Path) -> None:
    log, record = run / "events.jsonl", run / "run.json"
    log.write_text(log.read_text("utf-8").replace('"k":10', '"k":9'), encoding="utf-8")
    assert "is damaged" in osler("replay", "last").stderr
    told = json.loads(record.read_text("utf-8"))
    # Runs of before have no hashes.
    record.write_text(json.dumps({**told, "hashes": {}}), encoding="utf-8")
    result = osler("replay", "last")
    assert result.exit_code == 1
    assert "replay differs" in result.stderr


def test_runs_are_listed(osler: Any, run: Path) -> None:
    shown = osler("trace").stdout
    for part in (run.name, "rag", "converged"):
        assert part in shown
    (listed,) = json.loads(osler("trace", "--json").stdout)["runs"]
    assert listed["question"] == QUESTION


def test_a_run_is_shown_again(osler: Any, run: Path) -> None:
    shown = osler("trace", "last").stdout
    assert "] guideline · Anaphylaxis" in shown
    assert "halt       converged: one search was enough" in shown


def test_a_run_as_json_is_its_events(osler: Any, run: Path) -> None:
    lines = osler("trace", run.name, "--json").stdout
    assert lines == (run / "events.jsonl").read_text("utf-8")


def test_a_file_called_last_is_not_the_last_run(osler: Any, run: Path, folder: Path) -> None:
    (folder / "last").write_text("not a run")
    assert osler("trace", "last").exit_code == 0


def test_a_run_is_exported_to_a_terminal_and_to_files(osler: Any, run: Path, folder: Path) -> None:
    assert osler("trace", "last", "--to", "markdown").stdout.startswith(f"# {QUESTION}\n")
    assert osler("trace", run.name, "--out", "a.xlsx").exit_code == 2
    assert not (folder / "a.xlsx").exists()
    exported = osler("trace", run.name, "--out", "a.docx", "--json")
    assert json.loads(exported.stdout)["format"] == "docx"
    assert (folder / "a.docx").read_bytes()[:2] == b"PK"
    assert osler("trace", "last", "--to", "pdf").exit_code == 2
    assert osler("trace", "last", "--to", "doc").exit_code == 2
    assert osler("trace", "nope", "--to", "ris").exit_code == 2


@pytest.mark.parametrize(
    "words",
    [
        ("--html", "o.html"),
        ("last", "last", "--out", "o.md"),
        ("last", "--out", "o.md", "--html", "o.html"),
    ],
)
def test_a_file_that_trace_would_not_write_is_a_usage_error(
    osler: Any, run: Path, words: tuple[str, ...]
) -> None:
    assert osler("trace", *words).exit_code == 2


def test_a_page_is_written_with_json_too(osler: Any, run: Path, folder: Path) -> None:
    shown = osler("trace", "last", "--html", "o.html", "--json")
    assert json.loads(shown.stdout) == {"path": "o.html"}
    assert (folder / "o.html").exists()


def test_a_follow_up_is_asked_in_its_thread(
    osler: Any, asked: list[Settings], folder: Path
) -> None:
    assert osler("ask", QUESTION, *RAG, "--thread", "mine").exit_code == 0
    second = osler("ask", "And in anaphylaxis of children?", *RAG, "--thread", "mine")
    assert second.stdout.startswith("searched for: ")
    third = osler("ask", "Why?", *RAG, "--thread", "mine", "--as", "Why adrenaline?")
    assert "searched for: Why adrenaline?" in third.stdout
    turns = json.loads(osler("thread", "mine", "--json").stdout)["turns"]
    assert [turn["origin"] for turn in turns] == ["", "rule", "user"]
    shown = osler("thread", "mine").stdout
    assert "\nWhy?\n" in shown
    assert not re.search(r"^[#*]|&\w+;", shown, re.MULTILINE)
    assert osler("thread", "mine", "--replay").stdout == "replayed 3 turns; all identical\n"
    assert osler("thread", "mine", "--out", "all.docx").exit_code == 0
    assert "mine" in osler("thread").stdout
    assert osler("thread", "mine", "--delete").exit_code == 0
    assert osler("thread", "mine").exit_code == 2


def test_of_two_terminals_in_one_thread_both_see_their_answers(
    osler: Any, asked: list[Settings], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store, answer = ThreadStore(tmp_path / "osler"), answering.ask

    async def ask_meanwhile(*given: Any, **more: Any) -> answering.FinishedRun:
        store.add_turn(store.read_thread("mine"), "other", "Why?", Standalone("Why?"))
        return await answer(*given, **more)

    monkeypatch.setattr(answering, "ask", ask_meanwhile)
    second = osler("ask", QUESTION, *RAG, "--thread", "mine")
    assert second.exit_code == 1
    assert "Give adrenaline" in second.stdout
    assert "osler: thread mine has a turn 1 by now; `osler trace " in second.stderr
    run = second.stderr.partition("osler trace ")[2].partition("`")[0]
    assert osler("trace", run).exit_code == 0
    assert [turn.run for turn in store.read_thread("mine").turns] == ["other"]


def test_a_thread_of_500_turns_takes_no_more_and_nothing_runs(
    osler: Any, asked: list[Settings], tmp_path: Path
) -> None:
    assert osler("ask", QUESTION, *RAG, "--thread", "mine").exit_code == 0
    with sqlite3.connect(tmp_path / "osler" / FILE) as db:
        fields = "workspace, thread, n + ?, run, question, standalone, origin, created"
        copy = f"INSERT INTO turn SELECT {fields} FROM turn WHERE n = 1"  # noqa: S608
        db.executemany(copy, [(more,) for more in range(1, MOST_TURNS)])
    full = osler("ask", "And in children?", *RAG, "--thread", "mine")
    assert (full.exit_code, full.stderr) == (
        *(2, "osler: the thread has 500 turns; begin another\n"),
    )
    assert len(asked) == 1, "nothing runs that the thread cannot take"
    assert len(json.loads(osler("thread", "mine", "--json").stdout)["turns"]) == MOST_TURNS


def test_a_thread_is_asked_again_and_what_changed_is_told(
    osler: Any, asked: list[Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert osler("ask", QUESTION, *RAG, "--thread", "mine").exit_code == 0
    changed = [AnswerChange(QUESTION, "r1", "r2", ("New.",), (), (), ("book:a#0",), ("a", "a"))]

    async def again(*_: object) -> AsyncIterator[AnswerChange]:
        while changed:
            yield changed.pop()

    monkeypatch.setattr("osler_serve.ops.asked_again.ask_again", again)
    changes = osler("thread", "mine", "--again").stdout
    assert changes == f"? {QUESTION}\n  + New.\n  - evidence book:a#0\n"
    assert "as it was" in osler("thread", "mine", "--again").stdout
    assert osler("thread", "none", "--again").exit_code == 2


def test_a_shown_run_says_what_of_its_evidence_is_gone(osler: Any, run: Path, folder: Path) -> None:
    assert "gone since" not in osler("trace", run.name).stdout
    (folder / "gout.md").write_text("# Gout\n\nUrate crystals form.\n")
    assert osler("kb", "add", "gout.md", "--source", "guideline").exit_code == 0
    assert "[1] this evidence is gone since: " in osler("trace", run.name).stdout


def test_a_saved_answer_whose_evidence_was_retracted_since_is_told_of_it(
    osler: Any, run: Path, passage: Passage, tmp_path: Path
) -> None:
    article = replace(passage, illustrative=False, locator=replace(passage.locator, code="PMID:77"))
    with KnowledgeBase.create(tmp_path / "osler" / "kb") as kb:
        kb.put([article])
    assert "against its evidence" not in osler("trace", run.name).stdout
    listed = tmp_path / "rw.csv"
    listed.write_text(
        "RetractionDate,RetractionNature,Reason,OriginalPaperDOI,OriginalPaperPubMedID\n"
        "7/14/2022 0:00,Retraction,+Error in Data;,unavailable,77\n"
    )
    told = osler("kb", "update", "--retractions", str(listed))
    assert told.exit_code == 0
    assert "saved answers that cite what is retracted: 1" in told.stdout
    assert run.name in told.stdout
    since = "[1] since this answer, against its evidence: Retraction, 2022-07-14: Error in Data"
    assert since in osler("trace", run.name).stdout
