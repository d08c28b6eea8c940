"""The bill of materials names all that is locked; an auditor that is silent has found nothing."""

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from release_check import Refused, build, check_rebuilt
from release_statements import state_provenance
from supply_chain import ROOT, audit, bill_of_materials, locked_packages

LOCK = ROOT / "requirements.lock"


def test_all_that_is_shipped_or_asked_for_is_in_the_bill_with_its_hashes_and_licence() -> None:
    made = bill_of_materials("1.0")
    components = made["components"]
    names = {one["name"] for one in components}
    assert {"numpy", "pydantic", "lxml"} <= names  # the core
    assert {"fastapi", "mcp", "starlette", "cryptography"} <= names  # the server
    assert {"react", "react-dom"} <= names  # the page
    assert not names & {"pytest", "hypothesis", "vite", "mkdocs"}
    assert len({one["bom-ref"] for one in components}) == len(components)
    pins = [line for line in LOCK.read_text().splitlines() if line[:1].isalnum()]
    assert len(components) > len(pins) + 4
    assert all(one["hashes"] for one in components)
    assert sum("licenses" in one for one in components) > 0.9 * len(components)
    assert made == bill_of_materials("1.0")
    assert sum(one["type"] == "machine-learning-model" for one in components) == 4


def test_every_action_of_the_workflows_is_named_by_its_commit() -> None:
    """A tag may be moved to other code, which would run with the right to publish."""
    files = [*(ROOT / ".github" / "workflows").glob("*.yml")]
    lines = [line for path in files for line in path.read_text("utf-8").splitlines()]
    used = [line for line in lines if re.match(r"\s*(- )?uses:", line)]
    assert len(used) >= 9
    pinned = re.compile(r"uses: [\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
    assert [line for line in used if not pinned.search(line)] == []


def test_a_package_without_a_hash_is_refused() -> None:
    with pytest.raises(ValueError, match="locked without a hash: numpy"):
        locked_packages("numpy==2.0.0\n")


WORKFLOW = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_SERVER_URL": "https://host.example",
    "GITHUB_REPOSITORY": "somebody/osler",
    "GITHUB_REF": "refs/tags/v1.0",
    "GITHUB_WORKFLOW_REF": "somebody/osler/.github/workflows/release.yml@refs/tags/v1.0",
    "GITHUB_SHA": "0" * 40,
    "GITHUB_EVENT_NAME": "push",
    "GITHUB_RUN_ID": "12",
    "GITHUB_RUN_ATTEMPT": "1",
}


def test_the_provenance_names_each_file_its_source_and_its_builder(tmp_path: Path) -> None:
    """An in-toto statement (v1) with a SLSA predicate (v1)."""
    wheel = tmp_path / "osler-1.0-py3-none-any.whl"
    wheel.write_bytes(b"a wheel")
    made = state_provenance([wheel], [LOCK], WORKFLOW)
    assert made is not None
    assert made["_type"] == "https://in-toto.io/Statement/v1"
    assert made["predicateType"] == "https://slsa.dev/provenance/v1"
    digest = hashlib.sha256(b"a wheel").hexdigest()
    assert made["subject"] == [{"name": wheel.name, "digest": {"sha256": digest}}]
    definition, details = made["predicate"].values()
    home = "https://host.example/somebody/osler"
    path = ".github/workflows/release.yml"
    assert definition["externalParameters"] == {
        "workflow": {"ref": "refs/tags/v1.0", "repository": home, "path": path}
    }
    assert definition["resolvedDependencies"][0]["digest"] == {"gitCommit": "0" * 40}
    assert details["builder"] == {"id": f"{home}/{path}@refs/tags/v1.0"}
    assert details["metadata"] == {"invocationId": f"{home}/actions/runs/12/attempts/1"}


def test_the_provenance_is_read_by_the_library_of_in_toto(tmp_path: Path) -> None:
    reader = pytest.importorskip("google.protobuf.json_format")
    statements = pytest.importorskip("in_toto_attestation.v1.statement_pb2")
    slsa = pytest.importorskip("in_toto_attestation.predicates.provenance.v1.provenance_pb2")
    made = state_provenance([ROOT / "LICENSE"], [LOCK], WORKFLOW)
    assert made is not None
    reader.ParseDict(made, statements.Statement())
    reader.ParseDict(made["predicate"], slsa.Provenance())


def test_the_bill_fits_the_schema_that_cyclonedx_publishes() -> None:
    validation = pytest.importorskip("cyclonedx.validation.json")
    schema = pytest.importorskip("cyclonedx.schema")
    validator = validation.JsonStrictValidator(schema.SchemaVersion.V1_6)
    assert validator.validate_str(json.dumps(bill_of_materials("1.0"))) is None


def test_nobody_vouches_for_a_build_outside_the_workflow() -> None:
    assert state_provenance([ROOT / "LICENSE"], [], {}) is None


def test_two_builds_are_the_same_bytes_and_a_difference_is_refused(tmp_path: Path) -> None:
    """The check of the release, for the package that has files which git does not know."""
    sdist, wheel = build("osler-serve", tmp_path)
    check_rebuilt("osler-serve", (sdist, wheel), tmp_path)
    wheel.write_bytes(wheel.read_bytes() + b"\0")
    shutil.rmtree(tmp_path / "elsewhere")
    shutil.rmtree(tmp_path / "again")
    shutil.rmtree(tmp_path / "source")
    with pytest.raises(Refused, match=r"two builds of osler_serve-.*whl differ"):
        check_rebuilt("osler-serve", (sdist, wheel), tmp_path)


def replies(*outcomes: tuple[int, str, str]) -> object:
    left = list(outcomes)

    def run(command: list[str]) -> subprocess.CompletedProcess[str]:
        code, out, err = left.pop(0)
        return subprocess.CompletedProcess(command, code, out, err)

    return run


CLEAN = json.dumps({"dependencies": [{"name": "numpy", "version": "2", "vulns": []}]})
KNOWN = json.dumps(
    {"dependencies": [{"name": "numpy", "version": "2", "vulns": [{"id": "CVE-1"}]}]}
)
SKIPPED = json.dumps({"dependencies": [{"name": "numpy", "skip_reason": "not found"}]})


@pytest.mark.parametrize(
    ("outcomes", "fine", "said"),
    [
        ([(1, "", "no network")], None, "NOT audited: pip-audit cannot be installed"),
        (
            [(0, "", ""), (1, "", "x\nConnectionError")],
            None,
            "could not reach its data: Connection",
        ),
        ([(0, "", ""), (0, CLEAN, "")], True, "none known of 1 packages"),
        ([(0, "", ""), (1, KNOWN, "")], False, "numpy 2: CVE-1"),
        (
            [(0, "", ""), (0, SKIPPED, "")],
            None,
            "NOT audited: nothing is said of 1 of 1 packages (not found)",
        ),
    ],
)
def test_the_audit_says_what_it_knows(
    outcomes: list[tuple[int, str, str]], fine: bool | None, said: str
) -> None:
    found, words = audit(Path("requirements.lock"), replies(*outcomes))  # type: ignore[arg-type]
    assert found is fine
    assert said in words
