"""ReAct: Thought, Action and Observation by turns (TC-RAG App. 8.5, method 9).

Yao et al. 2023, *ReAct: Synergizing Reasoning and Acting in Language Models*, §3.1: the
actions are Search[…], Lookup[…] (the next sentence of what was found that has the words) and
Finish[…]; at most 7 steps, as for HotpotQA.

Departures: the actions are described instead of shown in six demonstrations. Search gives the
first passage of the knowledge base instead of the opening of a Wikipedia page; further ones
are in Lookup's reach. A reply without an action is a thought, and the turn is asked for again
with "Action n:", as in the released code. A model that does not finish within its steps ends
with `Halt.BUDGET`; the paper's combination with CoT-SC is left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from osler.llm.reading.answers import answer_words, declines
from osler.methods.single_pass.episode import Episode, EpisodeMethod
from osler.text import split_sentences
from osler.types import Hit

# An answer may hold brackets of its own, such as citations.
_ACTION = re.compile(
    r"\b(Search|Lookup|Finish)\s*[\[［【]((?:[^\[\]［］【】]|[\[［【][^\[\]［］【】]*[\]］】])*)[\]］】]",
    re.IGNORECASE,
)
_THOUGHT = re.compile(r"^\s*(?:Thought|思考)\s*\d*\s*[:：]\s*", re.IGNORECASE)
_LABEL = re.compile(r"\n?\s*Action\s*\d*\s*[:：]?\s*$", re.IGNORECASE)


@dataclass
class SentencePage:
    """The passages of the last search, in which Lookup looks."""

    hits: Sequence[Hit] = ()
    looked: dict[str, int] = field(default_factory=dict)
    """Number of lookups of each keyword."""

    def look_up_keyword(self, keyword: str) -> tuple[str, int, int]:
        """The next sentence with the keyword, its number, and the number of such sentences."""
        said = [
            hit.passage.text[start:end]
            for hit in self.hits
            for start, end in split_sentences(hit.passage.text)
        ]
        found = [text for text in said if keyword.casefold() in text.casefold()]
        at = self.looked.get(keyword, 0)
        self.looked[keyword] = at + 1
        return (found[at], at + 1, len(found)) if at < len(found) else ("", at, len(found))


@dataclass(frozen=True)
class ReAct(EpisodeMethod):
    steps: int = 7

    async def run_episode(self, episode: Episode) -> str:
        episode.capped = f"{self.steps} steps without Finish"
        prompt = episode.render(
            "baselines/react",
        )
        page, trail, thought = SentencePage(), "", ""
        for n in range(1, self.steps + 1):
            begun = f"{trail}Thought {n}:"
            reply = await episode.ask(prompt, begun=begun, stop=(f"\nObservation {n}:",))
            turn, action = reply.text, _ACTION.search(reply.text)
            episode.draft = _extract_thought(turn)
            if declines(answer_words(turn)) or episode.run.unsaid:
                break
            # As in the released code: ask again with the label "Action n:".
            if action is None:
                turn = f"{_LABEL.sub('', turn.rstrip())}\nAction {n}:"
                again = await episode.ask(prompt, begun=begun + turn, tokens=64, stop=("\n",))
                turn += again.text
                action = _ACTION.search(turn)
            thought = _extract_thought(turn)
            episode.draft = thought
            if action and action.group(1).casefold() == "finish":
                episode.capped = ""
                episode.conclude_answer(action.group(2), thought)
                break
            observed = await self._take_action(episode, page, action)
            # What follows the action is the model's invention.
            turn = turn[: action.end()] if action else turn
            trail = f"{begun}{turn}\nObservation {n}: {observed}\n"
        return "finished"

    async def _take_action(
        self, episode: Episode, page: SentencePage, action: re.Match[str] | None
    ) -> str:
        if action is None:
            return "Invalid action."
        name, said = action.group(1).casefold(), action.group(2).strip()
        if name == "search":
            page.hits, page.looked = await episode.search(said), {}
            return episode.list_documents(page.hits[:1])[0] if page.hits else "Nothing was found."
        sentence, n, count = page.look_up_keyword(said)
        return f"(Result {n} / {count}) {sentence}" if sentence else "No more results."


def _extract_thought(turn: str) -> str:
    """Extracts the thought of a turn, without its label and its action."""
    before = re.split(r"\n?\s*Action\s*\d*\s*[:：]", turn, maxsplit=1)[0]
    return _THOUGHT.sub("", _ACTION.sub("", before)).strip()
