"""The table of controller requests: what a node asks for itself, and what every request shares."""

import pytest

from headrace.broker.registration import (
    broker_registration,
    controller_registration,
    directory_assignment,
)
from headrace.controller.decision import ClusterDefaults, Decision
from headrace.controller.requests import Context, decide, error_in
from headrace.controller.sessions import BrokerSessions
from headrace.errors import (
    DuplicateBrokerRegistration,
    InconsistentClusterId,
    InvalidRequest,
    StaleBrokerEpoch,
    TopicAlreadyExists,
    TopicDeletionDisabled,
    UnknownServerError,
)
from headrace.metadata.image import EMPTY, Endpoint, MetadataImage
from headrace.protocol.message import Message
from headrace.protocol.schemas.allocate_producer_ids import AllocateProducerIdsRequest
from headrace.protocol.schemas.broker_heartbeat import BrokerHeartbeatRequest
from headrace.protocol.schemas.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from headrace.protocol.schemas.delete_topics import DeleteTopicsRequest
from headrace.protocol.schemas.describe_cluster import DescribeClusterRequest
from headrace.protocol.schemas.records.metadata import (
    BrokerRegistrationChangeRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)
from headrace.settings.broker import BrokerSettings
from tests.builders.metadata_images import applied, directory_id, image_with, replayed

NODE, EPOCH = 1, 101
ENDPOINTS = [Endpoint("PLAINTEXT", "localhost", 9092)]


def decided(
    image: MetadataImage, request: Message, version: int = -1, **settings: object
) -> Decision:  # type: ignore[type-arg]  # The reply differs from request to request.
    return decide(image, request, context_of(request, version, **settings))


def context_of(request: Message, version: int = -1, **settings: object) -> Context:
    of_node = BrokerSettings(**settings)  # type: ignore[arg-type]
    return Context(
        node_id=NODE,
        settings=of_node,
        defaults=ClusterDefaults.of(of_node),
        version=request.VERSIONS[version],
        next_offset=77,
        kraft_version=1,
    )


def messages(decision: Decision) -> list[Message]:  # type: ignore[type-arg]
    return [record.message for record in decision.records]


def kinds(decision: Decision) -> list[type[Message]]:  # type: ignore[type-arg]
    return [type(one) for one in messages(decision)]


def test_a_request_that_no_controller_serves_is_rejected() -> None:
    with pytest.raises(InvalidRequest, match="DESCRIBE_CLUSTER"):
        decided(EMPTY, DescribeClusterRequest())


def test_a_broker_registers_with_the_next_offset_as_its_epoch() -> None:
    request = broker_registration(NODE, "c" * 22, ENDPOINTS, log_dirs=[directory_id(NODE)])
    decision = decided(image_with(brokers=()), request)
    assert kinds(decision) == [RegisterBrokerRecord]
    assert decision.reply.broker_epoch == 77


def test_a_controller_registers() -> None:
    decision = decided(image_with(), controller_registration(NODE, ENDPOINTS))
    assert kinds(decision) == [RegisterControllerRecord]


def test_a_heartbeat_unfences_a_broker_that_is_ready() -> None:
    decision = decided(image_with(fenced=(NODE,)), BrokerHeartbeatRequest(NODE, EPOCH))
    assert BrokerRegistrationChangeRecord in kinds(decision)
    assert not decision.reply.is_fenced


def test_a_heartbeat_of_a_broker_that_is_not_ready_changes_nothing() -> None:
    request = BrokerHeartbeatRequest(NODE, EPOCH, want_fence=True)
    decision = decided(image_with(fenced=(NODE,)), request)
    assert (messages(decision), decision.reply.is_fenced) == ([], True)


def test_a_heartbeat_reports_failed_directories() -> None:
    both = [directory_id(NODE), directory_id(9)]
    two_disks = BrokerRegistrationChangeRecord(NODE, EPOCH, log_dirs=both)
    image = replayed(image_with(topics={"orders": 1}), [two_disks])
    request = BrokerHeartbeatRequest(NODE, EPOCH, offline_log_dirs=[directory_id(NODE)])
    (changed,) = messages(decided(image, request))[-1:]
    assert isinstance(changed, BrokerRegistrationChangeRecord)
    assert changed.log_dirs == [directory_id(9)]


def test_repeated_heartbeats_of_a_broker_without_a_disk_write_nothing() -> None:
    """The metadata cannot express an empty list of directories, and the broker stops."""
    request = BrokerHeartbeatRequest(NODE, EPOCH, offline_log_dirs=[directory_id(NODE)])
    image = image_with(topics={"orders": 1})
    image = replayed(image, messages(decided(image, request)))
    assert messages(decided(image, request)) == []


def test_a_heartbeat_shuts_a_broker_down() -> None:
    request = BrokerHeartbeatRequest(NODE, EPOCH, want_shut_down=True)
    decision = decided(image_with(), request)
    assert kinds(decision) == [BrokerRegistrationChangeRecord]
    assert decision.reply.should_shut_down


def test_a_broker_of_another_cluster_cannot_register() -> None:
    request = broker_registration(NODE, "c" * 22, ENDPOINTS, log_dirs=[directory_id(NODE)])
    with pytest.raises(InconsistentClusterId, match="dddd"):
        decide(image_with(brokers=()), request, context_of(request)._replace(cluster_id="d" * 22))
    decide(image_with(brokers=()), request, context_of(request)._replace(cluster_id="c" * 22))


