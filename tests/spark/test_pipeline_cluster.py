"""One pipeline on clusters that are not this process: the same folder, another `--master`.

Neither workers nor the Spark Connect server have headrace, and they do not have the pipeline's
folder; what its files define must reach them.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import TypeVar

import pytest

from headrace.pipelines.running.state.folders import PipelineState
from headrace.spark import checkpoints
from headrace.testing.process import BrokerProcess
from tests.processes.process_trees import started
from tests.processes.spark_clusters import ENVIRONMENT, HOST, Cluster
from tests.spark.conftest import MakeTopic
from tests.spark.pipeline_folders import PipelineFolder, send, toml

T = TypeVar("T")

CUSTOMERS = 3
TORN = b"{torn"
NEIGHBOUR = """
PREFIX = "customer "

def called(name):
    return PREFIX + name.upper()
"""
TABLES = """
from pyspark.sql.functions import udf
from pyspark.sql.types import StringType

import _names
from headrace import pipelines as dp


@udf(StringType())
def label(customer):
    return customer and _names.called(customer)


@dp.table(name="staging.orders")
@dp.expect_or_quarantine("positive", "price > 0")
def orders():
    return dp.read_stream("sources.events").withColumn("label", label("customer"))
"""
VIEWS = """
CREATE MERGED VIEW refined.totals MERGE (orders SUM, price SUM) AS
SELECT label, count(*) AS orders, sum(price) AS price FROM STREAM(staging.orders) GROUP BY label;

CREATE MATERIALIZED VIEW refined.dearest REFRESH EVERY 1 SECONDS AS
SELECT label, max(id) AS id, count(*) AS orders FROM staging.orders GROUP BY label;

CREATE SINK alerts TOPIC '{alerts}' FORMAT json;

