"""Settings and assignments of a consumer that need no broker."""

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, OFFSET_INVALID, OFFSET_STORED

from headrace import Consumer, TopicPartition

NOWHERE = {"bootstrap.servers": "127.0.0.1:1"}


@pytest.mark.parametrize(
    ("settings", "given", "start"),
    [
        ({}, OFFSET_INVALID, OFFSET_END),
        ({"auto.offset.reset": "earliest"}, OFFSET_INVALID, OFFSET_BEGINNING),
        ({"auto.offset.reset": "earliest"}, 42, 42),
        ({"auto.offset.reset": "error"}, OFFSET_INVALID, OFFSET_STORED),
        ({"group.id": "readers"}, OFFSET_INVALID, OFFSET_STORED),
    ],
)
def test_only_members_of_groups_look_for_a_commit(
    settings: dict[str, str], given: int, start: int
) -> None:
    """CON-2: librdkafka gives up a partition if the coordinator of a new cluster is not ready."""
    with Consumer({**NOWHERE, **settings}) as consumer:
        consumer.assign([TopicPartition("orders", 0, given)])
        assert [part.offset for part in consumer.assignment()] == [start]
