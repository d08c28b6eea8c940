"""Trajectories are what the solver itself asks, reads and writes."""

import pytest

from osler.errors import MalformedOutput
from osler.llm.core.ask import Speaker
from osler.methods.kag.parse import read_plan, read_search
from osler.types import Passage, Question
from osler_lab.testing.scripted import KeyedModel, ScriptedRetriever
from osler_lab.train.thinker.dialogue import find_fault, stage_messages
from osler_lab.train.thinker.quality import QualityItem
from osler_lab.train.thinker.rules import find_faults
from osler_lab.train.thinker.teacher import Knows, Teacher

YES = "<answer>Yes</answer><reason>Reference 0 names him.</reason>"
NO = "<answer>No</answer><reason>Reference 0 does not say when.</reason>"
FILM = Question("film", "When did the director of Red Kite die?")
PLAN = """<think>First the director, then his death.</think>

<answer>Step1: Who is the director of Red Kite?
Action1: Retrieval(s=s1:film['Red Kite'], p=p1:director, o=o1:director)
Step2: When did #1 die?
Action2: Retrieval(s=o1, p=p2:deathtime, o=o2:deathtime)
Step3: Which year is #2?
Action3: Deduce(op=extract, content=['o2'], target='the year')->o3</answer>"""
AGAIN = (
    "<search>Step: Peter Berg's date of death. "
    "Action: Retrieval(s=s1:person['Peter Berg'], p=p1:date of death, o=o1:date)</search>"
)
KITE = Passage("book:kite#0", "Red Kite is a film of Peter Berg.", "book", "Red Kite")
BERG = Passage("book:berg#0", "Peter Berg died on 3 May 1911.", "book", "Peter Berg")


def box(answer: str) -> str:
    return rf"<answer>\boxed{{{answer}}}</answer>"


def film_model(**changed: list[str]) -> KeyedModel:
    replies: dict[str, list[str]] = {
        "decompose the user question": [PLAN],
        "is complete, answer True": ["Nothing is left out.\n" + box("True")],
        "Analyze whether the answer": ["It is well known.\n" + box("True")],
        "Can you answer": [
            "By heart.\n" + box("Peter Berg"),
            "I can't answer this question, I need to retrieve external knowledge.",
        ],
        "analyze the relationship": [NO, YES],
        "The sub-question is not answered yet": [AGAIN],
        "could not be read": ["still none"],
        "Thought:": ["The film is there, the date is not.", "Now the date is there."],
        "Extract from what is known": ["The date holds the year.\n" + box("1911")],
        "Answer the last question": [f"Peter Berg died in 1911. [1] {box('1911')}"],
        "Answer the question from the references": [box("3 May 1911")],
    }
    return KeyedModel({**replies, **changed})


def teacher(model: KeyedModel, knows: Knows = "both", *, restructure: bool = True) -> Teacher:
    speaker = Speaker(model, "planner")
    found = ScriptedRetriever({"date of death": [BERG], "Peter Berg": [KITE], "Red Kite": [KITE]})
    return Teacher(speaker, speaker, speaker, found, knows=knows, k=1, restructure=restructure)


