"""Which tokens are read and which are learnt."""

from __future__ import annotations

from typing import Any

import pytest
from tiny_models import tiny_tokenizer

from osler.errors import BadRun, ModelError
from osler.llm.core.base import Message
from osler_lab.train.record import Dialogue, DpoRecord, SftRecord
from osler_lab.train.tune.encode import ChatEncoder, EncodedText

pytestmark = pytest.mark.torch

ASK = (Message("system", "Be brief."), Message("user", "维生素C? Iron?"))

YES = SftRecord(id="1", messages=ASK, completion="yes")
PAIR = DpoRecord(id="1", messages=ASK, chosen="good one", rejected="bad")
SAME_TRIMMED = DpoRecord(id="1", messages=ASK, chosen="yes", rejected="yes ")


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return tiny_tokenizer()


def learnt(tokenizer: Any, row: EncodedText) -> str:
    kept = [t for t, on in zip(row.tokens, row.learns, strict=True) if on]
    return str(tokenizer.decode(kept))


def test_the_reply_and_its_end_are_learnt_and_nothing_else(tokenizer: Any) -> None:
    row = ChatEncoder(tokenizer, name="t").encode_sample(
        SftRecord(id="1", messages=ASK, completion="抗坏血酸 <book> iron </book>")
    )
    assert learnt(tokenizer, row) == "抗坏血酸 <book> iron </book><|im_end|>"
    prompt = tokenizer.apply_chat_template(
        [{"role": m.role, "content": m.content} for m in ASK],
        tokenize=False,
        add_generation_prompt=True,
    )
    size = row.learns.index(True)
    assert list(row.tokens[:size]) == tokenizer(prompt, add_special_tokens=False)["input_ids"]
    assert row.learnt == sum(row.learns)


def test_both_replies_of_a_pair_have_one_prompt(tokenizer: Any) -> None:
    pair = ChatEncoder(tokenizer, name="t").encode_pair(
        DpoRecord(id="1", messages=ASK, chosen="good one", rejected="bad")
    )
    size = pair.chosen.learns.index(True)
    assert pair.chosen.tokens[:size] == pair.rejected.tokens[:size]
    assert learnt(tokenizer, pair.rejected) == "bad<|im_end|>"
    assert len(pair) == len(pair.chosen)


def test_all_turns_of_the_assistant_are_learnt(tokenizer: Any) -> None:
    said = (
        *ASK,
        Message("assistant", "<think> one"),
        Message("user", "found"),
        Message("assistant", "two"),
    )
    (row,) = ChatEncoder(tokenizer, name="t").encode_dialogue(Dialogue(id="1", messages=said))
    assert learnt(tokenizer, row) == "<think> one<|im_end|>two<|im_end|>"
    whole = tokenizer.apply_chat_template(
        [{"role": m.role, "content": m.content} for m in said], tokenize=False
    )
    assert tokenizer.decode(row.tokens) == whole


@pytest.mark.parametrize(
    ("kept", "opening"),
    [
        ("m.content if loop.last else m.content.split('</think>')[-1]", ""),
        # R1's distillates: the thoughts of the last turn go too, and a prompt begins one.
        ("m.content.split('</think>')[-1]", "<think>\n"),
    ],
)
def test_a_template_that_forgets_thoughts_makes_a_sample_of_each_turn(
    kept: str, opening: str
) -> None:
    forgets = tiny_tokenizer()
    forgets.chat_template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n"
        "{{ " + kept + " }}<|im_end|>\n"
        "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n"
        + opening
        + "{% endif %}"
    )
    said = (
        *ASK,
        Message("assistant", "<think>a</think>b"),
        Message("user", "u"),
        Message("assistant", "<think>c</think>d"),
    )
    rows = ChatEncoder(forgets, name="t").encode_dialogue(Dialogue(id="1", messages=said))
    assert [row.id for row in rows] == [f"1#{len(ASK)}", f"1#{len(ASK) + 2}"]
    told = "" if opening else "<think>"
    assert [learnt(forgets, row) for row in rows] == [
        f"{told}a</think>b<|im_end|>",
        f"{told}c</think>d<|im_end|>",
    ]
    # The second turn is learnt after the first as it is served: without its thoughts.
    served = forgets.decode(rows[1].tokens)
    assert "a</think>" not in served
    assert "b<|im_end|>" in served


def test_a_tokenizer_without_a_chat_template_is_refused() -> None:
    bare = tiny_tokenizer()
    bare.chat_template = None
    with pytest.raises(ModelError, match="the tokenizer of bare has no chat template"):
        ChatEncoder(bare, name="bare")


def test_a_template_that_writes_no_end_gets_one() -> None:
    endless = tiny_tokenizer()
    endless.chat_template = "{% for m in messages %}{{ m.content }}\n{% endfor %}"
    row = ChatEncoder(endless, name="t").encode_sample(
        SftRecord(id="1", messages=ASK, completion="yes")
    )
    assert learnt(endless, row).endswith("yes\n<|im_end|>")


def test_a_template_that_refuses_is_one_line(tokenizer: Any) -> None:
    picky = tiny_tokenizer()
    picky.chat_template = "{{ raise_exception('no system here') }}"
    with pytest.raises(ModelError, match="the chat template refuses: no system here"):
        ChatEncoder(picky, name="t").encode_sample(
            SftRecord(id="1", messages=ASK, completion="yes")
        )


def test_replies_that_are_the_same_tokens_are_no_pair() -> None:
    strips = tiny_tokenizer()
    strips.chat_template = "{% for m in messages %}{{ m.content | trim }}<|im_end|>{% endfor %}"
    with pytest.raises(BadRun, match="the same tokens"):
        ChatEncoder(strips, name="t").encode_pair(
            DpoRecord(id="1", messages=ASK, chosen="yes", rejected="yes ")
        )
