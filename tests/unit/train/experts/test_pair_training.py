"""The pair model in torch and as an ONNX graph, and a training that goes on where it stopped."""

import json
from pathlib import Path

import numpy as np
import pytest

from osler.errors import ModelError
from osler.kb.encoders.base import open_session
from osler.kb.encoders.minilm import read_safetensors
from osler.llm.local.weights import MINILM, locate_weights
from osler.retrieve.experts.pair_graph import pair_graph, run_pairs
from osler.retrieve.experts.pair_input import read_pair
from osler.train.experts.pair_questions import CandidateText, PairQuestion
from osler.train.experts.pair_training import TRAINING_LOG, PairModel, PairRecipe, train_pairs

pytestmark = pytest.mark.torch

QUESTIONS = [
    PairQuestion(f"medquad:{n}", f"What is {name}?", "medquad", (str(n),), (text,))
    for n, (name, text) in enumerate(
        (name, CandidateText(f"{name} is a disease of the {place} in adults.", name))
        for name, place in (("gout", "joints"), ("asthma", "lungs"), ("uveitis", "eyes"))
    )
]
TINY = PairRecipe(steps=4, rows=2, texts=3, longest=48)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[PairModel, Path]:
    work = tmp_path_factory.mktemp("work")
    return train_pairs(QUESTIONS, TINY, work), work


def weights_of(model: PairModel) -> np.ndarray:
    return np.concatenate([one.ravel() for _, one in sorted(model.export_deltas().items())])


def test_the_float32_graph_is_the_trained_model(trained: tuple[PairModel, Path]) -> None:
    import torch

    model, _ = trained
    # Four steps hardly move the layers, so they are moved further here.
    state = model.state()
    chance = torch.Generator().manual_seed(1)
    state["tuned"] = {
        name: one + torch.randn(one.shape, generator=chance) * 0.01
        for name, one in state["tuned"].items()
    }
    other = PairModel(TINY)
    other.load_state(state)
    pairs = [(q.text, r.right[0].text, r.right[0].title) for q in QUESTIONS for r in QUESTIONS]
    with torch.no_grad():
        wanted = other.score_pairs(pairs).tolist()
    base = read_safetensors(locate_weights(MINILM))
    graph = pair_graph(base, other.export_deltas(), exact=True)
    read = [read_pair(other.words, *pair, longest=TINY.longest) for pair in pairs]
    assert run_pairs(open_session(graph, 1), read) == pytest.approx(wanted, abs=0.15)
    assert max(wanted) - min(wanted) > 0.1


def test_a_training_that_was_stopped_ends_with_the_same_weights(
    trained: tuple[PairModel, Path], tmp_path: Path
) -> None:
    class Stopped(Exception):
        pass

    def stop_at(stage: str, done: int, total: int | None) -> None:
        if done == 3:
            raise Stopped

    with pytest.raises(Stopped):
        train_pairs(QUESTIONS, TINY, tmp_path, progress=stop_at, keep_each=2)
    again = train_pairs(QUESTIONS, TINY, tmp_path, keep_each=2)
    np.testing.assert_array_equal(weights_of(again), weights_of(trained[0]))


def test_a_finished_training_is_not_done_again(trained: tuple[PairModel, Path]) -> None:
    model, work = trained
    lines = (work / TRAINING_LOG).read_text().count("\n")
    again = train_pairs(QUESTIONS, TINY, work)
    np.testing.assert_array_equal(weights_of(again), weights_of(model))
    assert (work / TRAINING_LOG).read_text().count("\n") == lines
    assert [json.loads(one)["step"] for one in (work / TRAINING_LOG).read_text().splitlines()] == [
        1,
        2,
        3,
        4,
    ]


def test_a_checkpoint_of_another_recipe_is_refused(trained: tuple[PairModel, Path]) -> None:
    other = PairRecipe(steps=5, rows=2, texts=3, longest=48)
    with pytest.raises(ModelError, match="other settings"):
        train_pairs(QUESTIONS, other, trained[1])


def test_only_the_last_layers_and_the_head_are_learnt(trained: tuple[PairModel, Path]) -> None:
    names = set(trained[0].export_deltas())
    assert {name.split(".")[2] for name in names if name.startswith("encoder")} == {*"2345"}
    assert {name for name in names if not name.startswith("encoder")} == {
        "head.weight",
        "head.bias",
    }
    # Of each layer six matrices, each with planes and steps, and ten vectors.
    assert len(names) == 4 * (6 * 2 + 10) + 2
