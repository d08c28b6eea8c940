"""Files of experiments and ablations: whatever they name is known, or the file is refused."""

from collections.abc import Callable
from pathlib import Path

import pytest

from osler.errors import BadConfig
from osler_lab.evaluate.datasets import DATA_SETS
from osler_lab.evaluate.experiments import list_names, read_experiment
from osler_lab.train.ablations import read_ablation

EXPERIMENT = 'repeats = "x"\nabout = "y"\nstrategies = ["rag"]\n'
ABLATION = 'repeats = "x"\nabout = "y"\n[[variants]]\nname = "a"\n'


@pytest.mark.parametrize(
    ("read", "text", "said", "hint"),
    [
        (read_experiment, 'tasks = ["medqa-su"]', "tasks: unknown 'medqa-su'", "'medqa-us'"),
        (read_experiment, 'task = ["medqa-us"]', "unknown field task", "'tasks'"),
        (read_experiment, 'tasks = ["medqa-us"]\nlimit = "few"', "limit: ", "compare it"),
        (read_ablation, 'without_tasks = ["mimic-iv-ed"]', "unknown 'mimic-iv-ed'", "mimic-ed"),
        (read_ablation, 'tested_on = ["bioask@test"]', "tested_on: unknown 'bioask'", "'bioasq'"),
        (read_ablation, 'offered = ["books"]', "offered: unknown 'books'", "'book'"),
        (read_ablation, 'without_sources = ["boook"]', "without_sources: unknown", "'book'"),
        (read_ablation, 'wihtout_tasks = ["bioasq"]', "field variants.0.wihtout_tasks", "without"),
        (read_ablation, 'stages = ["rlhf"]', "variants.0.stages.0: ", "compare it"),
    ],
)
def test_an_unknown_name_is_refused_with_file_field_and_what_was_meant(
    tmp_path: Path, read: Callable[[str], object], text: str, said: str, hint: str
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text((EXPERIMENT if read is read_experiment else ABLATION) + text, encoding="utf-8")
    with pytest.raises(BadConfig) as refused:
        read(str(path))
    assert said in refused.value.message
    assert "mine.toml" in refused.value.message
    assert hint in f"{refused.value.message} {refused.value.fix}"


def test_a_source_of_the_user_s_own_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'{ABLATION}without_sources = ["wardround"]', encoding="utf-8")
    assert read_ablation(str(path)).variant("a").without_sources == ("wardround",)


def test_an_unknown_packaged_name_is_answered_with_what_is_near() -> None:
    with pytest.raises(BadConfig) as refused:
        read_experiment("omni-querys")
    assert "did you mean 'omni-queries'?" in (refused.value.fix or "")


def test_a_row_is_tested_with_its_sources_alone_on_offer() -> None:
    rows = read_ablation("sources").variants
    labels = [row.tested_label("omni-rag:planner=trained") for row in rows]
    assert labels[0] == "omni-rag:planner=trained:kb.sources=book"
    assert [row.tested_on for row in rows[:3]] == [("medqa-us",), ("pubmedqa",), ("seer@test",)]
    assert read_ablation("stages").variant("sft").tested_label("rag") == "rag"


def test_a_source_not_trained_on_has_the_untrained_and_the_whole_planner_beside_it() -> None:
    ablation = read_ablation("sources")
    for source in ("book", "research", "guideline"):
        rows = [ablation.variant(f"{name}-{source}") for name in ("without", "frozen", "all")]
        assert {(row.offered, row.tested_on) for row in rows} == {((source,), rows[0].tested_on)}
        assert [bool(row.stages) for row in rows] == [True, False, True]
        assert [row.without_sources for row in rows] == [(source,), (), ()]


@pytest.mark.parametrize("name", ["omni-readers-planners", "omni-reader-sizes"])
def test_readers_are_compared_on_all_sets_with_options_of_table_3(name: str) -> None:
    eight = {"medqa-us", "medmcqa", "mmlu-med", "pubmedqa", "bioasq", "seer", "ddxplus-medsbench"}
    eight |= {f"mimic-ed-{task}" for task in ("admission", "return", "critical")}
    tasks = [task.partition("@") for task in read_experiment(name).tasks]
    assert {task for task, _, _ in tasks} == eight
    # What its publisher has not split is measured on the part that no planner is trained on.
    assert all(split == "test" for task, _, split in tasks if not DATA_SETS[task].split)


@pytest.mark.parametrize("name", list_names("osler_lab.train.ablations"))
def test_no_row_is_tested_on_what_it_is_trained_on(name: str) -> None:
    for row in read_ablation(name).variants:
        assert not {*row.tested_on} & {*row.without_tasks}
