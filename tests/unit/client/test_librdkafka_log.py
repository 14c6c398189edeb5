"""Log lines of librdkafka, without repetitions."""

import logging

import pytest

from headrace.client.librdkafka_log import FOLD_S, FoldedLog

FORM = "%s [%s] %s"


def fail(log: FoldedLog, broker: str, after_ms: int = 0) -> None:
    text = (
        f"[thrd:{broker}]: {broker}: Connect failed: refused (after {after_ms}ms in state CONNECT)"
    )
    log.log(logging.ERROR, FORM, "FAIL", "headrace#producer-1", text)


def test_a_repeated_line_is_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    log = FoldedLog(lambda: now[0])
    for after_ms in range(100):
        fail(log, "localhost", after_ms)
    assert len(caplog.messages) == 1
    now[0] = FOLD_S
    fail(log, "localhost")
    assert len(caplog.messages) == 2
    assert "(repeated 99 times)" in caplog.messages[1]


def test_each_broker_has_its_own_line(caplog: pytest.LogCaptureFixture) -> None:
    log = FoldedLog(lambda: 0.0)
    fail(log, "a")
    fail(log, "b")
    assert [message.count("thrd:a") for message in caplog.messages] == [1, 0]


def test_the_notice_of_the_preview_of_share_consumers_is_no_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    FoldedLog().log(logging.WARNING, FORM, "SHARECONSUMER", "headrace#consumer-1", 'in "Preview"')
    assert not caplog.records


def test_debug_lines_that_were_configured_are_all_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "headrace.client.librdkafka")
    log = FoldedLog()
    for _ in range(3):
        log.log(logging.DEBUG, FORM, "SEND", "headrace#producer-1", "Sent ProduceRequest")
    assert len(caplog.messages) == 3
