"""Streams of a REST proxy as a process: httpx2, websockets and curl listen, real nodes answer."""

import base64
import json
import resource
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx2
import pytest
from confluent_kafka import TopicPartition
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from headrace.http.users import PasswordHash
from tests.clients.librdkafka import (
    Sent,
    admin,
    consumer,
    create_topic,
    numbered,
    produce,
    unique_name,
    values,
)
from tests.processes.nodes import Node, eventually
from tests.processes.rest_proxies import Proxy, proxy, registry

SECONDS_MAX = 30
OPTIONS = (
    *("--set", "push.heartbeat.ms=300"),
    *("--set", "push.stall.ms=3000"),
    *("--set", "push.unacknowledged.max=5"),
    *("--set", "push.tail.bytes=200000"),
)


@pytest.fixture(scope="module")
def running(shared_node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    log = tmp_path_factory.mktemp("rest") / "proxy.log"
    with proxy(shared_node.address, log, OPTIONS) as found:
        yield found


class Event(dict[str, Any]):
    """The fields of one event, `data` decoded."""

    @property
    def value(self) -> Any:
        return self["data"]["value"]


class Events:
    """A client of Server-Sent Events."""

    def __init__(self, answer: httpx2.Response) -> None:
        self.answer = answer
        self._lines = answer.iter_lines()

    def next(self) -> Event:
        """The next block that has any field, so no mere heartbeat."""
        found = Event()
        for line in self._lines:
            name, _, text = line.partition(": ")
            if line.startswith(":") or (not line and not found):
                continue
            if not line:
                return found
            found[name] = json.loads(text) if name == "data" else text
        raise AssertionError("the stream has ended")

    def records(self, count: int) -> list[Event]:
        found: list[Event] = []
        while len(found) < count:
            event = self.next()
            if "data" in event:
                found.append(event)
        return found

    def values(self, count: int) -> list[Any]:
        return [one.value for one in self.records(count)]


@contextmanager
def listening(
    running: Proxy, topic: str, headers: dict[str, str] | None = None, /, **parameters: str
) -> Iterator[Events]:
    """A client that listens; its stream has begun."""
    url = f"{running.url}/topics/{topic}/stream"
    given = {"format": "string", **parameters}
    with (
        httpx2.Client(timeout=SECONDS_MAX) as client,
        client.stream("GET", url, params=given, headers=headers) as answer,
    ):
        assert answer.status_code == 200, answer.read()
        yield Events(answer)


@contextmanager
def connected(running: Proxy, topic: str, **parameters: str) -> Iterator[ClientConnection]:
    given = {"format": "string", **parameters}
    query = "&".join(f"{name}={quote(text)}" for name, text in given.items())
    url = f"{running.url.replace('http', 'ws', 1)}/topics/{topic}/stream?{query}"
    with connect(url, open_timeout=SECONDS_MAX) as socket:
        yield socket


def received(socket: ClientConnection, count: int) -> list[dict[str, Any]]:
    """So many records; heartbeats in between are passed over."""
    found: list[dict[str, Any]] = []
    while len(found) < count:
        message = json.loads(socket.recv(SECONDS_MAX))
        if message["type"] == "record":
            found.append(message)
        else:
            assert message["type"] in ("heartbeat", "end"), message
    return found


def until_end(socket: ClientConnection) -> dict[str, Any]:
    """The last message before the server ends the connection."""
    last: dict[str, Any] = {}
    try:
        while True:
            last = json.loads(socket.recv(SECONDS_MAX))
    except ConnectionClosed:
        return last


def acknowledge(socket: ClientConnection, record: dict[str, Any]) -> None:
    place = {"partition": record["partition"], "offset": record["offset"]}
    socket.send(json.dumps({"type": "ack", **place}))


def committed(node: Node, group: str, topic: str) -> int:
    with consumer(node, group_id=group) as client:
        (found,) = client.committed([TopicPartition(topic, 0)], timeout=SECONDS_MAX)
        return int(found.offset)


def test_a_listener_gets_records_written_from_now_on(running: Proxy, node: Node) -> None:
    """RST-6"""
    topic = create_topic(node)
    produce(node, topic, values("before"))
    with listening(running, topic) as events:
        produce(node, topic, [Sent(b"now", key=b"k", headers=(("h", b"x"),))])
        (event,) = events.records(1)
    shown = event["data"]
    assert event["id"] == "0:2"
    assert shown.pop("timestamp") > 0
    assert shown == {
        "topic": topic,
        "partition": 0,
        "offset": 1,
        "key": "k",
        "value": "now",
        "headers": [{"name": "h", "value": base64.b64encode(b"x").decode()}],
    }


def test_the_last_event_id_resumes_in_all_partitions(running: Proxy, node: Node) -> None:
    """RST-6"""
    topic = create_topic(node, partitions=3)
    for partition in range(3):
        produce(node, topic, values("a", "b", "c"), partition=partition)
    with listening(running, topic, **{"from": "earliest"}) as events:
        first = events.records(4)
    with listening(running, topic, {"Last-Event-ID": first[-1]["id"]}) as events:
        rest = events.records(5)
    places = [(one["data"]["partition"], one["data"]["offset"]) for one in first + rest]
    assert sorted(places) == [(p, o) for p in range(3) for o in range(3)]


def test_a_stream_begins_at_the_given_offsets_and_partitions(running: Proxy, node: Node) -> None:
    topic = create_topic(node, partitions=2)
    produce(node, topic, values("a", "b", "c"), partition=0)
    produce(node, topic, values("d", "e", "f"), partition=1)
    with listening(running, topic, offsets="1:1", partitions="1") as events:
        assert events.values(2) == ["e", "f"]


def test_a_stream_begins_at_the_given_time(running: Proxy, node: Node) -> None:
    topic = create_topic(node, retention_ms=-1)
    sent = [Sent(text, timestamp=stamp) for text, stamp in ((b"old", 1_000), (b"new", 5_000))]
    produce(node, topic, sent)
    with listening(running, topic, **{"from": "1970-01-01T00:00:02Z"}) as events:
        assert events.values(1) == ["new"]
    with listening(running, topic, **{"from": "9000"}) as events:
        produce(node, topic, values("newest"))
        assert events.values(1) == ["newest"]


def test_a_client_that_was_behind_joins_the_tail_without_a_gap(running: Proxy, node: Node) -> None:
    topic = create_topic(node)
    produce(node, topic, values(*map(str, range(50))))
    with (
        listening(running, topic, **{"from": "earliest"}) as behind,
        listening(running, topic) as ahead,
    ):
        first = behind.values(50)
        for number in range(50, 100):
            produce(node, topic, values(str(number)))
        assert first + behind.values(50) == list(map(str, range(100)))
        assert ahead.values(50) == list(map(str, range(50, 100)))


def test_a_filter_passes_only_matching_records(running: Proxy, node: Node) -> None:
    topic = create_topic(node)
    wanted = 'value.n > 2 && headers.region == "eu" && key.startsWith("a")'
    with listening(running, topic, format="json", filter=wanted, key_format="string") as events:
        eu, us = (("region", b"eu"),), (("region", b"us"),)
        produce(
            node,
            topic,
            [
                Sent(b'{"n":1}', key=b"a1", headers=eu),
                Sent(b'{"n":3}', key=b"a2", headers=us),
                Sent(b'{"n":\n 3}', key=b"a3", headers=eu),
                Sent(b'{"n":4}', key=b"b4", headers=eu),
                Sent(b"no json", key=b"a5", headers=eu),
                Sent(b'{"m":4}', key=b"a6", headers=eu),
                Sent(b'{"n":9}', key=b"a7", headers=eu),
            ],
        )
        assert [one["data"]["key"] for one in events.records(2)] == ["a3", "a7"]


def test_the_position_advances_past_filtered_records(running: Proxy, node: Node) -> None:
    topic = create_topic(node)
    with listening(running, topic, filter='value == "x"') as events:
        produce(node, topic, values("a", "b"))
        event = events.next()
    assert event == {"id": "0:2"}


def test_a_record_without_json_is_reported_and_does_not_block_others(
    running: Proxy, node: Node
) -> None:
    topic = create_topic(node)
    with listening(running, topic, format="json") as events:
        produce(node, topic, [Sent(b"{"), Sent(b"1")])
        wrong, right = events.records(2)
    assert wrong["data"]["error"].startswith("the value cannot be shown")
    assert right["data"]["value"] == 1


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ("filter=value.a ==", 400, "Syntax error"),
        ("filter=price > 2", 400, "'price'"),
        ("filter=value.all(x, true)", 400, "all()"),
        ("form=json", 400, "'form'"),
        ("format=xml", 400, "binary, json"),
        ("from=yesterday", 400, "earliest, latest"),
        ("offsets=1", 400, "PARTITION:OFFSET"),
        ("offsets=7:1", 404, "Partition not found."),
        ("partitions=7", 404, "Partition not found."),
        ("group=g&offsets=0:1", 400, "not allowed with a group"),
        ("group=g&ack=client", 400, "requires a WebSocket"),
        ("format=avro", 422, "--registry URL"),
    ],
)
def test_invalid_parameters_are_reported_before_the_stream_begins(
    running: Proxy, node: Node, topic: str, query: str, status: int, words: str
) -> None:
    parameters = dict(part.split("=", 1) for part in query.split("&"))
    answer = httpx2.get(f"{running.url}/topics/{topic}/stream", params=parameters, timeout=30)
    assert (answer.status_code, words in answer.json()["message"]) == (status, True), answer.text


