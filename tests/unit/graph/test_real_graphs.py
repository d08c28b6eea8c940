"""The public graphs as they are published: how much of each arrives, and what is dropped."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from osler.graph.formats import read_graph_files
from osler.graph.formats.tables import Umls
from osler.graph.items import ImportReport
from osler.graph.store import Graph
from osler.sources.records import Drop

DATA = Path(__file__).resolve().parents[3].parent / "shared" / "data"


def added(tmp_path: Path, *places: str) -> ImportReport:
    paths = [DATA / place for place in places]
    if missing := [path for path in paths if not path.exists()]:
        pytest.skip(f"the public data is not there: {missing[0].name}")
    with Graph.create(tmp_path) as graph:
        return graph.add(read_graph_files(paths))


def test_every_row_of_the_umls_tables_is_accounted_for(tmp_path: Path) -> None:
    found = added(tmp_path, "F_umls_like/META")
    assert (found.names, found.definitions) == (20950, 5421)  # the rows of MRCONSO and MRDEF
    # 20,466 rows of MRREL: 24 relate a concept to itself, 10 are stated twice.
    assert dict(found.drops) == {"relation to itself": 24}
    assert found.relations == 20466 - 24 - 10


def test_the_human_phenotype_ontology_and_its_annotations(tmp_path: Path) -> None:
    found = added(tmp_path, "C_graphs/hpo/hp.obo", "C_graphs/hpo/phenotype.hpoa")
    assert dict(found.drops)["obsolete term"] == 416
    assert found.concepts - (18697 - 416) == len(
        {
            line.split(b"\t")[0]
            for line in (DATA / "C_graphs/hpo/phenotype.hpoa").read_bytes().splitlines()
            if line[:1].isupper()
        }
    )


def test_the_disease_ontology(tmp_path: Path) -> None:
    found = added(tmp_path, "C_graphs/disease_ontology/doid.obo")
    assert found.concepts + dict(found.drops)["obsolete term"] == 5777


def test_mappings_of_mondo(tmp_path: Path) -> None:
    found = added(tmp_path, "C_graphs/mondo")
    assert found.mappings == 3021 + 2049 + 2501 + 2410 + 5380


def test_hetionet(tmp_path: Path) -> None:
    found = added(
        tmp_path,
        "C_graphs/hetionet/hetionet-v1.0-nodes.tsv",
        "C_graphs/hetionet/hetionet-v1.0-edges.sif.gz",
    )
    assert (found.concepts, found.relations, found.drops) == (16303, 30654, ())


def test_the_tables_of_mesh(tmp_path: Path) -> None:
    found = added(tmp_path, "C_graphs/mesh/terms.tsv", "C_graphs/mesh/tree-numbers.tsv")
    assert found.concepts == 13661


def test_the_chinese_disease_graph_in_both_encodings_of_the_data(tmp_path: Path) -> None:
    one, other = (
        "C_graphs/zh_disease_kg/medical.json",
        "C_graphs/zh_disease_kg/medical_gb18030.json",
    )
    first = added(tmp_path / "one", one)
    second = added(tmp_path / "two", other)
    assert (first.definitions, second.definitions) == (148, 55)
    assert first.drops == second.drops == ()


LISTED = re.compile(r"^- `((?:C_graphs|F_umls_like)/[^`]+)`: (\d+) \w+", re.MULTILINE)
UNIT = re.compile(r"[^:]+:\d+|[^:]+: (?:node|record) \d+")
UNREAD = re.compile(
    r"/(?:icd|primekg|zh_disease_kg/dict)/|/kag_medicine/[DH].*csv|genes_to_phenotype"
    r"|metaedges|metanodes|predicate\.json|schema$|dsl$|childhood_cancer_slim\.(?:json|owl)"
)
"""Of formats that are not read."""


def listed() -> list[tuple[str, int]]:
    """Each file of the graphs with the number of rows, terms or records that its list names."""
    if not (DATA / "DATA.md").exists():
        return []
    text = (DATA / "DATA.md").read_text(encoding="utf-8")
    return [(place, int(count)) for place, count in LISTED.findall(text)]


@pytest.mark.parametrize(("place", "count"), listed() or [("", 0)], ids=str)
def test_every_row_term_and_record_is_taken_or_dropped_by_name(place: str, count: int) -> None:
    if not place:
        pytest.skip("the public data is not there")
    file = DATA / place
    if file.suffix == ".RRF":
        wanted = {"MRCONSO.RRF", "MRDEF.RRF", "MRREL.RRF", "MRSTY.RRF"}
        if file.name not in wanted:
            pytest.skip("a table about the release, not about concepts")
        items = [item for item in Umls().read(file.parent) if item.where.startswith(file.name)]
    else:
        items = list(read_graph_files([file]))
    units = {found[0] for item in items if (found := UNIT.match(item.where))}
    reasons = Counter(item.reason for item in items if isinstance(item, Drop))
    assert bool(reasons["unknown format"]) == (UNREAD.search(place) is not None)
    if UNREAD.search(place):
        return
    broken = reasons["file that cannot be read to its end"]  # one record, cut on purpose
    assert broken == ("truncated" in file.name)
    assert len(units) + broken == count
