"""The codec against an independent one, and at the edges of what it accepts."""

import datetime
from dataclasses import fields as dataclass_fields
from io import BytesIO
from typing import Any
from uuid import UUID

import pytest
from kio.serial import entity_reader, entity_writer

from headrace.protocol.codec import decode, encode
from headrace.protocol.fields import fields_of
from headrace.protocol.message import Message
from headrace.protocol.uuids import ZERO
from tests.messages import CONTROL_RECORDS, REQUESTS, RESPONSES, every_version, kio_class, sample

SAMPLES = 6


@pytest.mark.parametrize(
    ("message", "version"), every_version([*REQUESTS, *RESPONSES, *CONTROL_RECORDS])
)
def test_agrees_with_an_independent_codec(message: type[Message], version: int) -> None:
    """PRD-1, CON-1: every message in every version that Kafka 4.3 advertises."""
    theirs = kio_class(message, version)
    for seed in range(SAMPLES):
        ours = sample(message, version, seed)
        encoded = bytes(encode(ours, version))
        entity, size = entity_reader(theirs)(encoded, 0)
        assert size == len(encoded)
        assert_same(ours, entity, version)
        out = BytesIO()
        entity_writer(theirs)(out, entity)
        assert out.getvalue() == encoded
        assert decode(message, version, encoded) == ours


def assert_same(ours: Any, theirs: Any, version: int) -> None:
    """Field by field, in order; kio's names differ where a unit is part of the type."""
    mine = [field for field in fields_of(type(ours)) if version in field.versions]
    for field, other in zip(mine, dataclass_fields(theirs), strict=True):
        value = getattr(ours, field.name)
        expected = plain(getattr(theirs, other.name), field.kind)
        if field.is_array and value is not None:
            assert expected is not None
            for one, two in zip(value, expected, strict=True):
                assert_same_value(one, plain(two, field.kind), version)
        else:
            assert_same_value(value, expected, version)


def assert_same_value(ours: Any, theirs: Any, version: int) -> None:
    if hasattr(ours, "FIELDS") and theirs is not None:
        assert_same(ours, theirs, version)
    else:
        assert ours == theirs


def plain(value: Any, kind: str) -> Any:
    """kio's richer values as the numbers and bytes of the wire."""
    match value:
        case None if kind == "uuid":
            return ZERO
        case None if kind == "int64":
            return -1
        case UUID():
            return value.bytes
        case datetime.timedelta():
            return round(value.total_seconds() * 1000)
        case datetime.datetime():
            return round(value.timestamp() * 1000)
    return value
