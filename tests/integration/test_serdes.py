"""Our serializers and Confluent's, by a real registry and through a real topic, both ways.

SCH-14: with any Kafka, as `HEADRACE_TEST_TARGET=kafka` shows.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry import avro as confluent_avro
from confluent_kafka.schema_registry import json_schema as confluent_json
from confluent_kafka.schema_registry import protobuf as confluent_protobuf
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.json_format import MessageToDict
from google.protobuf.message_factory import GetMessageClass

import headrace
from headrace import serdes
from headrace.client.consumer import DeserializationFailed
from headrace.schema_clients.rules.execution import RuleFailed
from headrace.serdes import NewSchema, Reference, RegistryClient
from headrace.serdes.protobuf.parsing import parse as parse_protobuf
from tests.clients.librdkafka import Sent, create_topic, produce, read, read_values
from tests.processes.nodes import Node
from tests.processes.registries import RegistryProcess, running_registry

AVRO = (
    '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},'
    '{"name":"note","type":["null","string"],"default":null}]}'
)
AVRO_2 = (
    '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},'
    '{"name":"currency","type":"string","default":"EUR"}]}'
)
JSON = (
    '{"$schema":"http://json-schema.org/draft-07/schema#","title":"Order","type":"object",'
    '"properties":{"id":{"type":"integer"},"note":{"type":"string"}},"required":["id"]}'
)
PROTOBUF = 'syntax = "proto3";\nmessage Order {\n  int32 id = 1;\n  string note = 2;\n}\n'
ORDER = {"id": 7, "note": "grün"}


@pytest.fixture(scope="module")
def registry(
    shared_node: Node, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RegistryProcess]:
    directory = tmp_path_factory.mktemp("serdes")
    with running_registry(shared_node.address, directory, directory.name) as registry:
        yield registry


@pytest.fixture
def client(registry: RegistryProcess) -> Iterator[RegistryClient]:
    with RegistryClient(registry.url) as client:
        yield client


@pytest.fixture
def theirs(registry: RegistryProcess) -> Iterator[SchemaRegistryClient]:
    client: Any = SchemaRegistryClient({"url": registry.url})
    with client:
        yield client


class Kind(NamedTuple):
    """A schema type: both libraries' serializers for it, and a value in the form of each."""

    name: str

    def our_serializer(self, client: RegistryClient, **options: Any) -> Any:
        match self.name:
            case "avro":
                return serdes.AvroSerializer(client, AVRO, **options)
            case "json":
                return serdes.JsonSchemaSerializer(client, JSON, **options)
        return serdes.ProtobufSerializer(client, PROTOBUF, **options)

    def our_deserializer(self, client: RegistryClient) -> Any:
        return {
            "avro": serdes.AvroDeserializer,
            "json": serdes.JsonSchemaDeserializer,
            "protobuf": serdes.ProtobufDeserializer,
        }[self.name](client)

    def their_serializer(self, client: SchemaRegistryClient, conf: dict[str, Any]) -> Any:
        match self.name:
            case "avro":
                return confluent_avro.AvroSerializer(client, AVRO, conf=conf)
            case "json":
                return confluent_json.JSONSerializer(JSON, client, conf=conf)
        message: Any = order_message()
        return confluent_protobuf.ProtobufSerializer(message, client, conf=conf)

    def their_deserializer(self, client: SchemaRegistryClient) -> Any:
        match self.name:
            case "avro":
                return confluent_avro.AvroDeserializer(client)
            case "json":
                return confluent_json.JSONDeserializer(None, schema_registry_client=client)
        message: Any = order_message()
        return confluent_protobuf.ProtobufDeserializer(message, {}, client)

    def their_value(self) -> Any:
        return order_message()(**ORDER) if self.name == "protobuf" else ORDER


def order_message() -> Any:
    return GetMessageClass(parse_protobuf(PROTOBUF).pool.FindMessageTypeByName("Order"))


def plain(value: Any) -> Any:
    if hasattr(value, "DESCRIPTOR"):
        return MessageToDict(value, preserving_proto_field_name=True)
    return value


