"""Request counters of a server, the same for every product.

Requests are labelled with their operation, a method and the path as it is described, so clients
cannot create new labels.
"""

from collections.abc import Iterator
from time import perf_counter_ns

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.runtime.durations import Durations
from headrace.runtime.exposition import Family, Sample, gauge, labels, summary

OPERATION_KEY = "headrace.operation"
"""In the scope of a routed request: the label of its operation; empty if it is not counted."""
_NO_OPERATION = "none"
_SERVER_ERROR = 500


class OperationCounts:
    """The requests of one operation."""

    __slots__ = ("bytes_in", "bytes_out", "durations", "statuses")

    def __init__(self) -> None:
        self.statuses: dict[int, int] = {}
        self.bytes_in = 0
        self.bytes_out = 0
        self.durations = Durations()


class HttpMetrics:
    """All requests since the start, and the number under way."""

    def __init__(self) -> None:
        self.operations: dict[str, OperationCounts] = {}
        self.under_way = 0

    def of(self, operation: str) -> OperationCounts:
        found = self.operations.get(operation)
        if found is None:
            found = self.operations[operation] = OperationCounts()
        return found


class Counted:
    """Counts the requests that pass through it, but no WebSockets."""

    def __init__(self, app: ASGIApp, metrics: HttpMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(receive, send)
        began = perf_counter_ns()
        self._metrics.under_way += 1
        try:
            await self._app(scope, exchange.receive, exchange.send)
        finally:
            self._metrics.under_way -= 1
            label = scope.get(OPERATION_KEY, _NO_OPERATION)
            if label:
                counts = self._metrics.of(label)
                counts.statuses[exchange.status] = counts.statuses.get(exchange.status, 0) + 1
                counts.bytes_in += exchange.bytes_in
                counts.bytes_out += exchange.bytes_out
                counts.durations.add_ns(perf_counter_ns() - began)


class _Exchange:
    """A request and its answer."""

    __slots__ = ("_receive", "_send", "bytes_in", "bytes_out", "status")

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self.bytes_in = 0
        self.bytes_out = 0
        self.status = _SERVER_ERROR
        """The server answers so if the application raises before it answers."""

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self.bytes_in += len(message.get("body", b""))
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif message["type"] == "http.response.body":
            self.bytes_out += len(message.get("body", b""))
        await self._send(message)


def answer_families(prefix: str, metrics: HttpMetrics) -> Iterator[Family]:
    """Yield answers by operation and status, and durations, under names that all products share."""
    found = sorted(metrics.operations.items())
    yield Family(
        f"{prefix}_answers_total",
        "counter",
        "Answers by operation and HTTP status.",
        [
            Sample(count, labels(operation=name, status=status))
            for name, one in found
            for status, count in sorted(one.statuses.items())
        ],
    )
    yield summary(
        f"{prefix}_duration_milliseconds",
        "Duration of requests, including waiting.",
        [({"operation": name}, one.durations) for name, one in found],
    )


def http_families(prefix: str, metrics: HttpMetrics) -> Iterator[Family]:
    """Yield the same, requests under way, and bytes."""
    yield from answer_families(prefix, metrics)
    yield gauge(f"{prefix}_under_way", "Requests that are being answered.", metrics.under_way)
    found = sorted(metrics.operations.items())
    yield Family(
        f"{prefix}_request_bytes_total",
        "counter",
        "Bytes of the bodies of requests.",
        [Sample(one.bytes_in, labels(operation=name)) for name, one in found],
    )
    yield Family(
        f"{prefix}_response_bytes_total",
        "counter",
        "Bytes of the bodies of answers.",
        [Sample(one.bytes_out, labels(operation=name)) for name, one in found],
    )
