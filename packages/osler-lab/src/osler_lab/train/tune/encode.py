"""Training data as tokens, with a mark on each that is learnt.

A prompt's tokens are those that the served model is given, and the reply's those it would have
to say, its end included: the two are cut apart before they are tokenised, as in use. What a
template writes after the end of a turn is no reply and is not learnt.

Texts to pre-train on are windows of one size, those of several sources mixed by weights. A source's
texts stand in one row, an end after each, and the row is cut into windows. A window begins with the
token that the one before ended with, which is read and not learnt: so every token of every text,
and every end, is learnt exactly once.
"""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from jinja2 import TemplateError

from osler.errors import BadConfig, BadRun, ModelError
from osler.llm.core.base import Message
from osler_lab.jobs.runner import Progress
from osler_lab.train.record import Dialogue, DpoRecord, SftRecord


@dataclass(frozen=True, slots=True)
class EncodedText:
    """Text as tokens: `learns[i]` says whether token i is learnt. The first token never is."""

    id: str
    tokens: tuple[int, ...]
    learns: tuple[bool, ...]

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def learnt(self) -> int:
        return sum(self.learns)


@dataclass(frozen=True, slots=True)
class EncodedPair:
    """Pair of replies to one prompt."""

    id: str
    chosen: EncodedText
    rejected: EncodedText

    def __len__(self) -> int:
        return max(len(self.chosen), len(self.rejected))


E = TypeVar("E", EncodedText, EncodedPair)
# A piece of text, and whether it is learnt.
_Part = tuple[str, bool]


