"""Answers a step of any plan from the sentence that states its relation, before any model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from osler.methods.kag.depth import Depth, SubAnswer
from osler.methods.kag.logical_forms import PlanStep, Retrieval
from osler.methods.kag.text_route.facts import FactFinder
from osler.methods.kag.text_route.relations import read_text_vocabulary
from osler.trace import Run
from osler.types import Language


@dataclass(frozen=True)
class SpanFirst:
    """Depth solving by the span rule where the step asks a known relation of a named thing; `depth`
    solves all others, and those of which nothing is stated."""

    finder: FactFinder
    depth: Depth

    async def solve(
        self, step: PlanStep, question: str, known: Sequence[str], language: Language, run: Run
    ) -> SubAnswer:
        forms = (step.action, *step.others)
        asked = [(one.s.name, _relation_of(one)) for one in forms if isinstance(one, Retrieval)]
        if language == "en" and asked and all(name and hop for name, hop in asked):
            facts = [await self.finder.find_fact(name, hop, run) for name, hop in asked]
            stated = [fact for fact in facts if fact is not None]
            if len(stated) == len(asked):
                values = dict.fromkeys(fact.edge.object_name for fact in stated)
                hits = dict.fromkeys(fact.hit for fact in stated)
                return SubAnswer(step.n, question, "; ".join(values), tuple(hits))
        return await self.depth.solve(step, question, known, language, run)


def _relation_of(form: Retrieval) -> str:
    """The relation that the predicate names: by its own name, or by a noun of one."""
    vocabulary = read_text_vocabulary()
    kind = (form.p.type or form.p.name).casefold().replace("_", " ").strip()
    path = vocabulary.nouns.get(kind, ())
    if len(path) == 1:
        return path[0]
    named = kind.replace(" ", "_")
    return named if named in vocabulary.relations else ""