def test_a_topic_that_is_missing_is_not_found_and_not_made(running: Proxy, node: Node) -> None:
    name = unique_name()
    answer = httpx2.get(f"{running.url}/topics/{name}/stream", timeout=30)
    assert (answer.status_code, answer.json()["error_code"]) == (404, 40401)
    assert name not in admin(node).list_topics(timeout=SECONDS_MAX).topics


def test_curl_shows_events_as_they_come(running: Proxy, node: Node) -> None:
    topic = create_topic(node)
    produce(node, topic, values("one"))
    url = f"{running.url}/topics/{topic}/stream?format=string&from=earliest"
    with subprocess.Popen(["curl", "-sN", "-m", "30", url], stdout=subprocess.PIPE) as curl:
        assert curl.stdout is not None
        lines = [curl.stdout.readline() for _ in range(4)]
        curl.terminate()
    assert lines[:3] == [b":\n", b"\n", b"id: 0:1\n"]
    assert json.loads(lines[3].removeprefix(b"data: "))["value"] == "one"


def test_a_group_continues_after_the_delivered_records(running: Proxy, node: Node) -> None:
    topic, group = create_topic(node), unique_name("group")
    produce(node, topic, values("a", "b", "c"))
    with listening(running, topic, group=group, **{"from": "earliest"}) as events:
        assert events.values(3) == ["a", "b", "c"]
        eventually(lambda: committed(node, group, topic), expect=lambda offset: offset == 3)
    produce(node, topic, values("d"))
    with listening(running, topic, group=group) as events:
        assert events.values(1) == ["d"]


