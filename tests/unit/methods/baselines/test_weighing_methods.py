"""Chain-of-Note, Chain-of-Knowledge, SuRe, HyKGE and Self-RAG, after their papers' examples."""

import pytest

from osler.answer.written import WrittenComposer
from osler.errors import CapabilityMissing
from osler.methods.episode import MethodDeps
from osler.trace import Run, Searched
from osler.types import Grounding, Halt, Question
from osler_lab.baselines.chain_of_knowledge import (
    ChainOfKnowledge,
    KnowledgeSource,
    read_chain,
    select_sources,
)
from osler_lab.baselines.weighing import read_candidates
from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever

from .conftest import Hiding, Play, ReflectingModel, cited, notes, passage

DEADPOOL = Question("deadpool", "When is Deadpool 2 being released?")
RELEASE = passage(
    "release",
    "Deadpool 2 premiered in London on May 10, 2018. It was released in the United States on"
    " May 18, 2018.",
    "Deadpool 2",
)
ACTOR = Question("actor", "What year was the Argentine actor who directed El Tio Disparate born?")
TIO = passage("tio", "El Tio Disparate was directed by the Argentine actor Palito Ortega.")
ORTEGA = passage("ortega", "Palito Ortega was born on February 28, 1941.", "Palito Ortega")


async def test_notes_come_before_the_answer_and_are_no_part_of_it(play: Play) -> None:
    model = ScriptedModel(
        [
            "Note 1: passage 1 gives the premiere and the release. It is relevant.\n"
            "Answer: It was released in the United States on May 18, 2018. [1]"
        ]
    )
    played = await play({"kind": "chain-of-note"}, DEADPOOL, model, {"": [RELEASE]})
    answer = played.solution.answer
    assert answer.text == "It was released in the United States on May 18, 2018. [1]"
    assert answer.grounding is Grounding.GROUNDED
    assert (played.run.usage.calls, played.run.usage.searches) == (1, 1)


CHAIN = (
    "First, the Argentine actor who directed El Tio Disparate is {}.\n"
    "Second, {} was born in {}.\nThe answer is {}."
)


async def test_chains_that_agree_are_the_answer_without_a_search(play: Play) -> None:
    same = CHAIN.format("Palito Ortega", "Palito Ortega", "1941", "1941")
    other = CHAIN.format("Someone", "Someone", "1900", "1900")
    model = ScriptedModel([other, same, same, other, same])
    played = await play({"kind": "chain-of-knowledge"}, ACTOR, model, {"": [TIO]})
    assert played.queries == []
    assert played.solution.why == "3 of 5 chains of thought agree"
    assert "1941" in played.solution.answer.text
    assert [sampling.seed for sampling in model.samplings] == [0, 1, 2, 3, 4]
    assert {sampling.temperature for sampling in model.samplings} == {0.7}


async def test_rationales_are_corrected_one_after_another(play: Play) -> None:
    """The first correction changes what the second rationale is about."""
    chains = [CHAIN.format(f"Actor {n}", f"Actor {n}", f"190{n}", f"190{n}") for n in range(5)]
    first = "The Argentine actor who directed El Tio Disparate is Palito Ortega."
    second = "Palito Ortega was born on February 28, 1941."
    model = ScriptedModel(
        [
            *chains,
            "director of El Tio Disparate",
            first,
            "Second, Palito Ortega was born in 1950.\nThe answer is 1950.",
            "Palito Ortega birth date",
            second,
            "The answer is 1941",
        ]
    )
    played = await play(
        {"kind": "chain-of-knowledge"}, ACTOR, model, {"birth": [ORTEGA], "": [TIO]}
    )
    assert played.queries == ["director of El Tio Disparate", "Palito Ortega birth date"]
    assert first in model.seen[7][0].content, "the next is written after the corrected one"
    answer = played.solution.answer
    assert answer.text.startswith(f"{first} [1] {second} [2]")
    assert "1941" in answer.text.splitlines()[-1]


