"""What a release is made of, and what is known against it.

    python scripts/supply_chain.py [--sbom FILE]

Writes the bill of materials (CycloneDX 1.6): every package that the core, the laboratory and the
server need, and those inside the page, with their locked hashes and their licences; and the pinned
weights with theirs. Then asks `pip-audit` for known vulnerabilities of the same
lock; where it cannot be had or cannot reach its data, that is said, and is no "none known".
"""

from __future__ import annotations

import argparse
import base64
import json
import re
import subprocess
import sys
import tempfile
import tomllib
import uuid
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, metadata, requires
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from osler.llm.local.weights import DEFAULTS, E5, WeightFile

ROOT = Path(__file__).resolve().parents[1]
LOCK = "requirements.lock"
DEV_LOCK = "requirements-dev.lock"
"""Holds what the laboratory and the server need as well."""
OWN = ("osler", "osler-lab", "osler-serve")
PAGE_LOCK = "web/package-lock.json"
_PIN = re.compile(r"^([\w.\-]+)==([\w.+!]+)(?: ; ([^\\]+?))? ?\\?$")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")

Run = Callable[[list[str]], "subprocess.CompletedProcess[str]"]


def bill_of_materials(version: str, weights: tuple[WeightFile, ...] = (*DEFAULTS, E5)) -> Any:
    """The document. Equal contents give an equal document. Raises `ValueError` for a pin without
    a hash."""
    wanted = needed_packages()
    more = [one for one in locked_packages(_read(DEV_LOCK)) if one["name"] in wanted]
    found = {one["bom-ref"]: one for one in [*locked_packages(_read(LOCK)), *more]}
    page = page_packages(_read(PAGE_LOCK))
    components = [*found.values(), *page, *map(_weights, weights)]
    root = {"type": "application", "bom-ref": "osler", "name": "osler", "version": version}
    content = json.dumps([root, components], sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, content)}",
        "version": 1,
        "metadata": {"component": root},
        "components": components,
        "dependencies": [{"ref": "osler", "dependsOn": [one["bom-ref"] for one in components]}],
    }


def _read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def needed_packages() -> set[str]:
    """Names of what the three packages ask for without an extra, and so on, as far as it is
    installed here."""
    projects = (tomllib.loads(path.read_text()) for path in ROOT.glob("packages/*/pyproject.toml"))
    left = [Requirement(one) for each in projects for one in each["project"]["dependencies"]]
    seen: set[tuple[str, str]] = set()
    while left:
        asked = left.pop()
        name = asked.name.lower().replace("_", "-")
        for extra in {"", *asked.extras} - {extra for known, extra in seen if known == name}:
            seen.add((name, extra))
            left += () if name in OWN else _requirements(name, extra)
    return {name for name, _ in seen} - {*OWN}


def _requirements(name: str, extra: str) -> list[Requirement]:
    try:
        asked = [Requirement(one) for one in requires(name) or ()]
    except PackageNotFoundError:
        return []
    return [one for one in asked if one.marker is None or one.marker.evaluate({"extra": extra})]


def page_packages(lock: str) -> list[dict[str, Any]]:
    """What `make page` puts into the page: all that npm locks, but what only builds and tests."""
    found = []
    for path, one in json.loads(lock)["packages"].items():
        if path and not one.get("dev"):
            name = path.rpartition("node_modules/")[2]
            kind, _, digest = one["integrity"].partition("-")
            known = {"alg": kind.upper().replace("SHA", "SHA-"), "content": _hex(digest)}
            purl = f"pkg:npm/{name.replace('@', '%40')}@{one['version']}"
            licences = [{"license": {"name": one["license"]}}]
            said = {"type": "library", "bom-ref": purl, "name": name, "version": one["version"]}
            found.append({**said, "purl": purl, "licenses": licences, "hashes": [known]})
    return found


def _hex(digest: str) -> str:
    return base64.b64decode(digest).hex()


def locked_packages(lock: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for line in lock.splitlines():
        if pin := _PIN.match(line):
            name, version, marker = pin.groups()
            purl = f"pkg:pypi/{name.lower().replace('_', '-')}@{version}"
            one = {"type": "library", "bom-ref": purl, "name": name, "version": version}
            found.append({**one, "purl": purl, "hashes": []})
            if licence := licence_of(name):
                found[-1]["licenses"] = [{"license": {"name": licence}}]
            if marker:
                found[-1]["properties"] = [{"name": "osler:marker", "value": marker}]
        elif digest := _HASH.search(line):
            found[-1]["hashes"].append({"alg": "SHA-256", "content": digest[1]})
    if bare := [one["name"] for one in found if not one["hashes"]]:
        raise ValueError(f"locked without a hash: {', '.join(bare)}")
    return found


def licence_of(package: str) -> str | None:
    """As the installed package says it: an SPDX expression, else its classifiers, else the first
    line of its licence. `None` = it is not installed here, as one of another system is not."""
    try:
        said = metadata(package)
    except PackageNotFoundError:
        return None
    marks = [one for one in said.get_all("Classifier", []) if one.startswith("License ::")]
    lines = (said["License"] or "").splitlines() or ["unknown"]
    named = " and ".join(one.rpartition(" :: ")[2] for one in marks)
    return said["License-Expression"] or named or lines[0]


def _weights(file: WeightFile) -> dict[str, Any]:
    return {
        "type": "machine-learning-model",
        "bom-ref": f"weights/{file.name}",
        "name": file.name,
        "version": f"{file.package} {file.version}",
        "licenses": [{"license": {"name": file.licence}}],
        "hashes": [{"alg": "SHA-256", "content": file.sha256}],
    }


def audit(lock: Path, run: Run) -> tuple[bool | None, str]:
    """Whether nothing is known against the lock, and what to say; `None` = it was not asked."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, "pip-audit"]
        if run(pip).returncode:
            return None, "NOT audited: pip-audit cannot be installed here"
        words = ["--requirement", str(lock), "--disable-pip", "--require-hashes", "--format=json"]
        code = (
            f"import sys; sys.path.insert(0, {folder!r}); from pip_audit._cli import audit; audit()"
        )
        done = run([sys.executable, "-c", code, *words, "--progress-spinner=off"])
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        return None, f"NOT audited: pip-audit could not reach its data: {last[:200]}"
    known = [
        f"{one['name']} {one['version']}: {', '.join(v['id'] for v in one['vulns'])}"
        for one in packages
        if one.get("vulns")
    ]
    skipped = [one["skip_reason"] for one in packages if "skip_reason" in one]
    if known:
        return False, f"known vulnerabilities: {'; '.join(known)}"
    if skipped:
        asked = f"{len(skipped)} of {len(packages)} packages ({skipped[0][:200]})"
        return None, f"NOT audited: nothing is said of {asked}"
    return True, f"pip-audit: none known of {len(packages)} packages"


def run_quietly(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, check=False, timeout=300
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", "no reply within 300 s")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sbom", type=Path, default=Path("sbom.cdx.json"))
    given = parser.parse_args()
    version = tomllib.loads((ROOT / "packages/osler/pyproject.toml").read_text())["project"][
        "version"
    ]
    made = bill_of_materials(version)
    given.sbom.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    print(f"{given.sbom}: {len(made['components'])} components")
    fine, said = audit(ROOT / LOCK, run_quietly)
    print(said)
    sys.exit(fine is False)


if __name__ == "__main__":
    main()
