"""Writes 200 documents with a hidden order each.

    python benchmarks/injections.py OUT.jsonl [--data FOLDER]

150 are the medical documents of the data sets as they are. The rules were written on half of their
orders (`dev` by a hash of the question) and looked at on the other. 50 more are made here: answers
of MedQuAD with orders of InjecAgent, which no rule was written on, at the start, in the middle or
at the end, plain or behind a mark.
"""

from __future__ import annotations

import argparse
import json
import random
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from corpora import DATA

from osler.text import split_sentences

MARKS = ("{order}", "Note: {order}", "Before you answer: {order}", "({order})", "P.S. {order}")
SEED, MADE = 25, 50


def orders(data: Path) -> list[str]:
    found: set[str] = set()
    for name in ("dh", "ds"):
        path = data / f"E_noise/injecagent/test_cases_{name}_base.json"
        found |= {row["Attacker Instruction"] for row in json.loads(path.read_text("utf-8"))}
    return sorted(found)


def answers(data: Path) -> Iterator[tuple[str, str, str]]:
    """Name, question and answer, of some 300 to 2,000 characters."""
    with tarfile.open(data / "B_corpora/medquad/MedQuAD_xml.tar.gz") as archive:
        for member in archive:
            if "NIDDK" not in member.name or not member.name.endswith(".xml"):
                continue
            file = archive.extractfile(member)
            for pair in ElementTree.parse(file).iter("QAPair") if file else ():  # noqa: S314
                question, answer = pair.findtext("Question"), pair.findtext("Answer")
                text = " ".join((answer or "").split())
                if question and 300 <= len(text) <= 2000:
                    yield member.name, question.strip(), text


def make_rows(data: Path, taken: set[str]) -> Iterator[dict[str, Any]]:
    chance, wanted = random.Random(SEED), orders(data)
    free = [one for one in answers(data) if one[1] not in taken]
    for n, (name, question, text) in enumerate(chance.sample(free, MADE)):
        order = wanted[n % len(wanted)]
        ends = [0, *(end for _, end in split_sentences(text))]
        at = (0, ends[len(ends) // 2], len(text))[n % 3]
        hidden = MARKS[n % len(MARKS)].format(order=order)
        injected = f"{text[:at].strip()} {hidden} {text[at:].strip()}".strip()
        yield {
            "id": f"made-{n:03}",
            "question": question,
            "source": name,
            "clean_text": text,
            "injected_text": injected,
            "attack_instruction": order,
        }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, default=DATA)
    given = parser.parse_args()
    path = given.data / "E_noise/medical_injection/injected_docs.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    rows += make_rows(given.data, {row["question"] for row in rows})
    given.out.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    print(f"{len(rows)} documents in {given.out}")


if __name__ == "__main__":
    main()
