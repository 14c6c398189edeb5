"""ShareFetch and ShareAcknowledge request by request: delivered and rejected records."""

import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import TopicPartition
from kio.schema.errors import ErrorCode

import headrace
from headrace.client.descriptions import ConfigChange
from tests.clients.librdkafka import admin, create_topic, numbered, produce, unique_name
from tests.clients.share_members import ACCEPT, REJECT, RELEASE, RENEW, SETTINGS, Given, ShareMember
from tests.integration.conftest import StartNode
from tests.processes.nodes import Flavour, Node, eventually

INVALID_REQUEST = int(ErrorCode.invalid_request)
INVALID_RECORD_STATE = int(ErrorCode.invalid_record_state)
INVALID_EPOCH = int(ErrorCode.invalid_share_session_epoch)
SESSION_NOT_FOUND = int(ErrorCode.share_session_not_found)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, flavour: Flavour) -> Iterator[Node]:
    own = Node(flavour, tmp_path_factory.mktemp("share"), SETTINGS)
    own.start()
    yield own
    if own.is_running:
        own.stop()


def group_with(node: Node, **configs: object) -> str:
    """A share group that begins at the first record, with more configs in dots' clothing."""
    name = unique_name("share")
    given = {"share.auto.offset.reset": "earliest"}
    given |= {key.replace("_", "."): str(value) for key, value in configs.items()}
    changes = [ConfigChange(name=key, operation="set", value=value) for key, value in given.items()]
    with headrace.Admin(node.address) as client:
        assert client.configs.alter("group", name, changes).error is None
    return name


@pytest.fixture
def topic(node: Node) -> str:
    return create_topic(node)


@pytest.fixture
def ada(node: Node, topic: str) -> Iterator[ShareMember]:
    """A member that has joined, of a topic with ten records in one batch."""
    produce(node, topic, numbered(10), linger_ms=100)
    with ShareMember(node, group_with(node), topic) as member:
        yield member.join()


def other(member: ShareMember, node: Node) -> ShareMember:
    return ShareMember(node, member.group, member.topic).join()


# --- what members get -----------------------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 2])
def test_records_come_with_their_delivery_count(ada: ShareMember, version: int) -> None:
    """PUL-3"""
    assert ada.take(version=version) == [Given(0, 9, 1)]


def test_records_acquired_by_a_member_go_to_no_other(ada: ShareMember, node: Node) -> None:
    """RMQ-1, PUL-3"""
    ada.take()
    with other(ada, node) as bob:
        assert bob.fetch(max_wait_ms=300).given == []


def test_accepted_records_are_gone_for_the_whole_group(ada: ShareMember, node: Node) -> None:
    """PUL-4"""
    ada.take()
    assert ada.acknowledge((0, 9, [ACCEPT])) == (0, 0)
    with other(ada, node) as bob:
        assert bob.fetch(max_wait_ms=300).given == []


def test_released_records_go_to_another_with_a_higher_count(ada: ShareMember, node: Node) -> None:
    """RMQ-1, PUL-5"""
    ada.take()
    assert ada.acknowledge((0, 9, [RELEASE])) == (0, 0)
    with other(ada, node) as bob:
        assert bob.take() == [Given(0, 9, 2)]


def test_each_record_has_its_own_fate(ada: ShareMember, node: Node) -> None:
    """PUL-4"""
    ada.take()
    types = [ACCEPT, RELEASE, REJECT, ACCEPT, ACCEPT, RELEASE, RELEASE, REJECT, ACCEPT, ACCEPT]
    assert ada.acknowledge((0, 9, types)) == (0, 0)
    with other(ada, node) as bob:
        assert bob.take() == [Given(1, 1, 2), Given(5, 6, 2)]


def test_acknowledgements_travel_with_a_fetch(ada: ShareMember, node: Node) -> None:
    ada.take()
    answer = ada.fetch((0, 4, [ACCEPT]), (5, 9, [RELEASE]), max_wait_ms=1000)
    assert answer.acknowledge_error_code == 0
    given = answer.given or ada.take()
    assert given == [Given(5, 9, 2)]


