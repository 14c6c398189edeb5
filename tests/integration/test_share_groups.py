"""Share groups on the wire: members, states and offsets, with Kafka's codes for what is wrong."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from kio.schema.errors import ErrorCode

from tests.clients.librdkafka import SECONDS_MAX, admin, consumer, create_topic, numbered, produce
from tests.clients.share_group_apis import ShareGroupClient
from tests.clients.share_members import ACCEPT, SETTINGS, ShareMember
from tests.clients.wire import SECOND
from tests.integration.cli.commands import headrace, ok
from tests.integration.conftest import StartNode
from tests.processes.kafka import KafkaRelease
from tests.processes.nodes import Node, eventually

ACKNOWLEDGED = 2
LIVELY = {name.replace(".", "_"): value for name, value in SETTINGS.items()}

NewGroup = Callable[..., ShareGroupClient]


@pytest.fixture
def node(start_node: StartNode) -> Node:
    return start_node(**LIVELY)


@pytest.fixture
def new_group(node: Node) -> Iterator[NewGroup]:
    with ExitStack() as stack:
        yield lambda topic, **options: stack.enter_context(ShareGroupClient(node, topic, **options))


def test_a_member_joins_shares_and_leaves(node: Node, new_group: NewGroup) -> None:
    """RMQ-1, PUL-3."""
    topic = create_topic(node, partitions=2)
    group = new_group(topic)
    ada = group.join("ada")
    (share,) = ada.assignment.topic_partitions
    assert sorted(share.partitions) == [0, 1]
    bob = group.join("bob")
    eventually(lambda: shares(group), expect=lambda found: found == {"ada": 1, "bob": 1})
    assert group.describe().group_state == "Stable"
    assert group.beat("bob", -1).error_code == ErrorCode.none
    assert group.beat("bob", bob.member_epoch).error_code == ErrorCode.unknown_member_id
    eventually(lambda: shares(group), expect=lambda found: found == {"ada": 2})


def shares(group: ShareGroupClient) -> dict[str, int]:
    """The number of each member's partitions, after a heartbeat of each."""
    found = {}
    for member in group.describe().members:
        group.beat(member.member_id, member.member_epoch)
        places = member.assignment.topic_partitions
        found[member.member_id] = sum(len(place.partitions) for place in places)
    return found


def test_a_topic_of_many_partitions_is_shared_out(node: Node, new_group: NewGroup) -> None:
    """RMQ-1: more than are begun in one turn of the broker's loop."""
    topic = create_topic(node, partitions=120)
    (share,) = new_group(topic).join("ada").assignment.topic_partitions
    assert sorted(share.partitions) == list(range(120))


def test_wrong_heartbeats_get_kafkas_codes(node: Node, new_group: NewGroup) -> None:
    topic = create_topic(node)
    group = new_group(topic)
    assert group.coordinated(lambda: group.beat("ada", 5)).error_code == (
        ErrorCode.group_id_not_found
    )
    epoch = group.join("ada").member_epoch
    assert group.beat("ada", epoch + 1).error_code == ErrorCode.fenced_member_epoch
    assert group.beat("eve", epoch).error_code == ErrorCode.unknown_member_id
    assert group.beat("eve", 0).error_code == ErrorCode.invalid_request
    assert group.beat("", 0, [topic]).error_code == ErrorCode.invalid_request
    assert group.beat("ada", -2).error_code == ErrorCode.invalid_request
    nowhere = new_group(topic)
    assert nowhere.describe().error_code == ErrorCode.group_id_not_found


def test_a_share_group_is_listed_as_one_and_no_consumer_group(
    node: Node, new_group: NewGroup
) -> None:
    topic = create_topic(node)
    group = new_group(topic)
    group.join("ada")
    listed = group.connection.call("list_groups", 5, states_filter=[], types_filter=["share"])
    (found,) = [one for one in listed.groups if one.group_id == group.group_id]
    assert (found.group_type, found.protocol_type, found.group_state) == (
        "share",
        "share",
        "Stable",
    )
    answer = group.connection.call(
        "consumer_group_describe",
        1,
        group_ids=[group.group_id],
        include_authorized_operations=False,
    )
    assert answer.groups[0].error_code == ErrorCode.group_id_not_found


