"""Asks a model within a run's budget, and repairs replies that do not parse.

A `RoleModel` is a model in one role.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from osler.errors import MalformedOutput, PromptTooLong
from osler.llm.core import base
from osler.llm.core.base import (
    Attended,
    Attentive,
    Completion,
    CutShort,
    LanguageModel,
    Likelihood,
    Message,
    Sampling,
    Scored,
)
from osler.llm.core.grammar import Grammar
from osler.llm.core.thinking import silence_of, split_thinking
from osler.llm.reading.answers import DECLINED, answer_words, declines
from osler.prompts import RenderedPrompt, render_prompt
from osler.text import join_surrogates, language_of
from osler.trace import Asked, BudgetExceeded, Noted, Run
from osler.types import Usage

T = TypeVar("T")

REPAIRS = 2
"""Further tries for a reply that does not parse."""


async def complete(
    model: LanguageModel,
    messages: Sequence[Message],
    sampling: Sampling,
    run: Run,
    *,
    role: str,
    prompt: str,
    repaired: str = "",
) -> Completion:
    """Completes a conversation, paid for and traced, its thinking split from its text.

    `prompt` is the prompt's identity. Raises `BudgetExceeded` where the run's budget has no
    room for it, or ends before the reply.
    """
    completion = _make_loggable(
        split_thinking(await _call_within_budget(run, lambda: model.complete(messages, sampling)))
    )
    completion = _note_silence(completion, run)
    completion = replace(completion, usage=_price_usage(model, completion.usage, run))
    # Paid before it is told: an event that ends the run must not hide what it cost.
    run.spend(completion.usage)
    run.emit(
        Asked(
            role,
            "complete",
            prompt,
            completion.text,
            completion.usage,
            repaired,
            completion.thinking,
        )
    )
    return completion


def _note_silence(completion: Completion, run: Run) -> Completion:
    """Records a reply that was cut while it thought, and takes thinking without marks for such."""
    run.unsaid = ""
    run.cut = completion.text if completion.finish == "length" else ""
    if silence_of(completion) != "cut":
        return completion
    count = completion.usage.completion_tokens
    spent = f" after {count} tokens" if count else ""
    run.unsaid = f"the model's reply was cut while thinking{spent}: raise model.thinking"
    if not completion.text.strip():
        return completion
    return replace(completion, text="", thinking=completion.text, tokens=())


def note_decline(completion: Completion, run: Run) -> bool:
    """Whether the reply declines to answer, which is then recorded."""
    if not declines(answer_words(completion.text)):
        return False
    run.unsaid = DECLINED
    return True


def _make_loggable(completion: Completion) -> Completion:
    """Returns the reply as the log can hold it; drops tokens that spell another text."""
    text, thinking = join_surrogates(completion.text), join_surrogates(completion.thinking)
    if (text, thinking) == (completion.text, completion.thinking):
        return completion
    tokens = completion.tokens if text == completion.text else ()
    return replace(completion, text=text, thinking=thinking, tokens=tokens)


async def ask_with_documents(
    documents: Sequence[str], ask: Callable[[Sequence[str]], Awaitable[T]], run: Run
) -> T:
    """Asks with all documents; where that is too long, with the first half of them, and so on.

    Raises `PromptTooLong` where there is no room for the first alone.
    """
    shown = len(documents)
    while True:
        try:
            reply = await ask(documents[:shown])
        except PromptTooLong:
            if shown < 2:
                raise
            shown //= 2
            continue
        if shown < len(documents):
            run.unread = True
            run.emit(
                Noted(f"the model's context had room for {shown} of {len(documents)} passages")
            )
        return reply


async def score(
    model: Likelihood,
    context: Sequence[Message] | str,
    text: str,
    run: Run,
    *,
    role: str,
    prompt: str = "",
) -> Scored:
    """Scores a given text, paid for and traced. Raises `BudgetExceeded` as `complete` does."""
    (scored,) = await score_all(model, context, [text], run, role=role, prompt=prompt)
    return scored


async def score_all(
    model: Likelihood,
    context: Sequence[Message] | str,
    texts: Sequence[str],
    run: Run,
    *,
    role: str,
    prompt: str = "",
) -> tuple[Scored, ...]:
    """Scores several texts after one context, each paid for and traced.

    Raises `BudgetExceeded` as `complete` does, also where there is room for some of them only.
    """
    scores = await _call_within_budget(
        run, lambda: base.score_all(model, context, texts), calls=len(texts)
    )
    for text, scored in zip(texts, scores, strict=True):
        _pay_score(model, prompt, text, scored.usage, run, role)
    return scores


async def attend(
    model: Attentive, context: Sequence[Message] | str, text: str, run: Run, *, role: str
) -> Attended:
    """Reads a text for its attention, paid for and traced as a scoring. Raises `BudgetExceeded`."""
    attended = await _call_within_budget(run, lambda: model.attend(context, text))
    _pay_score(model, "", text, attended.usage, run, role)
    return attended


def _pay_score(
    model: Likelihood | Attentive, prompt: str, text: str, usage: Usage, run: Run, role: str
) -> None:
    priced = _price_usage(model, usage, run)
    run.spend(priced)
    run.emit(Asked(role, "score", prompt, text, priced))


def _price_usage(model: object, usage: Usage, run: Run) -> Usage:
    # What scores alone has no name, and then no price.
    return run.price_usage(model.name, usage) if isinstance(model, LanguageModel) else usage


async def _call_within_budget(run: Run, call: Callable[[], Awaitable[T]], *, calls: int = 1) -> T:
    """Awaits the call; one that outlasts the run's seconds is stopped, and paid for."""
    run.require_budget("call", calls)
    # The seconds that are left bound the call: a budget is kept by stopping, not by asking after.
    left = run.seconds_left
    patience = asyncio.timeout(left)
    try:
        async with patience:
            return await call()
    except CutShort:
        pass
    except TimeoutError:
        if not patience.expired():  # the model's own
            raise
    # A stopped call reports no tokens: its seconds are what is known of its cost.
    run.spend(Usage(calls=1, seconds=left or 0.0))
    reached = run.exhausted_bound or "seconds"
    run.emit(Noted(f"a model call was stopped: {reached}"))
    raise run.refuse_at_bound(reached)


