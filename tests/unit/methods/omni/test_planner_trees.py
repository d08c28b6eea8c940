"""The searches of a SeRTS tree: those of every node are kept."""

from osler.llm.core.ask import Speaker
from osler.methods.omni.planners import SourceDescription
from osler.methods.omni.planners.feedback import Feedback, SeRTS
from osler.methods.omni.planners.single import Proposer
from osler.methods.omni.retriever import PlannedRetriever
from osler.sources.catalogue import BOOK
from osler.trace import Run
from osler.types import Passage, Question
from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever

FACT = Passage("book:a#0", "Adrenaline is given first.", BOOK, "Anaphylaxis")


class Unmoved:
    """An evaluator that gives every plan the same low score."""

    async def evaluate_documents(self, *_: object) -> Feedback:
        return Feedback(2, "go on")


async def test_what_each_node_found_stays_found() -> None:
    words = ("anaphylaxis", "adrenaline", "first drug")
    replies = [f"<book>{word}</book>" for word in words]
    proposer = Proposer(Speaker(ScriptedModel(replies), "planner"), (SourceDescription(BOOK),))
    retriever = PlannedRetriever({BOOK: ScriptedRetriever({"": [FACT]})})
    tree = await SeRTS(proposer, retriever, Unmoved(), rounds=3).grow_tree(
        BOOK, Question("q", "Which drug is first?"), Run()
    )
    assert [query.wire for query in tree.found] == list(words)
