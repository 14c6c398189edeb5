"""Sessions in which pipelines are planned and run."""

import socketserver
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark import accumulators

from headrace.pipelines.problems import PipelineError
from headrace.pipelines.project import load
from headrace.pipelines.spark_sessions import dry_run_settings, session_for, silence_accumulators
from tests.builders.declared_pipelines import write_folder

JAVA = "spark.driver.extraJavaOptions"
TABLE = "CREATE STREAMING TABLE raw.x AS SELECT * FROM STREAM(sources.orders);"


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ({}, "-XX:TieredStopAtLevel=1"),
        # A JVM takes the last of two contradicting options.
        ({JAVA: "-XX:TieredStopAtLevel=4"}, "-XX:TieredStopAtLevel=1 -XX:TieredStopAtLevel=4"),
    ],
)
def test_a_dry_run_compiles_once_unless_its_user_wants_more(
    given: dict[str, str], options: str
) -> None:
    assert dry_run_settings(given) == {JAVA: options}


@pytest.mark.parametrize("name", ["AccumulatorTCPServer", "AccumulatorUnixServer"])
def test_accumulators_print_no_trace_if_the_jvm_is_lost(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = getattr(accumulators, name)
    monkeypatch.setattr(server, "handle_error", socketserver.BaseServer.handle_error)
    silence_accumulators()
    assert server.handle_error is not socketserver.BaseServer.handle_error


def test_a_lost_jvm_ends_a_session_with_one_sentence_and_the_log(tmp_path: Path) -> None:
    pipeline = load(write_folder(tmp_path, {"a.sql": TABLE}))
    with (
        pytest.raises(PipelineError, match=r"^Spark failed: its JVM has ended.*spark\.log$"),
        session_for([pipeline], cast(Any, object())),
    ):
        raise ConnectionRefusedError(111, "Connection refused")
