"""SMART App Launch with a record system that checks what it gets; the server wants keys."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

pytest.importorskip("jwt")
pytest.importorskip("cryptography")

from record_system import CLIENT, SECRET, RecordSystem, public_key, serve_record_system
from served import FixedModel, ServedOsler, serve_osler
from synthetic_patients import SyntheticPatient

from osler.errors import BadConfig
from osler_serve.clinic import launch_flow
from osler_serve.clinic.launch_flow import read_launch_servers
from osler_serve.keys import FailedKeys, new_key
from osler_serve.ledger import Ledger
from osler_serve.scopes import KeyScope

BACK = "http://localhost:8642/launch/callback"
WORD, ASKED = "Warfarin", "Does the patient take warfarin?"


@dataclass
class LaunchingHospital:
    """Osler, and the record systems that may open it."""

    place: ServedOsler
    north: RecordSystem
    south: RecordSystem
    keys: dict[str, str]

    def browser(self, key: str = "") -> httpx2.Client:
        headers = {"Authorization": f"Bearer {self.keys[key]}"} if key else {}
        return httpx2.Client(base_url=self.place.url, headers=headers, timeout=20)

    def begin(self, browser: httpx2.Client, system: RecordSystem, launch: str = "l-1") -> str:
        """The address to which the authorisation server sends the browser back."""
        asked = {"iss": system.base} | ({"launch": launch} if launch else {})
        sent = browser.get("/launch", params=asked)
        assert sent.status_code == 302, sent.text
        agreed = httpx2.get(sent.headers["location"])
        back = urlsplit(agreed.headers["location"])
        assert f"{back.scheme}://{back.netloc}{back.path}" == BACK
        return f"{back.path}?{back.query}"

    def open(self, browser: httpx2.Client, system: RecordSystem, launch: str = "l-1") -> Any:
        """The patient in view."""
        reply = browser.get(self.begin(browser, system, launch))
        assert (reply.status_code, reply.headers.get("location")) == (303, "/"), reply.text
        return browser.get("/api/v1/launch").json()["patient"]


@pytest.fixture(scope="module")
def hospital(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LaunchingHospital]:
    home = tmp_path_factory.mktemp("launch")
    (home / "secret").write_text(f"{SECRET}\n")
    ledger = Ledger(home / "serve")
    keys = {
        name: new_key(ledger, name, workspace=where, scope=scope)
        for name, where, scope in (
            ("north", "north", KeyScope()),
            ("north-all", "north", KeyScope(sources=("all",))),
            ("south-all", "south", KeyScope(sources=("all",))),
        )
    }
    ledger.close()
    north, south = RecordSystem(), RecordSystem(user="dr-8", confidential=True)
    with serve_record_system(north), serve_record_system(south):
        plain = {"client_id": CLIENT, "redirect_uri": BACK}
        servers = {
            north.base: {**plain, "workspace": "north"},
            south.base: {**plain, "workspace": "south", "secret_file": str(home / "secret")},
        }
        (home / "servers.json").write_text(json.dumps(servers))
        serve = {"launch_servers": str(home / "servers.json"), "failed_keys": 1_000}
        audit = {"log": "require", "content": "text"}
        model = FixedModel(reply="Warfarin 3 mg oral tablet is taken. [3]")
        with serve_osler(home, model=model, serve=serve, audit=audit) as running:
            yield LaunchingHospital(running, north, south, keys)


@pytest.fixture
def north(hospital: LaunchingHospital) -> Iterator[RecordSystem]:
    """Its misbehaviour ends with the test."""
    system = hospital.north
    before = {name: getattr(system, name) for name in vars(system)}
    yield system
    for name, value in before.items():
        setattr(system, name, value)


@pytest.fixture
def fresh(hospital: LaunchingHospital, monkeypatch: pytest.MonkeyPatch) -> LaunchingHospital:
    """It knows nothing yet of the record systems."""
    gate, file = hospital.place.site.gate, hospital.place.site.settings.serve.launch_servers
    monkeypatch.setattr(gate, "launcher", read_launch_servers(file))
    return hospital


@pytest.mark.parametrize("launch", ["l-1", ""])
def test_a_launch_opens_the_patient_for_this_browser(
    hospital: LaunchingHospital, north: RecordSystem, launch: str
) -> None:
    with hospital.browser() as browser:
        patient = hospital.open(browser, north, launch)
        assert patient["title"] == "Patient, female, age 70"
        assert [WORD in one["text"] for one in patient["parts"]].count(True) >= 1
        assert patient["unread"] == []
        asked = parse_qs(urlsplit(next(one for one in north.asked[::-1] if "state=" in one)).query)
        wanted = "launch" if launch else "launch/patient"
        assert asked["scope"] == [f"{wanted} openid fhirUser patient/*.read"]
        assert asked.get("launch", [""]) == [launch]
        found = browser.post("/api/v1/search", json={"query": "warfarin tablet"}).json()["hits"]
        assert found[0]["passage"]["id"].startswith(f"{patient['record']}#")
        opened = browser.get(f"/api/v1/passages/{found[0]['passage']['id'].replace('#', '%23')}")
        assert WORD in opened.json()["passage"]["text"]
        assert browser.get("/metrics").status_code == 403  # a user operates nothing
    with hospital.browser() as another:
        assert another.get("/api/v1/launch").status_code == 401


def test_neither_a_token_nor_the_patient_is_stored(
    hospital: LaunchingHospital, north: RecordSystem
) -> None:
    with hospital.browser() as browser:
        address = hospital.begin(browser, north)
        cookie = browser.get(address).headers.get_list("set-cookie")[-1]
        record = browser.get("/api/v1/launch").json()["patient"]["record"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    home = hospital.place.site.settings.home
    written = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    code, secret = parse_qs(urlsplit(address).query)["code"][0], cookie.partition("=")[2][:43]
    for hidden in (*north.tokens, code, secret, WORD):
        assert hidden.encode() not in written
    entry = next(
        one
        for one in map(
            json.loads, (home / "audit" / "entries.jsonl").read_text().splitlines()[::-1]
        )
        if one.get("path") == "/launch/callback"
    )
    assert (entry["key"], entry["workspace"]) == ("launch:dr-7", "north")
    assert record in json.dumps(entry["asked"])


def test_a_confidential_client_says_its_secret(hospital: LaunchingHospital) -> None:
    with hospital.browser() as browser:
        assert hospital.open(browser, hospital.south)["system"] == hospital.south.base


def test_a_server_without_everything_is_read_kind_by_kind(
    hospital: LaunchingHospital, north: RecordSystem
) -> None:
    north.everything = False
    north.changed_token = {"scope": "openid patient/Patient.rs patient/MedicationRequest.rs"}
    with hospital.browser() as browser:
        patient = hospital.open(browser, north)
    text = json.dumps(patient["parts"])
    assert WORD in text
    assert "Penicillin" not in text
    assert "AllergyIntolerance" in patient["unread"]
    assert "MedicationRequest" not in patient["unread"]


@pytest.mark.parametrize(
    ("statement", "token", "said"),
    [
        ({"nonce": "another"}, {}, "of another launch"),
        ({"aud": "somebody"}, {}, "Audience"),
        ({"iss": "https://evil.example"}, {}, "issuer"),
        ({"exp": 1_700_000_000}, {}, "expired"),
        ({"sub": None}, {}, "could not be verified"),
        ({}, {"id_token": None}, "could not be verified"),
        ({}, {"id_token": "a.b.c"}, "could not be verified"),
        ({}, {"token_type": "mac"}, "no bearer token"),
        ({}, {"access_token": "stale"}, "answers 401"),
        ({}, {"patient": None}, "names no patient"),
        ({}, {"patient": "../p-1"}, "names no patient"),
        ({}, {"patient": "p-2"}, "record"),
        ({}, {"scope": "openid patient/Observation.rs"}, "did not let Osler read"),
    ],
)
def test_what_does_not_prove_user_and_patient_opens_nothing(
    hospital: LaunchingHospital,
    north: RecordSystem,
    statement: dict[str, Any],
    token: dict[str, Any],
    said: str,
) -> None:
    north.changed_statement, north.changed_token = statement, token
    with hospital.browser() as browser:
        reply = browser.get(hospital.begin(browser, north))
        assert reply.status_code == 403
        assert reply.headers["content-type"].startswith("text/html")
        assert said in reply.text
        assert browser.get("/api/v1/launch").status_code == 401


def test_the_record_of_somebody_else_is_refused(
    hospital: LaunchingHospital, north: RecordSystem
) -> None:
    north.person, north.changed_token = replace(north.person, id="p-2"), {"patient": "p-1"}
    north.read_fhir = lambda path, query: (  # type: ignore[method-assign]
        200,
        {"entry": [{"resource": one} for one in SyntheticPatient(id="p-2").resources()]},
    )
    with hospital.browser() as browser:
        reply = browser.get(hospital.begin(browser, north))
        assert "record of p-2, not of p-1" in reply.text
    del north.read_fhir


def test_a_state_is_good_once_in_its_own_browser_and_for_ten_minutes(
    hospital: LaunchingHospital, north: RecordSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hospital.browser() as browser, hospital.browser() as another:
        address = hospital.begin(browser, north)
        before = len(north.asked)
        assert another.get(address).status_code == 403
        forged = address.replace("state=", "state=x")
        assert browser.get(forged).status_code == 403
        assert browser.get(f"{address}&iss=https%3A%2F%2Fevil.example").status_code == 403
        assert len(north.asked) == before  # no code was sent anywhere
        address = hospital.begin(browser, north)
        kept = browser.cookies["osler_launch_state"]
        assert browser.get(address).status_code == 303
        browser.cookies.set("osler_launch_state", kept, path="/launch")
        assert "finished before" in browser.get(address).text
        monkeypatch.setattr(launch_flow, "_MINUTES_TO_AGREE", -1)
        assert "took too long" in browser.get(hospital.begin(browser, north)).text
        address, now = hospital.begin(browser, north), time.time()
        with monkeypatch.context() as clock:  # one that is set back makes none good again
            clock.setattr(time, "time", lambda: now - 3_600)
            assert "took too long" in browser.get(address).text
        refused = browser.get("/launch/callback?error=access_denied%3Cb%3E")
        assert "access_denied&lt;b&gt;" in refused.text


@pytest.mark.parametrize(
    "changed",
    [
        {"token_endpoint": "https://evil.example/token"},
        {"authorization_endpoint": "http://169.254.169.254/latest"},
        {"jwks_uri": "file:///etc/passwd"},
        {"token_endpoint": None},
    ],
)
def test_no_host_that_the_settings_do_not_name_is_asked(
    fresh: LaunchingHospital, north: RecordSystem, changed: dict[str, Any]
) -> None:
    north.changed_configuration = changed
    with fresh.browser() as browser:
        reply = browser.get("/launch", params={"iss": north.base})
        assert reply.status_code == 403
        assert f"its {next(iter(changed))} is on a host" in reply.text
        before = len(north.asked)
        for iss in ("https://evil.example/r4", f"{north.url}/other", "http://169.254.169.254", ""):
            assert browser.get("/launch", params={"iss": iss}).status_code == 403
        assert len(north.asked) == before


def test_one_user_s_patient_is_nobody_else_s(
    hospital: LaunchingHospital, north: RecordSystem
) -> None:
    with (
        hospital.browser() as mine,
        hospital.browser() as colleague,
        hospital.browser() as tenant,
    ):
        record = hospital.open(mine, north)["record"]
        run = mine.post("/api/v1/runs", json={"question": ASKED}).json()["run_id"]
        mine.get(f"/api/v1/runs/{run}/events")
        cited = mine.get(f"/api/v1/runs/{run}").json()["evidence"]
        assert [one["passage"]["id"].partition("#")[0] for one in cited] == [record]
        assert WORD in cited[0]["quote"]
        north.user = "dr-9"
        others = [hospital.open(colleague, north), hospital.open(tenant, hospital.south)]
        assert len({record, *(one["record"] for one in others)}) == 3  # of the same patient
        path = f"/api/v1/passages/{record}%230"
        assert mine.get(path).status_code == 200
        keyed = [hospital.browser(name) for name in ("north", "north-all", "south-all")]
        for reader in (colleague, tenant, *keyed):
            assert reader.get(path).status_code == 404
            found = reader.post("/api/v1/search", json={"query": WORD, "k": 50}).json()["hits"]
            assert not any(one["passage"]["id"].startswith(record) for one in found)
        for reader in (colleague, tenant, keyed[0], keyed[2]):
            assert reader.get(f"/api/v1/runs/{run}").status_code == 404
        for client in keyed:
            client.close()


def test_a_session_ends_with_its_token_or_when_it_is_closed(
    hospital: LaunchingHospital, north: RecordSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = hospital.place.site.gate.sessions
    with hospital.browser() as browser:
        record = hospital.open(browser, north)["record"]
        assert browser.delete("/api/v1/launch").status_code == 204
        assert browser.get("/api/v1/launch").status_code == 401
        north.changed_token = {"expires_in": 90_000}  # longer than a session may be
        hospital.open(browser, north)
        cookies = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        session = sessions.find(cookies)
        assert session is not None
        assert session.record == record
        now = sessions.clock()
        assert session.until <= now + 3_600
        monkeypatch.setattr(sessions, "clock", lambda: now + 3_601)
        assert browser.get("/api/v1/launch").status_code == 401
        assert sessions.find(cookies) is None


def test_codes_are_not_guessed_without_end(
    hospital: LaunchingHospital, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hospital.place.site.gate, "_throttle", FailedKeys(2))
    with hospital.browser() as browser:
        replies = [browser.get("/launch/callback?state=x&code=y").status_code for _ in range(4)]
    assert replies == [403, 403, 429, 429]


def test_a_server_that_names_no_record_system_is_not_opened_so(
    hospital: LaunchingHospital, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hospital.place.site.gate, "launcher", None)
    with hospital.browser("north") as browser:
        assert browser.get("/launch", params={"iss": "https://fhir.example"}).status_code == 404
        assert browser.get("/api/v1/launch").json() == {"patient": None}


@pytest.mark.parametrize(
    "given",
    [
        {"http://fhir.example/r4": {"client_id": "o", "redirect_uri": BACK}},
        {"https://fhir.example/r4": {"client_id": "o", "redirect_uri": "http://o.example/launch"}},
        {"https://fhir.example/r4": {"client_id": "o", "redirect_uri": "https://o.example/back"}},
        {"https://fhir.example/r4": {"redirect_uri": BACK}},
        [],
    ],
)
def test_a_file_of_record_systems_is_checked_at_the_start(tmp_path: Path, given: Any) -> None:
    (tmp_path / "s.json").write_text(json.dumps(given))
    with pytest.raises(BadConfig):
        read_launch_servers(tmp_path / "s.json")


def test_keys_that_the_record_system_does_not_publish_prove_nothing(
    fresh: LaunchingHospital, north: RecordSystem
) -> None:
    north.keys = [public_key("ES384", "k1")]
    with fresh.browser() as browser:
        reply = browser.get(fresh.begin(browser, north))
    assert reply.status_code == 403
    assert "could not be verified" in reply.text
