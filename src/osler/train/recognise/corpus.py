"""Texts with marked entities, English and Chinese: BIO columns and JSON Lines.

CoNLL: a unit a line, its tag in the last column (BIO, BIOES or BMES), an empty line between
texts. JSON Lines (or one JSON list): `{"text": …, "entities": [{"start", "end", "type"}]}`, ends
exclusive; CMeEE's `start_idx` and `end_idx`, whose end is inclusive, are read as well.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osler.errors import MalformedSource, read_text_file
from osler.text import is_cjk, split_sentences

_UNIT = re.compile(r"[^\W\d_]+|\d+|[^\w\s]|_")
# BIO, BIOES and BMES in one pattern: L is E, and U is S, in the BILOU scheme.
_TAG = re.compile(r"(?:([BIEMSLU])-(\S+)|O)")


@dataclass(frozen=True, slots=True, order=True)
class MarkedEntity:
    """Entity of a text: `text[start:end]` is a name of this type."""

    start: int
    end: int
    type: str


@dataclass(frozen=True, slots=True)
class MarkedText:
    """A text with its entities, in order; they may lie within each other."""

    text: str
    entities: tuple[MarkedEntity, ...] = ()


def split_units(text: str) -> list[tuple[int, int]]:
    """Splits a text into units: words, numbers, marks, and single Chinese characters."""
    units = []
    for match in _UNIT.finditer(text):
        start = match.start()
        for place in range(match.start(), match.end()):
            if is_cjk(text[place]):
                if start < place:
                    units.append((start, place))
                units.append((place, place + 1))
                start = place + 1
        if start < match.end():
            units.append((start, match.end()))
    return units


WINDOW, STRIDE = 160, 120
"""Units that are read at once, and how far the next window of a long sentence begins."""


def split_windows(text: str) -> list[list[tuple[int, int]]]:
    """The units of a text in stretches that are read at once: sentences, long ones in windows
    that overlap. A name is found where one stretch holds it."""
    windows: list[list[tuple[int, int]]] = []
    places = split_units(text)
    first = 0
    for _, end in split_sentences(text):
        last = first
        while last < len(places) and places[last][1] <= end:
            last += 1
        # Neighbouring windows share 40 units, more than the longest name (24): each name lies
        # whole in one of them.
        starts = range(first, max(last - (WINDOW - STRIDE), first + 1), STRIDE)
        windows += [places[start : min(start + WINDOW, last)] for start in starts if start < last]
        first = last
    return windows


def read_marked(path: Path) -> list[MarkedText]:
    """Reads marked texts: `.jsonl` and `.json`, every other ending as columns.

    Raises `MalformedSource` naming file and line, and for a file without any text.
    """
    text = read_text_file(path, MalformedSource)
    if path.suffix in (".jsonl", ".json"):
        texts = [_parse_marked(value, place) for place, value in _parse_objects(path, text)]
    else:
        texts = list(_parse_columns(path, text))
    if not texts:
        raise MalformedSource(f"{path} holds no text")
    return texts


def _parse_objects(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    try:
        if text.lstrip().startswith("["):
            for number, value in enumerate(json.loads(text), 1):
                yield f"{path}[{number}]", value
            return
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                yield f"{path}:{number}", json.loads(line)
    except ValueError as error:
        raise MalformedSource(f"{path}: not JSON: {error}") from error


def _parse_marked(value: Any, place: str) -> MarkedText:
    try:
        text: str = value["text"]
        marked = value.get("entities", value.get("spans", ()))
        entities = tuple(sorted({_parse_entity(one, text) for one in marked}))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise MalformedSource(f"{place}: not a marked text: {error!r}") from error
    return MarkedText(text, entities)


def _parse_entity(fields: Mapping[str, Any], text: str) -> MarkedEntity:
    type = str(fields.get("type") or fields["label"])
    if "start_idx" in fields:
        start, end = int(fields["start_idx"]), int(fields["end_idx"])
        # CMeEE's end is inclusive; files that were made exclusive say so by their `entity`.
        if fields.get("entity") != text[start:end]:
            end += 1
    else:
        start, end = int(fields["start"]), int(fields["end"])
    if not 0 <= start < end <= len(text) or not type:
        raise ValueError(f"{start}:{end} is not a span of {len(text)} characters")
    return MarkedEntity(start, end, type)


def _parse_columns(path: Path, text: str) -> Iterator[MarkedText]:
    rows: list[tuple[str, str]] = []
    for number, line in enumerate([*text.split("\n"), ""], 1):
        cells = line.split()
        # CoNLL-2003 opens each document by this mark.
        if not cells or cells[0] == "-DOCSTART-":
            if rows:
                yield _join_units(rows)
            rows = []
            continue
        if len(cells) < 2 or not _TAG.fullmatch(cells[-1]):
            raise MalformedSource(f"{path}:{number}: no unit with a tag like B-Disease, I-… or O")
        rows.append((cells[0], cells[-1]))


def _join_units(rows: Sequence[tuple[str, str]]) -> MarkedText:
    """Units are joined by a space, but for Chinese characters."""
    text, places = "", []
    for unit, _ in rows:
        if text and not (is_cjk(text[-1]) or is_cjk(unit[0])):
            text += " "
        places.append((len(text), len(text) + len(unit)))
        text += unit
    return MarkedText(text, tuple(_entities_of_tags(rows, places)))


def _entities_of_tags(
    rows: Sequence[tuple[str, str]], places: Sequence[tuple[int, int]]
) -> Iterator[MarkedEntity]:
    """An inside tag without a beginning begins one, as CoNLL's own evaluation has it."""
    begun: MarkedEntity | None = None
    for (_, tag), (start, end) in zip(rows, places, strict=True):
        mark, _, type = tag.partition("-")
        # A change of type ends a name even without a B, as conlleval has it.
        if begun and (mark in "OBSU" or begun.type != type):
            yield begun
            begun = None
        if mark == "O":
            continue
        begun = MarkedEntity(begun.start if begun else start, end, type)
        if mark in "ESLU":
            yield begun
            begun = None
    if begun:
        yield begun


def types_of(texts: Sequence[MarkedText]) -> tuple[str, ...]:
    """The types, the most frequent first."""
    counts = Counter(entity.type for one in texts for entity in one.entities)
    return tuple(sorted(counts, key=lambda name: (-counts[name], name)))


def split_texts(
    texts: Sequence[MarkedText], share: float, seed: int
) -> tuple[list[MarkedText], list[MarkedText]]:
    """Texts to train on, and a share held out; equal texts stay on one side."""
    # Split by distinct text: a duplicate on both sides would be measured on what was learnt.
    different = sorted({one.text for one in texts})
    random.Random(seed).shuffle(different)
    held_out = set(different[: round(len(different) * share)])
    return [x for x in texts if x.text not in held_out], [x for x in texts if x.text in held_out]
