"""Each public format of a graph, by small files of ours, sound and damaged."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from osler.errors import BadConfig, MalformedSource
from osler.graph.formats import IMPORTERS, read_graph_files
from osler.graph.items import (
    ConceptMapping,
    Definition,
    Item,
    Name,
    Relation,
    make_curie,
    parse_curie,
)
from osler.graph.store import Graph
from osler.sources.records import Drop


def taken(tmp_path: Path, name: str, data: str | bytes) -> list[Item]:
    file = tmp_path / name
    file.write_bytes(data.encode() if isinstance(data, str) else data)
    return list(read_graph_files([file]))


def triples(items: list[Item]) -> list[tuple[str, str, str]]:
    return [(i.subject, i.predicate, i.object) for i in items if isinstance(i, Relation)]


def names(items: list[Item]) -> list[tuple[str, str]]:
    return [(i.concept, i.text) for i in items if isinstance(i, Name)]


def drops(items: list[Item]) -> list[tuple[str, str]]:
    return [(i.where, i.reason) for i in items if isinstance(i, Drop)]


OBO = """format-version: 1.2
default-namespace: ours

[Term]
id: DOID:1
name: parent, "quoted"
def: "A thing; with \\"quotes\\"." [X:1]
synonym: "old parent" RELATED []
xref: UMLS_CUI:C0000001
xref: MSH:D000001 {x="y"}
alt_id: DOID:77

[Term]
id: DOID:2
name: child
synonym: "kid" EXACT []
is_a: DOID:1 ! parent
is_a: DOID:2 ! itself
relationship: part_of DOID:1 ! parent

[Term]
id: DOID:3
name: gone
is_obsolete: true

[Term]
name: nameless id

