"""Chain-of-Note: a note on each passage, then the answer (TC-RAG App. 8.5, method 6).

Yu et al. 2023, *Chain-of-Note*, §3.2: the model notes what each passage says, whether it is
relevant, and answers from the relevant ones, from its own knowledge where none is, or that it
does not know. TC-RAG names this method and cites Chain-of-Knowledge; both are here.

Departures: the zero-shot prompt of the paper's appendix instead of a model trained on notes;
an answer from the model's own knowledge counts as ungrounded.
"""

from __future__ import annotations

from dataclasses import dataclass

from osler.llm.reading.tags import content_span, find_tags
from osler.methods.single_pass.episode import Episode, EpisodeMethod


@dataclass(frozen=True)
class ChainOfNote(EpisodeMethod):
    async def run_episode(self, episode: Episode) -> str:
        hits = await episode.search(episode.question.text)
        documents = episode.list_documents(hits)
        reply = await episode.ask_text("baselines/chain_of_note", documents=documents)
        episode.conclude_text(after_notes(reply), hits)
        return "answered from notes on the passages"


def after_notes(text: str) -> str:
    """The answer after the notes; the whole text where no answer is marked."""
    marks = [tag for tag in find_tags(text) if tag.name == "conclusion"]
    return text[slice(*content_span(text, marks[-1].end, len(text)))] if marks else text
