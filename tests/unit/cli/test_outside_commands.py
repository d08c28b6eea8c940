"""`osler kb patients`, `osler kb fetch`, and `osler kb get` of a page that was found outside."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from osler.sources.online.cache import ReplyCache
from osler.types import Locator, Passage

PATIENTS = {
    "patients.csv": "subject_id,gender,anchor_age,anchor_year\n1,F,70,2150\n2,M,40,2150\n",
    "admissions.csv": "subject_id,hadm_id,admittime\n1,10,2150-01-01\n2,20,2150-01-01\n",
    "diagnoses_icd.csv": (
        "subject_id,hadm_id,seq_num,icd_code,icd_version\n1,10,1,25000,9\n2,20,1,25002,9\n"
        "2,20,2,E8788,9\n"
    ),
}


@pytest.fixture
def records(folder: Path, osler: Callable[..., Any]) -> Path:
    tables = folder / "mimic"
    tables.mkdir()
    for name, text in PATIENTS.items():
        (tables / name).write_text(text, encoding="utf-8")
    assert osler("kb", "add", "mimic", "--source", "emr").exit_code == 0
    return tables


@pytest.mark.usefixtures("records")
def test_similar_patients_are_shown_with_what_they_share(osler: Callable[..., Any]) -> None:
    done = osler("kb", "patients", "-c", "250.00", "--age", "65", "--sex", "female")

    assert done.exit_code == 0
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert lines[:2] == ["patient Patient, female, age 70", "passage emr:subject-1#0"]
    assert "ICD-9-CM 250.00 ICD-9-CM 250.00 code" in lines
    assert "ICD-9-CM 250.00 ICD-9-CM 250.02 subcategory" in lines
    assert lines[-1] == "compared 2"


@pytest.mark.usefixtures("records")
def test_codes_of_another_vocabulary_are_translated_by_the_maps_that_are_set(
    osler: Callable[..., Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert osler("kb", "patients", "-c", "E11.9").exit_code == 1
    (folder / "gem.txt").write_text("E119    25000 10000\n", encoding="utf-8")
    monkeypatch.setenv("OSLER__EMR__MAPS", str(folder / "gem.txt"))

    told = json.loads(osler("kb", "patients", "-c", "E11.9", "--json").stdout)

    assert told["asked"] == {"codes": ["ICD-10-CM E11.9"], "age": None, "sex": ""}
    first = told["patients"][0]
    assert first["passage"]["id"] == "emr:subject-1#0"
    match = {"asked": "ICD-10-CM E11.9", "found": "ICD-9-CM 250.00", "level": "code"}
    assert first["matches"] == [match]
    assert told["compared"] == 2


@pytest.mark.usefixtures("records")
def test_a_record_in_a_file_is_the_query(osler: Callable[..., Any], folder: Path) -> None:
    coding = {"system": "http://hl7.org/fhir/sid/icd-9-cm", "code": "250.02"}
    resources = [
        {"resourceType": "Patient", "id": "x", "gender": "male", "birthDate": "1990"},
        {
            "resourceType": "Condition",
            "subject": {"reference": "Patient/x"},
            "code": {"coding": [coding]},
            "onsetDateTime": "2030",
        },
    ]
    bundle = {"resourceType": "Bundle", "entry": [{"resource": each} for each in resources]}
    (folder / "new.json").write_text(json.dumps(bundle), encoding="utf-8")
    (folder / "codes.txt").write_text("99591\n250.02\nMale, 40 years old\n", encoding="utf-8")

    told = json.loads(osler("kb", "patients", "new.json", "--json").stdout)
    text = json.loads(osler("kb", "patients", "codes.txt", "--json").stdout)

    assert told["asked"] == {"codes": ["ICD-9-CM 250.02"], "age": 40, "sex": "male"}
    assert told["patients"][0]["passage"]["id"] == "emr:subject-2#0"
    assert text["asked"]["codes"] == ["ICD-9-CM 250.02", "ICD-9-CM 995.91"]
    assert (text["asked"]["age"], text["asked"]["sex"]) == (40, "male")


@pytest.mark.usefixtures("records")
@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["-c", "E8788"], "ICD-9-CM or ICD-10-CM"),
        (["-c", "diabetes"], "is no code"),
        ([], "no diagnosis to compare with"),
        (["-c", "I10", "--sex", "F"], "use female, male or other"),
    ],
)
def test_what_cannot_be_asked_is_told_with_what_to_write(
    args: list[str], says: str, osler: Callable[..., Any]
) -> None:
    done = osler("kb", "patients", *args)
    assert done.exit_code == 2
    assert says in done.stderr


def test_without_patients_the_command_says_what_to_add(osler: Callable[..., Any]) -> None:
    osler("kb", "build", "--sample")
    osler("kb", "rm", "--source", "emr")
    done = osler("kb", "patients", "-c", "I10")
    assert done.exit_code == 6
    assert "osler kb add PATH --source emr" in done.stderr


def test_a_page_that_was_found_outside_opens_from_the_cache(
    osler: Callable[..., Any], tmp_path: Path
) -> None:
    osler("kb", "build", "--sample")
    page = Passage(
        "web:a.example-1f#0", "Words of a page.", "web", "A page", Locator(url="http://a")
    )
    ReplyCache(tmp_path / "osler" / "web").keep_passages([page], now=1.0)

    done = osler("kb", "get", page.id)
    missing = osler("kb", "get", "web:b.example-2f#0")

    assert "Words of a page." in done.stdout
    assert missing.exit_code == 2


@pytest.fixture
def copy() -> Iterator[str]:
    """A copy of purl.obolibrary.org with one file."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Silence."""

        def do_GET(self) -> None:
            body = b"format-version: 1.2\n" if self.path == "/obo/hp.obo" else b""
            self.send_response(200 if body else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/obo/"
    server.shutdown()
    server.server_close()
    thread.join()


def test_recipes_are_listed_and_one_is_fetched_from_a_copy(
    osler: Callable[..., Any], copy: str, tmp_path: Path
) -> None:
    listed = json.loads(osler("kb", "fetch", "--json").stdout)
    refused = osler("kb", "fetch", "hpo", "--mirror", copy)
    done = osler("kb", "fetch", "hpo", "--mirror", copy, "--accept-licence")

    assert {"pubmed-baseline", "umls", "hpo"} <= {each["name"] for each in listed}
    assert refused.exit_code == 3
    assert "HPO licence" in refused.stderr
    assert "--accept-licence" in refused.stderr
    assert done.exit_code == 0
    target = tmp_path / "osler" / "fetched" / "hpo"
    assert (target / "hp.obo").read_bytes() == b"format-version: 1.2\n"
    assert f"next: osler kb add {target} --source graph" in done.stdout


def test_a_recipe_that_cannot_be_had_says_so(osler: Callable[..., Any], copy: str) -> None:
    done = osler("kb", "fetch", "mondo", "--mirror", copy, "--accept-licence")
    assert done.exit_code == 6
    assert "answers 404" in done.stderr
