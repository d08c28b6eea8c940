"""Follow-up questions worded by a model: what is taken from it, and what is not."""

from __future__ import annotations

import asyncio

import pytest

from osler.answer.follow_up import Standalone, rewrite_follow_up
from osler.answer.follow_up_model import reword_follow_up
from osler.errors import ModelUnreachable
from osler.llm.core.base import Completion
from osler.llm.local.model import LlamaCpp
from osler.llm.local.quantise import default_gguf
from osler.testing.scripted import ScriptedModel

EARLIER = ["How is cystitis treated?"]
QUESTION = "And in pregnancy after 20 weeks?"
BY_RULE = rewrite_follow_up(QUESTION, EARLIER)


def reword(reply: str, question: str = QUESTION, earlier: list[str] = EARLIER) -> Standalone:
    return asyncio.run(reword_follow_up(ScriptedModel([reply]), question, earlier))


@pytest.mark.parametrize(
    ("earlier", "question", "reply"),
    [
        (EARLIER[0], QUESTION, "How is cystitis treated in pregnancy after 20 weeks?"),
        ("胰腺炎如何诊断？", "它怎么治疗？", "胰腺炎怎么治疗？"),
        ("How is lithium monitored?", "When is it stopped?", '"When is lithium stopped?"'),
        (
            EARLIER[0],
            QUESTION,
            "<think>It is cystitis.</think>\nCystitis in pregnancy after 20 weeks: treatment?",
        ),
    ],
)
def test_a_wording_of_the_conversation_s_own_words_is_taken(
    earlier: str, question: str, reply: str
) -> None:
    made = reword(reply, question, [earlier])
    assert made == Standalone(reply.rpartition("\n")[2].strip('"'), "model")


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "Nitrofurantoin is safe in pregnancy after 20 weeks.",
        "How is cystitis treated in pregnancy?",
        "How is cystitis treated in pregnancy after 20 to 30 weeks?",
        "How is cystitis treated in pregnancy after 20 weeks?\nUse nitrofurantoin.",
        "妊娠20周后膀胱炎如何治疗？",
        "The treatment of bladder infection depends on many things, pregnancy after 20 weeks too.",
        "How is cystitis treated? " * 40,
        QUESTION,
    ],
)
def test_what_answers_adds_or_leaves_out_is_not_taken(reply: str) -> None:
    assert BY_RULE.by == "rule"
    assert reword(reply) == BY_RULE


def test_a_question_that_stands_alone_costs_no_call() -> None:
    model = ScriptedModel([])
    made = asyncio.run(reword_follow_up(model, "How is gout treated?", EARLIER))
    assert (made, model.seen) == (Standalone("How is gout treated?"), [])


def test_the_model_reads_the_reader_s_questions_and_no_template_in_them() -> None:
    model = ScriptedModel([""])
    asyncio.run(reword_follow_up(model, "And in\nchildren?", ["How is {{ asthma }} treated?"]))
    ((message,),) = model.seen
    assert "- How is {{ asthma }} treated?\n" in message.content
    assert "\nAnd in children?\n" in message.content


def test_a_server_that_is_gone_leaves_the_rule() -> None:
    class Gone(ScriptedModel):
        async def complete(self, *_: object) -> Completion:
            raise ModelUnreachable("no connection")

    assert asyncio.run(reword_follow_up(Gone([]), QUESTION, EARLIER)) == BY_RULE


@pytest.mark.model
def test_what_a_small_engine_babbles_never_becomes_a_question() -> None:
    """The packaged model as a file of the user's own, which may word: it repeats the question."""
    model = LlamaCpp(default_gguf(), name="own", context=1024)
    earlier, question = ["What is the antidote of warfarin?"], "What if the patient bleeds?"
    made = asyncio.run(reword_follow_up(model, question, earlier))
    assert made == rewrite_follow_up(question, earlier)
