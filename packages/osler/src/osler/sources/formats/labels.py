"""Drug labels: HL7's SPL XML, as DailyMed packs it, and openFDA's JSON.

A label is a document under its set id, with the version and the day from which it holds. Headings
are the same in both forms, whatever a maker calls them: LOINC codes its sections, and openFDA's
fields bear the names of the codes. What a maker calls a section himself stands behind a colon
("Boxed warning: WARNING: LACTIC ACIDOSIS"). The first section says which product it is, so that
brand, ingredient, class and maker find it; the title has the ingredient first, by which labels of
one ingredient stand together.

Left out: highlights, which repeat the text; pictures, tables that are there as text, references,
recent changes, package panels and data elements. Labels of animals' drugs and entries of the index
of classes are drops.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO

from osler.sources.catalogue import DRUG_LABEL
from osler.sources.formats.json_lines import first_keys, items_at, read_items, text_in
from osler.sources.formats.reading import date_in, id_of, names_in, year_in
from osler.sources.formats.safe_xml import (
    CELL,
    Element,
    ElementRoles,
    first_child,
    iterate_elements,
    root_tag,
    sections_of_tree,
    text_of,
)
from osler.sources.formats.sections import finish_document
from osler.sources.records import Document, Drop, Record, Section
from osler.text import clean_text, make_slug, one_line

PRODUCT = "Product"
"""Heading of the section that says which product it is."""
_LICENCE = "public document (DailyMed, openFDA)"
_LOINC = "2.16.840.1.113883.6.1"
_TABLE = """
34066-1=boxed_warning 34067-9=indications_and_usage 34068-7=dosage_and_administration
43678-2=dosage_forms_and_strengths 34070-3=contraindications 43685-7=warnings_and_cautions
34071-1=warnings 42232-9=precautions 34072-9=general_precautions 50570-1=do_not_use
50569-3=ask_doctor 50568-5=ask_doctor_or_pharmacist 50567-7=when_using 50566-9=stop_use
50565-1=keep_out_of_reach_of_children 34084-4=adverse_reactions 34073-7=drug_interactions
34074-5=drug_and_or_laboratory_test_interactions 34075-2=laboratory_tests
43684-0=use_in_specific_populations 42228-7=pregnancy 53414-9=pregnancy_or_breast_feeding
34077-8=teratogenic_effects 34078-6=nonteratogenic_effects 34079-4=labor_and_delivery
77290-5=lactation 34080-2=nursing_mothers 77291-3=females_and_males_of_reproductive_potential
34081-0=pediatric_use 34082-8=geriatric_use 88828-9=renal_impairment 88829-7=hepatic_impairment
42227-9=drug_abuse_and_dependence 34085-1=controlled_substance 34086-9=abuse 34087-7=dependence
34088-5=overdosage 55106-9=active_ingredient 55105-1=purpose 51727-6=inactive_ingredient
34089-3=description 34090-1=clinical_pharmacology 43679-0=mechanism_of_action
43681-6=pharmacodynamics 43682-4=pharmacokinetics 66106-6=pharmacogenomics 49489-8=microbiology
43680-8=nonclinical_toxicology 34083-6=carcinogenesis_and_mutagenesis_and_impairment_of_fertility
34091-9=animal_pharmacology_and_or_toxicology 34092-7=clinical_studies 34069-5=how_supplied
44425-7=storage_and_handling 34076-0=information_for_patients 42230-3=spl_patient_package_insert
42231-1=spl_medguide 68498-5=patient_medication_information 59845-8=instructions_for_use
53413-1=questions 60561-8=other_safety_information 54433-8=user_safety_warnings
"""


def heading_of(field: str) -> str:
    """The heading of one of openFDA's fields: `boxed_warning` is "Boxed warning"."""
    if field == "warnings_and_cautions":  # which every label calls otherwise
        return "Warnings and precautions"
    return field.removeprefix("spl_").replace("_", " ").capitalize()


_FIELDS = dict(pair.split("=") for pair in _TABLE.split())
CODES = {field: code for code, field in _FIELDS.items()}
"""LOINC's code of each of openFDA's fields."""
_HEADINGS = {code: heading_of(field) for code, field in _FIELDS.items()}
HEADINGS: tuple[str, ...] = (PRODUCT, *_HEADINGS.values())
"""Headings in the order in which labels are read side by side; a label may have others."""
_BOXED = "34066-1"
_LEFT_OUT = frozenset({"48779-3", "48780-1", "51945-4", "43683-2", "34093-5"})
_UNREAD = names_in(
    "spl_product_data_elements package_label_principal_display_panel recent_major_changes"
    " spl_indexing_data_elements references id set_id version effective_time"
)
_UNCLASSIFIED = "spl_unclassified_section"
_NUMBER = re.compile(r"^\d+(?:\.\d+)*\.?\s+")
_NAMED_FIELDS = (("Active ingredient", "substance_name"), ("Class", "pharm_class_epc"))
_MOST = 3
"""Names of one kind that a title or a line of the product gives."""


