"""Prompts are files with a contract."""

import pytest

from osler.prompts import BadPrompt, load_prompt, render_prompt


def test_a_missing_variable_is_an_error() -> None:
    with pytest.raises(BadPrompt, match="missing documents"):
        render_prompt("answer/documents", "en", question="Why?")


def test_an_unknown_variable_is_an_error() -> None:
    with pytest.raises(BadPrompt, match="unknown colour"):
        render_prompt("answer/documents", "en", question="Why?", documents=[], colour="red")


def test_an_absent_prompt_is_an_error() -> None:
    with pytest.raises(BadPrompt, match=r"no prompt tcrag/nothing\.zh\.md"):
        load_prompt("tcrag/nothing", "zh")


def test_an_identity_tells_name_language_and_wording() -> None:
    english, chinese = (
        load_prompt("tcrag/act", "en").identity,
        load_prompt("tcrag/act", "zh").identity,
    )
    assert english.startswith("tcrag/act@")
    assert chinese.startswith("tcrag/act.zh@")
    assert english.split("@")[1] != chinese.split("@")[1]


def test_text_that_looks_like_a_template_stays_text() -> None:
    hostile = "{{ 7 * 7 }} {% raw %}"
    assert hostile in render_prompt("answer/documents", "en", question=hostile, documents=[]).text