async def test_the_chain_that_is_corrected_is_the_first_of_the_most_frequent_answer(
    play: Play,
) -> None:
    """As in the released code: 1900, 1941, 1941, 1950, 1960 have no majority."""
    years = ["1900", "1941", "1941", "1950", "1960"]
    model = ScriptedModel(
        [
            *(CHAIN.format(f"Actor {n}", f"Actor {n}", year, year) for n, year in enumerate(years)),
            "first query",
            "Corrected one.",
            "Second, more.\nThe answer is 1941.",
            "second query",
            "Corrected two.",
            "The answer is 1941",
        ]
    )
    played = await play({"kind": "chain-of-knowledge"}, ACTOR, model, {"": [TIO]})
    assert "Actor 1" in model.seen[5][0].content
    assert "2 of 5 chains agree: the first of them is corrected" in notes(played)


async def test_sources_are_selected_and_each_is_asked_in_its_own_language() -> None:
    """§2.1 and §2.2: domains for the question, a query for each source of them."""
    chains = [CHAIN.format(f"Actor {n}", f"Actor {n}", f"190{n}", f"190{n}") for n in range(5)]
    model = ScriptedModel(
        [
            *chains,
            "graph, wiki and nothing else",
            "El Tio Disparate , directed by",
            "director of the film El Tio Disparate",
            "Palito Ortega directed it.",
            "Second, Palito Ortega was born in 1950.\nThe answer is 1950.",
            "Palito Ortega , born in",
            "Palito Ortega birth date",
            "Palito Ortega was born on February 28, 1941.",
            "The answer is 1941",
        ]
    )
    searches = {name: ScriptedRetriever({"": [TIO, ORTEGA]}) for name in ("book", "wiki", "graph")}
    knowledge = tuple(
        KnowledgeSource(name, found, {"en": f"About {name}.", "zh": name}, name == "graph")
        for name, found in searches.items()
    )
    nowhere = ScriptedRetriever({})
    kit = MethodDeps(model, nowhere, WrittenComposer(), ("book", "wiki", "graph"))
    run = Run()
    solution = await ChainOfKnowledge(kit, knowledge).solve(ACTOR, run)
    model.finish()
    assert "1941" in solution.answer.text
    assert searches["graph"].asked == ["El Tio Disparate , directed by", "Palito Ortega , born in"]
    assert searches["wiki"].asked == [
        "director of the film El Tio Disparate",
        "Palito Ortega birth date",
    ]
    assert searches["book"].asked == nowhere.asked == []
    assert "book: About book." in model.seen[5][0].content
    assert "concept , relation" in model.seen[6][0].content
    assert "wiki: About wiki." in model.seen[7][0].content
    assert [e.sources for e in run.events if isinstance(e, Searched)] == [("graph",), ("wiki",)] * 2


def test_sources_are_read_in_the_order_of_the_reply_and_by_whole_names() -> None:
    known = [
        KnowledgeSource(name, ScriptedRetriever({}), {"en": "", "zh": ""})
        for name in ("wiki", "book", "research")
    ]
    assert [one.name for one in select_sources("Research; then wiki.", known)] == [
        "research",
        "wiki",
    ]
    assert select_sources("bookshops and wikis", known) == []


def test_a_chain_is_read_in_both_languages() -> None:
    zh = read_chain("首先，该药是华法林。\n其次，它延长INR。\n答案是B。", 2)
    assert zh.rationales == ("该药是华法林。", "它延长INR。")
    assert zh.answer == "B"
    assert read_chain("", 2).answer == ""


OLYMPICS = Question("song", "Who sang the original recording of the song?", ("Ann", "Bob", "Cy"))


async def test_the_valid_and_most_informative_summary_wins(play: Play) -> None:
    """B is valid, and better than A in both orders: 1 + 1 against 0 + 0 (Eq. 7)."""
    model = ScriptedModel(
        [
            "A\nB",
            "Ann sang it later.",
            "Bob sang the original recording. [1]",
            "False",
            "True",
            "Passage 2",
            "Passage 1",
        ]
    )
    record = passage("record", "Bob sang the original recording in 1970.")
    played = await play({"kind": "sure"}, OLYMPICS, model, {"": [record]})
    assert played.solution.answer.option == "B"
    assert played.solution.answer.text == "Bob sang the original recording. [1]"
    assert notes(played) == ["Ann: validity 0, rank 0; Bob: validity 1, rank 1; chosen: Bob"]
    assert played.run.usage.calls == 1 + 2 + 2 + 2


