"""The concept graph: concepts, names, definitions and relations in one SQLite file."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from operator import itemgetter
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from osler.errors import UnknownPassage
from osler.graph import files, load
from osler.graph.derive import derive_arrays, normalize_name
from osler.graph.items import (
    DRUG_SECTIONS,
    SAMPLE_CONCEPTS,
    ChainStep,
    Concept,
    ConceptChain,
    Direction,
    Edge,
    GraphInfo,
    ImportReport,
    NamedConcept,
    Stream,
    relation_mark,
    text_mark,
    verbalise_chain,
)
from osler.kb.store.access import ReaderPool
from osler.sources.catalogue import GRAPH
from osler.sources.formats.sections import names_line
from osler.text import clean_text, language_of, split_sentences
from osler.types import Locator, Passage

# Characters of a part of a definition; with its section's name it fits into a passage.
_PART = 960
# Words from which a relation's note is a sentence and no code ("HP:0040281") or frequency.
_SENTENCE = 4

Rows = NDArray[np.int32]

_NAMES = (
    "SELECT DISTINCT text FROM name WHERE concept IN ({marks}) ORDER BY concept <> ?, rank, text"
)


class Graph:
    """One graph, open for reading; `add` writes and takes the folder's lock.

    Concepts are named by their identifiers ("DOID:9352"). Of concepts that were fused
    (`osler.graph.fusion`) each member stands for all of them, and the head's
    identifier is what comes back. Every method blocks: an async caller puts it in a
    thread; any number of threads may call. Methods raise `KnowledgeBaseError` when the
    file is damaged, gone, or has been locked by a writer for ten seconds.
    """

    def __init__(self, folder: Path) -> None:
        """Use `create` or `open`."""
        self.folder = folder
        self._readers = ReaderPool(folder, files.open_reader)
        self._loading = threading.Lock()
        self._arrays: tuple[str, dict[str, files.Array]] | None = None

    @classmethod
    def create(cls, folder: Path) -> Self:
        """Opens the graph in the folder, or a new and empty one."""
        files.create_graph(folder)
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Raises `KnowledgeBaseMissing` and `KnowledgeBaseMismatch`."""
        files.check_graph(folder)
        return cls(folder)

    def close(self) -> None:
        self._readers.close()
        self._arrays = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Writing

    def add(self, stream: Stream) -> ImportReport:
        """Adds all facts of the stream, or none when it raises; the same twice changes nothing.

        A relation, definition or type of a concept that has no name, here or in the
        stream, is dropped and counted.
        """
        with files.open_writer(self.folder) as db:
            return load.load_stream(db, stream)

    # Reading

    @property
    def version(self) -> str:
        """A text that is new after each change."""
        with self._readers.borrow() as db:
            return load.version_stamp(db)

    def get_info(self) -> GraphInfo:
        counted = (
            "SELECT word.text, count(*) AS n FROM {table} JOIN word ON word.n = {table}.{column}"
            " GROUP BY word.n ORDER BY n DESC, 1"
        )
        with self._readers.borrow() as db:
            counts = load.count_rows(db)
            (merges,) = db.execute("SELECT count(*) FROM merge").fetchone()
            predicates = db.execute(counted.format(table="edge", column="predicate")).fetchall()
            sources = db.execute(counted.format(table="name", column="source")).fetchall()
        size = (self.folder / files.FILE).stat().st_size
        return GraphInfo(*counts, merges, tuple(predicates), tuple(sources), size)

    def get_concept(self, id: str) -> Concept | None:
        """The concept of an identifier, or `None`."""
        with self._readers.borrow() as db:
            members = load.read_members(db, id)
            if not members:
                return None
            marks = load.placeholders_for(members)
            names = load.read_texts(db, _NAMES.format(marks=marks), (*members, members[0]))
            types = load.read_texts(
                db,
                "SELECT DISTINCT word.text FROM typed JOIN word ON word.n = typed.type"  # noqa: S608
                f" WHERE concept IN ({marks}) ORDER BY 1",
                members,
            )
            definitions = load.read_definitions(db, members)
            (own,) = load.ids_of(db, members[:1]).values()
            return Concept(own, names[0], names, types, definitions)

    def find_exact(self, text: str) -> list[NamedConcept]:
        """Concepts with this name: exact ones first, then those whose name differs in case,
        width or punctuation; preferred names before others."""
        norm = normalize_name(text)
        query = (
            "SELECT coalesce(fused.head, alias.concept) AS head, min(name.rank), name.text"
            " FROM alias LEFT JOIN fused ON fused.member = alias.concept"
            " JOIN name ON name.concept = alias.concept WHERE alias.norm = ?"
            " GROUP BY head, name.text"
        )
        with self._readers.borrow() as db:
            best: dict[int, tuple[bool, int, str]] = {}
            for head, rank, name in db.execute(query, (norm,)):
                if normalize_name(name) == norm:
                    candidate = (name != text, rank, name)
                    best[head] = min(best.get(head, candidate), candidate)
            ids = load.ids_of(db, best)
        return [
            NamedConcept(ids[head], name, "normal" if differs else "exact", 1.0)
            for head, (differs, _, name) in sorted(best.items(), key=itemgetter(1, 0))
        ]

    def find_neighbours(
        self,
        ids: Sequence[str],
        *,
        predicates: Sequence[str] = (),
        direction: Direction = "both",
        limit: int | None = None,
    ) -> list[Edge]:
        """One-hop relations of the concepts, each once; those stated from them come first.

        `predicates` = () means all. From the same end, edges are in the order in which
        predicates and the other ends were first seen. Relations inside a fused concept are
        left out.
        """
        with self._readers.borrow() as db:
            members = [number for id in ids for number in load.read_members(db, id)]
            kinds = load.word_numbers(db, predicates)
            if not members or (predicates and not kinds):
                return []
            edges = list(load.read_edge_rows(db, members, kinds, direction, limit))
            return load.read_edges(db, edges)[:limit]

    def choose_edges(self, id: str, choose: Callable[[Rows], Iterable[int]]) -> list[Edge]:
        """One-hop relations of a concept, of which `choose` names the places to keep.

        It is given subject, predicate, object and source as numbers, a row a relation, so
        that of thousands only those that matter are read with their names.
        """
        with self._readers.borrow() as db:
            edges = list(load.read_edge_rows(db, load.read_members(db, id), (), "both", None))
            places = choose(np.array(edges, dtype=np.int32).reshape(-1, 4)) if edges else ()
            return load.read_edges(db, [edges[place] for place in places])

    def find_notes(self, edge: Edge) -> tuple[str, ...]:
        """What sources add to a relation: a frequency, a reference, a condition."""
        with self._readers.borrow() as db:
            ends = [load.read_members(db, id) for id in (edge.subject, edge.object)]
            kinds = load.word_numbers(db, (edge.predicate,))
            if not all(ends) or not kinds:
                return ()
            one, predicate, two = map(load.placeholders_for, (ends[0], kinds, ends[1]))
            query = (
                f"SELECT DISTINCT text FROM note WHERE subject IN ({one})"  # noqa: S608
                f" AND predicate IN ({predicate}) AND object IN ({two}) ORDER BY text"
            )
            return tuple(text for (text,) in db.execute(query, (*ends[0], *kinds, *ends[1])))

    # Passages

    def definition_passages(self, concept: Concept) -> list[Passage]:
        """Passages of all definitions, the best source's first; a long one has several.

        A section of a drug's record (its indication, its toxicity) is a definition under its own
        name.
        """
        texts = [
            (source, f"{name_section(source)}: {part}")
            for source, text in concept.definitions
            for part in _cut_definition(text)
        ]
        return [
            _make_passage(concept, "def" if place == 0 else f"def-{text_mark(text)}", text, source)
            for place, (source, text) in enumerate(dict.fromkeys(texts))
        ]

    def relation_passage(self, concept: Concept, edge: Edge) -> Passage:
        """The passage of a relation; what its sources say of it in a sentence follows it."""
        wire = f"Relation: ({', '.join(edge.triple)})."
        sentences = [note for note in self.find_notes(edge) if len(note.split()) >= _SENTENCE]
        text = " ".join((wire, *sentences))
        return _make_passage(concept, f"rel-{mark_of(edge)}", text, edge.source)

    def chain_passage(self, concept: Concept, chain: ConceptChain) -> Passage:
        """`concept` is the chain's first."""
        return _make_passage(
            concept, f"via-{'.'.join(chain.marks)}", f"Chain: {verbalise_chain(chain)}", ""
        )

    def get_passage(self, id: str) -> Passage:
        """The passage of a concept by its id: `graph:DOID:9352#def`, `…#rel-0f3a…`,
        `…#via-0f3a….91bc…`. `communities.find_passage` knows communities' ids too.

        Raises `UnknownPassage`, whose `fix` names what the concept has.
        """
        document, _, part = id.rpartition("#")
        source, _, name = document.partition(":")
        concept = self.get_concept(name) if source == GRAPH else None
        if concept is None:
            raise UnknownPassage(f"there is no passage {id!r}", fix="search for its name")
        for passage in self.definition_passages(concept) if part.startswith("def") else ():
            if passage.id.rpartition("#")[2] == part:
                return passage
        for edge in self.find_neighbours([name]) if part.startswith("rel-") else ():
            if part == f"rel-{mark_of(edge)}":
                return self.relation_passage(concept, edge)
        if chain := self._walk_chain(concept, part.removeprefix("via-").split(".")):
            return self.chain_passage(concept, chain)
        has = "#def and relations" if concept.definitions else "relations"
        raise UnknownPassage(f"there is no passage {id!r}", fix=f"{name} has {has}")

    def _walk_chain(self, concept: Concept, marks: Sequence[str]) -> ConceptChain | None:
        """The chain of these relations from the concept on; `None` when one of them is gone."""
        concepts, names, steps = [concept.id], [concept.name], list[ChainStep]()
        for wanted in marks:
            edges = self.find_neighbours(concepts[-1:])
            edge = next((edge for edge in edges if mark_of(edge) == wanted), None)
            if edge is None:
                return None
            forward = edge.subject == concepts[-1]
            steps.append(ChainStep(edge.predicate, forward))
            concepts.append(edge.object if forward else edge.subject)
            names.append(edge.object_name if forward else edge.subject_name)
        return ConceptChain(tuple(concepts), tuple(names), tuple(steps), 1 / len(steps))

    # Derived arrays

    def load_arrays(self) -> dict[str, files.Array]:
        """The derived arrays of the present tables, made when they are not there.

        In a folder that may not be written to they are held in memory instead.
        """
        with self._loading, self._readers.borrow() as db:
            stamp = load.version_stamp(db)
            if self._arrays is None or self._arrays[0] != stamp:
                self._arrays = stamp, self._derive_arrays(db, stamp)
            return self._arrays[1]

    def _derive_arrays(self, db: sqlite3.Connection, stamp: str) -> dict[str, files.Array]:
        kept = files.read_arrays(self.folder, stamp)
        return files.keep_arrays(self.folder, stamp, derive_arrays(db)) if kept is None else kept

    # Access by number, for chains, linking and fusion

    def open_reader(self) -> AbstractContextManager[sqlite3.Connection]:
        """A read-only connection of one's own for a block."""
        return self._readers.borrow()

    def numbers_of(self, ids: Iterable[str]) -> list[int]:
        """The heads' numbers of those that exist, in order, none twice."""
        with self._readers.borrow() as db:
            heads = [members[0] for id in ids if (members := load.read_members(db, id))]
        return list(dict.fromkeys(heads))

    def ids_of(self, numbers: Iterable[int]) -> dict[int, str]:
        with self._readers.borrow() as db:
            return load.ids_of(db, numbers)

    def names_of(self, numbers: Iterable[int]) -> dict[int, tuple[str, ...]]:
        """All names of each concept itself, members of its fusion not counted."""
        names: dict[int, list[str]] = {}
        query = (
            "SELECT concept, text FROM name WHERE concept IN (SELECT value FROM json_each(?))"
            " ORDER BY concept, rank, text"
        )
        with self._readers.borrow() as db:
            for number, text in db.execute(query, (json.dumps(list(map(int, numbers))),)):
                names.setdefault(number, []).append(text)
        return {number: tuple(dict.fromkeys(texts)) for number, texts in names.items()}

    def read_words(self) -> dict[int, str]:
        """Predicates, sources and types by their numbers."""
        with self._readers.borrow() as db:
            return dict(db.execute("SELECT n, text FROM word"))

    def types_of(self, ids: Sequence[str]) -> dict[str, frozenset[str]]:
        """The semantic types of each concept itself."""
        by_id: dict[str, set[str]] = {id: set() for id in ids}
        query = (
            "SELECT concept.id, word.text FROM concept JOIN typed ON typed.concept = concept.n"
            " JOIN word ON word.n = typed.type"
            " WHERE concept.id IN (SELECT value FROM json_each(?))"
        )
        with self._readers.borrow() as db:
            for id, type_ in db.execute(query, (json.dumps(list(ids)),)):
                by_id[id].add(type_)
        return {id: frozenset(types) for id, types in by_id.items()}


