"""The life of a registered broker, as its heartbeats drive it: fenced, unfenced, shut down.

A broker registers fenced, and is unfenced when it has applied its own registration and asks for it.
A broker that stops first hands over its leaderships. It waits until all active brokers have applied
the new leaders, so that no client is sent back to it, and is then fenced.
"""

from collections.abc import Callable
from enum import Enum

import msgspec

from headrace.controller.decision import ClusterDefaults, Decision, after
from headrace.controller.leadership import leads_for_others
from headrace.controller.registration import (
    begin_shutdown,
    check_epoch,
    cordon_directories,
    fence_broker,
    take_directories_offline,
    unfence_broker,
)
from headrace.controller.sessions import Session, SessionsView
from headrace.metadata.image import BrokerImage, MetadataImage
from headrace.metadata.records import VersionedRecord
from headrace.protocol.schemas.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)


class BrokerState(Enum):
    """The states of a registered broker."""

    FENCED = "may not lead, and clients do not see it"
    UNFENCED = "leads and follows partitions"
    CONTROLLED_SHUTDOWN = "hands over its leaderships"
    SHUTDOWN_NOW = "is fenced, and may stop its process"


class Progress(msgspec.Struct, frozen=True):
    """The facts that decide the next state of a broker."""

    may_serve: bool
    """Whether it has applied its own registration, and has not begun to stop since."""
    must_hand_over: Callable[[], bool]
    """Whether it leads partitions while another broker is active that could lead them."""
    is_shutdown_known: Callable[[], bool]
    """Whether all active brokers have applied the end of its leaderships."""


def next_state(
    state: BrokerState, request: BrokerHeartbeatRequest, progress: Progress
) -> BrokerState:
    """Return the state of a broker after a heartbeat."""
    match state:
        case BrokerState.FENCED if request.want_shut_down:
            return BrokerState.SHUTDOWN_NOW
        case BrokerState.FENCED if not request.want_fence and progress.may_serve:
            return BrokerState.UNFENCED
        case BrokerState.UNFENCED if request.want_fence:
            return BrokerState.SHUTDOWN_NOW if request.want_shut_down else BrokerState.FENCED
        case BrokerState.UNFENCED if request.want_shut_down:
            hands_over = progress.must_hand_over()
            return BrokerState.CONTROLLED_SHUTDOWN if hands_over else BrokerState.SHUTDOWN_NOW
        case BrokerState.CONTROLLED_SHUTDOWN:
            may_stop = not progress.must_hand_over() and progress.is_shutdown_known()
            return BrokerState.SHUTDOWN_NOW if may_stop else state
    return state


def heartbeat(
    image: MetadataImage,
    request: BrokerHeartbeatRequest,
    defaults: ClusterDefaults,
    sessions: SessionsView | None,
) -> Decision[BrokerHeartbeatResponse]:
    """Move a broker to its next state; take failed directories offline, and cordon others."""
    broker = check_epoch(image, request.broker_id, request.broker_epoch)
    session = None if sessions is None else sessions.of(broker.id)
    is_caught_up = session is None or request.current_metadata_offset >= session.registered_at
    progress = Progress(
        is_caught_up and not broker.in_controlled_shutdown,
        lambda: _must_hand_over(image, broker.id),
        lambda: _is_shutdown_known(image, sessions, session),
    )
    state = next_state(_state_of(broker, session), request, progress)
    records: list[VersionedRecord] = []
    is_fenced = state in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW)
    if broker.fenced and not is_fenced:
        records = unfence_broker(image, broker, defaults)
    elif is_fenced and not broker.fenced:
        records = fence_broker(image, broker, defaults)
    elif state is BrokerState.CONTROLLED_SHUTDOWN and not broker.in_controlled_shutdown:
        records = begin_shutdown(image, broker, defaults)
    if request.offline_log_dirs:
        image = after(image, records)
        records += take_directories_offline(
            image, image.brokers[broker.id], request.offline_log_dirs, defaults
        )
    cordoned = request.cordoned_log_dirs
    if cordoned is None and broker.cordoned_directories is None and not is_fenced:
        cordoned = []  # Every active broker has a list.
    records += cordon_directories(image, broker, cordoned)
    response = BrokerHeartbeatResponse(
        is_caught_up=is_caught_up,
        is_fenced=is_fenced,
        should_shut_down=state is BrokerState.SHUTDOWN_NOW,
    )
    return Decision(records, response)


def _state_of(broker: BrokerImage, session: Session | None) -> BrokerState:
    if broker.fenced:
        return BrokerState.FENCED
    # Before metadata.version 8 only the session has the shutdown.
    stops = session is not None and session.shutdown_offset is not None
    if broker.in_controlled_shutdown or stops:
        return BrokerState.CONTROLLED_SHUTDOWN
    return BrokerState.UNFENCED


def _must_hand_over(image: MetadataImage, broker_id: int) -> bool:
    others = any(one.is_active and one.id != broker_id for one in image.brokers.values())
    return others and leads_for_others(image, broker_id)


def _is_shutdown_known(
    image: MetadataImage, sessions: SessionsView | None, session: Session | None
) -> bool:
    lowest = None if sessions is None else sessions.lowest_active_offset(image)
    if lowest is None:
        return True
    offset = None if session is None else session.shutdown_offset
    # A new controller does not have the offset yet: this heartbeat notes one.
    return offset is not None and offset <= lowest
