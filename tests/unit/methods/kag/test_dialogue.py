"""One growing dialogue, as KAG-Thinker's models are trained (§4.3, App. 12)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from loopback_servers import answer_chats_only, chat_reply, json_reply, serve_loopback

from osler.answer.written import WrittenComposer
from osler.llm.core.ask import Speaker
from osler.llm.core.base import Completion, Message, Sampling
from osler.llm.server.client import OpenAIModel
from osler.llm.server.connection import Endpoint, ServerClient
from osler.llm.server.dialects import ServerProfile
from osler.methods.kag.dialogue import DialogueThinker, DialogueTurns, ReleasedTurns, TrainedTurns
from osler.methods.kag.focus import Focuser
from osler.trace import Budget, FormSolved, FormsPlanned, Run
from osler.types import Grounding, Halt, Passage, Question, Solution, Usage
from osler_lab.testing.scripted import ScriptedRetriever

GOLDEN = Path(__file__).parents[3] / "golden" / "dialogue"
QUESTION = Question("grandmother", "Who is the mother of the director of Red Kite?")
KITE = Passage("book:kite#0", "Red Kite is a film of Peter Berg.", "book", "Red Kite")
BERG = Passage("book:berg#0", "The mother of Peter Berg was Anna Holm.", "book", "Peter Berg")
PLAN = """<think>First the director, then the mother.</think>

<answer>Step1: Who is the director of Red Kite?
Action1: Retrieval(s=s1:film['Red Kite'], p=p1:director, o=o1:person)
Step2: Who is the mother of #1?
Action2: Retrieval(s=o1, p=p2:mother, o=o2:person)
Step3: Output #2
Action3: Output(o2)</answer>"""
SEARCH = """<think>I am not sure of the mother.</think>

