"""The passages, questions and vectors that every engine of the comparison gets.

    python benchmarks/speed/peers/texts.py DATA FOLDER [PASSAGES]

Reads MedQuAD, PubMed, textbooks, guidelines, articles and Wikipedia from DATA through Osler's own
parsers, and 500 questions of PubMedQA and BioASQ, whose gold is the passages of the articles that
they name. What is missing to PASSAGES (default 50,000) is made: the first half of one real passage
that answers no question before the second half of another, with the mean of their vectors; so its
words and its neighbours are those of real texts.

FOLDER gets `passages.jsonl` (id, title, content), `questions.json` (question, ids of the gold),
`vectors.npy` and `queries.npy` (float32, of length 1, 384 numbers). The encoder's rate is printed:
it is the same for every engine. None of it belongs into the repository.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import MiniLMEncoder, scale_to_unit
from osler.kb.ingest.chunk import document_passages
from osler.kb.store.passages import indexed_text
from osler.sources.discover import discover
from osler.sources.reading import read_records
from osler.sources.records import Document, Drop
from osler.types import Passage

FOLDERS = ("pubmed", "medquad", "textbooks", "guidelines", "jats_nxml", "wikipedia")
PUBMEDQA = ("ori_pqal_rest.json", "test_set.json")
BIOASQ = ("bioasq_other_golden.json", "bioasq_yesno_golden.json")
EACH = 250
"""Questions of each of the two sets."""
SPARE = 1_000
"""Passages made beyond what is wanted, since some are dropped."""

Floats = npt.NDArray[np.float32]


def read_passages(data: Path) -> list[Passage]:
    """Each different text of the corpora once, of 80 characters at least."""
    found: dict[str, Passage] = {}
    for folder in FOLDERS:
        for file in discover([data / "B_corpora" / folder]):
            if isinstance(file, Drop):
                continue
            for record in read_records(file):
                if isinstance(record, Document) and record.language == "en":
                    for passage in document_passages(record, "web"):
                        if len(passage.text) >= 80:
                            found.setdefault(passage.text, passage)
    return list(found.values())


def read_questions(data: Path) -> Iterator[list[tuple[str, set[str]]]]:
    """For each set, questions with the PubMed numbers of the articles that answer them."""
    folder = data / "A_questions"
    yield [
        (one["QUESTION"], {pmid})
        for name in PUBMEDQA
        for pmid, one in json.loads((folder / "pubmedqa" / name).read_text()).items()
    ]
    yield [
        (one["body"], {address.rsplit("/", 1)[1] for address in one["documents"]})
        for name in BIOASQ
        for one in json.loads((folder / "bioasq" / name).read_text())["questions"]
    ]


def pair_with_gold(data: Path, passages: Sequence[Passage]) -> list[tuple[str, list[int]]]:
    """Questions whose articles are there, each with the rows of their passages."""
    rows: dict[str, list[int]] = defaultdict(list)
    for row, passage in enumerate(passages):
        if passage.locator.code.startswith("PMID:"):
            rows[passage.locator.code[5:]].append(row)
    chosen: list[tuple[str, list[int]]] = []
    for questions in read_questions(data):
        gold = (
            (text, [row for one in sorted(names) for row in rows[one]]) for text, names in questions
        )
        known = [pair for pair in gold if pair[1]]
        random.Random(0).shuffle(known)
        chosen += known[:EACH]
    return chosen


def mix(
    passages: Sequence[Passage], free: Sequence[int], count: int
) -> tuple[list[tuple[str, str]], list[tuple[int, int]]]:
    """Title and text of `count` made passages, and the rows of the two that each is made of."""
    chance, texts, parents = random.Random(1), [], []
    for _ in range(count):
        first, second = chance.sample(free, 2)
        ends = [re.split(r"\s+", passages[row].text) for row in (first, second)]
        text = " ".join([*ends[0][: len(ends[0]) // 2], *ends[1][len(ends[1]) // 2 :]])
        texts.append((passages[first].title, text[:990]))
        parents.append((first, second))
    return texts, parents


def keep_whole(texts: Sequence[tuple[str, str]]) -> list[int]:
    """The rows that Osler stores as one passage, word for word: it drops doubles and lists of
    references, which no other engine does."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "all.jsonl"
        write_rows(file, texts)
        with KnowledgeBase.create(Path(place) / "kb") as kb:
            kb.add([file], source="web")
            stored = {
                int(one.id.split(":p")[1].split("#")[0]): indexed_text(one)
                for document in kb.read_documents("web")
                for one in document
            }
    return [row for row, (title, text) in enumerate(texts) if stored.get(row) == f"{title}\n{text}"]


def write_rows(file: Path, texts: Sequence[tuple[str, str]]) -> None:
    """One passage a line, numbered."""
    with file.open("w") as lines:
        for row, (title, text) in enumerate(texts):
            line = {"id": f"p{row}", "title": title, "content": text}
            lines.write(json.dumps(line, ensure_ascii=False) + "\n")


def encode(texts: Sequence[str]) -> Floats:
    """All texts, with the rate by the clock and by the processor."""
    encoder = MiniLMEncoder()
    began, before = time.perf_counter(), time.process_time()
    made = [
        encoder.encode(texts[start : start + 512], kind="passage")
        for start in range(0, len(texts), 512)
    ]
    clock, processor = time.perf_counter() - began, time.process_time() - before
    print(
        f"encoded {len(texts):,} passages: {len(texts) / clock:.1f} a second,"
        f" {len(texts) / processor:.1f} a processor second"
    )
    return np.concatenate(made).astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("passages", type=int, nargs="?", default=50_000)
    given = parser.parse_args()
    folder: Path = given.folder
    folder.mkdir(parents=True, exist_ok=True)
    passages = read_passages(given.data)[: given.passages]
    questions = pair_with_gold(given.data, passages)
    wanted = {row for _, rows in questions for row in rows}
    free = [row for row in range(len(passages)) if row not in wanted]
    made, parents = mix(passages, free, given.passages - len(passages) + SPARE)
    every = [*((one.title, one.text) for one in passages), *made]
    kept = keep_whole(every)[: given.passages]
    real = sum(row < len(passages) for row in kept)
    print(f"{real:,} real passages of {len(kept):,}, {len(questions)} questions with gold")
    vectors = encode([f"{title}\n{text}" for title, text in every[: len(passages)]])
    pairs = np.array(parents, np.int64).reshape(-1, 2)
    means = scale_to_unit(vectors[pairs[:, 0]] + vectors[pairs[:, 1]])
    write_rows(folder / "passages.jsonl", [every[row] for row in kept])
    np.save(folder / "vectors.npy", np.concatenate([vectors, means])[kept])
    asked = MiniLMEncoder().encode([text for text, _ in questions], kind="query")
    np.save(folder / "queries.npy", asked.astype(np.float32))
    place = {row: f"p{number}" for number, row in enumerate(kept)}
    named = [
        {"question": text, "gold": [place[row] for row in rows if row in place]}
        for text, rows in questions
    ]
    known = [one for one in named if one["gold"]]
    assert len(known) == len(questions), "a question lost its gold"
    (folder / "questions.json").write_text(json.dumps(named, ensure_ascii=False))


if __name__ == "__main__":
    main()
