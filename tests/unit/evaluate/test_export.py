"""Our tasks in other harnesses: what is written, and what those make of it."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from osler.errors import BadRun
from osler.evaluate.export import HARNESSES, ExportedTask, export_tasks, make_export_row
from osler.evaluate.record import Gold, Kind, Sample
from osler.types import Language, Question

OPTIONS = ("aspirin", "肾上腺素", "x | y")


def sample(kind: Kind, number: int) -> Sample:
    chosen = {"choice": ("B",), "choices": ("A", "C")}.get(kind, ())
    texts = () if chosen else ("adrenaline", "epinephrine")
    language: Language = "zh" if kind == "choices" else "en"
    question = Question(
        f"q{number}", f'Case "{number}": {{% raw %}}?', OPTIONS if chosen else (), language
    )
    return Sample(f"made-{kind}", kind, question, Gold(chosen, texts))


KINDS: tuple[Kind, ...] = ("choice", "choices", "short", "long")
PARTS = [
    ExportedTask(f"made-{kind}", kind, [sample(kind, n) for n in range(3)], "d" * 64)
    for kind in KINDS
]


@pytest.mark.parametrize("harness", HARNESSES)
def test_every_sample_is_written_once_and_nothing_names_where_it_lies(
    harness: Any, tmp_path: Path
) -> None:
    made = export_tasks(PARTS, harness, tmp_path / "out")
    for part in PARTS:
        lines = (tmp_path / "out" / f"{part.slug}.jsonl").read_text(encoding="utf-8").splitlines()
        assert [json.loads(line) for line in lines] == [
            make_export_row(one) for one in part.samples
        ]
    for path in made:
        text = path.read_text(encoding="utf-8")
        assert str(tmp_path) not in text
        if path.suffix == ".py":
            ast.parse(text)


def test_a_row_says_what_is_asked_and_what_is_right() -> None:
    one = make_export_row(sample("choices", 7))
    assert one["prompt"].endswith("C. x | y\n答案（只写所有正确选项的字母）：")
    assert (one["gold"], one["right"], one["letters"]) == (["A", "C"], 0, ["A", "B", "C"])
    assert make_export_row(sample("short", 7))["golds"] == ["adrenaline", "epinephrine"]


def test_duplicate_task_in_an_export_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRun, match="two tasks have one name"):
        export_tasks([PARTS[0], PARTS[0]], "inspect", tmp_path)


@pytest.mark.filterwarnings("ignore")
def test_lm_evaluation_harness_loads_the_tasks_and_scores_them(tmp_path: Path) -> None:
    """Its own dummy model answers by chance, so that every task runs to its score."""
    evaluator = pytest.importorskip("lm_eval.evaluator", reason="lm-eval is not installed")
    managers = pytest.importorskip("lm_eval.tasks")
    export_tasks(PARTS, "lm-eval", tmp_path)
    manager = managers.TaskManager(include_path=str(tmp_path), include_defaults=False)
    slugs = [part.slug for part in PARTS]
    found = evaluator.simple_evaluate(
        model="dummy", tasks=slugs, task_manager=manager, bootstrap_iters=0, log_samples=True
    )
    assert found["results"].keys() == set(slugs)
    names = {slug: {name.split(",")[0] for name in found["results"][slug]} for slug in slugs}
    assert "acc" in names["osler_made_choice"] & names["osler_made_choices"]
    assert {"em", "f1"} <= names["osler_made_short"]
    assert "rouge_l" in names["osler_made_long"]
    for part in PARTS:
        tried = found["samples"][part.slug]
        assert [one["doc"]["id"] for one in tried] == [one.id for one in part.samples]
    first = found["samples"]["osler_made_choice"][0]
    assert first["doc"]["prompt"] == make_export_row(PARTS[0].samples[0])["prompt"]
    assert str(first["target"]) == "1"
    assert len(first["arguments"]) == 3
    context = next(iter(first["arguments"]))
    asked = context[0] if isinstance(context, tuple) else first["arguments"][context]["arg_0"]
    assert asked == first["doc"]["prompt"]  # not taken for a template


@pytest.mark.filterwarnings("ignore")
def test_inspect_loads_the_tasks_and_scores_them(tmp_path: Path) -> None:
    """Its own mock model says the same to everything: right where that is right."""
    inspect = pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")
    models = pytest.importorskip("inspect_ai.model")
    export_tasks(PARTS, "inspect", tmp_path)
    for part, said, score in (
        (PARTS[0], "ANSWER: B", 1.0),
        (PARTS[0], "ANSWER: A", 0.0),
        (PARTS[1], "ANSWER: A,C", 1.0),
        (PARTS[2], "Epinephrine.", 1.0),
        (PARTS[3], "aspirin", 0.0),
    ):
        replies = [models.ModelOutput.from_content("mockllm/model", said) for _ in part.samples]
        for reply in replies:
            reply.usage = models.ModelUsage()  # else it counts tokens, and fetches a vocabulary
        (log,) = inspect.eval(
            f"{tmp_path / 'osler_tasks.py'}@{part.slug}",
            model=models.get_model("mockllm/model", custom_outputs=replies),
            log_dir=str(tmp_path / "logs"),
            display="none",
        )
        assert log.status == "success", log.error
        assert log.results.scores[0].metrics[
            "accuracy" if part.kind in ("choice", "choices") else "mean"
        ].value == pytest.approx(score)
        assert [one.id for one in log.samples] == [one.id for one in part.samples]
