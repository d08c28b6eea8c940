"""Questions of several steps answered by a small concept graph, worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from osler.build.hub import read_tokens
from osler.errors import BadCalculation
from osler.graph.items import Name, Relation, SemanticType
from osler.graph.store import Graph
from osler.methods.kag.graph_route.answering import MOST_RELATIONS, GraphRoute, GraphSets
from osler.methods.kag.graph_route.sets import (
    Amount,
    Comparison,
    ConceptSet,
    GraphLookup,
    Value,
    Verdict,
    execute_plan,
)
from osler.methods.kag.graph_route.vocabulary import read_vocabulary
from osler.methods.kag.parse import read_plan
from osler.text import language_of
from osler.trace import FormsPlanned, Run
from osler.types import Grounding, Halt, Question, Solution


def named(kind: str, *names: str) -> list[Name | SemanticType]:
    return [
        item
        for name in names
        for item in (Name(f"X:{name}", name, "X", 0), SemanticType(f"X:{name}", kind))
    ]


FACTS = [
    *named("Compound", "apirol", "betanol", "corvine"),
    *named("Disease", "gammitis", "deltosis", "epsilonoma"),
    *named("Gene", "GEN1", "GEN2", "GEN3"),
    *named("Symptom", "itching", "sweating"),
    Name("X:gammitis", "GA", "X", 1),
    Name("X:gammitis", "伽马炎", "X", 1, "zh"),
    Name("X:gammitis", "gammite", "X", 1),
    Name("X:apirol", "阿皮罗", "X", 1, "zh"),
    Name("X:betanol", "贝塔醇", "X", 1, "zh"),
    Relation("X:apirol", "treats", "X:gammitis", "X"),
    Relation("X:betanol", "treats", "X:gammitis", "X"),
    Relation("X:deltosis", "may_be_treated_by", "X:betanol", "X"),
    Relation("X:corvine", "treats", "X:epsilonoma", "X"),
    Relation("X:gammitis", "presents", "X:itching", "X"),
    Relation("X:deltosis", "presents", "X:sweating", "X"),
    Relation("X:gammitis", "associates", "X:GEN1", "X"),
    Relation("X:gammitis", "associates", "X:GEN2", "X"),
    Relation("X:deltosis", "associates", "X:GEN2", "X"),
    Relation("X:apirol", "binds", "X:GEN1", "X"),
    Relation("X:GEN1", "regulates", "X:GEN2", "X"),
    Relation("X:GEN2", "regulates", "X:GEN3", "X"),
    Relation("X:gammitis", "cause_of", "X:epsilonoma", "X"),
    Relation("X:apirol", "cause_of", "X:deltosis", "X"),
]


async def solve(graph: Graph, text: str, options: tuple[str, ...] = ()) -> Solution | None:
    question = Question("q", text, options, language_of(text))
    return await GraphRoute(GraphSets(graph, read_tokens)).solve(question, Run())


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Which symptoms are shown by diseases that apirol treats?", "itching"),
        ("Which drugs treat both gammitis and deltosis?", "betanol"),
        ("Which drugs treat gammitis but not deltosis?", "apirol"),
        ("How many drugs treat gammitis?", "2"),
        ("Does apirol bind a gene that is associated with gammitis?", "Yes"),
        ("Does any drug used for deltosis also treat gammitis?", "Yes"),  # by two ways alike
        ("Which drugs treat both GA and deltosis?", "betanol"),  # names of two capitals
        ("Name a symptom of a disease for which apirol is given.", "itching"),  # one question
        ("Which drugs treat what gammitis leads to?", "corvine"),
        ("What can the diseases treated by apirol lead to?", "epsilonoma"),
        ("Which drugs treat gammitis but don't treat deltosis?", "apirol"),
        ("Which drugs treat what gammites lead to?", "corvine"),  # a name in the plural
        ("Which disease is associated with more genes, gammitis or deltosis?", "gammitis"),
        ("Which has more indications, betanol or apirol?", "betanol"),  # "has" is no symptom
        ("Which symptoms have diseases that respond to apirol?", "itching"),
        ("Is betanol used for more diseases than apirol?", "betanol"),
        ("治疗伽马炎的药物有几种？", "2"),
        ("能治伽马炎的药还能治什么病？", "deltosis"),  # not the disease itself
        ("哪些基因与伽马炎相关并被阿皮罗结合？", "GEN1"),
        ("贝塔醇治疗的疾病有哪些症状？", "itching"),
        ("伽马炎的相关基因里有没有被阿皮罗结合的？", "是"),
        ("我爸得了伽马炎，医生，治伽马炎的那种药又会引起什么毛病呢", "deltosis"),
        ("阿皮罗引起的病，本来又有哪些药能治？", "贝塔醇"),
        ("引起epsilonoma的那个病，它到底能用啥药来治", "阿皮罗"),
        ("不会治deltosis、可以用来治伽马炎的药有哪些", "阿皮罗"),
    ],
)
async def test_a_set_is_worked_out_and_each_member_is_cited(
    graph: Graph, text: str, names: str
) -> None:
    solution = await solve(graph, text)
    assert solution is not None
    assert solution.halt is Halt.CONVERGED
    assert solution.answer.text.casefold().startswith(names.casefold())
    assert solution.answer.grounding is Grounding.GROUNDED
    for one in solution.answer.evidence:
        assert graph.get_passage(one.passage.id).text == one.quote


@pytest.mark.parametrize(
    "text",
    [
        "Which drugs treat gammitis?",  # one fact: searched as any question is
        "Which drugs treat both gammitis and epsilonoma?",  # the graph states none
        "Which drugs treat gammitis in children but not deltosis?",  # what is not understood
        "Does corvine bind a gene that is associated with gammitis?",  # not stated is not "no"
        "What does apirol treat and which genes does it bind?",  # two questions
        "Which disease has more symptoms, gammitis or deltosis?",  # equal
        "What is the dose of apirol?",
        "Which drugs treat type 2 gammitis but not deltosis?",  # the number is not understood
        "Which drugs resemble a drug that resembles what apirol treats?",
        "Which symptoms are shown by diseases that apirol prevents?",
        "二甲双胍的常见不良反应是什么？",
        "阿皮罗治的病引起的药，哪种病人不能吃？",  # a relation that is named may not be passed over
        "阿皮罗是不是deltosis引起的？",  # the reverse is stated
        "哪些病不能用阿皮罗治，又会引起epsilonoma？",
        "儿童伽马炎能治的药里，哪个会引起deltosis？",  # children are not understood
        "引起epsilonoma的那个病，不能用哪些药治？",  # all others are no set
    ],
)
async def test_what_the_graph_cannot_answer_whole_is_left(graph: Graph, text: str) -> None:
    assert await solve(graph, text) is None


async def test_an_answer_is_replayed_from_its_tape_without_the_graph(graph: Graph) -> None:
    question = Question("q", "Which drugs treat gammitis but not deltosis?", (), "en")
    hits = await GraphSets(graph, read_tokens).search(question.text, k=MOST_RELATIONS)
    first = await GraphRoute(Kept(hits)).solve(question, run := Run())
    live = await GraphRoute(GraphSets(graph, read_tokens)).solve(question, Run())
    assert first == live
    (planned,) = [event for event in run.events if isinstance(event, FormsPlanned)]
    assert planned.origin == "formula"


class Kept:
    def __init__(self, hits: list) -> None:  # type: ignore[type-arg]
        self.hits = hits

    async def search(self, query: str, *, k: int) -> list:  # type: ignore[type-arg]
        return self.hits


async def test_an_option_that_the_graph_names_is_chosen(graph: Graph) -> None:
    asked = "Which drug treats gammitis but not deltosis?"
    solution = await solve(graph, asked, ("corvine", "apirol", "betanol"))
    assert solution is not None
    assert solution.answer.option == "B"
    assert await solve(graph, asked, ("one", "two")) is None


def run_plan(graph: Graph, *actions: str) -> Value:
    text = "".join(f"Step{n}: step\nAction{n}: {a}\n" for n, a in enumerate(actions, 1))
    plan = read_plan(text)
    return execute_plan(plan, GraphLookup(graph))[len(actions)]


def test_two_retrievals_of_one_unknown_are_a_join(graph: Graph) -> None:
    found = run_plan(
        graph,
        "Retrieval(s=s1:drug, p=p1:treats, o=o1:disease['gammitis'])",
        "Retrieval(s=s1, p=p2:binds, o=o2:gene['GEN1'])",
        "Output(s1)",
    )
    assert isinstance(found, ConceptSet)
    assert found.names == ("apirol",)
    assert [edge.predicate for edge in found.members["X:apirol"].edges] == ["treats", "binds"]


def test_a_constraint_keeps_what_meets_it(graph: Graph) -> None:
    found = run_plan(
        graph,
        "Retrieval(s=s1:drug, p=p1:treats, o=o1:disease['gammitis'], s.binds='GEN1')",
        "Output(s1)",
    )
    assert isinstance(found, ConceptSet)
    assert found.names == ("apirol",)


def test_numbers_verdicts_and_comparisons_keep_their_sets(graph: Graph) -> None:
    genes = "Retrieval(s=s{n}:disease['{name}'], p=p{n}:associates, o=o{n}:gene)"
    one, two = genes.format(n=1, name="gammitis"), genes.format(n=2, name="deltosis")
    count = run_plan(graph, one, "Math(content=['o1'], target='count')->m1", "Output(m1)")
    assert isinstance(count, Amount)
    assert (count.value, count.concepts.names) == (2.0, ("GEN1", "GEN2"))
    most = run_plan(graph, one, two, "Math(content=['o1', 'o2'], target='most')->m1", "Output(m1)")
    assert isinstance(most, Comparison)
    assert (most.concepts.origin, dict(most.sizes)) == ("gammitis", {"gammitis": 2, "deltosis": 1})
    shared = run_plan(
        graph, one, two, "Deduce(op=judgement, content=['o1', 'o2'], target='x')->d1", "Output(d1)"
    )
    assert isinstance(shared, Verdict)
    assert (shared.holds, shared.concepts.names) == (True, ("GEN2",))


@pytest.mark.parametrize(
    ("actions", "why"),
    [
        (("Retrieval(s=s1:drug, p=p1:treats, o=o1:disease)", "Output(o1)"), "nothing is given"),
        (("Retrieval(s=s1:drug['no'], p=p1:treats, o=o1)", "Output(o1)"), "no concept 'no'"),
        (
            (
                "Retrieval(s=s1:drug['apirol'], p=p1:treats, o=o1)",
                "Math(content=['o1'], target='square root')->m1",
                "Output(m1)",
            ),
            "no operation on sets",
        ),
        (
            (
                "Retrieval(s=s1:drug['apirol'], p=p1:treats, o=o1)",
                "Math(content=['o1'], target='difference')->m1",
                "Output(m1)",
            ),
            "needs 2 or more",
        ),
    ],
)
def test_what_cannot_be_carried_out_is_named(
    graph: Graph, actions: tuple[str, ...], why: str
) -> None:
    with pytest.raises(BadCalculation, match=why):
        run_plan(graph, *actions)


def test_a_set_that_nobody_can_check_is_refused(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("osler.methods.kag.graph_route.sets.MOST_MEMBERS", 1)
    with pytest.raises(BadCalculation, match="more than 1 concepts: ask more narrowly"):
        run_plan(graph, "Retrieval(s=s1:drug, p=p1:treats, o=o1:disease['gammitis'])", "Output(s1)")


WORDS = st.sampled_from(
    [
        "which",
        "drugs",
        "treat",
        "bind",
        "genes",
        "gammitis",
        "deltosis",
        "apirol",
        "GEN1",
        "but",
        "not",
        "and",
        "more",
        "or",
        "how",
        "many",
        "symptoms",
        "of",
        "the",
        "diseases",
        "治疗",
        "哪些",
        "药物",
        "伽马炎",
        "不",
        "更多",
    ]
)


@settings(max_examples=60)
@given(st.lists(WORDS, max_size=14).map(" ".join))
async def test_any_question_is_left_or_answered_from_the_graph(text: str) -> None:
    # The graph is made once: hypothesis tries many questions on it.
    solution = await solve(_shared_graph(), text)
    assert solution is None or solution.answer.grounding is Grounding.GROUNDED


_made: list[Graph] = []


def _shared_graph() -> Graph:
    if not _made:
        import tempfile
        from pathlib import Path

        graph = Graph.create(Path(tempfile.mkdtemp()))
        graph.add(FACTS)
        _made.append(graph)
    return _made[0]


def test_every_relation_joins_kinds_that_there_are() -> None:
    vocabulary = read_vocabulary()
    for relation in vocabulary.relations.values():
        assert {kind for ends in relation.ends for kind in ends} <= vocabulary.kinds.keys()
        assert not relation.out & relation.inverse


@pytest.mark.parametrize("asked", ["能不能用", "能不能吃", "可不可以用", "该不该用"])
async def test_whether_a_drug_may_be_used_is_not_whether_it_is_forbidden(
    tmp_path: Path, asked: str
) -> None:
    """In 能不能用 stands 不能用: the answer was "yes" to the opposite question."""
    graph = Graph.create(tmp_path / "graph")
    graph.add([*FACTS, Relation("X:apirol", "contraindicated_with_disease", "X:deltosis", "X")])
    graph.add([Name("X:deltosis", "德尔塔病", "X", 1, "zh")])
    solution = await solve(graph, f"德尔塔病人{asked}阿皮罗？")
    assert solution is not None
    assert solution.answer.text.startswith("不宜：")
    assert await solve(graph, f"德尔塔病人{asked}贝塔醇？") is None  # nothing says that it may


async def test_brand_names_and_asides_are_read(tmp_path: Path) -> None:
    """What the graph calls allopurinol is Zyloprim to who takes it."""
    graph = Graph.create(tmp_path / "graph")
    graph.add(FACTS)
    graph.add(named("Compound", "allopurinol"))
    graph.add([Relation("X:allopurinol", "interacts", "X:corvine", "X")])
    for asked in (
        "Which diseases does the drug that interacts with Zyloprim treat?",
        "My gran was grumbling, poor soul. Which diseases does the drug that interacts with"
        " Zyloprim treat?",
    ):
        solution = await solve(graph, asked)
        assert solution is not None
        assert "epsilonoma" in solution.answer.text


@pytest.mark.parametrize(
    "asked",
    [
        "One of the drugs for gammitis interacts with another drug; what does the other treat?",
        "哪些治伽马炎的药跟阿皮罗不冲突（没有相互作用）？",
    ],
)
async def test_what_words_leave_open_is_left(graph: Graph, asked: str) -> None:
    assert await solve(graph, asked) is None
