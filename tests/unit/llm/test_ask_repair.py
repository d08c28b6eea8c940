"""The only repair loop in the house."""

import pytest

from osler.errors import MalformedOutput
from osler.llm.core.ask import ask, complete, score_all
from osler.llm.core.base import Completion, Message, Sampling
from osler.llm.core.grammar import Grammar, alt
from osler.trace import Asked, Run, from_line, to_line
from osler_lab.testing.scripted import ScriptedModel


def number(completion: Completion) -> int:
    if not completion.text.isdigit():
        raise MalformedOutput(completion.text, expected="a whole number")
    return int(completion.text)


SAID = [Message("user", "How many?")]


async def asked(
    model: ScriptedModel,
    run: Run,
    *,
    said: list[Message] = SAID,
    sampling: Sampling = Sampling(max_tokens=9),  # noqa: B008 - frozen
) -> int:
    return await ask(model, said, number, sampling, run, role="reader", prompt="p")


async def test_a_reply_that_parses_is_asked_for_once() -> None:
    run = Run()
    assert await asked(ScriptedModel(["3"]), run) == 3
    assert run.usage.calls == 1


async def test_a_malformed_reply_is_shown_to_the_model_with_what_was_wrong() -> None:
    model, run = ScriptedModel(["three", "3"]), Run()
    assert await asked(model, run) == 3
    assert [m.content for m in model.seen[1]][1] == "three"
    assert "expected a whole number" in model.seen[1][2].content
    assert [e.repaired != "" for e in run.events if isinstance(e, Asked)] == [False, True]
    assert model.samplings[0].seed != model.samplings[1].seed


async def test_after_two_repairs_the_last_reply_is_the_error() -> None:
    model = ScriptedModel(["one", "two", "three"])
    with pytest.raises(MalformedOutput) as caught:
        await asked(model, Run())
    assert caught.value.reply == "three"
    model.finish()


async def test_a_reply_that_no_file_can_hold_is_mended_before_it_is_told() -> None:
    run = Run()
    script = ScriptedModel(["<think>\ud83d\ude00</think>a\ud800b"])
    reply = await complete(script, SAID, Sampling(), run, role="reader", prompt="p")
    assert (reply.text, reply.thinking) == ("a\ufffdb", "😀")
    assert from_line(to_line(run.events[0])) == run.events[0]


async def test_the_parser_never_sees_what_was_thought_and_the_log_does() -> None:
    run = Run()
    assert await asked(ScriptedModel(["<think>2 and 1</think>\n\n3"]), run) == 3
    (event,) = [e for e in run.events if isinstance(e, Asked)]
    assert (event.reply, event.thinking) == ("3", "2 and 1")


async def test_thinking_is_kept_out_of_a_reply_that_nobody_parses() -> None:
    model = ScriptedModel(["<think>hm</think>Three."])
    reply = await complete(model, SAID, Sampling(), Run(), role="reader", prompt="p")
    assert (reply.text, reply.thinking) == ("Three.", "hm")


async def test_a_reply_cut_at_the_limit_is_named_as_such_and_asked_for_shorter() -> None:
    model, run = ScriptedModel(["there are th", "3"], cut={0}), Run()
    assert await asked(model, run) == 3
    told = model.seen[1][-1].content
    assert "it was cut at 9 tokens" in told
    assert "at most 9 tokens: be shorter" in told
    events = [e for e in run.events if isinstance(e, Asked)]
    assert "it was cut at 9 tokens" in events[1].repaired


async def test_thinking_that_took_all_the_tokens_is_named_and_no_empty_turn_is_shown() -> None:
    model = ScriptedModel(["<think>one, two", "3"], cut={0})
    assert await asked(model, Run()) == 3
    (only,) = model.seen[1]
    assert only.role == "user"
    assert only.content.startswith("How many?\n\nThat reply could not be read")
    assert "thinking took all 9 tokens" in only.content
    assert "without thinking first" in only.content


async def test_the_last_error_says_why_too() -> None:
    model = ScriptedModel(["one", "two", "<think>three"], cut={2})
    with pytest.raises(MalformedOutput, match="thinking took all 9 tokens") as caught:
        await asked(model, Run())
    assert caught.value.expected == "a whole number"


async def test_a_server_that_ignored_the_format_is_found_out() -> None:
    digits = Grammar("digits", alt("1", "2"))
    model = ScriptedModel(["one", "2"])
    assert await asked(model, Run(), sampling=Sampling(grammar=digits)) == 2
    assert "was not held to the format digits" in model.seen[1][-1].content


async def test_a_chinese_question_is_complained_about_in_chinese() -> None:
    model = ScriptedModel(["三", "3"])
    assert await asked(model, Run(), said=[Message("user", "有多少片？")]) == 3
    assert model.seen[1][-1].content.startswith("上一条回复无法读取")


async def test_a_continued_turn_is_still_one_turn_when_it_is_shown() -> None:
    model = ScriptedModel(["three", "3"])
    assert await asked(model, Run(), said=[*SAID, Message("assistant", "There are ")]) == 3
    assert [(m.role, m.content) for m in model.seen[1]][1] == ("assistant", "There are three")
    assert [m.role for m in model.seen[1]] == ["user", "assistant", "user"]


async def test_each_text_of_a_batch_is_paid_for_and_traced() -> None:
    run = Run()
    scored = await score_all(ScriptedModel([]), "q", ["a", "b c"], run, role="reader")
    assert [len(one.tokens) for one in scored] == [1, 2]
    assert [e.reply for e in run.events if isinstance(e, Asked)] == ["a", "b c"]
    assert run.usage.calls == 2
