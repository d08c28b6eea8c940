"""Judge and `match` trained from a folder of data, with one teacher for both."""

import json
from pathlib import Path

import pytest

from osler.errors import BadConfig
from osler.evaluate.datasets.splits import question_digest
from osler.evaluate.trained_on import list_beside, read_trained_on
from osler.kb.base import KnowledgeBase
from osler.train.experts.jobs import JobChoices, make_job, teach_cases
from osler.train.experts.judge_cases import digest_of
from osler.train.experts.taught_jobs import JudgeJob, MatchJob

SENTENCES = ("Gout is a painful disease of joints.", "Colchicine relieves an attack of gout.")
UNKNOWN = "does colchicine help an attack of gout"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A page in the knowledge base, a labelled question and an unlabelled one beside the split."""
    folder = tmp_path / "data"
    folder.mkdir()
    page = folder / "pages.jsonl"
    row = {"id": "gout", "title": "Gout", "content": " ".join(SENTENCES)}
    page.write_text(json.dumps(row) + "\n")
    with KnowledgeBase.create(tmp_path / "work" / "texts") as kb:
        kb.add([page], source="web")
    # A set as published, none of whose questions the split knows.
    claim = {"QUESTION": "Is it?", "CONTEXTS": ["It is."], "LABELS": ["RESULTS"]}
    claims = {"1": {**claim, "LONG_ANSWER": "It is so.", "final_decision": "yes"}}
    (folder / "ori_pqal_rest.json").write_text(json.dumps(claims))
    (folder / "split.json").write_text('{"train": [], "dev": [], "test": []}')
    (folder / "questions_unlabelled.txt").write_text(UNKNOWN + "\n")
    begins = (0, len(SENTENCES[0]) + 1)
    texts = [
        [0, begin, begin + len(one), digest_of(one)[:8], worth]
        for begin, one, worth in zip(begins, SENTENCES, (0.0, 1.0), strict=True)
    ]
    label = {"question": "what treats gout", "part": "train", "document": "web:gout"}
    line = {**label, "made": "read", "passages": ["web:gout#0"], "texts": texts}
    (folder / "judge_labels.jsonl").write_text(json.dumps(line) + "\n")
    return folder


@pytest.mark.torch
def test_one_teacher_is_made_for_both_and_both_learn_what_nobody_labelled(
    data: Path, tiny_teacher: Path, tmp_path: Path
) -> None:
    chosen = JobChoices(steps=2, teacher=tiny_teacher, seeds=1)
    split, work = data / "split.json", tmp_path / "work"
    assert teach_cases(data, split, work, chosen) == 4  # of each question, both sentences
    for name in ("judge", "match"):
        out = tmp_path / name
        card = make_job(name, data, split, out, work, chosen).train()
        assert card.made.endswith("--teacher FOLDER")
        assert {one.name: one.train for one in card.data} == {"labelled": 1, "unlabelled": 1}
        assert question_digest(UNKNOWN) in read_trained_on(list_beside(out))
    log = (work / "teacher-0" / "training.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in log] == [1, 2]


@pytest.mark.torch
def test_a_judge_of_labels_alone_and_one_with_a_teacher_do_not_go_on_with_each_other(
    data: Path, tiny_teacher: Path, tmp_path: Path
) -> None:
    split, work = data / "split.json", tmp_path / "work"
    teach_cases(data, split, work, JobChoices(steps=1, teacher=tiny_teacher, seeds=1))
    cards = []
    for teacher in (None, tiny_teacher):
        chosen = JobChoices(steps=2, teacher=teacher, seeds=1)
        cards.append(make_job("judge", data, split, tmp_path / "judge", work, chosen).train())
    assert "--teacher" not in cards[0].made
    assert [one.name for one in cards[0].data] == ["labelled"]
    assert cards[0].weights != cards[1].weights


def test_the_others_ask_for_a_teacher(tmp_path: Path) -> None:
    split = tmp_path / "split.json"
    job = make_job("match", tmp_path, split, tmp_path, tmp_path, JobChoices())
    with pytest.raises(BadConfig, match="larger one"):
        job.train()
    with pytest.raises(BadConfig, match="larger encoder"):
        teach_cases(tmp_path, split, tmp_path, JobChoices())


def test_what_is_chosen_is_what_trains(tmp_path: Path) -> None:
    chosen = JobChoices(2, "cuda", 7, 5, tmp_path / "mpnet", 2)
    for name, kind in (("judge", JudgeJob), ("match", MatchJob)):
        job = make_job(name, tmp_path, tmp_path / "s", tmp_path, tmp_path, chosen)
        assert isinstance(job, JudgeJob | MatchJob)
        assert isinstance(job, kind)
        assert (job.recipe.steps, job.recipe.seed) == (7, 5)
        assert (job.machine.device, job.machine.threads) == ("cuda", 2)
        assert job.teacher is not None
        recipe = job.teacher.recipe
        # The steps are the pupil's: what the teacher did is not done again for another number.
        assert (recipe.steps, recipe.seed, recipe.seeds) == (1_000, 5, 2)