[Typedef]
id: part_of
"""


def test_obo_gives_names_relations_mappings_and_named_drops(tmp_path: Path) -> None:
    items = taken(tmp_path, "ours.obo", OBO)
    assert names(items) == [
        ("DOID:1", 'parent, "quoted"'),
        ("DOID:1", "old parent"),
        ("DOID:2", "child"),
        ("DOID:2", "kid"),
    ]
    assert triples(items) == [("DOID:2", "is_a", "DOID:1"), ("DOID:2", "part_of", "DOID:1")]
    assert [i.other for i in items if isinstance(i, ConceptMapping)] == [
        "UMLS:C0000001",
        "MESH:D000001",
        "DOID:77",
    ]
    assert [i.rank for i in items if isinstance(i, Name)] == [0, 2, 0, 1]
    assert drops(items) == [
        ("ours.obo:13: DOID:2", "relation to itself"),
        ("ours.obo:21: DOID:3", "obsolete term"),
        ("ours.obo:26", "no id"),
    ]


def test_umls_tables_keep_concepts_without_definition(tmp_path: Path) -> None:
    def row(**cells: str) -> str:
        keys = "CUI LAT TS LUI STT SUI ISPREF AUI SAUI SCUI SDUI SAB TTY CODE STR SRL SUPPRESS CVF"
        full = {"LAT": "ENG", "TS": "P", "STT": "PF", "ISPREF": "Y", "SUPPRESS": "N", **cells}
        return "|".join(full.get(key, "") for key in keys.split()) + "|"

    folder = tmp_path / "META"
    folder.mkdir()
    lines = [
        row(CUI="C1", SAB="MSH", STR="SAB", CODE="D1"),
        row(CUI="C1", LAT="CHI", SAB="MSHCHI", STR="热"),
        row(CUI="C1", LAT="GER", SAB="MSHGER", STR="Fieber"),
        row(CUI="C2", SAB="HPO", STR="no definition, here", CODE="HP:0000002"),
        row(CUI="C3", SAB="HPO", STR="hidden", SUPPRESS="O"),
        "C4|too short|",
    ]
    broken = b"C5|ENG|\xff\xfe|\n"
    (folder / "MRCONSO.RRF").write_bytes("\n".join(lines).encode() + b"\n" + broken)
    (folder / "MRDEF.RRF").write_text("C1|A1|AT1||NCI|Warm.|N||\n", encoding="utf-8")
    (folder / "MRSTY.RRF").write_text("C1|T033|A2.2|Finding|AT1|256|\n", encoding="utf-8")
    (folder / "MRREL.RRF").write_text(
        "C1|A1|S|PAR|C2|A2|S|isa|R1||HPO|HPO|||N||\n"
        "C1|A1|S|RO|C1|A2|S||R1||HPO|HPO|||N||\n"
        "C1|A1|S|DEL|C2|A2|S||R1||HPO|HPO|||N||\n",
        encoding="utf-8",
    )
    items = list(read_graph_files([folder]))
    assert names(items) == [
        ("UMLS:C1", "SAB"),
        ("UMLS:C1", "热"),
        ("UMLS:C2", "no definition, here"),
    ]
    assert [i.rank for i in items if isinstance(i, Name)] == [0, 2, 0]
    assert triples(items) == [("UMLS:C2", "isa", "UMLS:C1")]
    assert [i.text for i in items if isinstance(i, Definition)] == ["Warm."]
    assert {i.other for i in items if isinstance(i, ConceptMapping)} == {"MESH:D1", "HP:0000002"}
    assert dict(drops(items)) == {
        "MRCONSO.RRF:3": "language other than English and Chinese",
        "MRCONSO.RRF:5": "suppressed",
        "MRCONSO.RRF:6": "wrong number of columns",
        "MRCONSO.RRF:7": "not UTF-8",
        "MRREL.RRF:2": "relation to itself",
        "MRREL.RRF:3": "not a relation",
    }


def test_hpo_annotations_keep_frequency_and_say_no_when_the_row_does(tmp_path: Path) -> None:
    header = "database_id disease_name qualifier hpo_id reference evidence onset frequency sex"
    columns = [*header.split(), "modifier", "aspect", "biocuration"]
    rows = [
        ["OMIM:1", "ill", "", "HP:0000002", "PMID:1", "PCS", "", "1/2", "", "", "P", "x"],
        ["OMIM:1", "ill", "NOT", "HP:0000003", "PMID:2", "TAS", "", "", "", "", "P", "x"],
        ["OMIM:1", "ill", "", "HP:0000006", "PMID:2", "TAS", "", "", "", "", "I", "x"],
        ["OMIM:1", "ill", "", "HP:0000006", "PMID:2", "TAS", "", "", "", "", "Z", "x"],
        ["OMIM:1", "ill"],
    ]
    text = "#version: ours\n" + "\n".join("\t".join(row) for row in [columns, *rows])
    items = taken(tmp_path, "phenotype.hpoa", text)
    assert triples(items) == [
        ("OMIM:1", "has_phenotype", "HP:0000002"),
        ("OMIM:1", "not_has_phenotype", "HP:0000003"),
        ("OMIM:1", "has_mode_of_inheritance", "HP:0000006"),
    ]
    assert next(i.note for i in items if isinstance(i, Relation)) == "frequency 1/2; PMID:1"
    assert drops(items) == [
        ("phenotype.hpoa:6", "unknown aspect"),
        ("phenotype.hpoa:7", "wrong number of columns"),
    ]


def test_sssom_takes_exact_matches_only(tmp_path: Path) -> None:
    text = (
        "# curie_map:\n#   MONDO: x\n"
        "subject_id\tpredicate_id\tobject_id\n"
        "MONDO:0000001\tskos:exactMatch\tDOID:4\n"
        "MONDO:0000001\tskos:broadMatch\tDOID:5\n"
    )
    items = taken(tmp_path, "m.sssom.tsv", text)
    assert [i[:2] for i in items if isinstance(i, ConceptMapping)] == [("MONDO:0000001", "DOID:4")]
    assert drops(items) == [("m.sssom.tsv:5", "mapping that is not exact")]


MESH = """<?xml version="1.0"?><DescriptorRecordSet>
<DescriptorRecord><DescriptorUI>D1</DescriptorUI><DescriptorName><String>Wide</String>
</DescriptorName><TreeNumberList><TreeNumber>C01</TreeNumber></TreeNumberList>
<ConceptList><Concept PreferredConceptYN="Y"><ScopeNote>A wide thing.</ScopeNote>
<SemanticTypeList><SemanticType><SemanticTypeName>Finding</SemanticTypeName></SemanticType>
</SemanticTypeList><TermList><Term><String>Wide</String></Term><Term><String>Broad</String></Term>
</TermList></Concept></ConceptList></DescriptorRecord>
<DescriptorRecord><DescriptorUI>D2</DescriptorUI><DescriptorName><String>Narrow</String>
</DescriptorName><TreeNumberList><TreeNumber>C01.100</TreeNumber></TreeNumberList>
</DescriptorRecord>
<DescriptorRecord><DescriptorUI>D3</DescriptorUI></DescriptorRecord>
</DescriptorRecordSet>"""


def test_mesh_has_its_hierarchy_from_tree_numbers(tmp_path: Path) -> None:
    items = taken(tmp_path, "desc.xml", MESH)
    assert names(items) == [("MESH:D1", "Wide"), ("MESH:D1", "Broad"), ("MESH:D2", "Narrow")]
    assert triples(items) == [("MESH:D2", "is_a", "MESH:D1")]
    assert [i[:3] for i in items if isinstance(i, Definition)] == [
        ("MESH:D1", "A wide thing.", "MSH")
    ]
    assert drops(items) == [("desc.xml:11", "no name")]
    tables = taken(
        tmp_path, "t.tsv", "mesh_id\tmesh_name\tmesh_tree_number\nD1\tW\tC01\nD2\tN\tC01.100\n"
    )
    assert triples(tables) == triples(items)


def test_xml_that_breaks_off_gives_what_stands_before_the_break(tmp_path: Path) -> None:
    items = taken(tmp_path, "desc.xml", MESH[: MESH.index("Narrow")])
    assert names(items) == [("MESH:D1", "Wide"), ("MESH:D1", "Broad")]
    assert [reason for _, reason in drops(items)] == ["file that cannot be read to its end"]


def test_drugbank_records_by_the_public_schema(tmp_path: Path) -> None:
    text = """<drugbank xmlns="http://www.drugbank.ca"><drug type="small molecule">
