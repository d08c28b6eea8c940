"""Scoring at the speed of reading: every text of a call in one batch, after a prefix read once.

The texts are a tree: what they begin with alike is read once, and no text sees another. The
tree is put together in one order, whatever the order of the texts, so that a call made again
reads the same batches. The prefixes of the last calls stay cached.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from osler.errors import ModelError
from osler.llm.core.spans import shared_prefix
from osler.llm.local.c_functions import LoadedModel, LogitContext, Place

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Tokens = tuple[int, ...]
"""Ids of a text."""


class CallStopped(ModelError):
    """Raised when the caller left before the reply was there."""


@dataclass(frozen=True, slots=True)
class TextScores:
    """Log-probabilities of the texts of one call."""

    texts: tuple[tuple[float, ...], ...]
    """Of each text's tokens, in nats."""
    cached: int
    """Tokens of the prefix that were not read again."""


_BATCH = 192
"""Tokens read at once: a stop waits for one batch, and each shows a whole vocabulary (38 MB)."""
_PREFIXES = 4
"""Prefixes that stay cached, so that calls which take turns do not read theirs anew."""
_SEQUENCES = 64
"""The prefixes and the texts of one tree."""
_CELLS = 2_048
"""Cells of the cache, to begin with, and tokens of one tree, at most."""


@dataclass
class _Prefix:
    """A sequence of the cache, and what it holds."""

    sequence: int
    tokens: Tokens = ()
    logits: NDArray[np.float32] | None = None
    """What follows its last token, float32 [vocabulary]."""
    used: int = 0
    """Order of its last use."""


