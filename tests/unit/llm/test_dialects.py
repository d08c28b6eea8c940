"""What is sent to each kind of server, what is read back, and what is not believed."""

import json
from collections.abc import Callable, Mapping
from math import log
from typing import Any

import pytest
from loopback_servers import (
    EVENTS,
    LINES,
    Answers,
    FakeTime,
    LoopbackRequest,
    answer_chats_only,
    chat_chunk,
    encode_event,
    json_reply,
    reply_head,
    serve_loopback,
    stream_reply,
    token_entry,
)
from loopback_servers import chat_reply as chatted

from osler.errors import CapabilityMissing, ModelError
from osler.llm.core.base import Completion, LanguageModel, Likelihood, Message, Sampling
from osler.llm.core.grammar import Grammar, lit
from osler.llm.server.client import OpenAIModel, ScoringOpenAIModel, connect_server
from osler.llm.server.connection import Endpoint, ServerClient
from osler.llm.server.dialects import (
    ConstraintKind,
    Dialect,
    ServerProfile,
    chat_body,
    constraint_fields,
)
from osler.llm.server.endpoint import BadReply
from osler.llm.server.scoring import read_echo, spans_of

QUERY = [Message("user", "What is the first-line treatment of anaphylaxis?")]
CHATS = "/v1/chat/completions"
RULE = Grammar("rule", lit("a"), '{"type": "string"}')


# Requests


@pytest.mark.parametrize(
    ("dialect", "kinds", "held"),
    [
        (Dialect.LLAMA_CPP, {*ConstraintKind}, {"grammar": RULE.gbnf}),
        (Dialect.LLAMA_CPP, {ConstraintKind.SCHEMA}, {"json_schema": RULE.json_schema}),
        (Dialect.VLLM, {*ConstraintKind}, {"structured_outputs": {"grammar": RULE.gbnf}}),
        (Dialect.VLLM, {ConstraintKind.SCHEMA}, {"structured_outputs": {"json": RULE.json_schema}}),
        (Dialect.OLLAMA, {*ConstraintKind}, {"format": RULE.json_schema}),
        *((dialect, set(), None) for dialect in Dialect),
    ],
)
def test_a_rule_goes_in_the_most_exact_form_that_was_seen_to_hold(
    dialect: Dialect, kinds: set[ConstraintKind], held: Mapping[str, Any] | None
) -> None:
    assert constraint_fields(ServerProfile(dialect, frozenset(kinds)), RULE) == held


@pytest.mark.parametrize("dialect", [Dialect.OPENROUTER, Dialect.GENERIC])
def test_a_schema_goes_as_a_response_format_elsewhere(dialect: Dialect) -> None:
    held = constraint_fields(ServerProfile(dialect, frozenset({ConstraintKind.SCHEMA})), RULE)
    assert held
    told = held["response_format"]
    assert told["type"] == "json_schema"
    assert told["json_schema"]["schema"] == RULE.json_schema
    assert told["json_schema"]["strict"] is True


@pytest.mark.parametrize("dialect", Dialect)
def test_grammar_without_a_form_the_server_takes_is_not_sent(dialect: Dialect) -> None:
    server = ServerProfile(dialect, frozenset(ConstraintKind) - {ConstraintKind.GRAMMAR})
    assert constraint_fields(server, Grammar("rule", lit("a"))) is None


@pytest.mark.parametrize("dialect", [Dialect.LLAMA_CPP, Dialect.VLLM])
def test_sampling_asks_for_the_whole_distribution(dialect: Dialect) -> None:
    body = chat_body(ServerProfile(dialect), "m", QUERY, Sampling(), {})
    assert (body["top_p"], body["min_p"]) == (1.0, 0.0)
    assert body["top_k"] in {0, -1}
    assert (body["temperature"], body["max_tokens"], body["seed"]) == (0.6, 500, 0)


def test_ollama_is_told_not_to_cut_a_prompt_and_not_to_cut_tails() -> None:
    body = chat_body(
        ServerProfile(Dialect.OLLAMA), "m", QUERY, Sampling(stop=("\n",), seed=3), {"format": {}}
    )
    assert (body["truncate"], body["shift"]) == (False, False)
    options = body["options"]
    assert (options["num_predict"], options["seed"], options["stop"]) == (500, 3, ["\n"])
    assert (options["top_k"], options["top_p"], options["min_p"]) == (0, 1.0, 0.0)
    assert options["repeat_penalty"] == 1.0
    assert body["logprobs"] is True
    assert "format" in body


