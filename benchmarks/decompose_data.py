"""Questions of `decompose.py` with their plans: those trained on, and those held out."""

from __future__ import annotations

import argparse
import json
import random
import re
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import multihop
from decompose_plans import Plan, Step
from gold_plans import split_chains
from graph_questions import make_cases
from graph_templates import SETS, Relations, read_hetionet, read_sample

from osler.llm.core.base import Message

OTHER = 0.3
"""Share of the questions about two phrases in which the two are of two relations."""
PHRASES = tomllib.loads(Path(__file__).with_name("decompose_phrases.toml").read_text("utf-8"))
RELATIONS: dict[str, dict[str, Any]] = PHRASES["relation"]
POOLS = {"C": ("Compound", "Drug"), "D": ("Disease",), "G": ("Gene",), "S": ("Symptom",)}


@dataclass(frozen=True)
class Case:
    set: str
    id: str
    question: str
    answer: Any
    """A text of the two sets of texts; names, a number or a truth of the graphs."""
    plan: str = ""
    facts: tuple[tuple[str, str, str], ...] = ()
    graph: str = ""


def in_question(name: str, question: str) -> str:
    """The name as the question spells it."""
    at = question.casefold().find(name.casefold())
    return question[at : at + len(name)] if at >= 0 else name


def wiki_cases(data: Path, part: str) -> Iterator[Case]:
    folder = data / "A_questions" / "multihop" / "2wikimultihopqa"
    items = multihop.items_2wiki(folder)[0]
    held = {item.id for item in multihop.chosen("2wiki", items, "test", 1000)}
    for row in json.loads((folder / "questions.json").read_text("utf-8")):
        if (row["id"] in held) != (part == "test"):
            continue
        facts = tuple((str(s), str(p), str(o)) for s, p, o in row["evidence"])
        steps: list[Step] = []
        ends = []
        for chain in split_chains(list(facts)):
            subject = in_question(chain[0][0], row["question"])
            for _, predicate, _ in chain:
                steps.append(Step(subject, predicate))
                subject = f"#{len(steps)}"
            ends.append(len(steps))
        plan = Plan(tuple(steps))
        if len(ends) > 1:
            plan = Plan(tuple(steps), compared(row["question"]), tuple(ends))
        yield Case("2wiki", row["id"], row["question"], str(row["answer"]), plan.write(), facts)


def compared(question: str) -> str:
    if re.search(r"\b(?:same|both|share)\b", question, re.IGNORECASE):
        return "same"
    later = r"\b(?:later|last|younger|recent(?:ly)?|latest|newer)\b"
    return "latest" if re.search(later, question, re.IGNORECASE) else "earliest"


def musique_cases(data: Path, part: str) -> Iterator[Case]:
    folder = data / "A_questions" / "multihop" / "musique"
    items = multihop.items_musique(folder)[0]
    wanted = {item.id for item in multihop.chosen("musique", items, part, 1000)}
    for row in json.loads((folder / "qa_train.json").read_text("utf-8")):
        if row["id"] not in wanted:
            continue
        steps, facts, found = [], [], [""]
        for one in row["question_decomposition"]:
            subject, _, relation = one["question"].rpartition(" >> ")
            name = subject if subject.startswith("#") else in_question(subject, row["question"])
            steps.append(Step(name, relation))
            filled = one["question"]
            for n, answer in enumerate(found):
                filled = filled.replace(f"#{n}", answer)
            subject, _, relation = filled.rpartition(" >> ")
            facts.append((subject, relation, str(one["answer"])))
            found.append(str(one["answer"]))
        plan = Plan(tuple(steps)).write()
        yield Case("musique", row["id"], row["question"], row["answer"], plan, tuple(facts))


def read_graphs(data: Path) -> dict[str, tuple[Relations, dict[str, str]]]:
    with as_file(files("osler.sample") / "graph") as folder:
        sample = read_sample(folder)
    return {"sample": sample, "hetionet": (read_hetionet(data / "C_graphs" / "hetionet"), {})}


