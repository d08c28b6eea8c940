"""Test sets, recognised so that they never become evidence.

Exam questions with their options, and judgements of relevance (qrels), lie beside the corpora in
public collections. Indexed as text they would give the answers away to the systems that are
evaluated with them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from osler.sources.formats.csv_rows import read_header
from osler.sources.formats.json_records import keys_of
from osler.sources.formats.reading import extension_of, plain_head
from osler.sources.formats.rows import is_exam
from osler.sources.records import Drop, Record

# "1_2 0 GHR_0000559_Sec2 3": question, iteration, document, grade.
_QREL = re.compile(rb"\S+[ \t]+\S+[ \t]+\S*(?:_|\d)\S*(?:[ \t]+\d)?\s*")
_LINES = 5


class EvaluationFile:
    name = "evaluation"

    def matches(self, name: str, head: bytes) -> bool:
        kind = extension_of(name)
        if kind in {".csv", ".tsv"}:
            return is_exam(read_header(name, head))
        if kind in {".json", ".jsonl"}:
            return is_exam(keys_of(head))
        return "qrels" in name.lower() and _are_qrels(head)

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        """One drop that says why nothing is read."""
        yield Drop(name, "test questions or judgements, not evidence")


def _are_qrels(head: bytes) -> bool:
    lines = plain_head(head).split(b"\n")[:_LINES]
    return bool(lines[0]) and all(_QREL.fullmatch(line) for line in lines[:-1] or lines)
