"""Handlers that answer directly: at once, or later with one count of the whole wait."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from headrace.broker.direct_call import DirectCall
from headrace.broker.metrics.counters import Metrics
from headrace.protocol.api_keys import ApiKey

VERSION = 12


class Client:
    """Replaces a connection: keeps the answers, by the way in which they were sent."""

    def __init__(self) -> None:
        self.at_once: list[bytes] = []
        self.finished: list[bytes] = []
        self.waits = 0

    def answer_parts(self, parts: tuple[bytes, ...]) -> None:
        self.at_once += parts

    def wait(self, on_abandoned: object = None) -> None:
        self.waits += 1

    def finish(self, parts: tuple[bytes, ...]) -> None:
        self.finished += parts


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def call(client: Client, metrics: Metrics) -> DirectCall:
    broker = cast(Any, SimpleNamespace(metrics=metrics))
    return DirectCall(broker, cast(Any, client), ApiKey.FETCH, VERSION, 7)


def test_an_answer_at_once_is_left_to_dispatch_to_count(
    call: DirectCall, client: Client, metrics: Metrics
) -> None:
    call.answer(b"a", b"b")
    assert (client.at_once, client.finished) == ([b"a", b"b"], [])
    assert metrics.requests.api(ApiKey.FETCH).versions == {}


def test_a_parked_request_is_counted_once_with_its_whole_wait(
    call: DirectCall, client: Client, metrics: Metrics
) -> None:
    call.park()
    call.park()  # As a heavy batch does that then waits for a sync.
    call.answer(b"a")
    assert (client.at_once, client.finished, client.waits) == ([], [b"a"], 2)
    counted = metrics.requests.api(ApiKey.FETCH)
    assert counted.versions == {VERSION: 1}
    assert counted.waited.count == 1


def test_errors_are_counted_for_the_api(call: DirectCall, metrics: Metrics) -> None:
    call.count_error(3)
    assert metrics.requests.api(ApiKey.FETCH).errors == {3: 1}
