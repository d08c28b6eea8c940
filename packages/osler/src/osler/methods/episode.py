"""One question's episode: prompts, searches, evidence and ending of every method that searches.

A method is only its loop; model calls, searches, the numbering of passages, the budget and the
ending are here, so that all methods are compared on the same terms.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from osler.answer import UNDECIDED, Composer, Decision
from osler.answer.abstention import explain_abstention, read_draft
from osler.answer.option_reading import named_option, written_option
from osler.llm.core.ask import ask_with_documents, complete, note_decline
from osler.llm.core.base import Completion, LanguageModel, Message, Sampling
from osler.llm.reading.answers import bare_words
from osler.prompts import RenderedPrompt, render_question_prompt
from osler.retrieve import look_up
from osler.trace import BudgetExceeded, Noted, Run
from osler.types import (
    Answer,
    DecidedBy,
    Halt,
    Hit,
    Question,
    Retriever,
    Solution,
    citation_mark,
)

_SILENCES = 2
"""Replies in succession that say nothing, after which a method asks no more."""
_ROOM = 20_000
"""Characters of passages in one prompt: what a window of 8,192 tokens leaves for them."""
ROLE = "reader"
"""Role of the model in every baseline."""
_STATES = re.compile(
    r"\b(?:final\s+)?answers?\s*(?:is|are|:|：)[\s:：]*|答案\s*(?:是|为|:|：)[\s:：]*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class MethodDeps:
    """Dependencies of a method that searches: the same for all of them."""

    model: LanguageModel
    retriever: Retriever
    composer: Composer
    sources: tuple[str, ...]
    k: int = 5
    """Passages of one search."""
    sampling: Sampling = field(default_factory=Sampling)


class ModelSilent(Exception):
    """Replies in succession said nothing: they were cut while thinking, or declined."""


class Episode:
    """One question being answered. As a context manager it swallows `BudgetExceeded` and
    `ModelSilent`; `finish` then reports the spent budget, or why the model said nothing."""

    def __init__(self, kit: MethodDeps, question: Question, run: Run) -> None:
        self.kit, self.question, self.run = kit, question, run
        self.hits: list[Hit] = []
        """Passages found so far, each once, in order: the mark [n] names the n-th."""
        self.failed = ""
        self.draft = ""
        """Text from which the composer makes the answer, where it words one."""
        self.decision: Decision | None = None
        """What the method decided; `None` = what its draft says."""
        self.left_to_reader = False
        """Whether the method leaves the answer to a reader of the passages found."""
        self.capped = ""
        """Reason why the method's own bound ended it without an answer; empty otherwise."""
        self._silences = 0

    def __enter__(self) -> Episode:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> bool:
        # Other errors propagate: only a spent budget and a model's abstention are normal ends.
        return isinstance(error, BudgetExceeded | ModelSilent)

    def note(self, text: str) -> None:
        """Says something of the method's way to whoever reads the trace."""
        self.run.emit(Noted(text))

    def render(self, prompt: str, /, **values: object) -> RenderedPrompt:
        """Renders a prompt about the question."""
        return render_question_prompt(prompt, self.question, **values)

    async def ask_text(
        self,
        prompt: str,
        /,
        *,
        tokens: int | None = None,
        temperature: float | None = None,
        seed: int = 0,
        **values: object,
    ) -> str:
        """The words of the model's reply to a prompt about the question. Raises `BudgetExceeded`.

        The options are those of `ask`.
        """

        async def ask(documents: Sequence[str]) -> str:
            shown = {"documents": documents} if documents else {}
            rendered = self.render(prompt, **values | shown)
            reply = await self.ask(rendered, tokens=tokens, temperature=temperature, seed=seed)
            return reply.text

        documents = values.get("documents")
        return await ask_with_documents(
            documents if isinstance(documents, list) else [], ask, self.run
        )

    async def ask(
        self,
        prompt: RenderedPrompt,
        *,
        begun: str = "",
        raw: bool = False,
        tokens: int | None = None,
        temperature: float | None = None,
        stop: Sequence[str] = (),
        top: int = 0,
        seed: int = 0,
    ) -> Completion:
        """The model's reply, or its continuation of `begun`. Raises `BudgetExceeded`.

        `raw`: prompt and beginning are sent as they stand, past the chat template.
        `tokens` and `temperature` default to those of the settings; `seed` is added to theirs.
        """
        messages = [raw_prompt(prompt, begun)] if raw else said_so_far(prompt, begun)
        usual = self.kit.sampling
        sampling = replace(
            usual,
            max_tokens=usual.max_tokens if tokens is None else tokens,
            temperature=usual.temperature if temperature is None else temperature,
            stop=tuple(stop),
            top=top,
            seed=usual.seed + seed,
        )
        reply = await complete(
            self.kit.model, messages, sampling, self.run, role=ROLE, prompt=prompt.identity
        )
        self._end_if_silent(reply)
        return reply

    def _end_if_silent(self, reply: Completion) -> None:
        """Raises `ModelSilent` after `_SILENCES` replies in a row without an answer."""
        silent = note_decline(reply, self.run) or bool(self.run.unsaid)
        self._silences = self._silences + 1 if silent else 0
        if self._silences == _SILENCES:
            raise ModelSilent(self.run.unsaid)

    async def search(
        self,
        query: str,
        *,
        k: int | None = None,
        keep: bool = True,
        where: Retriever | None = None,
        sources: tuple[str, ...] = (),
    ) -> tuple[Hit, ...]:
        """Searches and keeps new passages (with `keep`). An empty query means the question.

        `where` is another retriever than that of all methods, over `sources` (by default all).
        Raises `BudgetExceeded`.
        """
        said = " ".join(query.split()) or self.question.text
        result = await look_up(
            where or self.kit.retriever,
            said,
            self.run,
            k=k or self.kit.k,
            sources=sources or self.kit.sources,
        )
        self.failed = result.failed or self.failed
        if keep:
            self.keep_hits(result.hits)
        return result.hits

    def keep_hits(self, hits: Sequence[Hit]) -> None:
        """Adds passages that are not among the hits yet."""
        known = {hit.passage.id for hit in self.hits}
        for hit in hits:
            if hit.passage.id not in known:
                known.add(hit.passage.id)
                self.hits.append(hit)

    def list_documents(self, hits: Sequence[Hit] | None = None) -> list[str]:
        """Numbered texts of `hits` (by default all), the first that fit; a passage keeps its
        number, and one that was not kept has none of theirs."""
        numbers = {hit.passage.id: n for n, hit in enumerate(self.hits, 1)}
        shown: list[str] = []
        # The first passage always fits: a prompt without any would be another method.
        room = _ROOM
        for hit in self.hits if hits is None else hits:
            room -= len(hit.passage.text)
            if room < 0 and shown:
                self.run.unread = True
                break
            number = numbers.setdefault(hit.passage.id, len(numbers) + 1)
            shown.append(f"{citation_mark(number)} {hit.passage.heading}: {hit.passage.text}")
        return shown

    async def read_evidence(self) -> None:
        """Drafts the answer from all passages found, with the reader prompt that all methods share.

        Leaves the draft unchanged without passages, or when the composer uses no draft: then the
        composer is the reader.
        """
        self.left_to_reader = True
        if self.kit.composer.uses_draft and self.hits:
            self.draft = await self.ask_text("baselines/read", documents=self.list_documents())

    def conclude_answer(self, answer: str, reason: str = "", passages: Sequence[Hit] = ()) -> None:
        """Decides for a method's own answer ("B", "adrenaline") with its reasoning.

        `passages` are those on which it rests; by default all that were found.
        """
        question, said = self.question, answer.strip()
        letter = match_option(said, question)
        already_said = bool(said) and bare_words(said) in bare_words(reason)
        words = reason.strip() if already_said else f"{reason.strip()} {said}".strip()
        self.decision = Decision(letter, words, tuple(hit.passage.id for hit in passages))
        if letter is None:
            self.draft = words
        else:
            self.draft = (
                f"{reason.strip() or question.option_text(letter)}\n<answer>{letter}</answer>"
            )

    def conclude_text(self, text: str, passages: Sequence[Hit] = ()) -> None:
        """Decides for what a text says: its last answer, if it states one, and its words."""
        self.draft = text
        letter = stated_option(text, self.question)
        self.decision = Decision(letter, text.strip(), tuple(hit.passage.id for hit in passages))

    def _final_decision(self) -> tuple[Decision, DecidedBy]:
        """What was decided, and by whom; a method that its own bound ended decided nothing."""
        if self.left_to_reader:
            return UNDECIDED, DecidedBy.READER
        if self.decision is None:
            self.conclude_text(self.draft)
        decision = self.decision or UNDECIDED
        if self.capped or not (decision.option or decision.words):
            return UNDECIDED, DecidedBy.FALLBACK
        return decision, DecidedBy.METHOD

    async def finish(self, converged: str) -> Solution:
        """Composes the answer and states why the method stopped, and who decided."""
        self.draft = read_draft(self.draft, self.run)
        decision, decided = self._final_decision()
        answer = await self.kit.composer.conclude(
            self.question, self.hits, self.draft, self.run, decision=decision
        )
        nothing = (
            "passages were found, but none answers the question"
            if self.hits
            else "nothing was found"
        )
        why = f"a source was down: {self.failed}" if self.failed else nothing
        solution = end_single_pass(
            answer, self.run, decided, converged=converged, silent=Halt.NO_EVIDENCE, why=why
        )
        if self.capped and not (self.run.spent or self.run.unsaid):
            return replace(solution, halt=Halt.BUDGET, why=self.capped)
        return solution


