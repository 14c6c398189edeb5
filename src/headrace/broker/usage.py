"""Usage of this broker by principal and client id: requests, bytes and request time.

Connections count for themselves, in plain integers. Their counts are added up by client when a page
is read, when a connection ends, and once a minute. Windows of a minute and of an hour are kept in
memory, for `headrace usage`. The windows of all nodes begin at whole minutes and hours, so they can
be added up.

Bytes are those of the connections, with the headers of requests. Clients beyond a maximum are
counted in one row for all others.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import NamedTuple, Protocol

from headrace.quotas.usage_windows import HOUR_MS, MINUTE_MS, NodeUsage, UsageRow, UsageWindow
from headrace.runtime.exposition import Family, Sample, labels
from headrace.security.principals import Principal

OTHERS = "(others)"
"""The user and the client id of the row for clients beyond the maximum."""

_ROWS_MAX = 500
_ROWS_PER_WINDOW_MAX = 50
_MINUTES_KEPT = 60
_HOURS_KEPT = 48
_IDLE_MS_MAX = HOUR_MS
_CLIENT_ID_CHARS_MAX = 256
"""The rest of longer ids does not count: clients choose them, of up to 32,767 characters."""


class Counting(Protocol):
    """A connection with its counts, which are set to 0 when they are added up."""

    principal: Principal
    client_id: str | None
    requests: int
    bytes_in: int
    bytes_out: int
    spent_ns: int


class Counts(NamedTuple):
    """The usage of a client up to a moment."""

    requests: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    spent_ns: int = 0

    def plus(self, other: "Counts") -> "Counts":
        return Counts(*(one + more for one, more in zip(self, other, strict=True)))

    def minus(self, other: "Counts") -> "Counts":
        return Counts(*(one - less for one, less in zip(self, other, strict=True)))


class _Client:
    """One principal with one client id: its counts now, and at the begin of each window."""

    __slots__ = ("hour", "minute", "now", "used_ms")

    def __init__(self, now_ms: int) -> None:
        self.now = self.minute = self.hour = Counts()
        self.used_ms = now_ms


_Key = tuple[str, str]


class Usage:
    """The counts of all clients, and the windows of the past."""

    def __init__(self, node_id: int, now_ms: int) -> None:
        self._node_id = node_id
        self._clients: dict[_Key, _Client] = {}
        self._minutes: deque[UsageWindow] = deque(maxlen=_MINUTES_KEPT)
        self._hours: deque[UsageWindow] = deque(maxlen=_HOURS_KEPT)
        self._minute_ms = self._hour_ms = now_ms

    def collect(self, connections: Iterable[Counting], now_ms: int) -> None:
        """Add up what connections have counted since the last time."""
        for connection in connections:
            self.add(connection, now_ms)

    def add(self, connection: Counting, now_ms: int) -> None:
        """Add what a connection has counted, to its present principal and client id."""
        counts = Counts(
            connection.requests, connection.bytes_in, connection.bytes_out, connection.spent_ns
        )
        if not any(counts):
            return
        connection.requests = connection.bytes_in = connection.bytes_out = connection.spent_ns = 0
        client_id = (connection.client_id or "")[:_CLIENT_ID_CHARS_MAX]
        client = self._client(connection.principal.name, client_id, now_ms)
        client.now = client.now.plus(counts)
        client.used_ms = now_ms

    def roll(self, now_ms: int) -> None:
        """Close the windows that are over; call `collect` first."""
        if now_ms // MINUTE_MS != self._minute_ms // MINUTE_MS:
            self._minutes.append(self._minute(now_ms))
            self._minute_ms = now_ms
            for client in self._clients.values():
                client.minute = client.now
        if now_ms // HOUR_MS != self._hour_ms // HOUR_MS:
            self._hours.append(self._hour(now_ms))
            self._hour_ms = now_ms
            for client in self._clients.values():
                client.hour = client.now

    def page(self, now_ms: int) -> NodeUsage:
        """Return all windows, with the present ones at the end."""
        return NodeUsage(
            self._node_id,
            [*self._minutes, self._minute(now_ms)],
            [*self._hours, self._hour(now_ms)],
        )

    def families(self) -> Iterator[Family]:
        """Return the totals since the start, for the metrics page."""
        clients = [
            (labels(user=user, client_id=client_id), client.now)
            for (user, client_id), client in self._clients.items()
        ]
        for name, help_text, value_of in _FAMILIES:
            samples = [Sample(value_of(counts), text) for text, counts in clients]
            yield Family(f"headrace_usage_{name}_total", "counter", help_text, samples)

    def _minute(self, now_ms: int) -> UsageWindow:
        used = ((key, one.now.minus(one.minute)) for key, one in self._clients.items())
        return UsageWindow(self._minute_ms, now_ms, _rows(used))

    def _hour(self, now_ms: int) -> UsageWindow:
        used = ((key, one.now.minus(one.hour)) for key, one in self._clients.items())
        return UsageWindow(self._hour_ms, now_ms, _rows(used))

    def _client(self, user: str, client_id: str, now_ms: int) -> _Client:
        key = user, client_id
        client = self._clients.get(key)
        if client is None:
            if len(self._clients) >= _ROWS_MAX:
                self._forget_idle(now_ms)
            if len(self._clients) >= _ROWS_MAX:
                key = OTHERS, OTHERS
            client = self._clients.setdefault(key, _Client(now_ms))
        return client

    def _forget_idle(self, now_ms: int) -> None:
        """Drop clients without requests in the last hour, whose windows have been closed."""
        idle = [
            key
            for key, client in self._clients.items()
            if now_ms - client.used_ms >= _IDLE_MS_MAX and client.now == client.hour
        ]
        for key in idle:
            del self._clients[key]


def _seconds(counts: Counts) -> float:
    return counts.spent_ns / 1e9


_FAMILIES: tuple[tuple[str, str, Callable[[Counts], float]], ...] = (
    ("requests", "Requests of a client.", attrgetter("requests")),
    ("bytes_in", "Bytes received from a client.", attrgetter("bytes_in")),
    ("bytes_out", "Bytes sent to a client.", attrgetter("bytes_out")),
    ("request_time_seconds", "Time of the event loop for requests of a client.", _seconds),
)


def _rows(used: Iterable[tuple[_Key, Counts]]) -> list[UsageRow]:
    """Return the rows of a window, the largest first; small ones beyond a maximum are one row."""
    active = [one for one in used if any(one[1])]
    active.sort(key=lambda one: (one[0][0] == OTHERS, -one[1].bytes_in - one[1].bytes_out))
    kept, rest = active[:_ROWS_PER_WINDOW_MAX], active[_ROWS_PER_WINDOW_MAX:]
    if rest:
        others = Counts()
        for _, counts in rest:
            others = others.plus(counts)
        kept.append(((OTHERS, OTHERS), others))
    return [
        UsageRow(*key, counts.requests, counts.bytes_in, counts.bytes_out, counts.spent_ns / 1e9)
        for key, counts in kept
    ]