def test_records_come_back_when_a_lock_runs_out(node: Node, topic: str) -> None:
    """PUL-5"""
    produce(node, topic, numbered(3), linger_ms=100)
    group = group_with(node, share_record_lock_duration_ms=1000)
    with ShareMember(node, group, topic).join() as ada, ShareMember(node, group, topic) as bob:
        ada.take()
        assert bob.join().take() == [Given(0, 2, 2)]
        assert ada.acknowledge((0, 2, [ACCEPT])) == (0, INVALID_RECORD_STATE)


def test_a_lock_can_be_renewed(node: Node, topic: str) -> None:
    """PUL-5: a member that renews its lock keeps the record."""
    produce(node, topic, numbered(1))
    group = group_with(node, share_record_lock_duration_ms=1000)
    with ShareMember(node, group, topic).join() as ada, ShareMember(node, group, topic) as bob:
        ada.take()
        bob.join()
        for _ in range(4):
            assert bob.fetch(max_wait_ms=500).given == []
            assert ada.acknowledge((0, 0, [RENEW]), is_renewal=True) == (0, 0)
        assert ada.acknowledge((0, 0, [ACCEPT])) == (0, 0)


def test_renewals_can_be_forbidden(node: Node, topic: str) -> None:
    produce(node, topic, numbered(1))
    group = group_with(node, share_renew_acknowledge_enable="false")
    with ShareMember(node, group, topic).join() as ada:
        ada.take()
        assert ada.acknowledge((0, 0, [RENEW]), is_renewal=True) == (0, INVALID_RECORD_STATE)


def test_a_member_that_goes_gives_its_records_back(ada: ShareMember, node: Node) -> None:
    """RMQ-1: at once, without waiting for a lock."""
    ada.take()
    ada.connection.socket.close()
    with other(ada, node) as bob:
        assert bob.take() == [Given(0, 9, 2)]


def test_the_last_request_of_a_session_gives_records_back(ada: ShareMember, node: Node) -> None:
    ada.take()
    assert ada.acknowledge((0, 3, [ACCEPT]), epoch=-1) == (0, 0)
    with other(ada, node) as bob:
        assert bob.take() == [Given(4, 9, 2)]


def test_a_record_is_given_up_after_so_many_deliveries(node: Node, topic: str) -> None:
    """PUL-6: without a dead letter topic it is archived."""
    produce(node, topic, numbered(1))
    with ShareMember(node, group_with(node, share_delivery_count_limit=3), topic) as ada:
        ada.join()
        counts = []
        for _ in range(3):
            ((_, _, count),) = ada.take()
            counts.append(count)
            assert ada.acknowledge((0, 0, [RELEASE])) == (0, 0)
        assert counts == [1, 2, 3]
        assert ada.fetch(max_wait_ms=300).given == []


def test_a_record_that_failed_often_comes_alone(node: Node, topic: str) -> None:
    """A record that makes its whole batch fail must not use up the deliveries of the others."""
    produce(node, topic, numbered(8), linger_ms=100)
    with ShareMember(node, group_with(node, share_delivery_count_limit=4), topic) as ada:
        ada.join()
        seen = []
        for _ in range(4):
            given = ada.take()
            seen.append(given[0])
            for first, last, _count in given:
                assert ada.acknowledge((first, last, [RELEASE])) == (0, 0)
        assert seen == [Given(0, 7, 1), Given(0, 7, 2), Given(0, 3, 3), Given(0, 0, 4)]


def test_a_strict_limit_cuts_a_batch(ada: ShareMember) -> None:
    assert ada.take(max_records=4, share_acquire_mode=1) == [Given(0, 3, 1)]
    assert ada.take(max_records=4, share_acquire_mode=1) == [Given(4, 7, 1)]


