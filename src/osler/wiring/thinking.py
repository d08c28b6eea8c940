"""KAG-Thinker, as the settings ask for it."""

from __future__ import annotations

from dataclasses import replace

from osler.answer.base import Composer
from osler.config import KagThinker, Role, Settings
from osler.errors import BadConfig
from osler.kag.boundary import TAU, GenerateThenAssess, NoBoundary
from osler.kag.depth import DepthSolver, FormRetriever
from osler.kag.executors import Calculator, Deducer
from osler.kag.focus import Focuser
from osler.kag.hybrid import QueriesAsForms
from osler.kag.outline import Outliner
from osler.kag.output import Finisher
from osler.kag.planner import Decomposer, GivenPlan, Planner
from osler.kag.solver import Thinker
from osler.kag.speaker import Speaker
from osler.llm.base import Sampling
from osler.types import GRAPH
from osler.wiring.forms import FORMS
from osler.wiring.parts import Parts

_BRIEF = 80
"""Characters of reasoning by a small model."""


def thinker(
    settings: Settings,
    chosen: KagThinker,
    parts: Parts,
    compose: Composer,
    sampling: Sampling,
    *,
    small: bool,
) -> Thinker:
    """The planner decomposes; the reader does all else.

    `small`: the planner is too small for Table 1, and long reasoning is of no use to it.
    """
    reader = speaker(parts, "reader", sampling, small=small)
    planner: Planner = GivenPlan()
    if chosen.decompose:
        asked = speaker(parts, "planner", sampling, small=small)
        planner = Outliner(asked) if small else Decomposer(asked)
    depth = DepthSolver(
        reader,
        parts.retriever("kag-thinker", parts.sources),
        boundary(settings, chosen, reader, small=small),
        Focuser(reader),
        _forms(chosen, parts),
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
        "" if chosen.boundary == "none" else tau(settings, chosen, reader.model.name)[1],
    )


def _forms(chosen: KagThinker, parts: Parts) -> FormRetriever | None:
    """`None` where nothing is looked up by form: no graph source, or plain text is asked for."""
    if chosen.retriever == "text" or GRAPH not in parts.sources:
        return None
    return QueriesAsForms(parts.retriever(FORMS, (GRAPH,)))


def tau(settings: Settings, chosen: KagThinker, reader: str) -> tuple[float, str]:
    """As set; else as calibrated to this very model; else the usual one.

    With it what a reader of the trace should know of it: where it comes from, or why another
    value was passed over.
    """
    if chosen.tau is not None:
        return chosen.tau, ""
    fitted = settings.calibration
    if fitted.tau is None:
        return TAU, ""
    if fitted.tau_model == reader:
        told = f"tau {fitted.tau:g}: calibrated on {fitted.tau_n} answers, {fitted.tau_date}"
        return fitted.tau, told
    return TAU, (
        f"the calibrated tau {fitted.tau:g} is for {fitted.tau_model}, not for {reader}:"
        " it is not used"
    )


def speaker(parts: Parts, role: Role, sampling: Sampling, *, small: bool) -> Speaker:
    """The role's model, asked as KAG-Thinker asks."""
    ready = parts.models[role]
    made = Speaker(ready.model, role, sampling, ready.constrains)
    return replace(made, reasoning=_BRIEF) if small else made


def boundary(
    settings: Settings, chosen: KagThinker, reader: Speaker, *, small: bool
) -> GenerateThenAssess | NoBoundary:
    """What says whether the reader knows by itself."""
    if chosen.boundary == "none":
        return NoBoundary()
    return GenerateThenAssess(
        reader,
        tau(settings, chosen, reader.model.name)[0],
        self_check=chosen.boundary in ("both", "self-check"),
        likelihood=chosen.boundary in ("both", "likelihood"),
        examples=small,
    )


def own_knowledge(settings: Settings, chosen: KagThinker, parts: Parts) -> GenerateThenAssess:
    """The boundary as a run has it, to be asked alone. Raises `BadConfig` where there is none."""
    from osler.wiring.strategies import writes

    small, asked = not writes(settings, "planner"), settings.sampling
    sampling = Sampling(asked.temperature, asked.max_tokens, seed=asked.seed)
    reader = speaker(parts, "reader", sampling, small=small)
    found = boundary(settings, chosen, reader, small=small)
    if isinstance(found, NoBoundary):
        raise BadConfig("there is no boundary", fix='set strategy.boundary = "both"')
    return found