def test_no_tokens_are_asked_for_where_none_are_wanted() -> None:
    for dialect in Dialect:
        body = chat_body(ServerProfile(dialect), "m", QUERY, Sampling(top=0), {})
        assert "logprobs" not in body


def test_a_message_is_continued_in_each_server_s_own_way() -> None:
    begun = [*QUERY, Message("assistant", "so")]
    vllm = chat_body(ServerProfile(Dialect.VLLM), "m", begun, Sampling(), {})
    assert (vllm["continue_final_message"], vllm["add_generation_prompt"]) == (True, False)
    fresh = chat_body(ServerProfile(Dialect.VLLM), "m", QUERY, Sampling(), {})
    assert (fresh["continue_final_message"], fresh["add_generation_prompt"]) == (False, True)


# Replies


async def answered(
    reply: object, sampling: Sampling | None = None, server: ServerProfile | None = None
) -> Completion:
    sent = reply if isinstance(reply, bytes) else json_reply(reply)
    async with serve_loopback(answer_chats_only(sent)) as place:
        api = ServerClient(Endpoint(base_url=place.url, model="m"), clock=FakeTime().clock)
        return await OpenAIModel(api, server or ServerProfile()).complete(
            QUERY, sampling or Sampling()
        )


async def test_tokens_come_with_offsets_and_the_server_s_counts() -> None:
    used = {
        "prompt_tokens": 9,
        "completion_tokens": 3,
        "prompt_tokens_details": {"cached_tokens": 4},
    }
    entries = [token_entry("A", log(0.5)), token_entry(" B"), token_entry("<eos>")]
    reply = await answered(chatted("A B", entries, usage=used))
    assert [(t.text, t.start, t.end) for t in reply.tokens] == [("A", 0, 1), (" B", 1, 3)]
    assert reply.tokens[0].logprob == log(0.5)
    usage = reply.usage
    assert (usage.calls, usage.prompt_tokens, usage.cached_tokens) == (1, 9, 4)
    assert (usage.completion_tokens, usage.seconds > 0) == (3, True)


async def test_a_streamed_reply_reads_as_a_whole_one() -> None:
    used = {"prompt_tokens": 9, "completion_tokens": 2}
    entries = [token_entry("抗"), token_entry(" B", -2.0)]
    whole = await answered(chatted("抗 B", entries, usage=used))
    pieces = [
        chat_chunk(),
        chat_chunk("抗", logprobs={"content": entries[:1]}),
        chat_chunk(" B", logprobs={"content": entries[1:]}),
        chat_chunk(finish="stop"),
        {"choices": [], "usage": used},
    ]
    parted = await answered(stream_reply(pieces))
    assert (parted.text, parted.tokens, parted.finish) == (whole.text, whole.tokens, whole.finish)
    assert parted.usage.prompt_tokens == 9


async def test_a_stream_may_end_without_its_last_word() -> None:
    """Some send `[DONE]` alone, some a finish alone; with neither it broke off."""
    ended = stream_reply([chat_chunk("x", finish="length")], done=False)
    reply = await answered(ended)
    assert (reply.text, reply.finish) == ("x", "length")


async def test_comments_and_odd_line_ends_in_a_stream_are_no_matter() -> None:
    sent = reply_head(kind=f"{EVENTS}; charset=utf-8") + b": PROCESSING\r\n\r\n"
    sent += encode_event(chat_chunk("a\u2028b")).replace(b"\n", b"\r\n") + encode_event(
        chat_chunk(finish="stop")
    )
    assert (await answered(sent)).text == "a\u2028b"


async def test_tokens_that_share_a_character_share_its_span() -> None:
    first, second = "抗".encode()[:2], "抗".encode()[2:]
    reply = await answered(
        chatted("抗", [token_entry("\ufffd", raw=first), token_entry("\ufffd", raw=second)])
    )
    assert [(t.start, t.end) for t in reply.tokens] == [(0, 1), (0, 1)]


async def test_tokens_that_do_not_spell_the_reply_are_dropped() -> None:
    assert (await answered(chatted("Hello", [token_entry("Hel"), token_entry("p")]))).tokens == ()
    assert (
        await answered(chatted("抗", [token_entry("\ufffd"), token_entry("\ufffd")]))
    ).tokens == ()