def owners(node: Node, group: str) -> int:
    """The number of a group's members that have a partition."""
    client = admin(node)
    (described,) = client.describe_consumer_groups([group]).values()
    members = described.result(SECONDS_MAX).members
    return sum(bool(member.assignment.topic_partitions) for member in members)


def test_members_of_a_group_share_the_partitions(running: Proxy, node: Node) -> None:
    topic, group = create_topic(node, partitions=2), unique_name("group")
    start = {"group": group, "from": "earliest"}
    with listening(running, topic, **start) as one, listening(running, topic, **start) as other:
        eventually(lambda: owners(node, group) == 2)
        for partition in range(2):
            produce(node, topic, values("x"), partition=partition)
        found = [events.records(1)[0]["data"]["partition"] for events in (one, other)]
    assert sorted(found) == [0, 1]


def test_a_socket_gets_records_as_messages(running: Proxy, node: Node) -> None:
    """RST-6"""
    topic = create_topic(node)
    produce(node, topic, values("a", "b"))
    with connected(running, topic, **{"from": "earliest"}) as socket:
        assert [one["value"] for one in received(socket, 2)] == ["a", "b"]
        produce(node, topic, values("c"))
        assert [one["value"] for one in received(socket, 1)] == ["c"]


def test_only_acknowledged_records_are_committed(running: Proxy, node: Node) -> None:
    """RST-6"""
    topic, group = create_topic(node), unique_name("group")
    produce(node, topic, values("a", "b", "c"))
    start = {"group": group, "ack": "client", "from": "earliest"}
    with connected(running, topic, **start) as socket:
        acknowledge(socket, received(socket, 3)[1])
        eventually(lambda: committed(node, group, topic), expect=lambda offset: offset == 2)
    with connected(running, topic, **start) as socket:
        assert [one["value"] for one in received(socket, 1)] == ["c"]


