"""Omni-RAG as the settings ask for it, and its plans through the library's interfaces."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from osler.build import Parts, roles_of
from osler.build.knowledge import describe_sources
from osler.build.models import LoadedModel
from osler.build.planning import planner_name
from osler.build.strategies import build_solver
from osler.errors import BadConfig, BadQuestion, SourceUnavailable
from osler.kb.base import KnowledgeBase
from osler.methods.omni.dossier import parse_saved_plan
from osler.methods.omni.planners import SourceDescription
from osler.methods.omni.planners.feedback import Reflexion, SeRTS
from osler.methods.omni.planners.single import (
    SYSTEM,
    GivenPlan,
    OriginalQuestion,
    Prompting,
    Query2Doc,
)
from osler.methods.omni.solver import OmniRag as Solver
from osler.questions import read_posed
from osler.retrieve.relevance import OverlapRelevance
from osler.runs import answering
from osler.settings import (
    KagThinkerSettings,
    OmniRagSettings,
    RagSettings,
    Settings,
    Strategy,
    TcRagSettings,
)
from osler.trace import Retrieved, SourcesPlanned
from osler.types import Hit, Passage, Question
from osler_lab.baselines.settings import IrCotSettings
from osler_lab.studies.plans import study_plans
from osler_lab.testing.scripted import HashingEncoder, KeyedModel, ScriptedRetriever

FACT = Passage("book:inr#0", "Amiodarone raises the INR of patients on warfarin.", "book", "INR")
QUESTION = Question("q", "What does amiodarone do to the INR of patients on warfarin?")
PLAN = "<book> amiodarone INR </book>\n\n<notes></notes>"


def settings(home: Path, strategy: Strategy, **model: object) -> Settings:
    sections: dict[str, Any] = {"model": {"writes": "yes", **model}}
    return Settings.model_validate({"home": home, "strategy": strategy.model_dump(), **sections})


def parts(model: KeyedModel) -> Parts:
    ready = LoadedModel(model)
    found = ScriptedRetriever({"": [FACT]})
    return Parts(
        {"planner": ready, "judge": ready, "reader": ready},
        lambda name, sources: found,
        OverlapRelevance(),
        OverlapRelevance(),
        ("book", "notes"),
        "snapshot",
        offers=(SourceDescription("book"), SourceDescription("notes", ("Ward rules",))),
    )


def built(home: Path, **options: Any) -> Solver:
    chosen = settings(home, OmniRagSettings.model_validate(options))
    solver = build_solver(chosen, parts(KeyedModel({})))
    assert isinstance(solver, Solver)
    return solver


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("original", OriginalQuestion),
        ("query2doc", Query2Doc),
        ("prompting", Prompting),
        ("reflexion", Reflexion),
        ("serts", SeRTS),
        ("trained", Prompting),
        ("auto", Prompting),
    ],
)
def test_each_planner_is_a_setting(name: str, kind: type, tmp_path: Path) -> None:
    assert isinstance(built(tmp_path, planner=name).planner, kind)


def test_a_model_that_may_not_word_medicine_does_not_plan_by_default(tmp_path: Path) -> None:
    chosen = settings(tmp_path, OmniRagSettings(), writes="no")
    solver = build_solver(chosen, parts(KeyedModel({})))
    assert isinstance(solver, Solver)
    assert isinstance(solver.planner, OriginalQuestion)
    assert planner_name(chosen, parts(KeyedModel({}))) == "original, keyed"


def test_the_defaults_are_the_papers(tmp_path: Path) -> None:
    solver = built(tmp_path, planner="serts")
    assert isinstance(solver.planner, SeRTS)
    assert (solver.planner.rounds, solver.planner.proposer.at_most) == (8, 3)
    assert solver.retriever.k == 10
    trained = built(tmp_path, planner="trained").planner
    assert isinstance(trained, Prompting)
    assert trained.proposer.speaker.system == SYSTEM
    assert not trained.proposer.speaker.constrains


def test_only_planners_that_are_judged_have_a_judge(tmp_path: Path) -> None:
    assert roles_of(settings(tmp_path, OmniRagSettings(planner="serts"))) == (
        "planner",
        "judge",
        "reader",
    )
    assert roles_of(settings(tmp_path, OmniRagSettings())) == ("planner", "reader")


def test_a_given_plan_is_run_by_omni_rag_alone(tmp_path: Path) -> None:
    given = parse_saved_plan("<book> x </book>")
    solver = build_solver(settings(tmp_path, OmniRagSettings()), parts(KeyedModel({})), given)
    assert isinstance(solver, Solver)
    assert solver.planner == GivenPlan(given)
    with pytest.raises(BadConfig, match="tc-rag runs no source plan"):
        build_solver(settings(tmp_path, TcRagSettings()), parts(KeyedModel({})), given)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> KeyedModel:
    """Live parts that are scripted, wherever the library asks for them."""
    scripted = KeyedModel(
        {
            "construct appropriate queries": [PLAN],
            "# Retrieved Documents": [f"{FACT.text} [1] <answer>A</answer>"],
            "step-by-step": ["It falls. <answer>B</answer>"],
        }
    )

    async def live(chosen: Settings) -> Parts:
        every = parts(scripted)
        return replace(every, models={role: every.models[role] for role in roles_of(chosen)})

    monkeypatch.setattr("osler.runs.answering.live_parts", live)
    monkeypatch.setattr("osler_lab.studies.plans.load_encoder", lambda _: HashingEncoder())
    return scripted


async def test_a_planned_run_replays_byte_for_byte(tmp_path: Path, model: KeyedModel) -> None:
    done = await answering.ask(settings(tmp_path, OmniRagSettings()), QUESTION)
    assert done.folder
    again = await answering.replay(done.folder)
    assert again.events == done.events
    assert again.solution == done.solution


async def test_a_run_of_a_given_plan_replays_too(tmp_path: Path, model: KeyedModel) -> None:
    given = parse_saved_plan("<book> INR </book><wiki> INR </wiki>")
    done = await answering.ask(settings(tmp_path, OmniRagSettings()), QUESTION, plan=given)
    assert done.solution
    assert "Not searched: wiki: there is no source wiki" in done.solution.answer.note
    assert [e.origin for e in done.events if isinstance(e, SourcesPlanned)] == ["user"]
    assert done.folder
    assert (await answering.replay(done.folder)).events == done.events


class Down:
    async def search(self, query: str, *, k: int) -> list[Hit]:
        raise SourceUnavailable(f"no answer to {query!r}", fix="start it")


@pytest.mark.parametrize(
    "strategy",
    [OmniRagSettings(), RagSettings(), IrCotSettings(), KagThinkerSettings(boundary="none")],
)
async def test_a_run_whose_source_was_down_replays_too(strategy: Strategy, tmp_path: Path) -> None:
    model = KeyedModel({"construct appropriate queries": [PLAN], "": ["<answer>A</answer>"]})
    chosen, every = settings(tmp_path, strategy), parts(model)
    models = {role: every.models[role] for role in roles_of(chosen)}
    live = replace(every, models=models, retriever=lambda name, sources: Down())
    done = await answering.ask(chosen, QUESTION, parts=live)
    failed = [event.failed for event in done.events if isinstance(event, Retrieved)]
    assert failed
    assert "no answer to" in failed[0][0]
    assert done.folder
    again = await answering.replay(done.folder)
    assert (again.events, again.solution) == (done.events, done.solution)


async def test_plan_only_plans_and_searches_nothing(tmp_path: Path, model: KeyedModel) -> None:
    done = await answering.ask(settings(tmp_path, OmniRagSettings()), QUESTION, plan_only=True)
    assert done.solution is None
    (planned,) = [event for event in done.events if isinstance(event, SourcesPlanned)]
    assert [query.query for query in planned.queries] == ["amiodarone INR"]
    assert not [event for event in done.events if isinstance(event, Retrieved)]


async def test_a_stored_plan_with_its_documents_is_read_without_a_search(
    tmp_path: Path, model: KeyedModel
) -> None:
    chosen = settings(tmp_path, OmniRagSettings())
    made = await answering.plan_question(chosen, QUESTION, search=True)
    assert (made.plan, made.planner, made.snapshot) == (
        "<book> amiodarone INR </book>\n\n<notes></notes>",
        "prompting, keyed",
        "snapshot",
    )
    done = await answering.ask(chosen, QUESTION, plan=made)
    assert done.solution
    assert done.solution.answer.evidence[0].passage == FACT
    assert done.solution.usage.searches == 0
    with pytest.raises(BadConfig, match="makes no source plan"):
        await answering.plan_question(settings(tmp_path, TcRagSettings(metric="off")), QUESTION)


async def test_one_command_measures_what_each_source_is_worth(
    tmp_path: Path, model: KeyedModel
) -> None:
    file = tmp_path / "questions.jsonl"
    line = '{"question": "What happens to the INR?", "options": {"A": "rises", "B": "falls"}, '
    file.write_text(f'{line}"answer": "A"}}\n{{"question": "Open?", "answer": "x"}}\n')
    found = await study_plans(settings(tmp_path, OmniRagSettings()), read_posed(file, marked=True))
    assert [(row.sources, row.accuracy.value, row.drop) for row in found.rows] == [
        ("all", 1.0, None),
        ("book", 0.0, -1.0),
        ("notes", 1.0, 0.0),
        ("none", 0.0, -1.0),
    ]
    assert found.queries == {"book": 1.0, "notes": 0.0}
    assert found.words == {"book": 2.0, "notes": None}
    assert found.costs["planner"].calls == found.costs["reader"].calls == 1
    assert set(found.seconds) == {"plan", "search", "read"}
    assert found.n == 1


@pytest.mark.parametrize(
    "text",
    ["", "{", '{"question": "Open?", "answer": "x"}', '{"question": "Q?", "options": ["a", "b"]}',
     '{"question": "Q?", "options": ["a", "b"], "answer": "C"}', "[]"],
)  # fmt: skip
def test_questions_that_cannot_be_marked_are_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text(text)
    with pytest.raises(BadQuestion):
        read_posed(file, marked=True)
    with pytest.raises(BadQuestion, match="cannot be read"):
        read_posed(tmp_path / "absent", marked=True)


def test_a_source_of_ones_own_is_described_by_its_titles(tmp_path: Path) -> None:
    (tmp_path / "rules.md").write_text("# Ward rules\n\nWash your hands.\n", encoding="utf-8")
    with KnowledgeBase.create(tmp_path / "kb") as kb:
        kb.add([tmp_path / "rules.md"], source="notes")
        offers = describe_sources(kb, ("book", "notes"))
    assert offers == (SourceDescription("book"), SourceDescription("notes", ("Ward rules",)))
    assert (
        replace(offers[1], titles=()).describe_in("en").endswith('collection "notes" of the user.')
    )
