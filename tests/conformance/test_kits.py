"""Everything that implements a Protocol passes that Protocol's kit."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from conformance import (
    BatchLikelihoodKit,
    LanguageModelKit,
    LikelihoodKit,
    RelevanceKit,
    RetrieverKit,
    SolverKit,
)
from osler.answer import Composer
from osler.answer.extractive import ExtractiveComposer
from osler.answer.gate import EvidenceGate
from osler.answer.written import WrittenComposer
from osler.errors import ModelMissing
from osler.kb.base import KnowledgeBase
from osler.llm.core.ask import Speaker
from osler.llm.core.base import BatchLikelihood, LanguageModel, Likelihood, Sampling
from osler.llm.local.gguf_files import default_gguf
from osler.llm.local.model import LlamaCpp
from osler.llm.recording import WrappedRetriever, wrap_model
from osler.llm.recording.tape import Tape
from osler.methods.episode import MethodDeps
from osler.methods.kag.boundary import GenerateThenAssess
from osler.methods.kag.depth import DepthSolver
from osler.methods.kag.executors import Calculator, Deducer
from osler.methods.kag.focus import Focuser
from osler.methods.kag.output import AnswerFinisher
from osler.methods.kag.planner import Decomposer
from osler.methods.kag.solver import Thinker
from osler.methods.omni.dossier import parse_saved_plan
from osler.methods.omni.planners import SourceDescription, SourcePlanner
from osler.methods.omni.planners.single import (
    GivenPlan,
    OriginalQuestion,
    Prompting,
    Proposer,
    Query2Doc,
    TermExtractor,
)
from osler.methods.omni.retriever import PlannedRetriever
from osler.methods.omni.solver import OmniRag, Reader
from osler.methods.single_pass import ChainOfThought, Direct, RetrieveAndRead
from osler.methods.tcrag.machine import TuringMachine
from osler.methods.tcrag.moves import AnyMove, GuidedMoves, ObservationJudge
from osler.methods.tcrag.stack import Cppl, Unmonitored
from osler.methods.tcrag.tools import DOC_RAG, PLANNED_RAG, SearchTool
from osler.methods.unified import MachineDepth, PlannedSearch, PlannedTool, StateSignal
from osler.retrieve.hybrid import HybridRetriever, LexicalRetriever
from osler.retrieve.relevance import (
    CoverageRelevance,
    EncoderRelevance,
    OverlapRelevance,
    RelevanceByLanguage,
)
from osler.trace import Solver
from osler.types import Question, Relevance, Retriever
from osler_lab.testing.scripted import HashingEncoder, ScriptedModel

NOTES = """# Anaemia

## Iron deficiency

Oral iron treats iron deficiency anaemia. It is taken once a day on an empty stomach.

## Pernicious anaemia

Injections of vitamin B12 treat pernicious anaemia. The anaemia returns when they stop.

## Sickle cell disease

