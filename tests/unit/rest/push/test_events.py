"""Events as bytes."""

import asyncio
from collections.abc import Mapping

from confluent_kafka import Message
from starlette.types import Message as Sent

from headrace.http.server import ABORT_KEY, UNSENT_KEY
from headrace.http.streams import PART_BYTES, event
from headrace.rest.errors import topic_not_found
from headrace.rest.formats import Format
from headrace.rest.push.delivering import Pieces
from headrace.rest.push.entries import Entry
from headrace.rest.push.events import end, events, heartbeat
from headrace.rest.push.hub import Hub
from headrace.rest.push.requested import Formats, StreamRequest
from headrace.rest.schemas import Schemas
from headrace.rest.settings import RestSettings

STRINGS = Formats(Format.STRING, Format.STRING)
LAST = b"event: end\ndata: {}\n\n"


def test_an_event_is_an_id_and_one_line_of_data() -> None:
    formats = Formats(Format.JSON, Format.JSON)
    entry = Entry(Message(topic="t", partition=0, offset=4, value=b"1", timestamp=(1, 5)))
    entry.keep_shown(formats, b'{"value":1}')
    assert event(entry.shown(formats), "0:5") == b'id: 0:5\ndata: {"value":1}\n\n'


def test_a_heartbeat_has_the_position_if_it_has_changed() -> None:
    assert [heartbeat("0:5", "0:5"), heartbeat("0:6", "0:5")] == [b":\n\n", b"id: 0:6\n\n"]


def test_the_last_event_has_the_reason_for_the_end() -> None:
    found = end(topic_not_found())
    assert found == b'event: end\ndata: {"error_code":40401,"message":"Topic not found."}\n\n'


class Counting:
    """A feed with so many equal records, which counts its reads."""

    def __init__(self, size: int, count: int = 1_000_000) -> None:
        self.asked = 0
        self.delivered_count = 0
        self._size = size
        self._count = count

    async def next(self, timeout_s: float) -> list[tuple[Entry, str]]:
        self.asked += 1
        if self.asked > self._count:
            await asyncio.Event().wait()
        value = b"x" * self._size
        message = Message(topic="t", partition=0, offset=0, value=value, timestamp=(1, 5))
        return [(Entry(message), "0:1")]

    def position(self) -> str:
        return "0:1"

    def delivered(self, partition: int, offset: int) -> None:
        self.delivered_count += 1

    async def idle(self) -> None: ...

    async def close(self) -> None: ...


class Connection:
    """Accepts so many bytes, then no more, like a server whose client does not read."""

    def __init__(self, high_water: int) -> None:
        self.held = b""
        self.sizes: list[int] = []
        self.is_full = asyncio.Event()
        self._high_water = high_water

    async def receive(self) -> Sent:
        await asyncio.Event().wait()
        raise AssertionError("the client never sends a message")

    async def send(self, message: Sent) -> None:
        if len(self.held) > self._high_water:
            self.is_full.set()
            await asyncio.Event().wait()
        body = message.get("body", b"")
        self.held += body
        self.sizes.append(len(body))


class Served:
    """A stream of a feed to a connection."""

    def __init__(
        self,
        feed: Counting,
        connection: Connection,
        *,
        group: str | None = None,
        stall_ms: int = 1,
        state: Mapping[str, object] | None = None,
    ) -> None:
        settings = RestSettings(push_stall_ms=stall_ms)
        self.hub = Hub(settings)
        scope = {"state": state or {}}
        request = StreamRequest(topic="t", formats=STRINGS, group=group)
        pieces = Pieces(feed, request, Schemas(settings))
        found = events(scope, feed, pieces, request, settings)
        answer = self.hub.streams.answer(found, last=LAST)
        self.task = asyncio.create_task(answer(scope, connection.receive, connection.send))

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.wait({self.task}, timeout=30)
        assert self.task.done()


async def stalled(feed: Counting, connection: Connection) -> None:
    """Run a stream until its client reads nothing more."""
    served = Served(feed, connection)
    await connection.is_full.wait()
    await served.end()


async def test_the_feed_is_not_read_until_the_client_has_the_last_piece() -> None:
    feed = Counting(size=10)
    await stalled(feed, Connection(high_water=50))
    assert feed.asked == 1


async def test_a_connection_buffers_only_a_part_of_a_large_record() -> None:
    connection = Connection(high_water=1_000)
    await stalled(Counting(size=1_000_000), connection)
    assert len(connection.held) < 66_000


async def test_a_large_event_is_sent_in_parts_of_bounded_size() -> None:
    connection = Connection(high_water=250_000)
    await stalled(Counting(size=200_000), connection)
    assert connection.held[3:200_000].startswith(b"id: 0:1\ndata: {")
    assert max(connection.sizes) == PART_BYTES


async def test_a_stopped_stream_ends_with_the_last_event() -> None:
    connection = Connection(high_water=1_000_000)
    served = Served(Counting(size=10, count=1), connection)
    async with asyncio.timeout(30):
        while b"data" not in connection.held:
            await asyncio.sleep(0)
    served.hub.streams.stop()
    await served.task
    assert connection.held.endswith(LAST)


async def test_a_truncated_event_is_not_followed_by_the_last_event() -> None:
    connection = Connection(high_water=1_000)
    served = Served(Counting(size=1_000_000), connection, stall_ms=30_000)
    await connection.is_full.wait()
    served.hub.streams.stop()
    await served.hub.streams.ended(30)
    await served.end()
    assert LAST not in connection.held


class Held:
    """Unsent bytes of a connection, which the system accepts after so many looks."""

    def __init__(self, looks: int) -> None:
        self.looks = looks
        self.is_aborted = asyncio.Event()

    def unsent(self) -> int:
        self.looks -= 1
        return max(0, self.looks)


async def first_piece(held: Held, feed: Counting, group: str | None, stall_ms: int) -> None:
    """Run a stream up to its second piece, or until its client is disconnected."""
    connection = Connection(high_water=1_000_000)
    state = {UNSENT_KEY: held.unsent, ABORT_KEY: held.is_aborted.set}
    served = Served(feed, connection, group=group, stall_ms=stall_ms, state=state)
    async with asyncio.timeout(30):
        while feed.asked < 2 and not held.is_aborted.is_set():
            await asyncio.sleep(0)
    await served.end()


async def test_unsent_bytes_are_not_delivered_to_a_group() -> None:
    held, feed = Held(looks=1_000_000), Counting(size=10)
    await first_piece(held, feed, group="g", stall_ms=20)
    assert (feed.asked, feed.delivered_count, held.is_aborted.is_set()) == (1, 0, True)


async def test_sent_bytes_are_delivered_to_a_group() -> None:
    held, feed = Held(looks=3), Counting(size=10)
    await first_piece(held, feed, group="g", stall_ms=30_000)
    assert (feed.delivered_count >= 1, held.is_aborted.is_set()) == (True, False)


async def test_a_client_without_a_group_counts_as_delivered_at_once() -> None:
    held, feed = Held(looks=1_000_000), Counting(size=10)
    await first_piece(held, feed, group=None, stall_ms=30_000)
    assert (feed.delivered_count >= 1, held.looks) == (True, 1_000_000)
