"""Statements with the passages that bear them out, with others, and with a word swapped.

Gold are sentences of BioASQ's ideal answers with their questions' snippets (those of one abstract
are a passage), of PubMedQA's conclusions with the abstracts without them, and K-QA's statements
with the physicians' answers. A wrong passage is the nearest by BM25 of another question of the same
set. Swaps change a statement by one thing, by rules that the checks do not share: a number, a drug
or disease for another one, a word for its opposite, "not" put in, any word for one of another
statement.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from math import log
from pathlib import Path

from osler.retrieve import content_terms
from osler.retrieve.entity_names import packaged_names
from osler.text import split_sentences, split_words
from osler.types import Hit, Passage

_LEAST_WORDS = 2
"""Words of content of a statement: "Yes." alone has nothing that a passage could bear out."""
_QUESTIONS = "A_questions"


@dataclass(frozen=True, slots=True)
class Case:
    """A statement beside passages that it cites."""

    set: str
    question: str
    """Its id; dev and test are halves by its hash."""
    asked: str
    text: str
    hits: tuple[Hit, ...]

    @property
    def half(self) -> str:
        return "dev" if draw(self.question, 2) == 0 else "test"


def draw(key: str, n: int) -> int:
    """A number below `n` that depends on the key alone."""
    return int.from_bytes(sha256(key.encode()).digest()[:4]) % n


def make_hit(name: str, title: str, text: str, rank: int = 1) -> Hit:
    return Hit(Passage(f"research:{name}#0", text, "research", title), 1.0, rank, "", "research")


def _statements(set_: str, id: str, asked: str, text: str, hits: Sequence[Hit]) -> Iterator[Case]:
    for start, end in split_sentences(text):
        said = text[start:end]
        if hits and len(content_terms(said)) >= _LEAST_WORDS:
            yield Case(set_, id, asked, said, tuple(hits))


def read_bioasq(data: Path) -> Iterator[Case]:
    titles: dict[str, str] = {}
    with (data / "B_corpora/pubmed/bioasq_snippets.jsonl").open(encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            titles[str(row["PMID"])] = row["title"] or titles.get(str(row["PMID"]), "")
    for name in ("other", "yesno"):
        path = data / _QUESTIONS / f"bioasq/bioasq_{name}_golden.json"
        for row in json.loads(path.read_text(encoding="utf-8"))["questions"]:
            said: dict[str, list[str]] = defaultdict(list)
            for snippet in row["snippets"]:
                said[snippet["document"].rsplit("/", 1)[-1]].append(snippet["text"].strip())
            hits = [
                make_hit(f"pubmed_{id}", titles.get(id, ""), " ".join(texts), rank)
                for rank, (id, texts) in enumerate(said.items(), 1)
            ]
            ideal = row["ideal_answer"]
            text = ideal[0] if isinstance(ideal, list) else ideal
            yield from _statements("BioASQ", row["id"], row["body"], text, hits)


def read_pubmedqa(data: Path) -> Iterator[Case]:
    for name in ("ori_pqal_rest.json", "test_set.json"):
        path = data / _QUESTIONS / "pubmedqa" / name
        for id, row in json.loads(path.read_text(encoding="utf-8")).items():
            hit = make_hit(f"pubmed_{id}", row["QUESTION"], "\n".join(row["CONTEXTS"]))
            yield from _statements("PubMedQA", id, row["QUESTION"], row["LONG_ANSWER"], [hit])


def read_kqa(data: Path) -> Iterator[Case]:
    path = data / _QUESTIONS / "kqa/questions_w_answers.jsonl"
    for n, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        row = json.loads(line)
        hit = make_hit(f"kqa_{n}", row["Question"], row["Free_form_answer"])
        for said in (*row["Must_have"], *row["Nice_to_have"]):
            yield from _statements("K-QA", str(n), row["Question"], said.strip(), [hit])


def read_gold(data: Path) -> list[Case]:
    return [*read_bioasq(data), *read_pubmedqa(data), *read_kqa(data)]


class NearestOther:
    """Of a set's passages the nearest to a statement by BM25 that is not of its question."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self._hits = {hit.passage.id: hit for case in cases for hit in case.hits}
        self._words = {
            id: Counter(split_words(f"{hit.passage.title} {hit.passage.text}"))
            for id, hit in self._hits.items()
        }
        self._holding: dict[str, list[str]] = defaultdict(list)
        for id, words in self._words.items():
            for word in words:
                self._holding[word].append(id)
        self._mean = sum(map(Counter.total, self._words.values())) / max(1, len(self._words))

    def find(self, case: Case) -> Hit:
        own = {hit.passage.id for hit in case.hits}
        scores: dict[str, float] = defaultdict(float)
        for term in content_terms(case.text):
            holding = self._holding.get(term, [])
            rarity = log(1 + (len(self._hits) - len(holding) + 0.5) / (len(holding) + 0.5))
            for id in holding:
                times, length = self._words[id][term], self._words[id].total()
                scores[id] += (
                    rarity * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * length / self._mean))
                )
        return self._hits[min(self._hits.keys() - own, key=lambda id: (-scores.get(id, 0.0), id))]


