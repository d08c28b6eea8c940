"""Plans of `decompose.py` as the adapter has them: letters for names, a line for a plan.

`Which film has the director born first, X or Y?` becomes `earliest X Y director > date of birth`;
two chains of their own are `without X side effects ; Y symptoms`. So a name is copied by its
letter, and a grammar of what a plan may be leaves only letters that the question has.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from decompose_plans import OPERATIONS, Plan, Step

from osler.llm.core.grammar import Grammar, Node, alt, lit, repeat, seq

LETTERS = "XYZVW"
LONGEST = 3
"""Relations of a chain."""
_PART = re.compile(rf"([{LETTERS}](?: [{LETTERS}])*) (\S.*)")


def name_letters(question: str, known: Iterable[str] = ()) -> dict[str, str]:
    """Letter -> name as the question spells it: the known names in it, the longest first, else runs
    of capitalised words."""
    found: list[tuple[int, int]] = []
    low = question.casefold()
    for name in sorted((it for it in known if it.casefold() in low), key=len, reverse=True):
        edge = "" if not name.isascii() else r"(?<![A-Za-z0-9])"
        case = 0 if name.isupper() else re.IGNORECASE
        match = re.search(edge + re.escape(name) + edge.replace("?<!", "?!"), question, case)
        if match and all(match.end() <= a or match.start() >= b for a, b in found):
            found.append(match.span())
    if not found:
        found = _capitalised_runs(question)
    return {letter: question[a:b] for letter, (a, b) in zip(LETTERS, sorted(found), strict=False)}


def _capitalised_runs(question: str) -> list[tuple[int, int]]:
    """Runs of words that begin with a capital or a digit, without the question's first word."""
    runs: list[tuple[int, int]] = []
    goes_on = False
    for word in list(re.finditer(r"\S+", question))[1:]:
        bare = word[0].strip("\"'“”‘’(),?!.:;–-&")
        if not (goes_on if not bare else not bare[0].islower()):
            goes_on = False
            continue
        tail = re.search(r"(?:['’]s)?[?,]*$", word[0])
        end = word.end() - len(tail[0] if tail else "")
        if goes_on:
            runs[-1] = (runs[-1][0], end)
        else:
            runs.append((word.start(), end))
        goes_on = re.search(r"['’]s\??$", word[0]) is None  # "X's father": the name ends
    return runs


def mask_names(question: str, letters: Mapping[str, str]) -> str:
    for letter, name in letters.items():
        question = question.replace(name, letter, 1)
    return " ".join(question.split())


def write_line(plan: Plan, letters: Mapping[str, str]) -> str:
    """The plan's line; "" for one that has no such line."""
    chains: list[tuple[str, list[str]]] = []
    for n, step in enumerate(plan.steps):
        if step.subject == f"#{n}" and chains:
            chains[-1][1].append(step.relation)
        elif letter := letter_of(step.subject, letters):
            chains.append((letter, [step.relation]))
        else:
            return ""
    if len(chains) != (2 if plan.operation not in ("", "count") else 1):
        return ""
    told = [" > ".join(chain) for _, chain in chains]
    if len(set(told)) == 1:
        parts = [" ".join(letter for letter, _ in chains) + f" {told[0]}"]
    else:
        parts = [f"{letter} {chain}" for (letter, _), chain in zip(chains, told, strict=True)]
    return " ".join(filter(None, [plan.operation, " ; ".join(parts)]))


def letter_of(subject: str, letters: Mapping[str, str]) -> str:
    """The letter of the name that has the most words of this one; "" where none has any."""
    words = set(re.findall(r"\w+", subject.casefold()))
    shares = {x: len(words & set(re.findall(r"\w+", n.casefold()))) for x, n in letters.items()}
    best = max(shares, key=lambda x: (shares[x], -len(letters[x])), default="")
    return best if best and shares[best] else ""


def read_line(line: str, letters: Mapping[str, str]) -> Plan | None:
    """The plan of a line, with the names for the letters; `None` for a line that is no plan."""
    word, _, rest = line.strip().partition(" ")
    operation, rest = (word, rest) if word in OPERATIONS else ("", line.strip())
    steps: list[Step] = []
    ends: list[int] = []
    for part in rest.split(" ; "):
        match = _PART.fullmatch(part)
        if not match or not set(match[1].split()) <= letters.keys():
            return None
        for letter in match[1].split():
            subject = letters[letter]
            for relation in match[2].split(" > "):
                steps.append(Step(subject, relation))
                subject = f"#{len(steps)}"
            ends.append(len(steps))
    if len(ends) != (2 if operation not in ("", "count") else 1):
        return None
    return Plan(tuple(steps), operation, tuple(ends) if operation else ())


def read_relations(line: str) -> set[str]:
    """The relations that a line names."""
    plan = read_line(line, dict(zip(LETTERS, LETTERS, strict=True)))
    return {step.relation for step in plan.steps} if plan else set()


def seen_grammar(letters: Collection[str], lines: Iterable[str]) -> Grammar | None:
    """Lines that training has, whole, of the question's letters; `None` where it has none."""
    fit = [line for line in lines if set(re.findall(r"\b[A-Z]\b", line)) <= set(letters)]
    return Grammar("plan", alt(*map(lit, sorted(fit)))) if fit else None


def plan_grammar(letters: Collection[str], relations: Sequence[str]) -> Grammar:
    """Lines of the letters that the question has and relations of the closed list."""
    letter, relation = alt(*map(lit, letters)), alt(*map(lit, relations))
    chain = seq(relation, repeat(seq(lit(" > "), relation), 0, LONGEST - 1))
    part = seq(letter, lit(" "), chain)
    kinds: list[Node] = [part, seq(lit("count "), part)]
    if len(letters) > 1:
        two = [word for word in OPERATIONS if word != "count"]
        both = alt(seq(letter, lit(" "), part), seq(part, lit(" ; "), part))
        kinds.append(seq(alt(*map(lit, two)), lit(" "), both))
    return Grammar("plan", alt(*kinds))
