"""The example of Kubernetes on a real cluster: `make kubernetes`, apart from all other tests.

Needs a cluster that has this machine as a node and the images of the example's Dockerfile, a
`kubectl` that is set up for it, and a broker that pods reach. `HEADRACE_KUBERNETES_HOST` is this
machine's address as pods see it, `HEADRACE_KUBERNETES_BOOTSTRAP` the broker if it is not at port
9092 there, `HEADRACE_KUBERNETES_REGISTRY` what the images' names begin with.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from headrace.client.admin import Admin
from headrace.client.descriptions import NewTopic
from headrace.client.producer import Producer
from headrace.lake.catalog import Lake
from tests.kubernetes.cluster import (
    EXAMPLE,
    EXECUTOR,
    NAMESPACE,
    access_and_lake,
    account,
    address,
    kill,
    kubectl,
    running,
)
from tests.processes.process_trees import started

HOST = os.environ.get("HEADRACE_KUBERNETES_HOST", "")
BOOTSTRAP = os.environ.get("HEADRACE_KUBERNETES_BOOTSTRAP", f"{HOST}:9092")
REGISTRY = os.environ.get("HEADRACE_KUBERNETES_REGISTRY", "registry.example")
DRIVER, DRIVER_POD = "app=orders", "orders-0"
CLAIM = "spark.kubernetes.executor.volumes.persistentVolumeClaim.lake"
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""What runs for minutes gains nothing by the better compiler and by threads that collect."""
QUICK_START = f'"spark.executor.extraJavaOptions" = "{JAVA_OPTIONS}"\n'
IDS, CUSTOMERS = 400, 7
WAIT_S = 600.0

pytestmark = [
    pytest.mark.skipif(not HOST, reason="HEADRACE_KUBERNETES_HOST names no machine of a cluster"),
    pytest.mark.timeout(3_600),
]


class Orders:
    """The example's pipeline over a topic and a lake of its own."""

    def __init__(self, directory: Path) -> None:
        self.lake = directory / "lake"
        self.lake.mkdir(mode=0o777)
        self.lake.chmod(0o777)  # Pods are other users than the one who runs the test.
        self.folder = directory / "orders"
        self.sent = 0
        self.log = directory / "driver.log"
        self._directory = directory
        self._topic = f"orders-{uuid4().hex[:8]}"
        shutil.copytree(EXAMPLE / "orders", self.folder)
        settings = self.folder / "pipeline.toml"
        text = settings.read_text().replace('topic = "orders"', f'topic = "{self._topic}"')
        settings.write_text(text.replace("registry.example", REGISTRY) + QUICK_START)
        with Admin(BOOTSTRAP) as admin:
            admin.topics.create([NewTopic(name=self._topic, partitions=2)])

    def send(self, count: int) -> None:
        """Change orders, each id again and again."""
        with Producer(BOOTSTRAP) as producer:
            for number in range(self.sent, self.sent + count):
                producer.send(self._topic, json.dumps(change(number)), str(number % IDS))
        self.sent += count

    def has_all(self) -> bool:
        """Return whether all sent records have reached both tables at the end."""
        if not {"trusted.orders", "refined.changes_by_customer"} <= set(Lake(self.lake).names()):
            return False
        counted = self._rows("refined.changes_by_customer", "changes")
        oldest = min(
            (row["version"] for row in self._rows("trusted.orders", "version")), default=-1
        )
        return sum(row["changes"] for row in counted) >= self.sent and oldest >= self.sent - IDS

    def refusals(self) -> list[str]:
        """Lines of Spark's log about requests that the cluster rejected."""
        log = self.lake / "_headrace" / "pipelines" / "orders" / "spark.log"
        return [line for line in log.read_text().splitlines() if "forbidden" in line]

    def assert_exact(self) -> None:
        """Every change once in the raw table, the last of each order, and the sums of all."""
        changes = [change(number) for number in range(self.sent)]
        last = {one["id"]: one["version"] for one in changes}
        sums: dict[object, list[float]] = {}
        for one in changes:
            sums.setdefault(one["customer"], []).append(float(str(one["price"])))
        raw = self._rows("raw.orders", "version")
        assert sorted(row["version"] for row in raw) == list(range(self.sent))
        kept = self._rows("trusted.orders", "id", "version")
        assert {row["id"]: row["version"] for row in kept} == last
        assert len(kept) == len(last)
        counted = self._rows("refined.changes_by_customer", "customer", "changes", "price")
        assert {row["customer"]: (row["changes"], row["price"]) for row in counted} == {
            customer: (len(prices), sum(prices)) for customer, prices in sums.items()
        }

    @contextmanager
    def driven_from_outside(self, *options: str) -> Iterator["subprocess.Popen[bytes]"]:
        """A driver on this machine; its executors write as its user."""
        settings = {
            "spark.driver.host": HOST,
            "spark.kubernetes.executor.podTemplateFile": str(self._template()),
            "spark.executorEnv.NUMBA_CACHE_DIR": str(self.lake / "_headrace" / "compiled"),
            f"{CLAIM}.mount.path": str(self.lake),
        }
        confs = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
        command = [sys.executable, "-m", "headrace.cli.main", "pipelines", "run", str(self.folder)]
        command += ["--bootstrap", BOOTSTRAP, "--lake", str(self.lake)]
        command += ["--master", f"k8s://{address()}", *confs, *options]
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {
            "PATH": path,
            "JAVA_TOOL_OPTIONS": JAVA_OPTIONS,
            "KUBECONFIG": str(account(self._directory)),
        }
        with started(command, self.log, environment) as driver:
            yield driver

    def _template(self) -> Path:
        path = self._directory / "executor.json"
        user = {"runAsUser": os.getuid(), "runAsGroup": os.getgid()}
        template = {"apiVersion": "v1", "kind": "Pod", "spec": {"securityContext": user}}
        path.write_text(json.dumps(template))
        return path

    def _rows(self, table: str, *columns: str) -> list[dict[str, Any]]:
        return list(Lake(self.lake).table(table).rows(columns=list(columns)).to_pylist())


