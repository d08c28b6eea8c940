"""The protocols that trained search models speak (KAG-Thinker Table 6), one engine for all.

Each is the tags, template and stop rules of its paper, for any checkpoint that speaks them:

* R1-Gen: reasoning and answer without a search (DeepSeek-R1, Guo et al. 2025, in the form that
  Jin et al. 2025 train);
* Search-R1 (Jin et al. 2025, §3.3 Table 1 and Algorithm 1): `<search>`, `<information>`,
  3 passages, 4 turns, and a sentence where a turn does neither;
* ZeroSearch (Sun et al. 2025, §3.3): the same template; 3 passages as KAG-Thinker ran it (§4.1),
  5 in its own training; 5 turns. In training the engine is a model; here as in its evaluation
  it is a real one;
* StepSearch (Wang et al. 2025, App.): the same tags under a template of its own that plans;
* ReSearch (Chen et al. 2025, §2.2 Table 1): `<result>` for `<information>`, the answer in a box.

Departures: the templates' questions carry options where there are any. In Chinese the template
is translated and the tags stay. What the reader sees of a passage is numbered, so that it can
be cited. The trained weights are not part of Osler.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from osler.llm.core.spans import boxed_span, strip_types
from osler.methods.single_pass.episode import Episode, EpisodeMethod
from osler.types import Hit
from osler_lab.baselines.search_o1 import text_with_thinking

_RETRY = (
    "\nMy previous action is invalid. If I want to search, I should put the query between"
    " <search> and </search>. If I want to give the final answer, I should put the answer"
    " between <answer> and </answer>. Let me try again.\n"
)
_OPEN = re.compile(r"<(search|answer)>((?:(?!</?(?:search|answer)>).)*)\Z", re.DOTALL)
_THINK = re.compile(r"<think>(.*?)</think>", re.DOTALL)


@dataclass(frozen=True)
class SearchProtocol:
    """The search protocol of a family of checkpoints."""

    template: str
    """Name of its prompt."""
    result: str = "information"
    """Tag around the passages found."""
    searches: bool = True
    boxed: bool = False
    """Whether the answer is inside `\\boxed{}`."""
    retry: str = ""
    """Text appended after a turn without an action; empty = such a turn ends the run."""
    turns: int = 5
    """Searches, at most; then one more reply."""


PROTOCOLS: dict[str, SearchProtocol] = {
    "r1-gen": SearchProtocol("baselines/r1_gen", searches=False, turns=0),
    "search-r1": SearchProtocol("baselines/search_r1", retry=_RETRY, turns=4),  # the paper's
    # The released commands, and the released training script.
    "zero-search": SearchProtocol("baselines/zero_search", retry=_RETRY),
    "step-search": SearchProtocol("baselines/step_search", retry=_RETRY),
    "research": SearchProtocol(
        "baselines/research", result="result", boxed=True, turns=8
    ),  # ours: released, tokens are bounded
}


@dataclass(frozen=True)
class ProtocolSearch(EpisodeMethod):
    protocol: SearchProtocol

    async def run_episode(self, episode: Episode) -> str:
        turns = self.protocol.turns
        episode.capped = f"{turns} turns without an answer"
        prompt, trail = episode.render(self.protocol.template), ""
        for turn in range(turns + 1):
            reply = await episode.ask(prompt, begun=trail, stop=self._stop_texts)
            trail += text_with_thinking(reply)
            name, text = last_action(trail)
            if not (name or reply.text.strip() or self.protocol.retry):
                episode.capped = ""  # it thought, and said nothing
                break
            # A turn without an action ends the run unless the protocol retries.
            if name == "answer" or not (name or self.protocol.retry):
                episode.capped = ""
                # An earlier turn's thought ("I need to look it up.") is no reason for the answer.
                thought = last_thought(text_with_thinking(reply))
                episode.conclude_answer(self._extract_answer(text if name else reply.text), thought)
                break
            episode.draft = last_thought(trail)
            if turn == turns:
                break
            trail += await self._react_to_turn(episode, name, text)
        return "answered in its own protocol"

    @property
    def _stop_texts(self) -> tuple[str, ...]:
        return ("</search>", "</answer>") if self.protocol.searches else ("</answer>",)

    async def _react_to_turn(self, episode: Episode, name: str, query: str) -> str:
        if name != "search" or not self.protocol.searches:
            return self.protocol.retry
        hits = await episode.search(query)
        tag = self.protocol.result
        return f"</search>\n\n<{tag}>{render_documents(episode, hits)}</{tag}>\n\n"

    def _extract_answer(self, text: str) -> str:
        box = boxed_span(text) if self.protocol.boxed else None
        return strip_types(text, box) if box else text.strip()


def last_action(trail: str) -> tuple[str, str]:
    """Name and content of the tag that the trail ends in; ("", "") when it ends in none."""
    match = _OPEN.search(trail)
    return (match.group(1), match.group(2).strip()) if match else ("", "")


def last_thought(trail: str) -> str:
    """The last thought before the answer."""
    said = _THINK.findall(trail)
    return " ".join(said[-1].split()) if said else ""


def render_documents(episode: Episode, found: Sequence[Hit]) -> str:
    """Renders passages as Search-R1 does, `Doc n(Title: …) text`, with citation numbers."""
    numbers = {hit.passage.id: n for n, hit in enumerate(episode.hits, 1)}
    return "".join(
        f"Doc {numbers[hit.passage.id]}(Title: {hit.passage.heading}) {hit.passage.text}\n"
        for hit in found
    )
