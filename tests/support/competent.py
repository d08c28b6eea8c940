"""A model that knows one answer and replies to each prompt as that prompt asks.

It looks the answer up where it can, gives it once a passage that bears it out is shown, and cites
that passage by its number. What it says is plain; `manners` gives it manners.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from zlib import crc32

from competent_parts import SILENT, PartReplies
from hops import Hop, Hops
from mannered import Turns

from osler.llm.core.base import Message
from osler.llm.server.replies import ask_to_continue
from osler.retrieve.naming import names_in
from osler.text import split_sentences
from osler.types import CITATION_MARK, Passage

# What a server that continues nothing is asked, as the client of models asks it.
_GO_ON = ask_to_continue([Message("user", "?"), Message("assistant", "!")])[-1].content.strip()


@dataclass(frozen=True)
class CompetentModel:
    """Replies about one question."""

    question: str = "What treats iron deficiency anaemia?"
    answer: str = "Oral iron treats iron deficiency anaemia."
    """The passage's own sentence."""
    short: str = "oral iron"
    query: str = "iron deficiency anaemia treatment"
    topic: str = "iron deficiency anaemia"
    hops: Hops | None = None
    """The steps of the question; `None` = `query` finds it all."""
    others: Sequence[tuple[str, Callable[[str], str]]] = field(default=())
    """More prompts: words of theirs, and what is replied; they come first."""

    def __call__(self, turns: Turns, begun: str) -> str:
        """The reply, or the rest of one that has begun."""
        shown = [turn["content"] for turn in turns]
        # Asked in a turn of the user's to go on: the turn before is what has begun.
        if shown[-1].strip() == _GO_ON and len(shown) > 1:
            begun, shown = shown[-2], shown[:-1]
        prompt = "\n".join(shown[:-1] if begun else shown)
        known = (*self.others, *self._replies(), *self._more_replies(), *self._part_replies())
        # Of a conversation the last turn says what is asked now.
        for asked in (*shown[-1:], prompt):
            for words, reply in known:
                if words in asked:
                    return _rest_of(reply(f"{prompt}\n{begun}"), begun)
        return self._answer_cited(prompt)

    @property
    def _parts(self) -> PartReplies:
        told = (self.question, self.answer, self.short, self.query, self.topic)
        return PartReplies(*told, hops=self.hops)

    def _sees(self, text: str) -> bool:
        """Whether a text bears the answer out."""
        return self._parts.sees(text)

    def _next_query(self, text: str) -> str:
        """A query for what the text lacks."""
        return self._parts.next_query(text)

    def _part_replies(self) -> list[tuple[str, Callable[[str], str]]]:
        parts = self._parts
        lists = (parts.of_thinker(), parts.of_planner(), parts.of_judge(), parts.of_extraction())
        return [one for each in lists for one in each]

    def _replies(self) -> list[tuple[str, Callable[[str], str]]]:
        """Words that a prompt is known by, and the reply to it."""
        # The first reply whose words stand in the prompt is given.
        return [
            ("[Actions Pipeline Format]", self._act),
            # Before Search-R1's, whose tag it has too.
            ("The sub-question is not answered yet", self._parts.search_again),
            ("Action can be three types", self._react),
            ("<|begin_search_query|>", self._search_within),
            (
                "**Previous Reasoning Steps**",
                lambda p: f"**Final Information**\n\n{self._answer_cited(p)}",
            ),
            ("Show your reasoning in <think>", lambda p: self._tagged(self.short)),
            ("<search>", self._search_by_tags),
            ("give 2 candidates", lambda p: f"{self.short}\nblood transfusion"),
            (
                "correctly support the prediction",
                lambda p: str(self.short in p.split("Passage:")[0]),
            ),
            ("Which passage is more informative", self._rank),
            ("How complex is this question?", lambda p: "B"),
            ("Would external documents help", lambda p: "[Retrieval]"),
            (
                "Does the evidence provide useful",
                lambda p: self._judge(p, "[Relevant]", "[Irrelevant]"),
            ),
            ("How far is the response supported", lambda p: "[Fully supported]"),
            ("How useful is the response", lambda p: "[Utility:5]"),
        ]

    def _more_replies(self) -> list[tuple[str, Callable[[str], str]]]:
        return [
            (
                "Write the notes first",
                lambda p: f"Note 1: it bears on it.\nAnswer: {self._answer_cited(p)}",
            ),
            ("think step-by-step and generate your output in json", self._json_answer),
            ("Organize your output in a json", self._json_answer),
            ("## Queries", lambda p: f"## Analysis\nIt is open.\n\n## Queries\n1. {self.query}"),
            ("Think step by step in two rationales", self._rationales),
            ("Select the sources that are relevant", lambda p: "book"),
            ("Write one search query to this source", lambda p: self.query),
            (
                "Write one query to it that would find",
                lambda p: "iron deficiency anaemia , treated by",
            ),
            ("Strictly follow the knowledge", lambda p: self.answer),
            ("Answer from this reasoning", lambda p: f"The answer is {self.short}."),
            ("Write a scientific passage", lambda p: self.answer),
            ("varied questions that this content answers", lambda p: json.dumps([self.question])),
            (
                "Which atomic questions",
                lambda p: "[]" if self._sees(p) else json.dumps([self.question]),
            ),
            ("Which to which one candidate", lambda p: "1"),
            ("would help most to answer the question", lambda p: "1"),
            ("extract named entities", lambda p: '["oral iron", "iron deficiency anaemia"]'),
            ("construct an RDF", lambda p: '[["oral iron", "treats", "iron deficiency anaemia"]]'),
            (
                "select those that are relevant",
                lambda p: '[["oral iron", "treats", "iron deficiency anaemia"]]',
            ),
            ("Break the problem into", lambda p: self._plan()),
            ("Count from one to five", lambda p: "one, two, three, four, five"),
            (
                "Look it up with the tool",
                lambda p: f"Tool_Use: DOC_RAG\nTool_Input: {self.query}",
            ),
            ("Answer from the documents, in a few words", lambda p: self.short),
            ("The last sentence begins with: So the answer is", self._grown),
            ("So the answer is:", self._grown),
        ]

    def _mark(self, prompt: str) -> str:
        """The marks of the passages that bear the answer out; empty where none is shown."""
        return self._parts.mark(prompt)

    def _answer_cited(self, prompt: str) -> str:
        if self.hops is not None and not self._sees(prompt):
            return SILENT
        return f"{self._parts.says(prompt)}{self._mark(prompt)}"

    def _judge(self, prompt: str, yes: str, no: str) -> str:
        return yes if self._sees(prompt) else no

    def _rank(self, prompt: str) -> str:
        one, _, two = prompt.partition("Passage 2:")
        return f"Passage {2 if self._sees(two) and not self._sees(one) else 1}"

    def _act(self, prompt: str) -> str:
        seen = prompt.partition("[Start Conversation]")[2]
        if self._parts.sees(seen.partition("Tool_Observation:")[2], seen):
            said = self._answer_cited(seen)
            if "the answer alone, in a few words" in seen:
                said = f"{self._parts.short_for(seen)}{self._mark(seen)}"
            return f"Thought: I now know the final answer.\nConclusion: {said}"
        query = self._next_query(seen)
        if not query:  # all that could be asked was
            return f"Thought: I have looked everywhere.\nConclusion: {SILENT}"
        tool = re.search(r"must be one of (\w+)", prompt)
        name = tool[1] if tool else "DOC_RAG"
        return (
            "Thought: I should look up the relevant evidence.\n"
            f"Tool_Use: {name}\nTool_Input: {query}"
        )

    def _react(self, prompt: str) -> str:
        asked = prompt.rpartition(self.question)[2]
        n = asked.count("\nObservation") + 1
        if self._sees(asked):
            finished = f"Finish[{self._answer_cited(asked)}]"
            return f"Thought {n}: The passage says it.\nAction {n}: {finished}"
        return f"Thought {n}: I need to look it up.\nAction {n}: Search[{self.query}]"

    def _search_within(self, prompt: str) -> str:
        asked = prompt.rpartition("# Question")[2]
        found = asked.partition("<|begin_search_result|>")[2]
        if self._sees(found):
            mark = re.search(rf"{re.escape(self.answer)}\s*(\[\d+\])", found)
            cited = f"{self.answer} {mark[1]}" if mark else self._answer_cited(found)
            return f"The passages say it. {cited}"
        return f"I need to look this up. <|begin_search_query|>{self.query}<|end_search_query|>"

    def _search_by_tags(self, prompt: str) -> str:
        asked = prompt.rpartition(self.question)[2]
        if self._sees(asked):
            box = (
                "The final answer is \\boxed{" + self.short + "}"
                if "\\boxed" in prompt
                else self.short
            )
            return self._tagged(box)
        return f"<think>I need to look it up.</think>\n<search>{self.query}</search>"

    def _tagged(self, answer: str) -> str:
        return f"<think>{self.answer}</think>\n<answer>{answer}</answer>"

    def _json_answer(self, prompt: str) -> str:
        said = self._answer_cited(prompt)
        return json.dumps({"step_by_step_thinking": said, "answer_choice": self.short})

    def _rationales(self, prompt: str) -> str:
        return f"First, {self.answer}\nSecond, it is taken daily.\nThe answer is {self.short}."

    def _plan(self) -> str:
        form = "Retrieval(s=s1:drug, p=p1:treats, o=o1:disease['iron deficiency anaemia'])"
        task = {"executor": "Retriever", "dependent_task_ids": [], "query": self.question}
        return json.dumps({"1": {**task, "logical_form": form}})

    def _grown(self, prompt: str) -> str:
        return f"{self._answer_cited(prompt)} So the answer is: {self.short}."


