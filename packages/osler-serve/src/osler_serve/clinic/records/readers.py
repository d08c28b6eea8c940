"""The parsers of patients' records, which `osler.sources.formats.registry` takes up."""

from osler_serve.clinic.records.eicu import Clif, Eicu
from osler_serve.clinic.records.fhir import Fhir
from osler_serve.clinic.records.mimic import Mimic, MimicEd, Synthea
from osler_serve.clinic.records.omop import Omop

PARSERS = (Fhir(),)
FOLDER_PARSERS = (Mimic(), MimicEd(), Eicu(), Omop(), Clif(), Synthea())
"""In sniffing order."""
