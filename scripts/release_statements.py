"""What a release says of its own files: their hashes, and how they were made.

The list of hashes is of the files inside the wheels, as `sha256sum` writes it: `sha256sum --check`
reads it in a folder of installed packages, and so does `osler doctor --install --against`. The
provenance is an in-toto statement (v1) with a SLSA predicate (v1), of GitHub's build type. It is
not signed here: the release's workflow attests all its files, these two among them.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def list_hashes(wheels: Iterable[Path]) -> str:
    """A line for each file of the wheels, but RECORD: installers write their own."""
    lines: list[str] = []
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if not name.endswith(("/", "/RECORD"))]
            lines += (f"{hashlib.sha256(archive.read(one)).hexdigest()}  {one}\n" for one in names)
    return "".join(sorted(lines, key=lambda line: line.split("  ")[1]))


def state_provenance(
    files: Iterable[Path], locks: Iterable[Path], surroundings: Mapping[str, str]
) -> dict[str, Any] | None:
    """The statement; `None` where no workflow builds: nobody vouches for a laptop."""
    if surroundings.get("GITHUB_ACTIONS") != "true":
        return None
    server, repository = surroundings["GITHUB_SERVER_URL"], surroundings["GITHUB_REPOSITORY"]
    home, ref = f"{server}/{repository}", surroundings["GITHUB_REF"]
    workflow = surroundings["GITHUB_WORKFLOW_REF"]
    path = workflow.removeprefix(f"{repository}/").partition("@")[0]
    source = {
        "uri": f"git+{home}@{ref}",
        "digest": {"gitCommit": surroundings["GITHUB_SHA"]},
    }
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [_describe(file) for file in files],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "https://actions.github.io/buildtypes/workflow/v1",
                "externalParameters": {
                    "workflow": {"ref": ref, "repository": home, "path": path},
                },
                "internalParameters": {
                    "github": {"event_name": surroundings["GITHUB_EVENT_NAME"]},
                },
                "resolvedDependencies": [source, *map(_describe, locks)],
            },
            "runDetails": {
                "builder": {"id": f"{server}/{workflow}"},
                "metadata": {
                    "invocationId": f"{home}/actions/runs/{surroundings['GITHUB_RUN_ID']}"
                    f"/attempts/{surroundings['GITHUB_RUN_ATTEMPT']}",
                },
            },
        },
    }


def _describe(file: Path) -> dict[str, Any]:
    return {
        "name": file.name,
        "digest": {"sha256": hashlib.sha256(file.read_bytes()).hexdigest()},
    }
