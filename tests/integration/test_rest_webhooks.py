"""Webhook subscriptions: a real proxy delivers to a real HTTP server."""

import hashlib
import hmac
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.clients.librdkafka import Sent, create_topic, produce, read, unique_name, values
from tests.clients.rest import metric
from tests.integration.conftest import StartNode
from tests.processes.nodes import Node, eventually
from tests.processes.rest_proxies import Proxy, proxy

SECRET = "a-secret-of-some-length"
ONE_EACH = {"from": "earliest", "format": "STRING"}


class Taken:
    """One delivery as the target saw it."""

    def __init__(self, path: str, headers: dict[str, str], body: bytes) -> None:
        self.path = path
        self.headers = headers
        self.body = body

    @property
    def records(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.body)["records"]
        return found


class TargetServer:
    """A server that records requests and answers them with a function."""

    def __init__(self, answer: Callable[[Taken], int]) -> None:
        self.taken: list[Taken] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                delivery = Taken(self.path, dict(self.headers.items()), body)
                status = answer(delivery)
                if status == 200:
                    outer.taken.append(delivery)
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", f"{outer.url}/elsewhere")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    @property
    def values(self) -> list[Any]:
        return [record["value"] for one in list(self.taken) for record in one.records]


@contextmanager
def target(answer: Callable[[Taken], int] = lambda _: 200) -> Iterator[TargetServer]:
    found = TargetServer(answer)
    thread = threading.Thread(target=found.server.serve_forever)
    thread.start()
    try:
        yield found
    finally:
        found.server.shutdown()
        thread.join()
        found.server.server_close()


def options(folder: Path) -> list[str]:
    secrets = folder / "secrets.properties"
    secrets.write_text(f"orders={SECRET}\n")
    return [
        *("--set", "webhook.targets=127.0.0.1"),
        *("--set", f"webhook.secrets.file={secrets}"),
        *("--set", "consumer.session.timeout.ms=6000"),
    ]


