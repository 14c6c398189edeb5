"""Dead letters on their way from a log to the group's dead letter topic."""

from pathlib import Path

import pytest

from headrace.broker.shares.dead_letters import DeadLetters
from headrace.errors import CorruptMessage
from headrace.replication.partition import Partition
from headrace.shares.partition import Acquired
from tests.builders.logs import append, damage_length
from tests.unit.broker.api.builders import a_broker, a_topic


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    """Three batches of two records."""
    broker = a_broker(tmp_path)
    broker._host(a_topic("orders"))
    hosted = broker.partitions.led("orders", 0)
    for _ in range(3):
        append(hosted.online_log(), b"a", b"b")
    return hosted


def test_the_records_of_a_letter_are_found_in_the_log(partition: Partition) -> None:
    found = DeadLetters._records(partition, Acquired(1, 4, 5))
    assert [record.offset for record in found] == [1, 2, 3, 4]


def test_records_that_the_log_has_lost_are_left_out(partition: Partition) -> None:
    partition.online_log().log_start_offset = 3
    found = DeadLetters._records(partition, Acquired(1, 9, 5))
    assert [record.offset for record in found] == [3, 4, 5]


@pytest.mark.parametrize("length", [-12, 1 << 30])
def test_a_damaged_batch_is_corruption_and_no_endless_walk(
    partition: Partition, length: int
) -> None:
    damage_length(partition.online_log(), 0, length)
    with pytest.raises(CorruptMessage):
        list(DeadLetters._records(partition, Acquired(0, 5, 5)))
