"""Labels of drugs by the drug's name, and several side by side: verbatim, without a verdict.

A name is a brand, an ingredient, another name of either, or a set id. Labels of one ingredient
stand together, whatever its salt; of each drug the label that holds from the latest day is shown,
and the others are told. Earlier versions of a label are not in the knowledge base: the later one
took their place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from osler.errors import UnknownPassage
from osler.kb.reader import KnowledgeBaseReader
from osler.retrieve.entity_names import packaged_names
from osler.retrieve.lexicon import packaged_lexicon
from osler.sources.catalogue import DRUG_LABEL
from osler.sources.formats.labels import HEADINGS, PRODUCT, shared_heading
from osler.sources.formats.reading import names_in
from osler.types import Passage

_EFFECTIVE = re.compile(r"^Effective: (\d{4}-\d\d-\d\d)$", re.MULTILINE)
_SALTS = names_in(
    "acetate anhydrous besylate bisulfate bromide calcium citrate dihydrate disodium fumarate hcl"
    " hydrobromide hydrochloride magnesium maleate mesylate monohydrate nitrate phosphate potassium"
    " sodium succinate sulfate tartrate tosylate trihydrate"
)
_LONGEST = 100_000
"""Passages of one label."""


@dataclass(frozen=True, slots=True)
class DrugLabel:
    """A label in the knowledge base."""

    document: str
    """With its source: "label:c6e131fe-…"."""
    title: str
    code: str
    """Set id and version."""
    url: str
    effective: str
    """Day from which it holds, as 2014-01-13; "" where it tells none."""

    @property
    def ingredient(self) -> str:
        """The ingredient without its salt, by which labels stand together."""
        return ingredient_of(self.title)


@dataclass(frozen=True, slots=True)
class FoundLabels:
    """What a name found."""

    name: str
    shown: DrugLabel
    sections: dict[str, list[Passage]] = field(repr=False)
    """Of the shown label: the passages under each heading that labels share."""
    others: tuple[DrugLabel, ...]
    """Further labels that bear the name, the latest first."""


def ingredient_of(title: str) -> str:
    """The ingredient of a label's title without its salt: "metoprolol" of "Metoprolol succinate".

    A salt that comes first is itself the drug: "Potassium chloride".
    """
    words = title.partition(" (")[0].casefold().split()
    if words and words[0] in _SALTS:
        return " ".join(words)
    return " ".join(word for word in words if word not in _SALTS)


def find_labels(
    kb: KnowledgeBaseReader, name: str, may_open: Callable[[str, str], bool]
) -> FoundLabels:
    """The labels of a drug, of those whose source and document `may_open` allows. Blocks.

    Raises `UnknownPassage` where no label bears the name.
    """
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, _names_of(name)))})\b", re.IGNORECASE)
    found = [
        _read_head(kb, f"{source}:{id}")
        for source, id, title in kb.documents_of_kind(DRUG_LABEL)
        if may_open(source, id) and (pattern.search(title) or id == name.strip().lower())
    ]
    if not found:
        raise UnknownPassage(f"no label names {name!r}", fix="`osler kb search` with the name")
    # "Metformin" is meant before "sitagliptin and metformin".
    found.sort(key=lambda one: (bool(pattern.fullmatch(one.ingredient)), one.effective))
    shown, *others = reversed(found)
    return FoundLabels(name, shown, _read_sections(kb, shown), tuple(others))


def _names_of(name: str) -> list[str]:
    """The name, and what else it is called."""
    told = [other for one in packaged_lexicon().find_names(name) for other in one.names]
    told += [other for one in packaged_names().find_entities(name) for other in one.names]
    return list(dict.fromkeys(one.strip() for one in (name, *told)))


def _read_head(kb: KnowledgeBaseReader, document: str) -> DrugLabel:
    first = kb.get(f"{document}#0")
    told = _EFFECTIVE.search(first.text) if first.locator.section == PRODUCT else None
    place = first.locator
    return DrugLabel(document, first.title, place.code, place.url, told[1] if told else "")


def _read_sections(kb: KnowledgeBaseReader, label: DrugLabel) -> dict[str, list[Passage]]:
    found: dict[str, list[Passage]] = {}
    for one in kb.neighbours(f"{label.document}#0", _LONGEST):
        found.setdefault(shared_heading(one.locator.section), []).append(one)
    return found


def shared_headings(labels: Sequence[FoundLabels], wanted: Sequence[str] = ()) -> list[str]:
    """The headings of the labels in reading order; with `wanted`, those that hold one of these
    words."""
    there = dict.fromkeys(heading for one in labels for heading in one.sections)
    known = [heading for heading in HEADINGS if heading in there]
    ordered = [*known, *(heading for heading in there if heading not in HEADINGS)]
    words = [word.casefold() for word in wanted]
    return [one for one in ordered if not words or any(word in one.casefold() for word in words)]
