"""KAG-Thinker as the settings ask for it."""

from dataclasses import replace
from pathlib import Path

import pytest

from osler.build import Parts, roles_of
from osler.build.hub import search_server
from osler.build.models import LoadedModel
from osler.build.strategies import build_solver
from osler.errors import BadConfig
from osler.llm.core.ask import Speaker
from osler.methods.kag.boundary import GenerateThenAssess, NoBoundary
from osler.methods.kag.computed import QuestionCalculator
from osler.methods.kag.depth import DepthSolver
from osler.methods.kag.dialogue import DialogueThinker, ReleasedTurns, TrainedTurns
from osler.methods.kag.planner import Decomposer, GivenForms
from osler.methods.kag.solver import Thinker
from osler.retrieve.relevance import OverlapRelevance
from osler.retrieve.web import SearchServer
from osler.settings import KagThinkerSettings, ModelSettings, Settings, UnifiedSettings
from osler.trace import Asked, FormSolved, FormsPlanned, Run
from osler.types import Halt, Passage, Question
from osler_lab.testing.scripted import KeyedModel, ScriptedRetriever

FACT = Passage("book:inr#0", "Amiodarone raises the INR of patients on warfarin.", "book", "INR")
QUESTION = Question("q", "What does amiodarone do to the INR of patients on warfarin?")


def settings(tmp_path: Path, **options: object) -> Settings:
    strategy = KagThinkerSettings.model_validate(options)
    return Settings(home=tmp_path, strategy=strategy)


def parts(model: KeyedModel) -> Parts:
    ready = LoadedModel(model)
    found = ScriptedRetriever({"": [FACT]})
    return Parts(
        {"planner": ready, "reader": ready, "summariser": ready},
        lambda name, sources: found,
        OverlapRelevance(),
        OverlapRelevance(),
        ("book",),
    )


def built(tmp_path: Path, **options: object) -> Thinker:
    chosen = settings(tmp_path, **options).model_copy(update={"model": ModelSettings(writes="yes")})
    solver = build_solver(chosen, parts(KeyedModel({})))
    assert isinstance(solver, Thinker)
    return solver


def depth_of(solver: Thinker) -> DepthSolver:
    assert isinstance(solver.depth, DepthSolver)
    return solver.depth


def test_the_defaults_are_the_papers(tmp_path: Path) -> None:
    solver = built(tmp_path)
    assert isinstance(solver.planner, Decomposer)
    depth = depth_of(solver)
    assert isinstance(depth.boundary, GenerateThenAssess)
    assert (depth.boundary.self_check, depth.boundary.likelihood) == (True, True)
    assert (depth.boundary.tau, depth.k, depth.turns) == (0.5, 3, 10)
    assert roles_of(settings(tmp_path)) == ("planner", "reader")


def test_a_small_model_plans_when_told_to_and_is_shown_what_is_asked_for(
    tmp_path: Path,
) -> None:
    solver = build_solver(settings(tmp_path), parts(KeyedModel({})))
    assert isinstance(solver, Thinker)
    assert isinstance(solver.planner, GivenForms)
    told = build_solver(settings(tmp_path, plans="model"), parts(KeyedModel({})))
    assert isinstance(told, Thinker)
    assert isinstance(told.planner, Decomposer)
    boundary = depth_of(solver).boundary
    assert isinstance(boundary, GenerateThenAssess)
    assert boundary.examples
    assert solver.deducer.speaker.reasoning < Speaker(KeyedModel({}), "reader").reasoning


@pytest.mark.parametrize(
    ("boundary", "signals"), [("self-check", (True, False)), ("likelihood", (False, True))]
)
def test_each_signal_can_stand_alone(
    boundary: str, signals: tuple[bool, bool], tmp_path: Path
) -> None:
    found = depth_of(built(tmp_path, boundary=boundary)).boundary
    assert isinstance(found, GenerateThenAssess)
    assert (found.self_check, found.likelihood) == signals


def test_ablations_are_settings(tmp_path: Path) -> None:
    solver = built(tmp_path, boundary="none", decompose=False, formulas=False)
    assert isinstance(depth_of(solver).boundary, NoBoundary)
    assert isinstance(solver.planner, GivenForms)
    assert solver.calculator.formulas == {}


@pytest.mark.parametrize(
    ("dialogue", "turns"), [("checkpoint", ReleasedTurns), ("trained", TrainedTurns)]
)
def test_a_trained_model_is_spoken_to_in_one_dialogue(
    dialogue: str, turns: type, tmp_path: Path
) -> None:
    solver = build_solver(settings(tmp_path, dialogue=dialogue), parts(KeyedModel({})))
    assert isinstance(solver, DialogueThinker)
    assert isinstance(solver.turns, turns)
    assert (solver.k, solver.searches) == (3, 10)
    # The released code's decoding.
    assert (solver.sampling.temperature, solver.sampling.max_tokens) == (0.0, 8192)


def test_the_question_s_own_search_and_its_formula_are_settings(tmp_path: Path) -> None:
    solver = built(tmp_path)
    assert solver.pool is not None
    assert solver.pool.k == 10
    assert [type(route) for route in solver.routes] == [QuestionCalculator]
    paper = built(tmp_path, own_search=0, formulas=False)
    assert (paper.pool, paper.routes) == (None, ())


async def test_a_formula_s_value_is_computed_through_the_wiring(tmp_path: Path) -> None:
    text = (
        "What is the creatinine clearance of a 70-year-old 60 kg woman with creatinine 1.2 mg/dL?"
    )
    unified = UnifiedSettings(machine=False, planner="off", boundary="none")
    for kind in (KagThinkerSettings(), unified):
        chosen = Settings(home=tmp_path, strategy=kind)
        run = Run()
        solution = await build_solver(chosen, parts(KeyedModel({}))).solve(Question("q", text), run)
        assert "41.3 ml/min" in solution.answer.text
        assert "Nephron 1976" in solution.answer.evidence[0].quote
        assert run.usage.calls == 0


