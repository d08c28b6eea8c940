"""Which calls ask for a role adapter, and what settings, tapes and caches make of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from osler.errors import BadConfig
from osler.llm.core.ask import Speaker
from osler.llm.core.base import Completion, LanguageModel, Message, Sampling
from osler.llm.recording import TapePlayer, replay_model, wrap_model
from osler.llm.recording.tape import ModelAbilities, Tape, sampling_values
from osler.prompts import RenderedPrompt
from osler.settings import Settings
from osler.trace import Run

PLAN = RenderedPrompt("Plan.", "omni/plan.zh@1f3a9c2e")
OTHER = RenderedPrompt("Act.", "tcrag/act@1f3a9c2e")


@dataclass
class AdaptedModel:
    """Says which adapter it was asked for."""

    name: str = "adapted"
    adapters: frozenset[str] = frozenset({"omni/plan"})
    asked: list[Sampling] = field(default_factory=list)

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        self.asked.append(sampling)
        return Completion(sampling.adapter or "base")


async def replies(model: LanguageModel) -> list[str]:
    speaker, run = Speaker(model, "planner"), Run(seed=3)
    return [await speaker.ask(prompt, lambda reply: reply.text, run) for prompt in (PLAN, OTHER)]


async def test_an_adapter_is_asked_for_its_prompts_in_either_language_and_no_others() -> None:
    assert await replies(AdaptedModel()) == ["omni/plan", "base"]
    assert await replies(AdaptedModel(adapters=frozenset())) == ["base", "base"]


async def test_a_tape_replays_calls_of_adapters(tmp_path: Path) -> None:
    tape = Tape({"adapted": ModelAbilities(scores=False, adapters=("omni/plan",))})
    recorded = wrap_model(AdaptedModel(), tape)
    assert await replies(recorded) == ["omni/plan", "base"]
    file = tmp_path / "tape.jsonl"
    file.write_text("\n".join(tape.to_lines()), encoding="utf-8")
    played = replay_model(TapePlayer(Tape.read(file)), "adapted")
    assert await replies(played) == ["omni/plan", "base"]


def test_a_call_of_the_base_is_written_as_before_there_were_adapters() -> None:
    assert "adapter" not in sampling_values(Sampling())
    assert sampling_values(Sampling(adapter="omni/plan"))["adapter"] == "omni/plan"
    (head, *_) = Tape({"plain": ModelAbilities()}).to_lines()
    assert '"plain": {"scores": true, "constrains": true, "attends": false}' in head


def test_a_server_has_no_adapters_of_ours() -> None:
    served = {"kind": "openai", "url": "http://127.0.0.1:1/v1", "name": "m", "adapters": ["p.gguf"]}
    with pytest.raises((BadConfig, ValueError), match="adapters are of the embedded engine"):
        Settings.model_validate({"model": served})
    own = Settings.model_validate({"model": {"adapters": ["p.gguf"]}})
    assert [place.name for place in own.model.adapters] == ["p.gguf"]