def template_cases(
    graphs: dict[str, tuple[Relations, dict[str, str]]], seed: int
) -> Iterator[Case]:
    """100 of each language; wordings and names that no training has."""
    made: dict[str, list[Case]] = {"en": [], "zh": []}
    for _, sample, hetionet, _ in SETS.values():
        for name, own in (("sample", sample), ("hetionet", hetionet)):
            relations, told = graphs[name]
            for case in make_cases(name, own, relations, told, seed, 4):
                answer = sorted(case.answer) if isinstance(case.answer, set) else case.answer
                id = f"{name}-{case.question.text}"
                made[case.question.language].append(
                    Case(
                        f"templates {case.question.language}",
                        id,
                        case.question.text,
                        answer,
                        graph=name,
                    )
                )
    chance = random.Random(seed)
    for cases in made.values():
        yield from chance.sample(cases, min(100, len(cases)))


def phrase_cases(
    graphs: dict[str, tuple[Relations, dict[str, str]]], n: int, seed: int, barred: str
) -> Iterator[Case]:
    """Questions of our own phrases; none has a name that the held-out ones have."""
    chance = random.Random(seed)
    count = 0
    while count < n:
        language = chance.choice(["en", "zh"])
        relations, told = graphs[chance.choice(["sample", "hetionet"])]
        operation = chance.choice(["", "", "", *list(PHRASES["ask"])[1:]])
        phrases, steps, ends = [], [], []
        for chain in draw_chains(operation, chance):
            kind = RELATIONS[chain[0]]["types"][0]
            pool = next((p for p in POOLS[kind] if p in relations.pools), "")
            if not pool:
                break
            name = chance.choice(relations.pools[pool])
            said = subject = told.get(name, name) if language == "zh" else name
            for word in chain:
                said = chance.choice(RELATIONS[word][language]).format(said)
                steps.append(Step(subject, word))
                subject = f"#{len(steps)}"
            phrases.append(said)
            ends.append(len(steps))
        two = operation not in ("", "count")
        if len(phrases) != 1 + two or any(s.subject in barred for s in steps):
            continue
        text = chance.choice(PHRASES["ask"][operation][language]).format(*phrases)
        plan = Plan(tuple(steps), operation, tuple(ends) if operation else ())
        count += 1
        text = text[0].upper() + text[1:]
        yield Case(f"phrases {language}", f"phrase-{count}", text, None, plan.write())


def draw_chains(operation: str, chance: random.Random) -> list[list[str]]:
    """One chain of up to two relations, or two of one relation that end in the same kind."""
    said = sorted(word for word, one in RELATIONS.items() if "types" in one)
    types = {word: RELATIONS[word]["types"] for word in said}
    chain = [chance.choice(said)]
    if operation in ("", "count"):
        if not operation and types[chain[0]][1] != "-":
            chain.append(chance.choice([w for w in said if types[w][0] == types[chain[0]][1]]))
        return [chain]
    other = chain[0]
    if chance.random() < OTHER:
        other = chance.choice([w for w in said if types[w][1] == types[chain[0]][1]])
    return [chain, [other]]


def ask_message(question: str) -> list[Message]:
    return [Message("system", "Steps."), Message("user", question)]


def write_data(given: argparse.Namespace) -> None:
    graphs = read_graphs(given.data)
    held = [*wiki_cases(given.data, "test"), *musique_cases(given.data, "test")]
    held += template_cases(graphs, given.seed)
    barred = "\n".join(case.question for case in held)
    train = [*wiki_cases(given.data, "dev"), *musique_cases(given.data, "dev")]
    train += phrase_cases(graphs, given.phrases, given.seed, barred)
    apart = {case.question.casefold() for case in held}
    train = [case for case in train if case.question.casefold() not in apart]
    random.Random(given.seed).shuffle(train)
    lines = [
        {
            "id": case.id,
            "messages": [
                {"role": m.role, "content": m.content} for m in ask_message(case.question)
            ],
            "completion": case.plan,
        }
        for case in train
    ]
    given.work.mkdir(parents=True, exist_ok=True)
    for name, rows in (("data", lines), ("held", list(map(asdict, held)))):
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (given.work / f"{name}.jsonl").write_text(text, encoding="utf-8")
    sets = [case.set for case in train], [case.set for case in held]
    for names in sets:
        print({name: names.count(name) for name in sorted(set(names))})
