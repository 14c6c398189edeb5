"""Values through a serializer and back, for both clients and all three types."""

import datetime
import decimal
import json
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import pydantic
import pytest
from confluent_kafka import Message
from confluent_kafka.serialization import MessageField, SerializationContext

from headrace.client.serializers import deserialization, serialization
from headrace.schema_clients.deserializer import UnknownSchema
from headrace.schema_clients.plain_values import UnfitObject
from headrace.schema_clients.registry_client import RegistryRefusal
from headrace.schema_clients.serializer import CannotSerialize
from headrace.serdes import (
    AvroDeserializer,
    AvroSerializer,
    JsonSchemaDeserializer,
    JsonSchemaSerializer,
    NewSchema,
    ProtobufDeserializer,
    ProtobufSerializer,
    Reference,
    record_subject,
    topic_record_subject,
)
from headrace.serdes.classes import Wire
from headrace.serdes.payload_errors import CorruptPayload, UnfitValue
from headrace.serdes.schemas import InvalidSchema
from headrace.serdes.subject_strategies import NoSubject
from headrace.serdes.wire_format import UnframedPayload
from tests.builders.registries import RegistryInMemory, guid_of

ORDER = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "com.shop",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "note", "type": ["null", "string"], "default": None},
        ],
    }
)
ORDER_2 = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "com.shop",
        "fields": [
            {"name": "orderId", "type": "double", "aliases": ["id"]},
            {"name": "currency", "type": "string", "default": "EUR"},
        ],
    }
)
JSON_ORDER = json.dumps(
    {
        "title": "Order",
        "type": "object",
        "properties": {"id": {"type": "integer"}},
        "required": ["id"],
    }
)
PROTO_ORDER = """
syntax = "proto3"; package shop;
message Line { string sku = 1; }
message Order { int64 id = 1; repeated Line lines = 2; message Note { string text = 1; } }
"""


@pytest.fixture
def registry() -> RegistryInMemory:
    return RegistryInMemory()


def value_in(topic: str, headers: Any = None) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE, headers)


def test_a_value_goes_there_and_back(registry: RegistryInMemory) -> None:
    """SCH-9: a payload contains only the id of its schema."""
    payload = AvroSerializer(registry, ORDER)({"id": 7, "note": "soon"}, value_in("orders"))
    assert payload == b"\0\0\0\0\x01" + b"\x0e" + b"\x02\x08soon"
    assert AvroDeserializer(registry)(payload, value_in("orders")) == {"id": 7, "note": "soon"}


def test_our_own_client_is_served_by_topic_and_value(registry: RegistryInMemory) -> None:
    serializer, deserializer = AvroSerializer(registry, '"string"'), AvroDeserializer(registry)
    payload = serializer.of_values("orders", "hello")
    assert payload == serializer.of_keys("orders", "hello")
    assert deserializer.of_values("orders", payload) == "hello"
    assert deserializer.of_keys("orders", payload) == "hello"


def test_null_is_null(registry: RegistryInMemory) -> None:
    serializer, deserializer = AvroSerializer(registry, ORDER), AvroDeserializer(registry)
    assert serializer(None, value_in("orders")) is None
    assert serializer.of_values("orders", None) is None
    assert deserializer(None, value_in("orders")) is None


def test_a_registry_is_queried_once_per_topic_and_per_id(registry: RegistryInMemory) -> None:
    """SCH-9: both sides cache schemas and ids."""
    serializer, deserializer = AvroSerializer(registry, ORDER), AvroDeserializer(registry)
    for number in range(100):
        payload = serializer({"id": number}, value_in("orders"))
        assert deserializer(payload, value_in("orders")) == {"id": number, "note": None}
    assert registry.asked == 2


