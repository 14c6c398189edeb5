"""Creating, widening and deleting topics, with Kafka's answer to every mistake."""

from collections.abc import Mapping

import pytest

from headrace.controller.configs import ConfigRules
from headrace.controller.decision import ClusterDefaults, Decision
from headrace.controller.topics import TopicResult, create_partitions, create_topics, delete_topics
from headrace.errors import (
    InvalidConfig,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    InvalidTopicException,
    KafkaError,
    PolicyViolation,
    TopicAlreadyExists,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from headrace.metadata.image import UNASSIGNED_DIRECTORY, ConfigResource, MetadataImage
from headrace.protocol.schemas.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsTopic,
)
from headrace.protocol.schemas.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
)
from headrace.protocol.schemas.delete_topics import DeleteTopicState
from headrace.protocol.schemas.records.metadata import (
    ConfigRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tests.builders.metadata_images import (
    applied,
    directory_id,
    image_with,
    registered,
    replayed,
    topic_id,
)

IMAGE = image_with()
DEFAULTS = ClusterDefaults(num_partitions=2)


class AnyConfig(ConfigRules):
    """Rejects one value."""

    def check(self, resource: ConfigResource, configs: Mapping[str, str]) -> None:
        if "bad" in configs.values():
            raise InvalidConfig("bad")

    def is_list(self, resource_type: int, name: str) -> bool:
        return name == "cleanup.policy"

    def default(self, resource_type: int, name: str) -> str | None:
        return "delete" if name == "cleanup.policy" else None


def creatable(name: str, partitions: int = 1, replication_factor: int = 1) -> CreatableTopic:
    return CreatableTopic(name, partitions, replication_factor)


def assigned(name: str, *replicas: list[int]) -> CreatableTopic:
    assignments = [CreatableReplicaAssignment(index, one) for index, one in enumerate(replicas)]
    return CreatableTopic(name, -1, -1, assignments)


def create(
    *topics: CreatableTopic, image: MetadataImage = IMAGE, validate_only: bool = False
) -> Decision[list[TopicResult]]:
    return create_topics(image, topics, DEFAULTS, AnyConfig(), validate_only=validate_only)


def error_of(decision: Decision[list[TopicResult]]) -> type[KafkaError] | None:
    """The error of the only result."""
    (result,) = decision.reply
    return type(result.error) if result.error else None


def test_a_topic_is_created_with_partitions_and_configs() -> None:
    """LOG-5."""
    topic = creatable("orders", 3)
    topic.configs = [CreatableTopicConfig("retention.ms", "1000")]
    decision = create(topic)
    kinds = [type(record.message) for record in decision.records]
    assert kinds == [TopicRecord, ConfigRecord, PartitionRecord, PartitionRecord, PartitionRecord]
    image = applied(IMAGE, decision)
    assert image.configs_of(2, "orders") == {"retention.ms": "1000"}
    first = image.topics["orders"].partitions[0]
    assert (first.replicas, first.isr, first.leader, first.leader_epoch) == ((1,), (1,), 1, 0)
    assert first.directories == (directory_id(1),)


def test_the_answer_has_id_and_size() -> None:
    decision = create(creatable("orders", 3))
    (result,) = decision.reply
    assert (result.name, result.num_partitions, result.replication_factor) == ("orders", 3, 1)
    assert result.topic_id == applied(IMAGE, decision).topics["orders"].id


def test_minus_one_takes_the_brokers_defaults() -> None:
    (result,) = create(creatable("orders", -1, -1)).reply
    assert (result.num_partitions, result.replication_factor) == (2, 1)


def test_validate_only_writes_nothing_and_answers_the_same() -> None:
    decision = create(creatable("orders", 3), validate_only=True)
    assert decision.records == []
    assert decision.reply[0].num_partitions == 3


def test_good_topics_are_created_beside_bad_ones() -> None:
    decision = create(creatable("good"), creatable("b@d"), creatable("none", 0))
    assert [type(result.error) for result in decision.reply] == [
        type(None),
        InvalidTopicException,
        InvalidPartitions,
    ]
    assert list(applied(IMAGE, decision).topics) == ["good"]


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a b", "a/b", "a:b", "ü", "x" * 250, "line\n", "tab\t", "\0"]
)
def test_impossible_names_are_rejected(name: str) -> None:
    assert error_of(create(creatable(name))) is InvalidTopicException


@pytest.mark.parametrize("name", ["a", "...", "-", "_", "x" * 249, "A.b_C-9", "__consumer_offsets"])
def test_possible_names_are_accepted(name: str) -> None:
    assert error_of(create(creatable(name))) is None


def test_the_metadata_log_is_no_topic_for_clients() -> None:
    assert error_of(create(creatable("__cluster_metadata"))) is InvalidRequest


