"""Chain-of-Knowledge: rationales corrected one after another (TC-RAG App. 8.5, method 6).

Li et al. 2024, *Chain-of-Knowledge: Grounding LLMs via Dynamic Knowledge Adapting over
Heterogeneous Sources*, §2. Reasoning preparation: several chains of thought are sampled; where
more than half agree on the answer, that is the answer; else the model selects the question's
knowledge domains. Dynamic knowledge adapting: each rationale of the first chain with the most
frequent answer gets a query for each source of these domains, in that source's language, is
corrected by what the queries find, and the next is written anew after the corrected ones. Answer
consolidation: the answer from the corrected rationales.

Departures: every source is a domain of its own, and of the selected ones the first `domains`
are asked; texts are asked in words and the concept graph by concept and relation, where the
paper asks Wikidata in SPARQL; the adaptive query generator is prompted, not trained. 5 samples
at temperature 0.7, two rationales and the three passages of a query are the released code's,
which by default corrects both rationales at once. An open question's answers agree when they
are the same words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from osler.answer.option_reading import written_option
from osler.methods.episode import Episode, EpisodeMethod
from osler.retrieve import content_terms
from osler.types import Hit, Language, Question, Retriever

_STEP = re.compile(
    r"^\W*(?:first|second|third|next|then|首先|其次|再次|然后)\s*[,，:：]\s*", re.IGNORECASE
)
_ANSWER = re.compile(r"(?:the answer is|答案(?:是|为))\s*[:：]?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class RationaleChain:
    rationales: tuple[str, ...]
    answer: str


@dataclass(frozen=True)
class KnowledgeSource:
    """A source that a question's knowledge may be in, with a search of its own."""

    name: str
    retriever: Retriever
    description: Mapping[Language, str]
    is_graph: bool = False
    """Whether its queries have the form `concept , relation`."""


@dataclass(frozen=True)
class ChainOfKnowledge(EpisodeMethod):
    knowledge: tuple[KnowledgeSource, ...]
    """The sources to choose from; a single one is not chosen, but asked."""
    samples: int = 5
    temperature: float = 0.7
    """Of the samples."""
    rationales: int = 2
    domains: int = 2
    """Sources that are asked for each rationale, at most (ours)."""

    async def run_episode(self, episode: Episode) -> str:
        why = "answered from corrected rationales"
        # Seeds 0, 1, …: the samples differ, and a replay repeats them.
        chains = []
        for n in range(self.samples):
            reply = await episode.ask_text(
                "baselines/cok_reason", known=[], temperature=self.temperature, seed=n
            )
            chains.append(read_chain(reply, self.rationales))
        episode.conclude_answer(chains[0].answer, " ".join(chains[0].rationales))
        answers = [_normalize_answer(chain.answer, episode.question) for chain in chains]
        agreed, count = majority_answer([answer for answer in answers if answer])
        first = chains[answers.index(agreed)]
        episode.conclude_answer(first.answer, " ".join(first.rationales))
        # §2: a majority of the chains needs no adapting.
        if count > self.samples / 2:
            why = f"{count} of {self.samples} chains of thought agree"
        else:
            note = f"{count} of {self.samples} chains agree: the first of them is corrected"
            episode.note(note)
            await self._correct_chain(episode, first)
        return why

    async def _correct_chain(self, episode: Episode, chain: RationaleChain) -> None:
        sources = await self._select_sources(episode)
        known: list[str] = []
        while len(known) < self.rationales and len(known) < len(chain.rationales):
            known.append(
                await self._correct_rationale(episode, chain.rationales[len(known)], sources)
            )
            if len(known) < self.rationales:
                chain = await self._rewrite_rest(episode, known)
        episode.conclude_answer(
            _clean_answer(await episode.ask_text("baselines/cok_answer", steps=known)),
            " ".join(known),
        )

    async def _select_sources(self, episode: Episode) -> Sequence[KnowledgeSource]:
        """The knowledge domains of the question (§2.1); the first ones where none is named."""
        if len(self.knowledge) < 2:
            return self.knowledge
        language = episode.question.language
        reply = await episode.ask_text(
            "baselines/cok_domains",
            sources=[
                {"name": one.name, "description": one.description[language]}
                for one in self.knowledge
            ],
            at_most=self.domains,
            tokens=64,
            temperature=0.0,
        )
        chosen = select_sources(reply, self.knowledge) or self.knowledge
        names = ", ".join(one.name for one in chosen[: self.domains])
        episode.note(f"knowledge domains: {names}")
        return chosen[: self.domains]

    async def _query_source(
        self, episode: Episode, rationale: str, source: KnowledgeSource
    ) -> tuple[Hit, ...]:
        """Passages of one source for a rationale, by a query in its language (§2.2)."""
        if source.is_graph:
            query = await episode.ask_text("baselines/cok_graph_query", text=rationale, tokens=64)
        else:
            about = source.description[episode.question.language]
            query = await episode.ask_text(
                "baselines/cok_query",
                text=rationale,
                source=source.name,
                description=about,
                tokens=64,
            )
        return await episode.search(query, where=source.retriever, sources=(source.name,))

    async def _correct_rationale(
        self, episode: Episode, rationale: str, sources: Sequence[KnowledgeSource]
    ) -> str:
        found = [await self._query_source(episode, rationale, source) for source in sources]
        hits = list({hit.passage.id: hit for part in found for hit in part}.values())
        if not hits:
            return rationale
        documents = episode.list_documents(hits)
        reply = await episode.ask_text("baselines/cok_correct", text=rationale, documents=documents)
        return _clean_step(reply) or rationale

    async def _rewrite_rest(self, episode: Episode, known: list[str]) -> RationaleChain:
        """Rewrites the rest of the chain after the corrected rationales."""
        more = read_chain(
            await episode.ask_text("baselines/cok_reason", known=known),
            self.rationales - len(known),
        )
        return RationaleChain((*known, *more.rationales), more.answer)


def read_chain(text: str, most: int) -> RationaleChain:
    """Reads `First, … Second, … The answer is …`, one per line or in one paragraph."""
    body = _ANSWER.split(text, maxsplit=1)[0]
    parts = re.split(r"\n+|(?=\b(?:First|Second|Third)\b)|(?=首先|其次|再次)", body)
    steps = [_clean_step(part) for part in parts]
    return RationaleChain(tuple(step for step in steps if step)[:most], _clean_answer(text))


def select_sources(said: str, known: Sequence[KnowledgeSource]) -> list[KnowledgeSource]:
    """The sources that a reply names, in its order, each once; "wiki" is not named by "wikis"."""
    found = [
        (match.start(), source)
        for source in known
        if (match := re.search(rf"(?<!\w){re.escape(source.name)}(?!\w)", said, re.IGNORECASE))
    ]
    return [source for _, source in sorted(found, key=lambda pair: pair[0])]


def majority_answer(answers: list[str]) -> tuple[str, int]:
    """The most frequent answer (the first of equals) and its count; ("", 0) without answers."""
    return Counter(answers).most_common(1)[0] if answers else ("", 0)


def _clean_answer(text: str) -> str:
    said = _ANSWER.split(text)[-1]
    return said.strip().splitlines()[0].rstrip(".。") if said.strip() else ""


def _clean_step(text: str) -> str:
    return _STEP.sub("", text.strip())


def _normalize_answer(answer: str, question: Question) -> str:
    """The normal form by which two answers are compared: an option's letter, else words of
    content."""
    letter = written_option(f"Answer: {answer}", question) if question.options else None
    return letter or " ".join(content_terms(answer))
