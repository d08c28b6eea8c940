"""Which part of a data set may be trained on."""

import json
from pathlib import Path

import pytest

from osler.errors import BadConfig
from osler_lab.evaluate.datasets import DATA_SETS
from osler_lab.evaluate.datasets.splits import SPLITS, question_digest, split_of
from osler_lab.studies.tasks import read_task, read_training_task

TEST = "phrases_no_exclude_test.jsonl"


def write_questions(path: Path, count: int = 60) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        {"question": f"Case {n}?", "options": {"A": "yes", "B": "no"}, "answer_idx": "A"}
        for n in range(count)
    ]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def write_liveqa(path: Path, count: int = 60) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    one = (
        '<NLM-QUESTION qid="TQ{n}"><Original-Question><MESSAGE>What helps case {n}?</MESSAGE>'
        "</Original-Question><ReferenceAnswers><RefAnswer><ANSWER>Rest.</ANSWER></RefAnswer>"
        "</ReferenceAnswers></NLM-QUESTION>"
    )
    body = "".join(one.format(n=n) for n in range(count))
    path.write_text(f"<LiveQA>{body}</LiveQA>", encoding="utf-8")
    return path


def test_a_test_split_is_never_trained_on(tmp_path: Path) -> None:
    own = write_questions(tmp_path / "medqa_us" / TEST)
    for word in ("medqa-us", f"medqa-us={own}"):
        with pytest.raises(BadConfig, match="medqa-us is a test split"):
            read_training_task(word, tmp_path)
    assert len(read_task(f"medqa-us={own}", tmp_path).samples) == 60


def test_the_train_and_dev_splits_are_sets_of_their_own(tmp_path: Path) -> None:
    for part in ("train", "dev"):
        write_questions(tmp_path / "medqa_us" / f"phrases_no_exclude_{part}.jsonl")
        assert len(read_training_task(f"medqa-us-{part}", tmp_path).samples) == 60
    mine = write_questions(tmp_path / "mine.jsonl")
    assert len(read_training_task(f"medqa-us={mine}", None).samples) == 60


def test_a_set_without_splits_is_trained_on_in_part_only(tmp_path: Path) -> None:
    file = write_liveqa(tmp_path / DATA_SETS["liveqa"].files[0])
    with pytest.raises(BadConfig, match="liveqa is not split") as refused:
        read_training_task("liveqa", tmp_path)
    assert "--tasks liveqa@train" in (refused.value.fix or "")
    with pytest.raises(BadConfig, match="liveqa is not split"):
        read_training_task("liveqa@test", tmp_path)
    parts = {split: read_task(f"liveqa@{split}={file}", None) for split in SPLITS}
    ids = [sample.id for loaded in parts.values() for sample in loaded.samples]
    assert sorted(ids) == sorted(sample.id for sample in read_task("liveqa", tmp_path).samples)
    assert {s.task for s in parts["train"].samples} == {parts["train"].name} == {"liveqa@train"}
    assert len(parts["train"].samples) > len(parts["test"].samples) > 0
    for part in ("train", "dev"):
        assert read_training_task(f"liveqa@{part}", tmp_path).samples == parts[part].samples


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("medqa-us@train", "medqa-us is its publisher's test split"),
        ("liveqa@valid", "liveqa has no split 'valid'"),
    ],
)
def test_a_split_that_is_not_there_is_refused(word: str, said: str, tmp_path: Path) -> None:
    write_liveqa(tmp_path / DATA_SETS["liveqa"].files[0])
    write_questions(tmp_path / "medqa_us" / TEST)
    (tmp_path / "medqa_us" / "mirage_ids.txt").write_text("\n".join(map(str, range(60))))
    with pytest.raises(BadConfig, match=said):
        read_task(word, tmp_path)


def test_the_same_question_is_in_one_part_whatever_its_case_and_marks() -> None:
    assert question_digest("What helps, really?") == question_digest("what helps — REALLY")
    assert question_digest("什么有效？") == question_digest("什么有效")
    assert split_of("What helps?") in SPLITS


def test_every_set_that_papers_measure_on_has_something_to_train_on() -> None:
    """Omni-RAG Table 3: but for MMLU-Med, which it only tests on."""
    tested = ("medqa-us", "medmcqa", "omnirag-long-test", "pubmedqa")
    trained = ("medqa-us-train", "medmcqa-train", "omnirag-long-train", "pubmedqa-rest")
    assert {DATA_SETS[name].split for name in tested} == {"test"}
    assert {DATA_SETS[name].split for name in trained} == {"train"}
    unsplit = ("bioasq", "seer", "ddxplus", "mimic-ed-admission", "liveqa", "medicationqa")
    assert {DATA_SETS[name].split for name in (*unsplit, "expertqa-biomed")} == {""}