class ChatEncoder:
    """A tokenizer and its chat template. Raises `ModelError` without a chat template."""

    def __init__(self, tokenizer: Any, *, name: str) -> None:
        if not getattr(tokenizer, "chat_template", None):
            raise ModelError(
                f"the tokenizer of {name} has no chat template",
                fix="tune a model made for conversations, or write chat_template.jinja beside it",
            )
        self._tokenizer = tokenizer
        self._name = name

    def encode_sample(self, sample: SftRecord) -> EncodedText:
        return self._encode_reply(sample.id, sample.messages, sample.completion)

    def encode_pair(self, pair: DpoRecord) -> EncodedPair:
        chosen = self._encode_reply(pair.id, pair.messages, pair.chosen)
        rejected = self._encode_reply(pair.id, pair.messages, pair.rejected)
        if chosen.tokens == rejected.tokens:
            raise BadRun(f"sample {pair.id}: chosen and rejected are the same tokens")
        return EncodedPair(pair.id, chosen, rejected)

    def encode_dialogue(self, dialogue: Dialogue) -> tuple[EncodedText, ...]:
        """All turns of the assistant in one text; one text a turn under a template that rewrites
        earlier turns, as those that drop their thoughts do, since the model is served so."""
        parts: list[_Part] = []
        done = ""
        for place, message in enumerate(dialogue.messages):
            if message.role != "assistant":
                continue
            # The text up to the turn as it is served, and the text after it: what lies between is
            # learnt.
            opened = self._apply_template(dialogue.messages[:place], opens=True)
            closed = self._apply_template(dialogue.messages[: place + 1])
            if not (opened.startswith(done) and closed.startswith(opened)):
                return tuple(self._encode_turns(dialogue))
            parts += [(opened[len(done) :], False), (closed[len(opened) :], True)]
            done = closed
        return (self._join_parts(dialogue.id, parts),)

    def _encode_turns(self, dialogue: Dialogue) -> Iterator[EncodedText]:
        """Each turn of the assistant after what is served before it."""
        for place, message in enumerate(dialogue.messages):
            if message.role == "assistant":
                earlier = dialogue.messages[:place]
                yield self._encode_reply(f"{dialogue.id}#{place}", earlier, message.content)

    def _encode_reply(self, id: str, messages: Sequence[Message], text: str) -> EncodedText:
        opened = self._apply_template(messages, opens=True)
        closed = self._apply_template((*messages, Message("assistant", text)))
        # Some templates change the prompt once a reply follows, or drop its thoughts; then the bare
        # reply is learnt.
        is_whole = closed.startswith(opened) and text.strip() in closed[len(opened) :]
        reply = closed[len(opened) :] if is_whole else _unopened(text, opened)
        return self._join_parts(id, [(opened, False), (reply, True)])

    def _join_parts(self, id: str, parts: Iterable[_Part]) -> EncodedText:
        tokens: list[int] = []
        learns: list[bool] = []
        for text, learnt in parts:
            ids = self._token_ids(text)
            if learnt:
                ids, kept = self._end_reply(ids)
            else:
                kept = 0
            tokens += ids
            learns += [place < kept for place in range(len(ids))]
        if not learns or learns[0]:
            raise ModelError(f"sample {id}: there is no token before the reply")
        return EncodedText(id, tuple(tokens), tuple(learns))

    def _end_reply(self, ids: list[int]) -> tuple[list[int], int]:
        """A reply that says where it ends, and how many of its tokens are its own."""
        end: int | None = self._tokenizer.eos_token_id
        if end is None:
            return ids, len(ids)
        # Without an end the model would learn never to stop.
        if end not in ids:
            return [*ids, end], len(ids) + 1
        # What follows the end (a line break of the template) is read, and not learnt.
        return ids, ids.index(end) + 1

    def _token_ids(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    def _apply_template(self, messages: Sequence[Message], *, opens: bool = False) -> str:
        listed = [{"role": message.role, "content": message.content} for message in messages]
        try:
            text: str = self._tokenizer.apply_chat_template(
                listed, tokenize=False, add_generation_prompt=opens
            )
        except (TemplateError, TypeError, ValueError) as error:
            raise ModelError(f"{self._name}: the chat template refuses: {error}") from error
        return text


@dataclass(frozen=True, slots=True)
class FittedRows:
    """Rows that can be trained on, and the ids of those left out for their length."""

    rows: tuple[Any, ...]
    long: tuple[str, ...]
    """Ids."""


def fit_rows(rows: Sequence[E], most: int, *, skip_long: bool = False) -> FittedRows:
    """The rows of at most `most` tokens; with `skip_long` longer ones are left out.

    A sample is never cut: its end is its answer. Raises `BadConfig` for longer ones without
    `skip_long`, and where nothing is left.
    """
    long = [row for row in rows if len(row) > most]
    if long and not skip_long:
        longest = max(len(row) for row in long)
        raise BadConfig(
            f"{len(long)} of {len(rows)} samples are longer than {most} tokens (the longest has"
            f" {longest}), and cutting one would cut its answer",
            fix=f"give --max-tokens {longest}, or --skip-long to train without them",
        )
    if len(long) == len(rows):
        raise BadConfig(f"no sample fits into {most} tokens", fix="give more --max-tokens")
    kept = tuple(row for row in rows if len(row) <= most)
    return FittedRows(kept, tuple(row.id for row in long))


D = TypeVar("D")


def _unopened(text: str, opened: str) -> str:
    """A reply without the tag with which its prompt ends already, as R1's distillates' does."""
    tag = opened.rstrip().rpartition("<")[2]
    begun = f"<{tag}" if tag.endswith(">") else ""
    return text.removeprefix(begun).lstrip("\n") if begun == "<think>" else text


def encode_all(
    data: Sequence[D], encode: Callable[[D], Iterable[E]], progress: Progress | None
) -> list[E]:
    """Encodes every item, each to one text or several, with progress."""
    rows = list[E]()
    for number, item in enumerate(data, 1):
        rows += encode(item)
        if progress and not number % 50:
            progress("reading samples", number, len(data))
    return rows


@dataclass(frozen=True, slots=True)
class PackedWindows:
    """Windows of one source: four bytes a token; a window is made when it is asked for."""

    name: str
    row: array[int]
    """An end, then every text with its end."""
    size: int
    """Tokens of a window, at least 2."""

    def __len__(self) -> int:
        # Neighbouring windows overlap by one token.
        return math.ceil((len(self.row) - 1) / (self.size - 1))

    def __getitem__(self, place: int) -> EncodedText:
        if not 0 <= place < len(self):
            raise IndexError(place)
        begin = place * (self.size - 1)
        tokens = tuple(self.row[begin : begin + self.size])
        return EncodedText(f"{self.name}.{place}", tokens, (False, *[True] * (len(tokens) - 1)))


def pack_windows(
    name: str, texts: Iterable[Sequence[int]], *, end: int, size: int
) -> PackedWindows:
    """The texts, as tokens and in this order, as windows of `size`; only the last is shorter."""
    # Begins with an end, so that the first token of the first text is learnt, too.
    row = array("I", [end])
    for text in texts:
        row.extend(text)
        row.append(end)
    return PackedWindows(name, row, size)


def mix_windows(
    counts: Sequence[int], weights: Sequence[float] | None, seed: int
) -> list[tuple[int, int]]:
    """Chooses the windows of an epoch: (source, window) pairs, as many as there are windows.

    Without weights every window once. With them each source has its weight's share of the
    epoch, to within one window: of a source that is asked for more than it has, all windows are
    taken as often, or once more; of one that is asked for less, some are drawn by the seed.
    """
    if weights is None:
        return [(source, n) for source, count in enumerate(counts) for n in range(count)]
    places: list[tuple[int, int]] = []
    for source, (count, wanted) in enumerate(
        zip(counts, deal_quotas(counts, weights), strict=True)
    ):
        rounds, rest = divmod(wanted, count)
        drawn = random.Random(f"{seed}/{source}").sample(range(count), rest)
        places += [(source, n) for n in range(count) for _ in range(rounds)]
        places += [(source, n) for n in sorted(drawn)]
    return places


def deal_quotas(counts: Sequence[int], weights: Sequence[float]) -> list[int]:
    """The sum of the counts, dealt out by the weights: the largest remainders get the rest."""
    total = sum(counts)
    exact = [total * weight / sum(weights) for weight in weights]
    dealt = [int(share) for share in exact]
    # Largest remainder (Hamilton); of equal remainders the first source.
    by_rest = sorted(range(len(exact)), key=lambda n: (dealt[n] - exact[n], n))
    for source in by_rest[: total - sum(dealt)]:
        dealt[source] += 1
    return dealt


@dataclass(frozen=True, slots=True)
class MixedWindows(Sequence[EncodedText]):
    """Windows of all sources as one sequence of samples."""

    sources: tuple[PackedWindows, ...]
    places: tuple[tuple[int, int], ...]

    def __len__(self) -> int:
        return len(self.places)

    @overload
    def __getitem__(self, place: int) -> EncodedText: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[EncodedText]: ...
    def __getitem__(self, place: int | slice) -> EncodedText | Sequence[EncodedText]:
        if isinstance(place, slice):
            return MixedWindows(self.sources, self.places[place])
        source, window = self.places[place]
        return self.sources[source][window]
