"""Who was trained on a question is not measured by it."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from osler.errors import BadConfig, BadRun
from osler.settings import Settings, load
from osler_lab.build.experts import SWITCHES
from osler_lab.evaluate.log import LogWriter
from osler_lab.evaluate.plan import save_plan
from osler_lab.evaluate.record import RecordedOutcome, SampleRecord
from osler_lab.evaluate.report import build_report, render_markdown
from osler_lab.evaluate.trained_on import (
    list_beside,
    list_questions,
    pass_on,
    read_trained_on,
    write_trained_on,
)
from osler_lab.studies.evaluation import make_trial, trained_weights

QUESTIONS = [f"What is used for case {n}?" for n in range(4)]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = [
        {"question": text, "options": {"A": "rest", "B": "salt"}, "answer_idx": "A"}
        for text in QUESTIONS
    ]
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    """A tuned model that has learnt two of the questions, in other case and marks."""
    path = tmp_path / "planner.gguf"
    path.write_bytes(b"GGUF")
    learnt = (text.upper().replace("?", " …") for text in QUESTIONS[:2])
    list_questions(path, learnt)
    return path


def make(data: Path, folder: Path, flags: Mapping[str, object], *, trained_on: bool = False):  # type: ignore[no-untyped-def]
    def settings(more: Mapping[str, object], preset: str | None) -> Settings:
        return load({**flags, **more}, cwd=folder, env={}, preset=preset).settings

    return make_trial(
        [f"medqa-us={data}"],
        ["direct", "rag"],
        settings,
        data=None,
        limit=None,
        seed=0,
        trained_on=trained_on,
    )


def test_questions_that_a_model_was_trained_on_do_not_measure_it(
    data: Path, weights: Path, tmp_path: Path
) -> None:
    flags = {"model.kind": "gguf", "model.path": str(weights)}
    with pytest.raises(BadConfig, match="direct was trained on 2 of 4 questions of medqa-us"):
        make(data, tmp_path, flags)
    assert make(data, tmp_path, {}).plan.trained_on == {}
    read_by_another = {"roles.planner.kind": "gguf", "roles.planner.path": str(weights)}
    # Neither strategy has a planner, so what it has learnt does not matter.
    assert make(data, tmp_path, read_by_another).plan.trained_on == {}


def test_they_are_measured_when_asked_for_and_every_figure_is_marked(
    data: Path, weights: Path, tmp_path: Path
) -> None:
    flags = {"model.kind": "gguf", "model.path": str(weights)}
    made = make(data, tmp_path, flags, trained_on=True)
    assert made.plan.trained_on == {"direct": {"medqa-us": 2}, "rag": {"medqa-us": 2}}
    folder = tmp_path / "log"
    save_plan(folder, made.plan)
    save_plan(folder, made.plan)  # a second run joins what the first has written
    with LogWriter(folder, "w") as writer:
        for sample in made.cells[0].samples:
            writer.write_record(
                SampleRecord("direct", sample, "done", "", 1.0, 0, RecordedOutcome("A"))
            )
    text = render_markdown(build_report(folder))
    assert "| direct | 100.0 [51.0, 100.0] † |" in text
    assert "† direct on medqa-us: a model was trained on 2 of 4 questions" in text


def test_rerankers_encoders_and_adapters_count_as_models(tmp_path: Path) -> None:
    flags = {
        "model.kind": "transformers",
        "model.path": tmp_path / "base",
        "model.adapter": tmp_path / "adapter",
        "embedder.kind": "hub",
        "embedder.path": tmp_path / "encoder",
        "reranker.kind": "hub",
        "reranker.path": tmp_path / "reranker",
        "strategy.kind": "rag",
    }
    found = trained_weights(load(flags, cwd=tmp_path, env={}).settings)
    names = [path.name for path in found]
    assert names[:4] == ["base", "adapter", "encoder", "reranker"]
    assert "retrieve" not in names, "it is of the packaged encoder"


RULES = {f"{section}.{key}": rule for section, key, _, rule, _ in SWITCHES.values()}


@pytest.mark.parametrize("name", SWITCHES)
def test_a_packaged_expert_counts_where_it_is_in_use(tmp_path: Path, name: str) -> None:
    section, key, used, *_ = SWITCHES[name]
    flags = {"strategy.kind": "rag", **RULES}
    assert trained_weights(load(flags, cwd=tmp_path, env={}).settings) == ()
    flags[f"{section}.{key}"] = used
    experts = trained_weights(load(flags, cwd=tmp_path, env={}).settings)
    assert {one.parent.name for one in experts} == {"experts"}
    # The judge and the encoder beside it are used together.
    assert {one.name for one in experts} == {
        other for other, one in SWITCHES.items() if one[:2] == (section, key)
    }
    assert name in {one.name for one in experts}


def test_what_base_and_adapter_learnt_goes_with_the_merged_model(tmp_path: Path) -> None:
    lists = {"base": "a" * 16, "adapter": "b" * 16}
    for name, digest in lists.items():
        (tmp_path / name).mkdir()
        write_trained_on(list_beside(tmp_path / name), [digest])
    merged = tmp_path / "merged.gguf"
    pass_on([tmp_path / name for name in (*lists, "none")], merged)
    assert read_trained_on(list_beside(merged)) == {*lists.values()}
    pass_on([tmp_path / "none"], tmp_path / "other.gguf")
    assert not list_beside(tmp_path / "other.gguf").exists()


def test_a_damaged_list_is_named_by_its_line(tmp_path: Path) -> None:
    list_beside(tmp_path).write_text(f"{'a' * 16}\nnot a digest\n", encoding="utf-8")
    with pytest.raises(BadRun, match=r"trained-on\.txt:2: not a digest"):
        read_trained_on(list_beside(tmp_path))
