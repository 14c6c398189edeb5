"""Records as text and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.cli.record_text import (
    formatter,
    parse_json_record,
    record_json,
    unescape,
)
from headrace.client.records import ReadRecord
from headrace.errors import HeadraceError

RECORD = ReadRecord(
    topic="orders",
    partition=3,
    offset=42,
    timestamp_ms=1_767_225_600_000,
    key=b"ada",
    value=b"42",
    headers=[("source", b"shell"), ("empty", None)],
)


def test_a_template_shows_every_part_of_a_record() -> None:
    """LOG-2: a read record shows topic, partition, offset, timestamp, headers."""
    template = r"%t %p %o %T %D %k %K %v %V %h %%\n"
    assert formatter(template)(RECORD) == (
        b"orders 3 42 1767225600000 2026-01-01T00:00:00.000Z ada 3 42 2 source=shell,empty=NULL %\n"
    )


def test_null_is_empty_text_of_size_minus_one() -> None:
    record = RECORD._replace(key=None, value=None)
    assert formatter("[%k %K][%v %V]")(record) == b"[ -1][ -1]"


def test_an_unknown_placeholder_is_refused_by_name() -> None:
    with pytest.raises(HeadraceError, match="%z is no placeholder"):
        formatter("%v %z")


def test_escapes_stand_for_what_a_shell_makes_hard_to_type() -> None:
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
def test_what_consume_writes_produce_reads(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]
) -> None:
    record = RECORD._replace(key=key, value=value, headers=headers)
    parsed = parse_json_record(record_json(record))
    assert (parsed.key, parsed.value, list(parsed.headers)) == (key, value, headers)
    assert (parsed.timestamp_ms, parsed.partition) == (record.timestamp_ms, record.partition)


def test_a_json_value_that_is_no_text_is_sent_as_json() -> None:
    assert parse_json_record(b'{"value": {"amount": 3}}').value == b'{"amount":3}'


@pytest.mark.parametrize(
    "line", [b"", b"plain text", b'{"velue": 1}', b'{"value": {"base64": "no!"}}', b"[]"]
)
def test_what_is_no_json_record_is_refused(line: bytes) -> None:
    with pytest.raises(HeadraceError, match="not a JSON record"):
        parse_json_record(line)
