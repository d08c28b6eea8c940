"""CDS Hooks on a server that runs: discovery, cards on labelled cases, refusals, feedback."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fhir.resources.R4B import get_fhir_model_class
from served import ServedOsler, serve_osler
from synthetic_patients import SyntheticPatient as Person
from synthetic_patients import bundle, make_patients, read_labelled_cases

from osler.kb.base import KnowledgeBase
from osler_lab.testing.scripted import HashingEncoder
from osler_serve.clinic.chart import Measured, read_chart
from osler_serve.clinic.checks import packaged_clinic_rules
from osler_serve.clinic.endpoints import TEMPLATES
from osler_serve.clinic.hook_wire import CardList, HookRequest, HookServiceList
from osler_serve.clinic.outside import allows_reading

HOOKS = ("patient-view", "order-select", "order-sign")
# A woman of 70 years, 60 kg and 3 mg/dL: (140 - 70) x 60 / (72 x 3) x 0.85 = 16.5 ml/min.
CHECKS = ("interactions", "renal-doses", "allergies")


def call(http: httpx2.Client, check: str, person: Person, hook: str = "order-sign") -> CardList:
    reply = http.post(f"/cds-services/{check}-{hook}", json=person.request(hook))
    assert reply.status_code == 200, reply.text
    return CardList.model_validate_json(reply.content)


def validate_resource(given: dict[str, Any]) -> None:
    get_fhir_model_class(given["resourceType"]).model_validate_json(json.dumps(given))


def test_discovery_lists_each_check_for_each_hook(http: httpx2.Client) -> None:
    found = HookServiceList.model_validate_json(http.get("/cds-services").content).services
    assert {one.id for one in found} == {f"{check}-{hook}" for check in CHECKS for hook in HOOKS}
    for one in found:
        assert one.id.endswith(one.hook)
        assert set(one.prefetch.values()) <= set(TEMPLATES.values())
    kidney = next(one for one in found if one.id == "renal-doses-order-sign")
    assert kidney.prefetch["patient"] == "Patient/{{context.patientId}}"


def test_fifty_synthetic_patients_get_valid_cards_from_every_service(http: httpx2.Client) -> None:
    seen = 0
    for person in make_patients(50, seed=26):
        for resource in person.resources():
            validate_resource(resource)
        for hook in HOOKS:
            for check in CHECKS:
                cards = call(http, check, person, hook).cards
                seen += len(cards)
                assert len({card.uuid for card in cards}) == len(cards)
                for card in cards:
                    assert card.source.topic is not None
                    assert card.source.topic.code == check
                    assert bool(card.overrideReasons) == (card.indicator == "warning")
    assert seen > 100


@pytest.mark.parametrize(("check", "person", "right"), read_labelled_cases())
def test_a_labelled_case_gets_the_right_warnings(
    check: str, person: Person, right: list[str], http: httpx2.Client
) -> None:
    cards = call(http, check, person).cards
    assert [card.summary for card in cards if card.indicator == "warning"] == right


def test_an_unknown_kidney_is_said_and_not_guessed(http: httpx2.Client) -> None:
    person = Person(ordered=("Dabigatran",), weight=(60.0, "kg"), age=None)
    (card,) = call(http, "renal-doses", person).cards
    assert card.summary == "Dabigatran: kidney function not computed, for lack of age"
    assert card.indicator == "info"
    assert "needs age, creatinine; a measurement counts for a year" in card.detail


def measured(*values: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """Creatinine of a moment each, as the first observation of `Person` has it but for the rest."""
    asked = Person(ordered=("Metformin",), creatinine=(1.0, "mg/dL")).request("order-sign")
    (first,) = asked["prefetch"]["creatinine"]["entry"]
    every = [{**first["resource"], "effectiveDateTime": when} | said for when, said in values]
    asked["prefetch"]["creatinine"] = bundle(every)
    return asked


def newest_creatinine(*values: tuple[str, dict[str, Any]]) -> Measured | None:
    """As it is read at 07:00 on 5 October in Shanghai, where it is still the 4th in UTC."""
    asked = HookRequest.model_validate(measured(*values))
    brought = {name: given for name, given in asked.prefetch.items() if given is not None}
    return read_chart(asked, brought, datetime(2026, 10, 4, 23, tzinfo=UTC)).creatinine


def quantity(value: float, unit: str = "mg/dL", **more: str) -> dict[str, Any]:
    return {"valueQuantity": {"value": value, "unit": unit, **more}}


@pytest.mark.parametrize("when", ["2026-10-05T06:10:00+08:00", "2026-10-05"])
def test_this_morning_s_value_counts_east_of_greenwich(when: str) -> None:
    found = newest_creatinine((when, quantity(4)), ("2026-09-01T08:00:00+08:00", quantity(0.9)))
    assert found == Measured(4, "4 mg/dL on 2026-10-05")
    assert newest_creatinine(("2026-10-06", quantity(4))) is None


def test_of_one_day_s_values_the_latest_counts_wherever_it_stands() -> None:
    values = [("2026-10-04T20:00:00Z", quantity(4)), ("2026-10-04T22:00:00+08:00", quantity(0.9))]
    assert newest_creatinine(*values) == newest_creatinine(*values[::-1])
    assert newest_creatinine(*values) == Measured(4, "4 mg/dL on 2026-10-04")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (quantity(4, "mg%"), "4 mg% on 2026-10-04"),
        (quantity(4, comparator=">"), ">4 mg/dL on 2026-10-04"),
        ({"valueQuantity": None, "valueString": "high"}, "a value without a number on 2026-10-04"),
    ],
)
def test_an_older_value_does_not_stand_in_for_one_that_cannot_be_read(
    value: dict[str, Any], said: str
) -> None:
    older = ("2026-01-04", quantity(0.9))
    assert newest_creatinine(older, ("2026-10-04", value)) == Measured(None, said)
    nothing = {"valueQuantity": None, "dataAbsentReason": {"text": "not done"}}
    found = newest_creatinine(older, ("2026-10-04", nothing))
    assert found == Measured(0.9, "0.9 mg/dL on 2026-01-04")


def test_a_value_that_could_not_be_read_is_named(http: httpx2.Client) -> None:
    today = datetime.now(UTC).isoformat()
    asked = measured((today, quantity(4, "mg%")))
    reply = http.post("/cds-services/renal-doses-order-sign", json=asked)
    (card,) = CardList.model_validate_json(reply.content).cards
    assert card.summary == "Metformin: kidney function not computed, for lack of creatinine"
    assert "Not read: 4 mg% on" in card.detail.replace("\\", "")


def test_order_select_looks_at_the_selected_orders_alone(http: httpx2.Client) -> None:
    person = Person(taken=("Warfarin",), ordered=("Amiodarone", "Fluconazole"))
    asked = person.request("order-select")
    asked["context"]["selections"] = ["MedicationRequest/plan-1"]
    reply = http.post("/cds-services/interactions-order-select", json=asked)
    summaries = [card.summary for card in CardList.model_validate_json(reply.content).cards]
    assert summaries == ["Interaction: fluconazole, warfarin"]


def test_a_list_that_was_cut_short_and_a_drug_without_a_name_are_said(http: httpx2.Client) -> None:
    asked = Person(taken=("Warfarin",), ordered=("x",)).request("order-sign")
    asked["prefetch"]["medications"]["link"] = [{"relation": "next", "url": "http://x/2"}]
    code = {"coding": [{"system": "http://example.org", "code": "1"}]}
    asked["context"]["draftOrders"]["entry"][0]["resource"]["medicationCodeableConcept"] = code
    reply = http.post("/cds-services/interactions-order-sign", json=asked)
    said = [card.summary for card in CardList.model_validate_json(reply.content).cards]
    assert said == [
        "A drug has a code and no name: not checked",
        "Only a part of medications was sent: the rest is not checked",
    ]


@pytest.mark.parametrize("hook", ["order-select", "order-sign"])
def test_a_taken_drug_without_a_name_is_said_where_interactions_are_looked_for(
    hook: str, http: httpx2.Client
) -> None:
    asked = Person(taken=("x",), ordered=("Ibuprofen",)).request(hook)
    (taken,) = asked["prefetch"]["medications"]["entry"]
    del taken["resource"]["medicationCodeableConcept"]
    taken["resource"]["medicationReference"] = {"reference": "Medication/9"}
    for check, right in (("interactions", ["MedicationRequest/order-0"]), ("allergies", [])):
        reply = http.post(f"/cds-services/{check}-{hook}", json=asked)
        cards = CardList.model_validate_json(reply.content).cards
        assert [card.detail.replace("\\", "").split("] ")[1] for card in cards] == right
        assert {card.summary for card in cards} <= {"A drug has a code and no name: not checked"}


ERROR = {"severity": "error", "code": "exception"}
OUTCOME = {"resourceType": "OperationOutcome", "issue": [ERROR]}


@pytest.mark.parametrize("sent", [OUTCOME, {}, {"resourceType": "Patient", "id": "p-1"}])
def test_a_prefetch_of_another_kind_counts_as_not_sent(
    sent: dict[str, Any], http: httpx2.Client
) -> None:
    asked = Person(ordered=("Ibuprofen",)).request("order-sign")
    asked["prefetch"] |= {"medications": sent}
    reply = http.post("/cds-services/interactions-order-sign", json=asked)
    assert reply.status_code == 412
    assert "the prefetch of medications (Bundle)" in reply.json()["issue"][0]["diagnostics"]
    assert http.post("/cds-services/allergies-order-sign", json=asked).json() == {"cards": []}


@pytest.mark.parametrize(
    ("sent", "is_part"),
    [
        ({"entry": [{"resource": OUTCOME, "search": {"mode": "outcome"}}]}, True),
        ({"total": 5, "entry": []}, True),
        ({"total": 1, "entry": [{"resource": OUTCOME, "search": {"mode": "outcome"}}]}, True),
        ({"total": 0, "entry": []}, False),
        (bundle([OUTCOME | {"issue": [{"severity": "warning", "code": "incomplete"}]}]), True),
        (bundle([OUTCOME | {"issue": [{"severity": "warning", "code": "processing"}]}]), False),
    ],
)
def test_a_list_that_says_itself_that_something_is_missing_is_told(
    sent: dict[str, Any], is_part: bool, http: httpx2.Client
) -> None:
    asked = Person(ordered=("Ibuprofen",)).request("order-sign")
    asked["prefetch"]["medications"] = {"resourceType": "Bundle", "type": "searchset", **sent}
    reply = http.post("/cds-services/interactions-order-sign", json=asked)
    said = [card.summary for card in CardList.model_validate_json(reply.content).cards]
    assert said == ["Only a part of medications was sent: the rest is not checked"] * is_part


def test_an_allergy_without_a_name_is_said(http: httpx2.Client) -> None:
    asked = Person(ordered=("Amoxicillin",), allergies=("x",)).request("order-sign")
    code = {"coding": [{"system": "http://snomed.info/sct", "code": "91936005"}]}
    asked["prefetch"]["allergies"]["entry"][0]["resource"]["code"] = code
    reply = http.post("/cds-services/allergies-order-sign", json=asked)
    (card,) = CardList.model_validate_json(reply.content).cards
    assert card.summary == "An allergy has no name: not checked"
    assert card.indicator == "info"


def test_the_drug_of_a_referenced_or_contained_medication_is_read(http: httpx2.Client) -> None:
    asked = Person(taken=("x", "x"), ordered=("Warfarin",)).request("order-sign")
    entries = asked["prefetch"]["medications"]["entry"]
    for entry in entries:
        del entry["resource"]["medicationCodeableConcept"]
    inside = {"resourceType": "Medication", "id": "m", "code": {"text": "Amiodarone"}}
    entries[0]["resource"] |= {
        "contained": [inside],
        "medicationReference": {"reference": "#m"},
    }
    entries[1]["resource"]["medicationReference"] = {"reference": "http://fhir/r4/Medication/7"}
    beside = {"resourceType": "Medication", "id": "7", "code": {"text": "Metronidazole"}}
    entries.append({"resource": beside})
    reply = http.post("/cds-services/interactions-order-sign", json=asked)
    found = {card.summary for card in CardList.model_validate_json(reply.content).cards}
    assert found == {"Interaction: amiodarone, warfarin", "Interaction: metronidazole, warfarin"}


@pytest.mark.parametrize(
    ("changed", "status", "code"),
    [
        ({"prefetch": {}}, 412, "required"),
        ({"prefetch": {"medications": None}}, 412, "required"),
        ({"hook": "patient-view"}, 400, "invalid"),
        ({"hookInstance": "not a uuid"}, 422, "invalid"),
        ({"context": {"userId": "Practitioner/1", "patientId": "p-1"}}, 422, "invalid"),
        ({"prefetch": {"medications": "none"}}, 422, "invalid"),
    ],
)
def test_a_wrong_request_is_refused_with_an_operation_outcome(
    changed: dict[str, Any], status: int, code: str, http: httpx2.Client
) -> None:
    asked = Person(ordered=("Warfarin",)).request("order-sign") | changed
    reply = http.post("/cds-services/interactions-order-sign", json=asked)
    assert reply.status_code == status
    assert reply.headers["content-type"] == "application/fhir+json"
    validate_resource(reply.json())
    assert reply.json()["issue"][0]["code"] == code


def test_resources_of_another_patient_are_refused(http: httpx2.Client) -> None:
    asked = Person(taken=("Warfarin",), ordered=("Amiodarone",)).request("order-sign")
    other = Person(id="p-2", taken=("Warfarin",)).request("order-sign")
    asked["prefetch"]["medications"] = other["prefetch"]["medications"]
    reply = http.post("/cds-services/interactions-order-sign", json=asked)
    assert reply.status_code == 400
    assert "another patient" in reply.json()["issue"][0]["diagnostics"]


def test_an_unknown_service_is_not_found(http: httpx2.Client) -> None:
    for body in (Person().request("patient-view"), {}):
        for path in ("/cds-services/nothing", "/cds-services/nothing/feedback"):
            reply = http.post(path, json=body)
            assert reply.status_code == 404
            validate_resource(reply.json())


def test_feedback_on_cards_is_stored_and_exported(http: httpx2.Client) -> None:
    (card,) = call(http, "interactions", Person(taken=("Warfarin",), ordered=("Amiodarone",))).cards
    given = {
        "card": str(card.uuid),
        "outcome": "overridden",
        "overrideReason": {"reason": {"code": "will-monitor"}, "userComment": "INR on Friday"},
        "outcomeTimestamp": "2026-11-22T20:00:00Z",
    }
    where = "/cds-services/interactions-order-sign/feedback"
    assert http.post(where, json={"feedback": [given]}).status_code == 200
    (kept,) = [
        one for one in http.get("/api/v1/feedback").json()["feedback"] if one["kind"] == "card"
    ]
    assert kept["about"] == str(card.uuid)
    assert (kept["verdict"], kept["reason"], kept["note"]) == (
        "overridden",
        "will-monitor",
        "INR on Friday",
    )
    assert http.post(where, json={"feedback": [given | {"outcome": "?"}]}).status_code == 422


def test_every_rule_quotes_a_sample_text_word_for_word() -> None:
    sample = files("osler.sample")
    folders = (sample / "book", sample / "guideline")
    texts = [path.read_text(encoding="utf-8") for folder in folders for path in folder.iterdir()]
    rules = packaged_clinic_rules()
    for rule in (*rules.interaction, *rules.renal, *rules.allergy):
        assert any(rule.quote in text for text in texts), rule.quote


@pytest.fixture(scope="module")
def fhir_server() -> Iterator[tuple[str, dict[str, Any]]]:
    """A FHIR server that knows one patient, and the token that opens it."""
    person = Person(taken=("Warfarin",), ordered=("Amiodarone",))
    prefetch = person.request("order-sign")["prefetch"]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            good = self.headers["Authorization"] in ("Bearer good", "Bearer ill")
            held = OUTCOME if "ill" in self.headers["Authorization"] else prefetch["medications"]
            body = json.dumps(held if good else {}).encode()
            self.send_response(200 if good and self.path.startswith("/r4/Medication") else 401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/r4", person.request("order-sign", prefetch={})
        server.shutdown()
        thread.join(10)


@pytest.fixture(scope="module")
def hospital(
    tmp_path_factory: pytest.TempPathFactory, fhir_server: tuple[str, dict[str, Any]]
) -> Iterator[ServedOsler]:
    """A server that trusts the FHIR server, over the sample's texts on drugs."""

    def fill(home: Path) -> None:
        text = (files("osler.sample") / "book" / "pharmacology.md").read_text(encoding="utf-8")
        (home / "pharmacology.md").write_text(text, encoding="utf-8")
        with KnowledgeBase.create(home / "kb") as kb:
            kb.add([home / "pharmacology.md"], source="book", licence="Apache-2.0")
            kb.build(HashingEncoder())

    home = tmp_path_factory.mktemp("hospital")
    with serve_osler(home, fill=fill, serve={"fhir_servers": [fhir_server[0]]}) as running:
        yield running