KINDS = pytest.mark.parametrize("kind", [Kind("avro"), Kind("json"), Kind("protobuf")])
IN_HEADER = pytest.mark.parametrize("in_header", [False, True], ids=["in front", "in a header"])


def values_of(node: Node, topic: str, deserializer: Any) -> list[Any]:
    """The values of a topic's records as our consumer deserializes them."""
    properties = {"bootstrap.servers": node.address, "auto.offset.reset": "earliest"}
    with headrace.Consumer(properties, value_deserializer=deserializer) as consumer:
        consumer.assign(topic)
        records = consumer.poll(30)
        return [plain(record.value()) for record in records]


def send(node: Node, topic: str, serializer: Any, *values: Any) -> None:
    """With our producer."""
    properties = {"bootstrap.servers": node.address}
    with headrace.Producer(properties, value_serializer=serializer) as producer:
        for value in values:
            producer.send(topic, value)


# --- both directions ------------------------------------------------------------------------


@KINDS
@IN_HEADER
def test_confluents_deserializers_read_payloads_of_our_serializers(
    node: Node,
    topic: str,
    client: RegistryClient,
    theirs: SchemaRegistryClient,
    kind: Kind,
    in_header: bool,
) -> None:
    """SCH-9, SCH-13, SCH-14"""
    send(node, topic, kind.our_serializer(client, id_in_header=in_header), ORDER)
    (record,) = read(node, topic)
    context = SerializationContext(topic, MessageField.VALUE, record.headers())
    assert plain(kind.their_deserializer(theirs)(record.value(), context)) == ORDER
    assert bool(record.headers()) is in_header


@KINDS
@IN_HEADER
def test_our_deserializers_read_payloads_of_confluents_serializers(
    node: Node,
    topic: str,
    client: RegistryClient,
    theirs: SchemaRegistryClient,
    kind: Kind,
    in_header: bool,
) -> None:
    """SCH-9, SCH-13, SCH-14"""
    conf: dict[str, Any] = {"use.deprecated.format": False} if kind.name == "protobuf" else {}
    if in_header:
        conf["schema.id.serializer"] = header_schema_id_serializer
    headers: list[Any] = []
    context = SerializationContext(topic, MessageField.VALUE, headers)
    payload = kind.their_serializer(theirs, conf)(kind.their_value(), context)
    produce(node, topic, [Sent(payload, None, tuple(headers))])
    assert bool(headers) is in_header
    assert values_of(node, topic, kind.our_deserializer(client)) == [ORDER]


@KINDS
def test_both_clients_write_the_same_bytes(
    topic: str, client: RegistryClient, theirs: SchemaRegistryClient, kind: Kind
) -> None:
    """LOG-1(c), SCH-9: one schema, one id, one encoding."""
    context = SerializationContext(topic, MessageField.VALUE)
    ours = kind.our_serializer(client)(ORDER, context)
    conf: dict[str, Any] = {"use.deprecated.format": False} if kind.name == "protobuf" else {}
    conf["normalize.schemas"] = kind.name == "protobuf"
    other = kind.their_serializer(theirs, conf)(kind.their_value(), context)
    if kind.name == "json":  # Only the bytes differ, by blanks.
        assert (ours[:5], json.loads(ours[5:])) == (other[:5], json.loads(other[5:]))
    else:
        assert ours[5:] == other[5:]


def test_confluents_producer_takes_our_serializer(
    node: Node, topic: str, client: RegistryClient
) -> None:
    """SCH-9: called as confluent-kafka's own, with its context."""
    headers: list[Any] = []
    context = SerializationContext(topic, MessageField.VALUE, headers)
    serializer = serdes.AvroSerializer(client, AVRO, id_in_header=True)
    producer = Producer({"bootstrap.servers": node.address})
    producer.produce(topic, serializer(ORDER, context), headers=headers)
    producer.flush(30)
    (record,) = read(node, topic)
    context = SerializationContext(topic, MessageField.VALUE, record.headers())
    assert serdes.AvroDeserializer(client)(record.value(), context) == ORDER


# --- decoded values -------------------------------------------------------------------------


