"""Events as bytes."""

from confluent_kafka import Message

from headrace.rest.errors import topic_not_found
from headrace.rest.formats import Format
from headrace.rest.push.entries import Entry
from headrace.rest.push.events import end, event, heartbeat
from headrace.rest.push.requested import Formats


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
