"""The client passes the kits on a recording of every kind of server, and knows what each can."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from loopback_servers import serve_loopback
from recorded_servers import Recording, run_kit

from conformance import ASKED, LanguageModelKit, LikelihoodKit
from osler.errors import CapabilityMissing
from osler.llm.core.base import LanguageModel, Likelihood, Message, Sampling
from osler.llm.core.grammar import Grammar, lit
from osler.llm.recording import TapePlayer, replay_model, wrap_model
from osler.llm.recording.tape import ModelAbilities, Tape
from osler.llm.server.client import Endpoint, OpenAIModel, ScoringOpenAIModel, connect_server
from osler.llm.server.dialects import ConstraintKind, Dialect, ScoringMethod, ServerProfile
from osler_lab.testing.scripted import ScriptedModel

FIXTURES = Path(__file__).parents[1] / "fixtures" / "servers"
NAMES = sorted(path.stem for path in FIXTURES.glob("*.json"))
SCHEMA = frozenset({ConstraintKind.SCHEMA})
WITHOUT = frozenset({"logprobs", "top_logprobs"})
ABLE = {
    "llama-cpp": ServerProfile(
        Dialect.LLAMA_CPP,
        SCHEMA | {ConstraintKind.GRAMMAR},
        logprobs=True,
        scoring=ScoringMethod.FORCED,
    ),
    "lm-studio": ServerProfile(Dialect.GENERIC, SCHEMA),
    "ollama": ServerProfile(Dialect.OLLAMA, SCHEMA, logprobs=True),
    "openai": ServerProfile(
        Dialect.GENERIC, SCHEMA, logprobs=True, without=frozenset({"max_tokens"})
    ),
    "openrouter": ServerProfile(Dialect.OPENROUTER, SCHEMA, without=WITHOUT),
    "vllm": ServerProfile(
        Dialect.VLLM, frozenset(ConstraintKind), logprobs=True, scoring=ScoringMethod.ECHO
    ),
}


@pytest.fixture(params=NAMES)
async def served(request: pytest.FixtureRequest) -> AsyncIterator[OpenAIModel]:
    async with serve_loopback(Recording.read(FIXTURES / f"{request.param}.json")) as place:
        yield await connect_server(Endpoint(base_url=place.url, model="packaged"))


class TestRecordedModels(LanguageModelKit):
    @pytest.fixture
    def model(self, served: OpenAIModel) -> LanguageModel:
        return served


class TestRecordedScorers(LikelihoodKit):
    @pytest.fixture
    async def scorer(self) -> AsyncIterator[Likelihood]:
        async with serve_loopback(Recording.read(FIXTURES / "vllm.json")) as place:
            model = await connect_server(Endpoint(base_url=place.url, model="packaged"))
            assert isinstance(model, ScoringOpenAIModel)
            yield model


@pytest.mark.parametrize("name", NAMES)
async def test_a_server_is_known_for_what_it_is_and_can(name: str) -> None:
    async with serve_loopback(Recording.read(FIXTURES / f"{name}.json")) as place:
        model = await connect_server(Endpoint(base_url=place.url, model="packaged"))
    assert model.server == ABLE[name]
    assert isinstance(model, Likelihood) == (ABLE[name].scoring is not None)
    assert model.constrains == (ConstraintKind.GRAMMAR in ABLE[name].kinds)


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_says_where_it_is_from(name: str) -> None:
    told = json.loads((FIXTURES / f"{name}.json").read_text(encoding="utf-8"))
    assert told["source"] == ("from life" if name == "llama-cpp" else "from documentation")
    assert len(told["about"]) > 20


async def test_what_was_never_recorded_is_refused_and_not_made_up() -> None:
    async with serve_loopback(Recording.read(FIXTURES / "vllm.json")) as place:
        model = await connect_server(Endpoint(base_url=place.url, model="packaged"))
        with pytest.raises(Exception, match="never recorded: POST /v1/chat/completions"):
            await model.complete([Message("user", "something else")], Sampling())


async def test_a_grammar_that_a_server_cannot_hold_is_refused_before_it_is_asked() -> None:
    async with serve_loopback(Recording.read(FIXTURES / "ollama.json")) as place:
        model = await connect_server(Endpoint(base_url=place.url, model="packaged"))
        before = len(place.asked)
        with pytest.raises(CapabilityMissing, match="grammar"):
            await model.complete(ASKED, Sampling(grammar=Grammar("a", lit("a"))))
    assert len(place.asked) == before


@pytest.fixture
async def taped() -> Tape:
    """A tape of all that the kits ask."""
    tape = Tape({"scripted": ModelAbilities()})
    model = wrap_model(ScriptedModel(["Vitamin C."] * 99), tape)
    assert isinstance(model, Likelihood)
    kit = LanguageModelKit()
    kit.limited = False  # type: ignore[misc]  # as of the double below
    await run_kit(kit, model=model)
    await run_kit(LikelihoodKit(), scorer=model)
    return tape


class TestReplayingModel(LanguageModelKit, LikelihoodKit):
    limited = False

    @pytest.fixture
    def model(self, taped: Tape) -> LanguageModel:
        return replay_model(TapePlayer(taped), "scripted")

    @pytest.fixture
    def scorer(self, taped: Tape) -> Likelihood:
        made = replay_model(TapePlayer(taped), "scripted")
        assert isinstance(made, Likelihood)
        return made
