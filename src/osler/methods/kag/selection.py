"""A model chooses among relations that no predicate matches (KAG-Thinker §3.4: KAG's fuzzy
retriever of the graph)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from osler.errors import MalformedOutput
from osler.llm.core.speaker import Speaker
from osler.llm.reading.verdicts import numbers_grammar, read_numbers
from osler.methods.kag.logical_forms import Retrieval
from osler.prompts import render_prompt
from osler.sources.catalogue import GRAPH
from osler.trace import Noted, Run
from osler.types import Hit, Language

OFFERED = 15
"""Relations that are offered at once (KAG's top k)."""


@dataclass(frozen=True)
class RelationSelector:
    """Asks one model which relations of the graph help."""

    speaker: Speaker

    async def select(
        self, form: Retrieval, question: str, hits: Sequence[Hit], language: Language, run: Run
    ) -> list[Hit]:
        """The hits without the relations that the model leaves out.

        All of them where there is nothing to choose: a single relation, or one whose predicate is
        the one asked for; and where the reply names none that can be read.
        """
        offered = [hit for hit in hits if _is_relation(hit)][:OFFERED]
        if len(offered) < 2 or any(_has_predicate(form, hit) for hit in offered):
            return list(hits)
        prompt = render_prompt(
            "kag/select",
            language,
            question=question,
            relations=[hit.passage.text.removeprefix("Relation: ") for hit in offered],
        )
        try:
            chosen = await self.speaker.ask(
                prompt,
                lambda reply: read_numbers(reply.text, len(offered)),
                run,
                grammar=numbers_grammar(len(offered), self.speaker.reasoning),
            )
        except MalformedOutput as error:
            run.emit(Noted(f"relations of {form.s.name!r} are read unchosen: {error.message}"))
            return list(hits)
        kept = {hit.passage.id for hit, yes in zip(offered, chosen, strict=True) if yes}
        return [hit for hit in hits if not _is_relation(hit) or hit.passage.id in kept]


def _is_relation(hit: Hit) -> bool:
    return hit.passage.source == GRAPH and "#rel-" in hit.passage.id


def _has_predicate(form: Retrieval, hit: Hit) -> bool:
    asked = (form.p.type or form.p.name).replace("_", " ").casefold()
    return bool(asked) and f", {asked}, " in hit.passage.text.replace("_", " ").casefold()
