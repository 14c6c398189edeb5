"""What a server counts of its requests, for every product, and the page that Prometheus reads.

Requests are told apart by their operation, which is a method and the path as it is described, so
that no client can make new ones up.
"""

from collections.abc import Iterable, Iterator, Mapping
from time import perf_counter_ns

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.runtime.exposition import CONTENT_TYPE, Family, Sample, gauge, labels, render, summary
from headrace.runtime.metrics import Durations

OPERATION_KEY = "headrace.operation"
"""In the scope of a request, once its route is found: which operation it is."""
_NO_OPERATION = "none"
_OUR_FAULT = 500


class OperationCounts:
    """The requests of one operation."""

    __slots__ = ("bytes_in", "bytes_out", "durations", "statuses")

    def __init__(self) -> None:
        self.statuses: dict[int, int] = {}
        self.bytes_in = 0
        self.bytes_out = 0
        self.durations = Durations()


class HttpMetrics:
    """All requests since the start, and how many are under way."""

    def __init__(self) -> None:
        self.operations: dict[str, OperationCounts] = {}
        self.under_way = 0

    def of(self, operation: str) -> OperationCounts:
        found = self.operations.get(operation)
        if found is None:
            found = self.operations[operation] = OperationCounts()
        return found


class Counted:
    """Counts what passes through it; WebSockets are for who opens them to count."""

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
            counts = self._metrics.of(scope.get(OPERATION_KEY, _NO_OPERATION))
            counts.statuses[exchange.status] = counts.statuses.get(exchange.status, 0) + 1
            counts.bytes_in += exchange.bytes_in
            counts.bytes_out += exchange.bytes_out
            counts.durations.add_ns(perf_counter_ns() - began)


class _Exchange:
    """One request and its answer, on their way through."""

    __slots__ = ("_receive", "_send", "bytes_in", "bytes_out", "status")

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self.bytes_in = 0
        self.bytes_out = 0
        self.status = _OUR_FAULT
        """What is told outside of here if nothing is told within."""

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


def page(families: Iterable[Family]) -> Response:
    """The answer to Prometheus."""
    return Response("".join(render(families)), media_type=CONTENT_TYPE)


def answer_families(
    prefix: str, answers: Mapping[tuple[str, int], int], durations: Mapping[str, Durations]
) -> Iterator[Family]:
    """What was answered, and how long that took, under names that all products share.

    Answers are counted by operation and HTTP status.
    """
    yield Family(
        f"{prefix}_answers_total",
        "counter",
        "Answers by operation and HTTP status.",
        [
            Sample(count, labels(operation=operation, status=status))
            for (operation, status), count in sorted(answers.items())
        ],
    )
    yield summary(
        f"{prefix}_duration_milliseconds",
        "How long requests took, waiting included.",
        [({"operation": name}, took) for name, took in sorted(durations.items())],
    )


def http_families(prefix: str, metrics: HttpMetrics) -> Iterator[Family]:
    """The same of what the middleware has counted, requests under way and bytes besides."""
    found = sorted(metrics.operations.items())
    answers = {
        (name, status): count for name, one in found for status, count in one.statuses.items()
    }
    yield from answer_families(prefix, answers, {name: one.durations for name, one in found})
    yield gauge(f"{prefix}_under_way", "Requests that are being answered.", metrics.under_way)
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
