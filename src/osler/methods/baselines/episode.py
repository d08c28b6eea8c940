"""One question's line of work: what the methods that search have in common.

A method is its loop; asking the model, searching, numbering what was found, the budget and
the ending are here, so that all methods are compared on the same terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType

from osler.answer.base import Composer
from osler.answer.options import written_option
from osler.llm.core.ask import complete
from osler.llm.core.base import Completion, LanguageModel, Message, Sampling
from osler.methods.baselines.base import ROLE, end_single_pass, list_options
from osler.prompts import RenderedPrompt, render_prompt
from osler.retrieve.lookup import look_up
from osler.trace import BudgetExceeded, Run
from osler.types import Halt, Hit, Question, Retriever, Solution


@dataclass(frozen=True)
class MethodDeps:
    """What a method that searches is given: the same for all of them."""

    model: LanguageModel
    retriever: Retriever
    composer: Composer
    sources: tuple[str, ...]
    k: int = 5
    """Passages of one search."""
    sampling: Sampling = field(default_factory=Sampling)
    characters: int = 20_000
    """Of the passages in one prompt, at most: what a window of 8,192 tokens leaves them."""


class Episode:
    """As a context it ends quietly where the run's budget does; `end_single_pass` then says so."""

    def __init__(self, kit: MethodDeps, question: Question, run: Run) -> None:
        self.kit, self.question, self.run = kit, question, run
        self.hits: list[Hit] = []
        """Every passage found so far, each once, in order: [n] is the n-th of them."""
        self.failed = ""
        self.draft = ""
        """What the answer is made of."""
        self.capped = ""
        """Why the method's own bound ended it before it had an answer."""

    def __enter__(self) -> Episode:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        return isinstance(error, BudgetExceeded)

    def render_prompt(self, prompt: str, **values: object) -> RenderedPrompt:
        """The prompt in the question's language."""
        return render_prompt(prompt, self.question.language, **values)

    @property
    def question_variables(self) -> dict[str, object]:
        """The question and its options, as prompts take them."""
        return {"question": self.question.text, "options": list_options(self.question)}

    async def ask_model(
        self,
        prompt: RenderedPrompt,
        *,
        begun: str = "",
        tokens: int | None = None,
        temperature: float | None = None,
        stop: Sequence[str] = (),
        top: int = 0,
        seed: int = 0,
    ) -> Completion:
        """The model's reply, or how it goes on from `begun`. Raises `BudgetExceeded`.

        `tokens` and `temperature` are those of the settings where not given; `seed` is
        added to theirs.
        """
        messages = said_so_far(prompt, begun)
        usual = self.kit.sampling
        sampling = replace(
            usual,
            max_tokens=usual.max_tokens if tokens is None else tokens,
            temperature=usual.temperature if temperature is None else temperature,
            stop=tuple(stop),
            top=top,
            seed=usual.seed + seed,
        )
        return await complete(
            self.kit.model, messages, sampling, self.run, role=ROLE, prompt=prompt.identity
        )

    async def find_hits(
        self, query: str, *, k: int | None = None, keep: bool = True
    ) -> tuple[Hit, ...]:
        """Searches, and keeps what is new. An empty query is the question. Raises `BudgetExceeded`."""
        said = " ".join(query.split()) or self.question.text
        found = await look_up(
            self.kit.retriever, said, self.run, k=k or self.kit.k, sources=self.kit.sources
        )
        self.failed = found.failed or self.failed
        if keep:
            self.keep_hits(found.hits)
        return found.hits

    def keep_hits(self, hits: Sequence[Hit]) -> None:
        """Adds what is not there yet."""
        known = {hit.passage.id for hit in self.hits}
        for hit in hits:
            if hit.passage.id not in known:
                known.add(hit.passage.id)
                self.hits.append(hit)

    def list_documents(self, hits: Sequence[Hit] | None = None) -> list[str]:
        """`[n] heading: text` of these, or of all, as many as fit; a passage keeps its number."""
        numbers = {hit.passage.id: n for n, hit in enumerate(self.hits, 1)}
        shown: list[str] = []
        room = self.kit.characters
        for hit in self.hits if hits is None else hits:
            room -= len(hit.passage.text)
            if room < 0 and shown:
                break
            number = numbers.get(hit.passage.id, len(shown) + 1)
            shown.append(f"[{number}] {hit.passage.heading}: {hit.passage.text}")
        return shown

    async def read_evidence(self) -> None:
        """The reader that all methods share: the draft from all that was found.

        Without passages, or where nobody reads a draft, it stays as it is.
        """
        if self.kit.composer.uses_draft and self.hits:
            prompt = self.render_prompt(
                "baselines/read", **self.question_variables, documents=self.list_documents()
            )
            self.draft = (await self.ask_model(prompt)).text

    def conclude_answer(self, answer: str, reason: str = "") -> None:
        """The draft from a method's own answer ("B", "adrenaline") and what it rests on."""
        question, said = self.question, answer.strip()
        letter = match_option(said, question)
        if letter is None:
            self.draft = " ".join(filter(None, (reason.strip(), said)))
        else:
            self.draft = (
                f"{reason.strip() or question.option_text(letter)}\n<answer>{letter}</answer>"
            )

    async def end_episode(self, converged: str) -> Solution:
        """The composed answer and why the work stopped there."""
        answer = await self.kit.composer.conclude(self.question, self.hits, self.draft, self.run)
        nothing = "the passages found do not answer" if self.hits else "nothing was found"
        why = f"a source was down: {self.failed}" if self.failed else nothing
        solution = end_single_pass(
            answer, self.run, converged=converged, silent=Halt.NO_EVIDENCE, why=why
        )
        if self.capped and not self.run.spent:
            return replace(solution, halt=Halt.BUDGET, why=self.capped)
        return solution


def said_so_far(prompt: RenderedPrompt, begun: str) -> list[Message]:
    """A conversation in which the model's reply has begun."""
    asked = [Message("user", prompt.text)]
    return [*asked, Message("assistant", begun)] if begun else asked


def match_option(said: str, question: Question) -> str | None:
    """The option that a short answer names: by its letter, or by its text; else None."""
    if not question.options:
        return None
    letter = written_option(said, question) or written_option(f"Answer: {said}", question)
    if letter is not None:
        return letter
    folded = said.casefold()
    within = [
        (len(option), letter)
        for letter, option in zip(question.letters, question.options, strict=True)
        if option.casefold() in folded
    ]
    return max(within)[1] if within else None
