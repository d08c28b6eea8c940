"""Crosswalks: translation of diagnoses from one vocabulary to another.

Three forms of maps are read, recognised by their first line:

* the General Equivalence Mappings of CMS: `2018_I9gem.txt`, `2018_I10gem.txt` (columns of
  blanks: source, target, five flags) and their CSV form (`icd9cm,icd10cm,flags,…`);
* a SNOMED CT extended map of release format 2 (`der2_iisssccRefset_ExtendedMap…txt`);
* a table of your own, tab-separated, with the header `source<TAB>code<TAB>target<TAB>to`,
  a vocabulary and a code on either side: `SNOMED CT<TAB>44054006<TAB>ICD-10-CM<TAB>E11.9`.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from osler.errors import MalformedSource
from osler_serve.clinic.records.codes import Code, CodeSystem, icd_code, version_of

_GEM_LINE = re.compile(r"\s*([0-9A-Z]{3,7})\s+([0-9A-Za-z]{3,7})\s+([01]{3}\d\d)\s*")
_FLAGS = re.compile(r"[01]{3}\d\d")
_SNOMED_CODE = re.compile(r"\d{6,18}")
# Translations in a row, at most: SNOMED CT to ICD-10-CM to ICD-9-CM is two.
_WAY_BACK = 4


@dataclass(frozen=True, slots=True)
class CodeMapping:
    """One row of a map, in the terms of GEM files."""

    source: Code
    target: Code | None
    """`None` where the source has no equivalent (flag "no map")."""
    approximate: bool = False
    combination: bool = False
    """The source is a combination of several targets: one of each choice list."""
    scenario: int = 0
    """Which combination; 0 for a target that stands alone."""
    choice: int = 0
    """Which part of the combination; several targets of one part are alternatives."""


@dataclass(frozen=True, slots=True)
class CodeTranslation:
    """A code's equivalent in another vocabulary."""

    codes: tuple[Code, ...]
    """Together they mean the source code; empty = the map says that there is none."""
    approximate: bool = False
    combination: bool = False
    alternatives: int = 0
    """Number of other targets that would do as well as the chosen ones."""


@dataclass
class Crosswalk:
    """All mappings that were read, and translation by them."""

    mappings: dict[Code, list[CodeMapping]] = field(default_factory=dict)
    malformed: int = 0
    """Lines that could not be read."""

    @classmethod
    def read_files(cls, paths: Iterable[Path]) -> Crosswalk:
        """Reads the files, and those in the folders. Raises `MalformedSource` for an unknown form.

        In a folder, files of other forms (a guide, a licence) are passed over.
        """
        walk = cls()
        for path in paths:
            if path.is_dir():
                for file in sorted(path.rglob("*")):
                    if file.is_file() and file.suffix.lower() in {".txt", ".csv", ".tsv"}:
                        walk._read_file(file, is_named=False)
            else:
                walk._read_file(path, is_named=True)
        return walk

    def add_mapping(self, mapping: CodeMapping) -> None:
        self.mappings.setdefault(mapping.source, []).append(mapping)

    def __len__(self) -> int:
        return sum(map(len, self.mappings.values()))

    def translate_directly(self, code: Code, target: CodeSystem) -> CodeTranslation | None:
        """Translates by one map from the code's own vocabulary; `None` when no map has the code.

        Of several combinations the first is taken, and of several alternatives for one part
        of it, or for the whole, the first that is exact, else the first.
        """
        rows = [
            row
            for row in self.mappings.get(code, ())
            if row.target is None or row.target.system is target
        ]
        if not rows:
            return None
        mapped = [row for row in rows if row.target is not None]
        if not mapped:
            return CodeTranslation(())
        scenario = min(row.scenario for row in mapped)
        parts: dict[int, list[CodeMapping]] = {}
        for row in mapped:
            if row.scenario == scenario:
                parts.setdefault(row.choice, []).append(row)
        chosen = [min(rows, key=lambda row: row.approximate) for _, rows in sorted(parts.items())]
        return CodeTranslation(
            tuple(row.target for row in chosen if row.target is not None),
            any(row.approximate for row in chosen),
            any(row.combination for row in chosen),
            len(mapped) - len(chosen),
        )

    def translate_code(self, code: Code, target: CodeSystem) -> CodeTranslation | None:
        """Translates by one map or by several in a row; `None` when they do not lead there.

        A code of the target vocabulary is its own translation.
        """
        if code.system is target:
            return CodeTranslation((code,))
        return self._by_way_of(code, target, (code.system,))

    def _by_way_of(
        self, code: Code, target: CodeSystem, seen: tuple[CodeSystem, ...]
    ) -> CodeTranslation | None:
        if (direct := self.translate_directly(code, target)) is not None or len(seen) > _WAY_BACK:
            return direct
        for step in dict.fromkeys(
            row.target.system for row in self.mappings.get(code, ()) if row.target is not None
        ):
            first = None if step in seen else self.translate_directly(code, step)
            if first is None:
                continue
            onward = [self._by_way_of(each, target, (*seen, step)) for each in first.codes]
            if onward and None not in onward:
                known = [each for each in onward if each is not None]
                return CodeTranslation(
                    tuple(dict.fromkeys(code for each in known for code in each.codes)),
                    first.approximate or any(each.approximate for each in known),
                    first.combination or any(each.combination for each in known),
                    first.alternatives + sum(each.alternatives for each in known),
                )
        return None

    def _read_file(self, path: Path, *, is_named: bool) -> None:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            first = file.readline()
            file.seek(0)
            read = _reader_of(first)
            if read is None:
                if is_named:
                    raise MalformedSource(
                        f"{path.name} is not a map of codes",
                        fix="give a GEM file, a SNOMED CT extended map, or a table with the"
                        ' header "source<TAB>code<TAB>target<TAB>to"',
                    )
                return
            for mapping in read(file):
                if mapping is None:
                    self.malformed += 1
                else:
                    self.add_mapping(mapping)


