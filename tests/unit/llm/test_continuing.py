"""Messages are continued on servers that would begin a new turn, and native calls are read."""

import pytest
from competent import CompetentModel
from mannered import MODEL, serve_manners
from manners import Manners

from osler.build.models import load_model
from osler.llm.core.base import Completion, Message, Sampling
from osler.llm.server.replies import ask_to_continue, continue_reply
from osler.settings import ModelSettings
from osler_lab.testing.scripted import tokens_of

ASKED = Message("user", "What treats iron deficiency anaemia?")
BEGUN = "Oral iron treats iron deficiency anaemia."


def test_only_an_unfinished_turn_is_asked_to_go_on() -> None:
    assert ask_to_continue([ASKED]) == [ASKED]
    assert ask_to_continue([ASKED, Message("assistant", " ")])[1:] == [Message("assistant", " ")]
    turns = ask_to_continue([ASKED, Message("assistant", BEGUN)])
    assert turns[-1].role == "user"
    assert "what comes next" in turns[-1].content
    chinese = ask_to_continue([Message("user", "如何治疗？"), Message("assistant", "口服")])
    assert "继续" in chinese[-1].content


@pytest.mark.parametrize(
    ("begun", "reply", "text"),
    [
        (BEGUN, "So the answer is iron.", " So the answer is iron."),
        (BEGUN, f"{BEGUN} So it is.", " So it is."),
        (f"At first. {BEGUN}", f"{BEGUN}\nSo it is.", "\nSo it is."),
        ("Thought 1:", " I look.", " I look."),
        ("Thought 1:\n", "I look.", "I look."),
        ("Iron", ", and salt.", ", and salt."),
        ("口服铁剂", "治疗贫血。", "治疗贫血。"),
        (BEGUN, BEGUN, ""),
        (BEGUN, "<think>What now?</think>So it is.", " So it is."),
    ],
)
def test_a_reply_becomes_a_continuation(begun: str, reply: str, text: str) -> None:
    found = continue_reply(Completion(reply, tokens_of(reply, 0.5)), begun)
    assert found.text == text
    assert all(found.text[t.start : t.end].strip() == t.text.strip() for t in found.tokens)


async def test_a_server_that_begins_anew_continues() -> None:
    manners = Manners(continues=False, scores=False)
    async with serve_manners(CompetentModel(), manners) as place:
        chosen = ModelSettings(kind="openai", url=place.url, name=MODEL)
        model = (await load_model(chosen)).model
        prompt = Message("user", f"{ASKED.content} The last sentence begins with: So the answer is")
        reply = await model.complete([prompt, Message("assistant", BEGUN)], Sampling())
    assert reply.text == " So the answer is: oral iron."


@pytest.mark.parametrize("streams", [True, False])
async def test_a_native_call_is_read_as_text(streams: bool) -> None:
    manners = Manners(calls="native", streams=streams)
    says = "Thought: I look.\nTool_Use: DOC_RAG\nTool_Input: iron dose"
    async with serve_manners(lambda turns, begun: says, manners) as place:
        chosen = ModelSettings(kind="openai", url=place.url, name=MODEL)
        model = (await load_model(chosen)).model
        reply = await model.complete([ASKED], Sampling())
    assert reply.text == (
        "Thought: I look.\n"
        '<tool_call>\n{"name": "DOC_RAG", "arguments": {"query": "iron dose"}}\n</tool_call>'
    )
