"""Sigma sensitivity (TC-RAG §6.5): one run a question stands for its runs under every sigma."""

from __future__ import annotations

import struct
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from osler.build import Parts
from osler.build.models import LoadedModel
from osler.errors import BadConfig, BadQuestion, OslerError
from osler.questions import LabeledQuestion, read_posed
from osler.retrieve.relevance import OverlapRelevance
from osler.settings import Settings
from osler.types import Halt, Passage, Question
from osler_lab.studies import sensitivity as studies
from osler_lab.studies.sensitivity import (
    METRICS,
    Metric,
    SigmaOutcome,
    SigmaPoint,
    sigma_figure,
    summarize_points,
)
from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever

FOUND = Passage("book:inr#0", "Amiodarone raises the INR.", "book", "INR")
POSED = LabeledQuestion(
    Question("q", "What does amiodarone do?", ("raises the INR", "nothing")), "A"
)
VAGUE = "It may rise. <answer>B</answer>"
CLEAR = "The INR rises. [1] <answer>A</answer>"
REPLIES = ["Tool_Use: DOC_RAG", f"Conclusion: {VAGUE}", "Thought: more", f"Conclusion: {CLEAR}"]
SCORES = {VAGUE: 1 / 30, CLEAR: 1 / 4, "more": 1 / 50}


def settings(**strategy: object) -> Settings:
    server = {"kind": "openai", "url": "http://127.0.0.1:9/v1", "name": "m"}
    chosen = {"kind": "tc-rag", "max_loop": 4, **strategy}
    return Settings.model_validate({"model": server, "strategy": chosen})


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> list[ScriptedModel]:
    """The scripts that were played, one for each call of `live_parts`."""
    made: list[ScriptedModel] = []

    async def live(settings: Settings) -> Parts:
        made.append(ScriptedModel(list(REPLIES) * 9, scores=SCORES, name="m"))
        ready = LoadedModel(made[-1])
        return Parts(
            {"planner": ready, "summariser": ready, "reader": ready},
            lambda *_: ScriptedRetriever({"": [FOUND]}),
            OverlapRelevance(),
            OverlapRelevance(),
            ("book",),
        )

    monkeypatch.setattr("osler_lab.studies.sensitivity.live_parts", live)
    return made


async def test_a_question_is_run_once_and_goes_through_the_larger_sigmas_from_its_tape(
    models: list[ScriptedModel],
) -> None:
    swept = await studies.sigma_sweep(settings(), [POSED], {"cppl": [40, 2, 10]})
    assert len(models[0].seen) == 5, (
        "the least sigma's own run, its conclusion asked for at the end"
    )
    assert [(o.sigma, o.halt, o.steps, o.right) for o in swept] == [
        (2, Halt.BUDGET, 4, True),
        (10, Halt.CONVERGED, 4, True),
        (40, Halt.CONVERGED, 2, False),
    ]
    assert [round(value) for value in swept[2].values] == [30]


@pytest.mark.parametrize("sigma", [2, 10, 40])
async def test_what_the_tape_gives_is_what_a_run_under_that_sigma_alone_gives(
    models: list[ScriptedModel], sigma: float
) -> None:
    (alone,) = await studies.sigma_sweep(settings(), [POSED], {"cppl": [sigma]})
    every = await studies.sigma_sweep(settings(), [POSED], {"cppl": [2, 10, 40]})
    assert alone == next(o for o in every if o.sigma == sigma)


async def test_only_tc_rag_is_studied() -> None:
    other = Settings.model_validate({"strategy": {"kind": "rag"}})
    with pytest.raises(BadConfig, match="for TC-RAG only"):
        await studies.sigma_sweep(other, [POSED], {"cppl": [2]})


def outcomes(metric: Metric) -> list[SigmaOutcome]:
    one = SigmaOutcome("a", metric, 5.0, Halt.BUDGET, 4, 9, 100, (30.0, 8.0), True)
    return [
        one,
        replace(one, id="b", halt=Halt.NO_EVIDENCE, values=(), right=None, steps=2),
        replace(one, sigma=20.0, halt=Halt.CONVERGED, steps=2, tokens=60, right=False),
        replace(one, id="b", sigma=20.0, halt=Halt.NO_EVIDENCE, values=(), right=None, steps=2),
    ]


def test_a_point_counts_halts_and_means_with_intervals() -> None:
    low, high = summarize_points(outcomes("cppl"))
    assert (low.sigma, high.sigma) == (5, 20)
    assert (low.converged.value, high.converged.value, high.converged.n) == (0.0, 0.5, 2)
    assert low.halts == {"converged": 0, "budget": 1, "no_evidence": 1, "refused": 0}
    assert (low.steps.value, high.steps.value) == (3, 2)
    assert low.state is not None
    assert (low.state.value, low.state.n) == (8, 1)
    assert low.em is not None
    assert (low.em.value, low.em.n) == (1, 1)


def both() -> list[SigmaPoint]:
    return summarize_points([outcome for metric in METRICS for outcome in outcomes(metric)])


@pytest.mark.skipif(not find_spec("matplotlib"), reason='not installed: pip install "osler[plot]"')
def test_the_figure_is_drawn_as_svg_and_png(tmp_path: Path) -> None:
    svg, again, png = tmp_path / "a.svg", tmp_path / "b.svg", tmp_path / "a.png"
    sigma_figure(both(), [svg, png])
    sigma_figure(both(), [again])
    text = svg.read_text(encoding="utf-8")
    assert all(f">{word}<" in text for word in ("share converged", "steps", "uct, n = 2"))
    assert again.read_text(encoding="utf-8") == text
    head = png.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    assert struct.unpack(">II", head[16:24])[0] > 800
    with pytest.raises(BadConfig, match=r"\.svg or \.png"):
        sigma_figure(both(), [tmp_path / "a.txt"])
    with pytest.raises(BadConfig, match="cannot be written"):
        sigma_figure(both(), [tmp_path / "no" / "a.svg"])


@pytest.mark.skipif(bool(find_spec("matplotlib")), reason="matplotlib is there")
def test_without_the_extra_the_fix_is_named(tmp_path: Path) -> None:
    with pytest.raises(OslerError) as caught:
        sigma_figure(both(), [tmp_path / "a.svg"])
    assert caught.value.fix == 'pip install "osler[plot]"'


def test_levels_are_numbers_above_zero() -> None:
    assert studies.parse_sigmas(cppl="20, 5,5", uct="") == {"cppl": [5, 20]}
    for wrong in ("x", "0", "-1", "inf", "nan"):
        with pytest.raises(BadConfig):
            studies.parse_sigmas(cppl=wrong, uct="")


def test_questions_are_read_with_their_right_option(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text(
        '{"id": "1", "question": "Which?", "options": {"A": "x", "B": "y"}, "answer": "B"}\n\n'
        '{"question": "为什么？"}\n',
        encoding="utf-8",
    )
    first, second = read_posed(path)
    assert (first.question.id, first.gold, first.question.options) == ("1", "B", ("x", "y"))
    assert (second.gold, second.question.language) == ("", "zh")
    path.write_text('{"question": ""}\n', encoding="utf-8")
    with pytest.raises(BadQuestion, match=r"q\.jsonl:1"):
        read_posed(path)
    path.write_text("", encoding="utf-8")
    with pytest.raises(BadQuestion, match="no question"):
        read_posed(path)
    with pytest.raises(BadQuestion, match="cannot be read"):
        read_posed(tmp_path / "none")