CREATE FLOW expensive AS INSERT INTO alerts BY NAME
SELECT id FROM STREAM(staging.orders) WHERE price > 90;
"""
WAIT_S = 150.0

pytestmark = [
    pytest.mark.skipif(which("java") is None, reason="Spark needs a Java runtime"),
    pytest.mark.timeout(480),
]


class Shop:
    """A pipeline over a topic of orders, run by the command in a process of its own."""

    def __init__(self, directory: Path, broker: BrokerProcess, make_topic: MakeTopic) -> None:
        self.folder = PipelineFolder(directory / "shop", broker)
        self.sent = 0
        self._log = directory / "driver.log"
        self._topic = make_topic("orders", partitions=2)
        self._alerts = make_topic("alerts")
        source = toml("shop", self._topic, "id LONG, customer STRING, price DOUBLE")
        self.folder.write(
            # Tasks merge what is merged, however little: what they do must reach them, too.
            pipeline_toml=source.replace("[sources", "driver_rows_max = 0\n[sources", 1),
            _names_py=NEIGHBOUR,
            tables_py=TABLES,
            views_sql=VIEWS.format(alerts=self._alerts),
        )
        send(broker, self._topic, [TORN])

    def order(self, count: int) -> None:
        """Send the next orders; of each hundred one is free, and nine are expensive."""
        numbers = range(self.sent, self.sent + count)
        send(self.folder.broker, self._topic, map(order, numbers))
        self.sent += count

    @contextmanager
    def running(self, *options: str) -> Iterator["subprocess.Popen[bytes]"]:
        command = [sys.executable, "-m", "headrace.cli.main", "pipelines", "run"]
        command += [str(self.folder.path), "--bootstrap", self.folder.broker.bootstrap_servers]
        with started([*command, *options], self._log, ENVIRONMENT) as driver:
            yield driver

    def once(self, *options: str) -> None:
        with self.running("--once", *options) as driver:
            assert driver.wait(WAIT_S) == 0, self._log.read_text()[-5000:]

    def eventually(self, ask: Callable[[], T], what: str, driver: "subprocess.Popen[bytes]") -> T:
        """Query until the answer has rows."""
        deadline = time.monotonic() + WAIT_S
        while not (found := ask()):
            assert driver.poll() is None, self._log.read_text()[-5000:]
            assert time.monotonic() < deadline, f"not within {WAIT_S:.0f} s: {what}"
            time.sleep(0.2)
        return found

    @property
    def is_underway(self) -> bool:
        """Return True if a batch of orders is planned and not done."""
        state = PipelineState.of(self.folder.path / "lake", "shop")
        checkpoint = state.flow("staging.orders", 1).checkpoint
        return checkpoints.newest_plan(checkpoint) > checkpoints.newest_commit(checkpoint)

    def has_all(self, count: int) -> bool:
        """Return True if this many orders are in all tables."""
        names = ("refined.totals", "refined.dearest")
        if not set(names) <= set(self.folder.lake.names()):
            return False
        kept = len(list(filter(is_kept, range(count))))
        alerts = len(list(filter(is_expensive, range(count))))
        return (
            all(sum(self.folder.rows(name, "orders")) >= kept for name in names)
            and len(self.folder.read_topic(self._alerts)) >= alerts
        )

    def assert_exact(self) -> None:
        """Check that every expected table and topic has each order once."""
        kept = [number for number in range(self.sent) if is_kept(number)]
        by_label: dict[str, list[int]] = {}
        for number in kept:
            by_label.setdefault(label_of(number), []).append(number)
        rows = self.folder.rows
        assert rows("staging.orders", "id", "label") == [(n, label_of(n)) for n in kept]
        rules = rows("quarantine.staging__orders", "rule")
        assert rules == ["positive"] * (self.sent - len(kept)) + ["unreadable"]
        assert rows("refined.totals", "label", "orders", "price") == sorted(
            (label, len(ids), sum(map(price_of, ids))) for label, ids in by_label.items()
        )
        assert rows("refined.dearest", "label", "orders", "id") == sorted(
            (label, len(ids), max(ids)) for label, ids in by_label.items()
        )
        alerts = [json.loads(value)["id"] for value in self.folder.read_topic(self._alerts)]
        assert sorted(alerts) == [number for number in kept if is_expensive(number)]


def order(number: int) -> dict[str, object]:
    return {"id": number, "customer": f"c{number % CUSTOMERS}", "price": price_of(number)}


def price_of(number: int) -> float:
    return float(number % 100)


def label_of(number: int) -> str:
    return f"customer C{number % CUSTOMERS}"


def is_kept(number: int) -> bool:
    return price_of(number) > 0


def is_expensive(number: int) -> bool:
    return price_of(number) > 90


@pytest.fixture
def shop(tmp_path: Path, broker: BrokerProcess, make_topic: MakeTopic) -> Shop:
    return Shop(tmp_path, broker, make_topic)


def options_of(cluster: Cluster, python: Path) -> list[str]:
    """Return the options of the command line that let a pipeline run elsewhere."""
    settings = {"spark.pyspark.python": str(python), "spark.driver.host": HOST}
    confs = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    return ["--master", cluster.master, *confs]


def test_a_pipeline_runs_on_workers_that_have_neither_headrace_nor_its_folder(
    shop: Shop, cluster: Cluster, plain_python: Path
) -> None:
    """By one option, and through the death of one of its two executors."""
    options = options_of(cluster, plain_python)
    shop.order(1_000)
    with shop.running(*options) as driver:
        busy = shop.eventually(
            lambda: cluster.busy_executors() if shop.is_underway else set(), "a batch", driver
        )
        killed = min(busy)
        os.kill(killed, signal.SIGKILL)
        shop.order(1_000)
        shop.eventually(lambda: len(cluster.executors() - {killed}) == 2, "an executor", driver)
        shop.order(500)
        shop.eventually(lambda: shop.has_all(shop.sent), "all orders", driver)
        driver.terminate()
        assert driver.wait(WAIT_S) == 0
    shop.assert_exact()


def test_a_pipeline_on_a_connect_server_survives_a_killed_client(
    shop: Shop, connect_address: str
) -> None:
    shop.order(500)
    with shop.running("--master", connect_address) as driver:
        shop.eventually(lambda: shop.has_all(500), "orders of the first run", driver)
        shop.order(500)
        driver.kill()
        driver.wait()
    shop.order(500)
    shop.once("--master", connect_address)
    shop.assert_exact()