def test_keys_and_values_have_subjects_of_their_own(registry: RegistryInMemory) -> None:
    """SCH-9"""
    serializer = AvroSerializer(registry, ORDER)
    serializer({"id": 1}, value_in("orders"))
    serializer({"id": 1}, SerializationContext("orders", MessageField.KEY))
    assert registry.latest("orders-value").text == registry.latest("orders-key").text == ORDER


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [(record_subject, "com.shop.Order"), (topic_record_subject, "orders-com.shop.Order")],
)
def test_a_subject_may_be_made_of_the_records_name(
    registry: RegistryInMemory, strategy: Any, subject: str
) -> None:
    AvroSerializer(registry, ORDER, subject_name=strategy)({"id": 1}, value_in("orders"))
    assert registry.latest(subject).text == ORDER


def test_a_schema_without_a_name_makes_no_such_subject(registry: RegistryInMemory) -> None:
    serializer = AvroSerializer(registry, '"string"', subject_name=record_subject)
    with pytest.raises(NoSubject, match="give an Avro record a name"):
        serializer("hello", value_in("orders"))


def test_a_serializer_that_may_not_register_needs_a_registered_schema(
    registry: RegistryInMemory,
) -> None:
    serializer = AvroSerializer(registry, ORDER, registers=False)
    with pytest.raises(RegistryRefusal, match="Schema not found"):
        serializer({"id": 1}, value_in("orders"))
    AvroSerializer(registry, ORDER)({"id": 1}, value_in("orders"))
    assert serializer({"id": 1}, value_in("orders")) is not None


def test_without_a_schema_the_newest_of_the_subject_is_used(registry: RegistryInMemory) -> None:
    registry.register("orders-value", NewSchema(ORDER))
    serializer = AvroSerializer(registry)
    assert serializer({"id": 1}, value_in("orders")) == b"\0\0\0\0\x01" + b"\x02\x00"
    registry.register("orders-value", NewSchema(ORDER_2))
    payload = serializer({"orderId": 1.0}, value_in("orders"))
    assert payload is not None
    assert payload[4] == 2


def test_a_readers_schema_projects_values_of_another_schema(
    registry: RegistryInMemory,
) -> None:
    """SCH-10: an alias, a wider type, a default, and a field that is not wanted."""
    payload = AvroSerializer(registry, ORDER)({"id": 7, "note": "x"}, value_in("orders"))
    read = AvroDeserializer(registry, ORDER_2)(payload, value_in("orders"))
    assert read == {"orderId": 7.0, "currency": "EUR"}


def test_the_newest_schema_may_be_the_readers(registry: RegistryInMemory) -> None:
    """SCH-10"""
    payload = AvroSerializer(registry, ORDER)({"id": 7}, value_in("orders"))
    registry.register("orders-value", NewSchema(ORDER_2))
    deserializer = AvroDeserializer(registry, reads_latest=True)
    assert deserializer(payload, value_in("orders")) == {"orderId": 7.0, "currency": "EUR"}


@pytest.mark.parametrize("headers", [[], {}])
def test_the_id_may_travel_in_a_header(registry: RegistryInMemory, headers: Any) -> None:
    serializer = AvroSerializer(registry, '"string"', id_in_header=True)
    payload = serializer("hi", value_in("orders", headers))
    assert payload == b"\x04hi"
    content = b"\x01" + bytes(15) + b"\x01"
    assert dict(headers) == {"__value_schema_id": content}
    assert guid_of(1).endswith("01")
    assert AvroDeserializer(registry)(payload, value_in("orders", headers)) == "hi"


def test_ids_in_headers_need_headers(registry: RegistryInMemory) -> None:
    serializer = AvroSerializer(registry, '"string"', id_in_header=True)
    with pytest.raises(CannotSerialize, match=r"headers=\[\]"):
        serializer("hi", value_in("orders"))
    with pytest.raises(CannotSerialize, match="value_serializer=serializer"):
        serializer.of_values("orders", "hi")


def test_our_producer_gets_the_header_for_a_serializer(registry: RegistryInMemory) -> None:
    serialize = serialization(None, AvroSerializer(registry, '"string"', id_in_header=True))
    given = [("trace", b"7")]
    assert serialize is not None
    _, payload, headers = serialize("orders", None, "hi", given)
    assert payload == b"\x04hi"
    assert [name for name, _ in headers] == ["trace", "__value_schema_id"]
    assert given == [("trace", b"7")]