def access(server: str, token: str, scope: str) -> dict[str, Any]:
    told = {"token_type": "Bearer", "expires_in": 300, "subject": "osler"}
    return {
        "fhirServer": server,
        "fhirAuthorization": {"access_token": token, "scope": scope, **told},
    }


@pytest.mark.parametrize(
    ("token", "scope", "said"),
    [
        ("good", "patient/MedicationRequest.read", ""),
        ("good", "launch patient/*.rs", ""),
        ("stale", "patient/*.read", "answers 401"),
        ("ill", "patient/*.read", "sends OperationOutcome"),
        ("good", "patient/Observation.rs", "the token does not reach MedicationRequest"),
    ],
)
def test_missing_data_is_read_from_a_trusted_fhir_server_with_the_request_s_token(
    hospital: ServedOsler,
    fhir_server: tuple[str, dict[str, Any]],
    token: str,
    scope: str,
    said: str,
) -> None:
    server, asked = fhir_server
    where = f"{hospital.url}/cds-services/interactions-order-sign"
    reply = httpx2.post(where, json=asked | access(server, token, scope))
    if said:
        assert reply.status_code == 412
        assert said in reply.json()["issue"][0]["diagnostics"]
    else:
        (card,) = reply.json()["cards"]
        assert card["summary"] == "Interaction: amiodarone, warfarin"