def change(number: int) -> dict[str, object]:
    """The change with this number, which is its version."""
    return {
        "id": number % IDS,
        "customer": f"c{number % CUSTOMERS}",
        "status": "paid" if number % 3 else "open",
        "price": float(number % 100),
        "version": number,
    }


def eventually(holds: Callable[[], object], what: str, log: Callable[[], str]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline, f"not within {WAIT_S:.0f} s: {what}\n{log()[-5000:]}"
        time.sleep(0.5)


@pytest.fixture
def orders(tmp_path: Path) -> Iterator[Orders]:
    made = Orders(tmp_path)
    with access_and_lake(made.lake):
        yield made


def test_a_driver_outside_of_the_cluster_has_executors_in_it_and_one_may_be_killed(
    orders: Orders,
) -> None:
    """With the rights of the example's account; executors have no headrace."""

    def log() -> str:
        return orders.log.read_text()

    orders.send(2_000)
    with orders.driven_from_outside() as driver:
        eventually(orders.has_all, "the first changes", log)
        orders.send(1_000)
        killed = min(running(EXECUTOR))
        kill(killed)
        orders.send(2_000)
        eventually(lambda: len(running(EXECUTOR).keys() - {killed}) == 2, "another one", log)
        orders.send(1_000)
        eventually(orders.has_all, "all changes", log)
        driver.terminate()
        assert driver.wait(WAIT_S) == 0, log()
    orders.assert_exact()
    assert orders.refusals() == []
    eventually(lambda: not running(EXECUTOR), "that no executor is left", log)


def test_a_driver_in_a_pod_goes_on_after_an_executor_and_it_itself_were_killed(
    orders: Orders,
) -> None:
    """By the example's manifests, with the rights that they give and no others."""

    def log() -> str:
        return kubectl("-n", NAMESPACE, "logs", DRIVER_POD, "--tail=100")

    orders.send(1_000)
    kubectl("-n", NAMESPACE, "create", "configmap", "orders", f"--from-file={orders.folder}")
    manifest = (EXAMPLE / "driver.yaml").read_text().replace("registry.example", REGISTRY)
    kubectl("apply", "-f", "-", text=manifest.replace("broker.example:9092", BOOTSTRAP))
    eventually(orders.has_all, "the first changes", log)
    assert len(running(EXECUTOR)) == 2

    orders.send(1_000)
    killed = min(running(EXECUTOR))
    kill(killed)
    orders.send(1_000)
    eventually(lambda: len(running(EXECUTOR).keys() - {killed}) == 2, "another executor", log)
    eventually(orders.has_all, "changes after an executor's end", log)

    driver, before = running(DRIVER), running(EXECUTOR)
    orders.send(1_000)
    kill(DRIVER_POD)
    orders.send(1_000)
    eventually(lambda: running(DRIVER).keys() and running(DRIVER) != driver, "a new driver", log)
    eventually(orders.has_all, "changes after the driver's end", log)
    assert not before.keys() & running(EXECUTOR).keys(), "executors go with their driver"

    kubectl("-n", NAMESPACE, "delete", "statefulset", "orders")
    eventually(lambda: not running(DRIVER) and not running(EXECUTOR), "that all pods are gone", str)
    orders.assert_exact()
    assert orders.refusals() == []
