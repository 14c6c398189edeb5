"""The states of a broker and the heartbeats that move it from one to the next."""

import pytest

from headrace.controller.decision import ClusterDefaults, Decision
from headrace.controller.heartbeats import BrokerState, Progress, heartbeat, next_state
from headrace.controller.sessions import BrokerSessions
from headrace.errors import BrokerIdNotRegistered, StaleBrokerEpoch
from headrace.metadata.image import NO_LEADER, MetadataImage, PartitionImage
from headrace.protocol.schemas.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from headrace.protocol.schemas.records.metadata import BrokerRegistrationChangeRecord
from tests.builders.metadata_images import (
    KAFKA_LEVELS,
    applied,
    directory_id,
    image_with,
    replayed,
    with_partition,
)

FENCED, UNFENCED = BrokerState.FENCED, BrokerState.UNFENCED
LEAVING, SHUTDOWN_NOW = BrokerState.CONTROLLED_SHUTDOWN, BrokerState.SHUTDOWN_NOW

IDLE = BrokerHeartbeatRequest(1)
STARTING = BrokerHeartbeatRequest(1, want_fence=True)
STOPPING = BrokerHeartbeatRequest(1, want_shut_down=True)
STOPPING_FENCED = BrokerHeartbeatRequest(1, want_fence=True, want_shut_down=True)


@pytest.mark.parametrize(
    ("state", "request_", "facts", "following"),
    [
        (FENCED, STARTING, "caught up", FENCED),
        (FENCED, IDLE, "", FENCED),
        (FENCED, IDLE, "caught up", UNFENCED),
        (FENCED, STOPPING, "", SHUTDOWN_NOW),
        (FENCED, STOPPING_FENCED, "caught up", SHUTDOWN_NOW),
        (UNFENCED, IDLE, "", UNFENCED),
        (UNFENCED, STARTING, "caught up", FENCED),
        (UNFENCED, STOPPING_FENCED, "leads", SHUTDOWN_NOW),
        (UNFENCED, STOPPING, "leads", LEAVING),
        (UNFENCED, STOPPING, "", SHUTDOWN_NOW),
        (LEAVING, STOPPING, "leads known", LEAVING),
        (LEAVING, STOPPING, "", LEAVING),
        (LEAVING, STOPPING, "known", SHUTDOWN_NOW),
        (LEAVING, IDLE, "", LEAVING),
    ],
)
def test_a_heartbeat_moves_a_broker_to_its_next_state(
    state: BrokerState, request_: BrokerHeartbeatRequest, facts: str, following: BrokerState
) -> None:
    progress = Progress("caught up" in facts, lambda: "leads" in facts, lambda: "known" in facts)
    assert next_state(state, request_, progress) is following


class Cluster:
    """Brokers, and the sessions that their heartbeats renew."""

    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        self.sessions = BrokerSessions(image, 0, 9000)

    def beat(self, broker: int, offset: int = 10_000, **wants: object) -> BrokerHeartbeatResponse:
        request = BrokerHeartbeatRequest(broker, 100 + broker, offset, **wants)  # type: ignore[arg-type]
        self.sessions.heard(request, 0)
        decision = heartbeat(self.image, request, ClusterDefaults(), self.sessions.view)
        self.image = applied(self.image, decision)
        self.sessions.decided(request, decision.reply, self.image.offset + 1, 0)
        return decision.reply

    @property
    def orders(self) -> PartitionImage:
        return self.image.topics["orders"].partitions[0]


def three(**options: object) -> Cluster:
    return Cluster(
        image_with(topics={"orders": 1}, brokers=[1, 2, 3], replicas=[1, 2], **options)  # type: ignore[arg-type]
    )


def state(answer: BrokerHeartbeatResponse) -> tuple[bool, bool, bool]:
    return answer.is_caught_up, answer.is_fenced, answer.should_shut_down


def test_a_broker_is_unfenced_when_it_has_applied_its_registration() -> None:
    cluster = three(fenced=[1])
    registered_at = cluster.image.offset
    assert state(cluster.beat(1, registered_at - 1)) == (False, True, False)
    assert state(cluster.beat(1, registered_at, want_fence=True)) == (True, True, False)
    assert state(cluster.beat(1, registered_at)) == (True, False, False)
    assert cluster.image.is_active(1)


def test_a_controlled_shutdown_waits_until_all_active_brokers_have_the_new_leaders() -> None:
    cluster = three()
    cluster.beat(2, 5)
    cluster.beat(3, 5)
    assert state(cluster.beat(1, want_shut_down=True)) == (True, False, False)
    assert (cluster.orders.leader, cluster.orders.isr) == (2, (2,))
    assert cluster.image.brokers[1].in_controlled_shutdown
    shutdown_offset = cluster.image.offset
    cluster.beat(2, shutdown_offset)
    cluster.beat(3, shutdown_offset - 1)
    assert state(cluster.beat(1, want_shut_down=True)) == (True, False, False)
    cluster.beat(3, shutdown_offset)
    assert state(cluster.beat(1, want_shut_down=True)) == (True, True, True)
    assert cluster.image.brokers[1].fenced
    assert state(cluster.beat(1, want_shut_down=True)) == (True, True, True)


