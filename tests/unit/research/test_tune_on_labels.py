"""Questions over labels, and the experts tuned on them from where they stand in the package."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.torch
pytest.importorskip("torch")
pytest.importorskip("transformers")

from expert_sets import LABELLED, JudgedCase  # noqa: E402 - they import torch beside this
from judge_models import MATCH, MatchModel, text_of  # noqa: E402
from judge_rows import JudgeRow  # noqa: E402
from tune_on_labels import FILED, load_shipped, read_filed, tune_expert  # noqa: E402

from osler.retrieve.experts.cards import open_expert  # noqa: E402
from osler.retrieve.experts.judge import JudgedText, MatchEncoder  # noqa: E402
from osler_lab.evaluate.datasets.splits import question_digest  # noqa: E402
from osler_lab.evaluate.trained_on import list_beside, read_trained_on  # noqa: E402

OLD = JudgedCase(
    "how is gout treated?",
    LABELLED,
    tuple(JudgedText(text, "Gout") for text in ("Gout is treated with colchicine.", "It is rare.")),
    (1.0, 0.0),
    "gout",
)


def test_each_question_of_a_label_has_its_sentences_and_one_that_answers(tmp_path: Path) -> None:
    cases = list(read_filed())
    assert len(cases) == 2448
    assert all(1.0 in one.worth and len(one.texts) >= 14 for one in cases)
    (tmp_path / "a.tsv").write_text(
        "D\tX\nS\t1\tDose\tOne.\nS\t2\tDose\tTwo.\nS\t3\tUses\tPain.\nQ\tx how much\t2,1\n",
        encoding="utf-8",
    )
    (case,) = read_filed(tmp_path)
    assert case.worth == (1.0, 1.0, 0.0)
    assert case.texts[1] == JudgedText("Two.", "X > Dose", "One.", "")


def test_no_label_is_of_a_drug_that_is_tested_on() -> None:
    titles = {one.document.removeprefix(f"{FILED}:").casefold() for one in read_filed()}
    lines = (Path(__file__).parents[3] / "benchmarks/labels/drugs.txt").read_text(encoding="utf-8")
    tested = [line[2:].split(" | ")[:2] for line in lines.splitlines() if line.startswith("# ")]
    names = {name.split()[0].casefold() for both in tested for name in both}
    assert (len(titles), len(tested)) == (199, 34)
    assert not any(names & {*one.replace("(", " ").split()} for one in titles)


def test_it_begins_where_the_packaged_expert_stands() -> None:
    shipped = open_expert("match")
    model = MatchModel(MATCH, "cpu")
    load_shipped(model, shipped.read_tensors())
    model.encoder.eval()
    row = JudgeRow(OLD.question, OLD.texts, OLD.worth, (None, None))
    ((first, second),) = (model.score_rows([row]) * 0.06).tolist()
    encoder = MatchEncoder(shipped)
    asked, one, other = encoder.encode([OLD.question, *map(text_of, OLD.texts)], kind="query")
    assert (first, second) == pytest.approx((asked @ one, asked @ other), abs=0.03)


def test_a_tuned_expert_opens_and_lists_what_it_has_learnt_from(tmp_path: Path) -> None:
    new = next(iter(read_filed()))
    tune_expert("match", [OLD, new], tmp_path, steps=1)
    expert = open_expert("match", tmp_path / "match")
    assert expert.card.weights != open_expert("match").card.weights
    assert question_digest(new.question) in read_trained_on(list_beside(tmp_path / "match"))
    assert new.source == FILED
