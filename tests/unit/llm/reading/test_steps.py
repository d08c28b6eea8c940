"""A plan's steps are found in every layout that models write."""

import re

import pytest

from osler.llm.reading.steps import WrittenStep, split_steps

FUNCTION = re.compile(r"(?:retrieval|output|math|deduce)\s*\(", re.IGNORECASE)
ONE = WrittenStep(1, "Who directed Solaris?", "Retrieval(s=s1:film['Solaris'], p=p1:made, o=o1)")
TWO = WrittenStep(2, "When did #1 die?", "Retrieval(s=o1, p=p2:death, o=o2)")
A, B = ONE.action, TWO.action

LAYOUTS = {
    "the paper's": f"Step1: {ONE.words}\nAction1: {A}\nStep2: {TWO.words}\nAction2: {B}",
    "list and bold": f"1. **Step1**: {ONE.words}\n   - **Action1**: {A}\n"
    f"2. **Step2**: {TWO.words}\n   - **Action2**: {B}",
    "bold with the colon": f"**Step 1:** {ONE.words}\n**Action 1:** {A}\n\n"
    f"**Step 2:** {TWO.words}\n**Action 2:** {B}",
    "headings": f"### Step 1: {ONE.words}\n- Action 1: `{A}`\n\n### Step 2: {TWO.words}\n"
    f"- Action 2: `{B}`",
    "dashes": f"Step 1 - {ONE.words}\nAction 1 - {A}\nStep 2 - {TWO.words}\nAction 2 - {B}",
    "full stops": f"Step 1. {ONE.words}\nAction 1. {A}\nStep 2. {TWO.words}\nAction 2. {B}",
    "words for numbers": f"Step One: {ONE.words}\nAction One: {A}\nStep Two: {TWO.words}\n"
    f"Action Two: {B}",
    "Chinese": f"步骤一：{ONE.words}\n动作一：{A}\n步骤二：{TWO.words}\n动作二：{B}",
    "Chinese ordinals": f"第一步：{ONE.words}\n动作：{A}\n第二步：{TWO.words}\n动作：{B}",
    "full-width": f"Step１：{ONE.words}\nAction１：{A}\nStep２：{TWO.words}\nAction２：{B}",
    "list without labels": f"1. {ONE.words}\n   {A}\n2. {TWO.words}\n   {B}",
    "one line": f"Step1: {ONE.words} Action1: {A} Step2: {TWO.words} Action2: {B}",
    "fenced": f"Here is the plan:\n```\nStep1: {ONE.words}\nAction1: {A}\nStep2: {TWO.words}\n"
    f"Action2: {B}\n```",
    "JSON list": f'[{{"step": "{ONE.words}", "action": "{A}", "n": 1}},'
    f' {{"step": "{TWO.words}", "action": "{B}", "n": 2}},]',
    "JSON in an object": f'```json\n{{"steps": [{{"id": 1, "question": "{ONE.words}", "action":'
    f' "{A}"}}, {{"id": 2, "question": "{TWO.words}", "action": "{B}"}}]}}\n```',
    "JSON keys": f'{{"Step1": "{ONE.words}", "Action1": "{A}", "Step2": "{TWO.words}",'
    f' "Action2": "{B}"}}',
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_steps_are_found_in_every_layout(layout: str) -> None:
    assert split_steps(LAYOUTS[layout], FUNCTION) == [ONE, TWO]


@pytest.mark.parametrize("text", ["", "I cannot plan this.", "1. Rest.\n2. Drink.", "{}"])
def test_what_is_no_plan_has_no_steps(text: str) -> None:
    assert split_steps(text, FUNCTION) == []
