"""The REST proxy by its own description: whatever is asked, the fault is never the proxy's."""

import os
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings

from tests.processes.nodes import Node
from tests.processes.rest_proxies import Proxy, proxy

EXAMPLES = int(os.environ.get("HEADRACE_REST_EXAMPLES", "4"))
NOT_NOW = 503
"""Instances are bounded, so a proxy may say that it has no room; that is no fault."""


@pytest.fixture(scope="module")
def fuzzed(
    shared_node: Node, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Proxy, str]]:
    options = ["--set", "consumer.instances.max=5", "--set", "consumer.request.timeout.ms=50"]
    options += [
        "--set",
        "streaming.connection.max.duration.ms=200",
        "--set",
        "webhook.targets=192.0.2.1",
    ]
    log = tmp_path_factory.mktemp("fuzz") / "proxy.log"
    with proxy(shared_node.address, log, options) as found:
        clusters = httpx2.get(f"{found.url}/v3/clusters", timeout=60).json()
        yield found, clusters["data"][0]["cluster_id"]


@pytest.mark.timeout(45 * EXAMPLES)
def test_no_request_that_the_description_allows_is_a_server_error(
    fuzzed: tuple[Proxy, str], node: Node, topic: str
) -> None:
    """RST-7"""
    found, cluster = fuzzed
    known = {"cluster_id": cluster, "topic": topic, "topic_name": topic}
    description = httpx2.get(f"{found.url}/openapi.json", timeout=60).json()
    schema = schemathesis.openapi.from_dict(description)
    operations: Iterator[Any] = schema.get_all_operations()
    faults = [fault for one in operations for fault in faults_of(one.ok(), found.url, known)]
    assert "\n".join(faults) == ""
    assert "Traceback" not in found.log.read_text()


def faults_of(operation: Any, url: str, known: dict[str, str]) -> list[str]:
    """Answers of an operation with a server error, but for "not available"."""
    faults: list[str] = []

    @settings(
        max_examples=EXAMPLES,
        phases=[Phase.generate],
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def ask(case: Any) -> None:
        # Half of the paths name existing objects, so that more than "not found" is tried.
        if len(str(case.path_parameters)) % 2:
            case.path_parameters.update(
                {name: value for name, value in known.items() if name in case.path_parameters}
            )
        answer = case.call(base_url=url, timeout=60)
        if answer.status_code >= 500 and answer.status_code != NOT_NOW:
            faults.append(f"{operation.label}: {answer.status_code} {answer.text[:300]}")

    ask()
    return faults


HOSTILE: list[tuple[str, str, dict[str, str], bytes]] = [
    ("POST", "/topics/{topic}", {"Content-Type": "application/vnd.kafka.json.v2+json"}, body)
    for body in (
        b"",
        b"\xff\xfe",
        b"[]",
        b'{"records":1}',
        b'{"records":[{"value":' + b"[" * 100_000 + b"]" * 100_000 + b"}]}",
        b'{"records":[{"value":"\\ud800"}]}',
        b'{"records":[{"value":1e999}]}',
        b'{"records":[{"partition":99999999999999999999}]}',
        b'{"records":[{"timestamp":-1}]}',
    )
] + [
    ("GET", "/topics/%00", {}, b""),
    ("GET", "/topics/" + "x" * 3000, {}, b""),
    ("GET", "/topics/{topic}/partitions/99999999999999", {}, b""),
    ("GET", "/consumers/%F0%9F%98%80/instances/%22/records?timeout=abc", {}, b""),
    ("POST", "/consumers/%20", {"Content-Type": "application/json"}, b"{}"),
    ("POST", "/consumers/%00x", {"Content-Type": "application/json"}, b"{}"),
    ("PATCH", "/topics", {}, b""),
    ("GET", "/v3/clusters/%2e%2e/topics", {}, b""),
]


@pytest.mark.parametrize(("method", "path", "headers", "body"), HOSTILE)
def test_hostile_requests_are_refused_and_harm_no_other_client(
    fuzzed: tuple[Proxy, str],
    topic: str,
    method: str,
    path: str,
    headers: dict[str, str],
    body: bytes,
) -> None:
    found, _ = fuzzed
    url = found.url + path.format(topic=topic)
    answer = httpx2.request(method, url, headers=headers, content=body, timeout=60)
    assert answer.status_code < 500, answer.text
    assert httpx2.get(f"{found.url}/health", timeout=60).status_code == 200


def test_the_page_for_people_names_every_operation(fuzzed: tuple[Proxy, str]) -> None:
    found, _ = fuzzed
    page = httpx2.get(found.url, headers={"Accept": "text/html"}, timeout=60)
    paths = httpx2.get(f"{found.url}/openapi.json", timeout=60).json()["paths"]
    assert page.headers["content-type"].startswith("text/html")
    assert [path for path in paths if path not in page.text] == []


def test_every_operation_has_a_name_of_its_own(fuzzed: tuple[Proxy, str]) -> None:
    found, _ = fuzzed
    paths = httpx2.get(f"{found.url}/openapi.json", timeout=60).json()["paths"]
    names = [one["operationId"] for methods in paths.values() for one in methods.values()]
    assert len(names) == len(set(names))
