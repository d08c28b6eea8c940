"""Training data that is not as it should be is refused before hours are spent."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from osler.errors import BadConfig, BadRun
from osler.llm.core.base import Message
from osler_lab.evaluate.datasets.splits import question_digest
from osler_lab.train.record import question_digests, read_dialogues, read_preferences, read_samples
from osler_lab.train.tune.encode import EncodedText, fit_rows
from osler_lab.train.tune.loop import learning_order, steps_of
from osler_lab.train.tune.recipe import OMNI_DPO, OMNI_SFT, PRETRAIN, THINKER, TuningRecipe

ASK = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
SFT = {"id": "1", "messages": ASK, "completion": "c", "meta": {"seed": 1}}
DPO = {"id": "1", "messages": ASK, "chosen": "c", "rejected": "r"}
TURNS = [*ASK, {"role": "assistant", "content": "a"}]


def written(folder: Path, *lines: Any) -> Path:
    told = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    (folder / "data.jsonl").write_text("\n".join(told), encoding="utf-8")
    return folder


def test_samples_are_read_from_a_folder_or_its_file(tmp_path: Path) -> None:
    folder = written(tmp_path, SFT, "", {**SFT, "id": "2"})
    first, second = read_samples(folder)
    assert first.messages == (Message("system", "s"), Message("user", "u"))
    assert (first.completion, second.id) == ("c", "2")
    assert read_samples(folder / "data.jsonl") == (first, second)


def test_the_questions_of_a_data_set_are_known_by_digest_or_by_their_words(tmp_path: Path) -> None:
    by_words = {"id": "1", "messages": TURNS, "meta": {"question": "What helps?"}}
    by_digest = {**SFT, "id": "2", "meta": {"question_digest": "a" * 16}}
    folder = written(tmp_path, by_words, by_digest, DPO)
    assert question_digests(folder) == {question_digest("what HELPS"), "a" * 16}


def test_pairs_and_dialogues_are_read(tmp_path: Path) -> None:
    (pair,) = read_preferences(written(tmp_path, DPO))
    assert (pair.chosen, pair.rejected) == ("c", "r")
    (dialogue,) = read_dialogues(written(tmp_path, {"id": "1", "messages": TURNS}))
    assert dialogue.messages[-1] == Message("assistant", "a")


@pytest.mark.parametrize(
    ("read", "line", "why"),
    [
        (read_samples, {**SFT, "completion": ""}, "completion"),
        (read_samples, {**SFT, "messages": TURNS}, "not the user's"),
        (read_samples, {**SFT, "messages": []}, "messages"),
        (read_samples, "{", "not JSON"),
        (read_preferences, {**DPO, "rejected": "c"}, "the same"),
        (read_preferences, SFT, "chosen"),
        (read_dialogues, {"id": "1", "messages": ASK}, "not the assistant's"),
        (read_dialogues, {"id": "1", "messages": [*TURNS, *TURNS[2:]]}, "take turns"),
        (read_dialogues, {"id": "1", "messages": 5, "completion": "a"}, "no sample"),
    ],
)
def test_a_line_that_is_no_sample_is_named_with_its_place(
    tmp_path: Path, read: Callable[[Path], object], line: Any, why: str
) -> None:
    with pytest.raises(BadRun, match=r"data\.jsonl:1: .*" + why):
        read(written(tmp_path, line))


def test_two_samples_of_one_id_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRun, match="is already used in line 1"):
        read_samples(written(tmp_path, SFT, SFT))


def test_no_samples_at_all_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(BadRun, match="no training data"):
        read_samples(tmp_path)
    with pytest.raises(BadRun, match="judge more questions"):
        read_samples(written(tmp_path, ""))


def row(id: str, size: int) -> EncodedText:
    return EncodedText(id, tuple(range(size)), (False, *[True] * (size - 1)))


def test_a_sample_is_never_cut() -> None:
    rows = [row("a", 5), row("b", 9), row("c", 7)]
    with pytest.raises(BadConfig, match=r"2 of 3 samples are longer than 6 tokens .* has 9"):
        fit_rows(rows, 6)
    fitted = fit_rows(rows, 6, skip_long=True)
    assert [row.id for row in fitted.rows] == ["a"]
    assert fitted.long == ("b", "c")
    with pytest.raises(BadConfig, match="no sample fits"):
        fit_rows(rows, 3, skip_long=True)


def test_the_papers_numbers_are_the_defaults() -> None:
    told = [(r.learning_rate, r.batch, r.epochs) for r in (OMNI_SFT, OMNI_DPO, THINKER)]
    assert told == [(2.5e-4, 64, 5), (5e-6, 64, 3), (5e-6, 64, 5)]
    assert OMNI_SFT.lora
    assert OMNI_DPO.lora
    assert (
        TuningRecipe(
            learning_rate=5e-6,
            epochs=5,
            batch=64,
            micro=1,
            max_tokens=16384,
            warmup=0.06,
            schedule="linear",
            weight_decay=0.0,
            clip=1.0,
            seed=1024,
            lora=None,
            recompute=True,
        )
        == THINKER
    )
    assert (PRETRAIN.learning_rate, PRETRAIN.epochs, PRETRAIN.lora) == (1e-4, 1, None)


@pytest.mark.parametrize(
    "wrong", [{"learning_rate": 0}, {"epochs": -1}, {"warmup": 1.0}, {"batch": 6, "micro": 4}]
)
def test_a_number_out_of_range_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadConfig):
        OMNI_SFT.with_changes(**wrong)


def test_each_epoch_has_every_sample_once_in_an_order_of_its_own() -> None:
    recipe = OMNI_SFT.with_changes(epochs=3, batch=4, micro=2)
    places = learning_order([7, 3, 9, 4, 4, 8, 1, 2], recipe)
    epochs = [places[i : i + 8] for i in (0, 8, 16)]
    assert all(sorted(epoch) == list(range(8)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3
    assert places == learning_order([7, 3, 9, 4, 4, 8, 1, 2], recipe)
    assert places != learning_order([7, 3, 9, 4, 4, 8, 1, 2], recipe.with_changes(seed=1))
    assert steps_of(8, recipe) == 6


def test_within_a_step_samples_stand_by_length() -> None:
    lengths = [7, 3, 9, 4, 4, 8, 1, 2]
    places = learning_order(lengths, OMNI_SFT.with_changes(epochs=1, batch=4, micro=2))
    for step in (places[:4], places[4:]):
        assert [lengths[p] for p in step] == sorted(lengths[p] for p in step)


def test_fractional_epoch_takes_a_fraction_of_the_samples() -> None:
    recipe = OMNI_SFT.with_changes(epochs=0.5, batch=2, micro=2)
    assert len(learning_order([1] * 8, recipe)) == 4
    assert steps_of(8, recipe) == 2