def test_nothing_more_is_sent_while_too_much_is_unacknowledged(running: Proxy, node: Node) -> None:
    topic, group = create_topic(node), unique_name("group")
    produce(node, topic, values(*map(str, range(8))))
    with connected(running, topic, group=group, ack="client", **{"from": "earliest"}) as socket:
        first = received(socket, 5)
        with pytest.raises(TimeoutError):
            socket.recv(0.5)
        acknowledge(socket, first[-1])
        assert [one["value"] for one in received(socket, 3)] == ["5", "6", "7"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"type":"ack","partition":0,"offset":99}', "was not sent"),
        ('{"type":"ack","partition":5,"offset":0}', "was not sent"),
        ("hello", "not an acknowledgement"),
        ('{"type":"ack"}', "not an acknowledgement"),
    ],
)
def test_a_wrong_acknowledgement_ends_the_stream_with_a_reason(
    running: Proxy, node: Node, text: str, words: str
) -> None:
    topic = create_topic(node)
    produce(node, topic, values("a"))
    start = {"group": unique_name("group"), "ack": "client", "from": "earliest"}
    with connected(running, topic, **start) as socket:
        received(socket, 1)
        socket.send(text)
        last = until_end(socket)
    assert (last["type"], words in last["message"]) == ("end", True), last


def test_a_client_that_never_acknowledges_is_dropped_with_the_reason(
    running: Proxy, node: Node
) -> None:
    topic = create_topic(node)
    produce(node, topic, values(*"abcdefgh"))
    start = {"group": unique_name("group"), "ack": "client", "from": "earliest"}
    with connected(running, topic, **start) as socket:
        last = until_end(socket)
    assert "nothing was acknowledged for 3 seconds" in last["message"]


def test_a_socket_is_refused_with_the_reason(running: Proxy, node: Node, topic: str) -> None:
    with pytest.raises(InvalidStatus) as refused, connected(running, topic, filter="x =="):
        pass
    answer = refused.value.response
    assert (answer.status_code, b"filter" in (answer.body or b"")) == (400, True)


def test_pages_of_other_sites_open_no_socket(running: Proxy, node: Node, topic: str) -> None:
    url = f"{running.url.replace('http', 'ws', 1)}/topics/{topic}/stream"
    foreign = {"Origin": "https://example.com"}
    with pytest.raises(InvalidStatus) as refused, connect(url, additional_headers=foreign):
        pass
    assert refused.value.response.status_code == 403


