"""The knowledge-augmented retriever: a logical form looked up in the graph (KAG-Thinker §3.4).

1. The subject by its name, exactly, else by vectors (cosine at least 0.8), else as it is nearly
   spelt; without one, the object.
2. One hop by the predicate, compared in words, and by the type of what is asked for; where no
   predicate fits, the 15 relations with the nearest vectors (at least 0.3), of which a model may
   choose (`depth.RelationSelector`), else all relations, the nearest in words first.
3. Constraints: what the graph contradicts falls; what it does not speak of stays, behind.
4. Personalised PageRank from the subject: passages of text that name what lies near it first,
   those among them that name only what the walk reaches.
5. Both rankings fused by reciprocal ranks.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from osler.errors import CapabilityMissing, MalformedOutput, SourceUnavailable
from osler.graph.chains import rank_nearest
from osler.graph.items import Edge, NamedConcept
from osler.graph.link import Dictionary
from osler.graph.lookup import FUZZY, Lookup, NameVectors
from osler.graph.store import Graph
from osler.methods.kag.depth import FormRetriever
from osler.methods.kag.logical_forms import (
    Constraint,
    Retrieval,
    constraint_holds,
    render_form,
    same_text,
)
from osler.methods.kag.reader import read_form
from osler.retrieve import STOP_WORDS, rank_hits, rrf, search_errors
from osler.retrieve.graph import find_forms
from osler.sources.catalogue import GRAPH
from osler.types import Hit, Passage, Relevance, Retriever

NAMES = 3
"""Concepts considered for one name, at most."""
_NEAR_NAMES = 30
"""Names with most words of one that the graph lacks, of which the nearest are considered."""
NEAR = 50
"""Concepts of a walk that count for the ranking of passages."""
FUZZY_RELATIONS = 15
"""Relations that are taken by their vectors where no predicate fits (KAG's top k)."""
_RELATION_LEAST = 0.3
# Relations of a subject whose vectors are compared: those that share most words with the form.
_WEIGHED = 50
# Concepts that a walk reaches whose names are searched in the texts.
_WALKED = 3
# Word overlap below which two predicates count as different.
_LEAST = 0.3
# Answers that are checked against the constraints.
_READ = 50
# Factor on an answer's score for each constraint on which the graph is silent.
_UNTOLD = 0.5
_BRACKETED = re.compile(r"\(([^()]*)\)\s*$")
_CONDITION = re.compile(r"[,;，；、]")


@dataclass(frozen=True)
class HybridGraph:
    """Relations of the graph and, where there are any, passages of text, for one form."""

    graph: Graph
    texts: Retriever | None = None
    likeness: Relevance | None = None
    """Orders relations, and names that share words with one that the graph lacks, by their
    vectors."""
    names: NameVectors | None = None
    """Vectors of the graph's names; `None`: names are compared as words and letters alone."""

    async def find_form(self, form: Retrieval, *, k: int) -> list[Hit]:
        """The best `k` hits. Raises `SourceUnavailable`."""
        # Step 1: from the object where the subject is unknown.
        form = form if form.s.name else _reverse_form(form)
        if not form.s.name:
            return []
        with search_errors():
            known = await self._subject_concepts(form.s.name)
            # Steps 2 and 3: edges by predicate and type, filtered by constraints.
            edges = await self._answer_edges(form, [name for _, name in known])
            stated = await asyncio.to_thread(self._edge_passages, edges, {id for id, _ in known})
            # Step 4: text passages, by PageRank from the subject.
            texts = await self._text_passages(form, [id for id, _ in known], k)
        every = {passage.id: passage for passage in (*stated, *texts)}
        # Step 5: fusion.
        order = rrf([[p.id for p in stated], [p.id for p in texts]])
        return rank_hits([(every[id], score) for id, score in order[:k]], render_form(form), GRAPH)

    async def _subject_concepts(self, name: str) -> list[tuple[str, str]]:
        """Concepts of a name: each id with a name that finds it exactly.

        Of one that the graph lacks those with the nearest vectors or spelling, else with most of
        its words.
        """
        found = await asyncio.to_thread(self._near_concepts, name)
        if len(found) > NAMES and self.likeness is not None:
            scores = await self.likeness.relevance(name, [match.name for match in found])
            order = sorted(range(len(found)), key=lambda i: -scores[i])
            found = [found[i] for i in order]
        return [(match.concept, match.name) for match in found[:NAMES]]

    def _near_concepts(self, name: str) -> list[NamedConcept]:
        if exact := self.graph.find_exact(name):
            return exact[:NAMES]
        if self.names and (near := self.names.find_near(name, k=NAMES, least=FUZZY)):
            return near
        lookup = Lookup(self.graph)
        # Spelling needs an extra, which no run may end for.
        with suppress(CapabilityMissing):
            if spelt := lookup.find_fuzzy(name, k=NAMES):
                return spelt
        return lookup.find_by_words(name, k=_NEAR_NAMES)

    async def _answer_edges(self, form: Retrieval, names: Sequence[str]) -> list[Edge]:
        """Edges that answer the form, best first: those of the asked type where there are any."""
        scored: dict[Edge, float] = {}
        for name in dict.fromkeys(names):
            scored |= await self._stated_edges(form, name)
        ids = {match.concept for name in names for match in self.graph.find_exact(name)}
        worth = await asyncio.to_thread(
            self._weigh_constraints, form.constraints, list(scored), ids
        )
        kept = [(edge, scored[edge] + share) for edge, share in worth.items() if share > 0]
        return [edge for edge, _ in sorted(kept, key=lambda pair: -pair[1])]

    async def _stated_edges(self, form: Retrieval, name: str) -> dict[Edge, float]:
        """One hop from a name, each relation with its fit, from strict to lax: right type and
        predicate, right predicate, near in meaning, any relation."""
        predicate = form.p.type or form.p.name or form.o.type
        for kind, least in ((form.o.type, _LEAST), ("", _LEAST), ("", -1.0)):
            found = await find_forms(
                self.graph, name, predicate, target_type=kind, k=_READ, least=least
            )
            if found and least < 0 and not form.o.name:
                near = await self._nearest_edges(form, name)
                return near or {hit.edge: hit.score for hit in found}
            if found:
                return {hit.edge: hit.score for hit in found if _is_named(hit.answer, form.o.name)}
        return {}

    async def _nearest_edges(self, form: Retrieval, name: str) -> dict[Edge, float]:
        """The relations whose vectors are nearest to the form; none without vectors."""
        if self.likeness is None:
            return {}
        asked = form_words(form)
        edges = await asyncio.to_thread(self._related_edges, name, asked)
        said = [" ".join(edge.triple).replace("_", " ") for edge in edges]
        scores = await self.likeness.relevance(asked, said)
        best = sorted(zip(edges, scores, strict=True), key=lambda pair: -pair[1])
        return {edge: s for edge, s in best[:FUZZY_RELATIONS] if s >= _RELATION_LEAST}

    def _related_edges(self, name: str, asked: str) -> list[Edge]:
        lookup = Lookup(self.graph)
        concepts = [match.concept for match in self.graph.find_exact(name)]
        found = (lookup.find_related(id, asked, most=_WEIGHED) for id in concepts)
        return list(dict.fromkeys(edge for edges in found for edge in edges))

    def _weigh_constraints(
        self, constraints: Sequence[Constraint], edges: Sequence[Edge], subjects: set[str]
    ) -> dict[Edge, float]:
        """Weight of each edge: 1 when all constraints hold, 0 when one is contradicted."""
        worth = dict.fromkeys(edges, 1.0)
        for constraint in constraints:
            for edge in edges:
                ends = (edge.subject, edge.object)
                inside = [id for id in ends if (id in subjects) == (constraint.on == "s")]
                if constraint.on == "p":
                    told = self._edge_values(constraint, edge)
                else:
                    told = self._property_values(constraint, inside)
                if not told:
                    worth[edge] *= _UNTOLD
                elif not any(constraint_holds(constraint, value) for value in told):
                    worth[edge] = 0.0
        return worth

    def _property_values(self, constraint: Constraint, ids: Sequence[str]) -> list[str]:
        """The graph's values of the constrained property."""
        concepts = [concept for id in ids if (concept := self.graph.get_concept(id))]
        wanted = constraint.property.casefold().replace("_", " ")
        if wanted == "name":
            return [name for concept in concepts for name in concept.names]
        if wanted == "type":
            return [kind for concept in concepts for kind in concept.types]
        edges = self.graph.find_neighbours(ids)
        said = [edge for edge in edges if edge.predicate.replace("_", " ").casefold() == wanted]
        return [e.object_name if e.subject in ids else e.subject_name for e in said]

    def _edge_values(self, constraint: Constraint, edge: Edge) -> list[str]:
        """What the graph knows about the constrained property of a relation: source, predicate,
        and its notes, where extraction keeps a relation's conditions (App. 14, Table 16)."""
        wanted = constraint.property.casefold().replace("_", " ")
        if wanted in ("name", "type"):
            return [edge.predicate.replace("_", " ")]
        if wanted == "source":
            return [edge.source]
        return [
            value
            for note in self.graph.find_notes(edge)
            for value in condition_values(note, constraint)
        ]

    def _edge_passages(self, edges: Sequence[Edge], subjects: set[str]) -> list[Passage]:
        known = [edge.subject if edge.subject in subjects else edge.object for edge in edges]
        return [
            self.graph.relation_passage(concept, edge)
            for edge, concept in zip(edges, map(self.graph.get_concept, known), strict=True)
            if concept is not None
        ]

    async def _text_passages(
        self, form: Retrieval, concepts: Sequence[str], k: int
    ) -> list[Passage]:
        """Text passages, first those that name concepts near the subject (by personalised
        PageRank). The best one of the text search itself is always among them."""
        if self.texts is None:
            return []
        found = [hit.passage for hit in await self.texts.search(form_words(form), k=3 * k)]
        shares = dict(await asyncio.to_thread(rank_nearest, self.graph, concepts, k=NEAR))
        walked = await self._walked_passages(self.texts, concepts, shares, k)
        every = list({passage.id: passage for passage in (*found, *walked)}.values())
        mass = {p.id: await asyncio.to_thread(self._named_mass, p.text, shares) for p in every}
        ranked = sorted(every, key=lambda passage: -mass[passage.id])[:k]
        # As in KAG, the last place is the text search's, whose best hit may name nothing known.
        return ranked if not found or found[0] in ranked else [*ranked[:-1], found[0]]

    async def _walked_passages(
        self, texts: Retriever, concepts: Sequence[str], shares: dict[str, float], k: int
    ) -> list[Passage]:
        """Passages that name what the walk reaches, whether or not they share the form's words."""
        reached = [id for id in shares if id not in concepts][:_WALKED]
        known = [await asyncio.to_thread(self.graph.get_concept, id) for id in reached]
        named = [concept.name for concept in known if concept is not None]
        found = await asyncio.gather(*(texts.search(name, k=k) for name in named))
        passages = [hit.passage for hits in found for hit in hits]
        # What a search by name finds may name something else.
        return [p for p in passages if await asyncio.to_thread(self._named_mass, p.text, shares)]

    def _named_mass(self, text: str, shares: dict[str, float]) -> float:
        if not shares:
            return 0.0
        mentions = Dictionary(self.graph, STOP_WORDS).find_mentions(text)
        named = {id for mention in mentions for id in mention.concepts}
        return sum(shares.get(id, 0.0) for id in named)


@dataclass(frozen=True)
class FormsAsWords:
    """A form as a word query, for setups without a graph: its names and its predicate."""

    retriever: Retriever

    async def find_form(self, form: Retrieval, *, k: int) -> list[Hit]:
        term = form.s.name or form.o.name
        asked = " ".join(filter(None, (form.p.type, form.p.name, form.o.type)))
        return await self.retriever.search(f"{term} , {asked}", k=k) if term else []


@dataclass(frozen=True)
class FormsAsQueries:
    """A form retriever behind the `Retriever` interface, so that tapes record and replay it."""

    forms: FormRetriever

    async def search(self, query: str, *, k: int) -> list[Hit]:
        """`query` is a form as `render_form` writes it. Raises `SourceUnavailable`."""
        try:
            form, _ = read_form(query)
        except MalformedOutput as error:
            raise SourceUnavailable(f"no form to look up: {error.message}") from error
        return await self.forms.find_form(form, k=k) if isinstance(form, Retrieval) else []


@dataclass(frozen=True)
class QueriesAsForms:
    """The inverse adapter: a recorded `Retriever` as a form retriever."""

    retriever: Retriever

    async def find_form(self, form: Retrieval, *, k: int) -> list[Hit]:
        return await self.retriever.search(render_form(form), k=k)


def form_words(form: Retrieval) -> str:
    """The form as a query: type and name of the subject, predicate, type and name of the object."""
    ends = (form.s.type, form.s.name, form.p.type, form.p.name, form.o.type, form.o.name)
    return " ".join(filter(None, ends)).replace("_", " ")


def condition_values(note: str, constraint: Constraint) -> list[str]:
    """The values that a relation's note gives for a constrained property.

    The note lists conditions: "adults, degree of burn: II", after a passage in brackets where it
    was extracted. A part that begins with the property's name gives its value; a bare part counts
    where it is the value asked for, since it does not say of which property it is.
    """
    bracketed = _BRACKETED.search(note)
    wanted = constraint.property.casefold().replace("_", " ")
    values = []
    for part in _CONDITION.split(bracketed[1] if bracketed else note):
        said = part.strip()
        if said.casefold().startswith(wanted):
            values.append(said[len(wanted) :].strip(" :：=＝为是"))
        elif any(same_text(said, each) for each in constraint.values()):
            values.append(said)
    return [value for value in values if value]


def _is_named(answer: str, name: str) -> bool:
    return not name or answer.casefold() == name.casefold()


def _reverse_form(form: Retrieval) -> Retrieval:
    """Swaps subject and object of a form whose object alone is known; constraints swap too."""
    other = {"s": "o", "o": "s", "p": "p"}
    turned = tuple(replace(c, on=other[c.on]) for c in form.constraints)  # type: ignore[arg-type]
    return replace(form, s=form.o, o=form.s, constraints=turned)
