r"""Replies of a competent model to what plans, judges, extracts and rewords.

The prompts of KAG-Thinker, Omni-RAG, SPO data, judges, extraction and follow-ups: each is known by
words of its own, and answered in the form it asks for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hops import Hops

from osler.methods.kag.boundary import REFUSAL

Reply = Callable[[str], str]
"""A prompt → the reply to it."""

_SOURCE = re.compile(r"^<(\w[\w-]*)> \{(\w+)\}", re.MULTILINE)
_LISTED = re.compile(r"^\[(\d+)\] (.*)$", re.MULTILINE)

SILENT = "The evidence does not say."
"""What it says where the passages do not answer, as prompts ask for it."""


@dataclass(frozen=True)
class PartReplies:
    """What the model says of one question, part by part."""

    question: str
    answer: str
    """The passage's own sentence."""
    short: str
    query: str
    topic: str = "iron deficiency anaemia"
    hops: Hops | None = None
    """The steps of the question; `None` = one lookup of `query` finds the answer."""

    def of_thinker(self) -> list[tuple[str, Reply]]:
        """KAG-Thinker: it plans two steps, knows nothing by heart, and reads."""
        return [
            (
                "last question based on question, the first n sub-questions",
                lambda p: f"{self.answer}{self.mark(p)} {_boxed(self.short)}",
            ),
            ("<references>", self._solve),
            ("Think step by step, then wrap your answer", self._deduce),
            ("Answer the question from the references alone", self._solve),
            ("analyze the relationship between each reference", self._focus),
            ("Analyze whether the answer to the following question is correct", self._check),
            ("Can you answer the following question", lambda p: REFUSAL["en"]),
            ("Function Name: Retrieval", lambda p: self._steps()),
        ]

    def of_planner(self) -> list[tuple[str, Reply]]:
        """Omni-RAG and SPO's exploring: queries for each source, and marks for what they find."""
        return [
            ("return all medical terminologies", lambda p: f"<term>{self.topic}</term>"),
            ("Please write a passage that answers", lambda p: f"<passage>{self.answer}</passage>"),
            ("using the additive 5-point scoring system", self._rate_plan),
            ("plan what is still missing in # Query Format", self._read_or_plan),
            ("# Query Format", self._source_plan),
        ]

    def of_judge(self) -> list[tuple[str, Reply]]:
        """Judges of passages and of answers."""
        return [
            ("which of the # Documents support the # Gold Answer", self._judge_list),
            ("judge whether the information in the # Documents supports", self._judge_set),
            ("with the help of the reference answer, on a scale", self._give_marks),
            ("say the same as one of the gold answers", self._grade),
            ("Which of these sentences answer the question", self._pick),
            ("Which passages bear out each statement", self._confirm),
        ]

    def of_extraction(self) -> list[tuple[str, Reply]]:
        """Entities, relations and points of one passage."""
        return [
            ("medical entity extraction system", lambda p: self._entities()),
            ("medical relationship extraction system", lambda p: self._relations()),
            ("You extract knowledge points", lambda p: self._points()),
            ("Summarise the text in one or two sentences", lambda p: self._summary()),
            ("Rewrite the next question", lambda p: self.question),
        ]

    def wanted(self, prompt: str) -> Sequence[int]:
        """The steps whose answers a prompt asks for: all, or those that it names."""
        assert self.hops is not None, "asked only of questions with steps"
        every = range(len(self.hops.steps))
        asked = asked_now(prompt)
        if self.question in asked:
            return every
        return self.hops.asked_in(asked) or every

    def says(self, prompt: str) -> str:
        """The answer to what a prompt asks."""
        if self.hops is None:
            return self.answer
        asked = self.wanted(prompt)
        if len(asked) == len(self.hops.steps):
            return self.answer
        return " ".join(self.hops.steps[n].said_from(prompt) for n in asked)

    def sees(self, text: str, prompt: str = "") -> bool:
        """Whether a text bears out the answer to what the prompt asks (itself, without one)."""
        if self.hops is None:
            return self.answer in text
        return self.hops.known_in(text).issuperset(self.wanted(prompt or text))

    def mark(self, prompt: str) -> str:
        """The marks of the passages that bear the answer out; empty where none is shown."""
        pieces = map(re.escape, self._sentences(prompt))
        found = (re.search(rf"\[(\d+)\][^\n]*{piece}", prompt) for piece in pieces)
        numbers = dict.fromkeys(one[1] for one in found if one)
        return " " + "".join(f"[{n}]" for n in numbers) if numbers else ""

    def _sentences(self, prompt: str) -> list[str]:
        """The sentences of a prompt that bear out what it asks."""
        if self.hops is None:
            return [self.answer]
        return [self.hops.steps[n].sentence_in(prompt) for n in self.wanted(prompt)]

    def next_query(self, text: str) -> str:
        """A query for what the text lacks; "" where all that could be asked was."""
        if self.hops is None:
            return self.query
        wanted = self.wanted(text)
        known = self.hops.known_in(text)
        if len(wanted) < len(self.hops.steps):  # of one step: those before it are filled in
            known = (known | self.hops.named_in(text)) - (set(wanted) - known)
        return self.hops.next_query(text, known, wanted)

    # KAG-Thinker

    def _steps(self) -> str:
        if self.hops is not None:
            return self._lookups(self.hops)
        return (
            "<answer>"
            f"Step1: {self.question}\n"
            f"Action1: Retrieval(s=s1:disease['{self.topic}'], p=p1:treatment, o=o1:drug)\n"
            "Step2: Which drug is named in #1?\n"
            "Action2: Deduce(op=extract, content=['o1'], target='the drug')->o2</answer>"
        )

    def _lookups(self, hops: Hops) -> str:
        """A step for each lookup, and one that concludes where the last lookup does not."""
        lines = []
        for n, hop in enumerate(hops.steps, 1):
            subject = f"o{hop.waits[0] + 1}" if hop.waits else f"s{n}:thing['part {n}']"
            lines += [f"Step{n}: {hop.asked}"]
            lines += [f"Action{n}: Retrieval(s={subject}, p=p{n}:fact, o=o{n}:fact)"]
        if hops.steps[-1].answer.casefold() != self.short.casefold():
            n = len(hops.steps) + 1
            known = ", ".join(f"'o{k}'" for k in range(1, n))
            lines += [f"Step{n}: What follows from them?"]
            lines += [
                f"Action{n}: Deduce(op=extract, content=[{known}], target='the answer')->o{n}"
            ]
        return "<answer>" + "\n".join(lines) + "</answer>"

    def _deduce(self, prompt: str) -> str:
        told = prompt.partition("Known:")[2]
        known = self.short.casefold() in told.casefold() or self._follows_from(told)
        return f"What is known names it.\n{_boxed(self.short if known else 'unknown')}"

    def _follows_from(self, told: str) -> bool:
        """Whether the answers of all steps are told."""
        if self.hops is None:
            return self.answer in told
        named = self.hops.named_in(told) | self.hops.known_in(told)
        return named.issuperset(range(len(self.hops.steps)))

    def _solve(self, prompt: str) -> str:
        return _boxed(self.short_for(prompt) if self.sees(prompt) else "unknown")

    def short_for(self, prompt: str) -> str:
        """The answer to what a prompt asks, in a few words."""
        if self.hops is None or len(asked := self.wanted(prompt)) == len(self.hops.steps):
            return self.short
        return "; ".join(self.hops.steps[n].answer for n in asked)

    def _focus(self, prompt: str) -> str:
        if not self.sees(prompt):
            return "<answer>No</answer><reason>The references do not say all of it.</reason>"
        pieces = map(re.escape, self._sentences(prompt))
        found = (re.search(rf"^(\d+)\. .*{piece}", prompt, re.MULTILINE) for piece in pieces)
        numbers = dict.fromkeys(one[1] for one in found if one)
        said = " and ".join(f"reference {n}" for n in numbers)
        return f"<answer>Yes</answer><reason>The answer stands in {said}.</reason>"

    def _check(self, prompt: str) -> str:
        right = self.short.casefold() in prompt.rpartition("Answer:")[2].casefold()
        return f"It is well known.\n{_boxed(str(right))}"

    def search_again(self, prompt: str) -> str:
        action = f"Retrieval(s=s1:disease['{self.topic}'], p=p1:therapy, o=o1:drug)"
        asked = self.next_query(prompt) if self.hops else f"What is the {self.query}?"
        if not asked:  # all that could be asked was
            return _boxed("unknown")
        return f"<search>Step: {asked} Action: {action}</search>"

    # Omni-RAG

    def _source_plan(self, prompt: str) -> str:
        asked = {"medical_term0": f"{self.topic} , treated by"}
        named = dict(_SOURCE.findall(prompt))
        queries = " ; ".join(self._planned_queries(prompt)) or self.query
        return "\n".join(
            f"<{source}> {asked.get(first, queries)} </{source}>" for source, first in named.items()
        )

    def _planned_queries(self, prompt: str) -> list[str]:
        """Those of the steps whose references are named in what was fed back, if anything was;
        what is named already is not asked again."""
        if self.hops is None:
            return [self.query]
        told = prompt.partition("# Feedback")[2].partition("# Source Description")[0]
        said = asked_now(prompt)
        if self.question not in said:  # a lookup of one thing, in words of its own
            return [said]
        known = self.hops.named_in(told) if told else set[int]()
        every = range(len(self.hops.steps))
        return [self.hops.question_of(n) for n in self.hops.askable(known, every)]

    def _read_or_plan(self, prompt: str) -> str:
        if self.sees(prompt):
            return f"{self.says(prompt)}{self.mark(prompt)}"
        query = self.next_query(prompt)
        sources = [source for source, _ in _SOURCE.findall(prompt)]
        plan = "\n".join(f"<{source}> {query} </{source}>" for source in sources)
        return plan if query else SILENT

    def _rate_plan(self, prompt: str) -> str:
        score = 5 if self.sees(prompt) else 1
        said = "Keep to what was asked." if score == 5 else "Ask for the treatment."
        return f"<suggestion>{said}</suggestion>\n<score>{score}</score>"

    # Judges

    def _judge_set(self, prompt: str) -> str:
        supports = self.sees(prompt.partition("# Documents")[2])
        said = "yes" if supports else "no"
        return f"The documents {'state' if supports else 'do not state'} it.\n{_tag(said)}"

    def _judge_list(self, prompt: str) -> str:
        shown = _LISTED.findall(prompt.rpartition("# Documents")[2])
        numbers = [n for n, text in shown if self.answer in text]
        return f"I looked at {len(shown)} of them.\n{_tag(', '.join(numbers) or 'none')}"

    def _pick(self, prompt: str) -> str:
        """Names what bears the answer out, of sentences that stand under their headings."""
        shown = _LISTED.findall(prompt.rpartition("# Sentences")[2])
        return _tag(", ".join(n for n, text in shown if self.answer in text) or "none")

    def _confirm(self, prompt: str) -> str:
        """Names the passages that hold the answer, for each statement that tells it."""
        told, _, said = prompt.partition("# Statements")
        bearing = [n for n, text in _LISTED.findall(told) if self.answer in text]
        rows = re.findall(r"^(\d+): (.*)$", said.partition("Which passages")[0], re.MULTILINE)
        lines = [
            f"{n}: {', '.join(bearing if self.answer in s else []) or 'none'}" for n, s in rows
        ]
        return _tag("\n" + "\n".join(lines) + "\n")

    def _give_marks(self, prompt: str) -> str:
        right = self.short.casefold() in _section(prompt, "# Predicted Answer").casefold()
        each = 5 if right else 1
        names = ["relevance", "completeness", "proficiency"]
        names += ["interpretability"] if "# Retrieved Documents" in prompt else []
        given = ", ".join(f"{name} {each}" for name in names)
        return f"It {'names' if right else 'misses'} the treatment.\n<marks>{given}</marks>"

    def _grade(self, prompt: str) -> str:
        right = self.short.casefold() in prompt.partition("Predicted answer:")[2].casefold()
        said, verdict = ("the same", "yes") if right else ("another", "no")
        return f"The drug is {said}.\n{_tag(verdict)}"

    # Extraction

    def _entities(self) -> str:
        told = {"domain": "Haematology", "explain": "", "standard": "", "synonyms": []}
        drug = {"name": _as_written(self.answer, self.short), "type": "Drug", **told}
        disease = {"name": self.topic, "type": "Disease", **told}
        return _compact({"entities": [drug, disease]})

    def _relations(self) -> str:
        drug = _as_written(self.answer, self.short)
        said = {"subject": drug, "predicate": "is used to treat", "object": self.topic}
        return _compact({"relations": [{**said, "constraint": ""}]})

    def _points(self) -> str:
        point = {
            "name": f"Treatment of {self.topic}",
            "type": "Factual",
            "content": self.answer,
            "structured": "",
            "domain": "Haematology",
            "core": [_as_written(self.answer, self.short), self.topic],
            "questions": [self.question],
            "extended": [],
        }
        return _compact({"points": [point]})

    def _summary(self) -> str:
        return _compact({"about": [self.topic], "text": self.answer})


_ASKED = re.compile(r"^(?:User_Query: |Question: |# Question\n)(.+)$", re.MULTILINE)


def asked_now(prompt: str) -> str:
    """What a prompt asks: its last line that poses a question, else all of it."""
    found = _ASKED.findall(prompt)
    return found[-1] if found else prompt


def _section(prompt: str, heading: str) -> str:
    """What stands under a heading, up to the next."""
    return prompt.partition(heading)[2].partition("\n# ")[0]


def _boxed(answer: str) -> str:
    return f"<answer>\\boxed{{{answer}}}</answer>"


def _tag(answer: str) -> str:
    return f"<answer>{answer}</answer>"


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _as_written(text: str, words: str) -> str:
    """The words as the text has them, capitals included."""
    found = re.search(re.escape(words), text, re.IGNORECASE)
    return found[0] if found else words
