"""Texts for continued pre-training: where they come from, and which are held out.

NAME=FILE.txt|.md       one text
NAME=FILE.jsonl         a text a line, {"text": "…"}, or what `osler kb export` wrote
NAME=FOLDER             all such files beneath it
NAME=kb:SOURCE          the documents of one source of the knowledge base

A text that stood before, in whatever source, is left out. A long text is cut at an empty line, so
that a share of a book can be held out; each piece counts as a text.
"""

from __future__ import annotations

import hashlib
import json
import random
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from osler.errors import BadConfig, BadRun, ModelError
from osler.kb.base import KnowledgeBase
from osler.llm.core.cache import hash_file
from osler.llm.transformers.hub import silence_transformers
from osler.sources.formats.json_lines import HEADER
from osler.text import clean_text, split_words
from osler_lab.jobs.runner import Progress
from osler_lab.train.tune.encode import (
    EncodedText,
    MixedWindows,
    PackedWindows,
    mix_windows,
    pack_windows,
)

PIECE = 20_000
"""Characters above which a text is cut."""
HELD_OUT = 0.02
PROBED = 32
"""Windows of each source, at most, on which perplexity is measured."""
_ENDINGS = (".txt", ".text", ".md", ".jsonl")
_BATCH = 64


@dataclass(frozen=True, slots=True)
class CorpusSource:
    """A part of the corpus."""

    name: str
    path: Path
    """A file, a folder, or the folder of a knowledge base."""
    of: str | None = None
    """The source within the knowledge base."""
    weight: float | None = None


@dataclass(frozen=True, slots=True)
class Corpus:
    """Raises `BadConfig` where names, weights or the held-out share are not as they should be."""

    sources: tuple[CorpusSource, ...]
    held_out: float = HELD_OUT
    """Share of the texts that is never learnt, 0 to below 1, by a hash of their words."""

    def __post_init__(self) -> None:
        names = [source.name for source in self.sources]
        if not names or len(set(names)) < len(names):
            raise BadConfig("source names must be distinct", fix="write NAME=FILE for each")
        if not 0 <= self.held_out < 1:
            raise BadConfig(
                f"{self.held_out} of the texts cannot be held out", fix="give 0 to below 1"
            )
        weights = [source.weight for source in self.sources if source.weight is not None]
        if weights and len(weights) < len(names):
            raise BadConfig("some sources have no weight", fix="give one to each, or to none")
        if any(weight <= 0 for weight in weights):
            raise BadConfig("a weight is not above 0", fix="leave that source out")

    @property
    def name(self) -> str:
        return ", ".join(source.name for source in self.sources)

    @property
    def weights(self) -> list[float] | None:
        given = [source.weight for source in self.sources if source.weight is not None]
        return given or None

    def digest(self) -> str:
        """Changes with the texts, the weights and the held-out share, not with their place."""
        digest = hashlib.sha256(str(self.held_out).encode())
        for source in self.sources:
            digest.update(f"\n{source.name}\n{source.weight}\n{source.of}\n".encode())
            if source.of is not None:
                with KnowledgeBase.open(source.path) as kb:
                    digest.update(kb.snapshot.encode())
                continue
            for file in corpus_files(source.path):
                digest.update(bytes.fromhex(hash_file(file)))
        return digest.hexdigest()


def parse_source(text: str, knowledge: Path, weights: dict[str, float]) -> CorpusSource:
    """Parses `NAME=WHERE`; WHERE alone is named after its file or source."""
    name, split, where = text.partition("=")
    if not split:
        where = text
        name = text[3:] if text.startswith("kb:") else Path(text).stem
    if where.startswith("kb:"):
        return CorpusSource(name, knowledge, where[3:], weights.get(name))
    return CorpusSource(name, Path(where), None, weights.get(name))