@KINDS
def test_payloads_come_back_bit_by_bit(
    node: Node, topic: str, client: RegistryClient, kind: Kind
) -> None:
    """LOG-1(c): a value that is read and written again has the same bytes."""
    serializer, deserializer = kind.our_serializer(client), kind.our_deserializer(client)
    first = serializer.of_values(topic, ORDER)
    produce(node, topic, [Sent(first)])
    (stored,) = read_values(node, topic)
    assert stored == first
    assert serializer.of_values(topic, deserializer.of_values(topic, stored)) == first


@pytest.mark.parametrize("text", [b"plain text", "grün".encode(), b'{"id": 7}', b"\0\xff\0", b""])
def test_texts_come_back_bit_by_bit(node: Node, topic: str, text: bytes) -> None:
    """LOG-1(c)"""
    produce(node, topic, [Sent(text)])
    assert read_values(node, topic) == [text]


def test_a_reader_gets_its_own_schema(node: Node, topic: str, client: RegistryClient) -> None:
    """SCH-10: one field less, one more by its default."""
    send(node, topic, serdes.AvroSerializer(client, AVRO), ORDER)
    deserializer = serdes.AvroDeserializer(client, AVRO_2)
    assert values_of(node, topic, deserializer) == [{"id": 7, "currency": "EUR"}]


def test_a_reader_gets_the_newest_schema(node: Node, topic: str, client: RegistryClient) -> None:
    """SCH-10"""
    send(node, topic, serdes.AvroSerializer(client, AVRO), ORDER)
    client.register(f"{topic}-value", NewSchema(AVRO_2))
    deserializer = serdes.AvroDeserializer(client, reads_latest=True)
    assert values_of(node, topic, deserializer) == [{"id": 7, "currency": "EUR"}]


def test_objects_of_a_class_go_through_a_topic(
    node: Node, topic: str, client: RegistryClient
) -> None:
    """SCH-9: the schema is made of the class."""

    @dataclass
    class Order:
        id: int
        note: str | None = None

    send(node, topic, serdes.AvroSerializer(client, Order), Order(7, "grün"), Order(8))
    deserializer = serdes.AvroDeserializer(client, Order)
    assert values_of(node, topic, deserializer) == [Order(7, "grün"), Order(8)]


def test_schemas_refer_to_others(
    node: Node, topic: str, registry: RegistryProcess, client: RegistryClient
) -> None:
    """SCH-13"""
    money = '{"type":"record","name":"Money","fields":[{"name":"cents","type":"long"}]}'
    client.register("money", NewSchema(money))
    order = NewSchema(
        '{"type":"record","name":"Bill","fields":[{"name":"total","type":"Money"}]}',
        references=(Reference("Money", "money", 1),),
    )
    send(node, topic, serdes.AvroSerializer(client, order), {"total": {"cents": 5}})
    with RegistryClient(registry.url) as other:
        found = values_of(node, topic, serdes.AvroDeserializer(other))
    assert found == [{"total": {"cents": 5}}]


def test_both_parts_of_a_record_have_schemas(
    node: Node, topic: str, client: RegistryClient
) -> None:
    """SCH-9: a key and a value, both with their ids in headers."""
    keys = serdes.AvroSerializer(client, '"long"', id_in_header=True)
    values = serdes.AvroSerializer(client, AVRO, id_in_header=True)
    properties = {"bootstrap.servers": node.address, "auto.offset.reset": "earliest"}
    with headrace.Producer(
        {"bootstrap.servers": node.address}, key_serializer=keys, value_serializer=values
    ) as producer:
        producer.send(topic, ORDER, 7)
    reader = serdes.AvroDeserializer(client)
    with headrace.Consumer(
        properties, key_deserializer=reader, value_deserializer=reader
    ) as consumer:
        consumer.assign(topic)
        record: Any = consumer.poll(30)[0]
    assert (record.key(), record.value()) == (7, ORDER)


def test_a_record_without_a_schema_is_reported(
    node: Node, topic: str, client: RegistryClient
) -> None:
    produce(node, topic, [Sent(b"plain text")])
    with pytest.raises(DeserializationFailed, match="does not begin with a zero byte"):
        values_of(node, topic, serdes.AvroDeserializer(client))


# --- data contracts -------------------------------------------------------------------------

