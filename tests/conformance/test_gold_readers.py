"""A reader that plays gold, behind every method that plans: what is found reaches the answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from competent import GoldReader, GoldStep, key_sentence
from mannered_runs import ManneredRun, run_mannered
from manners import Manners

from osler.trace import Searched
from osler.types import Halt, Passage, Question
from osler_lab.testing.scripted import ScriptedRetriever

LOVASTATIN = Passage(
    "wiki:lovastatin#0",
    "Lovastatin was isolated from Aspergillus terreus. It lowers cholesterol.",
    "wiki",
    "Lovastatin",
)
TERREUS = Passage(
    "wiki:terreus#0",
    "Aspergillus terreus was described by Charles Thom in 1918. It lives in soil.",
    "wiki",
    "Aspergillus terreus",
)
NOISE = Passage("wiki:noise#0", "Penicillium lives on bread.", "wiki", "Penicillium")
LOST = Passage("wiki:lost#0", "A text that nobody has.", "wiki", "Lost")
ASKED = "Who described the fungus from which lovastatin was isolated?"
FIRST, SECOND = "From which fungus was lovastatin isolated?", "Who described Aspergillus terreus?"


def make_reader(*, last: Passage = TERREUS, wrong: float = 0.0) -> GoldReader:
    steps = (
        GoldStep(FIRST, "Aspergillus terreus", (LOVASTATIN,)),
        GoldStep("Who described #1?", "Charles Thom", (last,)),
    )
    return GoldReader(ASKED, "Charles Thom", steps, wrong=wrong)


METHODS: dict[str, dict[str, Any]] = {
    **{kind: {"kind": kind} for kind in ("rag", "tc-rag", "kag-thinker", "unified")},
    "omni-rag": {"kind": "omni-rag", "follow": 3},
}


async def read_by(strategy: dict[str, Any], reader: GoldReader, home: Path) -> ManneredRun:
    found = ScriptedRetriever(
        {
            FIRST: [LOVASTATIN, NOISE],
            SECOND: [TERREUS, NOISE],
            ASKED: [NOISE, LOVASTATIN] if strategy["kind"] != "rag" else [LOVASTATIN, TERREUS],
            "": [NOISE],
        }
    )
    return await run_mannered(
        strategy,
        Manners(),
        home,
        competent=reader,
        question=Question("q", ASKED),
        retriever=found,
    )


@pytest.mark.parametrize("kind", METHODS)
async def test_the_gold_answer_comes_out_with_its_documents(kind: str, tmp_path: Path) -> None:
    reader = make_reader()
    done = await read_by(METHODS[kind], reader, tmp_path)
    assert reader.was_shown_all
    assert "Charles Thom" in done.solution.answer.text
    assert done.solution.halt is Halt.CONVERGED
    cited = {one.passage.id for one in done.solution.answer.evidence}
    assert TERREUS.id in cited
    assert NOISE.id not in cited


async def test_a_wrong_mark_is_not_believed(tmp_path: Path) -> None:
    reader = make_reader(wrong=1.0)
    done = await read_by({"kind": "rag"}, reader, tmp_path)
    cited = {one.passage.id for one in done.solution.answer.evidence}
    assert "Charles Thom" in done.solution.answer.text
    assert NOISE.id not in cited


async def test_without_a_gold_document_it_is_not_read(tmp_path: Path) -> None:
    reader = make_reader(last=LOST)
    done = await read_by({"kind": "tc-rag"}, reader, tmp_path)
    assert done.solution.halt is not Halt.CONVERGED


@pytest.mark.parametrize("kind", METHODS)
async def test_a_reader_knows_what_it_was_not_shown(kind: str, tmp_path: Path) -> None:
    reader = make_reader(last=LOST)
    await read_by(METHODS[kind], reader, tmp_path)
    assert not reader.was_shown_all


async def test_one_plan_cannot_ask_what_the_first_step_finds(tmp_path: Path) -> None:
    reader = make_reader()
    done = await read_by({"kind": "omni-rag"}, reader, tmp_path)
    assert not reader.was_shown_all
    assert done.solution.answer.is_silent


async def test_what_cannot_be_found_is_asked_in_other_words_and_given_up(tmp_path: Path) -> None:
    done = await read_by({"kind": "tc-rag"}, make_reader(last=LOST), tmp_path)
    asked = [event.query for event in done.run.events if isinstance(event, Searched)]
    assert asked[:2] == [FIRST, SECOND]
    assert len(asked) == len(set(asked)) > 2
    assert "twice" in done.solution.why


async def test_a_chain_of_two_steps_takes_the_unified_system_six_calls(tmp_path: Path) -> None:
    done = await read_by({"kind": "unified"}, make_reader(), tmp_path)
    # A plan, for each step what the model knows and what the search says, and the answer.
    assert done.chats <= 6


def test_a_document_is_known_by_its_sentence_with_the_answer() -> None:
    assert key_sentence(TERREUS, "soil") == "It lives in soil."
    assert key_sentence(TERREUS, "nothing").startswith("Aspergillus terreus was")