def test_a_server_that_is_not_trusted_is_not_asked(
    http: httpx2.Client, fhir_server: tuple[str, dict[str, Any]]
) -> None:
    server, asked = fhir_server
    asked = asked | access(server, "good", "patient/*.read")
    reply = http.post("/cds-services/interactions-order-sign", json=asked)
    assert reply.status_code == 412
    assert "serve.fhir_servers" in reply.json()["issue"][0]["diagnostics"]


def test_a_card_quotes_its_passage_and_links_it_where_the_base_has_it(
    hospital: ServedOsler, http: httpx2.Client
) -> None:
    person = Person(taken=("Warfarin",), ordered=("Amiodarone",))
    (elsewhere,) = call(http, "interactions", person).cards
    assert elsewhere.links == []
    with httpx2.Client(base_url=hospital.url) as client:
        (card,) = call(client, "interactions", person).cards
        assert "has to be cut by a third to a half" in card.detail
        # The record's facts and the quoted text are cited in two series.
        facts, quote = card.detail.split("> [1] ")
        assert all(re.match(r"- \[R\d+\] ", line) for line in facts.strip().split("\n"))
        assert "has to be cut" in quote
        (link,) = card.links
        assert link.url == f"{hospital.url}/#/passages/book%3Apharmacology%231"


