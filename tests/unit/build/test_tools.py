"""Which tools TC-RAG is given, and that what they give is on the tape."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import ValidationError

from osler.build import Parts
from osler.build.live import record_parts, replay_parts
from osler.build.models import LoadedModel
from osler.build.tc_rag import build_machine
from osler.build.tools import carrier_for, graph_carriers
from osler.errors import BadConfig
from osler.graph import communities
from osler.graph.formats import read_graph_files
from osler.graph.store import Graph
from osler.kb.base import KnowledgeBase
from osler.llm.recording.tape import Tape
from osler.methods.kag.graph_route import GRAPH_SETS
from osler.methods.tcrag.tools import (
    DESCRIPTIONS,
    KG_CHAINS,
    KG_COMMUNITIES,
    MEDICAL_NER,
    UNIFIED,
    Observation,
    ToolCall,
    number_passages,
    register_tool,
)
from osler.retrieve.relevance import OverlapRelevance
from osler.settings import KbSettings, Role, Settings, TcRagSettings
from osler.sources.catalogue import GRAPH
from osler.trace import Noted, Popped, Pushed, Run
from osler.types import Hit, Passage, Question, Retriever
from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever

TRIPLES = "subject,predicate,object\nscurvy,treated_by,ascorbic acid\nscurvy,causes,gum bleeding\n"
QUESTION = Question("q", "How do ascorbic acid and gum bleeding hang together?")
REPLIES = [
    "Tool_Use: MEDICAL_NER",
    "Tool_Use: KG_CHAINS",
    "Tool_Use: FILTER",
    "Tool_Use: HYPOTHESIS_OUTPUT",
    "By scurvy.",
    "Conclusion: By scurvy. [1]",
]


def settings(home: Path, **strategy: object) -> Settings:
    server = {"kind": "openai", "url": "http://127.0.0.1:9/v1", "name": "m"}
    return Settings.model_validate(
        {
            "home": home,
            "kb": KbSettings(path=home / "kb"),
            "model": server,
            # The texts are scored by shares of words here, which are lower than cosines.
            "answer": {"answers_from": 0.1},
            "strategy": {"kind": "tc-rag", "metric": "off", **strategy},
        }
    )


@pytest.fixture
def with_graph(tmp_path: Path) -> Path:
    """A home with an empty knowledge base and a concept graph."""
    KnowledgeBase.create(tmp_path / "kb").close()
    (tmp_path / "triples.csv").write_text(TRIPLES)
    graph = Graph.create(tmp_path / "kb")
    graph.add(read_graph_files([tmp_path / "triples.csv"]))
    graph.load_arrays()
    graph.close()
    return tmp_path


def parts(given: Settings, sources: tuple[str, ...], replies: list[str] | None = None) -> Parts:
    ready = LoadedModel(ScriptedModel(replies or [], name="m"), constrains=False)
    models: Mapping[Role, LoadedModel] = {
        "planner": ready,
        "summariser": ready,
        "reader": ready,
    }

    def retriever(name: str, _: tuple[str, ...]) -> Retriever:
        return carrier_for(given, name) or ScriptedRetriever({})

    return Parts(
        models,
        retriever,
        OverlapRelevance(),
        OverlapRelevance(),
        sources,
        carriers=graph_carriers(given),
    )


def names(given: Settings, sources: tuple[str, ...]) -> list[str]:
    assert isinstance(given.strategy, TcRagSettings)
    machine = build_machine(given, given.strategy, parts(given, sources))
    return [tool.name for tool in machine.tools]


def test_the_names_that_can_be_set_are_those_that_are_told() -> None:
    """Those of the unified system are its own: tc-rag has no planner, and no form, to ask."""
    for name in DESCRIPTIONS:
        if name in UNIFIED:
            with pytest.raises(ValidationError, match="is not a tool"):
                TcRagSettings(tools=(name,))
        else:
            assert TcRagSettings(tools=(name,)).tools == (name,)
    with pytest.raises(ValidationError, match="'DOC_RAGS' is not a tool"):
        TcRagSettings.model_validate({"tools": "DOC_RAGS"})


class Dosage:
    """A tool of a user's own: it finds what its table has."""

    name = "DOSAGE"

    async def call_tool(self, call: ToolCall, run: Run) -> Observation:
        found = Passage("doses:1", "Scurvy: 500 mg of ascorbic acid a day.", "doses", "Doses")
        hits = (Hit(found, 1.0, 1, call.query, "doses"),)
        return Observation(number_passages(hits, call.known, call.question.language), hits)


class StartOver:
    """A composed action: it pops all that was pushed, and leaves a line."""

    name = "START_OVER"

    async def call_tool(self, call: ToolCall, run: Run) -> Observation:
        return Observation(f"Begun anew: {call.query}", pops=len(call.frames) - 1)


@pytest.fixture
def own_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("osler.methods.tcrag.tools._REGISTERED", {})
    register_tool(Dosage(), en="doses of vitamins", zh="维生素剂量")
    register_tool(StartOver(), en="forgets all and begins anew", zh="清空并重新开始")