async def test_a_character_told_as_one_token_that_was_three_is_not_taken_for_one() -> None:
    told = chatted("素", [token_entry("素")], usage={"completion_tokens": 3})
    assert (await answered(told)).tokens == ()


async def test_log_probability_just_above_zero_is_zero() -> None:
    assert (await answered(chatted("x", [token_entry("x", 1e-7)]))).tokens[0].logprob == 0


@pytest.mark.parametrize(
    ("entries", "wrong"),
    [
        ([token_entry("x", float("nan"))], "nan is not a log-probability"),
        ([token_entry("x", 0.7)], "0.7 is not a log-probability"),
        ([token_entry("x", float("-inf"))], "-inf is not a log-probability"),
        ([token_entry("x", None)], "'x' has no log-probability"),
        ([token_entry("x", True)], "'x' has no log-probability"),
        ([3], "not a list of objects"),
        ([{**token_entry("x"), "bytes": [300]}], "bytes are invalid"),
        ([{**token_entry("x"), "bytes": 10**12}], "bytes are invalid"),
        ([{**token_entry("x"), "top_logprobs": "x"}], "top_logprobs"),
        ([{**token_entry("x"), "top_logprobs": [token_entry("y", 2.0)]}], "2.0 is no"),
    ],
)
async def test_log_probabilities_that_cannot_be_are_an_error_and_no_zero(
    entries: list[Any], wrong: str
) -> None:
    with pytest.raises(ModelError, match=wrong):
        await answered(chatted("x", entries))
    piece = chat_chunk("x", logprobs={"content": entries})
    with pytest.raises(ModelError, match=wrong):
        await answered(stream_reply([piece, chat_chunk(finish="stop")]))


async def test_a_filtered_reply_is_no_reply() -> None:
    with pytest.raises(ModelError, match="content filter"):
        await answered(stream_reply([chat_chunk("half a"), chat_chunk(finish="content_filter")]))


async def test_a_refusal_is_told_in_its_words() -> None:
    refused = {"choices": [{"message": {"content": None, "refusal": "I will not"}}]}
    with pytest.raises(ModelError, match="I will not"):
        await answered(refused)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_thought_is_passed_on_apart_from_the_words(field: str) -> None:
    pieces = [{"choices": [{"delta": {field: part}}]} for part in ("so ", "then")]
    reply = await answered(stream_reply([*pieces, chat_chunk("Iron."), chat_chunk(finish="stop")]))
    assert (reply.text, reply.thinking) == ("Iron.", "so then")
    whole = {"choices": [{"message": {"content": "Iron.", field: "so then"}}]}
    assert (await answered(whole)).thinking == "so then"


async def test_a_model_that_spent_all_its_tokens_in_thought_said_nothing() -> None:
    thought = {"choices": [{"delta": {"content": None, "reasoning_content": "hm"}}]}
    reply = await answered(stream_reply([thought, chat_chunk(finish="length")]))
    assert (reply.text, reply.thinking, reply.finish) == ("", "hm", "length")


async def test_a_reply_goes_no_further_than_a_stop_that_the_server_refused() -> None:
    server = ServerProfile(without=frozenset({"stop"}))
    entries = [token_entry("a"), token_entry("\n"), token_entry("b")]
    reply = await answered(chatted("a\nb", entries), Sampling(stop=("X", "\n")), server)
    assert (reply.text, [t.text for t in reply.tokens]) == ("a", ["a"])


async def test_ollama_s_lines_read_as_any_other_s() -> None:
    def line(said_now: str, **more: object) -> bytes:
        told = {"message": {"role": "assistant", "content": said_now}, "done": False, **more}
        return json.dumps(told, ensure_ascii=False).encode() + b"\n"

    end = {"done": True, "done_reason": "length", "prompt_eval_count": 7, "eval_count": 2}
    body = line("抗", logprobs=[token_entry("抗")]) + line("\x85b", logprobs=[token_entry("\x85b")])
    thought = {"message": {"content": "", "thinking": "hm"}, "done": False}
    sent = reply_head(kind=LINES) + json.dumps(thought).encode() + b"\n" + body + line("", **end)

    async with serve_loopback(lambda _: sent) as place:
        api = ServerClient(Endpoint(base_url=place.url, model="m"), clock=FakeTime().clock)
        reply = await OpenAIModel(api, ServerProfile(Dialect.OLLAMA)).complete(QUERY, Sampling())
        assert place.asked[0].path == "/api/chat"
    assert (reply.text, reply.finish, reply.thinking) == ("抗\x85b", "length", "hm")
    assert [t.text for t in reply.tokens] == ["抗", "\x85b"]
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (7, 2)