def test_a_new_controller_goes_on_with_a_controlled_shutdown() -> None:
    cluster = three()
    cluster.beat(1, want_shut_down=True)
    cluster.sessions = BrokerSessions(cluster.image, 0, 9000)
    assert not cluster.beat(1, want_shut_down=True).should_shut_down
    for broker in (2, 3):
        cluster.beat(broker, cluster.image.offset)
    assert cluster.beat(1, want_shut_down=True).should_shut_down


def test_before_metadata_version_8_the_session_keeps_the_shutdown() -> None:
    cluster = three(levels={"metadata.version": 7})
    cluster.beat(1, want_shut_down=True)
    assert cluster.orders.leader == 2
    assert not cluster.beat(1, want_shut_down=True).should_shut_down
    for broker in (2, 3):
        cluster.beat(broker)
    assert cluster.beat(1, want_shut_down=True).should_shut_down


def test_a_broker_that_leads_nothing_stops_at_once() -> None:
    cluster = three()
    assert cluster.beat(3, want_shut_down=True).should_shut_down


def test_a_broker_does_not_wait_for_partitions_that_only_it_has() -> None:
    cluster = Cluster(image_with(topics={"orders": 1}, brokers=[1, 2], replicas=[1]))
    assert cluster.beat(1, want_shut_down=True).should_shut_down
    assert (cluster.orders.leader, cluster.orders.leader_epoch) == (1, 0)


def test_a_broker_that_has_begun_to_stop_must_register_again() -> None:
    cluster = three()
    cluster.beat(1, want_shut_down=True)
    cluster.image = replayed(cluster.image, [BrokerRegistrationChangeRecord(1, 101, fenced=1)])
    assert cluster.beat(1).is_fenced


def test_the_last_active_broker_stops_at_once() -> None:
    cluster = three(fenced=[2, 3])
    cluster.image = with_partition(cluster.image, "orders", 0, isr=[1])
    assert cluster.beat(1, want_shut_down=True).should_shut_down
    assert (cluster.orders.leader, cluster.orders.isr) == (NO_LEADER, (1,))


def test_a_broker_may_ask_to_be_fenced() -> None:
    cluster = three()
    assert cluster.beat(1, want_fence=True).is_fenced
    assert cluster.orders.leader == 2


def test_without_sessions_a_broker_is_always_caught_up() -> None:
    """A node alone starts without a wait."""
    image = image_with(fenced=[1])
    decision = heartbeat(image, BrokerHeartbeatRequest(1, 101), ClusterDefaults(), None)
    assert state(decision.reply) == (True, False, False)


def test_one_heartbeat_may_unfence_a_broker_and_take_a_directory_offline() -> None:
    image = image_with(topics={"orders": 1}, fenced=[1])
    image = with_partition(image, "orders", 0, leader=NO_LEADER)
    cluster = Cluster(image)
    cluster.beat(1, offline_log_dirs=[directory_id(1)])
    assert cluster.image.is_active(1)
    assert (cluster.orders.leader, cluster.orders.leader_epoch) == (NO_LEADER, 2)


def test_a_failed_directory_moves_its_partitions_to_other_brokers() -> None:
    cluster = three()
    cluster.beat(1, offline_log_dirs=[directory_id(1)])
    assert (cluster.orders.leader, cluster.orders.isr) == (2, (2,))


def test_an_active_broker_always_has_a_list_of_cordoned_directories() -> None:
    cluster = three(fenced=[1], levels=KAFKA_LEVELS)
    seen = []
    for cordoned in (None, [directory_id(1)], None):
        cluster.beat(1, cordoned_log_dirs=cordoned)
        seen.append(cluster.image.brokers[1].cordoned_directories)
    assert seen == [(), (directory_id(1),), (directory_id(1),)]


def test_an_ordinary_heartbeat_writes_nothing() -> None:
    cluster = three()
    request = BrokerHeartbeatRequest(1, 101)
    decision: Decision[BrokerHeartbeatResponse] = heartbeat(
        cluster.image, request, ClusterDefaults(), cluster.sessions.view
    )
    assert list(decision.records) == []


def test_heartbeats_of_unknown_brokers_and_old_incarnations_are_rejected() -> None:
    for request, error in (
        (BrokerHeartbeatRequest(1, 7), StaleBrokerEpoch),
        (BrokerHeartbeatRequest(9, 7), BrokerIdNotRegistered),
    ):
        with pytest.raises(error):
            heartbeat(three().image, request, ClusterDefaults(), None)
