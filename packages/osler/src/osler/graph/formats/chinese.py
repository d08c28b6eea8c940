"""Chinese graphs: CMeKG's annotated triples, and the disease graph QASystemOnMedicalKG
(`medical.json`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from osler.graph.formats.base import json_lines
from osler.graph.items import Definition, Item, Name, Relation, SemanticType
from osler.sources.formats.containers import open_file
from osler.sources.formats.reading import plain_head, read_json_file
from osler.sources.records import Drop
from osler.text import language_of, one_line


class Cmekg:
    """`[{"text": …, "spo_list": [[subject, predicate, object], …]}]`, or such a record a line.

    A name is its own identifier, as in plain triples.
    """

    name = "cmekg"

    def matches(self, path: Path, head: bytes) -> bool:
        begin = plain_head(head)
        return begin.startswith((b"[", b"{")) and b'"spo_list"' in begin

    def read(self, path: Path) -> Iterator[Item]:
        """The facts of all records; an array is read as a whole, lines one by one."""
        with open_file(path) as file:
            if plain_head(file.peek(4096)).startswith(b"{"):
                for line in json_lines(file, path.name):
                    yield from (
                        [line] if isinstance(line, Drop) else _read_record(*line, path.stem)
                    )
            else:
                for number, record in enumerate(read_json_file(file, path.name)):
                    yield from _read_record(f"{path.name}: record {number}", record, path.stem)


def _read_record(where: str, record: Any, source: str) -> Iterator[Item]:
    triples = record.get("spo_list") if isinstance(record, dict) else None
    if not isinstance(triples, list):
        yield Drop(where, "malformed record")
        return
    for triple in triples:
        cells = triple if isinstance(triple, list) else []
        if len(cells) != 3 or not all(isinstance(cell, str) for cell in cells):
            yield Drop(where, "wrong number of columns")
            continue
        one, predicate, other = map(one_line, cells)
        yield from triple_items(one, predicate, other, source, "", where)


def triple_items(
    one: str, predicate: str, other: str, source: str, note: str, where: str
) -> Iterator[Item]:
    """The names and the relation of a triple; a name is its own identifier, "_" a space in it."""
    if not (one and predicate and other):
        yield Drop(where, "empty cell")
        return
    for name in (one, other):
        yield Name(f"term:{name}", name.replace("_", " "), source, 0, language_of(name), where)
    if one == other:
        yield Drop(where, "relation to itself")
    else:
        yield Relation(f"term:{one}", predicate, f"term:{other}", source, note, where)


SOURCE = "QASystemOnMedicalKG"
# By key of the record: the relation's name in that project, and the kind at its end.
_LISTS = {
    "symptom": ("症状", "symptom"),
    "acompany": ("并发症", "disease"),
    "check": ("诊断检查", "check"),
    "common_drug": ("常用药品", "drug"),
    "recommand_drug": ("好评药品", "drug"),
    "do_eat": ("宜吃", "food"),
    "not_eat": ("忌吃", "food"),
    "recommand_eat": ("推荐食谱", "food"),
}
KINDS = {
    "disease": "疾病", "symptom": "症状", "check": "诊断检查项目", "drug": "药品",
    "food": "食物", "department": "医疗科目", "producer": "在售药品",
}  # fmt: skip


class ZhDisease:
    name = "zh-disease"

    def matches(self, path: Path, head: bytes) -> bool:
        begin = plain_head(head)
        keys = (b'"symptom"', b'"cure_department"', b'"acompany"', b'"yibao_status"', b'"category"')
        return begin.startswith(b"{") and b'"name"' in begin and any(key in begin for key in keys)

    def read(self, path: Path) -> Iterator[Item]:
        with open_file(path) as file:
            for line in json_lines(file, path.name):
                yield from [line] if isinstance(line, Drop) else _disease_items(*line)


def _disease_items(where: str, record: Any) -> Iterator[Item]:
    name = _as_text(record.get("name")) if isinstance(record, dict) else ""
    if not name:
        yield Drop(where, "no name")
        return
    disease = f"zh.disease:{name}"
    yield from _named_entity("disease", name, where, rank=0)
    if definition := _as_text(record.get("desc")):
        yield Definition(disease, definition, SOURCE, where)
    for key, (predicate, kind) in _LISTS.items():
        for other in _as_texts(record.get(key)):
            if (kind, other) == ("disease", name):
                yield Drop(where, "relation to itself")
                continue
            yield from _named_entity(kind, other, where)
            yield Relation(disease, predicate, f"zh.{kind}:{other}", SOURCE, "", where)
    yield from _department_items(disease, _as_texts(record.get("cure_department")), where)
    yield from _producer_items(_as_texts(record.get("drug_detail")), where)


def _named_entity(kind: str, name: str, where: str, rank: int = 1) -> Iterator[Item]:
    yield Name(f"zh.{kind}:{name}", name, SOURCE, rank, language_of(name), where)
    yield SemanticType(f"zh.{kind}:{name}", KINDS[kind], where)


def _department_items(disease: str, names: list[str], where: str) -> Iterator[Item]:
    # The list goes from the large department to the small; the disease belongs to the last.
    for name in names:
        yield from _named_entity("department", name, where)
    for large, small in pairwise(names):
        if large != small:
            one, other = f"zh.department:{small}", f"zh.department:{large}"
            yield Relation(one, "属于", other, SOURCE, "", where)
    if names:
        yield Relation(disease, "所属科室", f"zh.department:{names[-1]}", SOURCE, "", where)


def _producer_items(details: list[str], where: str) -> Iterator[Item]:
    # "桂林南药布洛芬(布洛芬片)": a product on sale, and the drug that it is.
    for detail in details:
        product, bracket, rest = detail.replace("（", "(").rpartition("(")
        drug = rest.replace("）", ")").removesuffix(")").strip()
        if not (bracket and product.strip() and drug):
            yield Drop(where, "drug without its producer")
            continue
        yield from _named_entity("producer", product.strip(), where)
        yield from _named_entity("drug", drug, where)
        one, other = f"zh.producer:{product.strip()}", f"zh.drug:{drug}"
        yield Relation(one, "生产药品", other, SOURCE, "", where)


def _as_text(value: Any) -> str:
    return one_line(value) if isinstance(value, str) else ""


def _as_texts(value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return list(dict.fromkeys(text for item in values if (text := _as_text(item))))