<drugbank-id primary="true">DB1</drugbank-id><drugbank-id>OLD1</drugbank-id><name>Ourdrug</name>
<description>What it is.</description><indication>What for.</indication>
<toxicity>Too much.</toxicity><half-life>Two hours.</half-life>
<synonyms><synonym language="english">Other name</synonym></synonyms>
<categories><category><category>Ours</category><mesh-id>D9</mesh-id></category></categories>
<drug-interactions><drug-interaction><drugbank-id>DB2</drugbank-id><name>Second</name>
<description>They meet.</description></drug-interaction></drug-interactions>
<pathways><pathway><drugs><drug><drugbank-id>DB7</drugbank-id><name>in a pathway</name></drug>
</drugs></pathway></pathways>
<targets><target><id>BE1</id><name>Receptor</name><actions><action>inhibitor</action></actions>
</target></targets></drug><drug><name>without id</name></drug></drugbank>"""
    items = taken(tmp_path, "full.xml", text)
    assert triples(items) == [
        ("DRUGBANK:DB1", "interacts_with", "DRUGBANK:DB2"),
        ("DRUGBANK:DB1", "has_category", "MESH:D9"),
        ("DRUGBANK:DB1", "has_target", "DRUGBANK:BE1"),
    ]
    assert [i.note for i in items if isinstance(i, Relation)] == ["They meet.", "", "inhibitor"]
    assert [(i.source, i.text) for i in items if isinstance(i, Definition)] == [
        ("DRUGBANK", "What it is."),
        ("DRUGBANK indication", "What for."),
        ("DRUGBANK half-life", "Two hours."),
        ("DRUGBANK toxicity", "Too much."),
    ]
    assert ("DRUGBANK:DB1", "Other name") in names(items)
    assert [reason for _, reason in drops(items)] == ["no id"]


def test_hetionet_nodes_and_edges(tmp_path: Path) -> None:
    nodes = taken(
        tmp_path,
        "nodes.tsv",
        "id\tname\tkind\nGene::9\tNAT1\tGene\nDisease::DOID:1\till\tDisease\nbad\tx\ty\n",
    )
    assert names(nodes) == [("NCBIGene:9", "NAT1"), ("DOID:1", "ill")]
    assert drops(nodes) == [("nodes.tsv:4", "no id")]
    edges = taken(
        tmp_path,
        "edges.sif.gz",
        gzip.compress(b"source\tmetaedge\ttarget\nDisease::DOID:1\tDaG\tGene::9\nx\tDaG\n"),
    )
    assert triples(edges) == [("DOID:1", "associates", "NCBIGene:9")]
    assert drops(edges) == [("edges.sif.gz:3", "wrong number of columns")]


RECORD = {
    "name": "甲病",
    "desc": "一种病。",
    "symptom": ["咳嗽", "咳嗽"],
    "acompany": ["乙病", "甲病"],
    "cure_department": ["内科", "呼吸内科"],
    "drug_detail": ["某厂丙药(丙药)", "没有括号"],
}


@pytest.mark.parametrize("encoding", ["utf-8", "gb18030"])
def test_the_chinese_disease_graph_in_both_encodings(tmp_path: Path, encoding: str) -> None:
    line = json.dumps(RECORD, ensure_ascii=False)
    items = taken(tmp_path, "medical.json", f"{line}\n{{broken\n\n[1]\n".encode(encoding))
    assert triples(items) == [
        ("zh.disease:甲病", "症状", "zh.symptom:咳嗽"),
        ("zh.disease:甲病", "并发症", "zh.disease:乙病"),
        ("zh.department:呼吸内科", "属于", "zh.department:内科"),
        ("zh.disease:甲病", "所属科室", "zh.department:呼吸内科"),
        ("zh.producer:某厂丙药", "生产药品", "zh.drug:丙药"),
    ]
    assert Counter(reason for _, reason in drops(items)) == {
        "relation to itself": 1,
        "drug without its producer": 1,
        "not JSON": 1,
        "no name": 1,
    }


def test_a_file_may_mix_encodings_line_by_line(tmp_path: Path) -> None:
    line = json.dumps(RECORD, ensure_ascii=False)
    mixed = line.encode() + b"\n" + line.encode("gb18030") + b"\n\xff\xff\xff\n"
    items = taken(tmp_path, "medical.json", mixed)
    assert len(triples(items)) == 10
    assert ("medical.json:3", "neither UTF-8 nor GB18030") in drops(items)


def test_plain_triples_with_commas_quotes_and_cells_too_many(tmp_path: Path) -> None:
    text = 'S,P,O\n"a, b",rel,"say ""x"""\nx,y\n1,2,3,4\n,rel,x\n'
    items = taken(tmp_path, "spo.csv", text)
    assert triples(items) == [("term:a, b", "rel", 'term:say "x"')]
    assert drops(items) == [
        ("spo.csv:3", "wrong number of columns"),
        ("spo.csv:4", "wrong number of columns"),
        ("spo.csv:5", "empty cell"),
    ]


