"""Spark's stock Kafka connector against our broker, with the jars that we fetch for it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest

from headrace.client.producer import Producer
from headrace.spark.jars import JarsMissing, fetch_connector, spark_jars
from headrace.testing.process import BrokerProcess
from tests.committed import committed_values
from tests.spark.conftest import MakeTopic

RECORDS = 2_000
JOB_S_MAX = 240.0


@pytest.fixture(scope="module")
def jars() -> str:
    """The jars, kept in the user's cache between runs."""
    if which("java") is None or which("mvn") is None:
        pytest.skip("the stock connector needs Java, and Maven to be fetched")
    place = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "headrace" / "jars"
    try:
        return spark_jars(fetch_connector(place, lambda _: None))
    except JarsMissing as error:
        pytest.skip(f"the stock connector cannot be had: {error}")


@pytest.mark.timeout(300)
def test_the_stock_connector_reads_and_writes_our_broker(
    broker: BrokerProcess, make_topic: MakeTopic, tmp_path: Path, jars: str
) -> None:
    """Batch, micro-batch stream and real-time mode, which only this connector has."""
    source, batch, stream, realtime = (
        make_topic(name, partitions=1) for name in ("in", "batch", "stream", "realtime")
    )
    with Producer(broker.bootstrap_servers) as producer:
        for number in range(RECORDS):
            producer.send(source, str(number))
    arguments = [broker.bootstrap_servers, jars, str(tmp_path), source, batch, stream, realtime]
    done = subprocess.run(
        [sys.executable, "-m", "tests.stock_connector_job", *arguments],
        capture_output=True,
        text=True,
        timeout=JOB_S_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    assert json.loads(done.stdout)["count"] == RECORDS
    for topic in (batch, stream, realtime):
        values = committed_values(broker.bootstrap_servers, topic)
        assert {int(value or b"-1") for value in values} == set(range(RECORDS)), topic
