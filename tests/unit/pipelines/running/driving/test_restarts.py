"""Which failures are tried again, and what is shown of them."""

from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError

from headrace.errors import HeadraceError
from headrace.lake.commit_log import AddedFile
from headrace.lake.errors import VersionGone
from headrace.lake.reading import read_batches
from headrace.pipelines.running.driving.restarts import (
    ATTEMPTS_MAX,
    AWAY,
    BUSY_ATTEMPTS_MAX,
    FINAL,
    Failure,
    Restarts,
    failure_of,
    one_sentence,
)

HOMES_OF_ERRORS = (
    "headrace.client.cluster",
    "headrace.lake.change_events",
    "headrace.lake.errors",
    "headrace.pipelines.running.errors",
    "headrace.spark.checkpoints",
    "headrace.spark.decoding.errors",
    "headrace.spark.sink.errors",
    "headrace.spark.source.errors",
    "headrace.spark.tables.parcels",
)
LOST = Failure("BrokerUnreachable", "cannot reach 127.0.0.1:9092")


def test_the_innermost_error_of_headrace_in_a_trace_is_shown() -> None:
    text = (
        "[STREAM_FAILED] Query [id = x] terminated with exception: Python worker failed\n"
        "Traceback (most recent call last):\n"
        '  File "runner.py", line 1, in __call__\n'
        "headrace.pipelines.running.errors.ExpectationFailed: 3 rows break 'positive'\n"
        "\tat org.apache.spark.api.python...\n"
    )
    assert failure_of(text) == Failure("ExpectationFailed", "3 rows break 'positive'")


def test_the_last_error_of_other_traces_is_shown() -> None:
    text = "Job aborted\nTraceback\nValueError: first\nZeroDivisionError: division by zero\n"
    assert failure_of(text).text == "ZeroDivisionError: division by zero"


IN_FOREACH_BATCH = """\
[STREAM_FAILED] Query [id = 47625184] terminated with exception: An exception was raised by the \
Python Proxy. Return Message: Traceback (most recent call last):
  File "/usr/lib/python3.11/site-packages/py4j/clientserver.py", line 644, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)
                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "pyarrow/error.pxi", line 92, in pyarrow.lib.check_status
pyarrow.lib.ArrowInvalid: Schema at index 1 was different:\x20
id: int64
vs
id: string
 SQLSTATE: 39000
\tat org.apache.spark.sql.execution.streaming.sources.ForeachBatchSink.callBatchWriter(...)
"""
IN_A_TASK = """\
[STREAM_FAILED] Query [id = 5be0adda] terminated with exception: An exception was raised by the \
Python Proxy. Return Message: Traceback (most recent call last):
  File "/usr/lib/python3.11/site-packages/pyspark/errors/exceptions/captured.py", line 263, in deco
    raise converted from None
pyspark.errors.exceptions.captured.PythonException:\x20
  An exception was thrown from the Python worker: Traceback (most recent call last):
  File "/srv/shop/tables.py", line 12, in cleaned
    raise NotClean
{raised}

JVM stacktrace:
org.apache.spark.api.python.PythonException: [PYTHON_EXCEPTION] An exception was thrown from the \
Python worker: Traceback (most recent call last):
  File "/srv/shop/tables.py", line 12, in cleaned
    raise NotClean
{raised}
 SQLSTATE: 38000
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(...)
"""


def test_the_error_of_a_failed_batch_is_shown_for_any_class() -> None:
    text = "ArrowInvalid: Schema at index 1 was different: id: int64 vs id: string"
    assert failure_of(IN_FOREACH_BATCH) == Failure("ArrowInvalid", text, is_traced=True)


@pytest.mark.parametrize(
    ("raised", "kind", "text"),
    [
        ("shop.tables.NotClean: no name", "NotClean", "NotClean: no name"),
        ("shop.tables.made.<locals>.NotClean: no name", "NotClean", "NotClean: no name"),
        ("MemoryError", "MemoryError", "MemoryError"),
        ("KeyError: 'x'", "KeyError", "KeyError: 'x'"),
    ],
)
def test_the_error_of_user_code_in_a_failed_task_is_shown(
    raised: str, kind: str, text: str
) -> None:
    assert failure_of(IN_A_TASK.format(raised=raised)) == Failure(kind, text, is_traced=True)


