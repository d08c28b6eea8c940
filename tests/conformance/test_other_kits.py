"""Other people's kits against what Osler emits (`make test-kits`; skipped where a kit is not here).

What each found, and what was not run: docs/conformance.md.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from served import ServedOsler, read_stream, serve_osler, start_run
from synthetic_patients import make_patients

KITS = Path(__file__).with_name("kits")
MCP = KITS / "node_modules" / ".bin" / "conformance"
PLAIN = (
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "prompts-list",
    "dns-rebinding-protection",
)
"""Scenarios of the suite that need no tool made for it: the others call `test_simple_text` and its
kin, or ask for abilities that a server may lack (logging, completion, subscriptions, sampling)."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedOsler]:
    with serve_osler(tmp_path_factory.mktemp("kits")) as place:
        yield place


@pytest.fixture(scope="module")
def emitted(place: ServedOsler) -> list[dict[str, Any]]:
    """The FHIR that Osler writes: an exported answer, with each of its parts, and an error."""
    with httpx2.Client(base_url=place.url, timeout=20) as client:
        run = start_run(client, "What is given first?")
        read_stream(client, run)
        place.wait_for_runs()
        bundle = client.get(f"/api/v1/runs/{run}/export", params={"to": "fhir"}).json()
        error = client.post("/cds-services/interactions-order-sign", json={}).json()
    return [bundle, *(entry["resource"] for entry in bundle["entry"]), error]


def node(version: int) -> str:
    """The path of node. Skips where it is older, or the kits are not installed."""
    found = shutil.which("node")
    if found is None or not MCP.exists():
        pytest.skip("the kits are not installed: make test-kits")
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout  # noqa: S603
    if int(said[1:].split(".")[0]) < version:
        pytest.skip(f"node {version} is needed, and this is {said.strip()}")
    return found


def medplum(resources: list[dict[str, Any]]) -> list[list[str]]:
    done = subprocess.run(  # noqa: S603
        [node(20), str(KITS / "validate.mjs")],
        input=json.dumps(resources),
        capture_output=True,
        text=True,
        check=True,
    )
    problems: list[list[str]] = json.loads(done.stdout)
    return problems


def test_medplum_s_validator_finds_no_fault_in_what_osler_writes_and_sees_one_that_is_made(
    emitted: list[dict[str, Any]],
) -> None:
    kinds = [one["resourceType"] for one in emitted]
    assert {"Bundle", "DocumentReference", "Provenance", "AuditEvent", "OperationOutcome"} < {
        *kinds
    }
    people = [resource for person in make_patients(20, seed=26) for resource in person.resources()]
    *found, control = medplum([*emitted, *people, {"resourceType": "Observation"}])
    assert [one for one in found if one] == []
    assert control


def test_fhirclient_reads_what_osler_writes(emitted: list[dict[str, Any]]) -> None:
    """The Python client of SMART: its models refuse fields and types that R4 has not."""
    factory = pytest.importorskip("fhirclient.models.fhirelementfactory").FHIRElementFactory
    refused = pytest.importorskip("fhirclient.models.fhirabstractbase").FHIRValidationError
    for one in emitted:
        assert factory.instantiate(one["resourceType"], one).as_json()
    wrong = {"resourceType": "AuditEvent", "recorded": 3}
    with pytest.raises(refused, match="recorded"):
        factory.instantiate("AuditEvent", wrong)


@pytest.mark.parametrize("scenario", PLAIN)
def test_the_conformance_suite_of_mcp_passes(
    place: ServedOsler, tmp_path: Path, scenario: str
) -> None:
    where = ["--url", f"{place.url}/mcp", "--scenario", scenario, "-o", str(tmp_path)]
    done = subprocess.run(  # noqa: S603
        [node(22), str(MCP), "server", *where], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-2_000:]
    (checks,) = tmp_path.rglob("checks.json")
    statuses = {one["status"] for one in json.loads(checks.read_text())}
    assert "SUCCESS" in statuses
    assert "FAILURE" not in statuses


def test_the_schema_of_the_api_is_valid_openapi(place: ServedOsler) -> None:
    validate = pytest.importorskip("openapi_spec_validator").validate
    validate(httpx2.get(f"{place.url}/openapi.json", timeout=20).json())