def test_our_consumer_hands_the_headers_to_a_deserializer(registry: RegistryInMemory) -> None:
    headers: list[Any] = []
    serializer = AvroSerializer(registry, '"string"', id_in_header=True)
    payload = serializer.to_record("orders", "key", "hi", headers)
    decode = deserialization(AvroDeserializer(registry), None)
    message: Any = Message(topic="orders", key=payload, value=b"as it is", headers=headers)
    assert decode is not None
    decode(message)
    assert (message.key(), message.value()) == ("hi", b"as it is")


def test_null_in_a_required_field_is_refused_by_name(registry: RegistryInMemory) -> None:
    """SCH-4"""
    with pytest.raises(UnfitValue, match="id"):
        AvroSerializer(registry, ORDER)({"id": None}, value_in("orders"))


@pytest.mark.parametrize("payload", [b"", b"plain", b"\x01\0\0\0\x01x"])
def test_a_payload_without_an_id_is_an_error(registry: RegistryInMemory, payload: bytes) -> None:
    with pytest.raises(UnframedPayload, match="does not begin with a zero byte"):
        AvroDeserializer(registry)(payload, value_in("orders"))


def test_an_unknown_id_is_an_error(registry: RegistryInMemory) -> None:
    with pytest.raises(UnknownSchema, match="no schema 9"):
        AvroDeserializer(registry)(b"\0\0\0\0\x09x", value_in("orders"))


def test_a_schema_of_another_type_is_an_error(registry: RegistryInMemory) -> None:
    payload = JsonSchemaSerializer(registry, JSON_ORDER)({"id": 1}, value_in("orders"))
    with pytest.raises(InvalidSchema, match="is of type JSON, not AVRO"):
        AvroDeserializer(registry)(payload, value_in("orders"))


def test_a_reader_takes_a_registered_schema_with_a_wrong_default(
    registry: RegistryInMemory,
) -> None:
    """SCH-3: such a schema cannot be registered, but its data can be read."""
    fields = [{"name": "taxcode", "type": "int", "default": "39"}]
    wrong = json.dumps({"type": "record", "name": "Person", "fields": fields})
    registry.register("people-value", NewSchema(wrong))
    read = AvroDeserializer(registry)(b"\0\0\0\0\x01\x4e", value_in("people"))
    assert read == {"taxcode": 39}
    with pytest.raises(InvalidSchema, match="taxcode"):
        AvroSerializer(registry, wrong)


def test_references_are_resolved_by_the_registry(registry: RegistryInMemory) -> None:
    registry.register("order", NewSchema(ORDER))
    bill = {
        "type": "record",
        "name": "Bill",
        "fields": [{"name": "order", "type": "com.shop.Order"}],
    }
    schema = NewSchema(json.dumps(bill), references=(Reference("com.shop.Order", "order", 1),))
    payload = AvroSerializer(registry, schema)({"order": {"id": 3}}, value_in("bills"))
    read = AvroDeserializer(registry)(payload, value_in("bills"))
    assert read == {"order": {"id": 3, "note": None}}


def test_json_is_checked_by_its_schema_on_both_sides(registry: RegistryInMemory) -> None:
    serializer = JsonSchemaSerializer(registry, JSON_ORDER)
    deserializer = JsonSchemaDeserializer(registry)
    payload = serializer({"id": 7}, value_in("orders"))
    assert payload == b'\0\0\0\0\x01{"id":7}'
    assert deserializer(payload, value_in("orders")) == {"id": 7}
    with pytest.raises(UnfitValue, match="id"):
        serializer({"id": "seven"}, value_in("orders"))
    with pytest.raises(CorruptPayload, match="id"):
        deserializer(b"\0\0\0\0\x01{}", value_in("orders"))