# Servers that only say so


def server(
    chats: Callable[[Any], bytes],
    *,
    endpoints: Mapping[str, Any] = {},  # never written to
    models: Any = None,
) -> Answers:
    """A server with these endpoints outside chats; what is not among them is 404."""

    def answer(asked: LoopbackRequest) -> bytes:
        if asked.path == CHATS:
            return chats(asked.body)
        if asked.path == "/v1/models" and models is not None:
            return json_reply(models)
        told = endpoints.get(asked.path)
        told = told(asked.body) if callable(told) else told
        return json_reply({"detail": "Not Found"}, 404) if told is None else json_reply(told)

    return answer


async def connected(answer: Answers, model: str = "m") -> OpenAIModel:
    async with serve_loopback(answer) as place:
        endpoint = Endpoint(base_url=place.url, model=model)
        return await connect_server(endpoint, clock=FakeTime().clock)


def free(body: Any) -> bytes:
    """Says what it likes, whatever it was asked."""
    return json_reply(chatted("Vitamin C, of course.", [token_entry("Vitamin C, of course.", 0.0)]))


def idle_tokenizer(body: Any) -> Any:
    text = body.get("prompt") or "".join(one["content"] for one in body["messages"])
    return {"tokens": [ord(char) for char in text]}


VLLM = {"/version": {"version": "0.32.0"}, "/tokenize": idle_tokenizer}


def echo(body: Any) -> Any:
    """The log-probability of the n-th token is -n / 10."""
    ids = body["prompt"]
    told = {"tokens": [*map(chr, ids)], "token_logprobs": [None, *_tenths(len(ids) - 1)]}
    return {"choices": [{"text": "", "logprobs": told}]}


def _tenths(count: int) -> list[float]:
    return [-n / 10 for n in range(1, count + 1)]


def obedient(body: Any) -> bytes:
    rule = body.get("structured_outputs", {}).get("grammar", "")
    text = rule.split('"')[1] if rule else "free"
    return json_reply(chatted(text, [token_entry(char, 0.0) for char in text]))


async def test_a_server_that_says_nothing_of_itself_is_a_plain_one() -> None:
    model = await connected(server(free))
    assert model.server == ServerProfile(logprobs=True)
    assert isinstance(model, LanguageModel)
    assert not isinstance(model, Likelihood)
    with pytest.raises(CapabilityMissing, match="grammar"):
        await model.complete(QUERY, Sampling(grammar=Grammar("a", lit("a"))))


@pytest.mark.parametrize("way", [None, "zeroes", "short", "none"])
async def test_vllm_capability_that_is_ignored_is_not_claimed(way: str | None) -> None:
    """An echo without log-probabilities, of zeroes alone, or of other tokens than were sent."""

    def broken(body: Any) -> Any:
        told = {"tokens": [*map(chr, body["prompt"])], "token_logprobs": [0.0] * 99}
        if way == "zeroes":
            told["token_logprobs"] = [None, *[0.0] * (len(body["prompt"]) - 1)]
        if way == "none":
            return {"choices": [{"text": "x", "logprobs": None}]}
        return {"choices": [{"text": "", "logprobs": told}]}

    endpoints = VLLM | ({"/v1/completions": broken} if way else {})
    model = await connected(server(free, endpoints=endpoints))
    assert model.server == ServerProfile(Dialect.VLLM, logprobs=True)
    assert not model.constrains
    assert not isinstance(model, Likelihood)


async def test_a_schema_that_is_ignored_is_not_taken_to_hold() -> None:
    """It is JSON, but of another form."""
    model = await connected(server(lambda _: json_reply(chatted('{"vitamin": "C"}'))))
    assert model.server.kinds == frozenset()