def _rest_of(reply: str, begun: str) -> str:
    """What comes after `begun`: sentences that it has are left out, marked or not."""
    written, rest = begun.rstrip(), reply
    if not written:
        return reply
    said = CITATION_MARK.sub("", written)
    for start, end in split_sentences(reply):
        if CITATION_MARK.sub("", reply[start:end]).strip() not in said:
            break
        rest = reply[end:]
    for length in range(min(len(rest), len(written)), 0, -1):
        first = rest[:length].strip()
        if first and written.endswith(first) and _begins(written, len(first)):
            return rest[len(rest[:length].rstrip()) :]
    return rest


def _begins(written: str, length: int) -> bool:
    """Whether the last `length` characters begin a line or a sentence of what was written."""
    before = written[: len(written) - length]
    return not before or before.endswith(("\n", " "))


_WHOLE = 2**32


@dataclass(frozen=True)
class GoldStep:
    """A step of a question as a data set publishes it, with the documents that answer it."""

    asked: str
    """`#1` stands for the answer of the first step."""
    answer: str
    gold: Sequence[Passage]
    """Any one of them bears the answer out."""


@dataclass(frozen=True)
class GoldReader:
    """Plays gold: shown the gold documents, it writes the gold answer and cites them.

    It asks as a competent model would that has the steps of the question: for the next step whose
    references it was shown, in other words where the first found nothing, and it stops where all
    words are used. Some prompts it answers without the documents, as a model does that knows: an
    answer counts where `was_shown_all`. One object reads in one run.
    """

    question: str
    answer: str
    steps: Sequence[GoldStep]
    wrong: float = 0.1
    """Share of its marked replies whose marks name the next passage."""
    _shown: set[int] = field(default_factory=set, init=False, repr=False, compare=False)

    def __call__(self, turns: Turns, begun: str) -> str:
        read = "\n".join(turn["content"] for turn in turns)
        self._shown.update(self._hops.known_in(read))
        reply = self._model(turns, begun)
        drawn = crc32(f"{self.question}\n{reply}".encode()) / _WHOLE
        return _shift_marks(reply) if drawn < self.wrong else reply

    @property
    def was_shown_all(self) -> bool:
        """Whether calls of the run have shown it a document of each step."""
        return len(self._shown) == len(self.steps)

    def next_query(self, read: str) -> str:
        """What it would look up after what it has read; "" where it knows, or gives up."""
        return self._hops.next_query(read, self._hops.known_in(read), range(len(self.steps)))

    def is_borne_out(self, read: str) -> bool:
        return len(self._hops.known_in(read)) == len(self.steps)

    # A frozen dataclass keeps its cached values in its dictionary all the same.
    @cached_property
    def _hops(self) -> Hops:
        return Hops(
            [
                Hop(one.asked, one.answer, [key_sentence(each, one.answer) for each in one.gold])
                for one in self.steps
            ]
        )

    @cached_property
    def _model(self) -> CompetentModel:
        said, topic = f"{self.answer.rstrip('.')}.", names_in(self.question)
        return CompetentModel(
            self.question,
            said,
            self.answer,
            query=self.question,
            topic=topic[0] if topic else "it",
            hops=self._hops,
        )


def key_sentence(passage: Passage, answer: str) -> str:
    """The sentence by which the reader knows a document: the one with the answer, or the first."""
    text = passage.text
    said = [text[start:end].strip() for start, end in split_sentences(text)]
    return next((one for one in said if answer.casefold() in one.casefold()), said[0])


def _shift_marks(reply: str) -> str:
    return re.sub(CITATION_MARK.pattern, lambda mark: f"[{int(mark[1]) + 1}]", reply)
