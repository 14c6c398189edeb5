"""Records as JSON."""

import msgspec
import pytest

from headrace.rest.errors import RestError
from headrace.rest.v3.json_stream import JsonSplitter
from headrace.rest.v3.record_bodies import iso, names, records_of, unknown_field


@pytest.mark.parametrize(
    ("body", "values"),
    [
        (b'{"key":null}', 1),
        (b' \r\n{ "key": null }\t\n', 1),
        (b'{"key":null}{"partition_id":3} {"headers":[]}', 3),
        (b'{"key":null} {"kee":null}', 2),
        (b'{"key":null} 5 "x', 3),
        (b'{"key":null}]', 2),
        (b'{"key":null', 1),
        (b"\xff{}", 1),
    ],
)
def test_a_whole_body_has_the_records_that_it_would_have_as_a_stream(
    body: bytes, values: int
) -> None:
    """A single record is decoded without a search for its end, with the same result."""
    splitter = JsonSplitter()
    cut = [*splitter.feed(body), *splitter.finish()]
    each = [one for value in cut for one in records_of(value)]
    found = records_of(body)
    assert [(one.body, str(one.failure)) for one in found] == [
        (one.body, str(one.failure)) for one in each
    ]
    assert len(found) == values


def test_a_body_of_blanks_is_empty() -> None:
    with pytest.raises(RestError, match="Request body is empty"):
        records_of(b" \n")


def test_a_moment_is_shown_with_its_milliseconds() -> None:
    assert [iso(1_772_366_400_007), iso(0)] == [
        "2026-03-01T12:00:00.007Z",
        "1970-01-01T00:00:00.000Z",
    ]


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    data: int = 0


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    value: Inner | None = None


def error_of(body: bytes) -> msgspec.ValidationError:
    with pytest.raises(msgspec.ValidationError) as failure:
        msgspec.json.decode(body, type=Outer)
    return failure.value


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"valu":{}}', 'Unrecognized field "valu"'),
        (b'{"value":{"id":1}}', 'Unrecognized field "id" - at `$.value`'),
        (b'{"a`b":1}', 'Unrecognized field "a`b"'),
    ],
)
def test_an_unknown_field_is_named_with_its_place(body: bytes, message: str) -> None:
    refusal = unknown_field(error_of(body))
    assert refusal is not None
    assert (refusal.status, str(refusal)) == (400, f"Bad Request: {message}")


def test_other_errors_are_not_about_unknown_fields() -> None:
    assert unknown_field(error_of(b'{"value":{"data":"x"}}')) is None


def test_only_a_field_at_the_top_matches_by_name() -> None:
    found = [names(error_of(body), "id") for body in (b'{"id":1}', b'{"value":{"id":1}}')]
    assert found == [True, False]
