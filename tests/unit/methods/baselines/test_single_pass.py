"""Methods of one pass: the model alone, with a chain of thought, with one search."""

from dataclasses import replace

from osler.answer import NOT_SEARCHED, NOTHING_SAID, Composer
from osler.answer.extractive import ExtractiveComposer
from osler.answer.gate import EvidenceGate
from osler.answer.written import WrittenComposer
from osler.errors import SourceUnavailable
from osler.methods.episode import Episode, MethodDeps
from osler.methods.single_pass import ChainOfThought, Direct, RetrieveAndRead, fixed_plan
from osler.retrieve.relevance import OverlapRelevance
from osler.trace import Asked, PlannedQuery, Retrieved, Run, SourcesPlanned
from osler.types import Grounding, Halt, Hit, Passage, Question, Retriever
from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever

OPEN = Question("q", "Which drug treats anaphylaxis first?")
CHOICE = Question("q", OPEN.text, ("aspirin", "adrenaline"))
PASSAGE = Passage(
    "book:a#0", "Adrenaline is the drug that treats anaphylaxis first.", "book", "Help"
)
GATE = EvidenceGate(OverlapRelevance())
QUOTING = ExtractiveComposer(GATE)


def retrieve_and_read(
    model: ScriptedModel, found: Retriever, composer: Composer | None = None
) -> RetrieveAndRead:
    return RetrieveAndRead(MethodDeps(model, found, composer or WrittenComposer(), ("book",), k=10))


EPISODE_DEPS = MethodDeps(ScriptedModel([]), ScriptedRetriever({}), QUOTING, ())


def found_text(name: str, text: str) -> Hit:
    return Hit(Passage(f"book:{name}#0", text, "book", name), 1.0, 1, "q", "lexical")


def test_passages_that_do_not_fit_into_a_prompt_are_said_to_be_unread() -> None:
    episode = Episode(EPISODE_DEPS, OPEN, Run())
    episode.keep_hits([found_text("a", "short"), found_text("b", "x" * 15_000)])
    assert len(episode.list_documents()) == 2
    assert not episode.run.unread
    episode.keep_hits([found_text("c", "x" * 15_000)])
    assert len(episode.list_documents()) == 2
    assert episode.run.unread


def test_a_passage_that_was_not_kept_has_no_other_s_number() -> None:
    episode = Episode(EPISODE_DEPS, OPEN, Run())
    first, second, other = (found_text(name, "short") for name in "abc")
    episode.keep_hits([first, second])
    shown = episode.list_documents([second, other])
    assert [one.partition(" ")[0] for one in shown] == ["[2]", "[3]"]


async def test_the_model_alone_is_never_grounded() -> None:
    model = ScriptedModel(["Adrenaline comes first. <answer>B</answer>"])
    solution = await Direct(model, WrittenComposer()).solve(CHOICE, Run())
    assert solution.answer.option == "B"
    assert solution.answer.grounding is Grounding.UNGROUNDED
    assert solution.halt is Halt.CONVERGED


async def test_a_model_that_must_not_word_medicine_refuses_an_open_question() -> None:
    model = ScriptedModel([])
    solution = await Direct(model, QUOTING).solve(OPEN, Run())
    assert solution.halt is Halt.REFUSED
    assert solution.answer.grounding is Grounding.ABSTAINED
    assert solution.answer.note == NOT_SEARCHED["en"]
    assert model.seen == [], "nobody pays for a draft that nobody reads"


async def test_a_chain_of_thought_without_a_writer_says_that_nothing_was_searched() -> None:
    asked = replace(OPEN, language="zh")
    solution = await ChainOfThought(ScriptedModel(["Adrenaline."]), QUOTING).solve(asked, Run())
    assert solution.halt is Halt.REFUSED
    assert solution.answer.note == NOT_SEARCHED["zh"]


async def test_a_writing_model_without_an_answer_is_not_said_to_be_missing() -> None:
    for method in (Direct, ChainOfThought):
        model = ScriptedModel([NOTHING_SAID["en"]])
        solution = await method(model, WrittenComposer()).solve(OPEN, Run())
        assert solution.halt is Halt.NO_EVIDENCE
        assert solution.answer.note == "The model declined to answer."
        assert solution.why == "the model declined to answer (no evidence was requested)"


async def test_an_option_is_weighed_after_the_chain_of_thought() -> None:
    model = ScriptedModel(["It constricts vessels."], scores={"adrenaline": 0.9})
    composer = ExtractiveComposer(GATE, model)
    run = Run()
    solution = await ChainOfThought(model, composer).solve(CHOICE, run)
    assert solution.answer.option == "B"
    kinds = [event.kind for event in run.events if isinstance(event, Asked)]
    assert kinds == ["complete", "score", "score"]


async def test_one_search_feeds_one_reading() -> None:
    model = ScriptedModel(["Adrenaline treats anaphylaxis first [1]."])
    found = ScriptedRetriever({"": [PASSAGE]})
    run = Run()
    rag = retrieve_and_read(model, found)
    solution = await rag.solve(OPEN, run)
    assert found.asked == [OPEN.text]
    assert "[1] Help: Adrenaline" in model.seen[0][0].content
    assert solution.answer.grounding is Grounding.GROUNDED
    assert run.usage.searches == 1


async def test_finding_nothing_is_an_honest_end_without_a_model_call() -> None:
    model = ScriptedModel([])
    rag = RetrieveAndRead(
        MethodDeps(model, ScriptedRetriever({}), WrittenComposer(), ("book",), k=10)
    )
    solution = await rag.solve(OPEN, Run())
    assert solution.halt is Halt.NO_EVIDENCE
    assert solution.why == "nothing was found"
    assert solution.answer.note == NOTHING_SAID["en"]


async def test_passages_that_do_not_answer_are_not_called_nothing() -> None:
    model = ScriptedModel(["The evidence does not say."])
    rag = RetrieveAndRead(
        MethodDeps(model, ScriptedRetriever({"": [PASSAGE]}), WrittenComposer(), ("book",), k=10)
    )
    solution = await rag.solve(OPEN, Run())
    assert solution.halt is Halt.NO_EVIDENCE
    assert solution.why == "passages were found, but none answers the question"


async def test_a_source_that_is_down_is_said_and_not_an_empty_result() -> None:
    class Down:
        async def search(self, query: str, *, k: int) -> list[Hit]:
            raise SourceUnavailable("book cannot be read")

    run = Run()
    rag = retrieve_and_read(ScriptedModel([]), Down(), QUOTING)
    solution = await rag.solve(OPEN, run)
    assert solution.why == "a source was down: book cannot be read"
    assert [e.failed for e in run.events if isinstance(e, Retrieved)] == [("book cannot be read",)]


def test_the_plan_of_a_method_that_plans_nothing_is_the_question_itself() -> None:
    assert fixed_plan(OPEN, ("book", "wiki")) == SourcesPlanned(
        (PlannedQuery("book", 0, OPEN.text), PlannedQuery("wiki", 0, OPEN.text)), "fixed"
    )