def test_an_existing_topic_is_not_created_again() -> None:
    image = image_with(topics={"orders": 1})
    assert error_of(create(creatable("orders"), image=image)) is TopicAlreadyExists


def test_names_that_are_equal_in_metrics_collide() -> None:
    image = image_with(topics={"a.b": 1})
    assert error_of(create(creatable("a_b"), image=image)) is InvalidTopicException
    assert error_of(create(creatable("a-b"), image=image)) is None


def test_names_collide_within_one_request_too() -> None:
    first, second = create(creatable("a.b"), creatable("a_b")).reply
    assert first.error is None
    assert type(second.error) is InvalidTopicException


def test_a_topic_named_twice_is_refused_once() -> None:
    decision = create(creatable("orders"), creatable("orders"), creatable("other"))
    assert [(result.name, type(result.error)) for result in decision.reply] == [
        ("orders", InvalidRequest),
        ("other", type(None)),
    ]


@pytest.mark.parametrize("partitions", [0, -2])
def test_impossible_numbers_of_partitions_are_rejected(partitions: int) -> None:
    assert error_of(create(creatable("orders", partitions))) is InvalidPartitions


@pytest.mark.parametrize("replication_factor", [0, -2, 2, 32_767])
def test_impossible_replication_factors_are_rejected(replication_factor: int) -> None:
    decision = create(creatable("orders", 1, replication_factor))
    assert error_of(decision) is InvalidReplicationFactor


def test_too_few_brokers_are_reported_with_the_largest_possible_factor() -> None:
    (result,) = create(creatable("orders", 1, 3)).reply
    assert "at most 1" in str(result.error)


def test_no_topic_is_created_while_every_broker_is_fenced() -> None:
    image = image_with(fenced=[1])
    assert error_of(create(creatable("orders"), image=image)) is InvalidReplicationFactor
    assert error_of(create(assigned("orders", [1]), image=image)) is InvalidReplicaAssignment


def test_bad_configs_are_refused() -> None:
    topic = creatable("orders")
    topic.configs = [CreatableTopicConfig("retention.ms", "bad")]
    assert error_of(create(topic)) is InvalidConfig
    topic.configs = [CreatableTopicConfig("retention.ms", None)]
    assert error_of(create(topic)) is InvalidConfig


def test_replicas_can_be_assigned_by_hand() -> None:
    image = image_with(brokers=[1, 2], fenced=[2])
    decision = create(assigned("orders", [2, 1], [1, 2]), image=image)
    partitions = applied(image, decision).topics["orders"].partitions
    assert [one.replicas for one in partitions] == [(2, 1), (1, 2)]
    assert [one.isr for one in partitions] == [(1,), (1,)]
    assert [one.leader for one in partitions] == [1, 1]


@pytest.mark.parametrize(
    "topic",
    [
        assigned("orders", []),
        assigned("orders", [1, 1]),
        assigned("orders", [9]),
        assigned("orders", [1], [1, 2]),
        CreatableTopic("orders", -1, -1, [CreatableReplicaAssignment(1, [1])]),
        CreatableTopic("orders", -1, -1, [CreatableReplicaAssignment(0, [1])] * 2),
    ],
)
def test_impossible_assignments_are_rejected(topic: CreatableTopic) -> None:
    image = image_with(brokers=[1, 2])
    assert error_of(create(topic, image=image)) is InvalidReplicaAssignment


@pytest.mark.parametrize(("partitions", "replication_factor"), [(1, -1), (-1, 1)])
def test_an_assignment_excludes_numbers_of_partitions_and_replicas(
    partitions: int, replication_factor: int
) -> None:
    topic = assigned("orders", [1])
    topic.num_partitions, topic.replication_factor = partitions, replication_factor
    assert error_of(create(topic)) is InvalidRequest


@pytest.mark.parametrize("partitions", [10_001, 2**31 - 1])
def test_too_many_partitions_are_refused_before_any_work(partitions: int) -> None:
    with pytest.raises(PolicyViolation, match="split"):
        create(creatable("orders", partitions))


def test_too_many_partitions_in_all_are_refused() -> None:
    with pytest.raises(PolicyViolation):
        create(creatable("a", 6_000), creatable("b", 6_000))


def test_a_broker_with_several_directories_chooses_itself() -> None:
    image = replayed(IMAGE, [registered(1, log_dirs=[b"a" * 16, b"b" * 16])])
    created = applied(image, create(creatable("orders"), image=image))
    assert created.topics["orders"].partitions[0].directories == (UNASSIGNED_DIRECTORY,)


