"""KAG 0.8's static pipeline with what it shares with KAG-Thinker.

Methods know nothing of each other, so the executors and the lookup of forms are handed in here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from osler.app.wiring.build import StrategyBuild
from osler.app.wiring.corpus import HYBRID
from osler.app.wiring.graphs import FORMS
from osler.methods.baselines.kag_static import Executor, TaskSolver
from osler.methods.kag.executors import Calculator, Deducer
from osler.methods.kag.logical_forms import Deduce, Math, Operation
from osler.sources.catalogue import GRAPH
from osler.trace import Run
from osler.types import Language


@dataclass(frozen=True)
class MathSolver:
    """KAG's Math: a program in the sandbox."""

    calculator: Calculator

    async def solve_task(
        self, query: str, known: Sequence[str], language: Language, run: Run
    ) -> str:
        form = Math(tuple(known), query)
        return await self.calculator.solve(len(known) + 1, form, known, language, run)


@dataclass(frozen=True)
class DeduceSolver:
    """KAG's Deduce: one question about the answers so far."""

    deducer: Deducer

    async def solve_task(
        self, query: str, known: Sequence[str], language: Language, run: Run
    ) -> str:
        form = Deduce(Operation.EXTRACT, tuple(known), query)
        return await self.deducer.solve(len(known) + 1, form, known, language, run)


def kag_static_fields(build: StrategyBuild) -> dict[str, object]:
    """The fields of `KagStatic` that are KAG-Thinker's."""
    reader, parts = build.make_speaker("reader"), build.parts
    solvers: Mapping[Executor, TaskSolver] = {
        # Without the verified formulas, which are Osler's, not KAG's.
        "Math": MathSolver(Calculator(reader, {})),
        "Deduce": DeduceSolver(Deducer(reader)),
    }
    forms = parts.retriever(FORMS, (GRAPH,)) if GRAPH in parts.sources else None
    hybrid = parts.retriever(HYBRID, parts.sources) if HYBRID in parts.carriers else None
    return {"forms": forms, "hybrid": hybrid, "solvers": solvers}
