"""Attention and entropies of given texts; the oracle is one plain pass over all of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tiny_models import tiny_pair

from osler.build import Parts
from osler.build.live import record_parts, replay_parts
from osler.build.models import LoadedModel
from osler.build.strategies import build_solver
from osler.llm.core.base import Attended, Attentive, Likelihood, Message
from osler.llm.recording import WrappedAttentive, wrap_model
from osler.llm.recording.tape import ModelAbilities, Tape
from osler.llm.transformers.decoding import TokenCodec
from osler.llm.transformers.hub import ModelPair
from osler.llm.transformers.model import TransformersModel
from osler.retrieve.relevance import OverlapRelevance
from osler.settings import Settings
from osler.trace import Run, to_line
from osler.types import Halt, Passage, Question
from osler_lab.baselines.dragin import AttentionSensor, Dragin
from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever

pytestmark = pytest.mark.torch

TEXTS = ["Oral iron treats anaemia.", "首选口服铁剂。"]
ASKED = [Message("user", "What treats iron deficiency anaemia?")]


@pytest.fixture(scope="module")
def pair() -> ModelPair:
    return tiny_pair(context=4096)


def model_of(pair: ModelPair) -> TransformersModel:
    return TransformersModel(pair, name="tiny")


@pytest.mark.parametrize("text", TEXTS)
async def test_entropies_and_weights_are_those_of_one_plain_pass(
    text: str, pair: ModelPair
) -> None:
    import torch

    model = model_of(pair)
    seen = await model.attend("A vitamin:", text)
    pieces = TokenCodec(pair.tokenizer)
    before, (ids, _) = pieces.token_ids("A vitamin:", begins=True), pieces.ids_and_spans(text)
    pair.model.set_attn_implementation("eager")
    with torch.no_grad():
        plain = pair.model(input_ids=torch.tensor([before + ids]), output_attentions=True)
    n = len(before)
    logits = plain.logits[0, n - 1 : -1].float()
    expected = torch.distributions.Categorical(logits=logits).entropy().tolist()
    assert seen.entropies == pytest.approx(expected, abs=1e-4)
    rows = plain.attentions[-1][0].mean(0)[n:, n:].tolist()
    for i, row in enumerate(seen.weights):
        assert len(row) == i
        assert row == pytest.approx(rows[i][:i], abs=1e-4)
        assert sum(row) <= 1 + 1e-4
    assert len(seen.tokens) == len(seen.entropies) == len(seen.weights) == len(ids)


async def test_attending_leaves_the_model_and_what_it_has_read_as_they_were(
    pair: ModelPair,
) -> None:
    model = model_of(pair)
    usual = pair.model.config._attn_implementation
    before = await model.score(ASKED, TEXTS[0])
    one, again = [await model.attend(ASKED, TEXTS[0]) for _ in range(2)]
    assert one.weights == again.weights
    assert pair.model.config._attn_implementation == usual
    after = await model.score(ASKED, TEXTS[0])
    assert [t.logprob for t in before.tokens] == [t.logprob for t in after.tokens]
    assert [t.logprob for t in one.tokens] == pytest.approx(
        [t.logprob for t in before.tokens], abs=1e-4
    )


async def test_a_tape_keeps_attention(pair: ModelPair, tmp_path: Path) -> None:
    from osler.llm.recording import TapePlayer, replay_model

    tape = Tape({"tiny": ModelAbilities(attends=True)})
    model = wrap_model(model_of(pair), tape)
    assert isinstance(model, Attentive)
    seen = await model.attend(ASKED, TEXTS[1])
    path = tmp_path / "tape.jsonl"
    path.write_text("\n".join(tape.to_lines()), encoding="utf-8")
    replayed = replay_model(TapePlayer(Tape.read(path)), "tiny")
    assert isinstance(replayed, WrappedAttentive)
    again: Attended = await replayed.attend(ASKED, TEXTS[1])
    assert again == seen


def test_only_what_shows_attention_is_said_to() -> None:
    scripted = ScriptedModel([])
    assert isinstance(scripted, Likelihood)
    assert not isinstance(wrap_model(scripted, Tape()), Attentive)


async def test_dragin_runs_on_transformers_and_replays(pair: ModelPair, tmp_path: Path) -> None:
    """On random weights: it says nothing, searches where its own attention points, and ends."""
    settings = Settings.model_validate(
        {
            "home": tmp_path,
            "strategy": {"kind": "dragin"},
            "model": {"writes": "yes"},
        }
    )
    iron = Passage("book:iron#0", "Oral iron treats iron deficiency anaemia.", "book", "Iron")
    found = ScriptedRetriever({"": [iron]})
    parts = Parts(
        {"reader": LoadedModel(model_of(pair), constrains=False)},
        lambda name, sources: found,
        OverlapRelevance(),
        OverlapRelevance(),
        ("book",),
    )

    def build_eager(parts: Parts) -> Dragin:
        """Unsure of everything, and soon at its end."""
        solver = build_solver(settings, parts)
        assert isinstance(solver, Dragin)
        assert isinstance(solver.sensor, AttentionSensor)
        sensor = replace(solver.sensor, threshold=0.01)
        return replace(solver, sensor=sensor, rounds=2, look_ahead=12)

    tape, run, again = Tape(), Run(), Run()
    question = Question("q", "What treats iron deficiency anaemia?")
    solution = await build_eager(record_parts(parts, tape)).solve(question, run)
    assert solution.halt in set(Halt)
    assert found.asked, "random weights are unsure of everything"
    kept = replay_parts(tape, {"reader": "tiny"}, ("book",), "")
    assert await build_eager(kept).solve(question, again) == solution
    assert [to_line(e) for e in again.events] == [to_line(e) for e in run.events]
