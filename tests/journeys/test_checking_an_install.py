"""Wheels are built and unpacked as an installer does; then somebody changes files."""

import base64
import compileall
import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from release_check import PACKAGES, build
from release_statements import list_hashes

from osler.errors import BadConfig

LIST = "list.sha256"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of installed packages, and the list of hashes of their release."""
    folder = tmp_path_factory.mktemp("wheels")
    wheels = [build(package, folder)[1] for package in PACKAGES]
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder / "packages")
    (folder / "packages" / LIST).write_text(list_hashes(wheels))
    for name in ("film", "ask"):
        compileall.compile_file(folder / "packages" / "osler" / "cli" / f"{name}.py", quiet=1)
    return folder / "packages"


def doctor(place: Path) -> dict[str, Any]:
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "osler", "doctor", "--install", "--against", LIST, "--json"],
        capture_output=True,
        text=True,
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
    )
    document = json.loads(done.stdout)
    assert document["ok"] is (done.returncode == 0), done.stderr
    return {one["name"].split(" ")[0]: one for one in document["checks"]}


def test_what_was_released_is_as_released_and_what_somebody_changed_is_named(place: Path) -> None:
    said = doctor(place)
    names = ("osler", "osler-lab", "osler-serve", "dependencies", "hash")
    assert {name: one["status"] for name, one in said.items()} == dict.fromkeys(names, "pass"), said

    (place / "osler" / "sample" / "smuggled.py").write_text("print('here')\n")
    (place / "osler" / "py.typed").unlink()
    # Python runs it in place of the source, whose hash is right.
    good, other = (
        next((place / "osler" / "cli" / "__pycache__").glob(f"{n}.*.pyc")) for n in ("film", "ask")
    )
    good.write_bytes(good.read_bytes()[:16] + other.read_bytes()[16:])
    (place / "osler_lab" / "py.typed").write_text("changed\n")
    change_with_its_record(place, "osler_serve/keys.py")

    said = doctor(place)
    core = said["osler"]["detail"]
    assert "extra: osler/sample/smuggled.py" in core
    assert "missing: osler/py.typed" in core
    assert f"compiled from something else: osler/cli/__pycache__/{good.name}" in core
    assert "3 files differ" in core
    assert "changed: osler_lab/py.typed" in said["osler-lab"]["detail"]
    assert said["osler-serve"]["status"] == said["dependencies"]["status"] == "pass"
    assert "changed: osler_serve/keys.py" in said["hash"]["detail"]


def change_with_its_record(place: Path, name: str) -> None:
    """As one would who knows what a RECORD is for."""
    data = (place / name).read_bytes() + b"\n"
    (place / name).write_bytes(data)
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    (record,) = place.glob("osler_serve-*.dist-info/RECORD")
    lines = record.read_text().splitlines()
    line = f"{name},sha256={digest},{len(data)}"
    record.write_text("".join(f"{line if n.startswith(name) else n}\n" for n in lines))


def test_a_list_of_another_version_or_of_nothing_is_no_list(tmp_path: Path) -> None:
    from osler.doctor.install import check_install

    other = tmp_path / "other.sha256"
    other.write_text(f"{'0' * 64}  osler-0.0.9.dist-info/METADATA\n")
    *_, last = check_install(other)
    assert (last.name, last.status) == ("hash list", "fail")
    assert "other.sha256 is not of osler " in last.detail
    other.write_text("no hashes at all\n")
    with pytest.raises(BadConfig, match="is no list of hashes"):
        list(check_install(other))
