"""The judge in torch and as an ONNX graph, and a training that goes on where it stopped."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from osler.errors import BadConfig, ModelError
from osler.jobs.runner import Progress
from osler.kb.encoders.base import open_session
from osler.kb.encoders.minilm import read_safetensors
from osler.llm.local.weights import MINILM, locate_weights
from osler.retrieve.experts.judge import JudgedText, read_judged
from osler.retrieve.experts.pair_graph import pair_graph, run_pairs
from osler.train.experts import row_training
from osler.train.experts.judge_cases import LABELLED, UNLABELLED, JudgedCase
from osler.train.experts.row_training import TRAINING_LOG, train_rows
from osler.train.experts.students import JudgeModel, JudgeRecipe
from osler.train.experts.tuned_models import Machine

pytestmark = pytest.mark.torch

CASES = [
    JudgedCase(
        f"how is {name} treated?",
        LABELLED,
        (JudgedText(f"{name} is treated with {drug}.", name), JudgedText("It is rare.", name)),
        (1.0, 0.0),
        name,
    )
    for name, drug in (("gout", "colchicine"), ("asthma", "steroids"), ("uveitis", "drops"))
]
TINY = JudgeRecipe(steps=4, rows=2, texts=3)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[JudgeModel, Path]:
    work = tmp_path_factory.mktemp("work")
    return train_judge(CASES, TINY, work), work


def train_judge(
    cases: list[JudgedCase],
    recipe: JudgeRecipe,
    work: Path,
    progress: Progress | None = None,
    keep_each: int = 50,
) -> JudgeModel:
    model = JudgeModel(recipe, Machine())
    return train_rows(model, cases, work, progress=progress, keep_each=keep_each)


def weights_of(model: JudgeModel) -> np.ndarray:
    return np.concatenate([one.ravel() for _, one in sorted(model.export_deltas().items())])


def test_the_float32_graph_is_the_trained_model(trained: tuple[JudgeModel, Path]) -> None:
    import torch

    # Four steps hardly move the layers, so they are moved further here.
    state = trained[0].state_dict()
    chance = torch.Generator().manual_seed(1)
    state["tuned"] = {
        name: one + torch.randn(one.shape, generator=chance) * 0.01
        for name, one in state["tuned"].items()
    }
    other = JudgeModel(TINY, Machine())
    other.load_state_dict(state)
    pairs = [(one.question, text) for one in CASES for case in CASES for text in case.texts]
    with torch.no_grad():
        wanted = other.score_pairs(pairs).tolist()
    base = read_safetensors(locate_weights(MINILM))
    graph = pair_graph(base, other.export_deltas(), exact=True)
    read = [read_judged(other.words, *pair) for pair in pairs]
    assert run_pairs(open_session(graph, 1), read) == pytest.approx(wanted, abs=0.15)
    assert max(wanted) - min(wanted) > 0.1


def test_a_training_that_was_stopped_ends_with_the_same_weights(
    trained: tuple[JudgeModel, Path], tmp_path: Path
) -> None:
    class Stopped(Exception):
        pass

    def stop_at(stage: str, done: int, total: int | None) -> None:
        if done == 3:
            raise Stopped

    with pytest.raises(Stopped):
        train_judge(CASES, TINY, tmp_path, progress=stop_at, keep_each=2)
    again = train_judge(CASES, TINY, tmp_path, keep_each=2)
    np.testing.assert_array_equal(weights_of(again), weights_of(trained[0]))


def test_a_finished_training_is_not_done_again(trained: tuple[JudgeModel, Path]) -> None:
    model, work = trained
    again = train_judge(CASES, TINY, work)
    np.testing.assert_array_equal(weights_of(again), weights_of(model))
    steps = [json.loads(one)["step"] for one in (work / TRAINING_LOG).read_text().splitlines()]
    assert steps == [1, 2, 3, 4]


def test_a_checkpoint_of_another_recipe_is_refused(trained: tuple[JudgeModel, Path]) -> None:
    with pytest.raises(ModelError, match="other settings"):
        train_judge(CASES, JudgeRecipe(steps=5, rows=2, texts=3), trained[1])


def test_a_device_that_is_not_there_is_told() -> None:
    with pytest.raises(BadConfig, match="no device 'nowhere'"):
        Machine("nowhere").prepare()


def test_a_step_is_the_same_whether_its_rows_are_read_in_parts_or_at_once(
    trained: tuple[JudgeModel, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = replace(TINY, rows=5, steps=1)
    parts = train_judge(CASES, recipe, tmp_path / "parts")
    monkeypatch.setattr(row_training, "_ROWS_TOGETHER", 5)
    whole = train_judge(CASES, recipe, tmp_path / "whole")
    groups = [model.parameters()[0]["params"] for model in (parts, whole)]
    for one, other in zip(*groups, strict=True):
        np.testing.assert_allclose(one.grad, other.grad, atol=1e-5)


def test_all_layers_and_the_head_are_learnt_and_the_words_are_not(
    trained: tuple[JudgeModel, Path],
) -> None:
    names = set(trained[0].export_deltas())
    assert {name.split(".")[2] for name in names if name.startswith("encoder")} == {*"012345"}
    assert not any(name.startswith("embeddings") for name in names)
    assert {"head.weight", "head.bias"} <= names


def test_a_training_tells_what_answers_from_what_does_not(tmp_path: Path) -> None:
    import torch

    recipe = JudgeRecipe(steps=40, rows=3, texts=3, rate=2e-4)
    model = train_judge(CASES, recipe, tmp_path)
    with torch.no_grad():
        for case in CASES:
            right, wrong = model.score_pairs([(case.question, text) for text in case.texts])
            assert right > wrong


def test_a_teacher_s_logits_are_learnt_where_nobody_labelled(tmp_path: Path) -> None:
    import torch

    # What answers has the lower logit here, so that only the teacher can have said it.
    cases = [replace(case, source=UNLABELLED, worth=(), taught=(-3.0, 2.0)) for case in CASES]
    recipe = JudgeRecipe(steps=40, rows=3, texts=2, rate=2e-4)
    model = train_judge(cases, recipe, tmp_path)
    losses = [json.loads(one)["loss"] for one in (tmp_path / TRAINING_LOG).read_text().splitlines()]
    assert losses[-1] < losses[0] / 2
    with torch.no_grad():
        for case in cases:
            low, high = model.score_pairs([(case.question, text) for text in case.texts])
            assert high > low