Hydroxycarbamide lowers the number of crises in sickle cell anaemia.
"""


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    folder = tmp_path_factory.mktemp("kit")
    notes = folder / "notes.md"
    notes.write_text(NOTES, encoding="utf-8")
    with KnowledgeBase.create(folder / "kb") as made:
        made.add([notes], source="book")
        made.build(HashingEncoder())
        yield made


def retriever_of(kind: str, kb: KnowledgeBase) -> Retriever:
    lexical = LexicalRetriever(kb)
    retrievers: dict[str, Retriever] = {
        "lexical": lexical,
        "hybrid": HybridRetriever(kb, HashingEncoder()),
        "recording": WrappedRetriever("kit", lexical, Tape()),
    }
    return retrievers[kind]


class TestRetrievers(RetrieverKit):
    @pytest.fixture(params=["lexical", "hybrid", "recording"])
    def retriever(self, request: pytest.FixtureRequest, kb: KnowledgeBase) -> Retriever:
        return retriever_of(request.param, kb)

    @pytest.fixture
    def query(self) -> str:
        return "treat anaemia"


class TestRelevances(RelevanceKit):
    @pytest.fixture(params=["overlap", "coverage", "encoder", "by language"])
    def scorer(self, request: pytest.FixtureRequest) -> Relevance:
        encoder = EncoderRelevance(HashingEncoder())
        scorers: dict[str, Relevance] = {
            "overlap": OverlapRelevance(),
            "coverage": CoverageRelevance(lambda terms: dict.fromkeys(terms, 1.0)),
            "encoder": encoder,
            "by language": RelevanceByLanguage(encoder, OverlapRelevance()),
        }
        return scorers[request.param]


@pytest.fixture(scope="module")
def engine() -> LlamaCpp:
    try:
        return LlamaCpp(default_gguf(), name="packaged", context=2048)
    except ModelMissing as error:
        pytest.skip(f"the packaged model is not there: {error}")


@pytest.mark.model
class TestEmbeddedEngine(LanguageModelKit, BatchLikelihoodKit):
    @pytest.fixture
    def model(self, engine: LlamaCpp) -> LanguageModel:
        return engine

    @pytest.fixture
    def scorer(self, engine: LlamaCpp) -> Likelihood:
        return engine

    @pytest.fixture
    def batch(self, engine: LlamaCpp) -> BatchLikelihood:
        return engine


class TestScriptedModel(LanguageModelKit, LikelihoodKit):
    limited = False

    @pytest.fixture
    def model(self) -> LanguageModel:
        return ScriptedModel(["Vitamin C."] * 12)

    @pytest.fixture
    def scorer(self) -> Likelihood:
        return ScriptedModel([])


class TestRecordingModel(LanguageModelKit, LikelihoodKit):
    limited = False

    @pytest.fixture
    def model(self) -> LanguageModel:
        return wrap_model(ScriptedModel(["Vitamin C."] * 12), Tape())

    @pytest.fixture
    def scorer(self) -> Likelihood:
        made = wrap_model(ScriptedModel([]), Tape())
        assert isinstance(made, Likelihood)
        return made


@dataclass
class Endless(ScriptedModel):
    """Says the same thing however often it is asked."""

    replies: list[str] = field(default_factory=list)
    says: str = "Conclusion: Oral iron treats iron deficiency anaemia. [1]"

    def __post_init__(self) -> None:
        self.replies = [self.says] * 299

    def __repr__(self) -> str:
        return "Endless()"


GATE = EvidenceGate(OverlapRelevance())
TOOLS = frozenset({DOC_RAG})


def omni(
    planner: SourcePlanner, model: LanguageModel, found: Retriever, composer: Composer
) -> OmniRag:
    reader = Reader(model, composer, Sampling())
    return OmniRag(planner, PlannedRetriever({"book": found}), reader)


def unified(
    model: Endless, found: Retriever, composer: Composer, *, machine: bool, sure: bool
) -> Solver:
    """The three papers in one, planning each search and asking the boundary all that it can."""
    reader = Speaker(model, "reader")
    offers = (SourceDescription("book"), SourceDescription("wiki"))
    search = PlannedSearch(
        Prompting(Proposer(Speaker(model, "planner"), offers)), PlannedRetriever({"book": found})
    )
    signal = StateSignal(Cppl(model), 10)
    boundary = GenerateThenAssess(reader, state=signal)
    acting = TuringMachine(
        model,
        (PlannedTool(search),),
        Cppl(model),
        composer,
        AnyMove(frozenset({PLANNED_RAG})),
        sigma=10 if sure else 0.1,
        max_loop=3,
    )
    searching = DepthSolver(reader, found, boundary, Focuser(reader), turns=2, finder=search)
    return Thinker(
        Decomposer(Speaker(model, "planner")),
        MachineDepth(acting, boundary, searching) if machine else searching,
        Calculator(reader),
        Deducer(reader),
        AnswerFinisher(reader),
        composer,
    )


PLANNED = """<answer>Step1: What treats iron deficiency anaemia?
Action1: Retrieval(s=s1:disease['iron deficiency anaemia'], p=p1:treatment, o=o1:drug)
Step2: When is #1 taken?
Action2: Retrieval(s=o1, p=p2:time, o=o2:time)
Step3: Is iron deficiency anaemia treatable?
Action3: Retrieval(s=s1, p=p3:prognosis, o=o3:prognosis)
Step4: Output #1.
Action4: Output(o1)</answer>
Tool_Use: PLANNED_RAG
Tool_Input: iron deficiency"""
"""Says a plan where one is asked for, and an action where that is: every reader takes its part."""


def solver_of(kind: str, kb: KnowledgeBase) -> Solver:
    model, found = Endless(), LexicalRetriever(kb)
    quoting, writing = ExtractiveComposer(GATE, model), WrittenComposer()
    tools = (SearchTool(DOC_RAG, found, ("book",)),)
    anything = AnyMove(TOOLS)
    offers = (SourceDescription("book"), SourceDescription("graph"))
    terms = TermExtractor(Speaker(model, "planner"))
    solvers: dict[str, Solver] = {
        "direct, writing": Direct(model, writing),
        "direct, quoting": Direct(model, quoting),
        "chain of thought": ChainOfThought(model, writing),
        "rag, writing": RetrieveAndRead(MethodDeps(model, found, writing, ("book",), k=10)),
        "rag, quoting": RetrieveAndRead(MethodDeps(model, found, quoting, ("book",), k=10)),
        "tc-rag, cppl": TuringMachine(model, tools, Cppl(model), writing, anything, sigma=10),
        "tc-rag, never sure": TuringMachine(
            model, tools, Cppl(model), quoting, anything, sigma=0.1, max_loop=3
        ),
        "omni-rag, prompting": omni(
            Prompting(Proposer(Speaker(model, "planner"), offers)), model, found, writing
        ),
        "omni-rag, original": omni(OriginalQuestion(terms, offers[:1]), model, found, quoting),
        "omni-rag, query2doc": omni(
            Query2Doc(Speaker(model, "planner"), terms, offers), model, found, quoting
        ),
        "omni-rag, a plan": omni(
            GivenPlan(parse_saved_plan("<book> iron </book><wiki> iron </wiki>")),
            model,
            found,
            writing,
        ),
        "unified, sure": unified(model, found, writing, machine=True, sure=True),
        "unified, never sure": unified(model, found, quoting, machine=True, sure=False),
        "unified, a plan": unified(Endless(says=PLANNED), found, writing, machine=True, sure=True),
        "unified, no machine": unified(model, found, quoting, machine=False, sure=True),
        "unified, no machine, a plan": unified(
            Endless(says=PLANNED), found, writing, machine=False, sure=True
        ),
        "tc-rag, guided": TuringMachine(
            model,
            tools,
            Unmonitored(),
            quoting,
            GuidedMoves(anything, ObservationJudge(GATE)),
            sigma=1,
            max_loop=3,
        ),
    }
    return solvers[kind]


class TestSolvers(SolverKit):
    @pytest.fixture(
        params=[
            "direct, writing",
            "direct, quoting",
            "chain of thought",
            "rag, writing",
            "rag, quoting",
            "omni-rag, prompting",
            "omni-rag, original",
            "omni-rag, query2doc",
            "omni-rag, a plan",
            "tc-rag, cppl",
            "tc-rag, never sure",
            "tc-rag, guided",
            "unified, sure",
            "unified, never sure",
            "unified, a plan",
            "unified, no machine",
            "unified, no machine, a plan",
        ]
    )
    def solver(self, request: pytest.FixtureRequest, kb: KnowledgeBase) -> Solver:
        return solver_of(request.param, kb)

    @pytest.fixture(params=["open", "choice", "zh"])
    def question(self, request: pytest.FixtureRequest) -> Question:
        return {
            "open": Question("o", "What treats iron deficiency anaemia?"),
            "choice": Question("c", "What treats iron deficiency anaemia?", ("iron", "rest")),
            "zh": Question("z", "缺铁性贫血如何治疗？", language="zh"),
        }[request.param]