def test_json_may_go_unchecked(registry: RegistryInMemory) -> None:
    serializer = JsonSchemaSerializer(registry, JSON_ORDER, validates=False)
    deserializer = JsonSchemaDeserializer(registry, validates=False)
    payload = serializer({"id": "seven"}, value_in("orders"))
    assert deserializer(payload, value_in("orders")) == {"id": "seven"}


@pytest.mark.parametrize(
    ("message", "before", "value"),
    [
        ("Line", b"\0", {"sku": "a"}),
        ("Order", b"\x02\x02", {"id": "7", "lines": [{"sku": "a"}]}),
        ("shop.Order.Note", b"\x04\x02\x00", {"text": "hi"}),
    ],
)
def test_protobuf_payloads_name_their_message(
    registry: RegistryInMemory, message: str, before: bytes, value: Any
) -> None:
    serializer = ProtobufSerializer(registry, PROTO_ORDER, message=message)
    payload = serializer(value, value_in("orders"))
    assert payload is not None
    assert payload[5:].startswith(before)
    read = ProtobufDeserializer(registry)(payload, value_in("orders"))
    assert read.DESCRIPTOR.full_name.endswith(message)


def test_a_protobuf_message_goes_there_and_back(registry: RegistryInMemory) -> None:
    serializer = ProtobufSerializer(registry, PROTO_ORDER, message="Order")
    deserializer = ProtobufDeserializer(registry)
    first = deserializer(serializer({"id": 7}, value_in("orders")), value_in("orders"))
    again = deserializer(serializer(first, value_in("orders")), value_in("orders"))
    assert (again.id, again) == (7, first)


def test_protobuf_with_its_id_in_a_header_keeps_the_way_to_the_message_there(
    registry: RegistryInMemory,
) -> None:
    headers: list[tuple[str, bytes]] = []
    serializer = ProtobufSerializer(registry, PROTO_ORDER, message="Order", id_in_header=True)
    payload = serializer({"id": 7}, value_in("orders", headers))
    assert payload == b"\x08\x07"
    assert headers[0][1][17:] == b"\x02\x02"
    assert ProtobufDeserializer(registry)(payload, value_in("orders", headers)).id == 7


Price = Annotated[decimal.Decimal, Wire(precision=9, scale=2)]


@dataclass
class DataOrder:
    id: int
    day: datetime.date
    price: Price


class StructOrder(msgspec.Struct):
    id: int
    day: datetime.date
    price: Price


class ModelOrder(pydantic.BaseModel):
    id: int
    day: datetime.date
    price: Price


@pytest.mark.parametrize("class_", [DataOrder, StructOrder, ModelOrder])
@pytest.mark.parametrize(
    ("serializer_of", "deserializer_of"),
    [
        (AvroSerializer, AvroDeserializer),
        (JsonSchemaSerializer, JsonSchemaDeserializer),
        (ProtobufSerializer, ProtobufDeserializer),
    ],
)
def test_objects_of_classes_go_there_and_back(
    registry: RegistryInMemory, class_: Any, serializer_of: Any, deserializer_of: Any
) -> None:
    order = class_(id=7, day=datetime.date(2026, 1, 2), price=decimal.Decimal("9.50"))
    payload = serializer_of(registry, class_)(order, value_in("orders"))
    deserializer = deserializer_of(registry, class_)
    assert deserializer(payload, value_in("orders")) == order


def test_an_object_of_another_class_is_an_error(registry: RegistryInMemory) -> None:
    payload = AvroSerializer(registry, '"string"')("hello", value_in("orders"))
    deserializer = AvroDeserializer(registry, makes=DataOrder)
    with pytest.raises(UnfitObject, match="is not a valid DataOrder"):
        deserializer(payload, value_in("orders"))


def test_an_object_of_an_unknown_kind_is_an_error(registry: RegistryInMemory) -> None:
    with pytest.raises(UnfitObject, match="neither a dataclass nor a model"):
        AvroSerializer(registry, '"string"')(object(), value_in("orders"))


def test_a_topic_is_required(registry: RegistryInMemory) -> None:
    with pytest.raises(CannotSerialize, match="needs the topic"):
        AvroSerializer(registry, '"string"')("hello")
