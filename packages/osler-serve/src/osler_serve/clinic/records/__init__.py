"""Patients: one neutral record, its codes and their translation, and similar patients.

The readers of the public formats all make the same `Patient`. They are among the parsers of
`osler.sources.formats.registry` wherever this package is installed.

| module             | holds                                                               |
|--------------------|---------------------------------------------------------------------|
| `patient`          | the record: encounters, facts, labs                                |
| `patient_document` | a record as a document, and its codes and entries read back from it |
| `codes`            | codes of diagnoses, and the hierarchies of ICD-9-CM and ICD-10-CM   |
| `crosswalk`        | translation between vocabularies by GEM files and SNOMED CT maps    |
| `similar`          | similar patients by their diagnoses, age and sex (TC-RAG App. 8.5)  |
| `search`           | finds them in a knowledge base                                      |
| `readers`          | the parsers of all public formats                                   |
| `fhir`             | FHIR R4 bundles; `fhir_server` asks a server for one                |
| `patient_tables`   | databases of patients; `mimic`, `eicu`, `omop` are the ones         |

De-identification is a property of the types and not of a filter behind them: `Patient` has
no field for a name, an address, an identifier of an office, or a date. Time is counted in
days since the first encounter, and ages above 89 are one class (HIPAA Safe Harbor). Formats
whose keys need not be pseudonyms hash them.

The knowledge base stores a patient once, as the document that can be read and cited.
`patient_document.profile_of` is the inverse of `document_of` in all that is compared, so the
comparison needs no second store:

    patient → document_of → passages → profile_of → Cohort.find_nearest

A code that no map translates keeps its own vocabulary; it is compared with its equals, and
counted in `Cohort.unmapped`. Guesses are never made: a source code that could be ICD-9-CM or
ICD-10-CM stays a "source code" unless the other codes of its visit tell the version.

The likeness of two patients is defined in `similar`, with its properties: it is symmetric, in
[0, 1], 1 for equal patients, and a diagnosis that both have never lowers it. The tests in
`tests/laws` hold it to these, and `tests/oracles` has cases that were computed by hand.

From Python:

    from pathlib import Path
    from osler_serve.clinic.records.mimic import Mimic
    from osler_serve.clinic.records.patient_document import document_of
    from osler.sources.records import Drop

    for patient in Mimic().read_patients(Path("mimic-iv/hosp")):
        print(patient if isinstance(patient, Drop) else document_of(patient).title)
"""