class BatchScorer:
    """Scores token sequences on a GGUF file of its own mapping. Thread-safe; one call at a time.

    Raises `ModelError` where the engine's library or the model cannot be used so: see `forks`.
    """

    def __init__(self, path: Path, *, context: int) -> None:
        self._model = LoadedModel(path)
        if not self._model.forks:
            raise ModelError(f"{path.name} keeps a state that cannot be cut at a token")
        self._longest = context
        self._lock = threading.Lock()
        self._calls = 0
        self._open_context(min(_CELLS, context + _CELLS))

    def count_missing(self, prefix: Sequence[int]) -> int:
        """Counts the prefix's tokens that a call would have to read."""
        return len(prefix) - self._find_nearest(prefix)[1]

    def score(
        self,
        prefix: Sequence[int],
        texts: Sequence[Sequence[int]],
        stop: threading.Event,
        *,
        threads: int,
    ) -> TextScores:
        """Scores each text after the prefix, which has a token at least.

        Raises `CallStopped` between two batches once `stop` is set, and `ModelError` for a
        prefix and a text that are longer than the context window.
        """
        wanted = sorted({tuple(text) for text in texts})
        if len(prefix) + max(map(len, wanted), default=0) > self._longest:
            raise ModelError(
                f"{self._model.path.name}: {len(prefix)} tokens and a text of"
                f" {max(map(len, wanted))} exceed the available context size ({self._longest})"
            )
        with self._lock:
            self._calls += 1
            lengths = [len(text) for text in wanted]
            self._make_room(prefix, max(*lengths, min(_CELLS, sum(lengths)), 0))
            self._context.use_threads(threads)
            held, cached = self._read_prefix(tuple(prefix), stop)
            known: dict[Tokens, float] = {}
            for group in _groups(wanted):
                known |= self._score_tree(held, group, stop)
        paths = [[tuple(text[: i + 1]) for i in range(len(text))] for text in texts]
        return TextScores(tuple(tuple(known[path] for path in each) for each in paths), cached)

    def _open_context(self, cells: int) -> None:
        self._context = LogitContext(self._model, cells=cells, batch=_BATCH, sequences=_SEQUENCES)
        self._prefixes = [_Prefix(sequence) for sequence in range(_PREFIXES)]

    def _make_room(self, prefix: Sequence[int], room: int) -> None:
        """Grows where the prefix and `room` tokens do not fit; else forgets the oldest prefixes
        until they do.
        """
        if len(prefix) + room > self._context.cells:
            self._open_context(min(2 * (len(prefix) + room), self._longest + _CELLS))
            return
        best, shared = self._find_nearest(prefix)
        needed = len(prefix) - shared + room
        for one in sorted(self._prefixes, key=lambda one: (one is best, one.used)):
            # Cells that two prefixes share are counted twice: that errs towards room.
            if sum(len(each.tokens) for each in self._prefixes) + needed > self._context.cells:
                self._forget(one, shared if one is best else 0)

    def _find_nearest(self, tokens: Sequence[int]) -> tuple[_Prefix, int]:
        """Returns the prefix that has the most of these tokens, and how many."""
        shared = [(shared_prefix(one.tokens, tokens), one.used, one) for one in self._prefixes]
        count, _, best = max(shared, key=lambda each: each[:2])
        return best, count

    def _forget(self, prefix: _Prefix, start: int = 0) -> None:
        self._context.cut_sequence(prefix.sequence, start)
        prefix.tokens, prefix.logits = prefix.tokens[:start], None

    def _read_prefix(self, tokens: Tokens, stop: threading.Event) -> tuple[_Prefix, int]:
        """Returns the prefix's sequence, read to its end, and the number of its cached tokens."""
        best, shared = self._find_nearest(tokens)
        if tokens != best.tokens or best.logits is None:
            # The logits of the last token are wanted: it is read in any case.
            shared = min(shared, len(tokens) - 1)
            best = self._fork_prefix(best, shared)
            for start in range(shared, len(tokens), _BATCH):
                _require_going(stop)
                places = [
                    Place(tokens[i], i, (best.sequence,), i == len(tokens) - 1)
                    for i in range(start, min(start + _BATCH, len(tokens)))
                ]
                shown = self._context.read_places(places)
                best.tokens = tokens[: start + len(places)]
            best.logits = shown[0].copy()
        best.used = self._calls
        return best, shared

    def _fork_prefix(self, best: _Prefix, shared: int) -> _Prefix:
        """Returns a sequence that holds the first `shared` tokens of `best` and no more.

        It is `best` itself where that goes no further; else the one that was used longest ago.
        """
        if shared >= len(best.tokens) - 1:
            self._forget(best, shared)
            return best
        others = [one for one in self._prefixes if one is not best]
        oldest = min(others, key=lambda one: (bool(one.tokens), one.used))
        self._forget(oldest)
        if shared:
            self._context.copy_sequence(best.sequence, oldest.sequence, shared)
            oldest.tokens = best.tokens[:shared]
        return oldest

    def _score_tree(
        self, prefix: _Prefix, texts: Sequence[Tokens], stop: threading.Event
    ) -> dict[Tokens, float]:
        """Returns the log-probability of each path of tokens from the prefix on."""
        assert prefix.logits is not None, "a prefix is read to its end"  # noqa: S101
        tree = _Tree.grow(texts)
        known = dict(tree.weigh((), prefix.logits))
        numbers = range(_PREFIXES, _PREFIXES + len(texts))
        for number in numbers:
            self._context.copy_sequence(prefix.sequence, number)
        try:
            paths = list(tree.through)
            for start in range(0, len(paths), _BATCH):
                _require_going(stop)
                part = paths[start : start + _BATCH]
                depth = len(prefix.tokens) - 1
                places = [
                    Place(
                        path[-1],
                        depth + len(path),
                        tuple(numbers[i] for i in tree.through[path]),
                        shows=True,
                    )
                    for path in part
                ]
                for path, logits in zip(part, self._context.read_places(places), strict=True):
                    known |= tree.weigh(path, logits)
        finally:
            for number in numbers:
                self._context.cut_sequence(number)
        return known


@dataclass
class _Tree:
    """Texts by what they begin with alike."""

    through: dict[Tokens, list[int]] = field(default_factory=dict)
    """Path of tokens, each read once -> the texts that go on after it, by number."""
    children: dict[Tokens, set[int]] = field(default_factory=dict)
    """Path -> the tokens that come next."""

    @classmethod
    def grow(cls, texts: Sequence[Tokens]) -> _Tree:
        tree = cls()
        for number, text in enumerate(texts):
            for i, token in enumerate(text):
                tree.children.setdefault(text[:i], set()).add(token)
                if i:
                    tree.through.setdefault(text[:i], []).append(number)
        return tree

    def weigh(self, path: Tokens, logits: NDArray[np.float32]) -> Iterator[tuple[Tokens, float]]:
        """Yields the log-probability of each token that follows the path."""
        import numpy as np

        largest = logits.max()
        whole = float(largest) + float(np.log(np.exp(logits - largest).sum()))
        for token in self.children[path]:
            yield (*path, token), float(logits[token]) - whole


def _groups(texts: Sequence[Tokens]) -> Iterator[list[Tokens]]:
    """Parts the texts into trees that fit the cache."""
    group: list[Tokens] = []
    for text in texts:
        full = len(group) == _SEQUENCES - _PREFIXES
        if group and (full or sum(map(len, group)) + len(text) > _CELLS):
            yield group
            group = []
        group.append(text)
    if group:
        yield group


def _require_going(stop: threading.Event) -> None:
    if stop.is_set():
        raise CallStopped("a scoring was stopped")