async def test_vllm_scores_a_text_by_echo_in_one_request() -> None:
    async with serve_loopback(
        server(obedient, endpoints=VLLM | {"/v1/completions": echo})
    ) as place:
        model = await connect_server(Endpoint(base_url=place.url, model="m"))
        assert isinstance(model, ScoringOpenAIModel)
        probed = len(place.bodies_of("/v1/completions"))
        scored = await model.score("ab", "cd")
        assert len(place.bodies_of("/v1/completions")) == probed + 1
        body = place.bodies_of("/v1/completions")[-1]
    assert [(t.text, t.start, t.end, t.logprob) for t in scored.tokens] == [
        ("c", 0, 1, -0.2),
        ("d", 1, 2, -0.3),
    ]
    assert (body["echo"], body["logprobs"], body["max_tokens"]) == (True, 0, 0)
    assert scored.usage.scored_tokens == 2


def completing(body: Any) -> Any:
    """Echoes what is to be scored, and completes a prompt that is a text."""
    if "echo" in body:
        return echo(body)
    told = {
        "tokens": ["[Relevant]", " Iron"],
        "token_logprobs": [-0.1, -0.2],
        "top_logprobs": [{"[Relevant]": -0.1}, {" Iron": -0.2}],
    }
    choice = {"text": "[Relevant] Iron", "logprobs": told, "finish_reason": "length"}
    return {"choices": [choice], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}


async def test_a_raw_prompt_goes_past_the_chat_template_to_completions() -> None:
    sampling = Sampling(temperature=0.0, max_tokens=2, stop=("[Utility:",), seed=3)
    endpoints = VLLM | {"/v1/completions": completing}
    async with serve_loopback(server(obedient, endpoints=endpoints)) as place:
        model = await connect_server(Endpoint(base_url=place.url, model="m"))
        said = await model.complete([Message("raw", "### Response:\n")], sampling)
        body = place.bodies_of("/v1/completions")[-1]
        assert isinstance(model, ScoringOpenAIModel)
        await model.score([Message("raw", "ab")], "cd")
        assert place.bodies_of("/tokenize")[-2]["prompt"] == "ab"
    assert body["prompt"] == "### Response:\n"
    assert (body["max_tokens"], body["stop"], body["seed"]) == (2, ["[Utility:"], 3)
    assert (said.text, said.finish) == ("[Relevant] Iron", "length")
    assert [(t.text, t.start, t.end, t.logprob) for t in said.tokens] == [
        ("[Relevant]", 0, 10, -0.1),
        (" Iron", 10, 15, -0.2),
    ]
    assert said.usage.prompt_tokens == 7


async def test_a_server_that_templates_every_prompt_refuses_a_raw_one() -> None:
    ollama = {"/api/version": {"version": "0.9"}}

    def chats(asked: LoopbackRequest) -> bytes:
        if asked.path == "/api/chat":
            line = {"message": {"role": "assistant", "content": "x"}, "done": True}
            return json_reply({**line, "prompt_eval_count": 1, "eval_count": 1})
        if asked.path == "/v1/models":
            return json_reply({"data": [{"id": "m"}]})
        told = ollama.get(asked.path)
        return json_reply({}, 404) if told is None else json_reply(told)

    async with serve_loopback(chats) as place:
        model = await connect_server(Endpoint(base_url=place.url, model="m"))
        with pytest.raises(CapabilityMissing, match="not a raw prompt"):
            await model.complete([Message("raw", "### Response:")], Sampling())


async def test_vllm_s_masked_zeroes_under_a_grammar_are_replaced_by_the_raw_model_s() -> None:
    async with serve_loopback(
        server(obedient, endpoints=VLLM | {"/v1/completions": echo})
    ) as place:
        model = await connect_server(Endpoint(base_url=place.url, model="m"))
        reply = await model.complete(
            [Message("user", "q"), Message("assistant", "so")],
            Sampling(grammar=Grammar("ab", lit("ab"))),
        )
        body = place.bodies_of(CHATS)[-1]
    assert [t.logprob for t in reply.tokens] == [-0.3, -0.4]
    assert reply.usage.calls == 1
    assert body["structured_outputs"] == {"grammar": 'root ::= "ab"'}


async def test_log_probabilities_of_another_distribution_are_left_out_where_none_can_score() -> (
    None
):
    told = chatted("x", [token_entry("x")])
    held = ServerProfile(kinds=frozenset({ConstraintKind.GRAMMAR}), dialect=Dialect.VLLM)
    assert (await answered(told, Sampling(grammar=Grammar("x", lit("x"))), held)).tokens == ()


