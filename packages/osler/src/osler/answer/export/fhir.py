"""An answer as FHIR R4: a document, where it comes from, and that it was asked, all labelled AIAST.

AIAST ("Artificial Intelligence asserted") is a code of HL7's v3-ObservationValue, which the guide
"AI Transparency on FHIR" asks for on everything that a program asserts.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any
from uuid import UUID, uuid5

from osler.answer.export.layout import ExportedAnswer
from osler.answer.export.texts import write_html

Resource = dict[str, Any]
_AIAST = {
    "system": "http://terminology.hl7.org/CodeSystem/v3-ObservationValue",
    "code": "AIAST",
    "display": "Artificial Intelligence asserted",
}
_SPACE = UUID("5c2f0f3e-6f5c-5d0c-9f7e-0e7ad2b1c0de")
_RUN_TIME = re.compile(r"(\d{8})-(\d{6})-")
_DICOM = "http://dicom.nema.org/resources/ontology/DCM"
_AGENTS = "http://terminology.hl7.org/CodeSystem/provenance-participant-type"


def write_fhir(answers: Sequence[ExportedAnswer]) -> bytes:
    """A Bundle: the device once, then a DocumentReference, Provenance and AuditEvent an answer."""
    device = _make_device()
    who = {"reference": address_of(device), "display": "Osler"}
    resources = [device]
    for one in answers:
        document = _make_document(one, who)
        resources += [
            document,
            _make_provenance(one, document, who),
            _make_audit(one, document, who),
        ]
    entries = [{"fullUrl": address_of(r), "resource": r} for r in resources]
    bundle = {"resourceType": "Bundle", "type": "collection", "entry": entries}
    return json.dumps(bundle, ensure_ascii=False, indent=2).encode()


def address_of(resource: Resource) -> str:
    """Its name within a Bundle."""
    return f"urn:uuid:{resource['id']}"


def new_resource(kind: str, name: str) -> Resource:
    """An empty resource with the AI label, whose id follows from its name."""
    id = str(uuid5(_SPACE, f"{kind}/{name}"))
    return {"resourceType": kind, "id": id, "meta": {"security": [_AIAST]}}


def _make_device() -> Resource:
    number = version("osler")
    return {
        **new_resource("Device", number),
        "deviceName": [{"name": "Osler", "type": "model-name"}],
        "type": {"text": "Medical question answering from cited evidence"},
        "version": [{"value": number}],
    }


def _recorded(one: ExportedAnswer) -> str:
    """When the run began, as its record or its id says; else now."""
    when = datetime.now(UTC)
    if one.created:
        when = datetime.fromisoformat(one.created).astimezone(UTC)
    elif found := _RUN_TIME.match(one.run):
        when = datetime.strptime("".join(found.groups()), "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    return when.isoformat(timespec="seconds")


def _make_document(one: ExportedAnswer, who: Resource) -> Resource:
    answer = one.solution.answer
    page = {
        "contentType": "text/html",
        "language": answer.language,
        "data": base64.b64encode(write_html([one])).decode(),
        "title": one.question.text,
    }
    return {
        **new_resource("DocumentReference", one.run),
        "identifier": [{"system": "urn:osler:run", "value": one.run}],
        "status": "current",
        "type": {"text": "Answer from cited evidence"},
        "date": _recorded(one),
        "author": [who],
        "description": f"{one.question.text} ({answer.grounding.value})",
        "securityLabel": [{"coding": [_AIAST]}],
        "content": [{"attachment": page}],
    }


def _make_provenance(one: ExportedAnswer, document: Resource, who: Resource) -> Resource:
    sources = [
        {
            "role": "source",
            "what": {
                "identifier": {"system": "urn:osler:passage", "value": passage.id},
                "display": reference.line,
            },
        }
        for reference in one.references
        for passage in reference.passages
    ]
    made: Resource = {
        **new_resource("Provenance", one.run),
        "target": [{"reference": address_of(document)}],
        "recorded": _recorded(one),
        "activity": {"text": f"{one.strategy}, {one.solution.answer.authorship.value}"},
        "agent": [{"type": {"coding": [{"system": _AGENTS, "code": "assembler"}]}, "who": who}],
    }
    if one.snapshot:
        base = {"system": "urn:osler:snapshot", "value": one.snapshot}
        sources.append({"role": "source", "what": {"identifier": base}})
    return made | ({"entity": sources} if sources else {})


def _make_audit(one: ExportedAnswer, document: Resource, who: Resource) -> Resource:
    return {
        **new_resource("AuditEvent", one.run),
        "type": {"system": _DICOM, "code": "110112", "display": "Query"},
        "action": "E",
        "recorded": _recorded(one),
        "outcome": "0",
        "agent": [{"who": who, "requestor": False}],
        "source": {"observer": who},
        "entity": [{"what": {"reference": address_of(document)}, "name": one.run}],
    }
