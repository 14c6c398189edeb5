"""Events as bytes."""

import asyncio

from confluent_kafka import Message
from starlette.types import Message as Sent

from headrace.http.server import ABORT_KEY, UNSENT_KEY
from headrace.rest.errors import topic_not_found
from headrace.rest.formats import Format
from headrace.rest.push.entries import Entry
from headrace.rest.push.events import EventStream, end, event, heartbeat, parts
from headrace.rest.push.hub import Hub
from headrace.rest.push.requested import Formats, StreamRequest
from headrace.rest.schemas import Schemas
from headrace.rest.settings import RestSettings

STRINGS = Formats(Format.STRING, Format.STRING)


def test_an_event_is_an_id_and_one_line_of_data() -> None:
    formats = Formats(Format.JSON, Format.JSON)
    entry = Entry(Message(topic="t", partition=0, offset=4, value=b"1", timestamp=(1, 5)))
    entry.keep_shown(formats, b'{"value":1}')
    assert event(entry, formats, "0:5") == b'id: 0:5\ndata: {"value":1}\n\n'


def test_a_heartbeat_moves_the_position_only_where_it_has_moved() -> None:
    assert [heartbeat("0:5", "0:5"), heartbeat("0:6", "0:5")] == [b":\n\n", b"id: 0:6\n\n"]


def test_the_last_event_says_what_ended_the_stream() -> None:
    found = end(topic_not_found())
    assert found == b'event: end\ndata: {"error_code":40401,"message":"Topic not found."}\n\n'


def test_a_large_event_is_the_same_in_parts_of_bounded_size() -> None:
    entry = Entry(Message(topic="t", partition=0, offset=4, value=b"1", timestamp=(1, 5)))
    entry.keep_shown(STRINGS, b"x" * 200_000)
    found = list(parts(entry, STRINGS, "0:5"))
    assert (b"".join(found), max(map(len, found))) == (event(entry, STRINGS, "0:5"), 65_536)


class Counting:
    """A feed that always has a record, and counts how often it is asked."""

    def __init__(self, size: int) -> None:
        self.asked = 0
        self.delivered_count = 0
        self._size = size

    async def next(self, timeout_s: float) -> list[tuple[Entry, str]]:
        self.asked += 1
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
    """Takes what is sent until it has so much, then nothing, as a server does for a deaf client."""

    def __init__(self, high_water: int) -> None:
        self.held = b""
        self.is_full = asyncio.Event()
        self._high_water = high_water

    async def receive(self) -> Sent:
        await asyncio.Event().wait()
        raise AssertionError("the client never says anything")

    async def send(self, message: Sent) -> None:
        if len(self.held) > self._high_water:
            self.is_full.set()
            await asyncio.Event().wait()
        self.held += message.get("body", b"")


async def stalled(feed: Counting, connection: Connection) -> None:
    """A stream up to where its client takes nothing any more."""
    settings = RestSettings(push_stall_ms=1)
    hub = Hub(settings)
    request = StreamRequest(topic="t", formats=STRINGS)
    stream = EventStream(feed, request, Schemas(settings), hub, settings)
    serving = asyncio.create_task(stream({"state": {}}, connection.receive, connection.send))
    await connection.is_full.wait()
    serving.cancel()
    await asyncio.wait({serving})


async def test_nothing_more_is_read_for_a_client_before_it_has_taken_the_last_piece() -> None:
    feed = Counting(size=10)
    await stalled(feed, Connection(high_water=50))
    assert feed.asked == 1


async def test_a_connection_holds_but_a_part_of_a_large_record() -> None:
    connection = Connection(high_water=1_000)
    await stalled(Counting(size=1_000_000), connection)
    assert len(connection.held) < 66_000


class Held:
    """What a connection holds of which the system takes nothing, until it is asked so often."""

    def __init__(self, looks: int) -> None:
        self.looks = looks
        self.is_aborted = asyncio.Event()

    def unsent(self) -> int:
        self.looks -= 1
        return max(0, self.looks)


async def first_piece(held: Held, feed: Counting, group: str | None, stall_ms: int) -> None:
    """A stream up to its second piece, or to where its client is dropped."""
    settings = RestSettings(push_stall_ms=stall_ms)
    request = StreamRequest(topic="t", formats=STRINGS, group=group)
    hub = Hub(settings)
    stream = EventStream(feed, request, Schemas(settings), hub, settings)
    connection = Connection(high_water=1_000_000)
    state = {UNSENT_KEY: held.unsent, ABORT_KEY: held.is_aborted.set}
    serving = asyncio.create_task(stream({"state": state}, connection.receive, connection.send))
    async with asyncio.timeout(30):
        while feed.asked < 2 and not held.is_aborted.is_set():
            await asyncio.sleep(0)
    serving.cancel()
    await asyncio.wait({serving})


async def test_what_a_connection_only_holds_is_not_delivered_to_a_group() -> None:
    held, feed = Held(looks=1_000_000), Counting(size=10)
    await first_piece(held, feed, group="g", stall_ms=20)
    assert (feed.asked, feed.delivered_count, held.is_aborted.is_set()) == (1, 0, True)


async def test_what_the_system_has_taken_is_delivered_to_a_group() -> None:
    held, feed = Held(looks=3), Counting(size=10)
    await first_piece(held, feed, group="g", stall_ms=30_000)
    assert (feed.delivered_count >= 1, held.is_aborted.is_set()) == (True, False)


async def test_who_keeps_its_own_position_is_not_waited_for() -> None:
    held, feed = Held(looks=1_000_000), Counting(size=10)
    await first_piece(held, feed, group=None, stall_ms=30_000)
    assert (feed.delivered_count >= 1, held.looks) == (True, 1_000_000)
