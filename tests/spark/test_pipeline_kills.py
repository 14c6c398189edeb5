"""Repeated kill -9 of a pipeline's driver: every record is in the tables once."""

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from shutil import which

import pytest

from headrace.testing.process import BrokerProcess
from tests.spark.conftest import MakeTopic
from tests.spark.numbered_pipelines import (
    KEPT_BY_KEY,
    REMEMBERED,
    SCHEMA,
    TABLES,
    assert_exact,
    assert_exact_by_key,
    assert_exact_remembered,
    has_all,
    has_all_by_key,
    has_all_remembered,
    numbers,
)
from tests.spark.pipeline_folders import WAIT_S, PipelineFolder, eventually, send, toml

KILLS = int(os.environ.get("HEADRACE_KILLS", "1"))
"""The number of kills; each costs another start of Spark, the slowest part."""


@pytest.mark.skipif(which("java") is None, reason="Spark needs a Java runtime")
@pytest.mark.timeout(180 + 120 * KILLS)
def test_a_driver_that_is_killed_leaves_exact_tables(
    tmp_path: Path, broker: BrokerProcess, make_topic: MakeTopic
) -> None:
    """ARC-4: appended rows, rows by key, change events of type 2 and an aggregate.

    So are windows behind a watermark, an outer join of streams and duplicates that are passed
    over, within a watermark and for ever: what Spark keeps in state stores of its own. Batches of
    more than a hundred rows are merged by tasks, the others by the driver.
    """
    topic = make_topic(partitions=2)
    source = toml("killed", topic, SCHEMA)
    folder = PipelineFolder(tmp_path / "pipeline", broker).write(
        pipeline_toml=source.replace("[sources", "driver_rows_max = 100\n[sources", 1),
        tables_sql=TABLES + KEPT_BY_KEY,
        remembered_py=REMEMBERED,
    )
    command = [sys.executable, "-m", "headrace.cli.main", "pipelines", "run", str(folder.path)]
    command += ["--bootstrap", broker.bootstrap_servers, "--master", "local[2]"]
    output = tmp_path / "driver.log"
    sent = 0
    with output.open("ab") as log:
        for kill in range(KILLS):
            driver = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
            try:
                for _ in range(2):
                    send(broker, topic, numbers(sent, sent + 200))
                    sent += 200
                    # The kill must interrupt a batch, so do not wait for the end.
                    eventually(partial(have_all, folder, sent - 300), f"{sent} rows in run {kill}")
            finally:
                os.killpg(driver.pid, signal.SIGKILL)
                driver.wait()
        # The watermark must pass all records that were sent before the last kill.
        send(broker, topic, numbers(sent, sent + 800))
        sent += 800
        last = subprocess.run([*command, "--once"], stdout=log, stderr=log, timeout=WAIT_S)
    assert last.returncode == 0, output.read_text(errors="replace")[-4000:]
    assert_exact(folder, sent)
    assert_exact_by_key(folder, sent)
    assert_exact_remembered(folder, sent)


def have_all(folder: PipelineFolder, count: int) -> bool:
    has_come = (has_all, has_all_by_key, has_all_remembered)
    return all(has(folder, count) for has in has_come)
