"""Share groups and their states move between Headrace and Apache Kafka with their directory."""

from typing import Any

from tests.clients.librdkafka import create_topic, numbered, produce
from tests.clients.share_group_apis import ShareGroupClient
from tests.interop.conftest import Pair
from tests.processes.nodes import eventually

GROUP = "wanderers"
ACKNOWLEDGED, ARCHIVED = 2, 4


def test_a_share_group_goes_to_kafka_and_back(pair: Pair) -> None:
    """RMQ-1: members, assignments and states are in Kafka's own records."""
    ours, theirs = pair
    ours.start()
    topic = create_topic(ours, partitions=2)
    produce(ours, topic, numbered(20), partition=0)
    with ShareGroupClient(ours, topic, group_id=GROUP) as group:
        group.join("ada")
        deliver(group, 0, leader_epoch=1, start=5)
        before = seen(group)
    ours.kill()

    theirs.start()
    with ShareGroupClient(theirs, topic, group_id=GROUP) as group:
        eventually(lambda: seen(group), expect=lambda found: found == before)
        deliver(group, 1, leader_epoch=4, start=3)
        before = seen(group)
    theirs.stop()

    ours.start()
    with ShareGroupClient(ours, topic, group_id=GROUP) as group:
        assert seen(group) == before
        group.beat("ada", -1)
        assert not group.describe().members


def test_offsets_that_kafka_altered_are_taken_over(pair: Pair) -> None:
    ours, theirs = pair
    theirs.start()
    topic = create_topic(theirs, partitions=2)
    produce(theirs, topic, numbered(20), partition=0)
    with ShareGroupClient(theirs, topic, group_id=GROUP) as group:
        group.alter({0: 7, 1: 0})
        before = eventually(group.offsets, expect=lambda found: len(found) == 2)
    theirs.stop()

    ours.start()
    with ShareGroupClient(ours, topic, group_id=GROUP) as group:
        assert group.offsets() == before == {(topic, 0): (7, 13), (topic, 1): (0, 0)}
        group.alter({0: 9})
        altered = group.offsets()
        state = kept(group, 0)
    ours.kill()

    theirs.start()
    with ShareGroupClient(theirs, topic, group_id=GROUP) as group:
        eventually(group.offsets, expect=lambda found: found == altered)
        assert kept(group, 0) == state
        member = group.join("ada")
        assert sorted(member.assignment.topic_partitions[0].partitions) == [0, 1]


def deliver(group: ShareGroupClient, partition: int, *, leader_epoch: int, start: int) -> None:
    """Write, as the partition's leader would, that some records are done with, one given up."""
    state = group.state("read_share_group_state", 0, partition, leader_epoch=leader_epoch)
    batches = [
        {"first_offset": first, "last_offset": last, "delivery_state": one, "delivery_count": count}
        for first, last, one, count in (
            (start + 1, start + 3, ACKNOWLEDGED, 1),
            (start + 5, start + 5, ARCHIVED, 5),
        )
    ]
    written = group.state(
        "write_share_group_state",
        1,
        partition,
        state_epoch=state.state_epoch,
        leader_epoch=leader_epoch,
        start_offset=start,
        delivery_complete_count=4,
        state_batches=batches,
    )
    assert not written.error_code.value


def seen(group: ShareGroupClient) -> tuple[object, ...]:
    """All that the group's administrators see, and what the share coordinator has."""
    described = group.describe()
    members = [
        (
            one.member_id,
            one.member_epoch,
            one.subscribed_topic_names,
            [
                (place.topic_name, sorted(place.partitions))
                for place in one.assignment.topic_partitions
            ],
        )
        for one in described.members
    ]
    states = [kept(group, partition) for partition in (0, 1)]
    return described.group_state, described.group_epoch, members, group.offsets(), states


def kept(group: ShareGroupClient, partition: int) -> Any:
    """A state, read without a leader epoch, so that it fences no leader."""
    state = group.state("read_share_group_state", 0, partition, leader_epoch=-1)
    return state.state_epoch, state.start_offset, state.state_batches