def shared_heading(section: str) -> str:
    """The innermost heading of a passage's heading path that labels share, else the first."""
    parts = [part.partition(": ")[0] for part in section.split(" > ")]
    return next((part for part in reversed(parts) if part in HEADINGS), parts[0])


class OpenfdaLabels:
    """openFDA's drug/label: a download, of which each part is packed alone, or an answer."""

    name = "openfda-label"

    def matches(self, name: str, head: bytes) -> bool:
        return first_keys(head) >= {"meta", "results"} and b"open.fda.gov" in head

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        for number, found in enumerate(read_items(stream, "results", name), 1):
            yield _read_record(found, f"{name}: result {number}")


def _read_record(found: Any, where: str) -> Record:
    set_id = text_in(found, "set_id") if isinstance(found, dict) else ""
    if not set_id:
        return Drop(where, "no set id")
    brands, generics = (_texts(found, "openfda", key) for key in ("brand_name", "generic_name"))
    elements = " ".join(_texts(found, "spl_product_data_elements"))
    facts = [(name, _texts(found, "openfda", key)) for name, key in _NAMED_FIELDS]
    makers = _texts(found, "openfda", "manufacturer_name")
    return _make_label(
        (set_id, text_in(found, "version"), text_in(found, "effective_time")),
        _title_of(generics, brands) or " ".join(elements.split()[:5]),
        [("Brand", brands), *facts, ("Made by", makers)],
        [*_field_sections(found)],
        where,
    )


def _texts(found: Any, *path: str) -> list[str]:
    """The texts of a list, each once."""
    texts = (
        one_line(one.removesuffix(" [EPC]"))
        for one in items_at(found, *path)
        if isinstance(one, str)
    )
    return list(dict.fromkeys(filter(None, texts)))


def _field_sections(found: dict[str, Any]) -> Iterator[Section]:
    for key, value in found.items():
        if key in _UNREAD or key.endswith("_table") or not isinstance(value, list):
            continue
        heading = heading_of(key)
        for text in (one for one in value if isinstance(one, str)):
            path = () if key == _UNCLASSIFIED else (heading,)
            yield Section(_lay_out(clean_text(text), heading), path)


def _lay_out(text: str, heading: str) -> str:
    """The text of a field without the heading that it repeats, a numbered part on each line."""
    number = _NUMBER.match(text)
    rest = text[number.end() :] if number else text
    for said in (heading.upper(), heading.upper().replace(" AND ", " & ")):
        if rest.startswith(said) and not rest[len(said) : len(said) + 1].isalpha():
            rest = rest[len(said) :].lstrip(" :.")
            break
    else:
        rest = text
    if number:
        rest = re.sub(rf" (?={re.escape(number[0].strip(' .'))}\.\d{{1,2}} [A-Z])", "\n", rest)
    return rest.strip()


_GRAMMAR = ElementRoles(
    sections=frozenset({"section"}),
    title="title",
    blocks=names_in("paragraph list item table caption thead tbody tfoot tr footnote"),
    left_out=names_in("excerpt subject renderMultiMedia observationMedia colgroup col"),
    before={"item": "\n- ", "td": CELL, "th": CELL, "br": "\n"},
)


class Spl:
    """An SPL document: one label, as DailyMed gives it."""

    name = "spl"

    def matches(self, name: str, head: bytes) -> bool:
        return root_tag(head) == "document" and b"urn:hl7-org:v3" in head

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        for label in iterate_elements(stream, name, ("{urn:hl7-org:v3}document",)):
            yield _read_label(label, name)


def _read_label(label: Element, name: str) -> Record:
    told = _value_of(label, "code", "displayName").casefold()
    if "animal" in told:
        return Drop(name, "label of an animal's drug")
    if "indexing" in told:
        return Drop(name, "entry of an index, no label")
    set_id = _value_of(label, "setId", "root") or id_of(name)
    version, effective = (
        _value_of(label, of, "value") for of in ("versionNumber", "effectiveTime")
    )
    brands, generics, facts = _read_products(label)
    title = _title_of(generics, brands) or text_of(first_child(label, "title"))
    for section in list(label.iter("{*}section")):
        _prepare_section(section)
    bodies = label.iterfind("{*}component/{*}structuredBody")
    return _make_label(
        (set_id, version, effective),
        title,
        facts,
        [one for body in bodies for one in sections_of_tree(body, _GRAMMAR)],
        name,
    )


