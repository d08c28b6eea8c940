"""The settings that follow from what the probe found, and how they are written.

| Found | Setting |
|---|---|
| thinking can be switched off, or made short | `model.request` |
| how long it thinks | `model.thinking`, granted to every call, of 16 tokens too |
| calls beside each other | `model.parallel` |
| the context, less reply and thinking | `strategy.k` |
| scores, log-probabilities | `strategy.metric`, of strategies that have one |
| tags | `strategy.dialect` |

A key of [strategy] is written only where the file's own strategy has it: "auto" and "tolerant" are
the defaults of all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from osler.probe import with_request
from osler.probe.findings import Findings, Thinking
from osler.settings import ModelSettings, Settings
from osler.settings.edit import write_keys

_LEAST_THINKING, _STEP = 2048, 512
_MUCH_HARDER = 4
"""Times the thinking before an easy question, for those that are not."""
_PASSAGE, _PROMPT = 300, 800
"""Tokens of a passage of 1,000 characters with its head; of a prompt without passages."""
_WANTED = 8192
"""Tokens of context for ten passages, thinking and a reply."""
_SEARCHES = {"tc-rag": 3, "unified": 3}
"""Searches whose passages are in one prompt; else one."""
_ALLOTS = "options.num_ctx"
"""Ollama's field that allots a context."""


@dataclass(frozen=True, slots=True)
class Advice:
    """Values by key, of the model's section and of [strategy]."""

    section: str = "model"
    model: dict[str, object] = field(default_factory=dict)
    strategy: dict[str, object] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """The settings as dotted keys, as `--set` takes them."""
        told = [f"{self.section}.{key} = {_shown(value)}" for key, value in self.model.items()]
        return [*told, *(f"strategy.{key} = {_shown(v)}" for key, v in self.strategy.items())]

    def is_set(self, chosen: ModelSettings, strategy: object) -> bool:
        """Whether the settings have it all."""
        wanted = ((chosen, self.model), (strategy, self.strategy))
        return all(
            _shown(getattr(place, key, None)) == _shown(value)
            for place, keys in wanted
            for key, value in keys.items()
        )


def advise(settings: Settings, chosen: ModelSettings, found: Findings) -> Advice:
    """The settings that follow; none where the findings have a fault."""
    if not found.ok:
        return Advice(found.section)
    model = _model_keys(chosen, found)
    thinking = int(str(model.get("thinking", 0)))
    if found.thinking and found.thinking.is_off:
        thinking = 0
    return Advice(found.section, model, _strategy_keys(settings, found, thinking))


def write_advice(path: Path, advices: Sequence[Advice]) -> None:
    """Writes the keys into the file; every other line stays. Raises `BadConfig`."""
    for advice in advices:
        if advice.model:
            write_keys(path, advice.section, advice.model)
    strategy = {key: value for advice in advices for key, value in advice.strategy.items()}
    # The smallest context is the one that all prompts must fit.
    if ks := [int(str(advice.strategy["k"])) for advice in advices if "k" in advice.strategy]:
        strategy["k"] = min(ks)
    if strategy:
        write_keys(path, "strategy", strategy)


def _model_keys(chosen: ModelSettings, found: Findings) -> dict[str, object]:
    keys: dict[str, object] = {}
    lines: tuple[str, ...] = ()
    if found.thinking and found.thinking.place:
        keys["thinking"] = _allowance(found.thinking, _context_of(found))
        lines = found.thinking.fields
    if _is_small(found):
        lines = (*lines, f"{_ALLOTS}={_context_of(found)}")
    if lines:
        keys["request"] = list(with_request(chosen, lines).request)
    if found.beside is not None:
        keys["parallel"] = _calls_at_once(chosen, found)
    return keys


def _allowance(thinking: Thinking, context: int | None) -> int:
    """Tokens of thinking in a call, a third of the context at most."""
    wanted = thinking.tokens * _MUCH_HARDER * (1 if thinking.ended else 2)
    room = max(_LEAST_THINKING, -(-wanted // _STEP) * _STEP)
    return min(room, context // 3) if context else room


def _is_small(found: Findings) -> bool:
    """Whether Ollama allots less than is wanted of what the model has."""
    if not found.server.startswith("Ollama") or found.context is None:
        return False
    return found.context < min(_WANTED, found.longest or 0)


def _context_of(found: Findings) -> int | None:
    return min(_WANTED, found.longest or 0) if _is_small(found) else found.context


def _calls_at_once(chosen: ModelSettings, found: Findings) -> int:
    if not found.beside:
        return 1
    usual = type(chosen).model_fields["parallel"].default
    return min(found.slots or usual, 64)


def _strategy_keys(settings: Settings, found: Findings, thinking: int) -> dict[str, object]:
    strategy, keys = settings.strategy, dict[str, object]()
    k, context = getattr(strategy, "k", None), _context_of(found)
    if k is not None and context is not None:
        left = context - settings.sampling.max_tokens - thinking - _PROMPT
        fits = left // (_PASSAGE * _SEARCHES.get(strategy.kind, 1))
        if fits < k:
            keys["k"] = max(1, fits)
    if not _has_metric(str(getattr(strategy, "metric", "auto")), found):
        keys["metric"] = "auto"
    if getattr(strategy, "dialect", "tolerant") != "tolerant" and found.tags != "plain":
        keys["dialect"] = "tolerant"
    return keys


def _has_metric(metric: str, found: Findings) -> bool:
    """Whether the state value that is set can be taken with this model."""
    if metric == "cppl":
        return bool(found.scores)
    return bool(found.scores or found.logprobs) or metric != "uct"


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
