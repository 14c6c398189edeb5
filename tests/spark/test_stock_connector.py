"""Spark's stock Kafka connector and Avro reader, with the jars that we fetch for them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import cast

import pytest
from confluent_kafka import Message

from headrace.client.producer import Producer
from headrace.spark.jars import JarsMissing, fetch_jars, spark_jars
from headrace.testing.process import BrokerProcess
from tests.clients.committed_records import committed_messages, committed_values
from tests.jobs.stock_connector_job import CAPTURED, text
from tests.spark.conftest import MakeTopic
from tests.spark.pipeline_folders import PipelineFolder, send

RECORDS = 2_000
JOB_S_MAX = 240.0
WAIT_S = 120.0
REALTIME = """
CREATE SINK alerts TOPIC '{topic}' FORMAT json;

CREATE FLOW large REALTIME EVERY '5 seconds' AS INSERT INTO alerts BY NAME
SELECT o.id AS id, o.amount AS amount FROM (
  SELECT from_json(CAST(value AS STRING), 'id LONG, amount LONG') AS o FROM STREAM(sources.events)
) WHERE o.amount > 50;

CREATE STREAMING TABLE raw.events AS SELECT id, amount FROM STREAM(sources.landed);

CREATE MATERIALIZED VIEW refined.counted REFRESH EVERY 2 SECONDS AS
SELECT count(*) AS n FROM sources.landed;
"""
SOURCES = """
[sources.events]
topic = "{topic}"
connector = "kafka"

[sources.landed]
topic = "{topic}"
format = "json"
schema = "id LONG, amount LONG"
"""


@pytest.fixture(scope="module")
def jars() -> str:
    """The jars, kept in the user's cache between runs."""
    if which("java") is None or which("mvn") is None:
        pytest.skip("the stock connector needs Java, and Maven to be fetched")
    place = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "headrace" / "jars"
    try:
        return spark_jars(fetch_jars(place, lambda _: None))
    except JarsMissing as error:
        pytest.skip(f"the stock connector cannot be had: {error}")


@pytest.mark.timeout(300)
def test_the_stock_connector_works_with_our_broker_and_captured_files(
    broker: BrokerProcess, make_topic: MakeTopic, tmp_path: Path, jars: str
) -> None:
    """ARC-9: Batch, micro-batch stream and real-time mode, which only this connector has.

    SCH-5, CLD-1: a topic that was captured is the same rows from Avro and from Parquet.
    """
    source, batch, stream, realtime = (
        make_topic(name, partitions=1) for name in ("in", "batch", "stream", "realtime")
    )
    with Producer(broker.bootstrap_servers) as producer:
        for number in range(RECORDS):
            key, headers = (None, None) if number % 2 else ("even", [("of", b"\x00"), ("to", None)])
            producer.send(source, str(number), key, headers=headers)
    for suffix in CAPTURED:
        capture(broker, source, suffix, tmp_path)
    arguments = [broker.bootstrap_servers, jars, str(tmp_path), source, batch, stream, realtime]
    done = subprocess.run(
        [sys.executable, "-m", "tests.jobs.stock_connector_job", *arguments],
        capture_output=True,
        text=True,
        timeout=JOB_S_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    report = json.loads(done.stdout)
    assert report["count"] == RECORDS
    expected = [captured_row(m) for m in committed_messages(broker.bootstrap_servers, source)]
    assert report["captured"] == dict.fromkeys(CAPTURED, expected)
    for topic in (batch, stream, realtime):
        values = committed_values(broker.bootstrap_servers, topic)
        assert {int(value or b"-1") for value in values} == set(range(RECORDS)), topic


def capture(broker: BrokerProcess, topic: str, suffix: str, directory: Path) -> None:
    """Write a topic into files by the command."""
    command = [sys.executable, "-m", "headrace.cli.main", "capture", topic, "--once"]
    command += ["--to", str(directory / suffix), "--format", suffix, "--group", f"{suffix}-files"]
    subprocess.run([*command, "--bootstrap", broker.bootstrap_servers], check=True, timeout=60)


def captured_row(message: Message) -> list[object]:
    """A record as the job reports it."""
    given = cast("list[tuple[str, bytes | None]]", message.headers() or [])
    headers = [[key, text(value)] for key, value in given]
    place = [message.topic(), message.partition(), message.offset(), message.timestamp()[1]]
    return [*place, text(message.key()), text(message.value()), headers]


@contextmanager
def running(folder: PipelineFolder, jars: str, output: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """The pipeline by its command, ended as a user ends it."""
    command = [sys.executable, "-m", "headrace.cli.main", "pipelines", "run", str(folder.path)]
    command += ["--bootstrap", folder.broker.bootstrap_servers, "--master", "local[3]"]
    with output.open("ab") as log:
        driver = subprocess.Popen(
            [*command, "--conf", f"spark.jars={jars}"], stdout=log, stderr=log
        )
    try:
        yield driver
        driver.send_signal(signal.SIGINT)
        assert driver.wait(WAIT_S) == 0, output.read_text(errors="replace")[-5000:]
    finally:
        driver.kill()
        driver.wait()


@pytest.mark.timeout(480)
def test_three_kinds_of_ingestion_of_a_topic_survive_a_restart(
    broker: BrokerProcess, make_topic: MakeTopic, tmp_path: Path, jars: str
) -> None:
    """ARC-3: real time from topic to topic, near real time into a table, and a batch window."""
    source, target = make_topic("in"), make_topic("alerts")
    folder = PipelineFolder(tmp_path / "pipeline", broker).write(
        pipeline_toml='[pipeline]\nname = "fast"\n' + SOURCES.format(topic=source),
        tables_sql=REALTIME.format(topic=target),
    )
    output, sent = tmp_path / "driver.log", 0
    for _ in range(2):
        with running(folder, jars, output) as driver:
            for _ in range(2):  # Also while it runs, not only what it finds.
                send(
                    broker, source, ({"id": n, "amount": n % 100} for n in range(sent, sent + 300))
                )
                sent += 300
                deadline = time.monotonic() + WAIT_S
                while not (has_alerts(folder, target, sent) and has_landed(folder, sent)):
                    is_well = driver.poll() is None and time.monotonic() < deadline
                    assert is_well, output.read_text(errors="replace")[-5000:]
                    time.sleep(0.2)


def has_alerts(folder: PipelineFolder, topic: str, sent: int) -> bool:
    """Return whether every large record has arrived; no other may."""
    expected = {(n, n % 100) for n in range(sent) if n % 100 > 50}
    values = map(json.loads, folder.read_topic(topic))
    found = {(value["id"], value["amount"]) for value in values}
    assert found <= expected
    return found == expected


def has_landed(folder: PipelineFolder, sent: int) -> bool:
    """Return whether the stream has every record once, and the batch window has counted them."""
    if not {"raw.events", "refined.counted"} <= set(folder.lake.names()):
        return False
    ids = folder.rows("raw.events", "id")
    assert len(set(ids)) == len(ids)
    return len(ids) == sent and folder.rows("refined.counted", "n") == [sent]
