"""Sessions of brokers: they begin full, are renewed by heartbeats, and end."""

import pytest

from headrace.controller.sessions import BrokerSessions
from headrace.metadata.image import MetadataImage
from headrace.protocol.message import Message
from headrace.protocol.schemas.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from headrace.protocol.schemas.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from headrace.protocol.schemas.records.metadata import BrokerRegistrationChangeRecord
from headrace.protocol.schemas.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from tests.builders.metadata_images import image_with, replayed

TIMEOUT_MS = 9000
NOW_MS = 50_000
IMAGE = image_with(brokers=[1, 2, 3])


def sessions(image: MetadataImage = IMAGE, **options: tuple[int, ...]) -> BrokerSessions:
    return BrokerSessions(image, NOW_MS, TIMEOUT_MS, **options)


def heartbeat(broker: int, offset: int = 0, *, epoch: int | None = None) -> BrokerHeartbeatRequest:
    return BrokerHeartbeatRequest(broker, 100 + broker if epoch is None else epoch, offset)


def test_a_new_controller_gives_every_unfenced_broker_a_full_session() -> None:
    view = sessions().view
    assert view.is_live(1, NOW_MS + TIMEOUT_MS)
    assert not view.is_live(1, NOW_MS + TIMEOUT_MS + 1)
    assert not view.is_live(9, NOW_MS)
    assert not sessions(image_with(fenced=[1])).view.is_live(1, NOW_MS)


def test_a_broker_whose_process_has_restarted_has_no_session() -> None:
    view = sessions(restarted=(1,)).view
    assert [view.is_live(broker, NOW_MS) for broker in (1, 2)] == [False, True]


def test_a_heartbeat_renews_the_session_and_brings_the_applied_offset() -> None:
    kept = sessions()
    kept.heard(heartbeat(1, 70), NOW_MS + 5000)
    assert kept.view.is_live(1, NOW_MS + 5000 + TIMEOUT_MS)
    session = kept.view.of(1)
    assert session is not None
    assert session.metadata_offset == 70


@pytest.mark.parametrize(
    "request_", [heartbeat(1, epoch=7), heartbeat(9), UnregisterBrokerRequest(1)]
)
def test_other_requests_and_other_incarnations_renew_nothing(request_: Message) -> None:
    kept = sessions()
    before = kept.view
    kept.heard(request_, NOW_MS + 5000)
    assert kept.view is before


def test_an_expired_session_ends_at_once_and_a_heartbeat_revives_it() -> None:
    kept = sessions()
    kept.expire(1)
    kept.expire(9)
    assert not kept.view.is_live(1, NOW_MS)
    assert kept.view.stalest(IMAGE) == 1
    kept.heard(heartbeat(1), NOW_MS)
    assert kept.view.is_live(1, NOW_MS)


def test_a_registration_begins_a_session_of_the_new_incarnation() -> None:
    kept = sessions(restarted=(1,))
    answer = BrokerRegistrationResponse(broker_epoch=80)
    kept.decided(BrokerRegistrationRequest(1), answer, 85, NOW_MS + 10)
    session = kept.view.of(1)
    assert session is not None
    assert (session.broker_epoch, session.registered_at) == (80, 84)
    assert session.heard_at_ms == NOW_MS + 10
    kept.heard(heartbeat(1, 84, epoch=80), NOW_MS + 20)
    kept.decided(BrokerRegistrationRequest(1), answer, 90, NOW_MS + 30)
    session = kept.view.of(1)
    assert session is not None
    assert (session.metadata_offset, session.registered_at) == (84, 89)


def test_the_first_step_of_a_shutdown_decides_its_offset() -> None:
    kept = sessions()
    leaving = BrokerHeartbeatRequest(1, 101, want_shut_down=True)
    going_on = BrokerHeartbeatResponse(is_fenced=False)
    for end_offset in (60, 70):
        kept.decided(leaving, going_on, end_offset, NOW_MS)
    session = kept.view.of(1)
    assert session is not None
    assert session.shutdown_offset == 59
    kept.decided(heartbeat(1), going_on, 80, NOW_MS)
    session = kept.view.of(1)
    assert session is not None
    assert session.shutdown_offset is None


def test_a_granted_shutdown_ends_the_session() -> None:
    kept = sessions()
    leaving = BrokerHeartbeatRequest(1, 101, want_shut_down=True)
    kept.decided(leaving, BrokerHeartbeatResponse(should_shut_down=True), 60, NOW_MS)
    assert not kept.view.is_live(1, NOW_MS)


def test_an_unregistered_broker_has_no_session() -> None:
    kept = sessions()
    kept.decided(UnregisterBrokerRequest(1), UnregisterBrokerResponse(), 60, NOW_MS)
    assert kept.view.of(1) is None


def test_the_lowest_offset_is_that_of_active_brokers_only() -> None:
    kept = sessions()
    assert kept.view.lowest_active_offset(IMAGE) == -1
    for broker, offset in ((1, 70), (2, 60), (3, 50)):
        kept.heard(heartbeat(broker, offset), NOW_MS)
    assert kept.view.lowest_active_offset(IMAGE) == 50
    image = replayed(
        IMAGE,
        [
            BrokerRegistrationChangeRecord(3, 103, fenced=1),
            BrokerRegistrationChangeRecord(2, 102, in_controlled_shutdown=1),
        ],
    )
    assert kept.view.lowest_active_offset(image) == 70
    assert kept.view.lowest_active_offset(image_with(fenced=[1])) is None


def test_the_next_expiry_is_that_of_the_broker_with_the_oldest_heartbeat() -> None:
    kept = sessions()
    for broker, later_ms in ((1, 300), (2, 100), (3, 200)):
        kept.heard(heartbeat(broker), NOW_MS + later_ms)
    assert kept.view.stalest(IMAGE) == 2
    assert kept.view.next_expiry_ms(IMAGE) == NOW_MS + 100 + TIMEOUT_MS
    fenced = replayed(IMAGE, [BrokerRegistrationChangeRecord(2, 102, fenced=1)])
    assert kept.view.stalest(fenced) == 3
    assert kept.view.next_expiry_ms(image_with(fenced=[1])) is None


def test_a_view_does_not_change() -> None:
    kept = sessions()
    view = kept.view
    kept.expire(1)
    assert view.is_live(1, NOW_MS)