def test_streams_and_sockets_require_credentials(node: Node, tmp_path: Path) -> None:
    topic = create_topic(node)
    produce(node, topic, values("a"))
    users, tokens = tmp_path / "users", tmp_path / "tokens"
    users.write_text(f"ada:{PasswordHash.of('s3cret')}\n")
    tokens.write_text("a-token-of-some-length\n")
    options = ["--user-file", str(users), "--token-file", str(tokens)]
    with proxy(node.address, tmp_path / "proxy.log", options) as found:
        path = f"/topics/{topic}/stream?from=earliest"
        basic = {"Authorization": f"Basic {base64.b64encode(b'ada:s3cret').decode()}"}
        bearer = {"Authorization": "Bearer a-token-of-some-length"}
        url = found.url.replace("http", "ws", 1) + path
        assert httpx2.get(found.url + path).status_code == 401
        with pytest.raises(InvalidStatus) as refused, connect(url):
            pass
        assert refused.value.response.status_code in (401, 403)
        for headers in (basic, bearer):
            with listening(found, topic, headers, **{"from": "earliest"}) as events:
                assert events.values(1) == ["a"]
            with connect(url, additional_headers=headers) as socket:
                assert received(socket, 1)[0]["offset"] == 0


def test_a_client_that_does_not_read_is_dropped_and_others_are_not(
    running: Proxy, node: Node
) -> None:
    topic = create_topic(node)
    with silent(running, topic) as deaf, listening(running, topic) as events:
        big = "x" * 50_000
        for _ in range(8):
            produce(node, topic, values(*[big] * 50))
            assert events.values(50) == [big] * 50
        eventually(lambda: "the client has read nothing" in running.log.read_text())
        deaf.settimeout(SECONDS_MAX)
        assert ends(deaf)


