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
def room() -> Room:
    return Room("/disk")


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage().partition(": ")[0] for record in caplog.records]


def test_many_refusals_are_told_once(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(100):
        room.refuse(ORDERS, FULL, 5)
        room.refuse(USERS, FULL)
        room.look({ORDERS: GrowingLog(5)})
    assert lines(caplog) == ["the log directory /disk takes no writes"]


def test_a_log_that_has_grown_is_told_once(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    room.refuse(ORDERS, FULL, 5)
    room.look({ORDERS: GrowingLog(5)})
    caplog.set_level(logging.INFO)
    caplog.clear()
    for end_offset in range(6, 10):
        room.look({ORDERS: GrowingLog(end_offset)})
    assert lines(caplog) == ["the log directory /disk takes writes again"]
    assert not room.is_lacking


def test_that_it_is_over_asks_for_no_action(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    room.refuse_checkpoints(FULL)
    room.take_checkpoints()
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


def test_it_is_not_over_while_somebody_is_refused(room: Room) -> None:
    room.refuse(ORDERS, FULL, 5)
    room.refuse(USERS, FULL, 9)
    room.look({ORDERS: GrowingLog(6), USERS: GrowingLog(9)})
    assert room.is_lacking


def test_a_partition_that_could_be_made_shows_that_it_is_over(room: Room) -> None:
    room.refuse(ORDERS, FULL)
    room.look({})
    assert room.is_lacking
    room.look({ORDERS: GrowingLog(0)})
    assert not room.is_lacking


def test_checkpoints_that_could_be_written_end_what_they_began(room: Room) -> None:
    room.refuse_checkpoints(FULL)
    room.take_checkpoints()
    assert not room.is_lacking


def test_checkpoints_say_nothing_for_the_logs(room: Room) -> None:
    room.refuse(ORDERS, FULL, 5)
    room.refuse_checkpoints(FULL)
    room.take_checkpoints()
    assert room.is_lacking
