"""Requests whose handlers answer the connection directly: Produce, Fetch and ShareFetch.

Their answers are bytes and parts of files, and leave now or when the request has waited for
records, a disk or a coordinator. Dispatch counts a request that was answered at once, together with
the time that it was queued; `DirectCall` counts one that was parked.
"""

from collections.abc import Callable, Hashable, Iterable
from time import perf_counter_ns
from typing import TYPE_CHECKING, Protocol

import msgspec

from headrace.replication.delayed import Attempt, Delayed, Watched
from headrace.security.access import OPEN, Access, access_of
from headrace.security.principals import Principal

if TYPE_CHECKING:
    from headrace.broker.broker import Broker
    from headrace.broker.client_quotas import Meter
    from headrace.broker.connection import Part
    from headrace.broker.produce.shapes import ProduceShape


class AnsweredConnection(Hashable, Protocol):
    """The part of a connection that these handlers use."""

    host: str
    listener: str
    principal: Principal
    access: Access | None
    closed: bool
    produce_shape: "ProduceShape | None"

    @property
    def peer(self) -> str: ...

    def answer_parts(self, parts: "Iterable[Part]") -> None: ...

    def wait(self, on_abandoned: Callable[[], None] | None = None) -> None: ...

    def finish(self, parts: "Iterable[Part]") -> None: ...

    def mute(self, duration_ms: int) -> None: ...

    def finish_muted(self, parts: "Iterable[Part]", duration_ms: int) -> None: ...

    def close(self) -> None: ...

    def fail(self) -> None: ...


class DirectCall(msgspec.Struct, gc=False):
    """The context of one such request, and its answer."""

    broker: "Broker"
    connection: AnsweredConnection
    api_key: int
    version: int
    correlation_id: int
    parked_ns: int = 0
    meter: "Meter | None" = None
    """The quotas of the client, if it has any; then the fields below are used."""
    size: int = 0
    began_ns: int = 0
    """The time at which the handler was called or tried again; 0 while the request waits."""
    spent_ns: int = 0
    """The time that the handler has used before it waited."""
    throttle_ms: int = 0

    @property
    def access(self) -> Access:
        """The rights of the client."""
        authorizer = self.broker.authorizer
        return OPEN if authorizer is None else access_of(self.connection, authorizer)

    def park(self, on_abandoned: Callable[[], None] | None = None) -> None:
        """Answer later; until then the connection serves no other request."""
        if not self.parked_ns:
            self.parked_ns = perf_counter_ns()
        self._pause_watch()
        self.connection.wait(on_abandoned)

    def park_until(self, attempt: Attempt, watched: Iterable[Watched], timeout_ms: int) -> None:
        """Repeat an attempt to answer when a watched thing changes, and once after a timeout."""
        delayed = Delayed(attempt if self.meter is None else self._timed(attempt), self.connection)
        delayed.park(self.broker.loop, watched, timeout_ms / 1000)
        self.park(delayed.abandon)

    def answer(self, *parts: "Part") -> None:
        if self.throttle_ms:
            self._answer_and_mute(parts)
        elif not self.parked_ns:
            self.connection.answer_parts(parts)
        else:
            self.connection.finish(parts)
            self._count_wait()

    def _answer_and_mute(self, parts: "tuple[Part, ...]") -> None:
        if self.parked_ns:
            self.connection.finish_muted(parts, self.throttle_ms)
            self._count_wait()
            return
        self.connection.answer_parts(parts)
        self.connection.mute(self.throttle_ms)
        # Dispatch takes a muted connection for one that waits, and counts nothing.
        self.broker.metrics.requests.served(self.api_key, self.version, self._spent())

    def _count_wait(self) -> None:
        waited_ns = perf_counter_ns() - self.parked_ns
        self.broker.metrics.requests.served_late(
            self.api_key, self.version, waited_ns, waited_ns=waited_ns
        )

    def count_error(self, error_code: int) -> None:
        self.broker.metrics.requests.failed(self.api_key, error_code)

    # --- quotas ---------------------------------------------------------------------------------

    def charge_produce(self) -> int:
        """Count the request for the client's quotas; return the throttle time for the answer."""
        if self.meter is not None:
            self.throttle_ms = self.meter.produced(self.size, self._spent())
        return self.throttle_ms

    def charge_unanswered_produce(self) -> None:
        """Count a request with acks=0, whose client is muted without an answer."""
        if self.meter is not None:
            self.throttle_ms = self.meter.produced_unanswered(self.size)

    def charge_fetch(self, size: int) -> bool:
        """Count records before they are sent; return whether they may be sent."""
        if self.meter is None:
            return True
        self.throttle_ms, is_sent = self.meter.fetched(size, self._spent())
        return is_sent

    def charge_sent(self, size: int) -> int:
        """Count records that are sent in any case, because they are locked for the client."""
        if self.meter is not None:
            self.throttle_ms = self.meter.fetched_and_sent(size, self._spent())
        return self.throttle_ms

    def charge_request(self) -> int:
        """Count only the time of the request."""
        if self.meter is not None:
            self.throttle_ms = self.meter.requested(self._spent())
        return self.throttle_ms

    def _spent(self) -> int:
        running_ns = perf_counter_ns() - self.began_ns if self.began_ns else 0
        return self.spent_ns + running_ns

    def _pause_watch(self) -> None:
        if self.began_ns:
            self.spent_ns = self._spent()
            self.began_ns = 0

    def _timed(self, attempt: Attempt) -> Attempt:
        def timed(*, is_last: bool) -> bool:
            self.began_ns = perf_counter_ns()
            is_answered = attempt(is_last=is_last)
            self._pause_watch()
            return is_answered

        return timed
