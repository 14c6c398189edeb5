"""One job on other processes: a standalone cluster and a Spark Connect server."""

import json
import os
import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest

from headrace.client.producer import Producer
from headrace.testing.process import BrokerProcess
from tests.clients.committed_records import committed_values
from tests.processes.spark_clusters import ENVIRONMENT, SPARK_HOME, Cluster
from tests.spark.conftest import MakeTopic

RECORDS = 3_000
JOB_S_MAX = 300.0

pytestmark = [
    pytest.mark.skipif(which("java") is None, reason="Spark needs a Java runtime"),
    pytest.mark.timeout(480),
]


class Job:
    """A topic of numbers, and two that the job fills with them."""

    def __init__(self, broker: BrokerProcess, make_topic: MakeTopic, directory: Path) -> None:
        self._broker = broker
        self._checkpoint = directory / "checkpoint"
        self.source = make_topic("in", partitions=2)
        self.batch_output = make_topic("batch", partitions=2)
        self.stream_output = make_topic("stream", partitions=2)
        with Producer(broker.bootstrap_servers) as producer:
            for number in range(RECORDS):
                producer.send(self.source, str(number), partition=number % 2)

    def copy(self, master: str, *, python: str = "") -> tuple[int, str]:
        """Run on a cluster; return the number of read records and the Python of the workers."""
        outputs = (self.batch_output, self.stream_output, str(self._checkpoint))
        return self._run(master, python, *outputs)

    def read(self, master: str) -> tuple[int, str]:
        """Run without writing anything."""
        return self._run(master, "")

    def _run(self, master: str, python: str, *outputs: str) -> tuple[int, str]:
        arguments = [master, self._broker.bootstrap_servers, self.source, python, *outputs]
        done = subprocess.run(
            [sys.executable, "-m", "tests.jobs.cluster_job", *arguments],
            env={**os.environ, **ENVIRONMENT},
            capture_output=True,
            text=True,
            timeout=JOB_S_MAX,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-5000:]
        report = json.loads(done.stdout)
        return report["count"], report["python"]

    def assert_written(self) -> None:
        """Check that the batch and the stream have every record once."""
        for topic in (self.batch_output, self.stream_output):
            values = committed_values(self._broker.bootstrap_servers, topic)
            assert sorted(int(value or b"-1") for value in values) == list(range(RECORDS))


@pytest.fixture
def job(broker: BrokerProcess, make_topic: MakeTopic, tmp_path: Path) -> Job:
    return Job(broker, make_topic, tmp_path)


def test_two_workers_that_do_not_have_headrace_read_and_write_every_record(
    job: Job, cluster: Cluster, plain_python: Path
) -> None:
    python = str(plain_python)
    assert job.copy(cluster.master, python=python) == (RECORDS, python)
    job.assert_written()


def test_workers_run_the_drivers_own_python_where_no_other_is_named(
    job: Job, cluster: Cluster
) -> None:
    assert job.read(cluster.master) == (RECORDS, sys.executable)


def test_a_connect_server_that_does_not_have_headrace_runs_batches_and_streams(
    job: Job, connect_address: str, plain_python: Path
) -> None:
    assert job.copy(connect_address) == (RECORDS, str(plain_python))
    job.assert_written()


def test_the_documentation_names_the_programs_that_start_a_cluster() -> None:
    """docs/guides/spark-cluster.md starts the cluster by these programs."""
    text = (Path(__file__).parents[2] / "docs" / "guides" / "spark-cluster.md").read_text()
    assert "org.apache.spark.deploy.master.Master" in text
    assert "org.apache.spark.deploy.worker.Worker" in text
    assert (SPARK_HOME / "bin" / "spark-class").exists()