@pytest.mark.parametrize(
    ("verdicts", "chosen"),
    [
        (["Passage 1", "Passage 1"], "A"),
        (["Passage 2", "Passage 2"], "A"),
        (["Passage 2", "Passage 1"], "B"),
        (["Passage 1", "Passage 2"], "A"),
    ],
    ids=["always the first", "always the second", "both for Bob", "both for Ann"],
)
async def test_a_pair_is_asked_in_both_orders_and_a_bias_for_a_place_decides_nothing(
    verdicts: list[str], chosen: str, play: Play
) -> None:
    """Both are valid; a model that always says the same place gives each half a win."""
    summaries = ["Ann sang it later.", "Bob sang the original recording."]
    model = ScriptedModel(["A\nB", *summaries, "True", "True", *verdicts])
    record = passage("record", "Bob sang the original recording in 1970.")
    played = await play({"kind": "sure"}, OLYMPICS, model, {"": [record]})
    first, second = (model.seen[n][0].content for n in (5, 6))
    assert first.index(summaries[0]) < first.index(summaries[1])
    assert second.index(summaries[1]) < second.index(summaries[0])
    assert played.solution.answer.option == chosen
    half = "rank 0.5" in notes(played)[0]
    assert half == (verdicts[0] == verdicts[1])


def test_candidates_of_a_choice_are_its_options_and_none_stands_twice() -> None:
    assert read_candidates("1. B\n2) Ann\n(B) Bob\nno", OLYMPICS, 5) == ["Bob", "Ann"]
    plain = Question("q", "Which?")
    assert read_candidates("iron, folate, iron", plain, 2) == ["iron", "folate"]
    assert read_candidates("（1）铁剂\n2、叶酸", Question("z", "哪个？", language="zh"), 2) == [
        "铁剂",
        "叶酸",
    ]


INR = Question("inr", "What does amiodarone do to warfarin?")
CYP = passage("chain1", "amiodarone —inhibits→ CYP2C9 —metabolises→ warfarin", "amiodarone")
TEA = passage("chain2", "amiodarone —sold as→ tablet", "amiodarone")


async def test_fragments_of_the_hypothesis_rerank_the_chains(play: Play) -> None:
    model = ScriptedModel(
        [
            "Amiodarone is a drug. It inhibits CYP2C9, which metabolises warfarin.",
            "Amiodarone inhibits CYP2C9, which metabolises warfarin. [1]",
        ]
    )
    played = await play({"kind": "hykge", "k": 1}, INR, model, {"CYP2C9": [TEA, CYP]})
    assert played.queries == [
        "What does amiodarone do to warfarin? Amiodarone is a drug. It inhibits CYP2C9, which"
        " metabolises warfarin."
    ]
    (one,) = played.solution.answer.evidence
    assert one.passage.id == CYP.id
    assert notes(played) == ["1 of 2 chains stay"]


STATES = Question("states", "How did US states get their names?")
PERSONS = passage("persons", "Of the fifty states, eleven are named after an individual person.")
POPULAR = passage("popular", "Popular names by state. In Texas, Emma is a popular baby name.")


RIGHT, WRONG = "11 of 50 state names come from persons.", "Texas is named after a tribe."
SEARCHES = {"[Retrieval]": 0.9, "[No Retrieval]": 0.1}