def test_an_error_of_a_chain_is_the_one_that_was_raised_last() -> None:
    text = (
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\nKeyError: 1\n\n'
        "During handling of the above exception, another exception occurred:\n\n"
        'Traceback (most recent call last):\n  File "a.py", line 3, in f\nshop.Bad: key 1\n'
    )
    assert failure_of(text).text == "Bad: key 1"


@pytest.mark.parametrize(
    ("message", "what"),
    [
        (
            "[STREAM_FAILED] Query [id = 5be0adda] terminated with exception:"
            " java.io.IOException: No space left on device SQLSTATE: XXKST\n\tat java.io...",
            "No space left on device.",
        ),
        (
            IN_A_TASK.format(raised="OSError: [Errno 28] No space left on device: '/lake/x'"),
            "No space left on device: '/lake/x'.",
        ),
    ],
)
def test_a_full_disk_is_reported_with_advice(message: str, what: str) -> None:
    failure = failure_of(message)
    assert failure.text.endswith(f": {what} No row is lost or duplicated; make room, and run again")
    assert not failure.is_final


def test_the_message_of_headrace_on_a_full_disk_is_shown() -> None:
    raised = "headrace.lake.errors.WriteFailed: [Errno 28] No space left on device. Make room"
    assert failure_of(IN_A_TASK.format(raised=raised)).text == raised.partition(": ")[2]


def test_a_long_text_of_others_is_cut() -> None:
    text = f"Traceback (most recent call last):\n  File\nValueError: {'x' * 5000}\n"
    assert len(failure_of(text).text) < 400


def test_errors_of_code_are_not_tried_again_and_those_of_the_world_are() -> None:
    traces = [IN_A_TASK.format(raised=f"{kind}: x") for kind in ("TypeError", "OSError")]
    failures = [failure_of(trace) for trace in traces]
    assert [Restarts().on_failure(one, batch=0, now=0.0, is_once=True) for one in failures] == [
        False,
        True,
    ]


