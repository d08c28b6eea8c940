"""Each planner as its appendix says, with scripted replies and a scripted evaluator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import log, sqrt

import pytest

from osler.errors import MalformedOutput
from osler.llm.core.ask import Speaker
from osler.methods.omni.plan import Query, SourcePlan
from osler.methods.omni.planners import SourceDescription
from osler.methods.omni.planners.feedback import (
    EXPLORATION,
    DocumentJudge,
    Feedback,
    PlanNode,
    Reflexion,
    SeRTS,
    back_propagate,
    read_feedback,
)
from osler.methods.omni.planners.single import (
    SYSTEM,
    OriginalQuestion,
    PlanAttempt,
    Prompting,
    Proposer,
    Query2Doc,
    TermExtractor,
    read_passage,
    terms_grammar,
    trained_planner,
)
from osler.methods.omni.retriever import PlannedRetriever
from osler.retrieve import LookupResult
from osler.retrieve.naming import names_in
from osler.sources.catalogue import BOOK, GRAPH, WIKI
from osler.trace import Budget, BudgetExceeded, Event, Noted, PlanScored, Run, Searched
from osler.types import Passage, Question
from osler_lab.testing.scripted import KeyedModel, ScriptedModel, ScriptedRetriever

CHOICE = Question("q", "Which drug is first; in anaphylaxis?", ("adrenaline", "aspirin"))
ASKED = "Which drug is first, in anaphylaxis? A. adrenaline B. aspirin"
FACT = Passage("book:a#0", "Adrenaline is given first.", BOOK, "Anaphylaxis")
TEXTS = (SourceDescription(BOOK), SourceDescription(WIKI))
ALL = (*TEXTS, SourceDescription(GRAPH))


def texts(queries: tuple[Query, ...]) -> list[tuple[str, str]]:
    return [(query.source, query.wire) for query in queries]


def notes(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Noted)]


def proposer(
    model: ScriptedModel | KeyedModel, offers: tuple[SourceDescription, ...] = TEXTS
) -> Proposer:
    return Proposer(Speaker(model, "planner"), offers)


def library() -> PlannedRetriever:
    found = ScriptedRetriever({"": [FACT]})
    return PlannedRetriever({BOOK: found, WIKI: found})


async def test_original_question_asks_every_source_itself_and_the_graph_by_its_terms() -> None:
    model = ScriptedModel(["<term>anaphylaxis , adrenaline</term>"])
    planner = OriginalQuestion(TermExtractor(Speaker(model, "planner")), ALL)
    proposal = await planner.plan(CHOICE, Run())
    assert texts(proposal.plan.queries) == [
        (BOOK, ASKED),
        (WIKI, ASKED),
        (GRAPH, f"anaphylaxis , {ASKED}"),
        (GRAPH, f"adrenaline , {ASKED}"),
    ]
    assert proposal.origin == "fixed"


async def test_without_a_graph_original_question_asks_no_model() -> None:
    planner = OriginalQuestion(TermExtractor(Speaker(ScriptedModel([]), "planner")), TEXTS)
    assert len((await planner.plan(CHOICE, Run())).plan.queries) == 2


def test_a_small_model_can_only_choose_among_what_the_question_names() -> None:
    names = names_in("Is metformin safe in severe renal impairment?")
    grammar = terms_grammar(at_most=2, among=names)
    assert "severe renal impairment" in " ".join(names)
    assert all(grammar.accepts(f"<term>{name}</term>") for name in names)
    assert grammar.accepts(f"<term>{names[0]} , {names[-1]}</term>")
    assert not grammar.accepts("<term>the first term of the series</term>")


async def test_terms_that_cannot_be_read_leave_the_graph_out_and_say_so() -> None:
    run = Run()
    terms = TermExtractor(Speaker(ScriptedModel(["adrenaline"] * 3), "planner"))
    proposal = await OriginalQuestion(terms, ALL).plan(CHOICE, run)
    assert {query.source for query in proposal.plan.queries} == {BOOK, WIKI}
    assert notes(run.events)[0].startswith("the graph is not asked")


async def test_query2doc_writes_a_passage_in_the_style_of_each_source() -> None:
    model = KeyedModel(
        {
            "educational": ["<passage>Adrenaline is the first drug.</passage>"],
            "general knowledge": ["<passage>Epinephrine, a hormone; it helps"],  # unclosed
            "medical terminologies": ["<term>adrenaline</term>"],
        }
    )
    speaker = Speaker(model, "planner")
    proposal = await Query2Doc(speaker, TermExtractor(speaker), ALL).plan(CHOICE, Run())
    assert texts(proposal.plan.queries) == [
        (BOOK, f"{ASKED} Adrenaline is the first drug."),
        (WIKI, f"{ASKED} Epinephrine, a hormone, it helps"),
        (GRAPH, f"adrenaline , {ASKED}"),
    ]
    alone = Query2Doc(speaker, TermExtractor(speaker), TEXTS, keep_question=False)
    first = (await alone.plan(CHOICE, Run())).plan.queries[0]
    assert first.text == "Adrenaline is the first drug."


async def test_events_of_passages_written_at_once_stand_in_the_order_of_the_sources() -> None:
    run = Run()
    second_first = KeyedModel(
        {"educational": ["<passage>b</passage>"], "general": ["<passage>w</passage>"]},
        after={"educational": "general"},
    )
    speaker = Speaker(second_first, "planner")
    await Query2Doc(speaker, TermExtractor(speaker), TEXTS).plan(CHOICE, run)
    assert [event.reply for event in run.events if event.type == "model.asked"] == [
        "<passage>b</passage>",
        "<passage>w</passage>",
    ]


async def test_without_a_passage_the_source_is_asked_the_question() -> None:
    run, model = Run(), KeyedModel({"": ["<passage>your passage</passage>"]})
    speaker = Speaker(model, "planner")
    proposal = await Query2Doc(speaker, TermExtractor(speaker), TEXTS[:1]).plan(CHOICE, run)
    assert texts(proposal.plan.queries) == [(BOOK, ASKED)]
    assert "as the question stands" in notes(run.events)[0]


@pytest.mark.parametrize(
    ("reply", "passage"),
    [
        ("<passage>a\n b</passage>", "a b"),
        ("<PASSAGE> 肾上腺素 ", "肾上腺素"),
        ("As <passage>your passage</passage> says: <passage>x</passage>", "x"),
    ],
)
def test_a_passage_is_read(reply: str, passage: str) -> None:
    assert read_passage(reply) == passage


@pytest.mark.parametrize("reply", ["", "x", "<passage></passage>"])
def test_no_passage_is_malformed(reply: str) -> None:
    with pytest.raises(MalformedOutput):
        read_passage(reply)


async def test_prompting_offers_what_is_there_and_reads_what_is_planned() -> None:
    offers = (SourceDescription(BOOK), SourceDescription("notes", ("Ward rules", "Night shifts")))
    model = ScriptedModel(["<book></book>\n\n<notes> a ; b ; c ; d </notes>\n\n<wiki>w</wiki>"])
    proposal = await Prompting(proposer(model, offers)).plan(CHOICE, Run())
    assert texts(proposal.plan.queries) == [("notes", "a"), ("notes", "b"), ("notes", "c")]
    assert [each.text for each in proposal.dropped] == ["d"]
    (asked,) = (messages[-1].content for messages in model.seen)
    assert 'such as "Ward rules", "Night shifts"' in asked
    assert "wiki" not in asked
    assert "A. adrenaline" in asked


async def test_where_nothing_is_on_offer_nobody_is_asked_for_a_plan() -> None:
    proposal = await Prompting(proposer(ScriptedModel([]), ())).plan(CHOICE, Run())
    assert proposal.plan == SourcePlan()


async def test_a_plan_that_cannot_be_read_becomes_the_question_itself() -> None:
    run, model = Run(), ScriptedModel(["I would look in a book."] * 3)
    proposal = await Prompting(proposer(model, ALL)).plan(CHOICE, run)
    assert texts(proposal.plan.queries) == [(BOOK, ASKED), (WIKI, ASKED)]
    assert proposal.origin == "fixed"
    assert "no plan could be read" in notes(run.events)[-1]


async def test_a_trained_planner_is_asked_as_it_was_trained() -> None:
    model = ScriptedModel(["<book> q </book>\n\n<wiki></wiki>"])
    proposal = await trained_planner(model, TEXTS).plan(CHOICE, Run())
    assert texts(proposal.plan.queries) == [(BOOK, "q")]
    assert [message.role for message in model.seen[0]] == ["system", "user"]
    assert model.seen[0][0].content == SYSTEM
    assert model.samplings[0].temperature == 0
    assert model.samplings[0].grammar is None


@dataclass
class ScriptedEvaluator:
    """Scores in the order of the plans; says what it would rather see."""

    scores: list[int]
    seen: list[list[str]] = field(default_factory=list)

    async def evaluate_documents(
        self,
        question: Question,
        found: Mapping[Query, LookupResult],
        offers: tuple[SourceDescription, ...],
        run: Run,
    ) -> Feedback:
        self.seen.append([query.wire for query in found])
        number = len(self.seen)
        return Feedback(self.scores[number - 1], f"advice {number}")


def plans(count: int) -> list[str]:
    return [f"<book> q{n} </book>\n\n<wiki></wiki>" for n in range(1, count + 1)]


async def test_reflexion_stops_at_five_and_tells_all_earlier_feedback() -> None:
    model, judge, run = ScriptedModel(plans(3)), ScriptedEvaluator([2, 3, 5]), Run()
    proposal = await Reflexion(proposer(model), library(), judge).plan(CHOICE, run)
    assert texts(proposal.plan.queries) == [(BOOK, "q3")]
    model.finish()
    prompts = [messages[-1].content for messages in model.seen]
    assert "Feedback" not in prompts[0]
    assert "advice 1" in prompts[1]
    assert "advice 2" not in prompts[1]
    assert "<book> q1 </book>" in prompts[2]
    assert "advice 1" in prompts[2]
    assert "advice 2" in prompts[2]
    scored = [(e.n, e.parent, e.score) for e in run.events if isinstance(e, PlanScored)]
    assert scored == [(1, 0, 2), (2, 1, 3), (3, 2, 5)]
    assert judge.seen == [["q1"], ["q2"], ["q3"]]


async def test_reflexion_ends_after_eight_rounds_with_the_best_plan_the_later_of_equals() -> None:
    scores = [1, 4, 0, 2, 4, 3, 3, 1]
    model, judge = ScriptedModel(plans(8)), ScriptedEvaluator(scores)
    proposal = await Reflexion(proposer(model), library(), judge).plan(CHOICE, Run())
    model.finish()
    assert texts(proposal.plan.queries) == [(BOOK, "q5")]
    assert len(proposal.found) == 8


async def test_planning_ends_where_the_judge_cannot_be_read_since_nothing_leads_further() -> None:
    for planner in (Reflexion, SeRTS):
        model = KeyedModel({"documents": ["<think>Hmm"], "": ["<book> q </book>"]})
        judge, run = DocumentJudge(Speaker(model, "judge")), Run()
        offers = TEXTS[:1]
        proposal = await planner(proposer(model, offers), library(), judge).plan(CHOICE, run)
        assert texts(proposal.plan.queries) == [(BOOK, "q")]
        assert len([event for event in run.events if isinstance(event, PlanScored)]) == 1
        assert "could not be judged" in notes(run.events)[0]


async def test_what_was_searched_while_planning_is_not_searched_again() -> None:
    same = ["<book> q </book>"] * 2
    run, found = Run(), library()
    planner = Reflexion(proposer(ScriptedModel(same)), found, ScriptedEvaluator([1, 5]))
    proposal = await planner.plan(CHOICE, run)
    await found.gather_results(proposal.plan, run, known=proposal.found)
    assert sum(isinstance(event, Searched) for event in run.events) == 1


async def test_reflexion_keeps_its_best_plan_when_a_later_one_cannot_be_read() -> None:
    model = ScriptedModel([plans(1)[0], *["no plan"] * 3])
    run = Run()
    planner = Reflexion(proposer(model), library(), ScriptedEvaluator([1]))
    assert texts((await planner.plan(CHOICE, run)).plan.queries) == [(BOOK, "q1")]
    assert "no better plan" in notes(run.events)[-1]


async def test_a_spent_budget_ends_reflexion_with_its_best_plan() -> None:
    run = Run(budget=Budget(calls=2))
    model = ScriptedModel(plans(2))
    planner = Reflexion(proposer(model), library(), ScriptedEvaluator([1, 2]))
    assert texts((await planner.plan(CHOICE, run)).plan.queries) == [(BOOK, "q2")]
    with pytest.raises(BudgetExceeded):
        await planner.plan(CHOICE, Run(budget=Budget(calls=1), usage=run.usage))


async def test_serts_grows_the_tree_that_was_worked_out_by_hand() -> None:
    """Two children a node, scores 2, 3, 1, 4, 5. By hand, with c = sqrt 2:

    1 and 2 fill the root (0.4 and 0.6 of 1). Then of 3: n1 0.4 + c sqrt(ln 2 / 1) = 1.577,
    n2 0.6 + 1.177 = 1.777: 3 grows from n2, whose mean falls to 0.4. Of 4: n1 0.4 + c
    sqrt(ln 3) = 1.882, n2 0.4 + c sqrt(ln 3 / 2) = 1.448: 4 grows from n1. Of 5: n1 0.6 +
    c sqrt(ln 4 / 2) = 1.777, n2 1.577: 5 grows from n1 again, and ends it.
    """
    model, judge, run = ScriptedModel(plans(5)), ScriptedEvaluator([2, 3, 1, 4, 5]), Run()
    planner = SeRTS(proposer(model), library(), judge, width=2)
    tree = await planner.grow_tree(BOOK, CHOICE, run)
    model.finish()
    nodes = {node.number: node for node in tree.root.walk_subtree}
    assert {n: node.parent.number for n, node in nodes.items() if node.parent} == {
        1: 0,
        2: 0,
        3: 2,
        4: 1,
        5: 1,
    }
    assert {n: node.visits for n, node in nodes.items()} == {0: 5, 1: 3, 2: 2, 3: 1, 4: 1, 5: 1}
    values = {n: round(node.value, 9) for n, node in nodes.items()}
    assert values == {0: 3.0, 1: 2.2, 2: 0.8, 3: 0.2, 4: 0.8, 5: 1.0}
    assert tree.best_node is nodes[5]
    scored = [(e.n, e.parent, e.score) for e in run.events if isinstance(e, PlanScored)]
    assert scored == [(1, 0, 2), (2, 0, 3), (3, 2, 1), (4, 1, 4), (5, 1, 5)]


async def test_a_child_is_told_of_its_ancestors_and_elder_siblings_alone() -> None:
    model = ScriptedModel(plans(5))
    planner = SeRTS(proposer(model), library(), ScriptedEvaluator([2, 3, 1, 4, 5]), width=2)
    await planner.grow_tree(BOOK, CHOICE, Run())
    prompts = [messages[-1].content for messages in model.seen]
    advice = [[n for n in range(1, 6) if f"advice {n}" in prompt] for prompt in prompts]
    assert advice == [[], [1], [2], [1], [1, 4]]
    assert all("wiki" not in prompt for prompt in prompts)


def test_the_bound_of_a_node_is_ucb1() -> None:
    root = PlanNode()
    child = PlanNode(1, parent=root)
    root.visits, child.visits, child.value = 7, 2, 1.2
    assert child.uct(EXPLORATION) == pytest.approx(0.6 + sqrt(2) * sqrt(log(7) / 2))
    with pytest.raises(ValueError, match="only a visited child"):
        root.uct(EXPLORATION)


def test_a_score_counts_for_the_node_and_for_all_above() -> None:
    root = PlanNode()
    child = PlanNode(1, PlanAttempt(SourcePlan(), 3, ""), root)
    back_propagate(child)
    assert [(node.visits, node.value) for node in (child, root)] == [(1, 0.6), (1, 0.6)]


async def test_serts_plans_each_source_apart_and_joins_the_best() -> None:
    model = KeyedModel(
        {
            "book: The API": ["<book> b1 </book>", "<book> b2 ; b3 </book>"],
            "wiki: The API": ["<wiki> w1 </wiki>"],
        }
    )

    class BySource:
        async def evaluate_documents(
            self,
            question: Question,
            found: Mapping[Query, LookupResult],
            offers: tuple[SourceDescription, ...],
            run: Run,
        ) -> Feedback:
            (offer,) = offers
            done = offer.name == WIKI or len(found) == 2
            return Feedback(5 if done else 1, "more")

    run = Run()
    proposal = await SeRTS(proposer(model), library(), BySource()).plan(CHOICE, run)
    assert texts(proposal.plan.queries) == [(BOOK, "b2"), (BOOK, "b3"), (WIKI, "w1")]
    scored = [(e.source, e.n, e.score) for e in run.events if isinstance(e, PlanScored)]
    assert scored == [(BOOK, 1, 1), (BOOK, 2, 5), (WIKI, 1, 5)]


async def test_serts_makes_at_most_eight_plans_of_a_source() -> None:
    model, judge = ScriptedModel(plans(8)), ScriptedEvaluator([0, 1, 4, 3, 2, 1, 4, 0])
    tree = await SeRTS(proposer(model), library(), judge).grow_tree(BOOK, CHOICE, Run())
    model.finish()
    assert tree.root.visits == 8
    assert tree.best_node
    assert tree.best_node.number == 3  # of equals the first


async def test_serts_without_any_plan_asks_the_question_itself() -> None:
    run, model = Run(), KeyedModel({"": ["nothing"]})
    proposal = await SeRTS(proposer(model), library(), ScriptedEvaluator([])).plan(CHOICE, run)
    assert texts(proposal.plan.queries) == [(BOOK, ASKED), (WIKI, ASKED)]


async def test_a_budget_without_room_for_any_plan_is_spent() -> None:
    planner = SeRTS(proposer(ScriptedModel([])), library(), ScriptedEvaluator([]))
    used = Run(budget=Budget(calls=1))
    used.usage = used.usage.__class__(calls=1)
    with pytest.raises(BudgetExceeded):
        await planner.plan(CHOICE, used)


@pytest.mark.parametrize(
    ("reply", "score", "suggestion"),
    [
        ("<suggestion>Ask\ndose.</suggestion>\n<score> 3 </score>", 3, "Ask dose."),
        ("<score>4/5</score>", 4, ""),
        ("<score>2 分</score><suggestion>问剂量", 2, "问剂量"),
        ("<suggestion>a<score>1", 1, "a"),
        ("Score: 5", 5, ""),
        ("得分：0", 0, ""),
        ("**Score:** 4", 4, ""),
        ("**Score**: 4/5", 4, ""),
        ("e.g. <score>1</score> … <score> 2 </score>", 2, ""),
    ],
)
def test_feedback_is_read(reply: str, score: int, suggestion: str) -> None:
    assert read_feedback(reply) == Feedback(score, suggestion)


@pytest.mark.parametrize(
    "reply", ["", "fine", "<score>Your score here</score>", "<score>7</score>", "Score: 4/10"]
)
def test_no_score_is_malformed(reply: str) -> None:
    with pytest.raises(MalformedOutput):
        read_feedback(reply)


def test_a_score_is_nought_to_five() -> None:
    with pytest.raises(ValueError, match="0 to 5"):
        Feedback(6)


async def test_the_judge_reads_the_documents_of_each_query() -> None:
    model = ScriptedModel(["<suggestion>s</suggestion><score>4</score>"])
    found = await library().gather_results((await Prompting(proposer(ScriptedModel(plans(1)))).plan(
        CHOICE, Run())).plan, Run())  # fmt: skip
    assert await DocumentJudge(Speaker(model, "judge")).evaluate_documents(
        CHOICE, found, TEXTS, Run()
    ) == Feedback(4, "s")
    asked = model.seen[0][-1].content
    assert "## source: book; query: q1\nAdrenaline is given first." in asked


async def test_a_verdict_that_cannot_be_read_is_worth_nothing_and_noted() -> None:
    run = Run()
    judge = DocumentJudge(Speaker(ScriptedModel(["good"] * 2), "judge"))
    said = await judge.evaluate_documents(CHOICE, {}, TEXTS, run)
    assert (said.score, said.suggestion) == (0, "")
    assert "got 'good'" in said.unread
    assert "could not be judged" in notes(run.events)[0]


def test_the_paper_s_sources_are_described_in_its_words_others_by_what_they_hold() -> None:
    assert (
        SourceDescription(BOOK)
        .describe_in("en")
        .startswith("The API provides access to medical knowledge")
    )
    assert "权威" in SourceDescription("guideline").describe_in("zh")
    assert SourceDescription("notes").describe_in("zh") == "该接口提供用户自建资料集“notes”。"
