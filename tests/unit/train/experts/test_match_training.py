"""The encoder `match`: what a step reads, its teacher, and a training that can be stopped."""

from pathlib import Path

import numpy as np
import pytest

from osler.errors import BadConfig, ModelError
from osler.retrieve.experts.cards import ExpertCard, render_card
from osler.retrieve.experts.judge import JudgedText
from osler.retrieve.experts.matching import MatchEncoder
from osler.retrieve.experts.shelf import BASE, ShelvedExpert
from osler.train.experts.judge_cases import LABELLED, JudgedCase
from osler.train.experts.linear import write_shards
from osler.train.experts.match_job import MatchJob
from osler.train.experts.match_rows import MatchRows, MatchSampler, teach_scores
from osler.train.experts.match_training import MatchModel, MatchRecipe, train_match
from osler.train.experts.pair_questions import BIOASQ

DRUGS = {"gout": "colchicine", "asthma": "steroids", "uveitis": "drops", "scurvy": "vitamin C"}
CASES = [
    JudgedCase(
        f"how is {name} treated?",
        BIOASQ if name == "scurvy" else LABELLED,
        (JudgedText("It is rare.", name), JudgedText(f"{name} is treated with {drug}.", name)),
        (0.0, 1.0),
        name,
    )
    for name, drug in DRUGS.items()
]
TINY = MatchRecipe(steps=4, labelled=2, others=1, texts=3)


def make_sampler(recipe: MatchRecipe = TINY) -> MatchSampler:
    """A teacher to whom a question's own sentences are near, the useless one nearest."""
    data = MatchRows.collect(CASES, 0)
    taught = np.full((len(data.rows), len(data.pool)), 0.1, np.float32)
    for at, row in enumerate(data.rows):
        for text in row.texts:
            taught[at, text] = 0.5 if data.pool[text].endswith("rare.") else 0.45
    r = recipe
    return MatchSampler(data, taught, r.labelled, r.others, r.texts, r.right, r.wrong, r.seed)


# What is read


def test_rows_have_their_texts_under_headings_and_know_who_labelled_them() -> None:
    data = MatchRows.collect(CASES, 0)
    assert [row.labelled for row in data.rows] == [True, True, True, False]
    assert data.pool[:2] == ("gout. It is rare.", "gout. gout is treated with colchicine.")


def test_of_many_sentences_twelve_are_kept_the_right_ones_among_them() -> None:
    texts = tuple(JudgedText(f"Sentence {number}.") for number in range(40))
    worth = tuple(float(number == 33) for number in range(40))
    (row,) = MatchRows.collect([JudgedCase("why?", LABELLED, texts, worth)], 0).rows
    assert 1.0 in row.worth
    assert len(row.texts) == len(set(row.texts)) == 9


def test_a_step_corrects_the_teacher_where_sentences_were_judged() -> None:
    sampler = make_sampler()
    step = sampler.draw_step(0)
    assert step == step
    assert len(step.questions) == 3
    change = np.round(step.wanted - step.taught, 3)
    for at, question in enumerate(step.questions):
        for text, by in zip(step.texts, change[at], strict=True):
            name = text.partition(".")[0]
            known = name in question.casefold()
            assert by == pytest.approx((0.12 if "treated" in text else -0.06) if known else 0)


def test_the_same_step_of_the_same_seed_is_the_same() -> None:
    first, again, other = (make_sampler().draw_step(step) for step in (5, 5, 6))
    assert (first.questions, first.texts) == (again.questions, again.texts)
    assert (first.questions, first.texts) != (other.questions, other.texts)


# The teacher


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small encoder of random weights, in a folder as `transformers` reads it."""
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("teacher")
    words = sorted({word for case in CASES for t in case.texts for word in t.sentence.split()})
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words, *DRUGS, "how", "is"]
    (folder / "vocab.txt").write_text("\n".join(dict.fromkeys(vocabulary)))
    transformers.BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(set(vocabulary)),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
    )
    transformers.BertModel(config).save_pretrained(folder)
    return folder


@pytest.mark.torch
def test_a_teacher_gives_cosines_that_are_kept_and_not_made_again(
    teacher: Path, tmp_path: Path
) -> None:
    data = MatchRows.collect(CASES, 0)
    kept = tmp_path / "taught.npy"
    scores = teach_scores(data, teacher, kept)
    assert scores.shape == (4, 8)
    assert np.abs(scores).max() <= 1 + 1e-5
    assert scores.std() > 0
    np.testing.assert_array_equal(teach_scores(data, tmp_path / "gone", kept), scores)
    with pytest.raises(ModelError, match="of other data"):
        teach_scores(MatchRows.collect(CASES[:2], 0), teacher, kept)


def test_training_asks_for_a_teacher(tmp_path: Path) -> None:
    job = MatchJob(tmp_path, tmp_path / "split.json", tmp_path / "out", tmp_path / "work")
    with pytest.raises(BadConfig, match="--teacher"):
        job.train()


# The training


def weights_of(model: MatchModel) -> np.ndarray:
    return np.concatenate([one.ravel() for _, one in sorted(model.export_deltas().items())])


@pytest.mark.torch
def test_a_training_that_was_stopped_ends_with_the_same_weights(tmp_path: Path) -> None:
    class Stopped(Exception):
        pass

    def stop_at(stage: str, done: int, total: int | None) -> None:
        if done == 3:
            raise Stopped

    whole = train_match(make_sampler(), TINY, tmp_path / "whole")
    with pytest.raises(Stopped):
        train_match(make_sampler(), TINY, tmp_path / "cut", progress=stop_at, keep_each=2)
    again = train_match(make_sampler(), TINY, tmp_path / "cut", keep_each=2)
    np.testing.assert_array_equal(weights_of(again), weights_of(whole))
    with pytest.raises(ModelError, match="other settings"):
        train_match(make_sampler(), MatchRecipe(steps=5), tmp_path / "cut")


@pytest.mark.torch
def test_the_student_learns_what_answers_and_its_graph_says_the_same(tmp_path: Path) -> None:
    recipe = MatchRecipe(steps=60, labelled=3, others=1, texts=8, rate=2e-4, right=0.3, wrong=0.3)
    model = train_match(make_sampler(recipe), recipe, tmp_path / "work")
    hashes = write_shards(model.export_deltas(), tmp_path / "match")
    card = ExpertCard(
        name="match",
        question="near?",
        family="encoder",
        replaces="the cosine",
        languages=("en",),
        made="by hand",
        seed=0,
        date="2026-01-01",
        split="0",
        base=BASE,
        weights=hashes[0],
        further=tuple(hashes[1:]),
    )
    (tmp_path / "match" / "card.toml").write_text(render_card(card))
    encoder = MatchEncoder(ShelvedExpert(tmp_path / "match", card))
    texts = [case.question for case in CASES] + list(MatchRows.collect(CASES, 0).pool)
    vectors = encoder.encode(texts, kind="passage")
    wanted = model.read_texts(texts, 110).detach().numpy()
    # What is shipped is the change in three bits a number, run in eight.
    assert (vectors * wanted).sum(1).min() > 0.97
    asked, said = vectors[:4], vectors[4:]
    for number in range(4):
        rare, treated = said[2 * number : 2 * number + 2] @ asked[number]
        assert treated > rare


def test_an_expert_of_another_family_is_no_encoder(tmp_path: Path) -> None:
    from osler.retrieve.experts.shelf import open_expert

    with pytest.raises(ModelError, match="is no encoder"):
        MatchEncoder(open_expert("judge"))
