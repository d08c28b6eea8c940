"""One prompt, one caller; languages side by side; rendered wordings are golden."""

import ast
import re
from functools import cache
from itertools import product
from pathlib import Path

import pytest

import house
from osler.extract.items import medicine_schema
from osler.methods.omni.planners import SourceDescription
from osler.methods.tcrag.tools import DOC_RAG, KG_RAG, describe_tool
from osler.prompts import load_prompt, render_prompt
from osler.sources.catalogue import BOOK, GRAPH
from osler.types import CITATION_MARK, Language, citation_mark

ROOT = Path(__file__).parents[2]
PROMPTS = [home / "prompts" for home in house.PACKAGES.values() if (home / "prompts").is_dir()]
GOLDEN = ROOT / "tests" / "golden" / "prompts"
LANGUAGES: tuple[Language, ...] = ("en", "zh")
NAMES = sorted(
    str(path.relative_to(folder)).removesuffix(".md")
    for folder in PROMPTS
    for path in folder.rglob("*.md")
    if not path.name.endswith(".zh.md")
)


@cache
def strings() -> dict[str, set[str]]:
    """Patterns of whole strings in the sources, to the files that have them; what an f-string
    fills in is one word."""
    found: dict[str, set[str]] = {}
    for file in house.read_sources():
        for node in file.nodes:
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            told = [part.value if isinstance(part, ast.Constant) else None for part in parts]
            if isinstance(told[0], str):
                pattern = "".join(r"\w+" if one is None else re.escape(str(one)) for one in told)
                found.setdefault(pattern, set()).add(file.name)
    return found


def callers(name: str) -> set[str]:
    """Source files with the prompt's name as a whole string, or as one that an f-string makes."""
    room = re.escape(name.partition("/")[0])
    named = {re.escape(name)} | {one for one in strings() if one.startswith(f"{room}/")}
    return set().union(*(strings().get(one, ()) for one in named if re.fullmatch(one, name)))


@pytest.mark.parametrize("name", NAMES)
def test_a_prompt_has_one_caller(name: str) -> None:
    assert len(callers(name)) == 1


@pytest.mark.parametrize("name", NAMES)
def test_chinese_stands_beside_english_with_the_same_variables(name: str) -> None:
    assert load_prompt(name, "en").variables == load_prompt(name, "zh").variables