def test_offsets_are_altered_listed_and_deleted(node: Node, new_group: NewGroup) -> None:
    topic = create_topic(node, partitions=2)
    produce(node, topic, numbered(10), partition=0)
    group = new_group(topic)
    answer = group.alter({0: 4, 1: 0, 7: 0})
    codes = [one.error_code for one in answer.responses[0].partitions]
    assert codes == [ErrorCode.none, ErrorCode.none, ErrorCode.unknown_topic_or_partition]
    told = {(topic, 0): (4, 6), (topic, 1): (0, 0)}
    eventually(group.offsets, expect=lambda found: found == told)
    assert group.describe().group_state == "Empty"
    unknown = group.alter({0: 0}, topic="nothing").responses[0].partitions[0]
    assert unknown.error_code == ErrorCode.unknown_topic_or_partition
    answer = group.forget(topic, "nothing")
    by_topic = {one.topic_name: one.error_code for one in answer.responses}
    assert by_topic == {topic: ErrorCode.none, "nothing": ErrorCode.unknown_topic_or_partition}
    assert group.offsets() == {}
    assert group.delete() == ErrorCode.none
    assert group.delete() == ErrorCode.group_id_not_found
    assert group.forget(topic).error_code == ErrorCode.group_id_not_found


def test_a_group_with_members_is_not_changed_from_outside(node: Node, new_group: NewGroup) -> None:
    topic = create_topic(node)
    group = new_group(topic)
    group.join("ada")
    assert group.alter({0: 0}).error_code == ErrorCode.non_empty_group
    assert group.forget(topic).error_code == ErrorCode.non_empty_group
    assert group.delete() == ErrorCode.non_empty_group
    group.beat("ada", -1)
    assert group.delete() == ErrorCode.none


def test_states_are_kept_and_fenced_by_their_epochs(node: Node, new_group: NewGroup) -> None:
    """The share coordinator's own APIs, as other brokers call them."""
    topic = create_topic(node)
    group = new_group(topic)
    begun = group.state("initialize_share_group_state", 0, state_epoch=3, start_offset=10)
    assert begun.error_code == ErrorCode.none
    assert group.state("read_share_group_state", 0, leader_epoch=2).start_offset == 10
    batch = {
        "first_offset": 12,
        "last_offset": 14,
        "delivery_state": ACKNOWLEDGED,
        "delivery_count": 1,
    }

    def write(state_epoch: int = 3, leader_epoch: int = 2, partition: int = 0) -> Any:
        answer = group.state(
            "write_share_group_state",
            1,
            partition=partition,
            state_epoch=state_epoch,
            leader_epoch=leader_epoch,
            start_offset=11,
            delivery_complete_count=3,
            state_batches=[batch],
        )
        return answer.error_code

    assert write() == ErrorCode.none
    found = group.state("read_share_group_state", 0, leader_epoch=2)
    (kept,) = found.state_batches
    assert (found.state_epoch, found.start_offset) == (3, 11)
    assert (kept.first_offset, kept.last_offset, kept.delivery_count) == (12, 14, 1)
    assert write(state_epoch=2) == ErrorCode.fenced_state_epoch
    assert write(leader_epoch=1) == ErrorCode.fenced_leader_epoch
    assert write(partition=1) == ErrorCode.invalid_request
    summary = group.state("read_share_group_state_summary", 1, leader_epoch=2)
    assert (summary.start_offset, summary.delivery_complete_count) == (11, 3)
    node.kill()
    node.start()
    again = new_group(topic, group_id=group.group_id)
    after = again.state("read_share_group_state", 0, leader_epoch=2)
    assert (after.start_offset, after.state_batches) == (11, found.state_batches)
    gone = again.state("delete_share_group_state", 0)
    assert gone.error_code == ErrorCode.none
    forgotten = again.state("read_share_group_state", 0, leader_epoch=2)
    assert forgotten.error_code == ErrorCode.invalid_request


def test_states_go_with_their_topic(node: Node, new_group: NewGroup) -> None:
    topic, other = create_topic(node), create_topic(node)
    group = new_group(topic)
    group.alter({0: 0})
    group.alter({0: 0}, topic=other)
    assert group.offsets().keys() == {(topic, 0), (other, 0)}
    administrator = admin(node)
    administrator.delete_topics([topic])[topic].result(SECONDS_MAX)
    eventually(group.offsets, expect=lambda found: found.keys() == {(other, 0)})
    assert group.delete() == ErrorCode.none


def test_a_group_that_is_reset_reads_again(node: Node, new_group: NewGroup) -> None:
    """Acknowledged records are delivered again after an administrator resets the group."""
    topic = create_topic(node)
    produce(node, topic, numbered(4))
    group = new_group(topic)
    group.alter({0: 0})
    for first in (0, 0, 2):
        group.alter({0: first})
        with ShareMember(node, group.group_id, topic) as member:
            member.join()
            assert [one[:2] for one in member.take()] == [(first, 3)]
            assert member.acknowledge((first, 3, [ACCEPT])) == (0, 0)
            eventually(group.offsets, expect=lambda found: found[topic, 0][1] == 0)
            group.beat(member.member_id, -1)


