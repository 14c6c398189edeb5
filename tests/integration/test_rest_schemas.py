"""Payloads with schemas through the REST proxy, a registry beside it; Confluent's serdes judge."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx2
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from tests.clients.librdkafka import create_topic, read, unique_name
from tests.processes.nodes import Node, eventually
from tests.processes.rest_proxies import JSON_V2, V2, proxy, registry

AVRO_V2 = "application/vnd.kafka.avro.v2+json"
JSON_SCHEMA_V2 = "application/vnd.kafka.jsonschema.v2+json"
PROTOBUF_V2 = "application/vnd.kafka.protobuf.v2+json"

AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "id", "type": "int"}, {"name": "note", "type": ["null", "string"]}],
    }
)
JSON_SCHEMA = json.dumps(
    {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
)
PROTOBUF = 'syntax = "proto3"; message Order { int32 id = 1; string note = 2; }'
SCHEMAS = [
    (AVRO_V2, "AVRO", AVRO, {"id": 1, "note": {"string": "x"}}, {"id": "one", "note": None}),
    (JSON_SCHEMA_V2, "JSONSCHEMA", JSON_SCHEMA, {"id": 1}, {"id": "one"}),
    (PROTOBUF_V2, "PROTOBUF", PROTOBUF, {"id": 1, "note": "x"}, {"id": "one"}),
]
IDS = ["avro", "json schema", "protobuf"]


class Served(NamedTuple):
    """A proxy with a registry, and a client of each."""

    rest: httpx2.Client
    schemas: SchemaRegistryClient
    v3: str


@pytest.fixture(scope="module")
def served(shared_node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    logs = tmp_path_factory.mktemp("schemas")
    with (
        registry(shared_node.address, logs / "registry.log") as known,
        proxy(shared_node.address, logs / "rest.log", ["--registry", known.url]) as found,
        httpx2.Client(base_url=found.url, timeout=60) as client,
        SchemaRegistryClient({"url": known.url}) as schemas,
    ):
        cluster = client.get("/v3/clusters").json()["data"][0]["cluster_id"]
        yield Served(client, schemas, f"/v3/clusters/{cluster}/topics")


def post(served: Served, path: str, body: Any, type: str) -> httpx2.Response:
    return served.rest.post(path, content=json.dumps(body), headers={"Content-Type": type})


@pytest.mark.parametrize(("type", "_", "schema", "value", "unfit"), SCHEMAS, ids=IDS)
def test_inline_schemas_are_registered_and_records_read_back(
    served: Served, node: Node, type: str, _: str, schema: str, value: Any, unfit: Any
) -> None:
    """RST-4"""
    topic = create_topic(node)
    body = {"value_schema": schema, "records": [{"value": value}, {"value": None}]}
    answer = post(served, f"/topics/{topic}", body, type).json()
    assert [one["error_code"] for one in answer["offsets"]] == [None, None]
    latest = served.schemas.get_latest_version(f"{topic}-value")
    assert answer["value_schema_id"] == latest.schema_id
    by_id = {"value_schema_id": latest.schema_id, "records": [{"value": value}]}
    assert post(served, f"/topics/{topic}", by_id, type).json()["value_schema_id"] == (
        latest.schema_id
    )
    assert read_back(served, topic, type, 3) == [value, None, value]


@pytest.mark.parametrize(("type", "_", "schema", "value", "unfit"), SCHEMAS, ids=IDS)
def test_a_value_that_does_not_fit_its_schema_is_named_by_record(
    served: Served, topic: str, type: str, _: str, schema: str, value: Any, unfit: Any
) -> None:
    body = {"value_schema": schema, "records": [{"value": value}, {"value": unfit}]}
    answer = post(served, f"/topics/{topic}", body, type)
    assert (answer.status_code, answer.json()["error_code"]) == (422, 42203)
    assert "(value of record 1)" in answer.json()["message"]


@pytest.mark.parametrize(("_", "format", "schema", "value", "unfit"), SCHEMAS, ids=IDS)
def test_version_3_finds_schemas_by_text_id_version_and_subject(
    served: Served, node: Node, _: str, format: str, schema: str, value: Any, unfit: Any
) -> None:
    topic = create_topic(node)
    path = f"{served.v3}/{topic}/records"

    def produced(part: dict[str, Any]) -> dict[str, Any]:
        answer = post(served, path, {"value": {**part, "data": value}}, "application/json")
        found: dict[str, Any] = answer.json()
        assert found["error_code"] == 200, found
        shown: dict[str, Any] = found["value"]
        return shown

    first = produced({"type": format, "schema": schema})
    assert (first["type"], first["subject"], first["schema_version"]) == (
        *(format, f"{topic}-value"),
        1,
    )
    assert produced({"schema_id": first["schema_id"]}) == first
    assert produced({"schema_version": 1}) == first
    assert produced({"subject": f"{topic}-value"}) == first
    assert len({one.value() for one in read(node, topic)}) == 1


def test_confluents_deserializer_reads_records_of_the_proxy(served: Served, node: Node) -> None:
    topic = create_topic(node)
    body = {
        "value_schema": AVRO,
        "key_schema": '"string"',
        "records": [{"key": "k", "value": {"id": 7, "note": None}}],
    }
    assert post(served, f"/topics/{topic}", body, AVRO_V2).status_code == 200
    (found,) = read(node, topic)
    context = SerializationContext(topic, MessageField.VALUE)
    assert AvroDeserializer(served.schemas)(found.value(), context) == {"id": 7, "note": None}
    keys = SerializationContext(topic, MessageField.KEY)
    assert AvroDeserializer(served.schemas)(found.key(), keys) == "k"


def test_confluents_json_deserializer_reads_records_of_the_proxy(
    served: Served, node: Node
) -> None:
    topic = create_topic(node)
    body = {"value_schema": JSON_SCHEMA, "records": [{"value": {"id": 7}}]}
    post(served, f"/topics/{topic}", body, JSON_SCHEMA_V2)
    (found,) = read(node, topic)
    context = SerializationContext(topic, MessageField.VALUE)
    read_value = JSONDeserializer(JSON_SCHEMA, schema_registry_client=served.schemas)
    assert read_value(found.value(), context) == {"id": 7}


def test_the_proxy_shows_records_of_confluents_serializer(served: Served, node: Node) -> None:
    from tests.clients.librdkafka import Sent, produce

    topic = create_topic(node)
    context = SerializationContext(topic, MessageField.VALUE)
    payload = AvroSerializer(served.schemas, AVRO)({"id": 9, "note": "y"}, context)
    produce(node, topic, [Sent(payload)])
    assert read_back(served, topic, AVRO_V2, 1) == [{"id": 9, "note": {"string": "y"}}]


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ({"records": [{"value": {"id": 1}}]}, 42202, "does not include value schema"),
        (
            {"value_schema": AVRO, "records": [{"key": 1, "value": {"id": 1, "note": None}}]},
            42201,
            "does not include key schema",
        ),
        ({"value_schema_id": 999_999, "records": [{"value": 1}]}, 42207, "999999"),
        ({"value_schema": '{"type":"nonsense"}', "records": [{"value": 1}]}, 42205, "nonsense"),
    ],
)
def test_errors_of_schemas_have_the_originals_codes(
    served: Served, topic: str, body: Any, code: int, words: str
) -> None:
    answer = post(served, f"/topics/{topic}", body, AVRO_V2)
    assert (answer.status_code, answer.json()["error_code"]) == (422, code)
    assert words in answer.json()["message"]


def test_a_schema_of_another_type_is_refused(served: Served, topic: str) -> None:
    id_ = served.schemas.register_schema(unique_name("json"), Schema(JSON_SCHEMA, "JSON"))
    body = {"value_schema_id": id_, "records": [{"value": {"id": 1}}]}
    answer = post(served, f"/topics/{topic}", body, AVRO_V2).json()
    assert (answer["error_code"], "JSON, not AVRO" in answer["message"]) == (42205, True)


def test_without_a_registry_schemas_are_refused_clearly(
    node: Node, topic: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    log = tmp_path_factory.mktemp("rest") / "rest.log"
    with (
        proxy(node.address, log) as found,
        httpx2.Client(base_url=found.url, timeout=60) as client,
    ):
        body = {"value_schema": AVRO, "records": [{"value": {"id": 1, "note": None}}]}
        headers = {"Content-Type": AVRO_V2}
        answer = client.post(f"/topics/{topic}", content=json.dumps(body), headers=headers).json()
        assert (answer["error_code"], "--registry" in answer["message"]) == (42206, True)
        plain = client.post(
            f"/topics/{topic}",
            content='{"records":[{"value":1}]}',
            headers={"Content-Type": JSON_V2},
        )
        assert plain.status_code == 200


def read_back(served: Served, topic: str, type: str, count: int) -> list[Any]:
    """The values that an instance of a form shows."""
    form = type.partition("kafka.")[2].partition(".v2")[0]
    given = {"format": form, "auto.offset.reset": "earliest"}
    created = post(served, f"/consumers/{unique_name('group')}", given, V2).json()
    base = created["base_uri"]
    post(served, f"{base}/subscription", {"topics": [topic]}, V2)
    values: list[Any] = []

    def enough() -> bool:
        found = served.rest.get(f"{base}/records", headers={"Accept": type})
        assert found.status_code == 200, found.text
        values.extend(one["value"] for one in found.json())
        return len(values) >= count

    eventually(enough)
    served.rest.delete(base)
    return values
