"""Searches within the reasoning: ReAct, Search-o1 and the protocols of trained search models.

ReAct: Thought, Action and Observation by turns (TC-RAG App. 8.5, method 9).

Yao et al. 2023, *ReAct: Synergizing Reasoning and Acting in Language Models*, §3.1: the
actions are Search[…], Lookup[…] (the next sentence of what was found that has the words) and
Finish[…]; at most 7 steps, as for HotpotQA.

Departures: the actions are described instead of shown in six demonstrations. Search gives the
first passage of the knowledge base instead of the opening of a Wikipedia page; further ones
are in Lookup's reach. A reply without an action is a thought, and the turn is asked for again
with "Action n:", as in the released code. A model that does not finish within its steps ends
with `Halt.BUDGET`; the paper's combination with CoT-SC is left out.

Search-o1: a reasoning model searches within its reasoning (KAG-Thinker Table 6).

Li et al. 2025, *Search-o1: Agentic Search-Enhanced Large Reasoning Models*, §3: the model
writes a query between its marks; what is found is first read by itself ("Reason-in-Documents",
§3.4), with the reasoning so far and the query, and only what helps is put into the reasoning.
A query that was asked before and one beyond the limit are answered with the paper's sentences.

Departures: whole passages instead of web pages; the answer is wanted as the house's readers
give it, not in a box (a box is read all the same). A search gives 3 passages, as KAG-Thinker
ran it (§4.1), instead of 10; 5 searches are those of the released code for questions of one
hop; it allows 10 for several.

The protocols that trained search models speak (KAG-Thinker Table 6), one engine for all.

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
from dataclasses import dataclass, field

from osler.llm.core.base import Completion
from osler.llm.core.spans import boxed_span, strip_types
from osler.llm.core.thinking import spoken_part
from osler.llm.reading.answers import answer_words, declines
from osler.methods.episode import Episode, EpisodeMethod, match_option
from osler.text import split_sentences
from osler.types import Hit, Question

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
        prompt = episode.render("baselines/react")
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
