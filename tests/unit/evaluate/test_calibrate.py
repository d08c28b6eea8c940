"""Sigma is a quantile of what the strategy would conclude, and is written where it belongs."""

import json
import tomllib
from datetime import date
from pathlib import Path

import pytest

from osler.build import Parts
from osler.build.models import LoadedModel
from osler.cli.run_output import find_state
from osler.errors import BadConfig, BadQuestion
from osler.retrieve.relevance import OverlapRelevance
from osler.settings import Settings, load, render_template
from osler.trace import StateValued
from osler.types import Passage, Question
from osler_lab.studies import calibrate
from osler_lab.studies.calibrate import (
    QuestionValue,
    SigmaFit,
    StateValues,
    fit_sigma,
    measure_state_values,
    quantile_of,
    write_calibration,
)
from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever

QUESTIONS = [Question(f"q{n}", f"What does drug {n} treat?") for n in range(6)]
TAU = {"tau", "tau_model", "tau_basis"}
SURENESS = {"sureness", "sureness_model", "sureness_basis"}
TODAY = date(2026, 11, 21)
FITTED = SigmaFit(3.25, "cppl", "m", 0.9, 6, "2026-11-21", "mine.jsonl")


def test_a_quantile_lies_between_its_neighbours() -> None:
    """[1, 2, 3, 5]: place 0.9 * 3 = 2.7, so 3 + 0.7 * (5 - 3) = 4.4."""
    assert quantile_of([5, 1, 3, 2], 0.9) == pytest.approx(4.4)
    assert quantile_of([2.0], 0.5) == 2.0
    assert [quantile_of([3, 1], share) for share in (0.0, 1.0)] == [1, 3]


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> ScriptedModel:
    """A planner that is surer of later drugs; drug 5 is in no passage."""
    script = ScriptedModel(
        [f"Conclusion: Drug {n} treats it. [1]" for n in range(5)],
        scores={f"Drug {n} treats it. [1]": 1 / (n + 2) for n in range(5)},
        name="planner",
    )
    found = {
        f"drug {n}": [Passage(f"b:{n}#0", f"Drug {n} treats it.", "book", "B")] for n in range(5)
    }

    async def live(settings: Settings) -> Parts:
        ready = LoadedModel(script)
        return Parts(
            {"planner": ready, "summariser": ready, "reader": ready},
            lambda *_: ScriptedRetriever(dict(found)),
            OverlapRelevance(),
            OverlapRelevance(),
            ("book",),
        )

    monkeypatch.setattr("osler_lab.studies.calibrate.live_parts", live)
    return script


def settings(**strategy: object) -> Settings:
    server = {"kind": "openai", "url": "http://127.0.0.1:9/v1", "name": "m"}
    return Settings.model_validate({"model": server, "strategy": {"kind": "tc-rag", **strategy}})


async def test_each_question_s_first_conclusion_is_valued_as_in_a_run(live: ScriptedModel) -> None:
    seen: list[int] = []
    measured = await measure_state_values(
        settings(), QUESTIONS, progress=lambda stage, done, total: seen.append(done)
    )
    live.finish()
    assert (measured.model, measured.metric) == ("planner", "cppl")
    # Perplexity of equally probable tokens is 1 / probability.
    assert [v.value for v in measured.values[:5]] == pytest.approx([2, 3, 4, 5, 6])
    assert measured.values[5].value is None
    assert seen == [0, 1, 2, 3, 4, 5]
    found = fit_sigma(measured, quantile=0.9, questions="mine.jsonl", today=TODAY)
    assert found == SigmaFit(5.6, "cppl", "planner", 0.9, 5, "2026-11-21", "mine.jsonl")


@pytest.mark.parametrize("strategy", [{"metric": "off"}, {"kind": "rag"}])
async def test_what_has_no_state_value_is_refused(strategy: dict[str, object]) -> None:
    with pytest.raises(BadConfig, match="only a monitored TC-RAG"):
        await measure_state_values(settings(**strategy), QUESTIONS)


