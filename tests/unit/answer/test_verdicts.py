"""Choosing yes, no or maybe by the wording of what was found."""

import pytest

from osler.answer import Decision
from osler.answer.extractive import ExtractiveComposer
from osler.answer.gate import EvidenceGate
from osler.answer.options import VerdictChooser
from osler.retrieve.experts.cards import open_expert
from osler.retrieve.experts.supporting import SUPPORTS, SupportsExpert
from osler.retrieve.relevance import OverlapRelevance
from osler.trace import Asked, Run
from osler.types import Hit, Locator, Passage, Question, Relevance
from osler_lab.testing.scripted import ScriptedModel

ASKED = "Does aspirin prevent stroke in healthy adults?"
HELPS = "CONCLUSIONS: Aspirin significantly reduced stroke and is effective and safe in adults."
FAILS = (
    "CONCLUSIONS: Aspirin did not prevent stroke in healthy adults. There was no significant"
    " difference, and it had no benefit."
)
GATE = EvidenceGate(OverlapRelevance())


class Near(Relevance):
    """Every sentence is as near as any other."""

    async def relevance(self, query: str, texts: list[str]) -> tuple[float, ...]:  # type: ignore[override]
        return (0.6,) * len(texts)


@pytest.fixture(scope="module")
def chooser() -> VerdictChooser:
    return VerdictChooser(SupportsExpert(open_expert(SUPPORTS)), Near())


def hits(text: str) -> list[Hit]:
    passage = Passage("r:1#0", text, "research", "Aspirin", Locator(code="PMID:1"))
    return [Hit(passage, 1.0, 1, ASKED, "research")]


@pytest.mark.parametrize(("text", "letter", "verdict"), [(HELPS, "B", "yes"), (FAILS, "A", "no")])
async def test_the_packaged_expert_reads_what_a_study_concluded(
    chooser: VerdictChooser, text: str, letter: str, verdict: str
) -> None:
    question = Question("q", ASKED, ("No.", "Yes"))
    chosen = await chooser.choose_verdict(question, hits(text))
    assert chosen is not None
    assert (chosen.letter, chosen.verdict) == (letter, verdict)
    assert 0.5 < chosen.sureness.probability < 1
    assert chosen.sureness.by.startswith("supports@")


@pytest.mark.parametrize(
    "question",
    [
        Question("q", ASKED, ("yes", "aspirin")),
        Question("q", ASKED, ("yes", "maybe")),
        Question("q", ASKED),
        Question("q", "阿司匹林能预防中风吗？", ("yes", "no"), "zh"),
    ],
)
async def test_other_options_and_languages_are_left_to_the_other_chooser(
    chooser: VerdictChooser, question: Question
) -> None:
    assert await chooser.choose_verdict(question, hits(HELPS)) is None
    assert await chooser.choose_verdict(Question("q", ASKED, ("yes", "no")), []) is None


async def test_the_prohibitions_of_a_guideline_are_not_read_as_no(chooser: VerdictChooser) -> None:
    """Asked whether adrenaline comes first, it once said no: "do not let the patient stand"."""
    question = Question("q", ASKED, ("yes", "no"))
    guideline = Passage("g:1#0", FAILS, "guideline", "Aspirin")
    first = Hit(guideline, 2.0, 1, ASKED, "guideline")
    assert await chooser.choose_verdict(question, [first, *hits(HELPS)]) is None
    both = await chooser.choose_verdict(question, [*hits(HELPS), first])
    assert both == await chooser.choose_verdict(question, hits(HELPS))


async def test_the_choice_asks_no_model_and_the_answer_says_how_sure_it_is(
    chooser: VerdictChooser,
) -> None:
    run, model = Run(), ScriptedModel([], scores={"yes": 0.9})
    composer = ExtractiveComposer(GATE, model, verdicts=chooser)
    question = Question("q", ASKED, ("yes", "no", "maybe"))
    # More sentences than are quoted: a model that weighed them would take seconds.
    more = [f"Aspirin does not prevent {n} strokes in healthy adults: no." for n in range(4)]
    answer = await composer.conclude(question, hits(" ".join([FAILS, *more])), "", run)
    assert answer.option == "B"
    assert len(answer.evidence) == composer.statements
    assert answer.sureness is not None
    assert f"{100 * answer.sureness.probability:.0f} %" in answer.note
    assert not any(isinstance(one, Asked) for one in run.events)


async def test_what_a_method_decided_by_itself_stands(chooser: VerdictChooser) -> None:
    composer = ExtractiveComposer(GATE, verdicts=chooser)
    question = Question("q", ASKED, ("yes", "no"))
    answer = await composer.conclude(question, hits(FAILS), "", Run(), decision=Decision("A"))
    assert answer.option == "A"
    assert answer.sureness is not None
    assert answer.sureness.by == "relevance", "of the quotes, not of the choice"


async def test_where_the_expert_is_damaged_the_rule_chooses_and_the_answer_says_so() -> None:
    model = ScriptedModel([], scores={"yes": 0.9})
    broken = VerdictChooser(None, Near(), "weights.safetensors cannot be read")
    composer = ExtractiveComposer(GATE, model, verdicts=broken)
    answer = await composer.conclude(Question("q", ASKED, ("yes", "no")), hits(FAILS), "", Run())
    assert answer.option == "A"
    assert "weights.safetensors cannot be read" in answer.note
    other = await composer.conclude(Question("q", ASKED, ("a", "b")), hits(FAILS), "", Run())
    assert "cannot be read" not in other.note
