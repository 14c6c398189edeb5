"""`headrace registry` as a process over a real node, with common clients."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from tests.clients.librdkafka import create_topic
from tests.integration.conftest import StartNode
from tests.processes.nodes import Node, eventually, free_port
from tests.processes.registries import USER, USER_WITH_EMAIL, USER_WITH_NAME, RegistryProcess

StartRegistry = Callable[..., RegistryProcess]


@pytest.fixture
def start_registry(node: Node, tmp_path: Path) -> Iterator[StartRegistry]:
    """Start a registry with a topic of its own; settings have underscores for dots."""
    started: list[RegistryProcess] = []
    own = {
        "kafkastore.topic": f"_schemas-{tmp_path.name}",
        "schema.registry.group.id": tmp_path.name,
    }

    def start(**settings: str) -> RegistryProcess:
        given = {name.replace("_", "."): value for name, value in settings.items()}
        log = tmp_path / f"registry-{len(started)}.log"
        started.append(RegistryProcess(node.address, log, {**own, **given}))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.end()


@pytest.fixture
def registry(start_registry: StartRegistry) -> RegistryProcess:
    return start_registry()


@pytest.fixture
def client(registry: RegistryProcess) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry.url}) as client:
        yield client


# --- clients ------------------------------------------------------------------------------


def test_confluents_client_does_all_that_it_can(client: SchemaRegistryClient) -> None:
    """SCH-11."""
    id = client.register_schema("user-value", Schema(USER, "AVRO"))
    client.register_schema("user-value", Schema(USER_WITH_NAME, "AVRO"))
    assert client.get_schema(id).schema_str == USER
    assert client.get_subjects() == ["user-value"]
    assert client.get_versions("user-value") == [1, 2]
    assert client.get_latest_version("user-value").version == 2
    assert client.lookup_schema("user-value", Schema(USER, "AVRO")).version == 1
    assert client.get_version("user-value", 1).schema_id == id
    assert not client.test_compatibility("user-value", Schema(USER_WITH_EMAIL, "AVRO"))
    client.set_compatibility("user-value", "NONE")
    assert client.get_compatibility("user-value") == "NONE"
    assert client.delete_version("user-value", 1) == 1
    assert client.delete_subject("user-value") == [2]
    assert client.get_subjects() == []


def test_an_incompatible_schema_is_refused_with_the_incompatibility(
    client: SchemaRegistryClient,
) -> None:
    """SCH-12."""
    client.register_schema("user-value", Schema(USER, "AVRO"))
    with pytest.raises(SchemaRegistryError, match="READER_FIELD_MISSING_DEFAULT_VALUE") as error:
        client.register_schema("user-value", Schema(USER_WITH_EMAIL, "AVRO"))
    assert error.value.http_status_code == 409


def test_avro_records_go_through_a_topic(
    node: Node, topic: str, client: SchemaRegistryClient
) -> None:
    """SCH-9, SCH-14: five bytes before each value lead to its schema."""
    context = SerializationContext(topic, MessageField.VALUE)
    write, read = AvroSerializer(client, USER), AvroDeserializer(client, USER_WITH_NAME)
    producer = Producer({"bootstrap.servers": node.address})
    producer.produce(topic, write({"id": 7}, context))
    producer.flush(30)
    value = first_value(node, topic)
    assert value[:1] == b"\0"
    assert read(value, context) == {"id": 7, "name": ""}


def test_json_values_are_checked_by_their_schema(topic: str, client: SchemaRegistryClient) -> None:
    """SCH-13."""
    text = '{"type":"object","title":"User","properties":{"id":{"type":"integer"}}}'
    context = SerializationContext(topic, MessageField.VALUE)
    written = JSONSerializer(text, client)({"id": 7}, context)
    assert JSONDeserializer(text, schema_registry_client=client)(written, context) == {"id": 7}


def test_protobuf_messages_bring_their_descriptors(
    topic: str, registry: RegistryProcess, client: SchemaRegistryClient
) -> None:
    """SCH-13: Confluent's serializer sends and requests them as bytes."""
    kind = message_type("User", "id")
    context = SerializationContext(topic, MessageField.VALUE)
    written = ProtobufSerializer(kind, client)(kind(id=7), context)
    # One client has the descriptor from its own registration, another must request it.
    with SchemaRegistryClient({"url": registry.url}) as other:
        for one in (client, other):
            read = ProtobufDeserializer(kind, schema_registry_client=one)(written, context)
            assert read == kind(id=7)
    latest = registry.get(f"/subjects/{topic}-value/versions/latest")
    assert "message User {" in latest["schema"]


def message_type(name: str, field: str) -> Any:
    """A message of one number, as protoc would have made it."""
    file = descriptor_pb2.FileDescriptorProto(name="user.proto", package="tests", syntax="proto3")
    message = file.message_type.add(name=name)
    message.field.add(name=field, number=1, type=3, label=1, json_name=field)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"tests.{name}"))


