"""A full disk is news twice: when it begins and when it is over."""

import errno
import logging
from dataclasses import dataclass

import pytest

from headrace.storage.free_space import FreeSpace
from headrace.storage.topic_partition import TopicPartition

FULL = OSError(errno.ENOSPC, "No space left on device")
ORDERS, USERS = TopicPartition("orders", 0), TopicPartition("users", 0)


@dataclass
class GrowingLog:
    log_end_offset: int


@pytest.fixture
def free_space(caplog: pytest.LogCaptureFixture) -> FreeSpace:
    caplog.set_level(logging.INFO)
    return FreeSpace("/disk")


FULL_LINE = "log directory full, producers are rejected until it has space"
OVER_LINE = "log directory has space again"


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_many_refusals_are_logged_once(
    free_space: FreeSpace, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(100):
        free_space.refuse(ORDERS, FULL, 5)
        free_space.refuse(USERS, FULL)
        free_space.check({ORDERS: GrowingLog(5)})
    assert lines(caplog) == [FULL_LINE]


def test_a_recovery_is_logged_once(free_space: FreeSpace, caplog: pytest.LogCaptureFixture) -> None:
    free_space.refuse(ORDERS, FULL, 5)
    free_space.check({ORDERS: GrowingLog(5)})
    caplog.clear()
    for end_offset in range(6, 10):
        free_space.check({ORDERS: GrowingLog(end_offset)})
    assert lines(caplog) == [OVER_LINE]


def test_the_recovery_is_logged_as_info(
    free_space: FreeSpace, caplog: pytest.LogCaptureFixture
) -> None:
    free_space.refuse_checkpoints(FULL)
    free_space.accept_checkpoints()
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


def test_a_full_disk_is_not_over_while_a_log_is_refused(
    free_space: FreeSpace, caplog: pytest.LogCaptureFixture
) -> None:
    free_space.refuse(ORDERS, FULL, 5)
    free_space.refuse(USERS, FULL, 9)
    free_space.check({ORDERS: GrowingLog(6), USERS: GrowingLog(9)})
    assert lines(caplog) == [FULL_LINE]


def test_a_full_disk_is_not_over_without_new_appends(
    free_space: FreeSpace, caplog: pytest.LogCaptureFixture
) -> None:
    free_space.refuse(ORDERS, FULL, 5)
    for _ in range(3):
        free_space.check({ORDERS: GrowingLog(5)})
    assert lines(caplog) == [FULL_LINE]


def test_a_created_partition_ends_the_alarm_of_a_full_disk(
    free_space: FreeSpace, caplog: pytest.LogCaptureFixture
) -> None:
    free_space.refuse(ORDERS, FULL)
    free_space.check({})
    assert lines(caplog) == [FULL_LINE]
    free_space.check({ORDERS: GrowingLog(0)})
    assert lines(caplog) == [FULL_LINE, OVER_LINE]


@pytest.mark.parametrize("end_offset", [5, -1], ids=["written", "not made yet"])
def test_deleting_the_only_refused_topic_ends_the_alarm(
    free_space: FreeSpace, caplog: pytest.LogCaptureFixture, end_offset: int
) -> None:
    """To delete something is what an operator does about a full disk."""
    free_space.refuse(ORDERS, FULL, end_offset)
    free_space.check({USERS: GrowingLog(7)})
    assert lines(caplog) == [FULL_LINE]
    free_space.check({USERS: GrowingLog(7)})
    assert lines(caplog) == [FULL_LINE, OVER_LINE]
    free_space.refuse(USERS, FULL, 7)
    assert lines(caplog) == [FULL_LINE, OVER_LINE, FULL_LINE]


def test_a_deleted_topic_does_not_end_refusals_of_others(
    free_space: FreeSpace, caplog: pytest.LogCaptureFixture
) -> None:
    free_space.refuse(ORDERS, FULL, 5)
    free_space.refuse(USERS, FULL, 9)
    for _ in range(3):
        free_space.check({USERS: GrowingLog(9)})
    assert lines(caplog) == [FULL_LINE]


def test_written_checkpoints_end_refusals_of_checkpoints(
    free_space: FreeSpace, caplog: pytest.LogCaptureFixture
) -> None:
    free_space.refuse_checkpoints(FULL)
    free_space.check({})
    free_space.check({})
    assert lines(caplog) == [FULL_LINE]
    free_space.accept_checkpoints()
    assert lines(caplog) == [FULL_LINE, OVER_LINE]


def test_written_checkpoints_do_not_end_refusals_of_logs(
    free_space: FreeSpace, caplog: pytest.LogCaptureFixture
) -> None:
    free_space.refuse(ORDERS, FULL, 5)
    free_space.refuse_checkpoints(FULL)
    free_space.accept_checkpoints()
    assert lines(caplog) == [FULL_LINE]
