"""Parameters of streams."""

import pytest

from headrace.http.errors import HttpError
from headrace.rest.formats import Format
from headrace.rest.push.requested import Formats, Start, parsed


def test_the_default_is_the_tail_in_base64() -> None:
    found = parsed("orders", {}, None, may_acknowledge=False)
    assert (found.is_at_the_tail, found.formats) == (True, Formats(Format.BINARY, Format.BINARY))


def test_keys_may_have_another_form_than_values() -> None:
    found = parsed("orders", {"format": "json", "key_format": "string"}, None, may_acknowledge=True)
    assert found.formats == Formats(Format.STRING, Format.JSON)


def test_the_last_event_id_overrides_offsets() -> None:
    found = parsed("orders", {"offsets": "0:5,1:6"}, "0:9", may_acknowledge=False)
    assert found.offsets == {0: 9, 1: 6}


def test_a_group_ignores_the_last_event_id() -> None:
    found = parsed("orders", {"group": "g"}, "0:9", may_acknowledge=False)
    assert found.offsets == {}


@pytest.mark.parametrize("text", ["1500", "1970-01-01T00:00:01.5Z", "1970-01-01T01:00:01.5+01:00"])
def test_a_time_is_milliseconds_or_iso(text: str) -> None:
    found = parsed("orders", {"from": text}, None, may_acknowledge=False)
    assert (found.start, found.timestamp_ms) == (Start.TIME, 1500)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"from": "2026-03-01T12:00:00"}, "zone"),
        ({"from": "9" * 19}, "time"),
        ({"group": " "}, "group"),
        ({"group": "g", "from": "5"}, "not allowed with a group"),
        ({"ack": "server"}, "client"),
        ({"ack": "client"}, "requires a group"),
        ({"partitions": "0", "offsets": "1:5"}, "partition 1"),
        ({"fornat": "json"}, "'fornat'"),
    ],
)
def test_invalid_parameters_are_rejected_with_the_reason(given: dict[str, str], words: str) -> None:
    with pytest.raises(HttpError) as refused:
        parsed("orders", given, None, may_acknowledge=True)
    assert words in str(refused.value)


@pytest.mark.parametrize("topic", ["..", "a b", "x" * 250, "a\0"])
def test_an_invalid_topic_name_is_rejected(topic: str) -> None:
    with pytest.raises(HttpError):
        parsed(topic, {}, None, may_acknowledge=False)