def test_an_open_quotation_mark_of_a_tab_separated_cell_swallows_no_row(tmp_path: Path) -> None:
    rows = 'Ibuprofen\tcauses\t"ulcer\nCodeine\tcauses\tnausea\n'
    of_rows = [
        ("term:Ibuprofen", "causes", 'term:"ulcer'),
        ("term:Codeine", "causes", "term:nausea"),
    ]
    assert triples(taken(tmp_path, "t.tsv", f"S\tP\tO\n{rows}")) == of_rows
    assert triples(taken(tmp_path, "u.tsv", rows)) == of_rows
    quoted = '"S"\t"P"\t"O"\n"a\tb"\tcauses\t"c"\n'
    assert triples(taken(tmp_path, "q.tsv", quoted)) == [("term:a b", "causes", "term:c")]


def test_cmekg_triples_as_an_array_and_by_the_line(tmp_path: Path) -> None:
    record = {"text": "感冒的症状是咳嗽", "spo_list": [["感冒", "相关症状", "咳嗽"], ["感冒", "x"]]}
    items = taken(tmp_path, "t.json", json.dumps([record, {"spo_list": 3}], ensure_ascii=False))
    assert triples(items) == [("term:感冒", "相关症状", "term:咳嗽")]
    assert drops(items) == [
        ("t.json: record 0", "wrong number of columns"),
        ("t.json: record 1", "malformed record"),
    ]
    line = json.dumps(record, ensure_ascii=False)
    items = taken(tmp_path, "u.json", f"{line}\n{{".encode("gb18030"))
    assert triples(items) == [("term:感冒", "相关症状", "term:咳嗽")]
    assert drops(items)[1] == ("u.json:2", "not JSON")


