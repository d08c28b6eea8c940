"""Maps semantic types of vocabularies to the types of the paper's Table 15."""

from __future__ import annotations

from collections.abc import Iterable

from osler.graph.normal import normalize_name

_TYPES = {
    "Disease": (
        "disease",
        "disease or syndrome",
        "neoplastic process",
        "mental or behavioral dysfunction",
        "injury or poisoning",
        "congenital abnormality",
        "acquired abnormality",
        "anatomical abnormality",
        "pathologic function",
        "disorder",
        "disorders",
        "疾病",
    ),
    "Symptom": (
        "sign or symptom",
        "symptom",
        "phenotype",
        "effect phenotype",
        "finding",
        "side effect",
        "症状",
    ),
    "SurgicalProcedure": ("therapeutic or preventive procedure", "手术", "手术治疗"),
    "Drug": (
        "clinical drug",
        "pharmacologic substance",
        "antibiotic",
        "compound",
        "drug",
        "pharmacologic class",
        "药物",
        "药品",
    ),
    "Vaccine": ("vaccine", "疫苗"),
    "Examination": ("diagnostic procedure", "检查", "影像学检查", "check"),
    "LaboratoryTest": ("laboratory procedure", "laboratory or test result", "实验室检查"),
    "Population": (
        "population group",
        "age group",
        "patient or disabled group",
        "family group",
        "人群",
        "多发群体",
    ),
    "MedicalDiscipline": ("biomedical occupation or discipline",),
    "Department": ("department", "科室"),
    "HumanOrgan": (
        "body part organ or organ component",
        "anatomy",
        "body system",
        "body location or region",
        "tissue",
        "部位",
        "身体部位",
    ),
    "MedicalDevice": ("medical device", "drug delivery device"),
    "Organization": ("health care related organization", "organization", "机构"),
    "Location": ("geographic area",),
    "Gene": ("gene or genome", "gene", "gene protein", "基因"),
    "Substance": (
        "organic chemical",
        "inorganic chemical",
        "biologically active substance",
        "hormone",
        "enzyme",
        "vitamin",
        "amino acid peptide or protein",
        "food",
        "hazardous or poisonous substance",
    ),
    "Qualifier": ("qualitative concept", "temporal concept"),
    "Biology": ("bacterium", "virus", "fungus", "organism", "eukaryote", "微生物类", "病原体"),
    "Specimen": ("body substance",),
    "BiologicalProcess": (
        "biological process",
        "biologic function",
        "physiologic function",
        "cell function",
        "molecular function",
        "pathway",
    ),
    "ObservationTarget": ("clinical attribute", "organism attribute"),
}
_BY_NAME = {normalize_name(said): ours for ours, names in _TYPES.items() for said in names}


def type_of(types: Iterable[str]) -> str:
    """The first of these types that maps to Table 15; else the first of them, "" without any."""
    every = sorted(types)
    known = (_BY_NAME[norm] for said in every if (norm := normalize_name(said)) in _BY_NAME)
    return next(known, every[0] if every else "")
