"""Questions of `decompose.py` with their plans: those trained on, and those held out."""

from __future__ import annotations

import argparse
import json
import random
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import multihop
from decompose_letters import mask_names, name_letters, read_relations, write_line
from decompose_plans import Plan, Step, read_plan
from gold_plans import split_chains
from graph_questions import make_cases
from graph_templates import SETS, Relations, read_hetionet, read_sample

from osler.llm.core.base import Message

OTHER = 0.3
"""Share of the questions about two phrases in which the two are of two relations."""
PHRASES = tomllib.loads(Path(__file__).with_name("decompose_phrases.toml").read_text("utf-8"))
RELATIONS: dict[str, dict[str, Any]] = PHRASES["relation"]
DEV = {"2wiki": 60, "phrases en": 30, "phrases zh": 30}
"""Questions of each set that no training has, to choose by."""
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
        for name, *predicates in dict.fromkeys(map(name_and_relations, join_chains(facts))):
            subject = in_question(name, row["question"])
            for predicate in predicates:
                steps.append(Step(subject, predicate))
                subject = f"#{len(steps)}"
            ends.append(len(steps))
        plan = Plan(tuple(steps))
        if len(ends) > 1:
            plan = Plan(tuple(steps), compared(row["question"]), tuple(ends))
        yield Case("2wiki", row["id"], row["question"], str(row["answer"]), plan.write(), facts)


def join_chains(facts: Sequence[tuple[str, str, str]]) -> list[list[tuple[str, str, str]]]:
    """The chains, also where "Steno" of one triple is "Steno (director)" of the next."""
    spelt = {bare_name(subject): subject for subject, _, _ in facts}
    return split_chains([(s, p, spelt.get(bare_name(o), o)) for s, p, o in facts])


def bare_name(name: str) -> str:
    return re.sub(r"\s*\([^)]*\)", "", name).casefold()


def name_and_relations(chain: Sequence[tuple[str, str, str]]) -> tuple[str, ...]:
    return chain[0][0], *(predicate for _, predicate, _ in chain)


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


def ask_message(question: str, letters: Mapping[str, str]) -> list[Message]:
    return [Message("system", "Steps."), Message("user", mask_names(question, letters))]


def known_names(graphs: dict[str, tuple[Relations, dict[str, str]]]) -> tuple[str, ...]:
    """Of all graphs, in both languages."""
    names: set[str] = set()
    for relations, told in graphs.values():
        for kind in {kind for kinds in POOLS.values() for kind in kinds}:
            names |= set(relations.pools.get(kind, ()))
        names |= set(told.values())
    return tuple(name for name in names if len(name) > 1)


def letters_of(case: Case, known: Sequence[str]) -> dict[str, str]:
    of_graph = case.graph or case.set.startswith("phrases")
    return name_letters(case.question, known if of_graph else ())


def line_of(case: Case, known: Sequence[str]) -> str:
    """The plan as it is learnt; "" for one that has no line."""
    plan = read_plan(case.plan, case.plan)
    return write_line(plan, letters_of(case, known)) if plan else ""


def write_data(given: argparse.Namespace) -> None:
    """`data.jsonl` to train on, `dev.jsonl` to choose by, and `held.jsonl`."""
    graphs = read_graphs(given.data)
    known = known_names(graphs)
    held = [*wiki_cases(given.data, "test"), *musique_cases(given.data, "test")]
    held += template_cases(graphs, given.seed)
    barred = "\n".join(case.question for case in held)
    rest = [*wiki_cases(given.data, "dev"), *musique_cases(given.data, "dev")]
    rest += phrase_cases(graphs, given.phrases, given.seed, barred)
    apart = {case.question.casefold() for case in held}
    rest = [case for case in rest if case.question.casefold() not in apart and line_of(case, known)]
    random.Random(given.seed).shuffle(rest)
    by_set: dict[str, list[Case]] = {}
    for case in rest:
        by_set.setdefault(case.set, []).append(case)
    dev = [case for name, of in by_set.items() for case in of[: DEV.get(name, 0)]]
    train = [case for case in rest if case not in dev]
    lines = []
    for case in train:
        messages = ask_message(case.question, letters_of(case, known))
        told = [{"role": one.role, "content": one.content} for one in messages]
        lines.append({"id": case.id, "messages": told, "completion": line_of(case, known)})
    relations = sorted({r for one in lines for r in read_relations(str(one["completion"]))})
    given.work.mkdir(parents=True, exist_ok=True)
    (given.work / "relations.json").write_text(json.dumps(relations), encoding="utf-8")
    parts = {"data": lines, "dev": list(map(asdict, dev)), "held": list(map(asdict, held))}
    for name, rows in parts.items():
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (given.work / f"{name}.jsonl").write_text(text, encoding="utf-8")
    for of in (train, dev, held):
        names = [case.set for case in of]
        print({name: names.count(name) for name in sorted(set(names))})