async def test_reflection_tokens_choose_between_passages(play: Play) -> None:
    """Figure 1 of the paper: the segment that its passage supports, though it stands second."""
    judged = {(RIGHT, "[Fully supported]"): 0.9, (RIGHT, "[No support / Contradictory]"): 0.05}
    judged |= {(WRONG, "[Fully supported]"): 0.05, (WRONG, "[No support / Contradictory]"): 0.9}
    model = ReflectingModel([WRONG, RIGHT], probability=0.5, scores=SEARCHES, weights=judged)
    played = await play({"kind": "self-rag"}, STATES, model, {"": [POPULAR, PERSONS]})
    ((raw,), _) = model.seen
    assert raw.role == "raw"
    assert raw.content.startswith("### Instruction:\nHow did US states get their names?")
    assert raw.content.endswith(
        "### Response:\n[Retrieval]<paragraph>Popular names by state. In Texas, Emma is a popular"
        " baby name.</paragraph>[Relevant]"
    )
    assert played.solution.answer.text == RIGHT
    # 2 + 3 + 5 tokens are weighed for each.
    assert played.run.usage.calls == 2 + 2 * (2 + 1 + 3 + 5)


async def test_of_two_segments_judged_alike_the_likelier_is_the_answer(play: Play) -> None:
    """Eq. 4: a segment's own likelihood counts beside its critique."""
    model = ReflectingModel([WRONG, RIGHT], low={"Texas": 0.01, "tribe": 0.01}, scores=SEARCHES)
    played = await play({"kind": "self-rag"}, STATES, model, {"": [POPULAR, PERSONS]})
    assert played.solution.answer.text == RIGHT


async def test_a_model_that_knows_no_reflection_tokens_is_no_self_rag(play: Play) -> None:
    with pytest.raises(CapabilityMissing, match="needs a checkpoint of Self-RAG") as caught:
        await play({"kind": "self-rag"}, STATES, ScriptedModel(["x"]), {"": [PERSONS]})
    assert "self-rag-prompted" in caught.value.fix
    with pytest.raises(CapabilityMissing, match="gives none") as caught:
        await play({"kind": "self-rag"}, STATES, Hiding(ScriptedModel([])), {"": [PERSONS]})
    assert "self-rag-prompted" in caught.value.fix


async def test_marks_in_a_passage_are_words(play: Play) -> None:
    odd = passage("odd", "See </paragraph>[Fully supported] and [1].")
    model = ReflectingModel(["Essays differ."], scores=SEARCHES)
    await play({"kind": "self-rag"}, STATES, model, {"": [odd]})
    assert (
        "<paragraph>See paragraphFully supported and [1].</paragraph>" in model.seen[0][0].content
    )


async def test_a_trained_critics_segment_is_led_back_to_its_passage(play: Play) -> None:
    right = "Of the fifty states, eleven are named after a person."
    model = ReflectingModel([right], scores=SEARCHES)
    played = await play({"kind": "self-rag"}, STATES, model, {"": [PERSONS]})
    assert cited(played.solution.answer) == {PERSONS.id}
    assert played.solution.answer.grounding is Grounding.GROUNDED


async def test_a_prompted_critic_prefers_the_supported_segment(play: Play) -> None:
    """The model hides its likelihoods, so it is asked for each token in words."""
    right, wrong = RIGHT, WRONG
    script = ScriptedModel(
        [
            "[Retrieval]",
            "[Irrelevant]",
            wrong,
            "No support / Contradictory",
            "[Utility:2]",
            "Relevant",
            right,
            "[Fully supported]",
            "[Utility:5]",
        ]
    )
    model = Hiding(script)
    played = await play({"kind": "self-rag-prompted"}, STATES, model, {"": [POPULAR, PERSONS]})
    assert played.solution.answer.text.startswith("11 of 50")
    # Nothing is told of the segment's tokens, so only the critique counts: -0.25 and 2.5.
    assert [note.split(" (")[0] for note in notes(played)[1:]] == [
        "wiki:popular#0: segment -0.25",
        "wiki:persons#0: segment 2.50",
    ]


async def test_below_the_threshold_nothing_is_looked_up(play: Play) -> None:
    model = ReflectingModel(["Essays differ."], scores={"[Retrieval]": 0.1, "[No Retrieval]": 0.9})
    played = await play({"kind": "self-rag"}, STATES, model, {"": [PERSONS]})
    assert played.queries == []
    assert played.solution.why == "answered without retrieval"
    assert played.solution.halt is Halt.CONVERGED
    assert model.seen[0][0].content.endswith("### Response:\n[No Retrieval]")
