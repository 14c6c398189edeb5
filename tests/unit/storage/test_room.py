"""A full disk is news twice: when it begins and when it is over."""

import errno
import logging
from dataclasses import dataclass

import pytest

from headrace.storage.room import Room
from headrace.storage.topic_partition import TopicPartition

FULL = OSError(errno.ENOSPC, "No space left on device")
ORDERS, USERS = TopicPartition("orders", 0), TopicPartition("users", 0)


@dataclass
class GrowingLog:
    log_end_offset: int


@pytest.fixture
def room(caplog: pytest.LogCaptureFixture) -> Room:
    caplog.set_level(logging.INFO)
    return Room("/disk")


FULL_LINE = "the log directory /disk takes no writes"
OVER_LINE = "the log directory /disk takes writes again"


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage().partition(": ")[0] for record in caplog.records]


def test_many_refusals_are_told_once(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(100):
        room.refuse(ORDERS, FULL, 5)
        room.refuse(USERS, FULL)
        room.look({ORDERS: GrowingLog(5)})
    assert lines(caplog) == [FULL_LINE]


def test_a_log_that_has_grown_is_told_once(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    room.refuse(ORDERS, FULL, 5)
    room.look({ORDERS: GrowingLog(5)})
    caplog.clear()
    for end_offset in range(6, 10):
        room.look({ORDERS: GrowingLog(end_offset)})
    assert lines(caplog) == [OVER_LINE]


def test_that_it_is_over_asks_for_no_action(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    room.refuse_checkpoints(FULL)
    room.take_checkpoints()
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


def test_it_is_not_over_while_somebody_is_refused(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    room.refuse(ORDERS, FULL, 5)
    room.refuse(USERS, FULL, 9)
    room.look({ORDERS: GrowingLog(6), USERS: GrowingLog(9)})
    assert lines(caplog) == [FULL_LINE]


def test_it_is_not_over_because_nobody_tries(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    room.refuse(ORDERS, FULL, 5)
    for _ in range(3):
        room.look({ORDERS: GrowingLog(5)})
    assert lines(caplog) == [FULL_LINE]


def test_a_partition_that_could_be_made_shows_that_it_is_over(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    room.refuse(ORDERS, FULL)
    room.look({})
    assert lines(caplog) == [FULL_LINE]
    room.look({ORDERS: GrowingLog(0)})
    assert lines(caplog) == [FULL_LINE, OVER_LINE]


@pytest.mark.parametrize("end_offset", [5, -1], ids=["written", "not made yet"])
def test_a_topic_that_is_deleted_leaves_nobody_refused(
    room: Room, caplog: pytest.LogCaptureFixture, end_offset: int
) -> None:
    """To delete something is what an operator does about a full disk."""
    room.refuse(ORDERS, FULL, end_offset)
    room.look({USERS: GrowingLog(7)})
    assert lines(caplog) == [FULL_LINE]
    room.look({USERS: GrowingLog(7)})
    assert lines(caplog) == [FULL_LINE, OVER_LINE]
    room.refuse(USERS, FULL, 7)
    assert lines(caplog) == [FULL_LINE, OVER_LINE, FULL_LINE]


def test_a_deleted_topic_says_nothing_for_the_others(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    room.refuse(ORDERS, FULL, 5)
    room.refuse(USERS, FULL, 9)
    for _ in range(3):
        room.look({USERS: GrowingLog(9)})
    assert lines(caplog) == [FULL_LINE]


def test_checkpoints_that_could_be_written_end_what_they_began(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    room.refuse_checkpoints(FULL)
    room.look({})
    room.look({})
    assert lines(caplog) == [FULL_LINE]
    room.take_checkpoints()
    assert lines(caplog) == [FULL_LINE, OVER_LINE]


def test_checkpoints_say_nothing_for_the_logs(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    room.refuse(ORDERS, FULL, 5)
    room.refuse_checkpoints(FULL)
    room.take_checkpoints()
    assert lines(caplog) == [FULL_LINE]