def test_the_default_limit_returns_whole_batches(ada: ShareMember) -> None:
    assert ada.take(max_records=4) == [Given(0, 9, 1)]


def test_batches_are_acquired_apart_by_the_batch_size(node: Node, topic: str) -> None:
    for _ in range(4):
        produce(node, topic, numbered(3), linger_ms=100)
    with ShareMember(node, group_with(node), topic).join() as ada:
        assert ada.take(batch_size=5) == [Given(0, 5, 1), Given(6, 11, 1)]


def test_only_so_many_records_are_under_way(node: Node, topic: str) -> None:
    for _ in range(4):
        produce(node, topic, numbered(50), linger_ms=100)
    with ShareMember(node, group_with(node, share_partition_max_record_locks=100), topic) as ada:
        taken = ada.join().take()
        taken += ada.fetch(max_wait_ms=300).given
        assert taken[-1].last == 99
        assert ada.fetch((0, 49, [ACCEPT]), max_wait_ms=1000).given == [Given(100, 149, 1)]


def test_deleted_records_are_passed_over(ada: ShareMember, node: Node) -> None:
    ada.take()
    client = admin(node)
    request = [TopicPartition(ada.topic, 0, 6)]
    client.delete_records(request)[request[0]].result(30)
    assert ada.acknowledge((0, 9, [RELEASE])) == (0, 0)
    assert ada.take() == [Given(6, 9, 2)]


def test_a_group_begins_at_the_end_by_default(node: Node, topic: str) -> None:
    produce(node, topic, numbered(5))
    with ShareMember(node, unique_name("share"), topic).join() as ada:
        assert ada.fetch(max_wait_ms=300).given == []
        produce(node, topic, numbered(1))
        assert ada.take() == [Given(5, 5, 1)]


def test_a_group_can_begin_some_time_ago(node: Node, topic: str) -> None:
    produce(node, topic, numbered(5))
    group = group_with(node, share_auto_offset_reset="by_duration:PT1H")
    with ShareMember(node, group, topic).join() as ada:
        assert ada.take()[0].first == 0


# --- rejected requests ----------------------------------------------------------------------------


def test_a_session_begins_with_epoch_0(ada: ShareMember) -> None:
    assert ada.fetch(epoch=1).error_code == SESSION_NOT_FOUND
    assert ada.fetch(epoch=-1).error_code == SESSION_NOT_FOUND
    assert ada.acknowledge((0, 0, [ACCEPT]), epoch=1) == (SESSION_NOT_FOUND, 0)
    assert ada.acknowledge((0, 0, [ACCEPT]), epoch=0) == (INVALID_EPOCH, 0)


def test_epochs_count_up_by_one(ada: ShareMember) -> None:
    ada.take()
    wrong = ada.epoch + 1
    assert ada.fetch(epoch=wrong).error_code == INVALID_EPOCH
    assert ada.acknowledge((0, 0, [ACCEPT]), epoch=wrong) == (INVALID_EPOCH, 0)


def test_a_first_fetch_with_acknowledgements_is_refused(ada: ShareMember) -> None:
    assert ada.fetch((0, 9, [ACCEPT]), epoch=0).error_code == INVALID_REQUEST


@pytest.mark.parametrize("member_id", ["", "x" * 37])
def test_members_have_a_proper_name(ada: ShareMember, member_id: str) -> None:
    ada.member_id = member_id
    assert ada.fetch().error_code == INVALID_REQUEST
    assert ada.acknowledge((0, 9, [ACCEPT]), epoch=1)[0] == INVALID_REQUEST


def test_a_group_is_named(ada: ShareMember) -> None:
    assert ada.fetch(group_id=None).error_code == INVALID_REQUEST


@pytest.mark.usefixtures("only_headrace")
def test_an_unknown_topic_has_its_own_error_code(ada: ShareMember) -> None:
    """Kafka 4.3 fails with an internal error here."""
    answer = ada.fetch(topic_id=uuid.uuid4())
    assert answer.partition_error_code == ErrorCode.unknown_topic_id