def test_too_few_answers_are_no_distribution() -> None:
    measured = StateValues("m", "cppl", tuple(QuestionValue(q, None) for q in QUESTIONS))
    with pytest.raises(BadConfig, match=r"0 of 6 questions.*--questions FILE"):
        fit_sigma(measured, quantile=0.9, questions="x", today=TODAY)


def loaded(path: Path) -> Settings:
    return load({}, cwd=path.parent, env={}, file=path).settings


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# mine\n[retrieve]\nk = 7",
        "[calibration]\nsigma = 1.0\nmodel = 'old'\n# why\n\n[retrieve]\nk = 7\n",
        render_template(),
    ],
)
def test_a_fit_is_written_and_every_other_line_stays(tmp_path: Path, text: str) -> None:
    path = tmp_path / "osler.toml"
    path.write_text(text, encoding="utf-8")
    before = loaded(path)
    write_calibration(FITTED, path)
    after = loaded(path)
    others = {*TAU, *SURENESS}
    assert after.calibration.model_dump(include=others) == before.calibration.model_dump(
        include=others
    )
    assert after.calibration.model_dump(exclude=others) == {
        "sigma": 3.25,
        "metric": "cppl",
        "model": "m",
        "basis": "calibrated: quantile 0.9 of 6 questions (mine.jsonl), 2026-11-21",
    }
    assert after.model_copy(update={"calibration": before.calibration}) == before
    now = path.read_text("utf-8").splitlines()
    mine = [line for line in text.splitlines() if line.startswith("# ")]
    assert [line for line in now if line in mine] == mine
    write_calibration(FITTED, path)
    assert path.read_text("utf-8").splitlines() == now, "writing twice is writing once"


def test_a_file_that_is_not_there_is_made(tmp_path: Path) -> None:
    write_calibration(FITTED, tmp_path / "osler.toml")
    assert (
        tomllib.loads((tmp_path / "osler.toml").read_text("utf-8"))["calibration"]["sigma"] == 3.25
    )
    with pytest.raises(BadConfig, match="cannot write"):
        write_calibration(FITTED, tmp_path / "no" / "osler.toml")


def test_force_takes_a_hand_set_sigma_out_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "osler.toml"
    path.write_text('[strategy]\nkind = "tc-rag"\nsigma = 9\nk = 4\n', encoding="utf-8")
    found = load({}, cwd=tmp_path, env={})
    with pytest.raises(BadConfig, match=r"osler\.toml:3: strategy\.sigma = 9 is set by hand"):
        calibrate.refuse_hand_set(found)
    write_calibration(FITTED, path, force=True)
    assert "#sigma = 9\nk = 4\n" in path.read_text("utf-8")
    calibrate.refuse_hand_set(load({}, cwd=tmp_path, env={}))


def test_questions_of_a_file_are_read_with_their_options(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    rows = [
        {"question": "Which?", "options": {"A": "iron", "B": "tea"}},
        {"question": "贫血吃什么？", "options": ["铁", "茶"]},
        {"question": "Open?"},
    ]
    path.write_text("\n".join(json.dumps(row) for row in rows) + "\n\n", encoding="utf-8")
    found = calibrate.read_questions(path)
    assert [question.options for question in found] == [("iron", "tea"), ("铁", "茶"), ()]
    assert found[1].language == "zh"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "has no question"),
        ("nonsense", ":1: no question"),
        ('{"question": "a?"}\n{"text": "b"}', ":2: no question"),
        ('{"question": ""}', ":1: no question"),
        ("[1]", ":1: no question"),
    ],
)
def test_a_file_without_questions_is_named_with_its_line(
    tmp_path: Path, text: str, part: str
) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadQuestion) as caught:
        calibrate.read_questions(path)
    assert "mine.jsonl" in str(caught.value)
    assert part in str(caught.value)


def test_the_packaged_questions_are_those_that_no_table_reports_on() -> None:
    found = calibrate.packaged_questions()
    assert len(found) == 24
    assert {question.language for question in found} == {"en", "zh"}


def test_the_state_of_a_run_is_its_last() -> None:
    events = [StateValued(i, "cppl", i, 5.0, i == 2) for i in (1, 2)]
    assert find_state(events) == {"metric": "cppl", "value": 2, "sigma": 5.0, "halted": True}
    assert find_state([]) is None