@dataclass(frozen=True)
class EpisodeMethod(ABC):
    """A method that is a loop over an episode; what stands around every loop is here."""

    kit: MethodDeps

    async def solve(self, question: Question, run: Run) -> Solution:
        converged = "written until the model said nothing more"
        with Episode(self.kit, question, run) as episode:
            converged = await self.run_episode(episode)
        return await episode.finish(converged)

    @abstractmethod
    async def run_episode(self, episode: Episode) -> str:
        """Works until the method ends; returns what it did. Raises `BudgetExceeded`."""
        ...


def said_so_far(prompt: RenderedPrompt, begun: str) -> list[Message]:
    """The prompt as a conversation whose last reply has already begun with `begun`."""
    asked = [Message("user", prompt.text)]
    return [*asked, Message("assistant", begun)] if begun else asked


def raw_prompt(prompt: RenderedPrompt, begun: str) -> Message:
    """The prompt as a raw one, after whose last line the model has begun to write `begun`."""
    return Message("raw", f"{prompt.text}\n{begun}")


def stated_option(text: str, question: Question) -> str | None:
    """The letter of the option that running text states as its answer; `None` without one.

    Read as any reply, else by the wording after the last "the answer is".
    """
    if not question.options:
        return None
    if letter := written_option(text, question):
        return letter
    marks = list(_STATES.finditer(text))
    return named_option(text[marks[-1].end() :], question) if marks else None


