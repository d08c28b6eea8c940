"""Yes/no questions with their evidence, from data sets as published, for `supports`.

BioASQ's evidence is its gold snippets, PubMedQA's the abstract without its conclusion.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osler.errors import MalformedSource
from osler.evaluate.datasets.base import json_records, read_json
from osler.retrieve.experts.supporting import VERDICTS, Verdict
from osler.text import one_line, split_sentences
from osler.train import choose_named
from osler.train.experts.pair_questions import (
    BIOASQ,
    PUBMEDQA,
    PUBMEDQA_FILES,
    find_data_file,
)


@dataclass(frozen=True, slots=True)
class ClaimQuestion:
    """A yes/no question, its evidence in sentences, and the right verdict."""

    id: str
    """As the same question's in `pair_questions`, so that one split serves both."""
    text: str
    source: str
    documents: tuple[str, ...]
    sentences: tuple[str, ...]
    verdict: Verdict
    held_out: bool = False


def read_claims(data: Path) -> list[ClaimQuestion]:
    """Reads all sets that are somewhere below `data`. Raises `MalformedSource` for none."""
    found = [*bioasq_claims(data), *pubmedqa_claims(data)]
    if not found:
        raise MalformedSource(
            f"{data} holds no yes/no question of BioASQ or PubMedQA",
            fix="name their folder with --data",
        )
    return found


def bioasq_claims(data: Path) -> list[ClaimQuestion]:
    """BioASQ's yes/no questions with their gold snippets."""
    found = []
    path = find_data_file(data, "bioasq_yesno_golden.json")
    for row in json_records(path, "questions") if path else ():
        snippets: Sequence[Mapping[str, Any]] = row.data.get("snippets") or ()
        addresses = dict.fromkeys(str(one.get("document") or "") for one in snippets)
        texts = dict.fromkeys(one_line(str(one.get("text") or "")) for one in snippets)
        exact = row.texts_of("exact_answer")
        if not texts or not exact or exact[0].lower() not in ("yes", "no"):
            continue
        found.append(
            ClaimQuestion(
                f"{BIOASQ}:{row.text_of('id')}",
                one_line(row.text_of("body")),
                BIOASQ,
                tuple(f"PMID:{url.rpartition('/')[2]}" for url in addresses),
                _sentences_of(texts),
                choose_named(exact[0].lower(), VERDICTS, "verdict"),
            )
        )
    return found


def pubmedqa_claims(data: Path) -> list[ClaimQuestion]:
    """PubMedQA's labelled questions with their abstracts."""
    found = []
    for name, held_out in PUBMEDQA_FILES.items():
        if (path := find_data_file(data, name)) is None:
            continue
        for pmid, record in read_json(path).items():
            word = str(record.get("final_decision") or "").lower()
            if word in VERDICTS:
                found.append(
                    ClaimQuestion(
                        f"{PUBMEDQA}:{pmid}",
                        one_line(record["QUESTION"]),
                        PUBMEDQA,
                        (f"PMID:{pmid}",),
                        _sentences_of(map(one_line, record["CONTEXTS"])),
                        choose_named(word, VERDICTS, "verdict"),
                        held_out,
                    )
                )
    return found


def _sentences_of(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(text[start:end] for text in texts for start, end in split_sentences(text))
