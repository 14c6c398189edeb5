"""The rights that a controller requires, with Kafka's error for each request (SEC-7)."""

import pytest

from headrace.controller.decision import Decision
from headrace.controller.requests import DECIDED, OF_NODES, RIGHTS_ON_CLUSTER, check_right, decide
from headrace.errors import (
    ClusterAuthorizationFailed,
    GroupAuthorizationFailed,
    InvalidRequest,
    TopicAuthorizationFailed,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from headrace.metadata.image import MetadataImage
from headrace.metadata.image import ResourceType as ConfigOwner
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.message import Message
from headrace.protocol.metadata_topic import METADATA_TOPIC
from headrace.protocol.schemas import incremental_alter_configs as incremental
from headrace.protocol.schemas.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from headrace.protocol.schemas.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from headrace.protocol.schemas.create_topics import CreatableTopic, CreateTopicsRequest
from headrace.protocol.schemas.delete_topics import DeleteTopicsRequest, DeleteTopicState
from headrace.security.acls import CLUSTER_NAME, Operation, ResourceType
from tests.builders.authorizers import ListedRights, Right, access_of
from tests.builders.metadata_images import image_with, topic_id
from tests.unit.controller.test_requests import context_of

TOPIC, CLUSTER, GROUP = ResourceType.TOPIC, ResourceType.CLUSTER, ResourceType.GROUP
DENIED = TopicAuthorizationFailed.code
TOPICS = image_with(topics={"orders": 1, "bills": 1})

ON_SINGLE_RESOURCES = {
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.ALTER_CONFIGS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
}


def decided(image: MetadataImage, request: Message, *rights: Right, version: int = -1) -> Decision:  # type: ignore[type-arg]  # The reply differs from request to request.
    access = access_of("ada", ListedRights(*rights))
    return decide(image, request, context_of(request, version)._replace(access=access))


def on_topic(operation: Operation, name: str) -> Right:
    return operation, TOPIC, name


def on_cluster(operation: Operation) -> Right:
    return operation, CLUSTER, CLUSTER_NAME


@pytest.mark.parametrize("key", sorted(RIGHTS_ON_CLUSTER))
def test_a_request_needs_exactly_its_right_on_the_cluster(key: int) -> None:
    needed = on_cluster(RIGHTS_ON_CLUSTER[key])
    check_right(access_of("ada", ListedRights(needed)), key)
    others = [on_cluster(one) for one in Operation if one != needed[0]]
    with pytest.raises(ClusterAuthorizationFailed):
        check_right(access_of("ada", ListedRights(*others)), key)


def test_every_decided_request_checks_rights() -> None:
    assert DECIDED - RIGHTS_ON_CLUSTER.keys() <= ON_SINGLE_RESOURCES
    assert {RIGHTS_ON_CLUSTER[key] for key in OF_NODES} == {Operation.CLUSTER_ACTION}


class TestCreatingTopics:
    REQUEST = CreateTopicsRequest([CreatableTopic("new", 1, 1), CreatableTopic("other", 1, 1)])

    def test_the_right_on_the_cluster_is_enough(self) -> None:
        reply = decided(image_with(), self.REQUEST, on_cluster(Operation.CREATE)).reply
        assert [one.error_code for one in reply.topics] == [0, 0]

    def test_topics_without_a_right_fail_alone(self) -> None:
        decision = decided(image_with(), self.REQUEST, on_topic(Operation.CREATE, "other"))
        results = {one.name: one.error_code for one in decision.reply.topics}
        assert results == {"new": DENIED, "other": 0}
        assert decision.records

    def test_configs_are_returned_only_with_the_right_to_describe_them(self) -> None:
        rights = on_cluster(Operation.CREATE), on_topic(Operation.DESCRIBE_CONFIGS, "new")
        shown, hidden = decided(image_with(), self.REQUEST, *rights).reply.topics
        assert (shown.topic_config_error_code, shown.num_partitions) == (0, 1)
        assert shown.configs
        assert (hidden.topic_config_error_code, hidden.num_partitions) == (DENIED, -1)
        assert not hidden.configs

    def test_a_name_given_twice_is_invalid_with_or_without_rights(self) -> None:
        request = CreateTopicsRequest([CreatableTopic("new", 1, 1)] * 2)
        (result,) = decided(image_with(), request).reply.topics
        assert result.error_code == InvalidRequest.code

    def test_the_topic_of_the_metadata_cannot_be_created(self) -> None:
        request = CreateTopicsRequest([CreatableTopic(METADATA_TOPIC, 1, 1)])
        (result,) = decided(image_with(), request, on_cluster(Operation.CREATE)).reply.topics
        assert result.error_code == InvalidRequest.code
        (result,) = decided(image_with(), request).reply.topics
        assert result.error_code == InvalidRequest.code


class TestDeletingTopics:
    def test_a_hidden_topic_looks_as_an_absent_one(self) -> None:
        names = [DeleteTopicState("orders"), DeleteTopicState("absent")]
        results = decided(TOPICS, DeleteTopicsRequest(names)).reply.responses
        assert [(one.name, one.error_code) for one in results] == [
            ("orders", DENIED),
            ("absent", DENIED),
        ]

    def test_a_topic_that_may_be_seen_is_not_deleted(self) -> None:
        names = [DeleteTopicState("orders"), DeleteTopicState("absent")]
        rights = on_topic(Operation.DESCRIBE, "orders"), on_topic(Operation.DESCRIBE, "absent")
        decision = decided(TOPICS, DeleteTopicsRequest(names), *rights)
        results = {one.name: one.error_code for one in decision.reply.responses}
        assert results == {"orders": DENIED, "absent": UnknownTopicOrPartition.code}
        assert not decision.records

    def test_the_name_behind_an_id_is_shown_only_with_a_right(self) -> None:
        ids = [DeleteTopicState(None, topic_id(name)) for name in ("orders", "bills")]
        unknown = DeleteTopicState(None, b"?" * 16)
        rights = (on_topic(Operation.DESCRIBE, "bills"),)
        request = DeleteTopicsRequest([*ids, unknown])
        results = decided(TOPICS, request, *rights).reply.responses
        assert [(one.name, one.error_code) for one in results] == [
            (None, DENIED),
            ("bills", DENIED),
            (None, UnknownTopicId.code),
        ]

    def test_topics_are_deleted_by_their_own_right_or_that_on_the_cluster(self) -> None:
        request = DeleteTopicsRequest([DeleteTopicState("orders")])
        own = on_topic(Operation.DESCRIBE, "orders"), on_topic(Operation.DELETE, "orders")
        for rights in (own, (on_cluster(Operation.DELETE),)):
            decision = decided(TOPICS, request, *rights)
            assert [one.error_code for one in decision.reply.responses] == [0]
            assert decision.records


def test_partitions_are_added_only_with_the_right_to_alter_the_topic() -> None:
    wanted = [CreatePartitionsTopic("orders", 2, None), CreatePartitionsTopic("bills", 2, None)]
    decision = decided(TOPICS, CreatePartitionsRequest(wanted), on_topic(Operation.ALTER, "bills"))
    results = [(one.name, one.error_code) for one in decision.reply.results]
    assert results == [("orders", DENIED), ("bills", 0)]


CONFIG_OWNERS = [
    (ConfigOwner.TOPIC, "orders", TOPIC, "orders", DENIED),
    (ConfigOwner.GROUP, "g", GROUP, "g", GroupAuthorizationFailed.code),
    (ConfigOwner.BROKER, "", CLUSTER, CLUSTER_NAME, ClusterAuthorizationFailed.code),
    (ConfigOwner.CLIENT_METRICS, "m", CLUSTER, CLUSTER_NAME, ClusterAuthorizationFailed.code),
]


@pytest.mark.parametrize(("owner", "name", "kind", "resource", "error"), CONFIG_OWNERS)
def test_configs_are_changed_only_with_the_right_on_their_owner(
    owner: ConfigOwner, name: str, kind: ResourceType, resource: str, error: int
) -> None:
    replacing = AlterConfigsRequest([AlterConfigsResource(owner, name, [])])
    changing = incremental.IncrementalAlterConfigsRequest(
        [incremental.AlterConfigsResource(owner, name, [])]
    )
    for request in (replacing, changing):
        (refused,) = decided(TOPICS, request).reply.responses
        assert (refused.error_code, refused.resource_name) == (error, name)
        right = Operation.ALTER_CONFIGS, kind, resource
        (altered,) = decided(TOPICS, request, right).reply.responses
        assert altered.error_code == 0


def test_results_of_configs_are_in_the_order_of_the_request() -> None:
    config = [AlterableConfig("retention.ms", "1000")]
    request = AlterConfigsRequest(
        [AlterConfigsResource(ConfigOwner.TOPIC, name, config) for name in ("bills", "orders")]
    )
    rights = (Operation.ALTER_CONFIGS, TOPIC, "orders")
    responses = decided(TOPICS, request, rights).reply.responses
    assert [(one.resource_name, one.error_code) for one in responses] == [
        ("bills", DENIED),
        ("orders", 0),
    ]