<search>Step2: Who is the mother of Peter Berg?
Action2: Retrieval(s=o1, p=p2:mother, o=o2:person)</search>"""


@dataclass
class Checkpoint:
    """A trained model: it replies to the whole chat, turn by turn."""

    replies: list[str]
    chats: list[tuple[Message, ...]] = field(default_factory=list)
    samplings: list[Sampling] = field(default_factory=list)
    name: str = "checkpoint"

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        self.chats.append(tuple(messages))
        self.samplings.append(sampling)
        return Completion(self.replies[len(self.chats) - 1], usage=Usage(calls=1))


REPLIES = [
    PLAN,
    "<think>I know it.</think>\n\n<answer>\\boxed{Peter Berg}</answer>",
    SEARCH,
    "<think>The reference names her.</think>\n\n<answer>\\boxed{Anna Holm}</answer>",
    "<think>All is known.</think>\n\n<answer>\\boxed{Anna Holm}</answer>",
]


async def solve(
    model: Checkpoint | OpenAIModel,
    turns: DialogueTurns,
    question: Question = QUESTION,
    **options: object,
) -> tuple[Solution, Run]:
    found = ScriptedRetriever({"mother": [BERG], "": [KITE]})
    focuser = Focuser(Speaker(model, "reader"))
    solver = DialogueThinker(model, turns, found, WrittenComposer(), focuser, **options)  # type: ignore[arg-type]
    run = Run()
    return await solver.solve(question, run), run


def written(chat: Sequence[Message]) -> str:
    return "".join(f"=== {message.role}\n{message.content}\n" for message in chat)


@pytest.mark.parametrize(
    ("name", "turns"), [("checkpoint", ReleasedTurns()), ("trained", TrainedTurns())]
)
async def test_the_dialogue_is_the_golden_one(name: str, turns: DialogueTurns) -> None:
    model = Checkpoint(list(REPLIES))
    solution, run = await solve(model, turns)
    assert written(model.chats[-1]) == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")
    assert solution.answer.text.startswith("Anna Holm")
    assert solution.answer.evidence[0].passage == BERG
    assert solution.answer.grounding is Grounding.GROUNDED
    solved = {e.n: (e.answer, e.own_knowledge) for e in run.events if isinstance(e, FormSolved)}
    assert solved == {1: ("Peter Berg", True), 2: ("Anna Holm", False)}


async def test_the_dialogue_goes_through_a_server_as_one_growing_chat() -> None:
    """The checkpoint behind an OpenAI-compatible server: what it is sent, and what comes of it."""
    sent = [json_reply(chat_reply(reply)) for reply in REPLIES]
    async with serve_loopback(answer_chats_only(*sent)) as place:
        endpoint = Endpoint(base_url=place.url, model="KAG-Thinker-7b-instruct")
        served = OpenAIModel(ServerClient(endpoint, rng=Random(0)), ServerProfile())
        decoding = Sampling(temperature=0.0, max_tokens=8192, seed=42)
        solution, _ = await solve(served, ReleasedTurns(), sampling=decoding)
    asked = place.bodies_of("/v1/chat/completions")
    chats = [[Message(m["role"], m["content"]) for m in body["messages"]] for body in asked]
    assert written(chats[-1]) == (GOLDEN / "checkpoint.txt").read_text(encoding="utf-8")
    assert all(chat[: len(before)] == before for before, chat in pairwise(chats))
    assert {(body["temperature"], body["max_tokens"]) for body in asked} == {(0.0, 8192)}
    assert solution.answer.text.startswith("Anna Holm")


async def test_every_call_is_the_chat_before_it_and_one_turn_more() -> None:
    model = Checkpoint(list(REPLIES))
    await solve(model, ReleasedTurns())
    for before, after in zip(model.chats, model.chats[1:], strict=False):
        assert after[: len(before)] == before
        assert [m.role for m in after[len(before) :]] == ["assistant", "user"]
    assert model.chats[0][0] == Message(
        "system",
        "As you answer each question, you must provide a thought process and insert it between"
        " <think> and </think>.",
    )


async def test_a_plan_that_ends_in_a_deduce_is_answered_in_the_last_turn() -> None:
    """The paper's own plan of Table 1 does; the released script drops such a step's answer."""
    plan = PLAN.replace(
        "Step3: Output #2\nAction3: Output(o2)",
        "Step3: Which is it?\nAction3: Deduce(op=choice, content=['o2'], target='it')->o3",
    )
    model = Checkpoint([plan, *REPLIES[1:]])
    solution, _ = await solve(model, ReleasedTurns())
    assert "last-question:\nStep3: Which is it?" in model.chats[-1][-1].content
    assert solution.halt is Halt.CONVERGED


async def test_a_step_without_an_answer_is_not_asked_for_by_its_number() -> None:
    model = Checkpoint([PLAN, "<answer>\\boxed{unknown}</answer>", "<answer>\\boxed{?}</answer>"])
    solution, run = await solve(model, ReleasedTurns())
    asked = [message.content for message in model.chats[-1] if message.role == "user"]
    assert not any("mother of #1?" in text and "Can you answer" in text for text in asked)
    assert [e.status for e in run.events if isinstance(e, FormSolved)] == ["failed", "failed"]
    assert solution.halt is Halt.NO_EVIDENCE


async def test_searches_are_bounded_and_a_reply_with_neither_tag_is_the_answer() -> None:
    again = SEARCH.replace("Who is the mother", "Tell me the mother")
    model = Checkpoint([PLAN, "Peter Berg", SEARCH, again, again, "<answer>\\boxed{x}</answer>"])
    _, run = await solve(model, ReleasedTurns(), searches=2)
    solved = {e.n: e.answer for e in run.events if isinstance(e, FormSolved)}
    assert solved == {1: "Peter Berg", 2: ""}


async def test_a_plan_that_cannot_be_read_is_one_step() -> None:
    model = Checkpoint(["no plan", "<answer>\\boxed{x}</answer>", "<answer>\\boxed{x}</answer>"])
    _, run = await solve(model, ReleasedTurns())
    (plan,) = [event for event in run.events if isinstance(event, FormsPlanned)]
    assert plan.origin == "fallback"


async def test_a_budget_ends_the_dialogue_with_what_is_there() -> None:
    model = Checkpoint(list(REPLIES))
    found = ScriptedRetriever({"": [BERG]})
    focuser = Focuser(Speaker(model, "reader"))
    solver = DialogueThinker(model, ReleasedTurns(), found, WrittenComposer(), focuser)
    run = Run(budget=Budget(calls=2))
    solution = await solver.solve(QUESTION, run)
    assert solution.halt is Halt.BUDGET
    assert len(model.chats) == 2


async def test_math_is_a_program_whose_value_is_the_sandbox_s() -> None:
    pytest.importorskip("pydantic_monty", reason="written calculations need the extra math")
    plan = """<answer>Step1: How much is six times seven?
Action1: Math(content=['6', '7'], target='the product')->math1
Step2: Output #1
Action2: Output(math1)</answer>"""
    model = Checkpoint(
        [
            plan,
            "<think>A program.</think>\n<Python>\n6 * 7\n</Python>",
            "<answer>\\boxed{42}</answer>",
            "<answer>\\boxed{42}</answer>",
        ]
    )
    _, run = await solve(model, TrainedTurns())
    assert model.chats[2][-1].content == "<result>42</result>"
    assert {e.n: e.answer for e in run.events if isinstance(e, FormSolved)} == {1: "42"}


async def test_a_refusal_in_prose_is_no_answer_but_causes_the_search() -> None:
    model = Checkpoint(
        [
            PLAN,
            "Based on my internal knowledge, I can't answer this question, I need to retrieve"
            " external knowledge.",
            "Red Kite was directed by Peter Berg.",
            "Unfortunately, the references do not mention this.",
            "The references do not say.",
            "<answer>\\boxed{unknown}</answer>",
        ]
    )
    _, run = await solve(model, TrainedTurns())
    solved = {e.n: (e.answer, e.passages) for e in run.events if isinstance(e, FormSolved)}
    assert solved[1] == ("Red Kite was directed by Peter Berg.", (KITE.id,))
    assert solved[2][0] == ""
