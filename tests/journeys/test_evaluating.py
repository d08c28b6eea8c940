"""An evaluation from the command line, with the packaged model on questions of ours."""

import json
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

from osler_lab.evaluate.log import read_records
from osler_lab.studies.replies import ResponseCache

Osler = Any

QUESTIONS = [
    {"question": f"What is used for {what}?", "options": {"A": a, "B": b}, "answer_idx": gold}
    for what, a, b, gold in (
        ("anaphylaxis", "epinephrine", "warfarin", "A"),
        ("fever", "a statin", "paracetamol", "B"),
        ("scurvy", "vitamin C", "insulin", "A"),
    )
]


def test_a_run_is_resumed_reported_compared_merged_and_looked_into(
    osler: Osler, tmp_path: Path
) -> None:
    def call(*words: str) -> subprocess.CompletedProcess[str]:
        done: subprocess.CompletedProcess[str] = osler(*words, cwd=tmp_path)
        return done

    lines = [json.dumps(question) for question in (*QUESTIONS, {"question": "Broken?"})]
    (tmp_path / "mine.jsonl").write_text("\n".join(lines), encoding="utf-8")
    strategies = "direct,direct:answer.options=written"
    command = ["eval", "run", "--tasks", "medqa-us=mine.jsonl", "--log-dir", "log"]
    few = call(*command, "--strategies", "direct", "--limit", "2", "--tapes", "--json")
    assert few.returncode == 0, few.stderr
    assert json.loads(few.stdout)["cells"][0]["done"] == 2
    whole = call(*command, "--strategies", strategies)
    assert whole.returncode == 0, whole.stderr
    assert "direct:answer.options=written" in whole.stdout
    assert len(list((tmp_path / "log").glob("records-*.jsonl"))) == 2

    report = call("eval", "report", "--log-dir", "log", "--json")
    told = json.loads(report.stdout)
    assert [cell["done"] for cell in told["cells"]] == [3, 3]
    assert told["left_out"] == ["medqa-us: 1 of 4 rows were no samples: no 'options'"]
    assert "# Evaluation" in (tmp_path / "log" / "report.md").read_text(encoding="utf-8")

    against = ("eval", "report", "--log-dir", "log", "--against", "log")
    compared = json.loads(call(*against, "--json").stdout)["compared"]
    assert (compared[0]["first"], compared[0]["change"]["n"]) == ("direct", 3)
    assert "accuracy" in call(*against).stdout

    runs = sorted((tmp_path / "log" / "runs").iterdir())
    assert len(runs) == 2  # those of the first command, which kept tapes
    again = call("replay", str(runs[0]))
    assert again.returncode == 0, again.stderr
    assert "all identical" in again.stdout

    merged = call("eval", "report", "--log-dir", "both", "--merge", "log", "--json")
    assert [cell["done"] for cell in json.loads(merged.stdout)["cells"]] == [3, 3]

    assert [run.name for run in sorted((tmp_path / "both" / "runs").iterdir())] == [
        run.name for run in runs
    ]

    id = compared[0]["better"][0]["id"] if compared[0]["better"] else _an_id(tmp_path / "log")
    sample = ("eval", "report", "--log-dir", "both", "--sample", id)
    shown = call(*sample, "--strategy", "direct")
    assert "gold" in shown.stdout
    document = json.loads(call(*sample, "--json").stdout)
    assert len(document["samples"]) == 2
    assert document["samples"][0]["events"][0]["type"] == "run.started"

    other = call(*command, "--strategies", "direct", "--seed", "1")
    assert other.returncode == 1
    assert "seed 0, now 1" in other.stderr


def test_a_second_log_takes_from_the_file_what_the_model_said_for_the_first(
    osler: Osler, tmp_path: Path
) -> None:
    lines = "\n".join(json.dumps(question) for question in QUESTIONS)
    (tmp_path / "mine.jsonl").write_text(lines, encoding="utf-8")

    def outcomes(log: str, size: int) -> list[tuple[Any, ...]]:
        words = ["eval", "run", "--tasks", "medqa-us=mine.jsonl", "--strategies", "cot"]
        done = osler(*words, "--log-dir", log, "--replies", "said.sqlite", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        with closing(ResponseCache(tmp_path / "said.sqlite")) as replies:
            assert len(replies) == size
        records = read_records(tmp_path / log)
        return sorted((r.sample.id, r.outcome.option, r.outcome.usage) for r in records)

    requests = len(QUESTIONS) * (1 + 2)  # a draft, and each option weighed
    first = outcomes("one", requests)
    assert outcomes("two", requests) == first


def _an_id(log: Path) -> str:
    line = next(log.glob("records-*.jsonl")).read_text(encoding="utf-8").split("\n")[0]
    return str(json.loads(line)["sample"]["question"]["id"])