async def ask(
    model: LanguageModel,
    messages: Sequence[Message],
    parse: Callable[[Completion], T],
    sampling: Sampling,
    run: Run,
    *,
    role: str,
    prompt: str,
    repairs: int = REPAIRS,
) -> T:
    """Returns the parsed reply; a malformed one is shown to the model with what was expected.

    Raises `MalformedOutput` after `repairs` further tries.
    """
    turns, wrong = list(messages), ""
    for attempt in range(repairs + 1):
        completion = await complete(
            model, turns, sampling, run, role=role, prompt=prompt, repaired=wrong
        )
        try:
            return parse(completion)
        except MalformedOutput as error:
            explained = _explain_error(error, completion, sampling)
            declined = note_decline(completion, run)
            # Who thinks to the limit again will do so once more, and who declines will at once.
            if attempt == repairs or declined or (run.unsaid and wrong):
                raise explained from error
        wrong = explained.message
        # From the first turns each time: a second repair does not carry the first one along.
        turns = repair_messages(messages, completion, wrong, sampling)
        # Another seed: at temperature 0 as above it the same reply would come again.
        sampling = replace(sampling, seed=sampling.seed + 1)
    raise AssertionError("unreachable: the last attempt returns or raises")


def _explain_error(
    error: MalformedOutput, completion: Completion, sampling: Sampling
) -> MalformedOutput:
    """Adds to the error what is known of its reason."""
    limit = f"{sampling.max_tokens} tokens"
    cut, text = completion.finish == "length", completion.text
    if completion.thinking and not text.strip():
        why = f"thinking took all {limit}" if cut else "there was thinking, and then no reply"
    elif cut:
        why = f"it was cut at {limit}"
    elif sampling.grammar and not sampling.grammar.accepts_prefix(text):
        why = f"the model was not held to the format {sampling.grammar.name}"
    else:
        return error
    return MalformedOutput(error.reply, expected=error.expected, why=why)


def repair_messages(
    messages: Sequence[Message], completion: Completion, wrong: str, sampling: Sampling
) -> list[Message]:
    """Appends the bad reply and what is wrong with it to the conversation; roles alternate."""
    question = next((m.content for m in reversed(messages) if m.role == "user"), "")
    complaint = render_prompt(
        "llm/repair",
        language_of(question),
        wrong=wrong,
        thought=bool(completion.thinking) and not completion.text.strip(),
        limit=sampling.max_tokens if completion.finish == "length" else 0,
    )
    turns = list(messages)
    if completion.text.strip():
        # A last message of the assistant's was continued, so the reply is more of the same.
        _append_turn(turns, Message("assistant", completion.text), between="")
    _append_turn(turns, Message("user", complaint.text), between="\n\n")
    return turns


def _append_turn(turns: list[Message], message: Message, *, between: str) -> None:
    if turns and turns[-1].role == message.role:
        message = replace(message, content=turns.pop().content + between + message.content)
    turns.append(message)


@dataclass(frozen=True)
class Speaker:
    """A model, its role in a run, and its decoding settings."""

    model: LanguageModel
    role: str
    sampling: Sampling = field(default_factory=Sampling)
    constrains: bool = False
    """Set where the engine enforces grammars."""
    reasoning: int = 400
    """Characters that it may reason before an answer, under a grammar."""
    system: str = ""
    """Text of the system message; empty for none."""

    async def ask(
        self,
        prompt: RenderedPrompt,
        parse: Callable[[Completion], T],
        run: Run,
        *,
        grammar: Grammar | None = None,
        top: int = 0,
        shown: Sequence[Message] = (),
        repairs: int = REPAIRS,
    ) -> T:
        """Returns the parsed reply to one prompt. Raises `MalformedOutput` after the repairs of
        `ask`.

        `shown`: turns that stand before it, as examples.
        """
        enforced = grammar if self.constrains else None
        # A seed of its own for each call, drawn from the run: equal runs draw equal ones.
        sampling = replace(self.sampling, seed=run.rng.getrandbits(31), grammar=enforced, top=top)
        before = [Message("system", self.system)] if self.system else []
        messages = [*before, *shown, Message("user", prompt.text)]
        return await ask(
            self.model,
            messages,
            parse,
            sampling,
            run,
            role=self.role,
            prompt=prompt.identity,
            repairs=repairs,
        )

    async def try_asking(
        self,
        prompt: RenderedPrompt,
        parse: Callable[[Completion], T],
        run: Run,
        *,
        grammar: Grammar,
        without: str,
    ) -> T | None:
        """As `ask`; `None` where the reply cannot be read or the model's context is too short,
        which is noted with what happens `without` it, and where the run's budget is spent."""
        try:
            return await self.ask(prompt, parse, run, grammar=grammar)
        except (MalformedOutput, PromptTooLong) as error:
            run.emit(Noted(f"{without}: {error.message}"))
        except BudgetExceeded:
            pass
        return None
