"""KAG-Thinker, as the settings ask for it."""

from __future__ import annotations

from osler.answer.base import Composer
from osler.config import KagThinker, Role
from osler.kag.boundary import Boundary, GenerateThenAssess, NoBoundary
from osler.kag.depth import DepthSolver
from osler.kag.executors import Calculator, Deducer
from osler.kag.focus import Focuser
from osler.kag.output import Finisher
from osler.kag.planner import Decomposer, GivenPlan, Planner
from osler.kag.solver import Thinker
from osler.kag.speaker import Speaker
from osler.llm.base import Sampling
from osler.wiring.parts import Parts


def thinker(
    chosen: KagThinker,
    parts: Parts,
    compose: Composer,
    sampling: Sampling,
    *,
    small: bool,
) -> Thinker:
    """The planner decomposes; the reader does all else.

    `small`: the planner is too small for a long plan within its tokens.
    """
    reader = _speaker(parts, "reader", sampling)
    planner: Planner = GivenPlan()
    if chosen.decompose:
        speaker = _speaker(parts, "planner", sampling)
        planner = Decomposer(speaker, steps=3, longest=24) if small else Decomposer(speaker)
    depth = DepthSolver(
        reader,
        parts.retriever("kag-thinker", parts.sources),
        _boundary(chosen, reader),
        Focuser(reader),
        sources=parts.sources,
        k=chosen.k,
        turns=chosen.turns,
    )
    return Thinker(
        planner,
        depth,
        Calculator(reader, None if chosen.formulas else {}),
        Deducer(reader),
        Finisher(reader),
        compose,
    )


def _speaker(parts: Parts, role: Role, sampling: Sampling) -> Speaker:
    ready = parts.models[role]
    return Speaker(ready.model, role, sampling, ready.constrains)


def _boundary(chosen: KagThinker, reader: Speaker) -> Boundary:
    if chosen.boundary == "none":
        return NoBoundary()
    return GenerateThenAssess(
        reader,
        chosen.tau,
        self_check=chosen.boundary in ("both", "self-check"),
        likelihood=chosen.boundary in ("both", "likelihood"),
    )
