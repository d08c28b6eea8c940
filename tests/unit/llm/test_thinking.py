"""What a reasoning model says first is kept out of its reply, and kept."""

import pytest

from osler.llm.core.base import Completion, TokenScore
from osler.llm.core.thinking import opens_thinking, split_thinking, without_spans
from osler_lab.testing.scripted import tokens_of

FORMS = {
    "<think>Is it B?</think>\n\n<answer>B</answer>": ("<answer>B</answer>", "Is it B?"),
    "<think>\n\n</think>\n\nB": ("B", ""),  # Qwen3 told not to think
    "Is it B?\n</think>\n\nB": ("B", "Is it B?"),  # DeepSeek-R1: the template opened the block
    "<think>Is it B? It": ("", "Is it B? It"),
    "  <thinking>x</thinking> B": ("B", "x"),
    "<|thinking|>x<|/thinking|>B": ("B", "x"),
    "<|begin_of_thought|>x<|end_of_thought|>\nB": ("B", "x"),
    "[THINK]x[/THINK]B": ("B", "x"),
    "◁think▷是B吗？◁/think▷选B。": ("选B。", "是B吗？"),
    "<seed:think>x</seed:think>B": ("B", "x"),
    "<|channel|>analysis<|message|>x<|end|><|start|>assistant<|channel|>final<|message|>B": (
        "B",
        "x",
    ),
    "<think>a</think>\n<think>b</think>\nB": ("B", "a\n\nb"),
    "Thought: one <think>b</think>two": ("Thought: one two", "b"),
    "Thought: one <think>b": ("Thought: one ", "b"),
}


@pytest.mark.parametrize(("reply", "parts"), FORMS.items())
def test_each_form_is_known(reply: str, parts: tuple[str, str]) -> None:
    told = split_thinking(Completion(reply, tokens_of(reply, 0.5)))
    assert (told.text, told.thinking) == parts
    assert "".join(token.text for token in told.tokens) == told.text
    assert all(told.text[t.start : t.end] == t.text for t in told.tokens)


@pytest.mark.parametrize(
    "reply", ["", "B", "I think B.", "a < think > b", "Thought: <b> think", "思考：缺铁"]
)
def test_a_reply_without_thinking_is_left_as_it_is(reply: str) -> None:
    completion = Completion(reply, tokens_of(reply, 0.5))
    assert split_thinking(completion) is completion


def test_a_block_that_the_template_opened_and_the_limit_cut_was_all_thought() -> None:
    told = split_thinking(Completion("Is it B? It", finish="length"), inside=True)
    assert (told.text, told.thinking, told.finish) == ("", "Is it B? It", "length")
    assert split_thinking(Completion("x</think>B"), inside=True).text == "B"


@pytest.mark.parametrize(
    ("prompt", "inside"),
    [("<|im_start|>assistant\n<think>\n", True), ("<think>\n\n</think>\n\n", False), ("", False)],
)
def test_a_template_tells_whether_it_opened_a_block(prompt: str, inside: bool) -> None:
    assert opens_thinking(prompt) is inside


def test_what_a_server_told_apart_stays_and_comes_first() -> None:
    told = split_thinking(Completion("<think>b</think>B", thinking="a"))
    assert (told.text, told.thinking) == ("B", "a\n\nb")


def test_a_token_across_the_cut_keeps_its_rest_and_its_score() -> None:
    """ "k>\\nB" is half mark and half reply; a stray byte at the end has an empty span."""
    tokens = (
        TokenScore("<think>x</thin", 0, 14, -1.0),
        TokenScore("k>\nB", 14, 18, -2.0),
        TokenScore("C", 18, 19, -3.0),
        TokenScore("", 19, 19, -4.0),
    )
    told = split_thinking(Completion("<think>x</think>\nBC", tokens))
    assert [(t.text, t.start, t.end, t.logprob) for t in told.tokens] == [
        ("B", 0, 1, -2.0),
        ("C", 1, 2, -3.0),
        ("", 2, 2, -4.0),
    ]


def test_tokens_that_share_a_character_still_share_it() -> None:
    tokens = tuple(TokenScore(c, i, i + 1, -1.0) for i, c in [(0, "x"), (1, "缺"), (1, "缺")])
    told = without_spans(Completion("x缺", tokens), [(0, 1)])
    assert [(t.start, t.end, t.text) for t in told.tokens] == [(0, 1, "缺"), (0, 1, "缺")]
