"""Records as text and back."""

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.cli.record_text import formatter, parse_json_record, record_json, unescape
from headrace.errors import HeadraceError


class Incoming(NamedTuple):
    """A record with the methods of confluent-kafka's messages."""

    its_key: bytes | None = b"ada"
    its_value: bytes | None = b"42"
    its_headers: list[tuple[str, bytes | None]] | None = None

    def topic(self) -> str:
        return "orders"

    def partition(self) -> int:
        return 3

    def offset(self) -> int:
        return 42

    def timestamp(self) -> tuple[int, int]:
        return 1, 1_767_225_600_000

    def key(self) -> bytes | None:
        return self.its_key

    def value(self) -> bytes | None:
        return self.its_value

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        return self.its_headers


RECORD = Incoming(its_headers=[("source", b"shell"), ("empty", None)])


def test_a_template_shows_every_part_of_a_record() -> None:
    """LOG-2: a read record shows topic, partition, offset, timestamp, headers."""
    template = r"%t %p %o %T %D %k %K %v %V %h %%\n"
    assert formatter(template)(RECORD) == (
        b"orders 3 42 1767225600000 2026-01-01T00:00:00.000Z ada 3 42 2 source=shell,empty=NULL %\n"
    )


def test_null_is_empty_text_of_size_minus_one() -> None:
    record = Incoming(None, None)
    assert formatter("[%k %K][%v %V]")(record) == b"[ -1][ -1]"


def test_text_around_placeholders_is_kept_as_it_is() -> None:
    assert formatter("100%%d %v")(RECORD) == b"100%d 42"
    assert formatter("plain")(RECORD) == b"plain"
    assert formatter("%h")(Incoming()) == b""


def test_an_unknown_placeholder_is_refused_by_name() -> None:
    with pytest.raises(HeadraceError, match="%z is not a placeholder"):
        formatter("%v %z")


def test_escapes_are_replaced_by_their_characters() -> None:
    assert unescape(r"\t\n\x1f\\n") == "\t\n\x1f\\n"


def test_json_carries_everything() -> None:
    assert record_json(RECORD) == (
        b'{"topic":"orders","partition":3,"offset":42,"timestamp":1767225600000,'
        b'"key":"ada","value":"42","headers":[["source","shell"],["empty",null]]}'
    )


content = st.none() | st.binary(max_size=12)


@given(
    key=content,
    value=content,
    headers=st.lists(st.tuples(st.text(max_size=5), content), max_size=3),
)
def test_produce_reads_the_output_of_consume(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]
) -> None:
    record = Incoming(key, value, headers or None)
    parsed = parse_json_record(record_json(record))
    assert (parsed.key, parsed.value, list(parsed.headers)) == (key, value, headers)
    assert (parsed.timestamp_ms, parsed.partition) == (1_767_225_600_000, 3)


def test_a_json_value_that_is_no_text_is_sent_as_json() -> None:
    assert parse_json_record(b'{"value": {"amount": 3}}').value == b'{"amount":3}'


@pytest.mark.parametrize(
    "line", [b"", b"plain text", b'{"velue": 1}', b'{"value": {"base64": "no!"}}', b"[]"]
)
def test_an_invalid_json_record_is_rejected(line: bytes) -> None:
    with pytest.raises(HeadraceError, match="not a JSON record"):
        parse_json_record(line)