def test_the_topic_of_states_does_not_grow_for_ever(start_node: StartNode) -> None:
    """Redundant records are deleted, and a crash afterwards loses nothing."""
    node = start_node(
        **{**LIVELY, "share_coordinator_state_topic_num_partitions": 1},
        share_coordinator_snapshot_update_records_per_snapshot=3,
        share_coordinator_state_topic_prune_interval_ms=200,
    )
    topic = create_topic(node)
    with ShareGroupClient(node, topic) as group:
        group.state("initialize_share_group_state", 0, state_epoch=1, start_offset=0)
        for start in range(1, 30):
            group.state(
                "write_share_group_state",
                1,
                state_epoch=1,
                leader_epoch=0,
                start_offset=start,
                delivery_complete_count=0,
                state_batches=[],
            )
        eventually(lambda: first_offset(node), expect=lambda offset: offset >= 24)
        node.kill()
        node.start()
    with ShareGroupClient(node, topic, group_id=group.group_id) as again:
        state = again.state("read_share_group_state", 0, leader_epoch=0)
        assert (state.state_epoch, state.start_offset) == (1, 29)


def first_offset(node: Node) -> int:
    place = TopicPartition("__share_group_state", 0)
    with consumer(node) as client:
        return int(client.get_watermark_offsets(place, SECONDS_MAX)[0])


def test_share_groups_can_be_switched_off(node: Node, new_group: NewGroup) -> None:
    """As Kafka's feature share.version does it."""
    topic = create_topic(node)
    group = new_group(topic)
    group.join("ada")
    level = {"feature": "share.version", "max_version_level": 0, "upgrade_type": 2}
    answer = group.connection.call(
        "update_features",
        1,
        timeout=SECOND * SECONDS_MAX,
        feature_updates=[level],
        validate_only=False,
    )
    assert answer.error_code == ErrorCode.none
    told = eventually(
        lambda: group.beat("ada", 1).error_code,
        expect=lambda code: code == ErrorCode.unsupported_version,
    )
    assert told == ErrorCode.unsupported_version
    with ShareMember(node, group.group_id, topic) as member:
        assert member.fetch().error_code == ErrorCode.unsupported_version
        assert member.acknowledge()[0] == ErrorCode.unsupported_version


def test_the_command_line_manages_share_groups(node: Node, new_group: NewGroup) -> None:
    """RMQ-1: a queue is looked at, reset and deleted as any other group."""
    topic = create_topic(node, partitions=2)
    produce(node, topic, numbered(10), partition=0)
    group = new_group(topic)
    name = group.group_id
    group.join("ada")
    (listed,) = ok(node, "groups", "list", name, "--type", "share", "--json").document
    assert (listed["state"], listed["type"]) == ("Stable", "share")
    refused = headrace(node, "groups", "reset", name, "--topic", topic, "--to-earliest", "--yes")
    assert refused.code == 1
    assert "NON_EMPTY_GROUP" in refused.err
    (described,) = ok(node, "groups", "describe", name, "--json").document
    assert described["group"]["members"][0]["assignment"] == {topic: [0, 1]}
    group.beat("ada", -1)
    ok(node, "groups", "reset", name, "--topic", topic, "--to-offset", "4", "--yes")
    (described,) = ok(node, "groups", "describe", name, "--json").document
    lags = {one["partition"]: (one["committed"], one["lag"]) for one in described["partitions"]}
    assert lags == {0: (4, 6), 1: (0, 0)}
    assert "6 records" in ok(node, "groups", "describe", name).out
    part = headrace(node, "groups", "delete-offsets", name, "--topic", f"{topic}:0", "--yes")
    assert (part.code, "whole topics" in part.err) == (1, True)
    ok(node, "groups", "delete-offsets", name, "--topic", topic, "--yes")
    ok(node, "groups", "delete", name, "--yes")
    assert headrace(node, "groups", "describe", name).code == 1


def test_kafka_share_groups(node: Node, new_group: NewGroup, kafka_release: KafkaRelease) -> None:
    """RMQ-1, OPS-1: Kafka's own tool lists, describes, resets and deletes."""
    topic = create_topic(node, partitions=2)
    produce(node, topic, numbered(10), partition=0)
    group = new_group(topic)
    group.join("ada")

    def tool(*arguments: str) -> list[str]:
        options = ("--bootstrap-server", node.address, *arguments)
        return kafka_release.run("kafka-share-groups", *options).split()

    named = ("--group", group.group_id)
    assert group.group_id in tool("--list")
    assert "ada" in tool("--describe", "--members", *named)
    assert "Stable" in tool("--describe", "--state", *named)
    group.beat("ada", -1)
    tool("--reset-offsets", "--to-earliest", "--topic", topic, "--execute", *named)
    described = tool("--describe", *named)
    row = described.index(topic)
    assert described[row : row + 4] == [topic, "0", "0", "10"]
    assert "Successful" in tool("--delete-offsets", "--topic", topic, *named)
    assert "successful." in tool("--delete", *named)
    assert group.group_id not in tool("--list")