def name_section(source: str) -> str:
    """What a definition of this source is called: "Indication" of "DRUGBANK indication"."""
    _, _, section = source.partition(" ")
    known = section in DRUG_SECTIONS
    return section.replace("-", " ").capitalize() if known else "Definition"


def _cut_definition(text: str) -> list[str]:
    """The text in parts that fit into a passage, cut between sentences where it can be."""
    kept, parts = clean_text(text), [""]
    for start, end in split_sentences(kept):
        for piece in (kept[at : min(end, at + _PART)] for at in range(start, end, _PART)):
            if len(parts[-1]) + len(piece) >= _PART:
                parts.append("")
            parts[-1] += f" {piece}" if parts[-1] else piece
    return list(filter(None, parts)) or [kept]


def mark_of(edge: Edge) -> str:
    return relation_mark(edge.subject, edge.predicate, edge.object)


def _make_passage(concept: Concept, part: str, text: str, source: str) -> Passage:
    kept = clean_text(text)
    if len(kept) > 1000:
        kept = kept[:999].rstrip() + "…"
    title = names_line(concept.names)
    locator = Locator(code=concept.id, kind="; ".join(concept.types), section=source)
    return Passage(
        id=f"{GRAPH}:{concept.id}#{part}",
        text=kept,
        source=GRAPH,
        title=title,
        locator=locator,
        language=language_of(kept),
        illustrative=concept.id.startswith(SAMPLE_CONCEPTS),
    )