def match_option(said: str, question: Question) -> str | None:
    """The letter of the option that a short answer names, by letter or by text; else `None`."""
    if not question.options:
        return None
    return written_option(said, question) or named_option(said, question)


async def write_draft(
    model: LanguageModel,
    prompt: str,
    question: Question,
    sampling: Sampling,
    run: Run,
    *,
    alone: bool,
) -> str:
    """The model's reply to a baseline's prompt about the question; "" where none is affordable.

    `alone`: it is to be the answer, without evidence.
    """
    rendered = render_question_prompt(prompt, question)
    messages = [Message("user", rendered.text)]
    try:
        reply = await complete(model, messages, sampling, run, role=ROLE, prompt=rendered.identity)
    except BudgetExceeded:
        return ""
    return read_draft(reply.text, run, alone=alone)


def end_single_pass(
    answer: Answer, run: Run, decided: DecidedBy, *, converged: str, silent: Halt, why: str
) -> Solution:
    """A single pass has converged when it says something; else it halts as `silent`.

    Where the run's budget refused it something, it says so instead.
    """
    if run.spent:
        return Solution(answer, Halt.BUDGET, f"spent: {run.spent}", run.usage, decided)
    if answer.is_silent:
        return explain_abstention(Solution(answer, silent, why, run.usage, decided), run)
    return Solution(answer, Halt.CONVERGED, converged, run.usage, decided)
