"""Clients of a REST proxy for tests."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2

from tests.processes.rest_proxies import proxy


class Served(NamedTuple):
    """A client whose paths begin at the cluster."""

    client: httpx2.Client
    base: str

    def get(self, path: str, status: int = 200) -> dict[str, Any]:
        return self.ask("GET", path, None, status)

    def post(self, path: str, body: Any, status: int = 200) -> dict[str, Any]:
        return self.ask("POST", path, body, status)

    def ask(self, method: str, path: str, body: Any, status: int) -> dict[str, Any]:
        content = None if body is None else json.dumps(body)
        headers = {} if body is None else {"Content-Type": "application/json"}
        answer = self.client.request(method, self.base + path, content=content, headers=headers)
        assert answer.status_code == status, answer.text
        found: dict[str, Any] = answer.json() if answer.content else {}
        return found


@contextmanager
def serving(bootstrap: str, log: Path) -> Iterator[Served]:
    """A proxy of its own, and a client for its cluster."""
    with (
        proxy(bootstrap, log) as found,
        httpx2.Client(base_url=found.url, timeout=60) as client,
    ):
        (cluster,) = client.get("/v3/clusters").json()["data"]
        yield Served(client, cluster["metadata"]["self"])


def metric(url: str, name: str) -> float:
    """A figure of a proxy's page for Prometheus."""
    page = httpx2.get(f"{url}/metrics", timeout=60).text
    (line,) = [one for one in page.splitlines() if one.startswith(f"{name} ")]
    return float(line.split()[1])