def test_triples_without_a_header_are_three_columns(tmp_path: Path) -> None:
    items = taken(tmp_path, "t.txt", "感冒\t症状\t咳嗽\nflu\tcauses\tfever\n")
    assert triples(items) == [
        ("term:感冒", "症状", "term:咳嗽"),
        ("term:flu", "causes", "term:fever"),
    ]
    items = taken(tmp_path, "u.txt", "a\tb\tc\n" * 25 + "a\tb\n\t\tc\na\tb\ta\n")
    assert drops(items) == [
        ("u.txt:26", "wrong number of columns"),
        ("u.txt:27", "empty cell"),
        ("u.txt:28", "relation to itself"),
    ]


@pytest.mark.parametrize("name", ["x.csv", "x.obo", "x.json", "x.xml", "phenotype.hpoa"])
def test_an_empty_file_is_a_drop_not_a_crash(tmp_path: Path, name: str) -> None:
    assert [reason for _, reason in drops(taken(tmp_path, name, b""))] == ["empty file"]


def test_every_importer_survives_noise(tmp_path: Path) -> None:
    """Each reads bytes that are not its own: drops, or one named error, nothing else.

    `read_graph_files` would not do: it asks `matches` first, which keeps noise from most of them.
    """
    noise = [b"\x00\xff" * 300, b"a\tb,c|d\n" * 50, b"{" * 200, "中文\n".encode("gb18030") * 20]
    for importer in IMPORTERS:
        for number, data in enumerate(noise):
            file = tmp_path / f"{importer.name}-{number}"
            if importer.name == "umls":  # a folder of tables
                file.mkdir()
                for table in ("MRCONSO.RRF", "MRREL.RRF", "MRDEF.RRF", "MRSTY.RRF"):
                    (file / table).write_bytes(data)
            else:
                file.write_bytes(data)
            with suppress(MalformedSource):
                found = list(importer.read(file))
                assert all(isinstance(item, Drop) for item in found), (importer.name, number)


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(MalformedSource):
        list(read_graph_files([tmp_path / "nowhere"]))
    with pytest.raises(BadConfig, match="no format"):
        list(read_graph_files([tmp_path], fmt="nonsense"))


def test_identifiers_have_one_spelling() -> None:
    assert (
        parse_curie("UMLS_CUI:C1") == parse_curie("http://linkedlifedata.com/UMLS_C1") == "UMLS:C1"
    )
    assert parse_curie("http://purl.obolibrary.org/obo/DOID_1") == "DOID:1"
    assert parse_curie("SNOMEDCT_2010_1_31:5") == parse_curie("SNOMEDCT_US:5") == "SNOMEDCT:5"
    assert (parse_curie("no prefix"), parse_curie(""), parse_curie(":x"), parse_curie("x:")) == (
        "",
        "",
        "",
        "",
    )
    assert make_curie("HPO", "HP:0000001") == make_curie("HP", "1") == "HP:0000001"


@pytest.mark.parametrize("spelling", ["UMLS:C0000001", "CUI:C0000001", "UMLS_CUI:C0000001"])
def test_a_concept_is_found_by_any_spelling_of_its_identifier(
    tmp_path: Path, spelling: str
) -> None:
    with Graph.create(tmp_path) as graph:
        graph.add([Name("UMLS:C0000001", "fever"), Definition("UMLS:C0000001", "Too warm.")])
        concept = graph.get_concept(spelling)
        assert concept is not None
        assert concept.id == "UMLS:C0000001"
        assert graph.get_passage(f"graph:{spelling}#def").id == "graph:UMLS:C0000001#def"
