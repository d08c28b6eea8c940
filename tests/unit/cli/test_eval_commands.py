"""`osler eval …` through the real command line."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from loopback import PostReply, PostRequest, serve_posts
from loopback_servers import chat_reply
from stores import write_log_folder

from osler.errors import BadRun
from osler.settings import STRATEGIES, Settings, load
from osler_lab.cli.evaluate_pages import summarise_log
from osler_lab.evaluate.datasets import DATA_SETS
from osler_lab.evaluate.experiments import experiment_names, read_experiment
from osler_lab.evaluate.plan import EvaluationPlan, make_entrant
from osler_lab.studies.evaluation import Trial, labels_of, run_trial, strategy_settings

QUESTIONS = [
    {"question": f"What is used for {what}?", "options": {"A": a, "B": b}, "answer_idx": gold}
    for what, a, b, gold in (
        ("anaphylaxis", "epinephrine", "warfarin", "A"),
        ("fever", "a statin", "paracetamol", "B"),
        ("scurvy", "vitamin C", "insulin", "A"),
    )
]


@pytest.fixture
def questions(folder: Path) -> Path:
    lines = [json.dumps(question) for question in (*QUESTIONS, {"question": "Broken?"})]
    path = folder / "mine.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_data_sets_are_listed_with_their_terms(osler: Any) -> None:
    rows = json.loads(osler("eval", "tasks", "--json").stdout)["tasks"]
    assert {row["name"] for row in rows} == set(DATA_SETS)
    assert all(row["licence"] and row["origin"] for row in rows)
    assert "medqa-us" in osler("eval", "tasks").stdout


def test_data_sets_of_a_folder_are_counted(osler: Any, folder: Path, questions: Path) -> None:
    (folder / "data" / "medqa_zh").mkdir(parents=True)
    questions.rename(folder / "data" / "medqa_zh" / "test.jsonl")
    rows = json.loads(osler("eval", "tasks", "--data", "data", "--json").stdout)["tasks"]
    found = next(row for row in rows if row["name"] == "medqa-zh")
    assert (found["samples"], found["dropped"]["no 'options'"]["count"]) == (3, 1)
    assert (found["split"], found["rows"], found["published"]) == ("test", 4, 3_426)
    page = [
        " ".join(line.split())
        for line in osler("eval", "tasks", "--data", "data").stdout.split("\n")
    ]
    assert any(line.startswith("medqa-zh choice 3 4 3,426") for line in page)
    assert "medqa-zh no 'options' 1 test.jsonl:4" in page


def test_a_folder_without_any_data_set_is_named(osler: Any, folder: Path) -> None:
    (folder / "empty").mkdir()
    page = osler("eval", "tasks", "--data", "empty").stdout
    assert "empty holds the files of no data set" in page
    assert " ".join(page.split()).count(" - - - ") > 9, "what is not known is no 0"


@pytest.mark.parametrize(
    ("arguments", "said", "code"),
    [
        (
            ["--tasks", "medqa-us,bioasq", "--strategies", "direct", "--data", "empty"],
            "bioasq (bioasq/bioasq_yesno_golden.json: github.com/Teddy-XiongGZ/MIRAGE)",
            3,
        ),
        (["--tasks", "medqa-su", "--strategies", "direct"], "did you mean 'medqa-us'", 3),
        (["--tasks", "medqa-us", "--strategies", "direct"], "name their folder with --data", 3),
        (["--tasks", "medqa-us"], "nothing is given with --strategies", 3),
        (["--tasks", "medqa-us=gone.jsonl", "--strategies", "direct"], "cannot be read", 4),
        (["--tasks", "medqa-us", "--strategies", "magic"], "magic", 3),
        (["--tasks", "medqa-us", "--strategies", "rag:k"], "is not KEY=VALUE", 3),
        (["--tasks", "medqa-us", "--strategies", "rag:k:x=1"], "'k' is not KEY=VALUE", 3),
        (["--tasks", "medqa-us", "--strategies", "rag:"], "'' is not KEY=VALUE", 3),
        (["--tasks", "medqa-us", "--strategies", "rag:k=3:k=4"], "k is given twice", 3),
        (
            ["--tasks", "medqa-us=mine.jsonl,medqa-us=./mine.jsonl", "--strategies", "direct"],
            "medqa-us is named twice",
            3,
        ),
        (
            ["--strategies", "omni-rag", "--ablation", "sources:without-research"],
            "where are the files of pubmedqa",
            3,
        ),
        (
            ["--strategies", "rag", "--ablation", "sources:without-bok"],
            "sources has no 'without-bok'",
            3,
        ),
        (["--experiment", "none-such"], "no experiment 'none-such'", 3),
        (["--tasks", "sample", "--strategies", "rag", "--workers", "2"], "it goes with --on", 2),
        (["--tasks", "sample", "--strategies", "rag", "--plans", "p"], "no strategy here is", 2),
    ],
)
@pytest.mark.usefixtures("questions")
def test_what_cannot_be_run_is_refused_before_anything_is_written(
    osler: Any, folder: Path, arguments: list[str], said: str, code: int
) -> None:
    done = osler("eval", "run", "--log-dir", "log", *arguments)
    assert (done.exit_code, said in done.stderr) == (code, True), done.stderr
    assert not (folder / "log").exists()


@pytest.mark.parametrize("name", experiment_names())
def test_an_experiment_names_known_data_sets_and_valid_settings(name: str, tmp_path: Path) -> None:
    found = read_experiment(name)
    assert found.repeats
    assert {task.partition("@")[0] for task in found.tasks} <= set(DATA_SETS)
    made = [
        strategy_settings(
            label, lambda flags, preset: load(flags, cwd=tmp_path, env={}, preset=preset).settings
        )
        for label in found.labels
    ]
    assert len({one.model_dump_json() for one in made}) == len(made)  # each is another one


def test_an_address_in_a_strategy_keeps_its_colons(tmp_path: Path) -> None:
    readers = read_experiment("omni-readers-planners").labels
    assert len(readers) == 3 * 7
    found = strategy_settings(
        readers[-1], lambda flags, preset: load(flags, cwd=tmp_path, env={}, preset=preset).settings
    )
    reader = found.model_for("reader")
    assert (reader.url, reader.name) == ("http://127.0.0.1:8003/v1", "Mistral-7B-Instruct-v0.3")
    assert found.model_for("planner").kind == "packaged"


def test_all_stands_for_every_strategy_that_model_and_knowledge_base_can_serve(
    osler: Any, folder: Path
) -> None:
    def here(flags: Mapping[str, object], preset: str | None) -> Settings:
        return load(flags, cwd=folder, env=os.environ, preset=preset).settings

    labels, left_out = labels_of(["rag", "all:answer.statements=1"], here)
    assert labels[0] == "rag"
    known = {label.partition(":")[0] for label in labels}
    assert known == STRATEGIES.keys() - {"dragin", "hykge", "self-rag"}
    assert len(labels) == len(STRATEGIES) - 2  # "rag" under both settings
    assert left_out == {
        "self-rag": "it needs a checkpoint of Self-RAG's, with scoring of given texts",
        "dragin": "it needs the model's attention (transformers)",
        "hykge": "it needs a concept graph, and the knowledge base has none",
    }
    (folder / "ours.obo").write_text("[Term]\nid: DOID:1\nname: fever\n", encoding="utf-8")
    assert osler("kb", "graph", "add", "ours.obo").exit_code == 0
    shown = {"model.kind": "transformers", "model.path": folder}
    everyone, _ = labels_of(["all"], lambda flags, preset: here({**flags, **shown}, preset))
    # Only a loaded model can tell whether it is a checkpoint of Self-RAG's.
    assert set(everyone) == STRATEGIES.keys() - {"self-rag"}


@pytest.mark.parametrize(
    ("strategy", "needs"),
    [
        ("hykge", "hykge needs a concept graph"),
        ("dragin", "dragin needs the model's attention"),
        ("self-rag", "self-rag needs a checkpoint of Self-RAG's"),
    ],
)
def test_a_strategy_that_cannot_run_is_refused_before_any_other_is_tried(
    osler: Any, questions: Path, strategy: str, needs: str
) -> None:
    names = f"direct,{strategy}"
    tried = ("--tasks", f"medqa-us={questions}", "--strategies", names, "--log-dir", "log")
    done = osler("eval", "run", *tried)
    assert done.exit_code == 3
    assert needs in done.stderr
    assert not Path("log").exists()


RAY = [
    pytest.mark.ray,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="no extra ray"),
    pytest.mark.filterwarnings("ignore"),  # Ray's own
]


@pytest.mark.parametrize("on", ["processes", pytest.param("ray", marks=RAY)])
def test_workers_share_the_samples_of_an_evaluation(
    osler: Any, folder: Path, questions: Path, monkeypatch: pytest.MonkeyPatch, on: str
) -> None:
    def answer(_asked: PostRequest) -> PostReply:
        return PostReply(chat_reply("The answer is A."))

    with serve_posts(answer) as model:
        chosen = {"KIND": "openai", "URL": model.url, "NAME": "m", "WRITES": "yes"}
        for name, value in chosen.items():
            monkeypatch.setenv(f"OSLER__MODEL__{name}", value)
        tried = ("--tasks", f"medqa-us={questions}", "--strategies", "direct", "--log-dir", "log")
        shared = ("--on", on, "--workers", "2")
        done = osler("eval", "run", *tried, *shared, "--json")
    assert done.exit_code == 0, done.stderr
    (cell,) = json.loads(done.stdout)["cells"]
    assert (cell["done"], cell["failed"], cell["score"]) == (3, 0, round(2 / 3, 4))
    assert len(list((folder / "log").glob("records-*.jsonl"))) == 2
    refused = osler("eval", "run", *tried, *shared, "--tapes")
    assert (refused.exit_code, "share neither tapes" in refused.stderr) == (3, True)


def test_one_strategy_of_a_report_is_not_asked_for_in_vain(osler: Any, folder: Path) -> None:
    for option in ("--strategy", "--task"):
        done = osler("eval", "report", "--log-dir", "log", option, "rag")
        assert (done.exit_code, "go with --sample" in done.stderr) == (2, True), done.stderr


async def test_a_complete_log_of_another_knowledge_base_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entrant = replace(make_entrant("rag", {}), models={"reader": "m"}, snapshot="old")
    plan = EvaluationPlan(0, {}, {"rag": entrant}, {}, "0.1")
    trial = Trial({"rag": Settings()}, plan, ())
    base = SimpleNamespace(snapshot="old")
    monkeypatch.setattr("osler_lab.studies.evaluation.open_knowledge_base", lambda _: base)
    await run_trial(trial, folder / "log")
    base.snapshot = "new"
    with pytest.raises(BadRun, match=r"rag has another knowledge base \(old, now new\)"):
        await run_trial(trial, folder / "log")


def test_an_experiment_of_another_command_says_which(osler: Any, folder: Path) -> None:
    done = osler("eval", "run", "--log-dir", "log", "--experiment", "tc-rag-noise")
    assert done.exit_code == 3
    assert "osler --strategy tc-rag attack SETS" in done.stderr


def test_experiments_are_listed_and_a_broken_one_is_refused(osler: Any, folder: Path) -> None:
    listed = json.loads(osler("eval", "tasks", "--json").stdout)["experiments"]
    assert {one["name"] for one in listed} == set(experiment_names())
    assert "TC-RAG Figure 3" in osler("eval", "tasks").stdout
    (folder / "mine.toml").write_text('tasks = "medqa-us"', encoding="utf-8")
    done = osler("eval", "run", "--log-dir", "log", "--experiment", "mine.toml")
    assert done.exit_code == 3
    assert "experiment mine.toml" in done.stderr


def test_people_s_ratings_are_a_table_of_methods_and_dimensions(osler: Any, folder: Path) -> None:
    head = "strategy,task,id,rater,relevance,completeness,proficiency,interpretability\n"
    rows = "direct,liveqa,q1,ann,2,1,3,-\nrag,liveqa,q1,ann,5,5,4,5\n"
    (folder / "people.csv").write_text(head + rows, encoding="utf-8")
    page = osler("eval", "agree", "people.csv", "--raters")
    assert page.exit_code == 0, page.stderr
    lines = [" ".join(line.split()) for line in page.stdout.splitlines()]
    assert "direct liveqa 2 [2, 2] 1 [1, 1] 3 [3, 3] 1 1 1" in lines
    assert "rag liveqa 5 [5, 5] 5 [5, 5] 4 [4, 4] 1 1 1 5 [5, 5]" in lines
    told = json.loads(osler("eval", "agree", "people.csv", "--raters", "--json").stdout)
    assert told["cells"][1]["means"]["interpretability"]["value"] == 5
    refused = osler("eval", "agree", "people.csv", "--raters", "--log-dir", ".")
    assert refused.exit_code == 1
    assert "no answer of direct to q1 of liveqa" in refused.stderr
    assert osler("eval", "agree", "people.csv").exit_code == 2, "of a judge without its log"


def test_a_failed_sample_lowers_the_score_and_costs_nothing(folder: Path) -> None:
    write_log_folder(folder / "log")
    direct, rag = summarise_log(folder / "log")
    assert (direct["score"], direct["failed"]) == (0.4, 0)
    assert (rag["score"], rag["failed"], rag["done"]) == (round(9 / 11, 4), 1, 10)
    assert rag["calls"] == 2


def test_a_report_as_json_has_opponents_and_what_was_trained_on(osler: Any, folder: Path) -> None:
    write_log_folder(folder / "log")
    told = json.loads(osler("eval", "report", "--log-dir", "log", "--json").stdout)
    majority, chance = told["opponents"]["pubmedqa"]["accuracy"]
    assert (majority["said"], majority["estimate"]["value"]) == ("A", 1.0)
    assert chance["estimate"]["value"] == 0.5
    assert [cell["trained_on"] for cell in told["cells"]] == [0, 0]
    page = osler("eval", "report", "--log-dir", "log").stdout
    assert "majority answer" in page
