"""Short functions for requests to a broker through librdkafka (confluent-kafka)."""

import itertools
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from tests.processes.nodes import eventually

NAMES = itertools.count(1)
SECONDS_MAX = 30
# A timestamp that is not now, but young enough that retention leaves it alone.
AN_HOUR_AGO = int(time.time() * 1000) - 3_600_000


class Addressed(Protocol):
    """A node, or a whole cluster: what has an address for clients."""

    @property
    def address(self) -> str: ...


class Sent(NamedTuple):
    """A record to produce; only what a test cares about is given."""

    value: bytes | None = None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int = 0


def values(*texts: str) -> list[Sent]:
    return [Sent(text.encode()) for text in texts]


def numbered(count: int, *, size: int = 0) -> list[Sent]:
    """Records that tell their place: `0`, `1`, ..., padded to a size where one is asked for."""
    return [Sent(str(number).encode().ljust(size, b".")) for number in range(count)]


# Topics


def unique_name(prefix: str = "topic") -> str:
    return f"{prefix}-{next(NAMES)}"


def create_topic(
    node: Addressed, *, partitions: int = 1, name: str = "", replicas: int = 1, **configs: object
) -> str:
    """Create a topic; configs are given with underscores for dots."""
    topic = name or unique_name()
    config = {key.replace("_", "."): str(value) for key, value in configs.items()}
    create(node, NewTopic(topic, partitions, replicas, config=config))
    client = admin(node)
    eventually(lambda: topic in client.list_topics(timeout=SECONDS_MAX).topics)
    return topic


def create(node: Addressed, topic: NewTopic, **options: Any) -> None:
    client = admin(node)
    client.create_topics([topic], **options)[topic.topic].result(SECONDS_MAX)


def delete_topic(node: Addressed, topic: str) -> None:
    client = admin(node)
    client.delete_topics([topic])[topic].result(SECONDS_MAX)


def topic_configs(node: Addressed, topic: str) -> dict[str, ConfigEntry]:
    return configs_of(node, ConfigResource(ResourceType.TOPIC, topic))


def configs_of(node: Addressed, resource: ConfigResource) -> dict[str, ConfigEntry]:
    client = admin(node)
    return dict(client.describe_configs([resource])[resource].result(SECONDS_MAX))


def set_topic_config(node: Addressed, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    request = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    client = admin(node)
    client.incremental_alter_configs([request])[request].result(SECONDS_MAX)


def admin(node: Addressed) -> AdminClient:
    """An admin client; keep it until its futures are done, they end with it."""
    return AdminClient({"bootstrap.servers": node.address, **quiet()})


# Producing


def producer(node: Addressed, **config: object) -> Producer:
    """A producer; settings are given with underscores for dots."""
    return Producer(
        {
            "bootstrap.servers": node.address,
            "linger.ms": 1,
            "message.timeout.ms": SECONDS_MAX * 1000,
            **quiet(),
            **dotted(config),
        }
    )


def produce(
    node: Addressed, topic: str, records: Iterable[Sent], *, partition: int = 0, **config: object
) -> list[Message]:
    """Send all records and return them as acknowledged, in order; fail when one is refused."""
    outcomes = try_produce(producer(node, **config), topic, records, partition=partition)
    for error, _message in outcomes:
        if error is not None:
            raise KafkaException(error)
    return [message for _error, message in outcomes]


def try_produce(
    client: Producer, topic: str, records: Iterable[Sent], *, partition: int = 0
) -> list[tuple[KafkaError | None, Message]]:
    """Send all records and return how each one ended."""
    outcomes: list[tuple[KafkaError | None, Message]] = []
    for record in records:
        client.produce(
            topic,
            value=record.value,
            key=record.key,
            headers=list(record.headers),
            timestamp=record.timestamp,
            partition=partition,
            on_delivery=lambda error, message: outcomes.append((error, message)),
        )
    assert client.flush(SECONDS_MAX) == 0
    return outcomes


def refusal(node: Addressed, topic: str, record: Sent, **config: object) -> int:
    """The error code that the broker answers to one record."""
    ((error, _message),) = try_produce(producer(node, **config), topic, [record])
    assert error is not None, "the record was accepted"
    return int(error.code())


# Consuming


@contextmanager
def consumer(node: Addressed, **config: object) -> Iterator[Consumer]:
    """A consumer that assigns partitions itself."""
    client = Consumer(
        {
            "bootstrap.servers": node.address,
            "group.id": unique_name("group"),
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": 100,
            **quiet(),
            **dotted(config),
        }
    )
    try:
        yield client
    finally:
        client.close()


def read(
    node: Addressed,
    topic: str,
    *,
    partition: int = 0,
    offset: int = OFFSET_BEGINNING,
    **config: object,
) -> list[Message]:
    """All records of a partition from an offset to its end."""
    with consumer(node, **config) as client:
        client.assign([TopicPartition(topic, partition, offset)])
        return list(until_end(client))


def until_end(client: Consumer) -> Iterator[Message]:
    """Records up to the end of the one assigned partition."""
    while True:
        message = client.poll(SECONDS_MAX)
        assert message is not None, f"no record and no end of the partition in {SECONDS_MAX} s"
        error = message.error()
        if error is None:
            yield message
        elif error.code() == KafkaError._PARTITION_EOF:
            return
        else:
            raise KafkaException(error)


def read_values(node: Addressed, topic: str, **options: Any) -> list[bytes | None]:
    return [message.value() for message in read(node, topic, **options)]


def watermarks(node: Addressed, topic: str, partition: int = 0) -> tuple[int, int]:
    """First offset and next offset of a partition."""
    with consumer(node) as client:
        wanted = TopicPartition(topic, partition)
        answer = eventually(
            lambda: _watermarks_if_led(client, wanted), expect=lambda found: found is not None
        )
        assert answer is not None
        low, high = answer
        return low, high


def _watermarks_if_led(client: Consumer, wanted: TopicPartition) -> tuple[int, int] | None:
    """None while a broker that has just started does not lead the partition yet."""
    try:
        return client.get_watermark_offsets(wanted, SECONDS_MAX)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.NOT_LEADER_FOR_PARTITION:
            raise
        return None


def dotted(config: Mapping[str, object]) -> dict[str, Any]:
    return {name.replace("_", "."): value for name, value in config.items()}


def quiet() -> dict[str, Any]:
    """No complaints of the client library on the terminal while a test kills its broker."""
    return {"log_level": 0, "reconnect.backoff.max.ms": 500}