@contextmanager
def silent(running: Proxy, topic: str) -> Iterator[socket.socket]:
    """A client that asks and then reads nothing."""
    place = urlsplit(running.url)
    with socket.socket() as found:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        found.connect((place.hostname, place.port))
        found.sendall(f"GET /topics/{topic}/stream HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        yield found


def test_a_client_that_the_ring_overtook_reads_on_without_a_gap(running: Proxy, node: Node) -> None:
    """RST-6: the shared ring holds but a few of these records, so this client needs its own."""
    topic, count = create_topic(node), 300
    with silent(running, topic) as slow:
        slow.settimeout(SECONDS_MAX)
        assert slow.recv(4096)  # It listens before the first record comes.
        produce(node, topic, numbered(count, size=20_000))
        seen: list[bytes] = []
        rest = b""
        while len(seen) < count:
            *lines, rest = (rest + slow.recv(1 << 16)).split(b"\n")
            seen += [line for line in lines if line.startswith(b"id: ")]
    assert seen == [b"id: 0:%d" % number for number in range(1, count + 1)]


def test_memory_does_not_grow_with_clients_that_read_nothing(node: Node, tmp_path: Path) -> None:
    """RST-6: 150 clients times 10 MB would be 1.5 GB; each may hold a piece or two."""
    topic, big = create_topic(node), "x" * 10_000
    with proxy(node.address, tmp_path / "proxy.log") as found, ExitStack() as clients:
        deaf = [clients.enter_context(silent(found, topic)) for _ in range(150)]
        for one in deaf:
            one.settimeout(SECONDS_MAX)
            assert one.recv(1)  # It listens before the first record comes.
        before = resident_bytes(found)
        with listening(found, topic) as events:
            for _ in range(10):
                produce(node, topic, values(*[big] * 100))
                assert events.values(100) == [big] * 100
        assert resident_bytes(found) - before < 120 << 20


def test_a_record_that_is_larger_than_a_piece_comes_whole(running: Proxy, node: Node) -> None:
    topic, large = create_topic(node), "y" * 300_000
    with listening(running, topic) as events:
        produce(node, topic, values("a", large, "b"))
        assert events.values(3) == ["a", large, "b"]


def resident_bytes(running: Proxy) -> int:
    pages = int(Path(f"/proc/{running.pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def ends(deaf: socket.socket) -> bool:
    """Return whether a connection ends, orderly or by a reset."""
    try:
        while deaf.recv(1 << 20):
            pass
    except ConnectionResetError:
        pass
    return True


def test_clients_receive_an_event_when_the_proxy_stops(node: Node, tmp_path: Path) -> None:
    topic = create_topic(node)
    with (
        proxy(node.address, tmp_path / "proxy.log") as found,
        listening(found, topic) as events,
        connected(found, topic) as socket,
    ):
        found.process.terminate()
        event = events.next()
        assert found.process.wait(SECONDS_MAX) == 0
        with pytest.raises(ConnectionClosed):
            received(socket, 1)
    assert (event["event"], event["data"]["error_code"]) == ("end", 50302)


def test_a_client_may_process_each_record_slowly(running: Proxy, node: Node) -> None:
    """A member that waits for acknowledgements stays in the group, and its commits count."""
    topic, group = create_topic(node), unique_name("group")
    produce(node, topic, values(*map(str, range(12))))
    with connected(running, topic, group=group, ack="client", **{"from": "earliest"}) as socket:
        records = received(socket, 5)
        acknowledge(socket, records[1])
        records += received(socket, 2)
        eventually(lambda: committed(node, group, topic), expect=lambda offset: offset == 2)
        acknowledge(socket, records[-1])
        assert [one["value"] for one in received(socket, 5)] == ["7", "8", "9", "10", "11"]


def test_avro_is_shown_by_the_schemas_of_the_registry(node: Node, tmp_path: Path) -> None:
    topic = create_topic(node)
    schema = '{"type":"record","name":"R","fields":[{"name":"n","type":"int"}]}'
    body = {"value_schema": schema, "records": [{"value": {"n": 7}}, {"value": {"n": 8}}]}
    with (
        registry(node.address, tmp_path / "registry.log") as schemas,
        proxy(node.address, tmp_path / "proxy.log", ["--registry", schemas.url]) as found,
    ):
        type = {"Content-Type": "application/vnd.kafka.avro.v2+json"}
        url = f"{found.url}/topics/{topic}"
        sent = httpx2.post(url, content=json.dumps(body), headers=type, timeout=SECONDS_MAX)
        assert sent.status_code == 200, sent.text
        start = {"from": "earliest", "format": "avro", "key_format": "binary"}
        with listening(found, topic, filter="value.n > 7", **start) as events:
            assert events.values(1) == [{"n": 8}]


def test_a_stream_lasts_as_long_as_it_may(node: Node, tmp_path: Path, topic: str) -> None:
    options = ["--set", "streaming.connection.max.duration.ms=200"]
    with proxy(node.address, tmp_path / "proxy.log", options) as found:
        answer = httpx2.get(f"{found.url}/topics/{topic}/stream", timeout=SECONDS_MAX)
        with connected(found, topic) as socket:
            last = until_end(socket)
    assert (answer.status_code, answer.text[:3]) == (200, ":\n\n")
    assert (last["type"], last["error_code"]) == ("end", 50303)


def test_unacknowledged_records_come_again_after_the_proxy_is_killed(
    node: Node, tmp_path: Path
) -> None:
    """RST-6"""
    topic, group = create_topic(node), unique_name("group")
    texts = [str(number) for number in range(200)]
    produce(node, topic, values(*texts))
    start = {"group": group, "ack": "client", "from": "earliest"}
    options = ["--set", "consumer.session.timeout.ms=6000"]
    seen: list[str] = []
    for round in range(3):
        with (
            proxy(node.address, tmp_path / f"{round}.log", options) as found,
            connected(found, topic, **start) as socket,
        ):
            for record in received(socket, 60):
                seen.append(record["value"])
                acknowledge(socket, record)
            found.process.kill()
            found.process.wait()
    with (
        proxy(node.address, tmp_path / "last.log", options) as found,
        connected(found, topic, **start) as socket,
    ):
        while set(seen) != set(texts):
            record = received(socket, 1)[0]
            seen.append(record["value"])
            acknowledge(socket, record)
    assert sorted(set(seen), key=int) == texts