@pytest.fixture(scope="module")
def running(shared_node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp("rest")
    with proxy(shared_node.address, folder / "proxy.log", options(folder)) as found:
        yield found


def put(running: Proxy, name: str, topic: str, target: str, **more: Any) -> httpx2.Response:
    given = {"topics": [topic], "target": target, **ONE_EACH, **more}
    return httpx2.put(f"{running.url}/subscriptions/{name}", json=given, timeout=30)


@contextmanager
def subscribed(running: Proxy, topic: str, target: str, **more: Any) -> Iterator[str]:
    """A subscription for one test; its address."""
    name = unique_name("subscription")
    answer = put(running, name, topic, target, **more)
    assert answer.status_code == 200, answer.text
    url = f"{running.url}/subscriptions/{name}"
    yield url
    assert httpx2.delete(url, timeout=30).status_code == 204


def status(url: str) -> dict[str, Any]:
    found: dict[str, Any] = httpx2.get(f"{url}/status", timeout=30).json()
    return found


def test_records_are_pushed_in_order_and_signed(running: Proxy, node: Node) -> None:
    """CLD-2, RST-6"""
    topic = create_topic(node)
    produce(node, topic, values(*map(str, range(20))))
    headers = {"Authorization": "Bearer ${orders}", "X-Team": "a"}
    with (
        target() as server,
        subscribed(running, topic, f"{server.url}/hook", secret="orders", headers=headers) as url,
    ):
        eventually(lambda: len(server.values) >= 20)
        eventually(lambda: status(url)["delivered"] == 20)
        eventually(lambda: status(url)["lag"] == 0)
        stored = httpx2.get(url).text
    first = server.taken[0]
    signature = hmac.new(
        SECRET.encode(),
        f"{first.headers['X-Headrace-Timestamp']}.".encode() + first.body,
        hashlib.sha256,
    )
    assert server.values == [str(number) for number in range(20)]
    assert first.path == "/hook"
    assert first.headers["X-Headrace-Signature"] == f"sha256={signature.hexdigest()}"
    assert (first.headers["Authorization"], first.headers["X-Team"]) == (f"Bearer {SECRET}", "a")
    assert SECRET not in stored + running.log.read_text()


def test_several_records_go_in_one_delivery_and_a_filter_chooses(
    running: Proxy, node: Node
) -> None:
    topic = create_topic(node)
    produce(node, topic, [Sent(b'{"n":%d}' % number) for number in range(20)])
    more = {"batch_size": 5, "format": "JSON", "filter": "value.n % 2 == 0"}
    with target() as server, subscribed(running, topic, server.url, **more):
        eventually(lambda: len(server.values) >= 10)
    assert [one["n"] for one in server.values] == list(range(0, 20, 2))
    assert max(len(one.records) for one in server.taken) == 5


def test_failed_deliveries_are_retried_in_order(running: Proxy, node: Node) -> None:
    topic = create_topic(node)
    produce(node, topic, values("a", "b", "c"))
    refusals = iter([503, 500, 429])
    with (
        target(lambda _: next(refusals, 200)) as server,
        subscribed(running, topic, server.url, retry={"initial_ms": 10}) as url,
    ):
        eventually(lambda: len(server.values) >= 3)
        seen = eventually(lambda: status(url), expect=lambda one: one["delivered"] == 3)
    assert server.values == ["a", "b", "c"]
    assert (seen["failed_attempts"], "429" in seen["last_error"]) == (3, True)


def test_a_record_that_is_never_accepted_becomes_a_dead_letter(running: Proxy, node: Node) -> None:
    topic, letters = create_topic(node), create_topic(node)
    produce(
        node, topic, [Sent(b"good"), Sent(b"bad", key=b"k", headers=(("h", b"x"),)), Sent(b"ok")]
    )
    more = {"dead_letter_topic": letters, "retry": {"attempts": 3, "initial_ms": 10}}

    def answer(delivery: Taken) -> int:
        return 500 if delivery.records[0]["value"] == "bad" else 200

    with target(answer) as server, subscribed(running, topic, server.url, **more) as url:
        eventually(lambda: server.values == ["good", "ok"])
        assert eventually(lambda: status(url)["dead_letters"]) == 1
    (letter,) = read(node, letters)
    headers = dict(letter.headers() or ())
    assert (letter.key(), letter.value(), headers["h"]) == (b"k", b"bad", b"x")
    assert (headers["headrace.dead.topic"], headers["headrace.dead.offset"]) == (
        topic.encode(),
        b"1",
    )
    assert headers["headrace.dead.reason"] == b"the target answered 500"
    assert headers["headrace.dead.attempts"] == b"3"


def test_redirects_are_not_followed(running: Proxy, node: Node) -> None:
    topic, letters = create_topic(node), create_topic(node)
    produce(node, topic, values("a"))
    with (
        target(lambda delivery: 302 if delivery.path == "/hook" else 200) as server,
        subscribed(running, topic, f"{server.url}/hook", dead_letter_topic=letters),
    ):
        (letter,) = eventually(lambda: read(node, letters))
    assert server.taken == []
    assert dict(letter.headers() or ())["headrace.dead.reason"] == b"the target answered 302"


def test_a_target_that_takes_too_long_has_not_taken_it(running: Proxy, node: Node) -> None:
    topic = create_topic(node)
    produce(node, topic, values("a"))
    slow = threading.Event()
    calls: list[Taken] = []

    def answer(delivery: Taken) -> int:
        calls.append(delivery)
        if len(calls) == 1:
            slow.wait(30)
        return 200

    more = {"timeout_ms": 200, "retry": {"initial_ms": 10}}
    with target(answer) as server, subscribed(running, topic, server.url, **more) as url:
        eventually(lambda: status(url)["delivered"] == 1)
        slow.set()
        assert "no answer within 0.2 seconds" in status(url)["last_error"]


def test_a_paused_subscription_continues_at_its_position(running: Proxy, node: Node) -> None:
    topic = create_topic(node)
    produce(node, topic, values("a"))
    with target() as server, subscribed(running, topic, server.url) as url:
        eventually(lambda: server.values == ["a"])
        eventually(lambda: status(url)["lag"] == 0)
        assert httpx2.post(f"{url}/pause", timeout=30).json()["paused"] is True
        assert status(url)["state"] == "paused"
        assert metric(running.url, "headrace_rest_webhook_records_delivered_total") >= 1
        produce(node, topic, values("b"))
        assert httpx2.post(f"{url}/resume", timeout=30).json()["paused"] is False
        eventually(lambda: server.values == ["a", "b"])


def test_undeliverable_records_pause_the_subscription_and_are_kept(
    running: Proxy, node: Node
) -> None:
    topic = create_topic(node, partitions=2)
    produce(node, topic, values("a", "b", "c"), partition=0)
    produce(node, topic, values("other"), partition=1)
    is_mended = threading.Event()

    def answer(delivery: Taken) -> int:
        return 500 if delivery.records[0]["value"] == "b" and not is_mended.is_set() else 200

    retry = {"initial_ms": 10, "max_ms": 20, "pause_after_ms": 1_000}
    with target(answer) as server, subscribed(running, topic, server.url, retry=retry) as url:
        seen = eventually(lambda: status(url), expect=lambda one: one["state"] == "paused")
        is_mended.set()
        assert httpx2.post(f"{url}/resume", timeout=30).json()["paused_because"] is None
        eventually(lambda: len(set(server.values)) == 4)
    assert f"{topic}-0 at offset 1 was not delivered by" in seen["paused_because"]
    assert "the target answered 500" in seen["paused_because"]
    assert [one for one in dict.fromkeys(server.values) if one != "other"] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("more", "code", "words"),
    [
        ({"target": "http://10.0.0.1/"}, 403, "webhook.targets"),
        ({"target": "http://localhost/"}, 403, "webhook.targets"),
        ({"secret": "nobody"}, 422, "webhook.secrets.file"),
        ({"filter": "value +"}, 400, "filter"),
        ({"topics": ["no-such-topic-at-all"]}, 404, "Topic not found"),
        ({"topics": []}, 422, "topics"),
        ({"colour": "red"}, 422, "colour"),
    ],
)
def test_invalid_subscriptions_are_refused(
    running: Proxy, node: Node, topic: str, more: dict[str, Any], code: int, words: str
) -> None:
    given = {"topics": [topic], "target": "http://127.0.0.1:9/", **more}
    url = f"{running.url}/subscriptions/{unique_name('wrong')}"
    answer = httpx2.put(url, json=given, timeout=30)
    assert (answer.status_code, words in answer.json()["message"]) == (code, True), answer.text
    assert httpx2.get(url, timeout=30).status_code == 404


