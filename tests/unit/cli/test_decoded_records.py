"""Keys and values of `consume --registry`, decoded by their schemas."""

import msgspec
import pytest

from headrace.cli.consume import record_writer
from headrace.cli.decoded_records import RecordDecoder
from headrace.schema_clients.registry_client import RegisteredSchema, RegistryClient
from headrace.serdes.avro import codec as avro
from headrace.serdes.avro.parsing import parse
from headrace.serdes.protobuf.messages import message_type
from headrace.serdes.protobuf.parsing import parse as parse_proto
from headrace.serdes.wire_format import front_of
from tests.unit.cli.test_record_text import Incoming

AVRO = """{"type": "record", "name": "Order", "fields": [
    {"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"]}]}"""
PROTO = 'syntax = "proto3"; message Order { int64 id = 1; string note = 2; }'
SCHEMAS = {
    1: RegisteredSchema(1, "AVRO", AVRO),
    2: RegisteredSchema(2, "JSON", '{"type": "object"}'),
    3: RegisteredSchema(3, "PROTOBUF", PROTO),
}


class Registry(RegistryClient):
    """A registry with three schemas."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:1")

    def schema(self, id_: int | str, subject: str = "") -> RegisteredSchema | None:
        return SCHEMAS.get(int(id_))


def avro_payload(note: str | None) -> bytes:
    return front_of(1) + avro.encode(parse(AVRO), {"id": 7, "note": note})


def proto_payload() -> bytes:
    kind = message_type(parse_proto(PROTO))
    return front_of(3) + b"\0" + kind.encode({"id": "7", "note": "new"})


@pytest.mark.parametrize(
    ("payload", "document"),
    [
        (avro_payload("new"), {"id": 7, "note": {"string": "new"}}),
        (front_of(2) + b'{"id": 7}', {"id": 7}),
        (proto_payload(), {"id": "7", "note": "new"}),
        (b"plain", "plain"),
        (None, None),
    ],
)
def test_payloads_become_json_by_their_schemas(payload: bytes | None, document: object) -> None:
    """SCH-10"""
    record = Incoming(its_key=payload, its_value=payload)
    (decoded,) = RecordDecoder(Registry()).decoded([record])
    line = record_writer(None, as_json=True)([decoded])
    assert (read := msgspec.json.decode(line))["value"] == document
    assert (read["key"], read["offset"], read["headers"]) == (document, 42, [])


def test_without_json_a_decoded_value_is_a_line() -> None:
    (decoded,) = RecordDecoder(Registry()).decoded([Incoming(its_value=avro_payload(None))])
    assert record_writer(None, as_json=False)([decoded]) == b'{"id":7,"note":null}\n'


def test_an_undecodable_payload_is_unchanged_and_reported_once() -> None:
    reports: list[str] = []
    broken, unknown = front_of(1) + b"\xff", front_of(9) + b"x"
    records = [Incoming(its_value=one) for one in (broken, broken, unknown, unknown)]
    decoded = RecordDecoder(Registry(), reports.append).decoded(records)
    assert [one.value() for one in decoded] == [broken, broken, unknown, unknown]
    assert [text.partition(":")[0] for text in reports] == [
        "records of schema 1 are shown as bytes",
        "the registry has no schema 9; its records are shown as is",
    ]
