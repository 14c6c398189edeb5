"""Sessions of brokers: when each one was last heard, and how far it has read the metadata.

Sessions are in the memory of the active controller only; a new one gives every unfenced broker a
full session. Decisions get an immutable view. The shell calls `heard` before the decision of a
request, and `decided` after its records are in the log.
"""

from collections.abc import Container, Mapping
from types import MappingProxyType

import msgspec

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
from headrace.protocol.schemas.unregister_broker import UnregisterBrokerRequest

_LONG_AGO = -(1 << 62)


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """The session of one incarnation of a broker."""

    broker_epoch: int
    registered_at: int
    """The offset of its registration: a broker that has applied it has all its partitions."""
    heard_at_ms: int | None
    """The monotonic time of the last contact; None after the end of the session."""
    metadata_offset: int = -1
    """The last offset that the broker has applied; -1 until its first heartbeat."""
    shutdown_offset: int | None = None
    """The last offset of its controlled shutdown: others must apply it before the broker stops."""


class SessionsView(msgspec.Struct, frozen=True):
    """The sessions of all registered brokers at one moment."""

    sessions: Mapping[int, Session]
    timeout_ms: int

    def of(self, broker_id: int) -> Session | None:
        return self.sessions.get(broker_id)

    def is_live(self, broker_id: int, now_ms: int, silence_ms: float | None = None) -> bool:
        """Return whether a broker was heard within its session timeout, or a shorter time."""
        session = self.sessions.get(broker_id)
        if session is None or session.heard_at_ms is None:
            return False
        limit_ms = self.timeout_ms if silence_ms is None else min(silence_ms, self.timeout_ms)
        return now_ms <= session.heard_at_ms + limit_ms

    def lowest_active_offset(self, image: MetadataImage) -> int | None:
        """Return the offset that all active brokers have applied; None without such brokers."""
        offsets = (self._offset(one.id) for one in image.brokers.values() if one.is_active)
        return min(offsets, default=None)

    def stalest(self, image: MetadataImage) -> int | None:
        """Return the unfenced broker that was heard least recently."""
        unfenced = [one.id for one in image.brokers.values() if not one.fenced]
        return min(unfenced, key=self._heard_at_ms, default=None)

    def next_expiry_ms(self, image: MetadataImage) -> int | None:
        """Return the monotonic time when the first session of an unfenced broker ends."""
        broker_id = self.stalest(image)
        return None if broker_id is None else self._heard_at_ms(broker_id) + self.timeout_ms

    def _offset(self, broker_id: int) -> int:
        session = self.sessions.get(broker_id)
        return -1 if session is None else session.metadata_offset

    def _heard_at_ms(self, broker_id: int) -> int:
        session = self.sessions.get(broker_id)
        heard_at_ms = None if session is None else session.heard_at_ms
        return _LONG_AGO if heard_at_ms is None else heard_at_ms


class BrokerSessions:
    """The sessions that the active controller keeps; make one when a controller becomes active.

    `restarted` names brokers whose earlier incarnation has surely ended, above all this node's own
    broker until it has registered. They may register at once.
    """

    def __init__(
        self,
        image: MetadataImage,
        now_ms: int,
        timeout_ms: int,
        *,
        restarted: Container[int] = (),
    ) -> None:
        sessions = {
            broker.id: Session(
                broker_epoch=broker.epoch,
                # The true offset is unknown here, but not later than this one.
                registered_at=image.offset,
                # A fenced broker is starting, and heartbeats show it soon, or it has stopped.
                heard_at_ms=None if broker.fenced or broker.id in restarted else now_ms,
            )
            for broker in image.brokers.values()
        }
        self.view = SessionsView(MappingProxyType(sessions), timeout_ms)

    def heard(self, request: Message, now_ms: int) -> None:
        """Note a heartbeat, which renews the session of the current incarnation of a broker."""
        if not isinstance(request, BrokerHeartbeatRequest):
            return
        session = self.view.of(request.broker_id)
        if session is None or session.broker_epoch != request.broker_epoch:
            return
        self._put(
            request.broker_id,
            msgspec.structs.replace(
                session, heard_at_ms=now_ms, metadata_offset=request.current_metadata_offset
            ),
        )

    def decided(self, request: Message, response: object, end_offset: int, now_ms: int) -> None:
        """Note a decision whose records are in the log, which now ends at `end_offset`."""
        match request, response:
            case BrokerRegistrationRequest(), BrokerRegistrationResponse():
                self._registered(request.broker_id, response.broker_epoch, end_offset - 1, now_ms)
            case BrokerHeartbeatRequest(), BrokerHeartbeatResponse():
                self._beaten(request, response, end_offset - 1)
            case UnregisterBrokerRequest(), _:
                self._put(request.broker_id, None)

    def expire(self, broker_id: int) -> None:
        """End the session of a broker whose process is gone: its connections are refused.

        The broker may then register again at once. A heartbeat shows that it is alive, and renews
        the session.
        """
        session = self.view.of(broker_id)
        if session is not None:
            self._put(broker_id, msgspec.structs.replace(session, heard_at_ms=None))

    def _registered(self, broker_id: int, epoch: int, offset: int, now_ms: int) -> None:
        present = self.view.of(broker_id)
        if present is not None and present.broker_epoch == epoch:
            renewed = msgspec.structs.replace(present, heard_at_ms=now_ms, registered_at=offset)
        else:
            renewed = Session(broker_epoch=epoch, registered_at=offset, heard_at_ms=now_ms)
        self._put(broker_id, renewed)

    def _beaten(
        self, request: BrokerHeartbeatRequest, response: BrokerHeartbeatResponse, offset: int
    ) -> None:
        session = self.view.of(request.broker_id)
        if session is None or session.broker_epoch != request.broker_epoch:
            return
        ends = response.should_shut_down
        shutdown_offset = session.shutdown_offset
        if ends or not request.want_shut_down:
            shutdown_offset = None
        elif shutdown_offset is None:
            shutdown_offset = offset
        heard_at_ms = None if ends else session.heard_at_ms
        if (heard_at_ms, shutdown_offset) != (session.heard_at_ms, session.shutdown_offset):
            self._put(
                request.broker_id,
                msgspec.structs.replace(
                    session, heard_at_ms=heard_at_ms, shutdown_offset=shutdown_offset
                ),
            )

    def _put(self, broker_id: int, session: Session | None) -> None:
        sessions = dict(self.view.sessions)
        if session is None:
            sessions.pop(broker_id, None)
        else:
            sessions[broker_id] = session
        self.view = SessionsView(MappingProxyType(sessions), self.view.timeout_ms)
