"""The judge, `match` and their teacher in torch: their losses, and a whole small training."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from expert_sets import LABELLED, UNLABELLED, JudgedCase
from judge_rows import JudgeRow

from osler.kb.encoders.base import open_session
from osler.kb.encoders.minilm import read_safetensors
from osler.llm.local.weights import MINILM, locate_weights
from osler.retrieve.experts.cards import open_expert
from osler.retrieve.experts.judge import JudgedText, MatchEncoder, read_judged
from osler.retrieve.experts.pair_graph import pair_graph, run_pairs
from osler_lab.evaluate.datasets.splits import question_digest
from osler_lab.evaluate.trained_on import list_beside, read_trained_on

pytestmark = pytest.mark.torch
pytest.importorskip("torch")
pytest.importorskip("transformers")

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
TEXTS = CASES[0].texts
HARD = JudgeRow("how?", TEXTS, (1.0, 0.0), (None, None))
SOFT = JudgeRow("why?", TEXTS, (None, None), (2.0, -3.0))
BOTH = JudgeRow("what?", TEXTS, (1.0, 0.0), (2.0, -3.0))
_MARKS = ("<s>", "<pad>", "</s>", "<unk>", "[UNK]", "<mask>", ".", "?", ":")
_WORDS = "how is treated with what treats it rare asthma colchicine drops gout scurvy steroids"


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> None:
    """So small a training gains nothing from more, and on a busy machine they wait."""
    import torch

    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small MPNet of random weights, in a folder as `transformers` reads it."""
    import transformers

    folder = tmp_path_factory.mktemp("teacher")
    vocabulary = {word: at for at, word in enumerate((*_MARKS, *_WORDS.split()))}
    transformers.MPNetTokenizer(vocab=vocabulary).save_pretrained(folder)
    config = transformers.MPNetConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
    )
    transformers.MPNetModel(config).save_pretrained(folder)
    return folder


def losses_of(rows: Sequence[JudgeRow], scores: tuple[float, float]) -> tuple[float, float]:
    """Of pairs, and of cosines."""
    import torch
    from judge_models import measure_loss

    found = torch.tensor([scores] * len(rows))
    pairs, cosines = (measure_loss(found, rows, 0.25, pairs=one).item() for one in (True, False))
    return pairs, cosines


@pytest.mark.parametrize("row", [HARD, SOFT, BOTH])
def test_the_loss_is_least_where_the_scores_are_as_wanted(row: JudgeRow) -> None:
    right = losses_of([row], (2.0, -3.0))
    for wrong in ((-3.0, 2.0), (0.0, 0.0)):
        assert all(a < b for a, b in zip(right, losses_of([row], wrong), strict=True))
    if row is SOFT:
        assert right[1] == pytest.approx(0, abs=1e-5)


def test_labels_count_less_beside_a_teacher_and_whole_without() -> None:
    # Which of a row's two texts answers, by labels alone.
    hard = losses_of([HARD], (0.0, 0.0))[1]
    assert hard == pytest.approx(np.log(2))
    soft = losses_of([SOFT], (0.0, 0.0))[1]
    assert losses_of([HARD, SOFT], (0.0, 0.0))[1] == pytest.approx(0.25 * hard + soft)


def test_a_text_that_nobody_scored_changes_no_soft_loss() -> None:
    import torch
    from judge_models import measure_loss

    row = JudgeRow("why?", (*TEXTS, TEXTS[0]), (None, None, 0.0), (2.0, -3.0, None))
    scores = [torch.tensor([[2.0, 1.0, far]]) for far in (-9.0, 9.0)]
    values = [measure_loss(one, [row], 0.25, pairs=False).item() for one in scores]
    assert values[0] == pytest.approx(values[1])


def test_the_teacher_reads_with_its_own_marks_between(teacher: Path) -> None:
    from judge_models import TEACHER, TeacherModel

    model = TeacherModel(teacher, TEACHER, "cpu")
    ids = list(model.read_pair("how is gout treated?", JudgedText("It is rare.")).ids)
    # As RoBERTa and MPNet do: <s> question </s></s> sentence </s>.
    assert (ids[0], ids[-1], ids.count(2)) == (0, 2, 3)
    at = ids.index(2)
    assert ids[at : at + 2] == [2, 2]


def moved_judge() -> Any:
    """A judge whose layers are far from where they began."""
    import torch
    from judge_models import JUDGE, JudgeModel

    model, chance = JudgeModel(JUDGE, "cpu"), torch.Generator().manual_seed(1)
    with torch.no_grad():
        for _, one in model.tuned():
            one.add_(torch.randn(one.shape, generator=chance) * 0.01)
    return model


def test_the_float32_graph_is_the_trained_model() -> None:
    import torch

    model = moved_judge()
    pairs = [(one.question, text) for one in CASES for case in CASES for text in case.texts]
    with torch.no_grad():
        wanted = model.score_pairs(pairs).tolist()
    base = read_safetensors(locate_weights(MINILM))
    graph = pair_graph(base, model.export_deltas(), exact=True)
    read = [read_judged(model.words, *pair) for pair in pairs]
    assert run_pairs(open_session(graph, 1), read) == pytest.approx(wanted, abs=0.15)
    assert max(wanted) - min(wanted) > 0.1


def test_a_teacher_s_logits_are_learnt_where_nobody_labelled(tmp_path: Path) -> None:
    import torch
    from judge_models import JUDGE, JudgeModel, train_rows

    # What answers has the lower logit here, so that only the teacher can have said it.
    cases = [replace(case, source=UNLABELLED, worth=(), taught=(-3.0, 2.0)) for case in CASES]
    model = JudgeModel(replace(JUDGE, steps=20, rows=3, texts=2), "cpu")
    train_rows(model, cases, tmp_path / "log.jsonl")
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 20
    with torch.no_grad():
        for case in cases:
            low, high = model.score_pairs([(case.question, text) for text in case.texts])
            assert high > low


def test_both_experts_are_trained_from_one_teacher_and_measured(
    teacher: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import train_judge
    from train_judge import teach_cases, train_expert

    for name in ("JUDGE", "MATCH"):
        small = replace(getattr(train_judge, name), rows=2, texts=2)
        monkeypatch.setattr(train_judge, name, small)
    learnt = teach_cases([*CASES, UNKNOWN], teacher, tmp_path, 2, "cpu", 2)
    assert [len(one.taught) for one in learnt] == [2, 2, 2, 3]
    again = teach_cases([*CASES, UNKNOWN], teacher, tmp_path, 2, "cpu", 2)
    assert again == learnt
    with pytest.raises(AssertionError, match="of other data"):
        teach_cases(CASES, teacher, tmp_path, 2, "cpu", 2)
    for name in ("judge", "match"):
        train_expert(name, {"train": learnt, "dev": [], "test": CASES}, tmp_path, "cpu", 2)
        card = open_expert(name, tmp_path / name).card
        counts = {one.name: (one.train, one.test) for one in card.data}
        assert counts == {LABELLED: (3, 3), UNLABELLED: (1, 0)}
        assert [(one.on, one.n) for one in card.figures] == [("labelled, test", 3)]
        assert question_digest(UNKNOWN.question) in read_trained_on(list_beside(tmp_path / name))
    encoder = MatchEncoder(open_expert("match", tmp_path / "match"))
    assert encoder.encode(["gout"], kind="query").shape == (1, 384)
