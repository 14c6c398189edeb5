"""A user with some rights, as librdkafka meets them; `HEADRACE_TEST_TARGET=kafka` agrees."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic
from confluent_kafka.admin import ResourceType as ConfigType

from headrace.security.acls import Operation, ResourceType
from tests.clients.librdkafka import SECONDS_MAX, create_topic, produce, read_values, values
from tests.conftest import watch
from tests.processes.guarded_nodes import GuardedNode, Rule
from tests.processes.nodes import Flavour, eventually

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
READ, WRITE, DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE
WRITE_ID: Rule = (WRITE, ResourceType.TRANSACTIONAL_ID, "tx")
NO_TOPIC = KafkaError.TOPIC_AUTHORIZATION_FAILED
NO_GROUP = KafkaError.GROUP_AUTHORIZATION_FAILED
NO_ID = KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


@pytest.fixture(scope="module")
def started(flavour: Flavour, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedNode]:
    node = GuardedNode(flavour, tmp_path_factory.mktemp("guarded"))
    node.start()
    yield node
    if node.is_running:
        node.kill()


@pytest.fixture
def node(started: GuardedNode, request: pytest.FixtureRequest) -> GuardedNode:
    watch(request, started)
    return started


@pytest.fixture
def topic(node: GuardedNode) -> str:
    return create_topic(node)


def delivered(producer: Producer, topic: str, value: bytes) -> int:
    """Produce a record and return the error of its delivery, or 0."""
    errors: list[KafkaError | None] = []
    producer.produce(topic, value, on_delivery=lambda error, _: errors.append(error))
    producer.flush(SECONDS_MAX)
    (error,) = errors
    return 0 if error is None else error.code()


def consumed(node: GuardedNode, topic: str, group: str) -> bytes | int:
    """Return the first record of a topic for a new member of a group, or the error."""
    client = Consumer(node.client(group_id=group, auto_offset_reset="earliest"))
    try:
        client.subscribe([topic])
        message = eventually(lambda: client.poll(1))
        assert message is not None
        if (error := message.error()) is not None:
            return error.code()
        client.commit(message=message, asynchronous=False)
        value = message.value()
        assert value is not None
        return value
    finally:
        client.close()


def test_a_producer_needs_only_the_right_to_write(node: GuardedNode, topic: str) -> None:
    """SEC-7: an idempotent one as well."""
    producer = Producer(node.client(enable_idempotence="true"))
    node.allow([(WRITE, TOPIC, topic)])
    assert delivered(producer, topic, b"allowed") == 0
    assert read_values(node, topic) == [b"allowed"]


def test_a_producer_without_rights_is_refused(node: GuardedNode, topic: str) -> None:
    """SEC-7"""
    node.allow([])
    assert delivered(Producer(node.client()), topic, b"forbidden") == NO_TOPIC
    node.allow([(DESCRIBE, TOPIC, topic)])
    assert delivered(Producer(node.client()), topic, b"forbidden") == NO_TOPIC
    assert read_values(node, topic) == []


def test_a_running_producer_loses_its_right_at_once(node: GuardedNode, topic: str) -> None:
    """SEC-7: also the requests that the broker recognises without decoding them."""
    producer = Producer(node.client(acks="1"))
    node.allow([(WRITE, TOPIC, topic)])
    for number in range(5):
        assert delivered(producer, topic, b"%d" % number) == 0
    node.allow([(DESCRIBE, TOPIC, topic)])
    eventually(lambda: delivered(producer, topic, b"late"), expect=NO_TOPIC.__eq__)


def test_a_transaction_needs_the_right_to_its_id(node: GuardedNode, topic: str) -> None:
    """SEC-7"""
    node.allow([(WRITE, TOPIC, topic)])
    refused = Producer(node.client(transactional_id="tx"))
    with pytest.raises(KafkaException) as error:
        refused.init_transactions(SECONDS_MAX)
    assert error.value.args[0].code() == NO_ID

    node.allow([WRITE_ID, (WRITE, TOPIC, topic)])
    producer = Producer(node.client(transactional_id="tx"))
    producer.init_transactions(SECONDS_MAX)
    producer.begin_transaction()
    producer.produce(topic, b"committed")
    producer.commit_transaction(SECONDS_MAX)
    assert read_values(node, topic) == [b"committed"]


def test_a_consumer_needs_rights_to_its_group_and_topic(node: GuardedNode, topic: str) -> None:
    """SEC-7"""
    produce(node, topic, values("first"))
    node.allow([(READ, TOPIC, topic)])
    assert consumed(node, topic, "readers") == NO_GROUP
    node.allow([(READ, GROUP, "readers")])
    assert consumed(node, topic, "readers") == NO_TOPIC
    node.allow([(READ, GROUP, "readers"), (READ, TOPIC, topic)])
    assert consumed(node, topic, "readers") == b"first"


def test_committed_offsets_are_shown_to_those_who_may_see_the_topic(
    node: GuardedNode, topic: str
) -> None:
    """SEC-7"""
    produce(node, topic, values("first"))
    group = f"readers-of-{topic}"
    node.allow([(READ, GROUP, group), (READ, TOPIC, topic)])
    assert consumed(node, topic, group) == b"first"
    client = Consumer(node.client(group_id=group))
    place = [TopicPartition(topic, 0)]
    assert [one.offset for one in client.committed(place, SECONDS_MAX)] == [1]
    node.allow([(READ, GROUP, group)])
    (hidden,) = client.committed(place, SECONDS_MAX)
    assert hidden.error is not None
    assert hidden.error.code() == NO_TOPIC
    client.close()


def test_lists_contain_what_the_user_may_see(node: GuardedNode, topic: str) -> None:
    """SEC-7"""
    node.allow([(DESCRIBE, TOPIC, topic)])
    client = AdminClient(node.client())
    assert set(client.list_topics(timeout=SECONDS_MAX).topics) == {topic}
    node.allow([])
    assert client.list_topics(timeout=SECONDS_MAX).topics == {}
    assert client.list_consumer_groups().result(SECONDS_MAX).valid == []


def code_of(attempt: object) -> int:
    """Return the error of a future of an admin client, or 0."""
    try:
        attempt.result(SECONDS_MAX)  # type: ignore[attr-defined]
    except KafkaException as error:
        code: int = error.args[0].code()
        return code
    return 0


def test_topics_are_administrated_with_a_right_for_each_step(node: GuardedNode, topic: str) -> None:
    """SEC-7"""
    client, other = AdminClient(node.client()), f"{topic}-other"
    config = ConfigResource(ConfigType.TOPIC, topic)

    def attempts() -> list[int]:
        return [
            code_of(client.create_topics([NewTopic(other, 1, 1)])[other]),
            code_of(client.describe_configs([config])[config]),
            code_of(client.delete_topics([topic])[topic]),
        ]

    node.allow([(DESCRIBE, TOPIC)])
    assert attempts() == [NO_TOPIC] * 3
    node.allow(
        [
            (Operation.CREATE, TOPIC, other),
            (Operation.DESCRIBE_CONFIGS, TOPIC, topic),
            (Operation.DELETE, TOPIC, topic),
        ]
    )
    assert attempts() == [0, 0, 0]