RULES = {
    "domainRules": [
        {
            "name": "has_id",
            "kind": "CONDITION",
            "type": "CEL",
            "mode": "WRITE",
            "expr": "message.id > 0",
        },
        {
            "name": "loud",
            "kind": "TRANSFORM",
            "type": "PYTHON_FIELD",
            "mode": "READ",
            "tags": ["TEXT"],
            "expr": "loud",
        },
    ]
}


@pytest.fixture
def ruled(topic: str, client: RegistryClient) -> NewSchema:
    schema = NewSchema(AVRO, metadata={"tags": {"Order.note": ["TEXT"]}}, rule_set=RULES)
    client.register(f"{topic}-value", schema)
    return schema


def test_registered_rules_refuse_values(
    topic: str, client: RegistryClient, ruled: NewSchema
) -> None:
    """SCH-11: also where the writer uses the subject's newest schema."""
    serializer = serdes.AvroSerializer(client)
    with pytest.raises(RuleFailed, match="has_id"):
        serializer.of_values(topic, {"id": 0, "note": None})


def test_registered_rules_change_values(
    node: Node, topic: str, client: RegistryClient, ruled: NewSchema
) -> None:
    send(node, topic, serdes.AvroSerializer(client), ORDER)
    functions = {"loud": lambda text, facts: text.upper()}
    deserializer = serdes.AvroDeserializer(client, reads_latest=True, functions=functions)
    assert values_of(node, topic, deserializer) == [{"id": 7, "note": "GRÜN"}]


def test_registered_migrations_bring_old_values_to_new_readers(
    node: Node, topic: str, client: RegistryClient, theirs: SchemaRegistryClient
) -> None:
    """SCH-11: to a schema that could not read them."""
    old = '{"type":"record","name":"Person","fields":[{"name":"full","type":"string"}]}'
    send(node, topic, serdes.AvroSerializer(client, old), {"full": "Ada"})
    rule = {"name": "up", "kind": "TRANSFORM", "type": "CEL", "mode": "UPGRADE"}
    rules = {"migrationRules": [{**rule, "expr": "{'name': message.full}"}]}
    theirs.set_compatibility(f"{topic}-value", "NONE")
    client.register(f"{topic}-value", NewSchema(old.replace("full", "name"), rule_set=rules))
    deserializer = serdes.AvroDeserializer(client, reads_latest=True)
    assert values_of(node, topic, deserializer) == [{"name": "Ada"}]


# --- validation in the broker ---------------------------------------------------------------


@pytest.mark.usefixtures("only_headrace")
@IN_HEADER
def test_a_validating_broker_accepts_payloads_of_serializers(
    start_node: Any, tmp_path: Any, in_header: bool
) -> None:
    """SCH-14(b): the broker reads the valid ids from the registry's own topic."""
    node = start_node()
    with (
        registry_of_the_broker(node, tmp_path) as registry,
        RegistryClient(registry.url) as client,
    ):
        topic = create_topic(node, headrace_value_schema_validation="true")
        send(node, topic, serdes.AvroSerializer(client, AVRO, id_in_header=in_header), ORDER)
        assert values_of(node, topic, serdes.AvroDeserializer(client)) == [ORDER]


@pytest.mark.usefixtures("only_headrace")
@IN_HEADER
def test_a_broker_that_validates_refuses_a_schema_of_another_topic(
    start_node: Any, tmp_path: Any, in_header: bool
) -> None:
    """SCH-14(b)"""
    node = start_node()
    with (
        registry_of_the_broker(node, tmp_path) as registry,
        RegistryClient(registry.url) as client,
    ):
        topic = create_topic(node, headrace_value_schema_validation="true")
        send(node, topic, serdes.AvroSerializer(client, AVRO), ORDER)
        foreign = serdes.AvroSerializer(
            client,
            '"string"',
            id_in_header=in_header,
            subject_name=lambda topic, part, name: "elsewhere",
        )
        with pytest.raises(headrace.HeadraceError, match=r"(?i)schema|invalid"):
            send(node, topic, foreign, "text")


def registry_of_the_broker(node: Node, directory: Any) -> Any:
    """Start a registry with the topic that a broker reads."""
    return running_registry(node.address, directory, "registry", topic="_schemas")