def translate_all(
    codes: Iterable[Code], walk: Crosswalk | None, target: CodeSystem
) -> tuple[frozenset[Code], Counter[CodeSystem]]:
    """Translates all codes; those without a map stay as they are, counted by vocabulary."""
    kept: set[Code] = set()
    unmapped: Counter[CodeSystem] = Counter()
    for code in codes:
        translation = walk.translate_code(code, target) if walk else None
        if code.system is target:
            kept.add(code)
        elif translation and translation.codes:
            kept.update(translation.codes)
        else:
            kept.add(code)
            unmapped[code.system] += 1
    return frozenset(kept), unmapped


_Reader = Callable[[Iterable[str]], Iterator["CodeMapping | None"]]


def _reader_of(first: str) -> _Reader | None:
    head = first.strip().lower().replace('"', "")
    if gem := _GEM_LINE.fullmatch(first.rstrip("\r\n")):
        # Between procedures both sides begin with a digit; patients are compared by diagnoses.
        return None if gem[1][0].isdigit() and gem[2][0].isdigit() else _gem_text
    if head.startswith(("icd9cm,icd10cm,flags", "icd10cm,icd9cm,flags")):
        return _gem_csv
    if head.startswith("id\teffectivetime\tactive") and "maptarget" in head:
        return _snomed_mappings
    if head.split("\t")[:4] == ["source", "code", "target", "to"]:
        return _table_mappings
    return None


def _gem_text(lines: Iterable[str]) -> Iterator[CodeMapping | None]:
    version = ""
    for line in lines:
        if not line.strip():
            continue
        match = _GEM_LINE.fullmatch(line.rstrip("\r\n"))
        if match is None:
            yield None
            continue
        # The direction holds for the file; its first line (A000 or 0010) shows it.
        version = version or version_of(match[1]) or "10"
        yield _gem_mapping(match[1], match[2], match[3], version)


def _gem_csv(lines: Iterable[str]) -> Iterator[CodeMapping | None]:
    rows = csv.reader(lines)
    source = next(rows)[0].strip().lower()
    version = "9" if source == "icd9cm" else "10"
    for row in rows:
        good = len(row) >= 3 and row[0].strip() and _FLAGS.fullmatch(row[2].strip())
        yield _gem_mapping(row[0], row[1], row[2].strip(), version) if good else None


def _gem_mapping(source: str, target: str, flags: str, version: str) -> CodeMapping:
    # Five digits, in the order of the GEM user's guide.
    approximate, no_map, combination, scenario, choice = map(int, flags)
    other = "10" if version == "9" else "9"
    return CodeMapping(
        icd_code(source, version),
        None if no_map else icd_code(target, other),
        bool(approximate),
        bool(combination),
        scenario,
        choice,
    )


def _snomed_mappings(lines: Iterable[str]) -> Iterator[CodeMapping | None]:
    """Each map group is a part of a combination; within it, priorities are alternatives.

    Rules that ask for the patient's age or sex cannot be decided for a code alone: the row
    that holds otherwise, or always, is exact, the others are approximate.
    """
    for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
        source, target = row.get("referencedComponentId"), row.get("mapTarget")
        if row.get("active") != "1":
            continue
        if not source or not _SNOMED_CODE.fullmatch(source):
            yield None
            continue
        rule = (row.get("mapRule") or "").upper()
        group = int(row.get("mapGroup") or 1)
        if not target and group > 1:
            continue  # a part that adds nothing
        is_plain = rule in {"TRUE", "OTHERWISE TRUE", ""}
        yield CodeMapping(
            Code(CodeSystem.SNOMED, source),
            icd_code(target, "10") if target else None,
            approximate=not is_plain,
            combination=group > 1,
            scenario=0,
            choice=group,
        )


def _table_mappings(lines: Iterable[str]) -> Iterator[CodeMapping | None]:
    rows = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    next(rows)
    for row in rows:
        if not row:
            continue
        source, target = (
            (_parse_code(*row[:2]), _parse_code(*row[2:4])) if len(row) >= 4 else (None, None)
        )
        yield CodeMapping(source, target) if source and target else None


def _parse_code(name: str, value: str) -> Code | None:
    try:
        system = CodeSystem(name.strip())
    except ValueError:
        return None
    if system in (CodeSystem.ICD9, CodeSystem.ICD10):
        return icd_code(value, "9" if system is CodeSystem.ICD9 else "10")
    return Code(system, value.strip()) if value.strip() else None
