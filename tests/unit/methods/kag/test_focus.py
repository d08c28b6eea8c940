"""Which references a reason calls relevant (§3.3), and what counts as an answer."""

import pytest

from osler.errors import MalformedOutput
from osler.llm.core.base import Completion
from osler.llm.core.speaker import Speaker
from osler.methods.kag.boxed import answer_or_text
from osler.methods.kag.focus import LikenessFocuser, LikenessScorer, relevant_references
from osler.retrieve.relevance import OverlapRelevance
from osler.testing.scripted import KeyedModel
from osler.trace import Run
from osler.types import Hit, Passage


@pytest.mark.parametrize(
    ("reason", "relevant"),
    [
        ("Reference 0 does not mention it, reference 2 answers.", (2,)),
        ("Reference 0 and reference 1 do not say; reference 2 does.", (2,)),
        ("References 0 and 2 are irrelevant. Reference 1 gives the dose.", (1,)),
        ("Unlike reference 0, reference 1 names the drug.", (1,)),
        ("Reference 1 names the drug but does not give a dose.", (1,)),
        ("Reference 1 is not only relevant, it answers.", (1,)),
        ("Reference 0 isn't about adults.", (1, 2)),
        ("It is said there.", (0, 1, 2)),
        (
            "None fits: reference 0 is unrelated, reference 1 lacks it, reference 2 fails to.",
            (0, 1, 2),
        ),
        ("资料0没有提到，资料2说明了剂量。", (2,)),
        ("资料0和1无关。资料2相关。", (2,)),
        ("Reference 7 says it.", (0, 1, 2)),
    ],
)
def test_a_reference_is_relevant_where_it_is_said_to_be(
    reason: str, relevant: tuple[int, ...]
) -> None:
    assert relevant_references(reason, 3) == relevant


@pytest.mark.parametrize("text", ["", "<search>Step1: x", "<answer>", r"\boxed{", "a" * 601])
def test_what_was_begun_and_not_finished_is_no_answer(text: str) -> None:
    with pytest.raises(MalformedOutput):
        answer_or_text(Completion(text, (), "stop"))


def hit(n: int, text: str) -> Hit:
    return Hit(Passage(f"book:{n}#0", text, "book", "Drugs"), 1.0, n + 1, "q", "book")


async def test_a_small_model_s_verdict_is_the_likeness_of_question_and_reference() -> None:
    model = KeyedModel({"analyze the relationship": ["<answer>Yes</answer><reason>all</reason>"]})
    scorers = {"en": LikenessScorer(OverlapRelevance(), 0.5)}
    focuser = LikenessFocuser(Speaker(model, "reader"), scorers=scorers)  # type: ignore[arg-type]
    hits = [hit(0, "Tea is a drink."), hit(1, "Warfarin raises the INR.")]
    focus = await focuser.focus("Does warfarin raise the INR?", hits, "en", Run())
    assert (focus.enough, focus.relevant) == (True, (1,))
    assert "Reference 1" in focus.reason
    focus = await focuser.focus("Who wrote Hamlet?", hits, "en", Run())
    assert (focus.enough, focus.relevant) == (False, ())
    assert "needed 0.50" in focus.reason
    assert model.asked == []
    # A language without a scorer is judged by the model.
    model.replies["资料"] = ["<answer>No</answer><reason>资料0无关</reason>"]
    assert not (await focuser.focus("问题", hits, "zh", Run())).enough
    assert model.asked == ["资料"]