@pytest.mark.usefixtures("own_tools")
async def test_an_action_of_one_s_own_is_taken_like_any_other(tmp_path: Path) -> None:
    given = settings(tmp_path, tools="DOSAGE,START_OVER")
    replies = [
        "Thought: It may be the liver.",
        "Tool_Use: START_OVER\nTool_Input: the gums",
        "I look it up.\nTool_Use: DOSAGE\nTool_Input: vitamin C",
        "Conclusion: 500 mg a day. [1]",
    ]
    assert isinstance(given.strategy, TcRagSettings)
    offered = parts(given, ("book",), replies)
    machine = build_machine(given, given.strategy, offered)
    run = Run()
    solution = await machine.solve(Question("q", "How much vitamin C in scurvy?"), run)
    popped = [event.kind for event in run.events if isinstance(event, Popped)]
    assert popped == ["Thought"]
    pushed = [event.text for event in run.events if isinstance(event, Pushed)]
    assert "START_OVER: Begun anew: the gums" in pushed
    assert [quoted.passage.id for quoted in solution.answer.evidence] == ["doses:1"]
    model = offered.models["planner"].model
    assert isinstance(model, ScriptedModel)
    assert "DOSAGE: doses of vitamins" in model.seen[0][0].content


@pytest.mark.usefixtures("own_tools")
def test_a_tool_of_one_s_own_takes_no_name_that_is_another_s() -> None:
    class Impostor(Dosage):
        name = "DOC_RAG"

    class Loose(Dosage):
        name = "my tool"

    for tool in (Impostor(), Loose()):
        with pytest.raises(ValueError, match="cannot name"):
            register_tool(tool, en="x", zh="x")
    with pytest.raises(ValidationError):
        TcRagSettings(tools=("UNHEARD_OF",))


def test_by_default_there_is_a_search_for_each_kind_of_source(tmp_path: Path) -> None:
    given = settings(tmp_path)
    assert names(given, ("book", "wiki", "mine")) == ["DOC_RAG", "PEDIA_RAG"]
    assert names(given, ("graph", "emr", "web")) == ["KG_RAG", "WEB_RAG", "EMR_RAG"]


def test_a_concept_graph_brings_its_chains(with_graph: Path) -> None:
    given = settings(with_graph)
    assert graph_carriers(given) == (KG_CHAINS, MEDICAL_NER, GRAPH_SETS)
    assert names(given, ("book", GRAPH)) == ["DOC_RAG", "KG_RAG", "KG_CHAINS"]
    assert names(given, ("book",)) == ["DOC_RAG"], "kb.sources leaves the graph out"
    assert carrier_for(given, "DOC_RAG") is None


async def test_communities_are_a_tool_once_they_have_been_found(with_graph: Path) -> None:
    given = settings(with_graph)
    assert KG_COMMUNITIES not in graph_carriers(given)
    with Graph.open(with_graph / "kb") as graph:
        communities.build_communities(graph)
    assert names(given, (GRAPH,)) == ["KG_RAG", "KG_CHAINS", "KG_COMMUNITIES"]
    retriever = carrier_for(given, KG_COMMUNITIES)
    assert retriever is not None
    (hit, *_) = await retriever.search("What helps in scurvy?", k=3)
    assert "ascorbic acid" in hit.passage.text


def test_named_tools_are_offered_in_that_order_helpers_too(tmp_path: Path) -> None:
    given = settings(tmp_path, tools="FILTER,DOC_RAG,MEDICAL_NER,FILTER")
    assert names(given, ("book", "wiki")) == ["FILTER", "DOC_RAG", "MEDICAL_NER"]


def test_a_named_tool_without_its_source_is_refused(tmp_path: Path) -> None:
    given = settings(tmp_path, tools=("DOC_RAG", "KG_CHAINS"))
    with pytest.raises(BadConfig, match="KG_CHAINS") as caught:
        names(given, ("book",))
    assert "DOC_RAG" in caught.value.fix


async def test_a_run_with_these_tools_replays_from_its_tape_without_the_graph(
    with_graph: Path,
) -> None:
    helpers = ("KG_CHAINS", "MEDICAL_NER", "FILTER", "HYPOTHESIS_OUTPUT")
    given = settings(with_graph, tools=helpers)
    assert isinstance(given.strategy, TcRagSettings)
    tape, live = Tape(), parts(given, (GRAPH,), list(REPLIES))
    first = Run(seed=3)
    machine = build_machine(given, given.strategy, record_parts(live, tape))
    solution = await machine.solve(QUESTION, first)
    (with_graph / "kb" / "graph.sqlite").unlink()
    again = Run(seed=3)
    played = replay_parts(tape, live.names, (GRAPH,), "", live.carriers)
    replayed = await build_machine(given, given.strategy, played).solve(QUESTION, again)
    assert (replayed, again.events) == (solution, first.events)
    observed = [e.text for e in first.events if isinstance(e, Pushed) and "Tool" in e.kind]
    assert observed[0] == "MEDICAL_NER: Medical terms: ascorbic acid; gum bleeding"
    assert "Chain: ascorbic acid" in observed[1]
    assert observed[2].startswith("FILTER: On the question: [1]")
    assert not any(isinstance(e, Noted) for e in first.events)
    assert solution.answer.evidence[0].passage.source == GRAPH
