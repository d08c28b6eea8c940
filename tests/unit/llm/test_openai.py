"""The client against servers that misbehave, a vLLM played on loopback, and a real llama.cpp."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from math import log
from random import Random
from typing import Any

import pytest

from osler.errors import BadConfig, CapabilityMissing, ModelError, ModelMissing, ModelUnreachable
from osler.llm.base import LanguageModel, Likelihood, Message, Sampling
from osler.llm.dialects import BadReply, Dialect, spans_of
from osler.llm.grammar import Grammar, alt, lit
from osler.llm.local import LlamaCpp
from osler.llm.openai import Endpoint, OpenAIModel, ScoringOpenAIModel, connect
from osler.llm.quantise import default_gguf
from osler.testing.conformance import LanguageModelKit, LikelihoodKit

KEY = "sk-do-not-tell"
QUERY = [Message("user", "What is the first-line treatment of anaphylaxis?")]
ENGLISH = "Intramuscular adrenaline into the outer thigh is the first-line treatment."
CHINESE = "首选肌内注射肾上腺素。"


# A server of our own

DRIP = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n["
"""The beginning of a reply without an end."""


@dataclass(frozen=True)
class Asked:
    path: str
    key: str
    body: Any


@dataclass
class Loopback:
    """Answers each request as `answer` says: bytes to send, or None to keep it waiting."""

    answer: Callable[[Asked], bytes | None]
    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """The client went away while it was kept waiting."""

    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    """A request is being kept waiting."""
    tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self.tasks.add(task)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        asked = await _request(reader)
        self.asked.append(asked)
        await self.send(reader, writer, self.answer(asked))
        self.at_once -= 1
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    async def send(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, said: bytes | None
    ) -> None:
        if said is None:
            self.arrived.set()
            await reader.read()
            self.left.set()
            return
        await asyncio.sleep(0.01)
        writer.write(said)
        # A reset ends in an exception or a closing writer, without an end of file.
        while said.endswith(DRIP) and not (
            reader.at_eof() or reader.exception() or writer.is_closing()
        ):
            writer.write(b" ")
            await asyncio.sleep(0.02)

    def bodies(self, path: str) -> list[Any]:
        return [one.body for one in self.asked if one.path == path]


async def _request(reader: asyncio.StreamReader) -> Asked:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
    headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    path = first.split(" ")[1]
    return Asked(path, headers.get("authorization", ""), json.loads(body) if body else None)


@asynccontextmanager
async def loopback(answer: Callable[[Asked], bytes | None]) -> AsyncIterator[Loopback]:
    place = Loopback(answer)
    server = await asyncio.start_server(place.serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    place.url = f"http://{host}:{port}/v1"
    async with server:
        yield place
        await asyncio.gather(*place.tasks)


def said(
    body: object, status: int = 200, *, kind: str = "application/json", more: str = ""
) -> bytes:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(sent)}\r\n{more}"
    return f"{head}Connection: close\r\n\r\n".encode() + sent


def chat(content: object, entries: object = None, **more: object) -> dict[str, Any]:
    told = {} if entries is None else {"logprobs": {"content": entries}}
    message = {"role": "assistant", "content": content}
    return {"choices": [{"message": message, "finish_reason": "stop", **told}], **more}


def token(text: str, logprob: object = -0.5, *, raw: bytes | None = None) -> dict[str, Any]:
    spelt = {} if raw is None else {"bytes": list(raw)}
    return {"token": text, "logprob": logprob, "top_logprobs": [], **spelt}


def plain(*answers: bytes | None) -> Callable[[Asked], bytes | None]:
    """A generic server: no model list, no other doors, and these answers to chats, in order."""
    left = list(answers)

    def answer(asked: Asked) -> bytes | None:
        if asked.path != "/v1/chat/completions":
            return said({"error": "not here"}, 404)
        return left.pop(0) if len(left) > 1 else left[0]

    return answer


@dataclass
class Naps:
    """A sleep that does not, and remembers how long it should have."""

    taken: list[float] = field(default_factory=list)

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)


async def reach(place: Loopback, naps: Naps | None = None, **more: Any) -> OpenAIModel:
    endpoint = Endpoint(base_url=place.url, model="m", **{"api_key": KEY, "timeout_s": 5.0, **more})
    return await connect(endpoint, rng=Random(0), sleep=naps or Naps())


async def fails(
    kind: type[ModelError], *answers: bytes | None, naps: Naps | None = None, **more: Any
) -> ModelError:
    """The error that a completion ends in, which never tells the key."""
    async with loopback(plain(*answers)) as place:
        model = await reach(place, naps, **more)
        with pytest.raises(kind) as caught:
            await model.complete(QUERY, Sampling())
    assert KEY not in f"{caught.value!r} {caught.value}"
    return caught.value


# Faults


async def test_a_refused_connection_says_where_to_look() -> None:
    async with loopback(plain(None)) as place:
        pass
    with pytest.raises(ModelUnreachable, match="no connection") as caught:
        await reach(place)
    assert place.url in caught.value.fix


async def test_a_server_that_does_not_answer_is_unreachable_in_time() -> None:
    error = await fails(ModelUnreachable, None, timeout_s=0.2)
    assert "no reply within 0.2 s" in error.message


async def test_a_reply_that_never_ends_is_unreachable_in_time() -> None:
    """Bytes keep no request alive: the limit is on the whole of it."""
    error = await fails(ModelUnreachable, DRIP, timeout_s=0.3)
    assert "no reply within 0.3 s" in error.message


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_names_the_setting_and_not_the_key(status: int) -> None:
    error = await fails(ModelError, said({"error": f"bad key {KEY}"}, status))
    assert "key refused" in error.message
    assert "OPENAI_API_KEY" in error.fix


async def test_a_key_that_is_refused_at_the_door_is_not_taken_for_a_poor_server() -> None:
    async with loopback(lambda asked: said({}, 401)) as place:
        with pytest.raises(ModelError, match="key refused"):
            await reach(place)


async def test_the_key_is_sent_and_in_no_repr() -> None:
    async with loopback(plain(said(chat("x")))) as place:
        model = await reach(place)
        await model.complete(QUERY, Sampling())
    assert {asked.key for asked in place.asked} == {f"Bearer {KEY}"}
    assert KEY not in repr(model) + repr(model._door.endpoint) + model.name
    assert model.name == f"m@{place.url.split('/')[2]}"


async def test_a_key_that_a_server_quotes_is_not_told() -> None:
    error = await fails(ModelError, said({"error": {"message": f"{'x' * 290} {KEY}"}}, 400))
    assert "sk-" not in error.message.replace("[key]", "")
    error = await fails(ModelError, said({"choices": [], "note": KEY}))
    assert "[key]" in error.message


async def test_a_model_that_is_not_there_is_named() -> None:
    error = await fails(ModelError, said({"error": {"message": "no model m"}}, 404))
    assert "404: no model m" in error.message
    assert "model.name" in error.fix


async def test_a_server_that_asks_to_wait_is_waited_for() -> None:
    naps, busy = Naps(), said({}, 429, more="Retry-After: 7\r\n")
    async with loopback(plain(busy, said(chat("x")))) as place:
        reply = await (await reach(place, naps)).complete(QUERY, Sampling())
    assert (reply.text, naps.taken) == ("x", [7.0])


@pytest.mark.parametrize("more", ["", "Retry-After: Sat, 21 Nov 2026 09:00:00 GMT\r\n"])
async def test_without_a_number_each_wait_is_longer_and_never_quite_the_same(more: str) -> None:
    naps = Naps()
    error = await fails(ModelUnreachable, said({}, 429, more=more), naps=naps, retries=4)
    assert "429, 5 of 5 tries" in error.message
    assert len(naps.taken) == 4
    for attempt, nap in enumerate(naps.taken):
        assert 0.5 * 2**attempt <= nap <= 2**attempt
        assert nap not in (0.5 * 2**attempt, 2**attempt)


async def test_a_server_that_asks_for_an_hour_is_not_waited_for() -> None:
    naps = Naps()
    await fails(ModelUnreachable, said({}, 429, more="Retry-After: 3600\r\n"), naps=naps)
    assert naps.taken == []


@pytest.mark.parametrize("status", [500, 502, 503])
async def test_a_broken_server_is_tried_again_and_then_given_up(status: int) -> None:
    naps = Naps()
    error = await fails(ModelUnreachable, said({}, status), naps=naps, retries=2)
    assert f"{status}, 3 of 3 tries" in error.message
    assert len(naps.taken) == 2


async def test_a_server_that_hangs_up_is_tried_again() -> None:
    half = said(chat("x"))[:-5]
    for broken in (b"", half):
        async with loopback(plain(broken, said(chat("whole")))) as place:
            reply = await (await reach(place)).complete(QUERY, Sampling())
        assert reply.text == "whole"
    assert "hung up" in (await fails(ModelUnreachable, half)).message


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        (said(b"<html>", kind="text/html"), "text/html, not JSON"),
        (said(b'{"choices": [{"mess'), "broken JSON"),
        (said(b"\xff\xfe"), "broken JSON"),
        (said([1]), "no JSON object"),
        (said({"error": {"message": "overloaded"}}), "overloaded"),
        (said({"choices": []}), "no choices"),
        (said({"choices": [{"text": "x"}]}), "no message"),
        (said(chat(None)), "content is no text but None"),
        (said(chat("x", [token("x", float("nan"))])), "nan is no log-probability"),
        (said(chat("x", [token("x", 0.7)])), "0.7 is no log-probability"),
        (said(chat("x", [token("x", float("-inf"))])), "-inf is no log-probability"),
        (said(chat("x", [token("x", None)])), "'x' has no log-probability"),
        (said(chat("x", [3])), "no list of objects"),
        (said(chat("x", [{**token("x"), "bytes": [300]}])), "no bytes"),
        (said(chat("x", [{**token("x"), "top_logprobs": "x"}])), "top_logprobs"),
        (said(chat("x", [{**token("x"), "top_logprobs": [token("y", 2.0)]}])), "2.0 is no"),
        (said({"see": "/v2"}, 307, more="Location: /v2\r\n"), "answered 307"),
        (said(b"not gzip", more="Content-Encoding: gzip\r\n"), "cannot be decoded"),
    ],
)
async def test_a_reply_that_cannot_be_right_is_an_error_that_says_why(
    answer: bytes, wrong: str
) -> None:
    assert wrong in (await fails(ModelError, answer)).message


async def test_a_filtered_reply_is_no_reply() -> None:
    reply = chat("half a")
    reply["choices"][0]["finish_reason"] = "content_filter"
    assert "content filter" in (await fails(ModelError, said(reply))).message


async def test_a_cancelled_call_hangs_up_and_leaves_nothing_running() -> None:
    async with loopback(plain(None)) as place:
        model = await reach(place)
        before = asyncio.all_tasks()
        call = asyncio.create_task(model.complete(QUERY, Sampling()))
        await place.arrived.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.wait_for(place.left.wait(), 2)
        await asyncio.sleep(0.01)
        assert asyncio.all_tasks() <= before


async def test_no_more_requests_run_at_once_than_allowed() -> None:
    async with loopback(plain(said(chat("x")))) as place:
        model = await reach(place, max_concurrency=2)
        await asyncio.gather(*(model.complete(QUERY, Sampling()) for _ in range(8)))
    assert place.most_at_once == 2


@pytest.mark.parametrize(
    "url", ["localhost:8000", "ftp://h/v1", "http://", "http://u:p@h/v1", "http://h:x/v1"]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(BadConfig) as caught:
        Endpoint(base_url=url, model="m")
    assert "u:p" not in str(caught.value)


@pytest.mark.parametrize("key", ["sk-\n1", "sk-é", "sk 1"])
def test_a_key_that_no_header_carries_is_refused_untold(key: str) -> None:
    with pytest.raises(BadConfig) as caught:
        Endpoint(base_url="http://h/v1", model="m", api_key=key)
    assert key not in str(caught.value)


def test_one_model_serves_several_event_loops() -> None:
    async def once(model: OpenAIModel | None) -> OpenAIModel:
        async with loopback(plain(said(chat("x")))) as place:
            model = model or await reach(place, max_concurrency=1)
            object.__setattr__(model._door.endpoint, "base_url", place.url)
            await asyncio.gather(*(model.complete(QUERY, Sampling()) for _ in range(3)))
            return model

    asyncio.run(once(asyncio.run(once(None))))


# Replies


async def answered(reply: object, sampling: Sampling | None = None) -> Any:
    async with loopback(plain(said(reply))) as place:
        return await (await reach(place)).complete(QUERY, sampling or Sampling())


async def test_tokens_come_with_offsets_and_the_server_s_counts() -> None:
    used = {
        "prompt_tokens": 9,
        "completion_tokens": 3,
        "prompt_tokens_details": {"cached_tokens": 4},
    }
    entries = [token("A", log(0.5)), token(" B"), token("<eos>")]
    reply = await answered(chat("A B", entries, usage=used))
    assert [(t.text, t.start, t.end) for t in reply.tokens] == [("A", 0, 1), (" B", 1, 3)]
    assert reply.tokens[0].logprob == log(0.5)
    usage = reply.usage
    assert (usage.calls, usage.prompt_tokens, usage.cached_tokens) == (1, 9, 4)
    assert (usage.completion_tokens, usage.seconds > 0) == (3, True)


async def test_tokens_that_share_a_character_share_its_span() -> None:
    first, second = "抗".encode()[:2], "抗".encode()[2:]
    reply = await answered(chat("抗", [token("\ufffd", raw=first), token("\ufffd", raw=second)]))
    assert [(t.start, t.end) for t in reply.tokens] == [(0, 1), (0, 1)]


async def test_tokens_that_do_not_spell_the_reply_are_dropped() -> None:
    assert (await answered(chat("Hello", [token("Hel"), token("p")]))).tokens == ()
    assert (await answered(chat("抗", [token("\ufffd"), token("\ufffd")]))).tokens == ()


async def test_a_character_told_as_one_token_that_was_three_is_not_taken_for_one() -> None:
    told = chat("素", [token("素")], usage={"completion_tokens": 3})
    assert (await answered(told)).tokens == ()


async def test_thinking_that_the_server_tells_apart_is_kept_apart() -> None:
    told = chat("B")
    told["choices"][0]["message"]["reasoning_content"] = "Is it B?"
    reply = await answered(told)
    assert (reply.text, reply.thinking) == ("B", "Is it B?")


async def test_thinking_that_took_all_the_tokens_leaves_an_empty_reply_cut_short() -> None:
    told = chat("")
    told["choices"][0] |= {
        "message": {"role": "assistant", "content": None, "reasoning": "Is it"},
        "finish_reason": "length",
    }
    reply = await answered(told)
    assert (reply.text, reply.thinking, reply.finish) == ("", "Is it", "length")


async def test_no_tokens_are_asked_for_where_none_are_wanted() -> None:
    async with loopback(plain(said(chat("x", [token("x")])))) as place:
        reply = await (await reach(place)).complete(QUERY, Sampling(top=0, stop=("\n",)))
    assert reply.tokens == ()
    body = place.bodies("/v1/chat/completions")[0]
    assert "logprobs" not in body
    assert body["stop"] == ["\n"]


async def test_a_rounding_error_above_nought_is_nought() -> None:
    assert (await answered(chat("x", [token("x", 1e-7)]))).tokens[0].logprob == 0


async def test_a_generic_server_refuses_a_grammar_and_has_no_score() -> None:
    async with loopback(plain(said(chat("x")))) as place:
        model = await reach(place)
        with pytest.raises(CapabilityMissing, match="grammar"):
            await model.complete(QUERY, Sampling(grammar=Grammar("a", lit("a"))))
    assert isinstance(model, LanguageModel)
    assert not isinstance(model, Likelihood)
    assert not model.constrains
    assert not place.bodies("/v1/chat/completions")


def test_pieces_told_as_text_find_their_places() -> None:
    assert spans_of(["a", "b"], "ab") == [(0, 1), (1, 2)]
    assert spans_of(["\ufffd", "\ufffd", ","], "抗,") == [(0, 1), (0, 1), (1, 2)]
    assert spans_of(["a", "\ufffd", "\ufffd"], "a抗坏") == [(0, 1), (1, 3), (1, 3)]
    for pieces, text in ((["a"], "ab"), (["b"], "ab"), (["a", "\ufffd"], "a"), ([], "a")):
        with pytest.raises(BadReply):
            spans_of(pieces, text)


# A vLLM, as its documents and measurements describe it


@dataclass
class PlayedVllm:
    """One token a character, the log-probability of the n-th of them -n / 10."""

    obeys: bool = True
    echoes: bool = True

    def __call__(self, asked: Asked) -> bytes:
        match asked.path:
            case "/v1/models":
                return said({"data": [{"id": "m", "owned_by": "vllm"}]})
            case "/version":
                return said({"version": "0.32.0"})
            case "/tokenize":
                return said({"tokens": [ord(c) for c in self._text(asked.body)]})
            case "/v1/completions":
                return said(self._echo(asked.body["prompt"]))
            case "/v1/chat/completions":
                return said(self._chat(asked.body))
        return said({"detail": "Not Found"}, 404)

    def _text(self, body: Any) -> str:
        return body.get("prompt") or "".join(m["content"] for m in body["messages"])

    def _echo(self, ids: list[int]) -> Any:
        told = {
            "tokens": [chr(i) for i in ids],
            "token_logprobs": [None, *(-n / 10 for n in range(1, len(ids)))],
        }
        return {"choices": [{"text": "", "logprobs": told if self.echoes else None}]}

    def _chat(self, body: Any) -> Any:
        rule = body.get("structured_outputs", {}).get("grammar", "")
        text = rule.split('"')[1] if rule and self.obeys else "free"
        return chat(text, [token(c, 0.0) for c in text])


async def test_vllm_scores_a_text_by_echo_in_one_request() -> None:
    async with loopback(PlayedVllm()) as place:
        model = await reach(place)
        assert isinstance(model, ScoringOpenAIModel)
        assert isinstance(model, Likelihood)
        probed = len(place.bodies("/v1/completions"))
        scored = await model.score("ab", "cd")
        assert len(place.bodies("/v1/completions")) == probed + 1
        body = place.bodies("/v1/completions")[-1]
    assert [(t.text, t.start, t.end, t.logprob) for t in scored.tokens] == [
        ("c", 0, 1, -0.2),
        ("d", 1, 2, -0.3),
    ]
    assert (body["echo"], body["logprobs"], body["max_tokens"]) == (True, 0, 0)
    assert scored.usage.scored_tokens == 2


async def test_vllm_s_masked_zeroes_under_a_grammar_are_replaced_by_the_raw_model_s() -> None:
    async with loopback(PlayedVllm()) as place:
        model = await reach(place)
        reply = await model.complete(
            [Message("user", "q"), Message("assistant", "so")],
            Sampling(grammar=Grammar("ab", lit("ab"))),
        )
        body = place.bodies("/v1/chat/completions")[-1]
    assert [t.logprob for t in reply.tokens] == [-0.3, -0.4]
    assert reply.usage.calls == 1
    assert body["structured_outputs"] == {"grammar": 'root ::= "ab"'}
    assert (body["continue_final_message"], body["add_generation_prompt"]) == (True, False)


async def test_what_a_vllm_ignores_it_is_not_said_to_do() -> None:
    async with loopback(PlayedVllm(obeys=False, echoes=False)) as place:
        model = await reach(place)
    assert model.server.dialect is Dialect.VLLM
    assert not model.constrains
    assert not isinstance(model, Likelihood)


async def test_an_unknown_model_is_told_before_the_first_question() -> None:
    async with loopback(PlayedVllm()) as place:
        with pytest.raises(ModelError, match="no model other, but m"):
            await connect(Endpoint(base_url=place.url, model="other"))


# A real llama.cpp server


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


@pytest.fixture
async def served(address: str) -> ScoringOpenAIModel:
    model = await connect(Endpoint(base_url=address, model="packaged"))
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


class Broken(Grammar):
    """What no engine can read; a grammar of ours cannot be written so."""

    @property
    def gbnf(self) -> str:
        return "root ::= nowhere"


async def test_a_real_server_holds_a_grammar_and_refuses_a_bad_one(
    served: ScoringOpenAIModel,
) -> None:
    for seed in range(4):
        rule = Grammar("word", alt("yes", "no"))
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
