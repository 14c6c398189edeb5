"""The audit log: who did what, from where, and by which rule it was allowed or denied.

Decisions and logins become events, one JSON object each. A principal may cause a limited number of
events per second; the events left out are counted, and the next event of that principal has their
number. Events wait in a queue with a bound until a writer takes them, so a disk that hangs costs
events, never memory.

Any thread may report. Two threads that report at the same moment may count one event too many or
too few; no lock is worth that.
"""

from collections import deque
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import Any, NamedTuple

from msgspec import json

from headrace.quotas.rates import TokenBucket, Windows
from headrace.security.acls import AclBinding, Operation, ResourceType
from headrace.security.authorizer import Reason, Verdict
from headrace.security.principals import Caller, Principal

ALLOWED, DENIED, LOGINS = "allowed", "denied", "logins"
EVENT_KINDS = (ALLOWED, DENIED, LOGINS)

_WAITING_MAX = 20_000
_SOURCES_MAX = 4_096
_TEXT_MAX = 1_000
_BURST = Windows(num=10, size_ms=1000)
_MS = 1000


class AuditEvent(NamedTuple):
    """One event: its source for the key of a record, its time, and its line."""

    source: str
    time_ms: int
    line: bytes


class AuditCounts:
    """The numbers of events, for metrics."""

    __slots__ = ("lost", "overflowed", "rate_limited", "written")

    def __init__(self) -> None:
        self.written = 0
        self.rate_limited = 0
        """Events above the rate of their principal."""
        self.overflowed = 0
        """Events for which the queue had no room."""
        self.lost = 0
        """Events that could not be written."""

    @property
    def dropped(self) -> int:
        return self.rate_limited + self.overflowed + self.lost


class AuditLog:
    """Collects events for a writer."""

    def __init__(
        self,
        node_id: int,
        kinds: Collection[str],
        events_per_second: float,
        *,
        now_ms: Callable[[], int],
        monotonic_ms: Callable[[], int],
        own_topic: str = "",
    ) -> None:
        """`own_topic` gets the events; writing to it as a super user makes no further event."""
        self.counts = AuditCounts()
        self._node_id = node_id
        self._kinds = frozenset(kinds)
        self._rate = events_per_second
        self._now_ms = now_ms
        self._monotonic_ms = monotonic_ms
        self._own_topic = own_topic
        self._waiting: deque[AuditEvent] = deque()
        self._sources: dict[tuple[str, str], _Source] = {}
        self._others = _Source()

    def decided(
        self, caller: Caller, operation: Operation, kind: ResourceType, name: str, verdict: Verdict
    ) -> None:
        """Take a decision of the authorizer."""
        outcome = ALLOWED if verdict.is_allowed else DENIED
        if outcome not in self._kinds:
            return
        if verdict.cause is Reason.SUPER_USER and (
            operation is Operation.CLUSTER_ACTION or name == self._own_topic
        ):
            return  # Nodes among themselves, at every fetch.
        principal = str(caller.principal)
        source = self._admit((principal, outcome))
        if source is None:
            return
        event = {
            "event": "authorization",
            "principal": _shortened(principal),
            "host": caller.host,
            "operation": operation.name,
            "resource_type": kind.name,
            "resource": _shortened(name),
            "allowed": verdict.is_allowed,
            **_cause(verdict),
        }
        self._add(principal, source, event)

    def authenticated(
        self,
        listener: str,
        host: str,
        mechanism: str,
        principal: Principal | None,
        error: str | None,
    ) -> None:
        """Take the result of a login; the principal is None and the error given if it failed."""
        if LOGINS not in self._kinds:
            return
        # The name of a failed login is not proven: the address counts.
        name = host if principal is None else str(principal)
        source = self._admit((name, LOGINS))
        if source is None:
            return
        event: dict[str, Any] = {
            "event": "authentication",
            "principal": None if principal is None else _shortened(str(principal)),
            "host": host,
            "listener": listener,
            "mechanism": mechanism or None,
            "succeeded": principal is not None,
        }
        if error is not None:
            event["error"] = _shortened(error)
        self._add(name, source, event)

    def take(self) -> list[AuditEvent]:
        """Return the events that wait, and forget them."""
        waiting = self._waiting
        return [waiting.popleft() for _ in range(len(waiting))]

    def _admit(self, key: tuple[str, str]) -> "_Source | None":
        """Return the source of an event, or None if the event is dropped."""
        source = self._sources.get(key)
        if source is None:
            source = self._others  # Shared by all that come after too many others.
            if len(self._sources) >= _SOURCES_MAX:
                self._forget_idle()
            if len(self._sources) < _SOURCES_MAX:
                source = self._sources[key] = _Source()
        now_ms = self._monotonic_ms()
        if source.bucket.tokens(self._rate, now_ms) < 1:
            source.dropped += 1
            self.counts.rate_limited += 1
            return None
        if len(self._waiting) >= _WAITING_MAX:
            source.dropped += 1
            self.counts.overflowed += 1
            return None
        source.bucket.take(1, self._rate, now_ms)
        source.used_ms = now_ms
        return source

    def _forget_idle(self) -> None:
        """Forget the sources whose buckets are full again, at most once a second."""
        now_ms = self._monotonic_ms()
        if now_ms - self._others.used_ms < _MS:
            return
        self._others.used_ms = now_ms
        idle_ms = int(_BURST.burst_s * _MS)
        for key, source in list(self._sources.items()):
            if now_ms - source.used_ms > idle_ms and not source.dropped:
                self._sources.pop(key, None)

    def _add(self, name: str, source: "_Source", event: dict[str, Any]) -> None:
        now_ms = self._now_ms()
        moment = datetime.fromtimestamp(now_ms / _MS, UTC).isoformat(timespec="milliseconds")
        event = {"time": moment.replace("+00:00", "Z"), "node": self._node_id, **event}
        if source.dropped:
            event["dropped_before"], source.dropped = source.dropped, 0
        self._waiting.append(AuditEvent(name, now_ms, json.encode(event)))


class _Source:
    """The events of one principal and kind."""

    __slots__ = ("bucket", "dropped", "used_ms")

    def __init__(self) -> None:
        self.bucket = TokenBucket(_BURST)
        self.dropped = 0
        self.used_ms = -_MS


def _cause(verdict: Verdict) -> dict[str, Any]:
    if isinstance(verdict.cause, AclBinding):
        rule = verdict.cause
        return {
            "rule": {
                "permission": rule.permission.name,
                "principal": rule.principal,
                "host": rule.host,
                "operation": rule.operation.name,
                "resource_type": rule.resource_type.name,
                "resource": _shortened(rule.resource_name),
                "pattern": rule.pattern_type.name,
            }
        }
    return {"reason": verdict.cause.value}


def _shortened(text: str) -> str:
    return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}..."
