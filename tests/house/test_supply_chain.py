"""The bill of materials names all that is locked; an auditor that is silent has found nothing."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from supply_chain import ROOT, audit, bill_of_materials


def test_every_locked_package_and_every_weight_is_in_the_bill_with_its_hashes() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    made = bill_of_materials(lock, "1.0")
    names = {one["name"] for one in made["components"]}
    assert {"numpy", "pydantic", "lxml"} <= names
    pins = [line for line in lock.splitlines() if line[:1].isalnum()]
    assert len(made["components"]) == len(pins) + 4
    assert all(one["hashes"] for one in made["components"])
    assert made == bill_of_materials(lock, "1.0")
    models = [one for one in made["components"] if one["type"] == "machine-learning-model"]
    assert len(models) == 4


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
        bill_of_materials("numpy==2.0.0\n", "1.0")


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
