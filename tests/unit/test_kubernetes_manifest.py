"""The manifest of a secured cluster on Kubernetes: its names fit, and its settings are valid."""

import os
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from headrace.metadata.log.first_voters import parse_first_voters
from headrace.settings.broker import BrokerSettings
from headrace.settings.broker_loading import load
from headrace.settings.properties import parse, parse_assignment

FILE = Path(__file__).resolve().parents[2] / "examples" / "kubernetes" / "broker" / "cluster.yaml"
NAMESPACE = "kafka"
ORDINALS = range(3)


@cache
def documents() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(FILE.read_text()))


def of_kind(kind: str) -> list[dict[str, Any]]:
    return [one for one in documents() if one["kind"] == kind]


def config() -> dict[str, str]:
    (found,) = of_kind("ConfigMap")
    data: dict[str, str] = found["data"]
    return data


def pod() -> dict[str, Any]:
    (found,) = of_kind("StatefulSet")
    spec: dict[str, Any] = found["spec"]["template"]["spec"]
    return spec


def containers() -> Iterator[dict[str, Any]]:
    yield from pod()["initContainers"]
    yield from pod()["containers"]


def started(action: str, ordinal: int, folder: Path) -> list[str]:
    """Return the arguments of `headrace` in a pod, as start.sh computes them."""
    place = folder / "etc"
    (place / "config").mkdir(parents=True, exist_ok=True)
    for name, text in config().items():
        (place / "config" / name).write_text(text.replace("/etc/headrace", str(place)))
    (place / "secrets").mkdir(exist_ok=True)
    (place / "secrets" / "admin.password").write_text("secret")
    (place / "secrets" / "token.key").write_text("key")
    program = folder / "headrace"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    program.chmod(0o755)
    done = subprocess.run(
        ["sh", str(place / "config" / "start.sh"), action],
        env={"HOSTNAME": f"headrace-{ordinal}", "PATH": f"{folder}:{os.defpath}"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def settings_of(ordinal: int, folder: Path) -> BrokerSettings:
    arguments = started("up", ordinal, folder)
    places = [number + 1 for number, one in enumerate(arguments) if one == "--set"]
    given = dict(parse_assignment(arguments[place]) for place in places)
    properties = {**parse((folder / "etc" / "config" / "server.properties").read_text()), **given}
    return load(properties)[0]


def test_everything_is_in_one_namespace() -> None:
    assert {one["metadata"]["namespace"] for one in documents()} == {NAMESPACE}


def test_mounted_volumes_exist_and_their_secrets_are_made_by_the_commands() -> None:
    """K8S-3: TLS and SCRAM by secrets."""
    volumes = {one["name"]: one for one in pod()["volumes"]}
    (claims,) = (one["spec"]["volumeClaimTemplates"] for one in of_kind("StatefulSet"))
    names = volumes.keys() | {one["metadata"]["name"] for one in claims}
    for container in containers():
        assert {mount["name"] for mount in container["volumeMounts"]} <= names
    assert volumes["config"]["configMap"]["name"] == of_kind("ConfigMap")[0]["metadata"]["name"]
    made = set(re.findall(r"create secret generic (\S+)", FILE.read_text()))
    assert made == {one["secret"]["secretName"] for one in volumes.values() if "secret" in one}
    keys = set(re.findall(r"--from-file=([^=\s]+)", FILE.read_text()))
    assert keys == {"ca.crt", "node.pem", "admin.password", "token.key"}


def test_services_select_the_pods_and_their_ports() -> None:
    (stateful,) = of_kind("StatefulSet")
    labels = stateful["spec"]["template"]["metadata"]["labels"]
    assert stateful["spec"]["selector"]["matchLabels"] == labels
    assert of_kind("PodDisruptionBudget")[0]["spec"]["selector"]["matchLabels"] == labels
    opened = {one["name"]: one["containerPort"] for one in pod()["containers"][0]["ports"]}
    inner, *outer = of_kind("Service")
    assert inner["metadata"]["name"] == stateful["spec"]["serviceName"]
    assert inner["spec"]["selector"] == labels
    for service in (inner, *outer):
        for port in service["spec"]["ports"]:
            assert opened[port["name"]] == port["port"]
    pods = [one["spec"]["selector"]["statefulset.kubernetes.io/pod-name"] for one in outer]
    assert pods == [f"headrace-{ordinal}" for ordinal in ORDINALS]
    assert len(pods) == stateful["spec"]["replicas"]


@pytest.mark.parametrize("ordinal", ORDINALS)
def test_the_settings_of_each_node_are_valid(ordinal: int, tmp_path: Path) -> None:
    """K8S-3: each node is reached at its own port from outside."""
    settings = settings_of(ordinal, tmp_path)
    assert settings.node_id == ordinal + 1
    ports = [one["spec"]["ports"][0]["nodePort"] for one in of_kind("Service")[1:]]
    external = settings.advertised["EXTERNAL"]
    assert (external.host, external.port) == ("kafka.example.com", ports[ordinal])
    assert settings.protocols["CLIENTS"] == settings.protocols["EXTERNAL"] == "SASL_SSL"
    opened = {one["containerPort"] for one in pod()["containers"][0]["ports"]}
    assert {listener.port for listener in settings.broker_listeners} <= opened
    assert settings.headrace_metrics_port in opened


def test_the_certificate_has_the_names_that_nodes_advertise(tmp_path: Path) -> None:
    (given,) = re.findall(r"certs dev .*--host '([^']*)'", FILE.read_text())
    names = given.split(",")
    assert f"User:CN={names[0]}" in settings_of(0, tmp_path).super_users.split(";")
    for ordinal in ORDINALS:
        for listener in settings_of(ordinal, tmp_path).advertised.values():
            wildcard = "*." + listener.host.partition(".")[2]
            assert listener.host in names or wildcard in names


def test_the_first_voters_are_the_controllers(tmp_path: Path) -> None:
    arguments = started("format", 0, tmp_path)
    voters = parse_first_voters(
        arguments[arguments.index("--initial-controllers") + 1], "CONTROLLER"
    )
    servers = settings_of(0, tmp_path).quorum_bootstrap_servers
    assert [voter.node_id for voter in voters] == [1, 2, 3]
    assert [(one.endpoint.host, one.endpoint.port) for one in voters] == [
        (server.host, server.port) for server in servers
    ]
    assert "SCRAM-SHA-512=[name=admin,password=secret]" in arguments