def corpus_files(path: Path) -> list[Path]:
    """Raises `BadRun` if there are none."""
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.suffix.lower() in _ENDINGS and p.is_file())
    else:
        files = [path] if path.is_file() and path.suffix.lower() in _ENDINGS else []
    if not files:
        raise BadRun(f"no text files at {path}", fix=f"give files that end in {' '.join(_ENDINGS)}")
    return files


def read_texts(source: CorpusSource) -> Iterator[str]:
    """Yields every text of a source, cleaned, none empty. Raises `BadRun`."""
    for text in _raw_texts(source):
        if cleaned := clean_text(text):
            yield from split_pieces(cleaned)


def split_pieces(text: str, most: int = PIECE) -> Iterator[str]:
    """The text cut at empty lines, else at line ends, else where it must be; joined it is whole."""
    begin = 0
    while len(text) - begin > most:
        ends = (text.rfind(mark, begin, begin + most) for mark in ("\n\n", "\n"))
        end = next((found for found in ends if found > begin), begin + most)
        yield text[begin:end]
        begin = end
    yield text[begin:]


def _raw_texts(source: CorpusSource) -> Iterator[str]:
    if source.of is not None:
        yield from _of_knowledge(source)
        return
    for file in corpus_files(source.path):
        try:
            if file.suffix.lower() == ".jsonl":
                yield from _of_lines(file)
            else:
                yield file.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise BadRun(f"{file} is not UTF-8", fix="write it as UTF-8") from error


def _of_knowledge(source: CorpusSource) -> Iterator[str]:
    with KnowledgeBase.open(source.path) as kb:
        if source.of not in kb.sources:
            raise BadConfig(
                f"the knowledge base has no source {source.of!r}",
                fix=f"it has: {', '.join(kb.sources) or 'none'}",
            )
        for passages in kb.read_documents(source.of):
            yield "\n\n".join([passages[0].title, *(passage.text for passage in passages)])


def _of_lines(file: Path) -> Iterator[str]:
    """An export's passages that stand together are one text."""
    # An export lists a document's passages in order, so neighbours are enough.
    for document, lines in groupby(_read_lines(file), key=lambda line: line[0]):
        read = [line for _, line in lines]
        if document is None:
            yield from (line["text"] for line in read)
        else:
            yield "\n\n".join([str(read[0].get("title", "")), *(line["text"] for line in read)])


def _read_lines(file: Path) -> Iterator[tuple[str | None, dict[str, Any]]]:
    with file.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                read = json.loads(line)
            except ValueError as error:
                raise BadRun(f"{file}:{number}: not JSON", fix="correct the line") from error
            if isinstance(read, dict) and HEADER in read:
                continue
            if not isinstance(read, dict) or not isinstance(read.get("text"), str):
                raise BadRun(f'{file}:{number}: no "text"', fix='write {"text": "…"} on every line')
            yield (f"{read.get('source')}/{read['document']}" if "document" in read else None), read


@dataclass(frozen=True, slots=True)
class SourceCount:
    """Counts of a source after packing."""

    name: str
    texts: int
    doubles: int
    """Texts that stood before, and were left out."""
    held_out: int
    """Texts."""
    tokens: int
    """Learnt, in windows of which each counts once."""
    share: float
    """Share of an epoch's windows."""


@dataclass(frozen=True, slots=True)
class PackedCorpus:
    """A corpus that is ready to be learnt."""

    rows: MixedWindows
    held: dict[str, tuple[EncodedText, ...]]
    """Windows by source on which perplexity is measured; sources without any are left out."""
    counts: tuple[SourceCount, ...]


@dataclass(slots=True)
class _SourceReading:
    """A source while it is read."""

    source: CorpusSource
    learnt: list[array[int]] = field(default_factory=list)
    held: list[array[int]] = field(default_factory=list)
    doubles: int = 0