async def test_a_question_becomes_the_paper_s_chat() -> None:
    made, run = await teacher(film_model()).teach_question(FILM, "thinker", 7)
    assert find_fault(made, "thinker") == ""
    chat = stage_messages(made, "thinker", "en")
    assert [m.role for m in chat[1:]] == ["user", "assistant"] * ((len(chat) - 1) // 2)
    said = [m.content for m in chat if m.role == "assistant"]
    assert read_plan(said[0]) == read_plan(PLAN)
    assert said[0].startswith("<think>First the director, then his death.</think>\n\n<answer>Step1")
    # Step 1 is known: no search, and the reasoning that led there.
    assert r"The answer to the question is \boxed{Peter Berg}" in said[1]
    assert "It is well known." in said[1]
    assert said[1].endswith(box("Peter Berg"))
    # Step 2 is refused, searched for twice, and answered; step 1's answer is filled in.
    assert "Step2: When did Peter Berg die?" in chat[5].content
    assert "I need to retrieve external knowledge" in said[2]
    assert read_search(said[2].partition("</think>")[2]).question == "When did Peter Berg die?"
    assert chat[7].content == f"<references>Red Kite: {KITE.text}\n\n</references>"
    assert said[3].startswith("<think>The film is there, the date is not.</think>\n<search>Step1:")
    assert said[4] == f"<think>Now the date is there.</think>\n\n{box('3 May 1911')}"
    assert said[5] == f"<think>The date holds the year.</think>\n\n{box('1911')}"
    assert said[6].endswith(f"Peter Berg died in 1911. [1] {box('1911')}")
    assert run.usage.calls == 12


async def test_the_chat_passes_every_rule() -> None:
    made, _ = await teacher(film_model()).teach_question(FILM, "thinker", 7)
    chat = stage_messages(made, "thinker", "en")
    assert list(find_faults(QualityItem("film", tuple(chat), FILM.text, ("1911",)))) == []


async def test_without_a_boundary_every_sub_question_is_looked_up() -> None:
    model = film_model(**{"analyze the relationship": [YES]})
    model.replies["Answer the question from the references"] = [box("Peter Berg"), box("1911")]
    made, _ = await teacher(model, "none").teach_question(FILM, "thinker", 0)
    assert [len(step.turns) for step in made.retrievals] == [1, 1]
    assert "Can you answer" not in model.asked
    assert (
        "\n<search>Step1: Who is the director" in stage_messages(made, "thinker", "en")[4].content
    )


async def test_a_medical_answer_is_known_when_it_is_called_correct_and_complete() -> None:
    model = film_model()
    made, _ = await teacher(model, "twice").teach_question(FILM, "thinker", 0)
    assert [step.known for step in made.retrievals] == [True, False]
    assert model.asked.count("Analyze whether the answer") == 1
    assert model.asked.count("is complete, answer True") == 1
    incomplete = film_model(**{"is complete, answer True": [box("False")]})
    made, _ = await teacher(incomplete, "twice").teach_question(FILM, "thinker", 0)
    assert [step.known for step in made.retrievals] == [False, False]


async def test_a_plan_alone_costs_one_call() -> None:
    made, run = await teacher(film_model()).teach_question(FILM, "logical-form", 0)
    chat = stage_messages(made, "logical-form", "en")
    assert [m.role for m in chat] == ["system", "user", "assistant"]
    assert (run.usage.calls, find_fault(made, "logical-form")) == (1, "")


async def test_a_deep_search_is_of_a_single_hop_question() -> None:
    made, run = await teacher(film_model()).teach_question(FILM, "deep-search", 0)
    assert find_fault(made, "deep-search") == "not a single-hop question"
    assert run.usage.calls == 1  # what will be dropped is not solved first
    single = "<answer>Step1: Who is the director of Red Kite?\nAction1: "
    single += "Retrieval(s=s1:film['Red Kite'], p=p1:director, o=o1:director)</answer>"
    model = film_model(**{"decompose the user question": [single]})
    model.replies["Answer the question from the references"] = [box("Peter Berg")]
    made, _ = await teacher(model).teach_question(FILM, "deep-search", 0)
    assert find_fault(made, "deep-search") == ""
    chat = stage_messages(made, "deep-search", "en")
    assert [m.role for m in chat] == ["system", *["user", "assistant"] * 3]
    assert chat[-1].content.endswith(box("Peter Berg"))


async def test_a_reason_that_is_not_restructured_stays_as_it_is() -> None:
    made, _ = await teacher(film_model(), restructure=False).teach_question(FILM, "thinker", 0)
    assert "<think>Reference 0 does not say when.</think>\n<search>" in "".join(
        m.content for m in stage_messages(made, "thinker", "en")
    )


@pytest.mark.parametrize(
    ("asked", "replies", "why"),
    [
        ("decompose the user question", ["no plan"], "no plan could be read"),
        (
            "decompose the user question",
            [PLAN.replace("s=o1", "s=o9")],
            "the plan's references do not resolve",
        ),
        (
            "decompose the user question",
            [PLAN.partition("</think>")[2]],
            "no thought before the plan",
        ),
        ("analyze the relationship", [NO], "an answer without sufficient references"),
        ("Extract from what is known", [box("unknown")], "a Deduce was not solved"),
        ("Answer the last question", ["I do not know."], "no answer"),
    ],
)
async def test_what_is_broken_is_dropped_with_its_reason(
    asked: str, replies: list[str], why: str
) -> None:
    model = film_model(**{asked: replies})
    made, _ = await teacher(model, restructure=False).teach_question(FILM, "thinker", 0)
    assert find_fault(made, "thinker") == why


async def test_a_calculation_is_a_program_and_its_result() -> None:
    pytest.importorskip("pydantic_monty", reason="written calculations need the extra math")
    plan = PLAN.replace(
        "Action3: Deduce(op=extract, content=['o2'], target='the year')->o3",
        "Action3: Math(content=['o2'], target='the year before')->math3",
    )
    model = film_model(**{"decompose the user question": [plan]})
    model.replies["Write a short Python program"] = ["<Python>\n1911 - 1\n</Python>"]
    made, _ = await teacher(model).teach_question(FILM, "thinker", 0)
    chat = stage_messages(made, "thinker", "en")
    place = next(n for n, m in enumerate(chat) if m.content == "<result>1910</result>")
    assert "<Python>\n1911 - 1\n</Python>" in chat[place - 1].content
    assert chat[place + 1].content.endswith(box("1910"))


async def test_a_chinese_question_is_taught_in_chinese() -> None:
    plan = """<think>先查病因。</think><answer>Step1: 缺铁性贫血的首选药物是什么？
Action1: Retrieval(s=s1:疾病['缺铁性贫血'], p=p1:首选药物, o=o1:药物)</answer>"""
    model = KeyedModel(
        {
            "请根据上述函数定义": [plan],
            "你能一步一步地回答": ["我无法回答这个问题，需要检索外部知识。"],
            "分析每条参考资料": ["<answer>Yes</answer><reason>资料0说明了。</reason>"],
            "请仅根据参考资料": [box("口服铁剂")],
            "由前者到后者的思考": ["资料说明首选口服铁剂。"],
            "回答最后的问题": [f"首选口服铁剂。[1]{box('口服铁剂')}"],
        }
    )
    iron = Passage("book:iron#0", "缺铁性贫血首选口服铁剂。", "book", "贫血", language="zh")
    speaker = Speaker(model, "planner")
    found = ScriptedRetriever({"贫血": [iron]})
    asked = Question("铁", "缺铁性贫血首选什么药物？", language="zh")
    made, _ = await Teacher(speaker, speaker, speaker, found).teach_question(asked, "thinker", 0)
    assert find_fault(made, "thinker") == ""
    chat = stage_messages(made, "thinker", "zh")
    assert "思考过程" in chat[0].content
    assert chat[4].content.startswith("<think>我无法回答这个问题")
    assert list(find_faults(QualityItem("铁", tuple(chat), asked.text, ("口服铁剂",), "zh"))) == []


async def test_a_run_without_a_plan_is_no_trajectory() -> None:
    from osler_lab.train.thinker.trajectory import Script, trajectory_of

    with pytest.raises(MalformedOutput, match="a plan"):
        trajectory_of(Script())
