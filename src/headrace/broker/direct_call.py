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

    @property
    def access(self) -> Access:
        """The rights of the client."""
        authorizer = self.broker.authorizer
        return OPEN if authorizer is None else access_of(self.connection, authorizer)

    def park(self, on_abandoned: Callable[[], None] | None = None) -> None:
        """Answer later; until then the connection serves no other request."""
        if not self.parked_ns:
            self.parked_ns = perf_counter_ns()
        self.connection.wait(on_abandoned)

    def park_until(self, attempt: Attempt, watched: Iterable[Watched], timeout_ms: int) -> None:
        """Repeat an attempt to answer when a watched thing changes, and once after a timeout."""
        delayed = Delayed(attempt, self.connection)
        delayed.park(self.broker.loop, watched, timeout_ms / 1000)
        self.park(delayed.abandon)

    def answer(self, *parts: "Part") -> None:
        if not self.parked_ns:
            self.connection.answer_parts(parts)
            return
        self.connection.finish(parts)
        waited_ns = perf_counter_ns() - self.parked_ns
        self.broker.metrics.requests.served_late(
            self.api_key, self.version, waited_ns, waited_ns=waited_ns
        )

    def count_error(self, error_code: int) -> None:
        self.broker.metrics.requests.failed(self.api_key, error_code)
