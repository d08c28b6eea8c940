"""Forms are looked up in the graph beside the knowledge base, and a tape replays it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from osler.build.models import LoadedModel
from osler.graph.items import Name, Relation, SemanticType
from osler.graph.store import Graph
from osler.kb.base import KnowledgeBase
from osler.runs import answering
from osler.settings import KbSettings, ModelSettings, RunsSettings, Settings
from osler.trace import Searched
from osler.types import Question
from osler_lab.testing.scripted import KeyedModel

PLAN = (
    "<answer>Step1: What treats scurvy?\n"
    "Action1: Retrieval(s=s1:disease['scurvy'], p=p1:treated by, o=o1:vitamin)</answer>"
)
MODEL: dict[str, Sequence[str]] = {
    "decompose the user question": [PLAN],
    "analyze the relationship": ["<answer>Yes</answer><reason>it says so</reason>"],
    "from the references": [r"<answer>\boxed{ascorbic acid}</answer>"],
    "Answer the last question": [r"It is. [1] <answer>\boxed{ascorbic acid}</answer>"],
}


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    KnowledgeBase.create(tmp_path / "kb").close()
    graph = Graph.create(tmp_path / "kb")
    graph.add(
        [
            Name("D:s", "scurvy"),
            Name("D:a", "ascorbic acid"),
            Relation("D:s", "treated_by", "D:a"),
        ]
    )
    graph.load_arrays()

    async def cast(settings: Settings, roles: Any) -> Any:
        return dict.fromkeys(roles, LoadedModel(KeyedModel(MODEL)))

    monkeypatch.setattr("osler.build.live.load_roles", cast)
    monkeypatch.setattr(KnowledgeBase, "count_unindexed", lambda self, identity: 0)
    return Settings(
        home=tmp_path,
        kb=KbSettings(path=tmp_path / "kb"),
        runs=RunsSettings(path=tmp_path / "runs"),
        model=ModelSettings(writes="yes"),
    )


def thinking(settings: Settings, **options: object) -> Settings:
    none = {"boundary": "none", "own_search": 0, "graph_sets": False}
    chosen = {"kind": "kag-thinker", **none, **options}
    return Settings.model_validate({**settings.model_dump(), "strategy": chosen})


async def test_a_form_is_asked_of_the_graph_recorded_and_replayed(settings: Settings) -> None:
    finished = await answering.ask(thinking(settings), Question("q", "What treats scurvy?"))
    searches = [event for event in finished.events if isinstance(event, Searched)]
    assert len(searches) == 2
    assert finished.solution is not None
    cited = [each.passage.text for each in finished.solution.answer.evidence]
    assert finished.folder is not None
    tape = (finished.folder / "tape.jsonl").read_text("utf-8")
    assert "kag-thinker/forms" in tape
    assert "Retrieval(s=s1:disease['scurvy'], p=p1:treated by, o=o1:vitamin)" in tape
    again = await answering.replay(finished.folder)
    assert again.events == finished.events
    assert all("ascorbic acid" in text for text in cited)


async def test_a_question_of_several_steps_is_answered_by_the_graph_and_replayed(
    settings: Settings,
) -> None:
    with Graph.open(settings.kb.path) as graph:
        kinds = [SemanticType("D:s", "Disease"), SemanticType("D:a", "Compound")]
        graph.add([*kinds, Relation("D:a", "treats", "D:s")])
    asked = Question("q", "How many drugs treat scurvy?")
    finished = await answering.ask(thinking(settings, graph_sets=True), asked)
    assert finished.folder is not None
    assert finished.solution is not None
    assert finished.solution.answer.text.startswith("1: ascorbic acid.")
    assert "graph-sets" in (finished.folder / "tape.jsonl").read_text("utf-8")
    again = await answering.replay(finished.folder)
    assert again.events == finished.events


async def test_in_text_mode_nothing_is_asked_by_form(settings: Settings) -> None:
    chosen = thinking(settings, retriever="text")
    finished = await answering.ask(chosen, Question("q", "What treats scurvy?"))
    assert len([event for event in finished.events if isinstance(event, Searched)]) == 1