def _value_of(parent: Element, tag: str, attribute: str) -> str:
    """The attribute of the first child of this tag; "" where either is not there."""
    element = first_child(parent, tag)
    return (element.get(attribute) or "").strip() if element is not None else ""


def _read_products(label: Element) -> tuple[list[str], list[str], list[tuple[str, list[str]]]]:
    """Brands, generic names, and what the section of the product says."""
    brands, generics, actives = list[str](), list[str](), list[str]()
    for product in label.iter("{*}manufacturedProduct", "{*}manufacturedMedicine"):
        brand = first_child(product, "name")
        brands += [one_line((brand.text or "") if brand is not None else "")]
        generics += map(text_of, product.iterfind(".//{*}genericMedicine/{*}name"))
        for part in product.iterfind(".//{*}ingredient"):
            if (part.get("classCode") or "").startswith("ACTI"):
                actives += map(text_of, part.iterfind("{*}ingredientSubstance/{*}name"))
        actives += map(text_of, product.iterfind(".//{*}activeIngredientSubstance/{*}name"))
    makers = label.iterfind("{*}author/{*}assignedEntity/{*}representedOrganization/{*}name")
    brands, generics, actives = map(_distinct, (brands, generics, actives))
    active = {word for name in actives for word in name.casefold().split()}
    # A kit has names that are not the drug's: of a swab, of a solvent.
    own = [one for one in generics if active.intersection(one.casefold().split())]
    facts = [("Brand", brands), ("Active ingredient", actives)]
    made_by = ("Made by", _distinct(map(text_of, makers)))
    return brands, own or generics or actives, [*facts, made_by]


def _distinct(names: Iterable[str]) -> list[str]:
    """The names, each once whatever its case."""
    return list({name.casefold(): name for name in names if name}.values())


def _prepare_section(section: Element) -> None:
    """Gives a section the heading of its code; one that is left out goes."""
    is_loinc = _value_of(section, "code", "codeSystem") == _LOINC
    number = _value_of(section, "code", "code") if is_loinc else ""
    above = section.getparent()
    if number in _LEFT_OUT and above is not None:
        above.remove(section)
        return
    # Makers put a box around other texts as well.
    inside = number == _BOXED and next(section.iterancestors("{*}section"), None) is not None
    if inside or not (heading := _HEADINGS.get(number, "")):
        return
    title = first_child(section, "title")
    if title is None:
        title = section.makeelement("{urn:hl7-org:v3}title")
        section.insert(0, title)
    own = _NUMBER.sub("", text_of(title))
    said = own.casefold().replace("&", "and").strip(" :.")
    for inner in list(title):
        title.remove(inner)
    title.text = heading if said in {"", heading.casefold()} else f"{heading}: {own}"


def _title_of(generics: Sequence[str], brands: Sequence[str]) -> str:
    """ "Atorvastatin calcium (LIPITOR)"; "" for a product without names."""
    generic = ", ".join(generics[:_MOST])
    generic = generic.lower() if generic.isupper() else generic
    known = generic.casefold()
    brand = ", ".join([one for one in brands[:_MOST] if one.casefold() != known])
    title = f"{generic} ({brand})" if generic and brand else generic or brand
    return title[:1].upper() + title[1:]


def _make_label(
    issue: tuple[str, str, str],
    title: str,
    facts: Sequence[tuple[str, Sequence[str]]],
    sections: Sequence[Section],
    where: str,
) -> Record:
    set_id, version, effective = issue
    kept = [one for one in sections if one.text]
    if not kept:
        return Drop(where, "no text")
    year = year_in(effective[:4])
    day = date_in(f"{effective[:4]} {effective[4:6]} {effective[6:8]}")
    told = [*facts, ("Effective", [day or str(year)] if year else [])]
    product = "\n".join(f"{name}: {'; '.join(named[:_MOST])}" for name, named in told if named)
    number = int(version) if version.isascii() and version.isdigit() and len(version) < 6 else 1
    document = Document(
        id=make_slug(set_id),
        title=title or f"Drug label {set_id}",
        sections=(*([Section(product, (PRODUCT,))] if product else []), *kept),
        year=year,
        date=day,
        url=f"https://dailymed.nlm.nih.gov/dailymed/lookup.cfm?setid={set_id}",
        code=f"SPL:{set_id} version {number}",
        kind=DRUG_LABEL,
        licence=_LICENCE,
        version=max(number, 1),
    )
    return finish_document(document, where)