@pytest.mark.parametrize(
    ("scopes", "resource", "search", "allowed"),
    [
        ("patient/Patient.read", "Patient", False, True),
        ("patient/Patient.r", "Patient", False, True),
        ("patient/Patient.r", "Patient", True, False),
        ("user/Observation.rs?category=laboratory", "Observation", True, True),
        ("system/*.*", "Observation", True, True),
        ("patient/Observation.write", "Observation", True, False),
        ("patient/Observation.cud", "Observation", True, False),
        ("openid fhirUser launch", "Patient", False, False),
        ("", "Patient", False, False),
    ],
)
def test_scopes_of_both_smart_versions_are_read(
    scopes: str, resource: str, search: bool, allowed: bool
) -> None:
    assert allows_reading(scopes, resource, search=search) is allowed


def test_rules_of_one_s_own_take_the_place_of_the_packaged_ones(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(
        '[drugs]\naspirin = []\nginkgo = []\n[[interaction]]\ngroups = ["aspirin", "ginkgo"]\n'
        'passage = "local:1"\ntitle = "House rules"\nquote = "Not together."\nurl = "https://x/1"\n',
        encoding="utf-8",
    )
    with serve_osler(tmp_path, serve={"hook_rules": str(file)}) as running:
        person = Person(taken=("Aspirin", "Warfarin"), ordered=("Ginkgo", "Amiodarone"))
        with httpx2.Client(base_url=running.url) as client:
            (card,) = call(client, "interactions", person).cards
    assert card.source.url == "https://x/1"
    assert "Not together." in card.detail
    assert "illustrative" not in card.detail


def test_an_empty_bundle_is_no_missing_one(http: httpx2.Client) -> None:
    asked = Person().request("patient-view", prefetch={"medications": bundle([])})
    reply = http.post("/cds-services/interactions-patient-view", json=asked)
    assert reply.json() == {"cards": []}
