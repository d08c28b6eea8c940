"""The probe of `osler doctor --model`, manner by manner: ten questions, each answered rightly.

What it writes is read back, and `rag` and `tc-rag` run with it end with the right answer.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from competent import CompetentModel
from mannered import MODEL, serve_manners
from mannered_runs import run_mannered
from manners import Manners

from osler.probe import Advice, advise, probe_model, write_advice
from osler.probe.findings import Findings, Thinking
from osler.settings import ModelSettings, Settings, load
from osler.types import Halt

OFF = ("chat_template_kwargs.enable_thinking=false",)
HOSTED: dict[str, Any] = {"continues": False, "scores": False}


@dataclass(frozen=True)
class Expected:
    """What the probe must say; by default of a vLLM that can do all, with a model that obeys."""

    continues: str = "yes"
    scores: bool = True
    logprobs: bool = True
    formats: tuple[str, ...] = ()
    tools: bool = False
    place: str = ""
    fields: tuple[str, ...] = ()
    shorter: bool = False
    tags: str = "plain"
    cites: str = "yes"
    mark: str = "[2]"
    chooses: int = 3
    refuses: bool = False
    context: int | None = 32_768
    beside: bool = True


CELLS: Mapping[str, tuple[Manners, Expected]] = {
    "obeys": (Manners(), Expected()),
    "holds formats": (
        Manners(grammar=True),
        Expected(formats=("GBNF", "JSON schema")),
    ),
    "hosted": (Manners(**HOSTED), Expected(continues="asked", scores=False)),
    "hosted, bare": (
        Manners(**HOSTED, logprobs=False, streams=False),
        Expected(continues="asked", scores=False, logprobs=False),
    ),
    "thinks in the text": (Manners(thinking="text"), Expected(place="text", fields=OFF)),
    "thinks apart": (Manners(thinking="apart"), Expected(place="apart", fields=OFF)),
    "thinks after a template": (
        Manners(thinking="template"),
        Expected(place="template", fields=OFF),
    ),
    "thinks unseen": (
        Manners(thinking="hidden", **HOSTED),
        Expected(
            continues="asked", scores=False, place="hidden", fields=("reasoning_effort=none",)
        ),
    ),
    "thinks whatever it is told": (
        Manners(thinking="text", tells_not_to=False),
        Expected(place="text"),
    ),
    "thinks, but less": (
        Manners(thinking="apart", tells_not_to=False, shortens=True, thought_tokens=400),
        Expected(place="apart", fields=("reasoning_effort=low",), shorter=True),
    ),
    "native calls": (Manners(calls="native"), Expected(tools=True)),
    "bold tags": (Manners(tags="bold"), Expected(tags="dressed")),
    "headed tags": (Manners(tags="headed"), Expected(tags="dressed")),
    "Chinese tags": (Manners(tags="chinese"), Expected(tags="dressed")),
    "fenced tags": (Manners(tags="fenced"), Expected(tags="dressed")),
    "chatter": (Manners(chatter=True), Expected()),
    "full-width marks": (Manners(marks="【1】"), Expected(mark="【2】")),
    "references": (Manners(marks="(Reference 1)"), Expected(mark="(Reference 2)")),
    "lists of marks": (Manners(marks="[1,2]"), Expected(mark="[2, 3]")),
    "refuses": (
        Manners(refuses=True),
        Expected(continues="no", tags="no", cites="no", mark="", chooses=0, refuses=True),
    ),
    "a small context": (Manners(context=4096), Expected(context=4096)),
    "one slot": (Manners(seconds=0.4, one_slot=True), Expected(beside=False)),
    "slow, beside each other": (Manners(seconds=0.4), Expected()),
    "Ollama": (
        Manners(server="Ollama", context=4096, logprobs=False, calls="native"),
        Expected("asked", scores=False, logprobs=False, tools=True, context=4096),
    ),
    "Ollama with Qwen3": (
        Manners(server="Ollama", thinking="apart", grammar=True, tags="bold", logprobs=False),
        Expected(
            "asked",
            scores=False,
            logprobs=False,
            formats=("JSON schema",),
            place="apart",
            fields=("think=false",),
            tags="dressed",
        ),
    ),
}


async def probe(manners: Manners, **section: Any) -> tuple[Findings, Advice]:
    async with serve_manners(CompetentModel(), manners) as place:
        chosen = ModelSettings(kind="openai", url=place.url, name=MODEL, **section)
        found = await probe_model(chosen)
        return found, advise(Settings(model=chosen), chosen, found)


def told_by(found: Findings) -> Expected:
    thinking = found.thinking or Thinking("text")
    assert found.continues
    assert found.tags
    assert found.cites
    assert found.formats is not None
    return Expected(
        found.continues,
        bool(found.scores),
        bool(found.logprobs),
        found.formats,
        bool(found.tools),
        thinking.place,
        thinking.fields,
        thinking.shorter,
        found.tags,
        found.cites,
        found.mark,
        -1 if found.chooses is None else found.chooses,
        bool(found.refuses),
        found.context,
        bool(found.beside),
    )


@pytest.mark.parametrize("manner", CELLS)
async def test_each_question_is_answered_rightly(manner: str) -> None:
    manners, expected = CELLS[manner]
    found, _ = await probe(manners)
    assert told_by(found) == expected
    assert found.ok
    assert found.speed
    assert found.speed > 0
    assert found.seconds < 60
    assert not [row for row in found.rows() if row.detail.startswith("not told:")]


async def test_a_model_that_names_whatever_it_is_shown_is_told_not_to_choose() -> None:
    agreeable = CompetentModel(
        others=(
            ("Which of these sentences answer", lambda _: "<answer>1</answer>"),
            ("Which passages bear out", lambda _: "<answer>\n1: 1\n2: 1\n3: 1\n</answer>"),
        )
    )
    async with serve_manners(agreeable, Manners()) as place:
        chosen = ModelSettings(kind="openai", url=place.url, name=MODEL)
        found = await probe_model(chosen)
    assert found.chooses == 0
    (row,) = (row for row in found.rows() if row.name == "picks and confirms")
    assert (row.status, row.detail) == ("warn", "0 of 3 choices right")
    assert found.ok


async def test_thinking_is_measured_and_its_allowance_follows() -> None:
    for place in ("text", "apart", "hidden"):
        found, advice = await probe(Manners(thinking=place, thought_tokens=800, tells_not_to=False))
        assert found.thinking
        assert 700 < found.thinking.tokens < 900
        assert advice.model["thinking"] == pytest.approx(4 * found.thinking.tokens, abs=512)
    found, advice = await probe(Manners(thinking="text", thought_tokens=5000, tells_not_to=False))
    assert found.thinking
    assert not found.thinking.ended
    assert int(str(advice.model["thinking"])) >= 8192
    assert "more than" in next(row.detail for row in found.rows() if row.name == "thinks")


RUNS = {
    name: replace(CELLS[name][0])
    for name in (
        "obeys",
        "hosted, bare",
        "thinks in the text",
        "thinks unseen",
        "thinks whatever it is told",
        "native calls",
        "bold tags",
        "a small context",
        "Ollama",
        "Ollama with Qwen3",
    )
}


@pytest.mark.parametrize("manner", RUNS)
async def test_what_is_written_is_read_back_and_runs_with_it_end_rightly(
    manner: str, tmp_path: Path
) -> None:
    found, advice = await probe(RUNS[manner])
    file = tmp_path / "osler.toml"
    write_advice(file, [advice])
    written = tomllib.loads(file.read_text("utf-8")) if file.exists() else {}
    section = dict(written.get("model", {}))
    assert section == advice.model
    for kind in ("rag", "tc-rag"):
        done = await run_mannered({"kind": kind}, RUNS[manner], tmp_path, model=section)
        assert "oral iron" in done.solution.answer.text.casefold()
        assert done.solution.halt is Halt.CONVERGED
        thinking = found.thinking or Thinking()
        if thinking.is_off:
            assert all(_has_fields(body, thinking.fields) for body in done.requests)


def _has_fields(body: Mapping[str, Any], fields: tuple[str, ...]) -> bool:
    (name, _, _) = fields[0].partition("=")
    place: Any = body
    for part in name.split("."):
        place = place.get(part, {})
    return bool(place != {})


async def test_the_file_loads_with_all_that_was_written(tmp_path: Path) -> None:
    file = tmp_path / "osler.toml"
    file.write_text(
        f'[model]\nkind = "openai"\nurl = "http://127.0.0.1:9/v1"\nname = "{MODEL}"\n'
        'request = ["top_p=0.9"]\n[strategy]\nkind = "tc-rag"\nmetric = "cppl"\n'
        'dialect = "paper"\nsigma = 7.0\n'
    )
    settings = load({}, cwd=tmp_path, env={}).settings
    manners = Manners(
        server="Ollama", context=3000, thinking="apart", tags="bold", logprobs=False, seconds=0.4,
        one_slot=True,
    )  # fmt: skip
    async with serve_manners(CompetentModel(), manners) as place:
        chosen = settings.model.model_copy(update={"url": place.url})
        found = await probe_model(chosen)
    write_advice(file, [advise(settings, chosen, found)])
    now = load({}, cwd=tmp_path, env={}).settings
    assert now.model.request == ("top_p=0.9", "think=false", "options.num_ctx=8192")
    assert now.model.request_fields["options"] == {"num_ctx": 8192}
    assert (now.model.parallel, now.model.thinking) == (1, 2048)
    told: Any = now.strategy
    assert (told.metric, told.dialect, told.sigma) == ("auto", "tolerant", 7.0)


async def test_passages_are_as_many_as_the_context_holds() -> None:
    for context, k in ((32_768, None), (4096, 9), (3000, 5), (2100, 2)):
        _, advice = await probe(Manners(context=context))
        assert advice.strategy.get("k") == k


async def test_a_call_to_ollama_is_allotted_the_context_and_keeps_its_other_options() -> None:
    async with serve_manners(CompetentModel(), Manners(server="Ollama")) as place:
        chosen = ModelSettings(
            kind="openai", url=place.url, name=MODEL, request=("options.num_ctx=8192",)
        )
        await probe_model(chosen)
        for body in place.bodies_of("/api/chat"):
            assert body["options"]["num_ctx"] == 8192
            assert "num_predict" in body["options"]
