"""A patient's record from a FHIR server that checks SMART Backend Services as the standard asks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

pytest.importorskip("jwt")
pytest.importorskip("cryptography")

from fhir_hospital import BASE, ENDPOINT, Hospital, make_client

from osler.errors import BadConfig, MalformedSource, SourceUnavailable
from osler_serve.clinic.records.fhir_server import fetch_record, fetch_token


@pytest.mark.parametrize("algorithm", ["RS384", "ES384"])
def test_a_record_is_read_page_by_page_with_a_signed_token(algorithm: str) -> None:
    hospital = Hospital(algorithm)
    with hospital.http() as http:
        token = fetch_token(BASE, make_client(algorithm), http)
        found = fetch_record(BASE, "p-1", token, http)
        assert fetch_token(BASE, make_client(algorithm), http) != token  # no statement twice
    assert [one["resource"] for one in found["entry"]] == hospital.person.resources()


def test_a_client_that_is_not_registered_gets_no_token() -> None:
    refused = pytest.raises(SourceUnavailable, match="400 invalid_client")
    with Hospital("ES384").http() as http, refused:
        fetch_token(BASE, make_client("RS384"), http)


def test_a_key_of_another_algorithm_is_refused() -> None:
    with pytest.raises(BadConfig, match="cannot sign with ES384"):
        replace(make_client("RS384"), algorithm="ES384").sign_statement(ENDPOINT, 0)
    with pytest.raises(BadConfig, match="unknown algorithm"):
        replace(make_client("RS384"), algorithm="none").sign_statement(ENDPOINT, 0)


def add_somebody_else(hospital: Hospital) -> None:
    hospital.second = [{"resource": {"resourceType": "Patient", "id": "p-2"}}]


def send_elsewhere(hospital: Hospital) -> None:
    hospital.next = "https://evil.example/r4/more"


def link_for_ever(hospital: Hospital) -> None:
    hospital.next = f"{BASE}/Patient/p-1/$everything?_count=200"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (add_somebody_else, "record of p-1, p-2, not of p-1"),
        (send_elsewhere, "next page is elsewhere: evil.example"),
        (link_for_ever, "more than 500 pages"),
    ],
)
def test_what_is_no_record_of_the_patient_is_refused(
    change: Callable[[Hospital], None], said: str
) -> None:
    hospital = Hospital()
    hospital.tokens.add("good")
    change(hospital)
    with hospital.http() as http, pytest.raises(MalformedSource, match=said):
        fetch_record(BASE, "p-1", "good", http)


def test_a_stale_token_and_an_open_line_are_refused() -> None:
    with Hospital().http() as http:
        with pytest.raises(SourceUnavailable, match="answers 401"):
            fetch_record(BASE, "p-1", "stale", http)
        with pytest.raises(BadConfig, match="not an https address"):
            fetch_record("http://fhir.example/r4", "p-1", "good", http)
        with pytest.raises(BadConfig, match="not an id"):
            fetch_record(BASE, "../p-1", "good", http)