_OPPOSITES = """
increase decrease|increases decreases|increased decreased|increasing decreasing|higher lower
high low|more less|greater smaller|improve worsen|improves worsens|improved worsened
effective ineffective|safe unsafe|with without|before after|agonist antagonist
agonists antagonists|inhibitor activator|inhibitors activators|inhibits activates
inhibit activate|positive negative|upregulated downregulated|reduce raise|reduces raises
reduced raised|reduction rise|early late|better worse|longer shorter|gain loss|common rare
prevent cause|prevents causes|superior inferior|benefit harm|large small|acute chronic
mild severe|most few|always never|presence absence|activation inhibition
hyperglycemia hypoglycemia|hypertension hypotension|similar different|first last
""".replace("\n", "|")
_OPPOSITE = {
    word: other
    for pair in filter(None, _OPPOSITES.split("|"))
    for word, other in (pair.split(), reversed(pair.split()))
}
_WORD = re.compile(r"[A-Za-z]+(?:-[A-Za-z]+)*")
_NUMBER = re.compile(r"(?<![\w.,-])\d+(?:\.\d+)?(?![\w,-]|\.\d)")
_DENIES = re.compile(r"\b(?:not|no|never|without|neither|nor|only)\b", re.IGNORECASE)
_VERB = re.compile(r"\b(?:is|are|was|were|can|may|should|has been|have been|does|do|did|will)\b")


def _put_in(text: str, match: re.Match[str], other: str) -> str:
    return text[: match.start()] + other + text[match.end() :]


def _pick(text: str, found: Sequence[re.Match[str]]) -> re.Match[str] | None:
    return found[draw(text, len(found))] if found else None


def swap_number(text: str, _: Swapper) -> str | None:
    match = _pick(text, list(_NUMBER.finditer(text)))
    if match is None:
        return None
    value = float(match[0]) or 1.0
    other = (value * 2, value + 1, value * 10, value + 7, value / 2)[draw(f"n{text}", 5)]
    return _put_in(text, match, f"{other:.{len(match[0].partition('.')[2])}f}")


def swap_name(text: str, swapper: Swapper) -> str | None:
    """A drug, disease or test of the packaged names for another of its kind."""
    found = [one for one in packaged_names().find_entities(text) if one.written in text]
    if not found:
        return None
    one = found[draw(text, len(found))]
    others = [
        name
        for name in swapper.names[one.kind]
        if not {name.casefold()} & {each.casefold() for each in one.names}
        and name.casefold() not in text.casefold()
    ]
    return text.replace(one.written, others[draw(f"e{text}", len(others))]) if others else None


def reverse_direction(text: str, _: Swapper) -> str | None:
    match = _pick(text, [m for m in _WORD.finditer(text) if m[0].casefold() in _OPPOSITE])
    return match and _put_in(text, match, _OPPOSITE[match[0].casefold()])


def add_negation(text: str, _: Swapper) -> str | None:
    match = _VERB.search(text)
    # Denied once more, it may be the same again.
    if match is None or _DENIES.search(text):
        return None
    return _put_in(text, match, f"{match[0]} not")


def swap_word(text: str, swapper: Swapper) -> str | None:
    """Any word of content for one of another statement of the set."""
    words = [m for m in _WORD.finditer(text) if content_terms(m[0]) and len(m[0]) > 3]
    match = _pick(text, words)
    others = [word for word in swapper.words if word.casefold() not in text.casefold()]
    return match and _put_in(text, match, others[draw(f"w{text}", len(others))])


@dataclass(frozen=True)
class Swapper:
    """What a set's statements offer to put in a word's place."""

    names: dict[str, list[str]]
    words: list[str]

    @classmethod
    def of_cases(cls, cases: Sequence[Case]) -> Swapper:
        names: dict[str, set[str]] = defaultdict(set)
        words: set[str] = set()
        for case in cases:
            words |= {m[0] for m in _WORD.finditer(case.text) if len(m[0]) > 3}
            for one in packaged_names().find_entities(case.text):
                names[one.kind].add(one.written)
        words = {word for word in words if content_terms(word)}
        return cls({kind: sorted(each) for kind, each in names.items()}, sorted(words))


SWAPS: dict[str, Callable[[str, Swapper], str | None]] = {
    "number": swap_number,
    "name": swap_name,
    "direction": reverse_direction,
    "negation": add_negation,
    "any word": swap_word,
}


def make_swaps(cases: Sequence[Case]) -> dict[str, list[Case]]:
    """Each kind's cases, a statement at most once in each."""
    made: dict[str, list[Case]] = {kind: [] for kind in SWAPS}
    swapper = Swapper.of_cases(cases)
    for case in cases:
        for kind, change in SWAPS.items():
            text = change(case.text, swapper)
            if text is not None and text != case.text:
                made[kind].append(replace(case, text=text))
    return made


def make_wrong(cases: Sequence[Case]) -> list[Case]:
    """Each statement beside the nearest passage of another question."""
    nearest = NearestOther(cases)
    return [replace(case, hits=(nearest.find(case),)) for case in cases]
