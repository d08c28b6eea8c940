"""Every wire format: its grammar, its reader and the real engine agree.

Golden strings are those of the papers (and of the authors' programs); what is
broken is refused by the grammar, whatever a tolerant reader makes of it.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from derivations import grammar_texts, regex_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from osler.answer.option_reading import written_option, written_options
from osler.answer.options import letter_grammar
from osler.errors import ModelMissing
from osler.llm.core.base import Message, Sampling
from osler.llm.core.grammar import Grammar
from osler.llm.core.grammar.schema import from_schema
from osler.llm.local.gguf_files import default_gguf
from osler.llm.local.model import LlamaCpp
from osler.llm.reading.verdicts import read_verdict, verdict_grammar
from osler.methods.kag.boundary import attempt_grammar
from osler.methods.kag.logical_forms import Form, LogicalPlan, render_plan
from osler.methods.kag.parse import (
    form_grammar,
    plan_grammar,
    read_plan,
    read_search,
    search_grammar,
)
from osler.methods.kag.reader import read_form
from osler.methods.omni import plan
from osler.methods.omni.planners.feedback import feedback_grammar, read_feedback
from osler.methods.omni.planners.single import (
    parse_terms,
    passage_grammar,
    read_passage,
    terms_grammar,
)
from osler.methods.tcrag import actions
from osler.types import Question

TOOLS = ("DOC_RAG", "KG_RAG")
CHOICE = Question("q", "Which?", ("a", "b", "c", "d"))


class Finding(BaseModel):
    """What an extraction could ask for: every kind of value that a schema may have."""

    drug: str = Field(min_length=1, max_length=20)
    dose_mg: int = Field(ge=7, le=1250)
    share: float | None = Field(ge=0, le=1)
    routes: list[str] = Field(max_length=2)
    certain: bool
    note: str = Field(default="", max_length=10)


@dataclass(frozen=True)
class Format:
    name: str
    grammar: Grammar
    golden: tuple[str, ...]
    broken: tuple[str, ...]
    read: Callable[[str], object]
    """Reads a reply, or raises."""


def _option(reply: str) -> str:
    letter = written_option(reply, CHOICE)
    assert letter is not None
    return letter


def _options(reply: str) -> tuple[str, ...]:
    letters = written_options(reply, CHOICE)
    assert letters
    return letters


def _plan(reply: str) -> plan.PlanReading:
    reading = plan.expect_source_plan(reply)
    assert not reading.missing
    return reading


def _form(reply: str) -> Form:
    form, end = read_form(reply)
    assert end == len(reply)
    return form


def _steps(reply: str) -> LogicalPlan:
    read = read_plan(reply)
    assert len(read.steps) == reply.count("\nAction")
    return read


HIT_PARADE = (
    "<answer>Step1: Who is the director of Hit Parade Of 1947?\n"
    "Action1: Retrieval(s=s1:film['Hit Parade Of 1947'], p=p1:director, o=o1:director)\n"
    "Step2: When did #1 die?\n"
    "Action2: Retrieval(s=o1, p=p2:deathtime, o=o2:deathtime)\n"
    "Step3: Who is the director of Khiladi 420?\n"
    "Action3: Retrieval(s=s3:film['Khiladi 420'], p=p3:director, o=o3:director)\n"
    "Step4: When did #3 die?\n"
    "Action4: Retrieval(s=o3, p=p4:deathtime, o=o4:deathtime)\n"
    "Step5: Which film was directed by the director who died first according to #2 and #4?\n"
    "Action5: Deduce(op=choice, content=['o2','o4'], target='which film was directed by the"
    " director who died first according to o2 and o4')->o5 </answer>"
)

FORMATS = [
    Format(
        "TC-RAG action",
        actions.action_grammar(set(actions.Move), TOOLS, argument=True),
        (
            "Thought: I should look this up.",
            "Tool_Use: DOC_RAG\nTool_Input: warfarin and amiodarone",
            "Backtrack: the passages are about something else",
            "Summary: 国际标准化比值升高。",
            "Conclusion: Lower the dose. [1]",
        ),
        (
            "",
            "Thought:",
            "Thought: \u3000",
            "Tool_Use: GOOGLE\nTool_Input: x",
            "Tool_Use: DOC_RAG",
            "Tool_Observation: I made this up.",
            "Thought: one\nConclusion: two",
            f"Thought: {'x' * 601}",
        ),
        lambda reply: actions.parse_action(reply, tools=TOOLS),
    ),
    Format(
        "source plan",
        plan.source_plan_grammar(),
        (
            "<book> q0 ; q1 </book>\n\n<guideline></guideline>\n\n<research>q</research>\n\n"
            "<wiki></wiki>\n\n<graph>Diabetes Mellitus, Type 2 , first-line drug ; metformin ,"
            " contraindications</graph>",
            "\n\n".join(f"<{s}></{s}>" for s in ("book", "guideline", "research", "wiki", "graph")),
        ),
        (
            "",
            "<book> q0 </book>",
            "<book> a ; b ; c ; d </book>\n\n<guideline></guideline>\n\n<research></research>\n\n"
            "<wiki></wiki>\n\n<graph></graph>",
            "<book></book>\n\n<guideline></guideline>\n\n<research></research>\n\n<wiki></wiki>"
            "\n\n<graph>metformin</graph>",
        ),
        _plan,
    ),
    Format(
        "terms",
        terms_grammar(),
        ("<term>term0 , term1</term>", "<term>Diabetes Mellitus, Type 2</term>"),
        ("<term></term>", "term0 , term1", "<term>a , b , c , d</term>"),
        parse_terms,
    ),
    Format(
        "passage",
        passage_grammar(),
        ("<passage>肾上腺素是首选药物。</passage>", "<passage>your passages, cut short.</passage>"),
        ("", "<passage></passage>", "A passage.", f"<passage>{'x' * 801}</passage>"),
        read_passage,
    ),
    Format(
        "feedback",
        feedback_grammar(),
        (
            "<suggestion>Ask the graph; drop the wiki.</suggestion>\n<score> 3 </score>",
            "<suggestion>改问指南。</suggestion>\n<score> 0 </score>",
        ),
        ("", "<score> 3 </score>", "<suggestion>x</suggestion>\n<score> 6 </score>"),
        read_feedback,
    ),
    Format(
        "verdict",
        verdict_grammar(),
        ("<answer>yes</answer>", "<answer>no</answer>"),
        ("yes", "<answer>yes/no</answer>", "</answer>Yes</answer>", "<answer>maybe</answer>"),
        read_verdict,
    ),
    Format(
        "boxed verdict after reasoning",
        verdict_grammar(boxed=True, reason=80),
        (r"<answer>\boxed{True}</answer>", "It is so.\n<answer>\\boxed{False}</answer>"),
        (r"\boxed{True}", "<answer>True</answer>"),
        read_verdict,
    ),
    Format(
        "letter",
        letter_grammar(CHOICE.letters),
        ("<answer>A</answer>", "<answer>D</answer>"),
        ("A", "<answer>E</answer>", "<answer>A/B/C/…</answer>", "<answer>AB</answer>"),
        _option,
    ),
    Format(
        "logical form",
        form_grammar(longest=80),
        (
            "Retrieval(s=s1:offense[credit card fraud], p=p1: found, o=o1:elements)",
            "Retrieval(s=s1:Medical formula['Fluid Requirement Formula'], p=p1, o=o1)",
            "Retrieval(s=s1, p=p2:time, o=o2:time['The first 24 hours'])",
            "Retrieval(s=s2:BodyParts['Both Lower Limbs (Including the Buttocks)'], p=p3:AreaRatio,"
            " o=o3:AreaRatio)",
            "Retrieval(s=s3:TreatmentPlan['Burn fluid replacement'], p=p5:Colloidal liquid ratio,"
            " o=o5:Colloidal liquid ratio, p.Degree of burn=II∘)",
            "Retrieval(s=s1:disease['Crohn's disease'], p=p1:drug, o=o1:drug, s.ReleaseYear=2002)",
            "Math(content=['o1', 'o2', 'weight=16kg'], target='The amount of colloid fluid to be"
            " administered in the first 24 hours')->math6",
            "Math(content=[o1, o2], target=What's the total amount involved in Zhang's credit card"
            " fraud.)->o3",
            "Deduce(op=extract, content=[o1, Zhang found a wallet on the street…], target=Which"
            " amounts …?)->o2",
            "Output(o3)",
            "Output(A,B)",
        ),
        (
            "",
            "Output #3.",
            "Output()",
            "Retrieval(s=s1, o=o1)",
            "Retrieval(s=s1:film['x'], p=p1, o=o1",
            "Deduce(op=guess, content=['o1'], target='x')->o2",
            "Math(content=['o1'], target='x')",
            "Search(s=s1, p=p1, o=o1)",
        ),
        _form,
    ),
    Format(
        "plan of logical forms",
        plan_grammar(longest=80, thinking=200),
        (HIT_PARADE, f"<think>Two directors are compared.</think>\n\n{HIT_PARADE}"),
        (
            "<answer></answer>",
            HIT_PARADE.removesuffix("</answer>"),
            HIT_PARADE.replace("Step2", "Step3"),
            HIT_PARADE.replace("\nAction2: Retrieval(s=o1, p=p2:deathtime, o=o2:deathtime)", ""),
        ),
        _steps,
    ),
    Format(
        "attempt",
        attempt_grammar("en", reason=60),
        (
            "It is by Melville.\n<answer>\\boxed{Herman Melville}</answer>",
            "I can't answer this question, I need to retrieve external knowledge.",
        ),
        ("Melville", "<answer>Melville</answer>", "I can't answer this question."),
        str,
    ),
    Format(
        "search",
        search_grammar(),
        (
            "<search>Step: The Percentage of TBSA for Both Lower Limbs (Including the Buttocks) in"
            " Children. Action: Retrieval(s=s2, p=p4:BelongTo, o=o4:Crowd['Children'])</search>",
            "<search>Step1: Who?\nAction1: Retrieval(s=s1, p=p1, o=o1)</search>",
        ),
        ("<search>Step1: Who?\nAction1: Retrieval(s=s1, p=p1, o=o1)", "<search>who</search>"),
        read_search,
    ),
    Format(
        "JSON by schema",
        from_schema(Finding.model_json_schema()),
        (
            '{"drug":"Warfarin","dose_mg":7,"share":0.25,"routes":["oral"],"certain":true,'
            '"note":""}',
            '{"drug": "华法林", "dose_mg": 1250,\n "share": null, "routes": [], "certain": false,'
            ' "note": "\\u5e74"}',
        ),
        (
            "",
            "{}",
            '{"drug":"","dose_mg":7,"share":0.25,"routes":[],"certain":true,"note":""}',
            '{"drug":"x","dose_mg":6,"share":0.25,"routes":[],"certain":true,"note":""}',
            '{"drug":"x","dose_mg":1251,"share":0.25,"routes":[],"certain":true,"note":""}',
            '{"drug":"x","dose_mg":7,"share":1.5,"routes":[],"certain":true,"note":""}',
            '{"drug":"x","dose_mg":7,"share":1,"routes":["a","b","c"],"certain":true,"note":""}',
            '{"drug":"x","dose_mg":7 1,"share":1,"routes":[],"certain":true,"note":""}',
        ),
        Finding.model_validate_json,
    ),
]
GOLDEN = [pytest.param(f, t, id=f"{f.name} {i}") for f in FORMATS for i, t in enumerate(f.golden)]
BROKEN = [pytest.param(f, t, id=f"{f.name} {i}") for f in FORMATS for i, t in enumerate(f.broken)]
NAMES = [f.name for f in FORMATS]
DERIVED = {f.name: grammar_texts(f.grammar) for f in FORMATS}


@pytest.mark.parametrize(("form", "text"), GOLDEN)
def test_a_golden_string_is_accepted_and_read(form: Format, text: str) -> None:
    assert form.grammar.accepts(text)
    form.read(text)


@pytest.mark.parametrize(("form", "text"), BROKEN)
def test_a_broken_string_is_refused(form: Format, text: str) -> None:
    assert not form.grammar.accepts(text)


@pytest.mark.parametrize("form", FORMATS, ids=NAMES)
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_whatever_the_grammar_lets_through_is_read(form: Format, data: st.DataObject) -> None:
    text = data.draw(DERIVED[form.name])
    assert form.read(text) == form.read(text)


@pytest.mark.parametrize("form", FORMATS, ids=NAMES)
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_matcher_and_regex_agree(form: Format, data: st.DataObject) -> None:
    text = data.draw(DERIVED[form.name])
    assert form.grammar.accepts(text)
    wanted = regex_of(form.grammar.root)
    assert re.fullmatch(wanted, text)
    cut = data.draw(st.integers(0, len(text)))
    assert form.grammar.accepts_prefix(text[:cut])
    bare = Grammar("as it is", form.grammar.root)  # JSON's free white space is no part of a regex
    assert bare.accepts(text[:cut]) is (re.fullmatch(wanted, text[:cut]) is not None)


@pytest.fixture(scope="module")
def model() -> LlamaCpp:
    try:
        return LlamaCpp(default_gguf(), name="packaged", context=1024)
    except ModelMissing as error:
        pytest.skip(f"the packaged model is not there: {error}")


@pytest.mark.parametrize("form", FORMATS, ids=NAMES)
@pytest.mark.model
async def test_the_engine_compiles_it(model: LlamaCpp, form: Format) -> None:
    one = Sampling(max_tokens=1, top=0, grammar=form.grammar)
    reply = await model.complete([Message("user", "Hello.")], one)
    assert form.grammar.accepts_prefix(reply.text)


def test_a_schema_is_kept_for_servers_that_take_schemas() -> None:
    schema = Finding.model_json_schema()
    assert from_schema(schema).json_schema == json.loads(json.dumps(schema))
    assert letter_grammar(CHOICE.letters).json_schema is None


def test_a_plan_that_we_write_is_one_that_a_model_may_write() -> None:
    written = render_plan(read_plan(HIT_PARADE))
    assert plan_grammar(longest=100).accepts(f"<answer>{written}</answer>")