def example(name: str, language: Language) -> dict[str, object]:
    question = "Which drug is given first?" if language == "en" else "首选什么药物？"
    options = [("A", "adrenaline"), ("B", "aspirin")]
    documents = ["[1] Anaphylaxis: Adrenaline is given first."]
    tools = (DOC_RAG, KG_RAG)
    described = [{"name": name, "description": describe_tool(name, language)} for name in tools]
    values: dict[str, object] = {
        "question": question,
        "options": options,
        "documents": documents,
        "tools": described,
        "names": "DOC_RAG, KG_RAG",
        "summary": True,
        "backtrack": True,
        "input": True,
        "json": False,
        "tool": DOC_RAG,
        "wrong": "expected a whole number, got 'three'",
        "thought": False,
        "limit": 500,
        "answer": "adrenaline" if language == "en" else "肾上腺素",
        "references": ["Anaphylaxis: Adrenaline is given first.", "Tea: Tea is a drink."],
        "known": ["#1 Which illness is it? anaphylaxis"],
        "asked": ["Which drug treats it?"],
        "reason": "Reference 1 is about tea.",
        "op": "choice",
        "content": ["o1 = adrenaline", "weight=16kg"],
        "target": "the first drug",
        "formulas": [{"id": "parkland", "title": "Parkland", "inputs": "weight (kg)"}],
        "lacking": "numpy, sympy",
        "query": "Who treats #1?",
        "filled": "Who treats anaphylaxis?",
        "steps": ["#1 Which illness is it? anaphylaxis"],
        "draft": "Adrenaline. [1]",
        "size": 23,
        "concepts": ["Anaphylaxis", "Adrenaline"],
        "definitions": [("Anaphylaxis", "A severe allergic reaction.")],
        "relations": ["Adrenaline —treats→ Anaphylaxis"],
        "sources": [
            {
                "name": offer.name,
                "description": offer.describe_in(language),
                "graph": offer.is_graph,
            }
            for offer in (
                SourceDescription(BOOK),
                SourceDescription(GRAPH),
                SourceDescription("notes", ("Ward rules",)),
            )
        ],
        "at_most": 3,
        "step": "Step1: Which drug treats anaphylaxis?\nAction1: Retrieval(s=s1, p=p1, o=o1)",
        "last": "Step2: Output #1\nAction2: Output(o1)",
        "feedback": [{"plan": "<book> adrenaline </book>", "score": 2, "suggestion": "Ask dose."}],
        "source": BOOK,
        "description": SourceDescription(BOOK).describe_in(language),
        "first": "Step1: Which illness is it?\nanaphylaxis",
        "second": "Step1: Name the illness.\nanaphylaxis",
        "reference": "Adrenaline into the thigh.",
        "prediction": "Adrenaline.",
        "golds": ["adrenaline", "epinephrine"],
        "gold": "A. adrenaline",
        "queries": 6,
        "sentence": "Adrenaline is given first.",
        "text": "DOC_RAG: [1] Anaphylaxis: Adrenaline is given first.",
    }
    values |= {
        "types": [kind.describe_in(language) for kind in medicine_schema().entity[:2]],
        "kinds": [kind.describe_in(language) for kind in medicine_schema().knowledge],
        "entities": ["adrenaline", "anaphylaxis"],
        "sentences": ["Adrenaline is given first.", "It may cause tremor."],
        "predicates": ["is used to treat"],
        "passages": ["Anaphylaxis.\nAdrenaline is given first.", "Allergy.\nItch is relieved."],
        "statements": ["Adrenaline comes first.", "It is given into a vein."],
        "title": "Anaphylaxis",
    }
    values |= {
        "exam_type": "医师考试",
        "exam_class": "执业医师",
        "exam_subject": "内科",
        "question_type": "单项选择题",
    }
    values |= {
        "reasoning": "Adrenaline is the usual first drug.",
        "enough": False,
        "following": "Which drug treats anaphylaxis?",
        "dimension": "security",
        "about": "Is it safe to train on?",
        "earlier": ["What is anaphylaxis?" if language == "en" else "什么是过敏性休克？"],
        "transcript": "[user]\nWhich drug is given first?\n\n[assistant]\nAdrenaline.",
        "aspects": [("content", "nothing improper"), ("privacy", "no personal data")],
    }
    if name == "omni/feedback":  # documents by query
        found = {"source": BOOK, "query": "adrenaline", "texts": documents}
        values["documents"] = [found, {"source": GRAPH, "query": "adrenaline", "texts": []}]
    return {key: values[key] for key in load_prompt(name, language).variables}


def golden(name: str, language: Language) -> Path:
    return GOLDEN / f"{name.replace('/', '.')}.{language}.txt"


def rendered(name: str, language: Language) -> str:
    return render_prompt(name, language, **example(name, language)).text + "\n"


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", NAMES)
def test_a_change_of_wording_shows_up_as_words(name: str, language: Language) -> None:
    """Write the files anew with `python tests/house/test_prompt_house.py` when it is meant."""
    assert rendered(name, language) == golden(name, language).read_text(encoding="utf-8")


if __name__ == "__main__":
    for prompt, spoken in product(NAMES, LANGUAGES):
        golden(prompt, spoken).write_text(rendered(prompt, spoken), encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_prompts_write_citations_as_answers_do(name: str) -> None:
    for language in LANGUAGES:
        marks = CITATION_MARK.finditer(load_prompt(name, language).body)
        assert all(mark[0].strip() == citation_mark(int(mark[1])) for mark in marks)


def test_no_prompt_writes_a_citation_mark_itself() -> None:
    """The form of a citation has one home, `osler.types`; prompts write `{{ cite(1) }}`."""
    folder = ROOT / "src" / "osler" / "prompts"
    literal = re.compile(r"(?<![\w\]])\[\d\]")
    assert [p.name for p in folder.rglob("*.md") if literal.search(p.read_text("utf-8"))] == []
