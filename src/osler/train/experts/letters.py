"""Letters of patients that name the subject of a page, for questions of many sentences.

LiveQA's training and development messages (in Omni-RAG's data, Apache-2.0) seldom have their
answer in MedQuAD. One that names a page's subject is taken for a question about that page, and is
used again with the subjects of other pages in its place. The test letters are other ones.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random

from osler.evaluate.datasets.base import read_json
from osler.train.experts.pair_questions import MEDQUAD, find_data_file, read_medquad_pages
from osler.train.experts.searches import SearchQuestion
from osler.train.experts.splits import DataSplit, Part, hash_of

LETTERS = "letters"
LICENCE = "Apache-2.0"
_FILES = ("train_long.json", "dev_long.json")
_SWAPS = 3
_LONGEST = 150
"""Words of a letter that is used."""
_SHORTEST = 8
"""Characters of a subject of one word: "pain" is the subject of no one page."""
_WORDS = 8
"""Words of a subject that are looked for."""
_WORD = re.compile(r"[^\W_]+")


def read_letters(data: Path, split: DataSplit, seed: int) -> dict[Part, list[SearchQuestion]]:
    """Letters about train and dev pages. A letter's text is used in one part alone."""
    pages = _subject_pages(data, split)
    named = {_fold(subject): subject for subject in pages}
    found: dict[Part, list[SearchQuestion]] = {"train": [], "dev": []}
    for number, text in enumerate(_written(data)):
        place = _find_subject(text, named.keys())
        if place is None:
            continue
        part: Part = "dev" if int(hash_of(text), 16) % 5 == 0 else "train"
        subjects = [subject for subject in sorted(pages) if pages[subject][0] == part]
        own = named[_fold(text[slice(*place)])]
        chosen = Random(f"{seed}:{number}").sample(subjects, min(_SWAPS, len(subjects)))
        for subject in dict.fromkeys([*([own] if pages[own][0] == part else []), *chosen]):
            swapped = text[: place[0]] + subject + text[place[1] :]
            gold = pages[subject][1]
            id = f"{LETTERS}:{number}:{subject}"
            found[part].append(SearchQuestion(id, swapped, LETTERS, (), frozenset(gold)))
    return found


def _subject_pages(data: Path, split: DataSplit) -> Mapping[str, tuple[Part | None, list[str]]]:
    """Part and answers of each subject that tells a page."""
    found: dict[str, tuple[Part | None, list[str]]] = {}
    for page in read_medquad_pages(data):
        words = _WORD.findall(page.focus)
        if not words or (len(words) == 1 and len(page.focus) < _SHORTEST):
            continue
        part = split.parts.get(hash_of(f"{MEDQUAD}:{page.id}"))
        _, answers = found.setdefault(page.focus, (part, []))
        answers += [f"{page.id}_Sec{number}" for number, *_ in page.pairs]
    return found


def _written(data: Path) -> Iterator[str]:
    for path in filter(None, (find_data_file(data, name) for name in _FILES)):
        for one in read_json(path):
            text = " ".join(one["question"].split())
            if one["name"] == "liveqa" and len(text.split()) <= _LONGEST:
                yield text


def _find_subject(text: str, subjects: Collection[str]) -> tuple[int, int] | None:
    """Where the longest subject stands; the first of equally long ones."""
    spans: Sequence[tuple[int, int]] = [match.span() for match in _WORD.finditer(text)]
    for length in range(min(_WORDS, len(spans)), 0, -1):
        for first in range(len(spans) - length + 1):
            start, end = spans[first][0], spans[first + length - 1][1]
            if _fold(text[start:end]) in subjects:
                return start, end
    return None


def _fold(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))