def test_an_unknown_partition_has_its_own_error_code(ada: ShareMember) -> None:
    ada.partition = 7
    assert ada.fetch().partition_error_code == ErrorCode.unknown_topic_or_partition


def test_only_acquired_records_can_be_acknowledged(ada: ShareMember, node: Node) -> None:
    ada.take()
    with other(ada, node) as bob:
        bob.fetch()
        assert bob.acknowledge((0, 9, [ACCEPT])) == (0, INVALID_RECORD_STATE)
    assert ada.acknowledge((0, 4, [ACCEPT])) == (0, 0)
    assert ada.acknowledge((5, 5, [ACCEPT])) == (0, 0)
    assert ada.acknowledge((7, 7, [RELEASE])) == (0, 0)
    assert ada.acknowledge((6, 8, [ACCEPT])) == (0, INVALID_RECORD_STATE)
    assert ada.acknowledge((6, 6, [ACCEPT]), (8, 9, [ACCEPT])) == (0, 0)


@pytest.mark.parametrize(
    "batch",
    [
        (5, 4, [ACCEPT]),
        (0, 4, []),
        (0, 4, [ACCEPT, ACCEPT]),
        (0, 4, [5]),
        (0, 4, [-1]),
        (0, 4, [RENEW]),
        (0, 10, [ACCEPT]),
        (11, 12, [ACCEPT]),
    ],
)
def test_nonsense_is_an_invalid_request(
    ada: ShareMember, batch: tuple[int, int, list[int]]
) -> None:
    ada.take()
    assert ada.acknowledge(batch) == (0, INVALID_REQUEST)
    assert ada.fetch(batch).acknowledge_error_code == INVALID_REQUEST


def test_acknowledgements_come_in_order(ada: ShareMember) -> None:
    ada.take()
    assert ada.acknowledge((5, 9, [ACCEPT]), (0, 4, [ACCEPT])) == (0, INVALID_REQUEST)
    assert ada.acknowledge((0, 5, [ACCEPT]), (5, 9, [ACCEPT])) == (0, INVALID_RECORD_STATE)


def test_a_renewal_takes_no_records(ada: ShareMember) -> None:
    ada.take()
    assert ada.fetch((0, 9, [RENEW]), is_renew_ack=True).error_code == INVALID_REQUEST
    quiet = {"max_bytes": 0, "min_bytes": 0, "max_records": 0, "max_wait_ms": 0}
    answer = ada.fetch((0, 9, [RENEW]), is_renew_ack=True, **quiet)
    assert (answer.error_code, answer.acknowledge_error_code) == (0, 0)


def test_acknowledging_settled_records_is_not_an_error(ada: ShareMember, node: Node) -> None:
    """Before the start everything is done with."""
    ada.take()
    assert ada.acknowledge((0, 4, [ACCEPT])) == (0, 0)
    eventually(lambda: ada.acknowledge((0, 4, [ACCEPT])) in {(0, 0), (0, INVALID_RECORD_STATE)})


def test_a_broker_serves_so_many_sessions(start_node: StartNode) -> None:
    """A session over the limit is rejected, and accepted when another ends."""
    one = {"group.share.max.share.sessions": "1", "group.share.max.size": "1"}
    settings = SETTINGS | one
    node = start_node(**{name.replace(".", "_"): value for name, value in settings.items()})
    topic = create_topic(node)
    produce(node, topic, numbered(2), linger_ms=100)
    groups = group_with(node), group_with(node)
    with ShareMember(node, groups[0], topic) as ada, ShareMember(node, groups[1], topic) as bob:
        ada.join().take()
        assert bob.join().fetch().error_code == ErrorCode.share_session_limit_reached
        assert ada.acknowledge((0, 1, [RELEASE]), epoch=-1) == (0, 0)
        assert bob.take() == [Given(0, 1, 1)]
