"""The packaged expert `judge` in the gate: in use by default, off by a setting, never silently."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance import RelevanceKit
from osler.answer.extractive import ExtractiveComposer
from osler.build import Parts
from osler.build.composers import evidence_gate
from osler.build.hub import _open_judge, open_judges, open_section_experts
from osler.kb.encoders.base import EncoderByLanguage, MiniLMEncoder
from osler.kb.encoders.e5 import E5Encoder
from osler.retrieve.asked import QuestionReader
from osler.retrieve.experts import cards
from osler.retrieve.experts.cards import (
    CARD,
    WEIGHTS,
    open_expert,
    packaged_folder,
    read_card,
    render_card,
)
from osler.retrieve.experts.judge import JUDGE, JudgedText, JudgeRelevance
from osler.retrieve.experts.kinds import SentenceKinds
from osler.retrieve.experts.label_sections import LabelSections
from osler.retrieve.relevance import OverlapRelevance
from osler.settings import Settings
from osler.trace import Run
from osler.types import Hit, Passage, Question, Relevance
from osler_lab.build.experts import expert_in_use
from osler_lab.testing.scripted import HashingEncoder, ScriptedRetriever


@pytest.fixture(scope="module")
def packaged() -> Relevance:
    judge, _, faults = open_judges(Settings(), QuestionReader())
    assert faults == ()
    assert judge is not None
    return judge


class TestPackagedJudge(RelevanceKit):
    @pytest.fixture
    def scorer(self, packaged: Relevance) -> Relevance:
        return packaged


def parts_of(judge: Relevance | None, *faults: str) -> Parts:
    return Parts(
        {},
        lambda *_: ScriptedRetriever({}),
        OverlapRelevance(),
        OverlapRelevance(),
        ("book",),
        judge=judge,
        faults=faults,
    )


def choose(**answer: object) -> Settings:
    return Settings.model_validate({"answer": answer})


def test_by_default_the_judge_reads_sentences(packaged: Relevance) -> None:
    assert expert_in_use(Settings(), JUDGE) == "packaged"
    assert isinstance(packaged, JudgeRelevance)
    card = open_expert(JUDGE).card
    gate = evidence_gate(Settings(), parts_of(packaged))
    assert gate.judge is packaged
    assert gate.identity == card.identity
    assert card.identity.startswith("judge@")
    assert gate.fits["en"].judged == card.parameters["judged"]
    assert gate.fits["zh"].judged == 0


def test_kinds_and_sections_that_cannot_be_used_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = HashingEncoder()
    encoder.identity = MiniLMEncoder.identity
    kinds, sections, faults = open_section_experts(Settings(), encoder)
    assert isinstance(kinds, SentenceKinds)
    assert isinstance(sections, LabelSections)
    assert faults == ()
    nothing = (None, None, ())
    assert open_section_experts(choose(judge="off"), encoder) == nothing
    assert open_section_experts(Settings(), HashingEncoder()) == nothing
    monkeypatch.setattr(cards, "packaged_folder", lambda: tmp_path)
    *opened, (fault,) = open_section_experts(Settings(), encoder)
    assert opened == [None, None]
    assert "no expert 'kinds'" in fault


def test_chinese_alone_has_kinds_and_no_sections_of_labels() -> None:
    chinese, other = HashingEncoder(), HashingEncoder()
    chinese.identity = E5Encoder.identity
    encoder = EncoderByLanguage(other, {"zh": chinese})
    kinds, sections, faults = open_section_experts(Settings(), encoder)
    assert isinstance(kinds, SentenceKinds)
    assert kinds.models.keys() == {"zh"}
    assert (sections, faults) == (None, ())


def test_where_it_is_off_relevance_alone_decides() -> None:
    off = choose(judge="off")
    assert expert_in_use(off, JUDGE) == "off"
    assert open_judges(off) == (None, None, ())
    gate = evidence_gate(off, parts_of(None))
    assert (gate.judge, gate.identity, gate.faults) == (None, "relevance", ())


def test_the_gate_has_the_floors_of_the_settings(packaged: Relevance) -> None:
    for judge in (packaged, None):
        gate = evidence_gate(choose(answers_from=0.7, nearest_from=0.2), parts_of(judge))
        assert (gate.answers, gate.nearest) == (0.7, 0.2)


@pytest.mark.parametrize(("least", "other", "wanted"), [(0.6, False, 0.6), (0.6, True, 0.3)])
def test_a_calibrated_sureness_raises_the_floor_of_the_judge_that_it_was_fitted_to(
    packaged: Relevance, least: float, other: bool, wanted: float
) -> None:
    model = "judge@other" if other else open_expert(JUDGE).card.identity
    fitted = {"sureness": least, "sureness_model": model}
    settings = Settings.model_validate({"calibration": fitted, "answer": {"answers_from": 0.3}})
    assert evidence_gate(settings, parts_of(packaged)).answers == wanted
    low = Settings.model_validate({"calibration": {**fitted, "sureness": 0.1}})
    assert evidence_gate(low, parts_of(packaged)).answers == low.answer.answers_from


def test_without_its_weights_relevance_decides_and_says_so(tmp_path: Path) -> None:
    judge, match, faults = open_judges(choose(judge_path=str(tmp_path / "mine")))
    assert match is None
    assert judge is None
    assert "there is no expert 'judge'" in faults[0]
    gate = evidence_gate(choose(), parts_of(judge, *faults))
    assert gate.faults == faults
    assert gate.identity == "relevance"


def break_weights(folder: Path) -> None:
    weights = folder / WEIGHTS
    weights.write_bytes(weights.read_bytes()[:-100])


def change_base(folder: Path) -> None:
    """As where the packaged encoder is replaced by a newer one than the expert was made over."""
    card = read_card(folder).model_copy(update={"base": "all-MiniLM-L6-v2@" + "0" * 64})
    (folder / CARD).write_text(render_card(card), encoding="utf-8")


@pytest.mark.parametrize("spoil", [break_weights, change_base])
def test_where_the_judge_cannot_be_used_relevance_takes_over_and_says_so(
    spoil: Callable[[Path], None], tmp_path: Path
) -> None:
    mine = tmp_path / JUDGE
    shutil.copytree(packaged_folder() / JUDGE, mine)
    chosen = choose(judge_path=str(mine))
    _open_judge.cache_clear()
    assert open_judges(chosen)[2] == ()
    spoil(mine)
    _open_judge.cache_clear()
    judge, _, faults = open_judges(chosen)
    assert judge is None
    assert JUDGE in faults[0]


@pytest.mark.parametrize(
    ("question", "right", "wrong"),
    [
        (
            "How is gout treated?",
            "Attacks are treated with colchicine, with steroids or with naproxen.",
            "It runs in families, and men have it more often than women do.",
        ),
        (
            "What are the symptoms of scurvy?",
            "The symptoms of scurvy are bleeding gums, bruises and slow healing.",
            "Sailors of the eighteenth century were given lemons against it.",
        ),
        (
            "What causes malaria?",
            "It is caused by parasites of the genus Plasmodium, which mosquitoes carry.",
            "Thank you for your question about malaria.",
        ),
    ],
)
async def test_what_answers_stands_before_what_is_only_about_the_subject(
    packaged: Relevance, question: str, right: str, wrong: str
) -> None:
    subject = question.rstrip("?").split()[-1].title()
    lines = [JudgedText(one, subject).to_line() for one in (right, wrong)]
    first, second = await packaged.relevance(question, lines)
    assert first > second


async def test_what_treats_another_disease_is_not_quoted_beside_the_right_sentence(
    packaged: Relevance,
) -> None:
    right = "Adrenaline is the first drug that treats anaphylaxis."
    other = "Colchicine is the drug that treats gout first."
    hits = [
        Hit(Passage(f"book:{n}#0", text, "book", ""), 1.0, n, "q", "book")
        for n, text in enumerate((other, right), 1)
    ]
    composer = ExtractiveComposer(evidence_gate(Settings(), parts_of(packaged)))
    asked = Question("q", "Which drug treats anaphylaxis first?")
    answer = await composer.conclude(asked, hits, "", Run())
    assert [one.text for one in answer.statements] == [right]
    alone = await composer.conclude(asked, hits[:1], "", Run())
    assert alone.is_silent