def test_protobuf_schemas_refer_to_others(client: SchemaRegistryClient) -> None:
    """SCH-13."""
    address = 'syntax = "proto3"; message Address { string city = 1; }'
    user = 'syntax = "proto3"; import "address.proto"; message User { Address home = 1; }'
    client.register_schema("address", Schema(address, "PROTOBUF"))
    references = [SchemaReference("address.proto", "address", 1)]
    id = client.register_schema("user", Schema(user, "PROTOBUF", references))
    assert client.get_schema(id).references == references


def test_curl_is_enough(registry: RegistryProcess) -> None:
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("curl is not installed")
    body = json.dumps({"schema": USER})
    command = [curl, "-s", "-H", "Content-Type: application/vnd.schemaregistry.v1+json"]
    command += ["-d", body, f"{registry.url}/subjects/user-value/versions"]
    answer = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert (answer["id"], answer["version"]) == (1, 1)


# --- the topic ----------------------------------------------------------------------------


def test_everything_is_there_after_a_restart(start_registry: StartRegistry) -> None:
    registry = start_registry()
    for text in (USER, USER_WITH_NAME):
        assert registry.register("user-value", text).status_code == 200
    registry.client.put("/config/user-value", json={"compatibility": "FULL"})
    before = registry.get("/schemas"), registry.get("/config/user-value")
    assert registry.end() == 0
    again = start_registry()
    assert (again.get("/schemas"), again.get("/config/user-value")) == before


@pytest.mark.timeout(300)
def test_a_registry_outlives_a_restart_of_its_node(start_node: StartNode, tmp_path: Path) -> None:
    node = start_node()
    registry = RegistryProcess(node.address, tmp_path / "registry.log")
    try:
        assert registry.register("before", USER).status_code == 200
        node.restart()
        assert registry.get("/subjects") == ["before"]
        eventually(lambda: registry.register("after", USER).status_code == 200, seconds=120)
        assert registry.get("/subjects") == ["after", "before"]
    finally:
        registry.end()


CONFLUENTS: list[tuple[str, str | None]] = [
    ('{"magic":0,"keytype":"NOOP"}', None),
    ('{"keytype":"CONFIG","subject":null,"magic":0}', '{"compatibilityLevel":"FULL"}'),
    (
        '{"keytype":"SCHEMA","subject":"user-value","version":1,"magic":1}',
        json.dumps(
            {"subject": "user-value", "version": 1, "id": 1, "schema": USER, "deleted": False}
        ),
    ),
    (
        '{"keytype":"SCHEMA","subject":"user-value","version":2,"magic":1}',
        json.dumps(
            {
                "subject": "user-value",
                "version": 2,
                "id": 4,
                "schemaType": "AVRO",
                "metadata": {"properties": {"owner": "ada"}},
                "schema": USER_WITH_NAME,
                "deleted": False,
                "ts": 1,
            }
        ),
    ),
    (
        '{"keytype":"SCHEMA","subject":"gone-value","version":1,"magic":1}',
        json.dumps(
            {"subject": "gone-value", "version": 1, "id": 2, "schema": '"int"', "deleted": False}
        ),
    ),
    (
        '{"keytype":"DELETE_SUBJECT","subject":"gone-value","magic":0}',
        '{"subject":"gone-value","version":1}',
    ),
    (
        '{"keytype":"SCHEMA","subject":"old-value","version":1,"magic":1}',
        json.dumps(
            {
                "subject": "old-value",
                "version": 1,
                "id": 3,
                "schema": '{"type":"record","name":"R","fields":'
                '[{"name":"taxcode","type":"int","default":"39"}]}',
                "deleted": False,
            }
        ),
    ),
    ('{"keytype":"MODE","subject":"old-value","magic":0}', '{"mode":"READONLY"}'),
    ('{"keytype":"ASSOC","tenant":"default","resourceName":"x"}', '{"guid":"g"}'),
]
"""Records as several releases of Confluent's registry have written them."""


def test_a_topic_of_confluents_is_taken_over_as_it_is(
    node: Node, start_registry: StartRegistry
) -> None:
    """SCH-14."""
    topic = made_topic(node, {"cleanup.policy": "compact"})
    producer = Producer({"bootstrap.servers": node.address})
    for key, value in CONFLUENTS:
        producer.produce(topic, value, key)
    producer.flush(30)
    registry = start_registry(kafkastore_topic=topic)
    assert registry.get("/subjects") == ["old-value", "user-value"]
    assert registry.get("/subjects", deletedOnly="true") == ["gone-value"]
    assert registry.get("/config") == {"compatibilityLevel": "FULL"}
    assert registry.get("/mode/old-value") == {"mode": "READONLY"}
    assert registry.get("/schemas/ids/2")["schema"] == '"int"'
    latest = registry.get("/subjects/user-value/versions/latest")
    assert (latest["id"], latest["metadata"]) == (4, {"properties": {"owner": "ada"}})


