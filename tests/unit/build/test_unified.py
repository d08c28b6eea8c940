"""The unified system as the settings ask for it: each part on, off, or another one."""

from pathlib import Path

import pytest

from osler.build import Parts, roles_of
from osler.build.models import LoadedModel
from osler.build.strategies import build_solver
from osler.errors import CapabilityMissing
from osler.methods.kag.boundary import GenerateThenAssess, NoBoundary
from osler.methods.kag.depth import DepthSolver
from osler.methods.kag.planner import Decomposer, GivenForms
from osler.methods.kag.solver import Thinker
from osler.methods.omni.planners import SourceDescription
from osler.methods.omni.planners.feedback import Reflexion
from osler.methods.omni.planners.single import OriginalQuestion, Prompting
from osler.methods.tcrag.moves import GuidedMoves
from osler.methods.tcrag.stack import Unmonitored
from osler.methods.tcrag.tools import DOC_RAG, KG_FORM, KG_RAG, PLANNED_RAG
from osler.methods.unified import MachineDepth, PlannedSearch, PlannedTool
from osler.retrieve.relevance import OverlapRelevance
from osler.settings import ModelSettings, Settings, UnifiedSettings, load, read_presets
from osler.trace import Run
from osler.types import Grounding, Passage, Question
from osler_lab.evaluate.experiments import read_experiment
from osler_lab.testing.scripted import KeyedModel, ScriptedModel, ScriptedRetriever, TextOnly

FACT = Passage("book:inr#0", "Amiodarone raises the INR of patients on warfarin.", "book", "INR")
QUESTION = Question("q", "What does amiodarone do to the INR of patients on warfarin?")


def parts(model: object | None = None, sources: tuple[str, ...] = ("book", "graph")) -> Parts:
    ready = LoadedModel(model or ScriptedModel([]))  # type: ignore[arg-type]
    found = ScriptedRetriever({"": [FACT]})
    return Parts(
        {"planner": ready, "reader": ready, "summariser": ready, "judge": ready},
        lambda name, sources: found,
        OverlapRelevance(),
        OverlapRelevance(),
        sources,
        offers=tuple(SourceDescription(source) for source in sources),
    )


def settings(tmp_path: Path, *, writes: bool = True, **options: object) -> Settings:
    strategy = UnifiedSettings.model_validate(options)
    model = ModelSettings(writes="yes" if writes else "no")
    return Settings(home=tmp_path, strategy=strategy, model=model)


def built(tmp_path: Path, *, writes: bool = True, **options: object) -> Thinker:
    solver = build_solver(settings(tmp_path, writes=writes, **options), parts())
    assert isinstance(solver, Thinker)
    return solver


def machine_of(solver: Thinker) -> MachineDepth:
    assert isinstance(solver.depth, MachineDepth)
    return solver.depth


def names(solver: Thinker) -> list[str]:
    return [tool.name for tool in machine_of(solver).machine.tools]


def test_all_parts_are_on_by_default(tmp_path: Path) -> None:
    solver = built(tmp_path)
    assert isinstance(solver.planner, Decomposer)
    assert names(solver) == [PLANNED_RAG, KG_FORM]
    depth = machine_of(solver)
    (planned, _) = depth.machine.tools
    assert isinstance(planned, PlannedTool)
    assert isinstance(planned.search.planner, Prompting)
    assert isinstance(depth.boundary, GenerateThenAssess)
    assert depth.boundary.self_check
    assert depth.boundary.likelihood
    assert depth.boundary.state is not None
    assert depth.short is not None


def test_without_decomposition_the_question_is_one_step(tmp_path: Path) -> None:
    solver = built(tmp_path, decompose=False)
    assert isinstance(solver.planner, GivenForms)
    assert names(solver) == [PLANNED_RAG]  # a whole question has no form
    assert machine_of(solver).short is None  # and no later step


def test_without_the_machine_kag_thinkers_own_searches_are_planned(tmp_path: Path) -> None:
    depth = built(tmp_path, machine=False).depth
    assert isinstance(depth, DepthSolver)
    assert isinstance(depth.finder, PlannedSearch)
    assert depth.graph is not None


def test_without_a_planner_the_searches_are_ordinary_ones(tmp_path: Path) -> None:
    assert names(built(tmp_path, planner="off")) == [DOC_RAG, KG_RAG, KG_FORM]
    depth = built(tmp_path, planner="off", machine=False).depth
    assert isinstance(depth, DepthSolver)
    assert depth.finder is None


@pytest.mark.parametrize(
    ("boundary", "signals"),
    [
        ("all", (True, True, True)),
        ("both", (True, True, False)),
        ("self-check", (True, False, False)),
        ("likelihood", (False, True, False)),
        ("state", (False, False, True)),
    ],
)
@pytest.mark.parametrize("machine", [True, False])
def test_each_signal_of_the_boundary_can_be_taken_away(
    boundary: str, signals: tuple[bool, ...], machine: bool, tmp_path: Path
) -> None:
    depth = built(tmp_path, boundary=boundary, machine=machine).depth
    assert isinstance(depth, MachineDepth | DepthSolver)
    found = depth.boundary
    assert isinstance(found, GenerateThenAssess)
    assert (found.self_check, found.likelihood, found.state is not None) == signals