async def test_a_question_is_answered_through_the_wiring(tmp_path: Path) -> None:
    model = KeyedModel(
        {
            "analyze the relationship": ["<answer>Yes</answer><reason>it says so</reason>"],
            "from the references": [r"<answer>\boxed{it rises}</answer>"],
        }
    )
    chosen = settings(tmp_path, boundary="none", decompose=False)
    solution = await build_solver(chosen, parts(model)).solve(QUESTION, Run())
    assert solution.halt is Halt.CONVERGED
    assert solution.answer.evidence[0].passage == FACT


async def test_a_planner_stands_in_front_of_another_reader(tmp_path: Path) -> None:
    """§4.4 and Table 8: the Thinker plans, another model solves."""
    server = {"kind": "openai", "url": "http://127.0.0.1:9/v1", "name": "m", "writes": "yes"}
    chosen = Settings.model_validate(
        {
            "home": tmp_path,
            "roles": {"planner": server},
            "strategy": {"kind": "kag-thinker", "boundary": "none"},
        }
    )
    plan = (
        "<answer>Step1: What does amiodarone do to the INR?\nAction1: Retrieval("
        "s=s1:drug['amiodarone'], p=p1:effect on the INR, o=o1:effect)</answer>"
    )
    planner = KeyedModel({"decompose the user question": [plan]}, name="planner")
    reader = KeyedModel(
        {
            "analyze the relationship": ["<answer>Yes</answer><reason>it says so</reason>"],
            "from the references": [r"<answer>\boxed{it rises}</answer>"],
        },
        name="reader",
    )
    apart = replace(
        parts(reader), models={"planner": LoadedModel(planner), "reader": LoadedModel(reader)}
    )
    run = Run()
    solution = await build_solver(chosen, apart).solve(QUESTION, run)
    assert solution.answer.evidence[0].passage == FACT
    assert planner.asked == ["decompose the user question"]
    asked = {event.role for event in run.events if isinstance(event, Asked)}
    assert asked == {"planner", "reader"}
    assert isinstance(solver := build_solver(chosen, apart), Thinker)
    assert (solver.deducer.speaker.reasoning, depth_of(solver).boundary) == (80, NoBoundary())
    assert isinstance(solver.planner, Decomposer)


def test_a_search_server_takes_the_place_of_the_knowledge_base(tmp_path: Path) -> None:
    assert search_server(settings(tmp_path)) is None
    served = search_server(settings(tmp_path, search_url="http://127.0.0.1:12356"))
    assert isinstance(served, SearchServer)
    assert served.api.endpoint.base_url == "http://127.0.0.1:12356"


FORMS = """Step1: Who directed Salt Road?
Action1: Retrieval(s=s1:film['Salt Road'], p=p1:director, o=o1:person)
Step2: When was #1 born?
Action2: Retrieval(s=o1, p=p2:{asked}, o=o2:date)
Step3: The answer
Action3: Output(o2)"""


@pytest.mark.parametrize(
    ("asked", "answer"), [("date of birth", "12 June 1920"), ("place of birth", "Lund")]
)
async def test_a_plan_that_was_edited_is_run_as_it_stands(
    tmp_path: Path, asked: str, answer: str
) -> None:
    pages = {
        "Salt Road": "Salt Road is a 1960 film directed by Boris Amsel.",
        "Boris Amsel": "Boris Amsel (born 12 June 1920 in Lund) is a Swedish director.",
    }
    passages = [Passage(f"w:{title}#0", text, "w", title) for title, text in pages.items()]
    chosen = settings(tmp_path, forms=FORMS.format(asked=asked), boundary="none")
    boxed = [rf"<answer>\boxed{{{one}}}</answer>" for one in ("Boris Amsel", answer)]
    enough = ["<answer>Yes</answer><reason>all</reason>"] * 2
    model = KeyedModel({"analyze the relationship": enough, "from the references": boxed})
    ready = replace(parts(model), retriever=lambda *_: ScriptedRetriever({"": passages}))
    run = Run()
    await build_solver(chosen, ready).solve(Question("q", "When was he born?"), run)
    (planned,) = [event for event in run.events if isinstance(event, FormsPlanned)]
    assert planned.origin == "user"
    solved = [event.answer for event in run.events if isinstance(event, FormSolved)]
    assert solved == ["Boris Amsel", answer, answer]
    assert model.asked == ["analyze the relationship", "from the references"] * 2


@pytest.mark.parametrize("forms", ["no plan", "Step1: Q\nAction1: Output(o7)"])
def test_what_is_no_plan_is_refused_with_what_to_mend(tmp_path: Path, forms: str) -> None:
    with pytest.raises(BadConfig, match=r"strategy\.forms"):
        build_solver(settings(tmp_path, forms=forms), parts(KeyedModel({})))


async def test_what_no_rule_reads_is_searched_as_it_stands_where_the_model_may_not_write(
    tmp_path: Path,
) -> None:
    asked, run = Question("q", "What raises the INR of patients on warfarin?"), Run()
    solver = build_solver(settings(tmp_path), parts(KeyedModel({})))
    solution = await solver.solve(asked, run)
    assert (solution.why, run.usage.calls, run.usage.searches) == ("searched as it stands", 0, 1)
    assert solution.answer.evidence[0].quote == FACT.text
    planned = build_solver(settings(tmp_path, plans="model"), parts(KeyedModel({})))
    assert isinstance(planned, Thinker)
    assert [type(route) for route in planned.routes] == [QuestionCalculator]