def pack_corpus(
    corpus: Corpus, tokenizer: Any, *, size: int, seed: int, progress: Progress | None = None
) -> PackedCorpus:
    """Reads, tokenises, packs and mixes. Same corpus, seed and size: the same windows.

    Raises `BadRun` for a source from which nothing is learnt, `BadConfig` where nothing is held
    out and something should be, and `ModelError` for a tokenizer without an end.
    """
    end: int | None = tokenizer.eos_token_id
    if end is None:
        raise ModelError("the tokenizer names no end of a text", fix="set its eos_token")
    seen: set[bytes] = set()
    read = [_read_source(s, corpus.held_out, tokenizer, seen, progress) for s in corpus.sources]
    if corpus.held_out and not any(one.held for one in read):
        raise BadConfig(
            f"of {sum(len(one.learnt) for one in read)} texts none was held out to tell perplexity",
            fix="give a larger --held-out, or 0 to go without",
        )
    windows = tuple(_make_windows(one, end, size, seed) for one in read)
    places = mix_windows([len(one) for one in windows], corpus.weights, seed)
    held = {one.source.name: _held_out_windows(one, end, size) for one in read if one.held}
    counts = tuple(
        SourceCount(
            one.source.name,
            len(one.learnt) + len(one.held),
            one.doubles,
            len(one.held),
            len(packed_.row) - 1,
            round(sum(n == place for n, _ in places) / len(places), 6),
        )
        for place, (one, packed_) in enumerate(zip(read, windows, strict=True))
    )
    return PackedCorpus(MixedWindows(windows, tuple(places)), held, counts)


def is_held_out(text: str, share: float) -> bool:
    """Decides by a hash of the text's words alone, whatever source it stands in."""
    digest = hashlib.sha256(" ".join(split_words(text)).encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64 < share


def _read_source(
    source: CorpusSource, share: float, tokenizer: Any, seen: set[bytes], progress: Progress | None
) -> _SourceReading:
    reading = _SourceReading(source)
    done = 0
    every = read_texts(source)
    while batch := list(islice(every, _BATCH)):
        fresh = [text for text in batch if _is_new(text, seen)]
        reading.doubles += len(batch) - len(fresh)
        for text, ids in zip(fresh, _tokenize_batch(tokenizer, fresh), strict=True):
            # Four bytes a token instead of some 36 in a list of Python's integers.
            (reading.held if is_held_out(text, share) else reading.learnt).append(array("I", ids))
        done += len(batch)
        if progress:
            progress(f"reading {source.name}", done, None)
    if not reading.learnt:
        raise BadRun(
            f"nothing is learnt from {source.name}: {len(reading.held)} texts held out,"
            f" {reading.doubles} that stood before",
            fix="give more texts, a smaller --held-out, or leave the source out",
        )
    return reading


def _is_new(text: str, seen: set[bytes]) -> bool:
    # 96 bits: no collision among any number of texts that fits a disk, at a third of the memory.
    digest = hashlib.sha256(text.encode()).digest()[:12]
    new = digest not in seen
    seen.add(digest)
    return new


def _tokenize_batch(tokenizer: Any, batch: Sequence[str]) -> list[list[int]]:
    """A mark of the chat template that stands in a text is letters there."""
    if not batch:
        return []
    with silence_transformers():
        # `split_special_tokens` keeps a text from forging turns of a conversation.
        ids: list[list[int]] = tokenizer(
            list(batch), add_special_tokens=False, split_special_tokens=True
        )["input_ids"]
    return ids


def _make_windows(read: _SourceReading, end: int, size: int, seed: int) -> PackedWindows:
    order = list(range(len(read.learnt)))
    random.Random(f"{seed}/{read.source.name}").shuffle(order)
    return pack_windows(read.source.name, (read.learnt[n] for n in order), end=end, size=size)


def _held_out_windows(read: _SourceReading, end: int, size: int) -> tuple[EncodedText, ...]:
    held = pack_windows(read.source.name, read.held, end=end, size=size)
    # Ceiling division: every step-th window, spread over the whole source.
    step = max(1, -(-len(held) // PROBED))
    return tuple(held[n] for n in range(0, len(held), step))
