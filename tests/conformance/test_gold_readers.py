"""A reader that plays gold, behind every method that plans: what is found reaches the answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from osler.testing.competent import GoldReader, key_sentence
from osler.testing.mannered_runs import ManneredRun, run_mannered
from osler.testing.manners import Manners
from osler.testing.scripted import ScriptedRetriever
from osler.types import Halt, Passage, Question

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
ASKED = "Who described the fungus from which lovastatin was isolated?"


def make_reader() -> GoldReader:
    return GoldReader(ASKED, "Charles Thom", (LOVASTATIN, TERREUS), wrong=0.0)


METHODS: dict[str, dict[str, Any]] = {
    kind: {"kind": kind} for kind in ("rag", "tc-rag", "kag-thinker", "omni-rag", "unified")
}


async def read_by(strategy: dict[str, Any], reader: GoldReader, home: Path) -> ManneredRun:
    found = ScriptedRetriever(
        {
            "What is said of Lovastatin?": [LOVASTATIN, NOISE],
            "What is said of Aspergillus terreus?": [TERREUS, NOISE],
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
    reader = GoldReader(ASKED, "Charles Thom", (LOVASTATIN, TERREUS), wrong=1.0)
    done = await read_by({"kind": "rag"}, reader, tmp_path)
    cited = {one.passage.id for one in done.solution.answer.evidence}
    assert "Charles Thom" in done.solution.answer.text
    assert NOISE.id not in cited


async def test_without_a_gold_document_it_is_not_read(tmp_path: Path) -> None:
    lost = Passage("wiki:lost#0", "A text that nobody has.", "wiki", "Lost")
    reader = GoldReader(ASKED, "Charles Thom", (LOVASTATIN, lost), wrong=0.0)
    done = await read_by({"kind": "tc-rag"}, reader, tmp_path)
    assert done.solution.halt is not Halt.CONVERGED


@pytest.mark.parametrize("kind", METHODS)
async def test_a_reader_knows_what_it_was_not_shown(kind: str, tmp_path: Path) -> None:
    lost = Passage("wiki:lost#0", "A text that nobody has.", "wiki", "Lost")
    reader = GoldReader(ASKED, "Charles Thom", (LOVASTATIN, lost), wrong=0.0)
    await read_by(METHODS[kind], reader, tmp_path)
    assert not reader.was_shown_all


def test_a_document_is_known_by_its_sentence_with_the_answer() -> None:
    assert key_sentence(TERREUS, "soil") == "It lives in soil."
    assert key_sentence(TERREUS, "nothing").startswith("Aspergillus terreus was")