def test_without_allowed_targets_there_are_no_subscriptions(node: Node, tmp_path: Path) -> None:
    with proxy(node.address, tmp_path / "proxy.log") as found:
        answer = put(found, "x", create_topic(node), "http://127.0.0.1:9/")
    assert (answer.status_code, "no allowed targets" in answer.json()["message"]) == (403, True)


def test_an_allowed_name_that_resolves_to_this_machine_gets_nothing(
    start_node: StartNode, tmp_path: Path
) -> None:
    node = start_node()  # On a shared one another proxy may be given the partition.
    topic = create_topic(node)
    produce(node, topic, values("a"))
    only_the_name = ["--set", "webhook.targets=localhost"]
    with (
        target() as server,
        proxy(node.address, tmp_path / "proxy.log", only_the_name) as found,
        subscribed(found, topic, server.url.replace("127.0.0.1", "localhost")) as url,
    ):
        seen = eventually(lambda: status(url)["last_error"])
    assert ("not public" in seen, server.taken) == (True, [])


def test_another_proxy_takes_over_when_one_is_killed(node: Node, tmp_path: Path) -> None:
    """CLD-2"""
    topic = create_topic(node, partitions=4)
    texts = [[f"{partition}-{number}" for number in range(100)] for partition in range(4)]
    with (
        target() as server,
        proxy(node.address, tmp_path / "one.log", options(tmp_path)) as one,
        proxy(node.address, tmp_path / "other.log", options(tmp_path)) as other,
        subscribed(other, topic, server.url),
    ):
        for partition in range(4):
            produce(node, topic, values(*texts[partition]), partition=partition)
        eventually(lambda: len(server.values) >= 40)
        one.process.kill()
        one.process.wait()
        eventually(lambda: len(set(server.values)) == 400)
    for partition in range(4):
        mine = [one for one in server.values if one.startswith(f"{partition}-")]
        assert list(dict.fromkeys(mine)) == texts[partition]
