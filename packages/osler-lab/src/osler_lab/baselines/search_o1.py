"""Search-o1: a reasoning model searches within its reasoning (KAG-Thinker Table 6).

Li et al. 2025, *Search-o1: Agentic Search-Enhanced Large Reasoning Models*, §3: the model
writes a query between its marks; what is found is first read by itself ("Reason-in-Documents",
§3.4), with the reasoning so far and the query, and only what helps is put into the reasoning.
A query that was asked before and one beyond the limit are answered with the paper's sentences.

Departures: whole passages instead of web pages; the answer is wanted as the house's readers
give it, not in a box (a box is read all the same). A search gives 3 passages, as KAG-Thinker
ran it (§4.1), instead of 10; 5 searches are those of the released code for questions of one
hop; it allows 10 for several.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from osler.llm.core.base import Completion
from osler.llm.core.spans import boxed_span, strip_types
from osler.llm.reading.thinking import spoken_part
from osler.methods.single_pass.episode import Episode, EpisodeMethod, match_option
from osler.types import Question

BEGIN_QUERY, END_QUERY = "<|begin_search_query|>", "<|end_search_query|>"
BEGIN_RESULT, END_RESULT = "<|begin_search_result|>", "<|end_search_result|>"
AGAIN = "You have searched this query. Please refer to previous results."
BEYOND = "The maximum search limit is exceeded. You are not allowed to search."
_FINAL = re.compile(r"\*\*\s*(?:Final Information|最终信息)\s*\*\*\s*[:：]?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class SearchO1(EpisodeMethod):
    searches: int = 5
    refine: bool = True
    """False: passages enter the reasoning as they are (the paper's RAgent)."""

    async def run_episode(self, episode: Episode) -> str:
        episode.capped = "searched to the limit without an answer"
        prompt = episode.render("baselines/search_o1", limit=self.searches)
        trail, seen = "", set[str]()
        # Each search is followed by a reply, and so is the refusal of one too many.
        for _ in range(self.searches + 2):
            reply = await episode.ask(prompt, begun=trail, stop=(END_QUERY,))
            trail += text_with_thinking(reply)
            query = last_query(trail)
            episode.conclude_answer(*answer_of(trail, episode.question))
            if query is None:
                episode.capped = ""
                break
            result = await self._reason_in_documents(episode, query, seen, trail)
            trail += f"{END_QUERY}\n\n{BEGIN_RESULT}{result}{END_RESULT}\n\n"
        return "reasoned to an answer"

    async def _reason_in_documents(
        self, episode: Episode, query: str, seen: set[str], trail: str
    ) -> str:
        # The paper's fixed replies (§3), which the model is trained to expect.
        if query in seen:
            return AGAIN
        if len(seen) >= self.searches:
            return BEYOND
        seen.add(query)
        hits = await episode.search(query)
        documents = episode.list_documents(hits)
        if not self.refine or not documents:
            return "\n".join(documents) or "No helpful information found."
        so_far = trail.replace(BEGIN_QUERY, "").strip()
        reply = await episode.ask_text(
            "baselines/search_o1_refine", text=so_far, question=query, documents=documents
        )
        return _FINAL.split(reply)[-1].strip()


def text_with_thinking(said: Completion) -> str:
    """The reply with its thinking, which is part of the protocol here."""
    return f"<think>{said.thinking}</think>\n{said.text}" if said.thinking else said.text


def last_query(trail: str) -> str | None:
    """The query at the end of the trail; `None` without one."""
    _, mark, query = trail.rpartition(BEGIN_QUERY)
    if not mark or END_QUERY in query or not query.strip():
        return None
    return " ".join(query.split())


def answer_of(trail: str, question: Question) -> tuple[str, str]:
    """The answer and the reasoning before it since the last result."""
    last = trail.rpartition(END_RESULT)[2].partition(BEGIN_QUERY)[0].strip()
    # Thinking is no answer, however a reply ends.
    last = spoken_part(last)
    box = boxed_span(last)
    if box:
        return strip_types(last, box), last[: box[0]].rpartition("\\boxed")[0]
    letter = match_option(last, question)
    return (letter, last) if letter else (last, "")