def test_other_errors_are_reported_with_the_file_of_their_trace(tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    assert failure_of(IN_A_TASK.format(raised="E: x")).described(log) == "E: x"
    log.touch()
    assert (
        failure_of(IN_A_TASK.format(raised="E: x")).described(log) == f"E: x; its trace is in {log}"
    )
    assert LOST.described(log) == LOST.text


def test_errors_in_python_traces_of_spark_are_reported() -> None:
    message = (
        "\n  An exception was thrown from the Python worker:\n"
        "Traceback (most recent call last):\n"
        "headrace.spark.source.errors.DataLost: offsets 0 to 3 are gone; set failOnDataLoss=false\n"
    )
    assert (
        one_sentence(RuntimeError(message)) == "offsets 0 to 3 are gone; set failOnDataLoss=false"
    )


def test_errors_of_spark_are_reported_in_its_own_words() -> None:
    error = RuntimeError("[NO_TABLE] There is no table. SQLSTATE: 42P01\n'Project [x]")
    assert one_sentence(error) == "There is no table"


@pytest.mark.parametrize(
    "error",
    [
        Py4JError("An error occurred while calling o185.isActive"),
        Py4JError("Answer from Java side is empty"),
        ConnectionRefusedError(111, "Connection refused"),
    ],
)
def test_a_lost_jvm_is_reported_in_words(error: Exception) -> None:
    assert one_sentence(error) == "its JVM has ended, most often for lack of memory"


def test_without_any_error_the_first_line_is_shown() -> None:
    assert failure_of("Stage cancelled\nmore").text == "Stage cancelled"


def test_a_passing_failure_is_tried_again_after_longer_and_longer_waits() -> None:
    restarts = Restarts()
    waits = []
    for _ in range(3):
        assert restarts.on_failure(LOST, batch=0, now=100.0, is_once=True)
        waits.append(restarts.not_before - 100.0)
    assert waits == [1.0, 2.0, 4.0]


def test_attempts_are_bounded() -> None:
    restarts = Restarts()
    answers = [
        restarts.on_failure(LOST, batch=0, now=0.0, is_once=True) for _ in range(ATTEMPTS_MAX)
    ]
    assert answers == [True] * (ATTEMPTS_MAX - 1) + [False]


@pytest.mark.parametrize("kind", sorted(AWAY))
def test_an_unreachable_service_is_retried_during_the_whole_run(kind: str) -> None:
    """Brokers are restarted, upgraded and cut off for longer than a few attempts take."""
    restarts, away = Restarts(), Failure(kind, "connection refused")
    for _ in range(1000):
        assert restarts.on_failure(away, batch=0, now=100.0, is_once=False)
    assert restarts.not_before == 130.0
    assert not restarts.on_failure(away, batch=0, now=100.0, is_once=True)


def test_a_batch_in_between_resets_the_count() -> None:
    restarts = Restarts()
    for _ in range(ATTEMPTS_MAX - 1):
        restarts.on_failure(LOST, batch=0, now=0.0, is_once=True)
    assert restarts.on_failure(LOST, batch=1, now=0.0, is_once=True)


def test_errors_that_need_a_person_are_not_retried() -> None:
    assert not Restarts().on_failure(
        Failure("IncompatibleSchema", "x"), batch=0, now=0.0, is_once=True
    )


def test_each_failure_that_is_final_is_an_error_of_ours() -> None:
    """They are known by their names alone, in which a spelling mistake would go unnoticed."""
    for home in HOMES_OF_ERRORS:
        import_module(home)
    assert {kind.__name__ for kind in kinds_of(HeadraceError)} >= FINAL


def kinds_of(kind: type[Exception]) -> Iterator[type[Exception]]:
    for one in kind.__subclasses__():
        yield one
        yield from kinds_of(one)


def test_an_unreachable_connect_server_is_reported_in_words() -> None:
    text = (
        "<_MultiThreadedRendezvous of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE"
    )
    assert "does not answer" in failure_of(text).text


BUSY = (
    "Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times\n"
    "org.apache.spark.SparkException: Python worker failed to connect back.\n"
    "Caused by: java.net.SocketTimeoutException: Timed out while waiting for the Python worker to"
    " connect back\n"
)


def test_a_machine_too_busy_to_start_python_is_reported_in_words() -> None:
    assert "the machine is too busy" in failure_of(BUSY).text


def test_a_busy_machine_gets_more_time_within_a_limit() -> None:
    restarts = Restarts()
    busy = failure_of(BUSY)
    answers = [
        restarts.on_failure(busy, batch=0, now=0.0, is_once=True) for _ in range(BUSY_ATTEMPTS_MAX)
    ]
    assert answers == [True] * (BUSY_ATTEMPTS_MAX - 1) + [False]


def test_flows_ended_by_a_busy_machine_restart_one_after_another() -> None:
    flows = [Restarts(failures=9, last_batch=0, chance=partial(float, n)) for n in (0.0, 0.5, 1.0)]
    for restarts in flows:
        restarts.on_failure(failure_of(BUSY), batch=0, now=100.0, is_once=True)
    assert [restarts.not_before for restarts in flows] == [115.0, 122.5, 130.0]


def test_a_flow_whose_input_is_gone_fails_with_advice(tmp_path: Path) -> None:
    gone = AddedFile(3, "part.parquet", {}, 1)
    with pytest.raises(VersionGone, match="`headrace pipelines replay FOLDER`") as raised:
        list(read_batches(tmp_path, gone, pa.schema([("id", pa.int64())]), ()))
    text = f"Traceback\nheadrace.lake.errors.VersionGone: {raised.value}\n"
    assert failure_of(text).is_final


def test_a_recreated_topic_is_final_but_an_outdated_plan_is_retried() -> None:
    trace = "headrace.spark.source.errors.{}: topic 'orders' is not the one"
    assert failure_of(trace.format("TopicRecreated")).is_final
    assert not failure_of(trace.format("PlanOutdated")).is_final
