"""The prefix cache of a model server: what a prompt has in common with former ones is not read
again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from osler_lab.testing.scripted import tokens_of

BLOCK = 16
"""Tokens of a block: vLLM's size; nothing shorter is kept."""


def template_tokens(turns: Sequence[Mapping[str, str]]) -> list[str]:
    """The tokens of a conversation as a chat template writes it."""
    tokens: list[str] = []
    for turn in turns:
        words = [token.text for token in tokens_of(turn["content"], 1.0)]
        tokens += [f"<|{turn['role']}|>", *words, "<|end|>"]
    return [*tokens, "<|assistant|>"]


@dataclass
class PrefixCache:
    """Blocks of former prompts, each known by all that stands before it."""

    block: int = BLOCK
    _known: set[int] = field(default_factory=set)

    def read_prompt(self, tokens: Sequence[str]) -> int:
        """How many tokens former prompts began with; the prompt is kept.

        The last token is always read: a server answers from what it has just read.
        """
        keys = list(self._prefix_keys(tokens))
        found = next((n for n, key in enumerate(keys) if key not in self._known), len(keys))
        self._known.update(keys)
        return min(found * self.block, max(0, len(tokens) - 1))

    def _prefix_keys(self, tokens: Sequence[str]) -> Iterator[int]:
        key = 0
        for start in range(0, len(tokens) - self.block + 1, self.block):
            key = hash((key, *tokens[start : start + self.block]))
            yield key