def test_there_may_be_no_boundary_no_monitor_and_no_graph(tmp_path: Path) -> None:
    solver = built(tmp_path, boundary="none", metric="off", retriever="text", backtrack=False)
    depth = machine_of(solver)
    assert isinstance(depth.boundary, NoBoundary)
    assert isinstance(depth.machine.monitor, Unmonitored)
    assert names(solver) == [PLANNED_RAG]
    assert "Backtrack" not in depth.machine.moves.taught_moves
    only = machine_of(built(tmp_path, boundary="state", metric="off"))
    assert isinstance(only.boundary, NoBoundary)


def test_a_reader_that_scores_nothing_leaves_the_paper_its_two_signals(tmp_path: Path) -> None:
    """The planner scores, so the machine is monitored; the boundary says what it lacks."""
    hides = TextOnly(ScriptedModel([]))
    apart = parts()
    apart = Parts(
        {**apart.models, "reader": LoadedModel(hides)},
        apart.retriever,
        apart.relevance,
        apart.coverage,
        apart.sources,
        offers=apart.offers,
    )
    solver = build_solver(settings(tmp_path, metric="cppl"), apart)
    assert isinstance(solver, Thinker)
    found = machine_of(solver).boundary
    assert isinstance(found, GenerateThenAssess)
    assert found.state is None
    assert "scores no given text" in solver.note
    with pytest.raises(CapabilityMissing):
        build_solver(settings(tmp_path, metric="cppl"), parts(hides))
    assert isinstance(build_solver(settings(tmp_path), parts(hides)), Thinker), "auto: none is"


def test_a_planner_of_rounds_needs_a_judge(tmp_path: Path) -> None:
    solver = built(tmp_path, planner="reflexion")
    planned = machine_of(solver).machine.tools[0]
    assert isinstance(planned, PlannedTool)
    assert isinstance(planned.search.planner, Reflexion)
    assert "judge" in roles_of(settings(tmp_path, planner="reflexion"))
    assert roles_of(settings(tmp_path)) == ("planner", "summariser", "reader")


def test_a_small_model_plans_nothing_acts_by_guided_moves_and_is_quoted(tmp_path: Path) -> None:
    solver = built(tmp_path, writes=False)
    assert isinstance(solver.planner, GivenForms)
    depth = machine_of(solver)
    assert isinstance(depth.machine.moves, GuidedMoves)
    assert depth.short is None
    planned = depth.machine.tools[0]
    assert isinstance(planned, PlannedTool)
    assert isinstance(planned.search.planner, OriginalQuestion)


async def test_a_question_is_answered_through_the_wiring(tmp_path: Path) -> None:
    """Without a machine and without a boundary the words are KAG-Thinker's; the plan is Omni's."""
    model = KeyedModel(
        {
            "analyze the relationship": ["<answer>Yes</answer><reason>it says so</reason>"],
            "from the references": [r"<answer>\boxed{it rises}</answer>"],
            "# Source Description": ["<book> amiodarone </book>"],
            "Answer the last question": ["Amiodarone raises the INR of patients. [1]"],
        }
    )
    chosen = settings(tmp_path, machine=False, boundary="none", decompose=False)
    solution = await build_solver(chosen, parts(model, ("book",))).solve(QUESTION, Run())
    assert solution.answer.grounding is Grounding.GROUNDED
    assert solution.answer.evidence[0].passage == FACT


@pytest.mark.parametrize("name", sorted(n for n in read_presets() if n.startswith("unified")))
def test_the_presets_are_the_natural_combinations(name: str, tmp_path: Path) -> None:
    loaded = load({}, cwd=tmp_path, env={}, preset=name).settings
    strategy = loaded.strategy
    assert isinstance(strategy, UnifiedSettings)
    on = {
        "unified": (True, True, True),
        "unified-kag-tc": (True, True, False),
        "unified-kag-omni": (True, False, True),
        "unified-tc-omni": (False, True, True),
    }
    assert (strategy.decompose, strategy.machine, strategy.planner != "off") == on[name]


def test_the_experiment_takes_every_part_away_once() -> None:
    labels = read_experiment("unified-parts").labels
    taken = {label.partition(":")[2] for label in labels if label.startswith("unified")}
    wanted = {"decompose=false", "machine=false", "planner=off", "boundary=none", "metric=off"}
    assert wanted | {""} <= taken
    assert {"tc-rag", "kag-thinker", "omni-rag"} <= set(labels)
    assert read_experiment("unified-parts").limit == 100
