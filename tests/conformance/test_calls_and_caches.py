"""What a question costs a model that knows the answer: calls, and prompts that a cache has read.

The questions of a run are asked one after another of one server, whose cache counts the longest
beginning that a prompt shares with former ones, in blocks of 16 tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import mkdtemp

import pytest
from competent import CompetentModel
from mannered_runs import solve_in_turn
from manners import Manners

from osler.types import Halt, Passage, Question

TREATED = {
    "iron deficiency anaemia": "oral iron",
    "scabies": "permethrin cream",
    "gout": "allopurinol",
    "status epilepticus": "lorazepam",
    "hyperkalaemia": "calcium gluconate",
    "malaria": "artesunate",
    "pertussis": "azithromycin",
    "hypothyroidism": "levothyroxine",
    "croup": "dexamethasone",
    "migraine": "sumatriptan",
}
SCORES, BARE = Manners(), Manners(scores=False, logprobs=False)


def posed(illness: str, drug: str) -> tuple[Question, CompetentModel, tuple[Passage, ...]]:
    question, said = f"What treats {illness}?", f"{drug.capitalize()} treats {illness}."
    passages = (
        Passage(f"book:{illness}#0", f"{said} It is taken daily.", "book", illness),
        Passage(f"book:{illness}#1", f"{illness.capitalize()} is common.", "book", illness),
    )
    return Question(illness, question), CompetentModel(question, said, drug, illness), passages


@dataclass(frozen=True)
class Spent:
    calls: float
    """A question."""
    cached: float
    """Share of the prompt tokens."""


async def spend(kind: str, manners: Manners) -> Spent:
    asked = [posed(*each) for each in TREATED.items()]
    done = await solve_in_turn({"kind": kind}, manners, Path(mkdtemp()), asked)
    assert {one.solution.halt for one in done} == {Halt.CONVERGED}
    used = [one.run.usage for one in done]
    sent, cached = (
        sum(getattr(u, f"{name}_tokens") for u in used) for name in ("prompt", "cached")
    )
    return Spent(sum(one.calls for one in used) / len(used), cached / sent)


async def test_tc_rag_takes_two_calls_where_one_search_suffices() -> None:
    spent = await spend("tc-rag", BARE)
    assert spent.calls <= 2.2
    assert spent.cached >= 0.8


async def test_a_server_that_scores_is_asked_for_one_score_more() -> None:
    assert (await spend("tc-rag", SCORES)).calls <= 3.0


@pytest.mark.parametrize("manners", [SCORES, BARE], ids=["scores", "bare"])
async def test_the_unified_system_takes_five_calls_where_one_search_suffices(
    manners: Manners,
) -> None:
    """A plan, what the model knows, what the search says and its score, the answer."""
    spent = await spend("unified", manners)
    assert spent.calls <= 5
    assert spent.cached >= 0.8


async def test_every_call_of_tc_rag_begins_with_the_one_before() -> None:
    """Within a question the stack grows at its end: only what is new is read."""
    first, second = posed("gout", "allopurinol"), posed("gout", "allopurinol")
    again = replace(second[0], id="again")
    done = await solve_in_turn(
        {"kind": "tc-rag"}, BARE, Path(mkdtemp()), [first, (again, *second[1:])]
    )
    usage = done[1].run.usage
    assert usage.cached_tokens >= usage.prompt_tokens - 2 * 16