def test_only_the_end_of_its_session_lets_a_broker_register_again() -> None:
    request = broker_registration(NODE, "c" * 22, ENDPOINTS, log_dirs=[directory_id(NODE)])
    sessions = BrokerSessions(image_with(), 0, 9000)
    context = context_of(request)._replace(sessions=sessions.view, now_ms=9000)
    with pytest.raises(DuplicateBrokerRegistration):
        decide(image_with(), request, context)
    decide(image_with(), request, context._replace(now_ms=9001))
    sessions.expire(NODE)
    decide(image_with(), request, context._replace(sessions=sessions.view))


def test_a_silent_broker_is_replaced_from_its_directories_and_addresses() -> None:
    """The earlier process has ended: it held the locks of both."""
    (present,) = image_with().brokers.values()
    own = list(present.directories)
    context = Context(
        node_id=NODE,
        settings=BrokerSettings(broker_heartbeat_interval_ms=2000),
        defaults=ClusterDefaults.of(BrokerSettings()),
        version=4,
        next_offset=77,
        kraft_version=1,
        sessions=BrokerSessions(image_with(), 0, 9000).view,
        now_ms=3001,
    )
    same = broker_registration(NODE, "c" * 22, present.endpoints, log_dirs=own)
    decide(image_with(), same, context)
    with pytest.raises(DuplicateBrokerRegistration):
        decide(image_with(), same, context._replace(now_ms=3000))
    elsewhere = [Endpoint("PLAINTEXT", "elsewhere", 9092)]
    with pytest.raises(DuplicateBrokerRegistration):
        decide(image_with(), broker_registration(NODE, "c" * 22, elsewhere, log_dirs=own), context)
    others = [directory_id(7)]
    with pytest.raises(DuplicateBrokerRegistration):
        decide(
            image_with(),
            broker_registration(NODE, "c" * 22, present.endpoints, log_dirs=others),
            context,
        )


@pytest.mark.parametrize(
    "request_of",
    [
        lambda epoch: BrokerHeartbeatRequest(NODE, epoch),
        lambda epoch: AllocateProducerIdsRequest(NODE, epoch),
        lambda epoch: directory_assignment(NODE, epoch, {}),
    ],
)
def test_a_request_of_an_earlier_incarnation_is_rejected(request_of: object) -> None:
    assert callable(request_of)
    with pytest.raises(StaleBrokerEpoch):
        decided(image_with(), request_of(EPOCH - 1))


def test_producer_ids_are_allocated_in_blocks() -> None:
    decision = decided(image_with(), AllocateProducerIdsRequest(NODE, EPOCH))
    assert messages(decision) == [ProducerIdsRecord(NODE, EPOCH, 1000)]
    assert (decision.reply.producer_id_start, decision.reply.producer_id_len) == (0, 1000)


def test_topics_get_their_defaults_from_the_settings_of_the_controller() -> None:
    request = CreateTopicsRequest([CreatableTopic("orders", -1, -1)])
    decision = decided(image_with(), request, num_partitions=3)
    assert decision.reply.topics[0].num_partitions == 3


def test_the_configs_of_a_new_topic_are_returned_from_v5_on() -> None:
    wanted = CreatableTopic("orders", 1, 1, configs=[CreatableTopicConfig("retention.ms", "5")])
    request = CreateTopicsRequest([wanted])
    assert decided(image_with(), request, version=0).reply.topics[0].configs == []
    configs = {
        one.name: one.value for one in decided(image_with(), request).reply.topics[0].configs
    }
    assert configs["retention.ms"] == "5"


def test_the_error_of_one_item_keeps_its_class_and_text() -> None:
    request = CreateTopicsRequest([CreatableTopic("orders", 1, 1)])
    (result,) = decided(image_with(topics={"orders": 1}), request).reply.topics
    error = error_in(result)
    assert isinstance(error, TopicAlreadyExists)
    assert str(error) == result.error_message


@pytest.mark.parametrize(("version", "error"), [(0, InvalidRequest), (-1, TopicDeletionDisabled)])
def test_topics_are_not_deleted_where_deletion_is_disabled(
    version: int, error: type[Exception]
) -> None:
    request = DeleteTopicsRequest(topic_names=["orders"])
    with pytest.raises(error):
        decided(image_with(), request, version=version, delete_topic_enable=False)


def test_blocks_of_producer_ids_follow_each_other() -> None:
    image = image_with()
    first = decided(image, AllocateProducerIdsRequest(NODE, EPOCH))
    image = applied(image, first)
    second = decided(image, AllocateProducerIdsRequest(NODE, EPOCH))
    blocks = [(one.reply.producer_id_start, one.reply.producer_id_len) for one in (first, second)]
    assert blocks == [(0, 1000), (1000, 1000)]
    assert applied(image, second).next_producer_id == 2000


def test_producer_ids_do_not_start_over() -> None:
    image = replayed(image_with(), [ProducerIdsRecord(NODE, 1, 2**63 - 5)])
    with pytest.raises(UnknownServerError):
        decided(image, AllocateProducerIdsRequest(NODE, EPOCH))
