"""JSON arrays and JSON Lines of records with text: instruction data, questions and answers."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO, cast

from osler.sources.formats.json_lines import array_items, first_keys, read_objects
from osler.sources.formats.reading import id_of, plain_head
from osler.sources.formats.rows import is_corpus, record_of
from osler.sources.records import Drop, Record


class JsonRecords:
    name = "json-records"

    def matches(self, name: str, head: bytes) -> bool:
        return is_corpus(keys_of(head))

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        base, number = id_of(name), 0
        buffered = io.BufferedReader(cast("io.RawIOBase", stream))
        if not plain_head(buffered.peek(64)).startswith(b"["):
            for found in read_objects(buffered, name):
                number += 1
                yield (
                    found
                    if isinstance(found, Drop)
                    else record_of(found[1], found[0], f"{base}-{number}")
                )
            return
        for number, item in enumerate(array_items(buffered, name), start=1):
            where = f"{name}:{number}"
            if isinstance(item, dict):
                yield record_of(item, where, f"{base}-{number}")
            else:
                yield Drop(where, "not a JSON object")


def keys_of(head: bytes) -> frozenset[str]:
    """Keys of the first record, of a line or of an array."""
    begin = plain_head(head)
    return first_keys(begin[1:] if begin.startswith(b"[") else begin)
