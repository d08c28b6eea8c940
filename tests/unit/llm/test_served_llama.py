"""The client against a real llama.cpp server on loopback."""

import asyncio
from collections.abc import Iterator

import pytest

from conformance import LanguageModelKit, LikelihoodKit
from osler.errors import ModelError, ModelMissing
from osler.llm.core.base import LanguageModel, Likelihood, Message, Sampling
from osler.llm.core.grammar import Grammar, alt, lit
from osler.llm.local.gguf_files import default_gguf
from osler.llm.local.model import LlamaCpp
from osler.llm.server.client import Endpoint, ScoringOpenAIModel, connect_server
from osler.llm.server.dialects import Dialect

pytestmark = pytest.mark.model

QUERY = [Message("user", "What is the first-line treatment of anaphylaxis?")]
ENGLISH = "Intramuscular adrenaline into the outer thigh is the first-line treatment."
CHINESE = "首选肌内注射肾上腺素。"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    try:
        path = default_gguf()
    except ModelMissing as error:
        pytest.skip(f"the packaged model is not there: {error}")
    xllamacpp = pytest.importorskip("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx, params.n_parallel, params.kv_unified = 4096, 2, True
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.warmup, params.verbosity = False, -1
    server = xllamacpp.Server(params)
    yield f"{server.listening_address}/v1"
    del server


@pytest.fixture(scope="module")
def served(address: str) -> ScoringOpenAIModel:
    """Asked once what it can do, and then used in the event loop of each test."""
    model = asyncio.run(connect_server(Endpoint(base_url=address, model="packaged")))
    assert isinstance(model, ScoringOpenAIModel)
    return model


@pytest.fixture(scope="module")
def local() -> LlamaCpp:
    return LlamaCpp(default_gguf(), name="packaged", context=4096)


class TestServedModel(LanguageModelKit):
    @pytest.fixture
    def model(self, served: ScoringOpenAIModel) -> LanguageModel:
        return served


class TestServedLikelihood(LikelihoodKit):
    @pytest.fixture
    def scorer(self, served: ScoringOpenAIModel) -> Likelihood:
        return served


async def test_a_real_server_is_known_for_what_it_is(served: ScoringOpenAIModel) -> None:
    assert served.server.dialect is Dialect.LLAMA_CPP
    assert served.constrains


@pytest.mark.parametrize("text", ["Describe hypertension.", "请介绍高血压。"])
async def test_a_real_reply_s_tokens_tile_it(served: ScoringOpenAIModel, text: str) -> None:
    sampling = Sampling(max_tokens=16, temperature=0)
    reply = await served.complete([Message("user", text)], sampling)
    assert {i for t in reply.tokens for i in range(t.start, t.end)} == set(range(len(reply.text)))
    assert all(reply.text[t.start : t.end] == t.text for t in reply.tokens)
    assert reply.finish == "length"


async def test_a_real_server_continues_what_the_assistant_began(
    served: ScoringOpenAIModel, local: LlamaCpp
) -> None:
    begun = [*QUERY, Message("assistant", "The first-line treatment is")]
    sampling = Sampling(max_tokens=8, temperature=0)
    there, here = await served.complete(begun, sampling), await local.complete(begun, sampling)
    assert not there.text.startswith("The first-line")
    assert there.text == here.text
    assert there.tokens


async def test_the_template_s_own_text_as_a_raw_prompt_gives_the_same_words(
    served: ScoringOpenAIModel, local: LlamaCpp
) -> None:
    written = f"<|im_start|>user\n{QUERY[0].content}<|im_end|>\n<|im_start|>assistant\n"
    sampling = Sampling(max_tokens=8, temperature=0)
    raw = [Message("raw", written)]
    there, here = await served.complete(raw, sampling), await local.complete(raw, sampling)
    assert there.text == here.text
    assert "".join(token.text for token in there.tokens) == there.text
    (mark,) = (await local.score(raw, "<|im_end|>")).tokens
    (far,) = (await served.score(raw, "<|im_end|>")).tokens
    assert abs(mark.logprob - far.logprob) < 0.5


class Broken(Grammar):
    """What no engine can read; a grammar of ours cannot be written so."""

    @property
    def gbnf(self) -> str:
        return "root ::= nowhere"


async def test_a_real_server_holds_a_grammar_and_refuses_a_bad_one(
    served: ScoringOpenAIModel,
) -> None:
    rule = Grammar("verdict", alt("yes", "no"))
    for seed in range(4):
        held = Sampling(max_tokens=8, seed=seed, temperature=1.0, grammar=rule)
        assert (await served.complete(QUERY, held)).text in {"yes", "no"}
    with pytest.raises(ModelError):
        await served.complete(QUERY, Sampling(max_tokens=4, grammar=Broken("broken", lit(""))))


@pytest.mark.parametrize("text", [ENGLISH, CHINESE])
async def test_served_and_embedded_score_alike(
    served: ScoringOpenAIModel, local: LlamaCpp, text: str
) -> None:
    """Within the engine's own noise of 0.5 nats a token."""
    for context in (QUERY, "Anaphylaxis: "):
        there, here = await served.score(context, text), await local.score(context, text)
        assert [(t.start, t.end) for t in there.tokens] == [(t.start, t.end) for t in here.tokens]
        differences = [
            abs(a.logprob - b.logprob) for a, b in zip(there.tokens, here.tokens, strict=True)
        ]
        assert max(differences) < 0.5


async def test_too_long_a_prompt_and_nothing_to_score_are_told(
    served: ScoringOpenAIModel,
) -> None:
    with pytest.raises(ModelError, match="exceeds the available context size"):
        await served.complete([Message("user", "heart " * 6000)], Sampling(max_tokens=4))
    with pytest.raises(ModelError, match="no text"):
        await served.score("context", "")