def test_ids_continue_after_those_of_confluent(node: Node, start_registry: StartRegistry) -> None:
    topic = made_topic(node, {"cleanup.policy": "compact"})
    producer = Producer({"bootstrap.servers": node.address})
    for key, value in CONFLUENTS:
        producer.produce(topic, value, key)
    producer.flush(30)
    registry = start_registry(kafkastore_topic=topic)
    found = registry.register("user-value", USER).json()
    made = registry.register("new-value", '"long"').json()
    assert (found["id"], made["id"]) == (1, 5)
    assert records_in(node, topic)[-1] == (
        '{"keytype":"SCHEMA","subject":"new-value","version":1,"magic":1}',
        '{"subject":"new-value","version":1,"id":5,"schemaType":"AVRO","schema":"\\"long\\"",'
        '"deleted":false}',
    )


def test_a_missing_topic_is_made_compacted(node: Node, registry: RegistryProcess) -> None:
    topic = f"_schemas-{registry.log.parent.name}"
    admin = AdminClient({"bootstrap.servers": node.address})
    assert len(admin.list_topics(topic, timeout=30).topics[topic].partitions) == 1
    assert config_of(admin, topic, "cleanup.policy") == "compact"


@pytest.mark.parametrize(
    ("policy", "partitions", "told"),
    [("delete", 1, "Expected cleanup.policy to be 'compact'"), ("compact", 2, "only 1 partition")],
)
def test_a_topic_that_would_lose_schemas_is_refused(
    node: Node, policy: str, partitions: int, told: str
) -> None:
    topic = made_topic(node, {"cleanup.policy": policy}, partitions)
    command = [sys.executable, "-m", "headrace.cli.main", "registry", "--listen", "127.0.0.1:0"]
    command += ["--bootstrap", node.address, f"--set=kafkastore.topic={topic}"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert told in ended.stderr


# --- next to a node -----------------------------------------------------------------------


@pytest.mark.usefixtures("only_headrace")
def test_a_registry_beside_a_node_is_started_again_and_stopped_first(tmp_path: Path) -> None:
    port, listen = free_port(), f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "headrace.cli.main", "up", "--data", str(tmp_path / "data")]
    command += ["--listen", f"127.0.0.1:{port}", "--registry", listen]
    log = tmp_path / "up.log"
    with log.open("wb") as file:
        node = subprocess.Popen(command, stdout=file, stderr=file)
    try:
        ready = f"Headrace registry is ready on http://{listen}"
        eventually(lambda: log.read_text().count(ready), seconds=60)
        child = child_of(node.pid)
        subprocess.run(["kill", "-9", str(child)], check=True)
        eventually(lambda: log.read_text().count(ready), seconds=60, expect=lambda seen: seen == 2)
        second = child_of(node.pid)
    finally:
        node.terminate()
        code = node.wait(60)
    assert (code, child != second) == (0, True)
    assert "service ended, restarting it (service=the registry, exit_code=-9" in log.read_text()
    assert not Path(f"/proc/{second}").exists()
    assert "Traceback" not in log.read_text()


def child_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


# --- helpers ------------------------------------------------------------------------------


def made_topic(node: Node, configs: dict[str, str], partitions: int = 1) -> str:
    name = create_topic(node) + "-schemas"
    admin = AdminClient({"bootstrap.servers": node.address})
    created = admin.create_topics([NewTopic(name, partitions, 1, config=configs)])
    created[name].result(30)
    return name


def config_of(admin: AdminClient, topic: str, name: str) -> Any:
    from confluent_kafka.admin import ConfigResource, ResourceType

    resource = ConfigResource(ResourceType.TOPIC, topic)
    return admin.describe_configs([resource])[resource].result(30)[name].value


def first_value(node: Node, topic: str) -> bytes:
    value = messages_in(node, topic, 1)[0].value()
    assert isinstance(value, bytes)
    return value


def records_in(node: Node, topic: str) -> list[tuple[str, str | None]]:
    consumer = Consumer({"bootstrap.servers": node.address, "group.id": "none"})
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
    consumer.close()
    return [
        ((one.key() or b"").decode(), None if one.value() is None else one.value().decode())
        for one in messages_in(node, topic, end)
    ]


def messages_in(node: Node, topic: str, count: int) -> list[Any]:
    consumer = Consumer({"bootstrap.servers": node.address, "group.id": "none"})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[Any] = []
        while len(found) < count:
            found += consumer.consume(count - len(found), 30)
        return found
    finally:
        consumer.close()