@pytest.mark.parametrize(("level", "version"), [(25, 2), (22, 1), (14, 0)])
def test_partitions_are_written_as_the_cluster_can_read_them(level: int, version: int) -> None:
    image = image_with(levels={"metadata.version": level})
    record = create(creatable("orders"), image=image).records[-1]
    assert record.version == version
    assert isinstance(record.message, PartitionRecord)
    assert bool(record.message.directories) == (version > 0)


# Widening.


def test_partitions_are_added_after_existing_ones() -> None:
    image = image_with(topics={"orders": 2})
    decision = create_partitions(image, [CreatePartitionsTopic("orders", 5, None)])
    assert len(decision.records) == 3
    assert len(applied(image, decision).topics["orders"].partitions) == 5


def test_adding_partitions_can_be_tried_out() -> None:
    image = image_with(topics={"orders": 2})
    wanted = [CreatePartitionsTopic("orders", 5, None)]
    decision = create_partitions(image, wanted, validate_only=True)
    assert (decision.records, error_of(decision)) == ([], None)


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (CreatePartitionsTopic("unknown", 5, None), UnknownTopicOrPartition),
        (CreatePartitionsTopic("orders", 2, None), InvalidPartitions),
        (CreatePartitionsTopic("orders", 1, None), InvalidPartitions),
        (CreatePartitionsTopic("orders", -1, None), InvalidPartitions),
        (CreatePartitionsTopic("orders", 20_000, None), PolicyViolation),
        (CreatePartitionsTopic("orders", 3, []), InvalidReplicaAssignment),
        (
            CreatePartitionsTopic("orders", 3, [CreatePartitionsAssignment([9])]),
            InvalidReplicaAssignment,
        ),
        (
            CreatePartitionsTopic("orders", 3, [CreatePartitionsAssignment([1, 2])]),
            InvalidReplicaAssignment,
        ),
    ],
)
def test_impossible_numbers_of_added_partitions_are_rejected(
    wanted: CreatePartitionsTopic, error: type[KafkaError]
) -> None:
    image = image_with(topics={"orders": 2}, brokers=[1, 2])
    assert error_of(create_partitions(image, [wanted])) is error


def test_a_topic_is_widened_once_in_a_request() -> None:
    image = image_with(topics={"orders": 2})
    wanted = [CreatePartitionsTopic("orders", 3, None), CreatePartitionsTopic("orders", 4, None)]
    decision = create_partitions(image, wanted)
    assert (error_of(decision), list(decision.records)) == (InvalidRequest, [])


def test_added_partitions_can_be_assigned_by_hand() -> None:
    image = image_with(topics={"orders": 1}, brokers=[1, 2])
    wanted = CreatePartitionsTopic("orders", 2, [CreatePartitionsAssignment([2])])
    image = applied(image, create_partitions(image, [wanted]))
    assert image.topics["orders"].partitions[1].replicas == (2,)


# Deleting.


def test_topics_are_deleted_by_name_and_by_id() -> None:
    """LOG-5."""
    image = image_with(topics={"orders": 1, "other": 1, "kept": 1})
    wanted = [DeleteTopicState("orders"), DeleteTopicState(None, topic_id("other"))]
    decision = delete_topics(image, wanted)
    assert [(result.name, result.topic_id) for result in decision.reply] == [
        ("orders", topic_id("orders")),
        ("other", topic_id("other")),
    ]
    assert [type(record.message) for record in decision.records] == [RemoveTopicRecord] * 2
    assert list(applied(image, decision).topics) == ["kept"]


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (DeleteTopicState("unknown"), UnknownTopicOrPartition),
        (DeleteTopicState(None, b"u" * 16), UnknownTopicId),
        (DeleteTopicState(None), InvalidRequest),
        (DeleteTopicState("orders", topic_id("orders")), InvalidRequest),
    ],
)
def test_impossible_deletions_are_rejected(
    wanted: DeleteTopicState, error: type[KafkaError]
) -> None:
    decision = delete_topics(image_with(topics={"orders": 1}), [wanted])
    assert (error_of(decision), list(decision.records)) == (error, [])


@pytest.mark.parametrize(
    "wanted",
    [
        [DeleteTopicState("orders"), DeleteTopicState("orders")],
        [DeleteTopicState(None, topic_id("orders"))] * 2,
    ],
)
def test_a_topic_is_deleted_once_in_a_request(wanted: list[DeleteTopicState]) -> None:
    decision = delete_topics(image_with(topics={"orders": 1}), wanted)
    assert (error_of(decision), list(decision.records)) == (InvalidRequest, [])


def test_a_topic_named_by_name_and_by_id_is_not_deleted() -> None:
    image = image_with(topics={"orders": 1})
    wanted = [DeleteTopicState("orders"), DeleteTopicState(None, topic_id("orders"))]
    decision = delete_topics(image, wanted)
    assert decision.records == []
    assert [type(result.error) for result in decision.reply] == [InvalidRequest, InvalidRequest]
