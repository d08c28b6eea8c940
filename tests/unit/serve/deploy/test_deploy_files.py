"""The files of `osler deploy` agree with each other and with the settings."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import metadata, version
from importlib.resources import files
from typing import Any

import pytest

from osler.settings import Settings

yaml = pytest.importorskip("yaml")

FILES = {
    name: files("osler_serve.deploy").joinpath(name).read_text(encoding="utf-8")
    for name in ("Containerfile", "compose.yaml", "kubernetes.yaml", "osler.service", "osler.toml")
}
SERVE = Settings().serve
OBJECTS: list[dict[str, Any]] = list(yaml.safe_load_all(FILES["kubernetes.yaml"]))


def of_kind(kind: str) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one for one in OBJECTS if one["kind"] == kind}


def workloads() -> Iterator[tuple[str, dict[str, Any]]]:
    for kind in ("Deployment", "StatefulSet"):
        for name, one in of_kind(kind).items():
            assert one["spec"]["selector"]["matchLabels"].items() <= (
                one["spec"]["template"]["metadata"]["labels"].items()
            )
            yield name, one["spec"]["template"]["spec"]


def instructions() -> list[tuple[str, str]]:
    """Of the container file, each with its arguments on one line."""
    joined = re.sub(r"\\\n\s*", "", FILES["Containerfile"])
    lines = [line for line in joined.splitlines() if line and not line.startswith("#")]
    return [(head, rest.strip()) for head, _, rest in (line.partition(" ") for line in lines)]


def test_the_container_file_keeps_the_rules_of_its_linters() -> None:
    said = instructions()
    given = dict(said)
    image = given["FROM"]
    assert ":" in image.rpartition("/")[2], "an image has a tag (DL3006)"
    assert not image.endswith(":latest"), "and not the latest (DL3007)"
    assert given["ARG"] == f"VERSION={version('osler')}"
    for rest in (rest for head, rest in said if head == "RUN" and "pip install" in rest):
        assert "--no-cache-dir" in rest  # DL3042
        assert "==${VERSION}" in rest  # DL3013
        (extras,) = re.findall(r"osler\[(.+)\]", rest)
        assert {*extras.split(",")} <= {*(metadata("osler").get_all("Provides-Extra") or ())}
    users = [rest for head, rest in said if head == "USER"]
    owned = f"install -d -o {users[-1]} -g {users[-1]} {given['VOLUME']} "
    before = said[: said.index(("USER", users[-1]))]
    assert any(owned in rest for head, rest in before if head == "RUN"), "it may write its volume"
    assert users[-1].isdigit(), "Kubernetes tells by a number that it is not root (DL3002)"
    for head in ("ENTRYPOINT", "CMD"):
        assert isinstance(json.loads(given[head]), list), "a signal reaches the program (DL3025)"
    assert given["EXPOSE"] == str(SERVE.port)
    assert f"127.0.0.1:{SERVE.port}/readyz" in given["HEALTHCHECK"]
    assert given["STOPSIGNAL"] == "SIGTERM"


def test_the_compose_file_joins_the_services_that_the_settings_name() -> None:
    tree = yaml.safe_load(FILES["compose.yaml"])
    services = tree["services"]
    settings = Settings.model_validate(tomllib.loads(FILES["osler.toml"]))
    assert settings.kb.url == "http://qdrant:6333"
    assert settings.model.url == "http://vllm:8000/v1"
    assert {"osler", "qdrant", "vllm"} == set(services)
    assert services["osler"]["ports"] == [f"127.0.0.1:{SERVE.port}:{SERVE.port}"]
    assert int(services["osler"]["stop_grace_period"][:-1]) > settings.serve.drain_seconds
    used = {one.split(":")[0] for service in services.values() for one in service["volumes"]}
    assert {name for name in used if not name.startswith(".")} == set(tree["volumes"])
    for service in services.values():
        assert "image" not in service or re.search(r":v?\d", service["image"])


def test_the_manifests_hang_together_by_name_and_port() -> None:
    settings = Settings.model_validate(
        tomllib.loads(of_kind("ConfigMap")["osler"]["data"]["osler.toml"])
    )
    services, pods = of_kind("Service"), dict(workloads())
    for url in (settings.kb.url, settings.model.url):
        host, port = re.fullmatch(r"http://(\w+):(\d+)(?:/v1)?", url or "").groups()  # type: ignore[union-attr]
        assert services[host]["spec"]["ports"][0]["port"] == int(port)
    assert services["osler"]["spec"]["ports"][0]["port"] == SERVE.port
    for name, service in services.items():
        (container,) = pods[service["spec"]["selector"]["app"]]["containers"]
        (port,) = container["ports"]
        assert service["spec"]["ports"][0]["targetPort"] == port["name"]
        assert service["spec"]["ports"][0]["port"] == port["containerPort"], name
    assert pods["osler"]["terminationGracePeriodSeconds"] > settings.serve.drain_seconds


def test_the_manifests_keep_the_rules_of_restricted_pods() -> None:
    for name, pod in workloads():
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert {"requests", "limits"} == set(container["resources"])
            assert "memory" in container["resources"]["limits"]
            assert re.search(r":v?\d", container["image"]), name
            ports = {port["name"] for port in container["ports"]}
            probes = [value for key, value in container.items() if key.endswith("Probe")]
            assert probes
            assert {probe["httpGet"]["port"] for probe in probes} <= ports
            mounted = {mount["name"] for mount in container["volumeMounts"]}
            claimed = {volume["name"] for volume in pod.get("volumes", [])}
            assert mounted <= claimed | {"vectors"}
    pod = dict(workloads())["osler"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert str(pod["securityContext"]["runAsUser"]) == dict(instructions())["USER"]
    (container,) = pod["containers"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["image"] == f"osler:{version('osler')}"
    paths = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert {dict(instructions())["VOLUME"], "/tmp"} <= paths  # noqa: S108  a mount


def test_the_unit_runs_without_rights_and_lets_questions_end() -> None:
    unit = FILES["osler.service"]
    found = dict(line.split("=", 1) for line in unit.splitlines() if "=" in line and line[0] != "#")
    assert found["ExecStart"].endswith("osler serve")
    assert int(found["TimeoutStopSec"]) > SERVE.drain_seconds
    assert found["NoNewPrivileges"] == found["DynamicUser"] == "yes"
    assert f"OSLER__HOME=/var/lib/{found['StateDirectory']}" in found["Environment"]
