"""Importers of the public formats of graphs, and the choice of one for a file.

| module       | formats                                                                |
|--------------|------------------------------------------------------------------------|
| `vocabularies` | OBO, SSSOM, MeSH descriptors, DrugBank's full database                |
| `tables`     | UMLS (RRF), HPO annotations, Hetionet, DrugBank's vocabulary, plain triples |
| `chinese`    | CMeKG, QASystemOnMedicalKG                                              |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from osler.errors import BadConfig, MalformedSource
from osler.graph.formats.base import Importer
from osler.graph.formats.chinese import Cmekg, ZhDisease
from osler.graph.formats.tables import (
    DrugBankVocabulary,
    HetionetEdges,
    HetionetNodes,
    Hpoa,
    Triples,
    Umls,
)
from osler.graph.formats.vocabularies import DrugBank, Mesh, MeshTable, OboImporter, Sssom
from osler.graph.items import Item
from osler.sources.formats.containers import open_file
from osler.sources.records import Drop

IMPORTERS: tuple[Importer, ...] = (
    Umls(),
    OboImporter(),
    Sssom(),
    Hpoa(),
    Mesh(),
    MeshTable(),
    HetionetNodes(),
    HetionetEdges(),
    DrugBank(),
    DrugBankVocabulary(),
    ZhDisease(),
    Cmekg(),
    Triples(),
)
_HEAD = 4096


def read_graph_files(paths: Iterable[Path], *, fmt: str | None = None) -> Iterator[Item]:
    """All facts of the files and folders, in order; a file of no known format is a drop.

    A folder that is not one unit (as a UMLS release is) is walked. A truncated file gives
    the facts before the break, and a drop that says so. Raises `BadConfig` for an unknown
    format and `MalformedSource` for a path that does not exist.
    """
    chosen = _choose_importers(fmt)
    for path in paths:
        if not path.exists():
            raise MalformedSource(f"{path} does not exist", fix="check the path")
        yield from _read_path(path, chosen)


def _choose_importers(fmt: str | None) -> Sequence[Importer]:
    chosen = [one for one in IMPORTERS if fmt in (None, one.name)]
    if not chosen:
        names = ", ".join(one.name for one in IMPORTERS)
        raise BadConfig(f"there is no format {fmt!r}", fix=f"one of: {names}")
    return chosen


def _read_path(path: Path, importers: Sequence[Importer]) -> Iterator[Item]:
    try:
        head = b"" if path.is_dir() else _read_head(path)
        importer = next((one for one in importers if one.matches(path, head)), None)
        if importer is not None:
            yield from importer.read(path)
        elif path.is_dir():
            for below in sorted(path.iterdir()):
                if not below.is_symlink():  # it could lead out of the folder, or round in it
                    yield from _read_path(below, importers)
        else:
            yield Drop(path.name, "unknown format" if head.strip() else "empty file")
    except MalformedSource as error:
        yield Drop(f"{path.name}: {error.message}", "file that cannot be read to its end")
    except OSError as error:
        yield Drop(f"{path.name}: {error}", "file that cannot be read to its end")


def _read_head(path: Path) -> bytes:
    with open_file(path) as file:
        return file.read(_HEAD)
