"""Consumer groups move between Headrace and Apache Kafka with their directory."""

from contextlib import suppress

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import ConsumerGroupDescription

from tests.clients.librdkafka import SECONDS_MAX, admin, consumer, create_topic
from tests.interop.conftest import Pair
from tests.processes.nodes import Node, eventually

GROUP = "wanderers"


def test_a_group_with_members_and_offsets_goes_to_kafka_and_back(pair: Pair) -> None:
    """CON-6: epochs, assignments and commits are in Kafka's own records."""
    ours, theirs = pair
    ours.start()
    topic = create_topic(ours, partitions=4)
    leave_a_member_behind(ours, topic)
    before = described(ours)
    ours.kill()

    theirs.start()
    assert described(theirs) == before
    commit(theirs, topic, 9)
    theirs.stop()

    ours.start()
    assert described(ours) == before
    with consumer(ours, group_id="offsets") as client:
        (found,) = client.committed([TopicPartition(topic, 0)], SECONDS_MAX)
        assert found.offset == 9


def leave_a_member_behind(node: Node, topic: str) -> None:
    """A static member goes away for a while, so it stays in the group."""
    config = {"group_protocol": "consumer", "group_instance_id": "desk-1"}
    with consumer(node, group_id=GROUP, auto_offset_reset="earliest", **config) as client:
        client.subscribe([topic])

        def has_all() -> bool:
            client.poll(0.1)
            return len(client.assignment()) == 4

        eventually(has_all)


def described(node: Node) -> tuple[object, ...]:
    found: list[ConsumerGroupDescription] = []
    client = admin(node)

    def is_loaded() -> bool:
        with suppress(KafkaException):
            found.append(client.describe_consumer_groups([GROUP])[GROUP].result(SECONDS_MAX))
        return bool(found)

    eventually(is_loaded)
    (group,) = found
    members = [
        (
            one.member_id,
            one.group_instance_id,
            sorted(place.partition for place in one.assignment.topic_partitions),
        )
        for one in group.members
    ]
    return group.type, group.partition_assignor, members


def commit(node: Node, topic: str, offset: int) -> None:
    with consumer(node, group_id="offsets") as client:
        place = TopicPartition(topic, 0, offset)
        client.assign([place])
        client.commit(offsets=[place], asynchronous=False)
