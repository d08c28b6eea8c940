"""The teacher: tuned on labels, gone on with where it stopped; its logits are kept."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from osler.errors import ModelError, ModelMissing
from osler.retrieve.experts.judge import JudgedText
from osler.train.experts.judge_cases import LABELLED, UNLABELLED, JudgedCase
from osler.train.experts.row_training import train_rows
from osler.train.experts.teacher import Teacher, TeacherModel, TeacherRecipe
from osler.train.experts.tuned_models import Machine

pytestmark = pytest.mark.torch

DRUGS = {"gout": "colchicine", "asthma": "steroids", "uveitis": "drops"}
CASES = [
    JudgedCase(
        f"how is {name} treated?",
        LABELLED,
        (JudgedText(f"{name} is treated with {drug}.", name), JudgedText("It is rare.", name)),
        (1.0, 0.0),
        name,
    )
    for name, drug in DRUGS.items()
]
UNKNOWN = JudgedCase(
    "what treats scurvy?",
    UNLABELLED,
    (JudgedText("It is rare."), JudgedText("scurvy is treated with drops."), JudgedText("gout")),
    (),
    "scurvy",
)
TINY = TeacherRecipe(steps=4, rows=2, texts=3, seeds=2)


def model_of(folder: Path) -> TeacherModel:
    return TeacherModel(folder, TINY, Machine())


def weights_of(model: TeacherModel) -> np.ndarray:
    groups = [one for group in model.parameters() for one in group["params"]]
    return np.concatenate([one.detach().numpy().ravel() for one in groups])


def test_it_reads_question_and_sentence_with_its_own_marks_between(tiny_teacher: Path) -> None:
    model = TeacherModel(tiny_teacher, TINY, Machine())
    read = model.read_pair("how is gout treated?", JudgedText("It is rare."))
    ids = list(read.ids)
    # As RoBERTa and MPNet do: <s> question </s></s> sentence </s>.
    assert ids[0] == 0
    at = ids.index(2)
    assert ids[at : at + 2] == [2, 2]
    assert ids[-1] == 2
    assert ids.count(2) == 3


def test_every_text_gets_the_mean_of_the_seeds_and_both_read_the_same(
    tiny_teacher: Path, tmp_path: Path
) -> None:
    teacher = Teacher(tiny_teacher, TINY)
    taught = teacher.teach_cases([*CASES, UNKNOWN], tmp_path, Machine())
    assert [len(one.taught) for one in taught] == [2, 2, 2, 3]
    alone = [
        Teacher(tiny_teacher, replace(TINY, seeds=1, seed=seed)).teach_cases(
            [*CASES, UNKNOWN], tmp_path, Machine()
        )
        for seed in (0, 1)
    ]
    assert alone[0][3].taught != alone[1][3].taught
    mean = np.mean([one[3].taught for one in alone], axis=0)
    np.testing.assert_allclose(taught[3].taught, mean, rtol=1e-6)


def test_scores_are_kept_and_refused_for_other_data(tiny_teacher: Path, tmp_path: Path) -> None:
    teacher, seen = Teacher(tiny_teacher, replace(TINY, seeds=1)), list[str]()

    def note(stage: str, done: int, total: int | None) -> None:
        seen.append(stage)

    first = teacher.teach_cases(CASES, tmp_path, Machine(), note)
    assert set(seen) == {"training", "reading with the teacher"}
    seen.clear()
    assert teacher.teach_cases(CASES, tmp_path, Machine(), note) == first
    assert seen == []
    with pytest.raises(ModelError, match="of other data"):
        teacher.teach_cases(CASES[:2], tmp_path, Machine())


def test_a_teacher_that_was_stopped_ends_with_the_same_weights(
    tiny_teacher: Path, tmp_path: Path
) -> None:
    class Stopped(Exception):
        pass

    def stop_at(stage: str, done: int, total: int | None) -> None:
        if done == 3:
            raise Stopped

    # With dropout: what drops out must not depend on where it was stopped.
    assert TINY.dropout > 0
    whole = train_rows(model_of(tiny_teacher), CASES, tmp_path / "whole")
    with pytest.raises(Stopped):
        train_rows(
            TeacherModel(tiny_teacher, TINY, Machine()),
            CASES,
            tmp_path / "cut",
            progress=stop_at,
            keep_each=2,
        )
    again = train_rows(
        TeacherModel(tiny_teacher, TINY, Machine()), CASES, tmp_path / "cut", keep_each=2
    )
    np.testing.assert_array_equal(weights_of(again), weights_of(whole))


def test_a_folder_without_safetensors_is_no_teacher(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing, match="safetensors"):
        TeacherModel(tmp_path, TINY, Machine())