async def test_an_unknown_model_is_told_before_the_first_question() -> None:
    models = {"data": [{"id": "m", "owned_by": "vllm"}]}
    with pytest.raises(ModelError, match="no model other, but m") as caught:
        await connected(server(obedient, endpoints=VLLM, models=models), "other")
    assert caught.value.fix == "set model.name to one of them"


async def test_ollama_s_models_are_known_without_their_tag() -> None:
    end = b'{"message": {"content": "x"}, "done": true}\n'
    endpoints = {"/api/version": {"version": "0.34.0"}}
    plain = server(free, endpoints=endpoints, models={"data": [{"id": "qwen:latest"}]})

    def answer(asked: LoopbackRequest) -> Any:
        return reply_head(kind=LINES) + end if asked.path == "/api/chat" else plain(asked)

    model = await connected(answer, "qwen")
    assert model.server.dialect is Dialect.OLLAMA


@pytest.mark.parametrize("status", [401, 403, 429, 502, 301])
async def test_gateway_that_forbids_probing_routes_is_a_generic_server(status: int) -> None:
    def answer(asked: LoopbackRequest) -> bytes:
        return free(asked.body) if asked.path.startswith("/v1/") else json_reply({}, status)

    assert (await connected(answer)).server.dialect is Dialect.GENERIC


async def test_fields_that_a_server_refuses_are_done_without() -> None:
    def fussy(body: Any) -> bytes:
        for name in ("max_tokens", "temperature", "logprobs", "top_logprobs", "stop"):
            if name in body:
                told = {"message": f"Unsupported parameter: '{name}'", "param": name}
                return json_reply({"error": told}, 400)
        return json_reply(chatted("x"))

    async with serve_loopback(server(fussy)) as place:
        model = await connect_server(Endpoint(base_url=place.url, model="m"))
        await model.complete(QUERY, Sampling(max_tokens=7))
        body = place.bodies_of(CHATS)[-1]
    refused = {"max_tokens", "temperature", "logprobs", "top_logprobs"}
    assert model.server.without == refused
    assert body["max_completion_tokens"] == 7
    assert not refused & body.keys()


async def test_a_server_that_refuses_the_same_field_for_ever_is_an_error() -> None:
    told = {"message": "Unsupported parameter: 'seed'", "param": "seed"}
    with pytest.raises(ModelError, match="Unsupported parameter"):
        await connected(server(lambda _: json_reply({"error": told}, 400)))


async def test_a_server_that_refuses_the_question_itself_is_an_error() -> None:
    told = {"message": "no messages here", "param": "messages"}
    with pytest.raises(ModelError, match="no messages here"):
        await connected(server(lambda _: json_reply({"error": told}, 400)))


# Scores


ECHO = {"tokens": ["a", "b"], "token_logprobs": [None, -1.0]}


@pytest.mark.parametrize(
    ("told", "wrong"),
    [
        (None, "no logprobs"),
        ({**ECHO, "tokens": None}, "no token_logprobs"),
        ({**ECHO, "token_logprobs": [None]}, "2 tokens has 1"),
        ({**ECHO, "token_logprobs": [None, None]}, "'b' has no log-probability"),
        ({**ECHO, "token_logprobs": [None, float("nan")]}, "nan is no"),
        ({**ECHO, "token_logprobs": [None, 0.5]}, "0.5 is no"),
    ],
)
def test_an_echo_that_is_missing_misaligned_or_impossible_is_refused(told: Any, wrong: str) -> None:
    assert read_echo({"choices": [{"logprobs": ECHO}]}, 2) == [("b", -1.0)]
    with pytest.raises(BadReply, match=wrong):
        read_echo({"choices": [{"logprobs": told}]}, 2)


def test_pieces_told_as_text_find_their_places() -> None:
    assert spans_of(["a", "b"], "ab") == [(0, 1), (1, 2)]
    assert spans_of(["\ufffd", "\ufffd", ","], "抗,") == [(0, 1), (0, 1), (1, 2)]
    assert spans_of(["a", "\ufffd", "\ufffd"], "a抗坏") == [(0, 1), (1, 3), (1, 3)]
    for pieces, text in ((["a"], "ab"), (["b"], "ab"), (["a", "\ufffd"], "a"), ([], "a")):
        with pytest.raises(BadReply):
            spans_of(pieces, text)
