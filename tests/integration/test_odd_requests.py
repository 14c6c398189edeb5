"""Requests that no tidy client sends: every broker must give them the code that Kafka gives.

The codes were taken from Apache Kafka, and hold for it too (`HEADRACE_TEST_TARGET=kafka`).
"""

import datetime
import uuid
from typing import Any, NamedTuple

import pytest
from kio.schema.errors import ErrorCode

from tests.builders.record_batches import CONTROL, TRANSACTIONAL, batch
from tests.clients.librdkafka import Sent, create_topic
from tests.clients.wire import SECOND, Connection, fetch_fields, produce_fields
from tests.processes.nodes import Node, eventually

NOBODY = uuid.UUID(int=2**100 + 7)
NO_TIME = datetime.timedelta(0)


def codes(answer: Any) -> set[ErrorCode]:
    """Every error code in an answer, at any depth."""
    found: set[ErrorCode] = set()
    if isinstance(answer, ErrorCode):
        found.add(answer)
    elif isinstance(answer, tuple):
        for item in answer:
            found |= codes(item)
    elif hasattr(answer, "__dataclass_fields__"):
        for name in answer.__dataclass_fields__:
            found |= codes(getattr(answer, name))
    return found


def refusal(node: Node, name: str, version: int, **fields: Any) -> ErrorCode:
    """The only error code in an answer."""
    with Connection(node.port) as connection:
        errors = codes(connection.call(name, version, **fields)) - {ErrorCode.none}
    assert len(errors) == 1
    return errors.pop()


@pytest.mark.parametrize(
    ("version", "topic", "code"),
    [
        (12, {"name": "a/b"}, ErrorCode.invalid_topic_exception),
        (12, {"name": ""}, ErrorCode.invalid_topic_exception),
        (12, {"name": "x" * 250}, ErrorCode.invalid_topic_exception),
        (12, {"name": "nobody.knows.me"}, ErrorCode.unknown_topic_or_partition),
        (12, {"name": None, "topic_id": NOBODY}, ErrorCode.unknown_topic_id),
        (10, {"name": "a", "topic_id": NOBODY}, ErrorCode.invalid_request),
    ],
)
def test_metadata(node: Node, version: int, topic: dict[str, Any], code: ErrorCode) -> None:
    fields = {
        "topics": [{"topic_id": None, **topic}],
        "allow_auto_topic_creation": False,
        "include_cluster_authorized_operations": False,
        "include_topic_authorized_operations": False,
    }
    assert refusal(node, "metadata", version, **fields) == code


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        ({"num_partitions": 0}, ErrorCode.invalid_partitions),
        ({"num_partitions": -2}, ErrorCode.invalid_partitions),
        ({"num_partitions": 100_000}, ErrorCode.policy_violation),
        ({"replication_factor": 0}, ErrorCode.invalid_replication_factor),
        ({"replication_factor": 9}, ErrorCode.invalid_replication_factor),
        ({"name": "."}, ErrorCode.invalid_topic_exception),
        ({"name": "__cluster_metadata"}, ErrorCode.invalid_request),
        ({"configs": [{"name": "no.such", "value": "1"}]}, ErrorCode.invalid_config),
        ({"configs": [{"name": "retention.ms", "value": None}]}, ErrorCode.invalid_config),
        (
            {"assignments": [{"partition_index": 0, "broker_ids": [1]}]},
            ErrorCode.invalid_request,
        ),
    ],
)
def test_create_topics(node: Node, topic: dict[str, Any], code: ErrorCode) -> None:
    asked = {"name": "odd", "num_partitions": 1, "replication_factor": 1, **topic}
    asked = {"assignments": [], "configs": [], **asked}
    assert refusal(node, "create_topics", 7, topics=[asked], timeout=SECOND) == code


def test_a_topic_requested_twice_is_not_created(node: Node) -> None:
    asked = {"name": "twice", "num_partitions": 1, "replication_factor": 1}
    asked = {"assignments": [], "configs": [], **asked}
    code = refusal(node, "create_topics", 7, topics=[asked, asked], timeout=SECOND)
    assert code == ErrorCode.invalid_request


def test_a_request_with_a_short_timeout_changes_nothing(node: Node) -> None:
    asked = {"name": "hurried", "num_partitions": 1, "replication_factor": 1}
    asked = {"assignments": [], "configs": [], **asked}
    code = refusal(node, "create_topics", 7, topics=[asked], timeout=NO_TIME)
    assert code == ErrorCode.request_timed_out


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        ({"name": None, "topic_id": None}, ErrorCode.invalid_request),
        ({"name": None, "topic_id": NOBODY}, ErrorCode.unknown_topic_id),
        ({"name": "both", "topic_id": NOBODY}, ErrorCode.invalid_request),
        ({"name": "", "topic_id": None}, ErrorCode.unknown_topic_or_partition),
    ],
)
def test_delete_topics(node: Node, topic: dict[str, Any], code: ErrorCode) -> None:
    assert refusal(node, "delete_topics", 6, topics=[topic], timeout=SECOND) == code


@pytest.mark.parametrize(
    ("version", "partition", "code"),
    [
        (7, {"partition_index": 9}, ErrorCode.unknown_topic_or_partition),
        (7, {"partition_index": -1}, ErrorCode.unknown_topic_or_partition),
        (7, {"timestamp": -9}, ErrorCode.unsupported_version),
        (6, {"timestamp": -3}, ErrorCode.unsupported_version),
        (7, {"current_leader_epoch": 5}, ErrorCode.unknown_leader_epoch),
        (7, {"current_leader_epoch": -2}, ErrorCode.fenced_leader_epoch),
    ],
)
def test_list_offsets(
    node: Node, topic: str, version: int, partition: dict[str, int], code: ErrorCode
) -> None:
    asked = {"partition_index": 0, "timestamp": -1, **partition}
    topics = [{"name": topic, "partitions": [asked]}]
    fields = {"replica_id": -1, "isolation_level": 0, "topics": topics}
    assert refusal(node, "list_offsets", version, **fields) == code


def test_a_partition_requested_twice_has_no_offset(node: Node, topic: str) -> None:
    asked = {"partition_index": 0, "timestamp": -1}
    topics = [{"name": topic, "partitions": [asked, asked]}]
    fields = {"replica_id": -1, "isolation_level": 0, "topics": topics}
    assert refusal(node, "list_offsets", 7, **fields) == ErrorCode.invalid_request


@pytest.mark.parametrize(
    ("offset", "code"), [(99, ErrorCode.offset_out_of_range), (-2, ErrorCode.offset_out_of_range)]
)
def test_delete_records(node: Node, topic: str, offset: int, code: ErrorCode) -> None:
    asked = [{"name": topic, "partitions": [{"partition_index": 0, "offset": offset}]}]
    assert refusal(node, "delete_records", 2, topics=asked, timeout=SECOND) == code


def test_records_of_a_compacted_topic_are_not_deleted(node: Node) -> None:
    topic = create_topic(node, cleanup_policy="compact")
    asked = [{"name": topic, "partitions": [{"partition_index": 0, "offset": 0}]}]
    code = refusal(node, "delete_records", 2, topics=asked, timeout=SECOND)
    assert code == ErrorCode.policy_violation


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (2, "", ErrorCode.invalid_topic_exception),
        (2, "nobody.knows.me", ErrorCode.unknown_topic_or_partition),
        (4, "99", ErrorCode.invalid_request),
        (4, "one", ErrorCode.invalid_request),
        (8, "", ErrorCode.invalid_request),
        (16, "", ErrorCode.invalid_request),
        (3, "x", ErrorCode.invalid_request),
    ],
)
def test_describe_configs(node: Node, kind: int, name: str, code: ErrorCode) -> None:
    asked = [{"resource_type": kind, "resource_name": name, "configuration_keys": None}]
    assert refusal(node, "describe_configs", 4, resources=asked) == code


@pytest.mark.parametrize(
    ("kind", "name", "config", "code"),
    [
        (2, "", ("retention.ms", 0, "1"), ErrorCode.invalid_request),
        (2, "nobody.knows.me", ("retention.ms", 0, "1"), ErrorCode.unknown_topic_or_partition),
        (4, "99", ("log.cleaner.threads", 0, "1"), ErrorCode.invalid_request),
        (4, "1", ("node.id", 0, "5"), ErrorCode.invalid_request),
        (8, "1", ("root", 0, "LOUD"), ErrorCode.invalid_config),
        (8, "1", ("root", 1, None), ErrorCode.invalid_request),
        (16, "", ("metrics", 0, "x"), ErrorCode.invalid_request),
        (16, "s", ("interval.ms", 0, "1"), ErrorCode.invalid_request),
        (16, "s", ("match", 0, "shoe_size=9"), ErrorCode.invalid_config),
        (0, "x", ("a", 0, "b"), ErrorCode.invalid_request),
    ],
)
def test_incremental_alter_configs(
    node: Node, kind: int, name: str, config: tuple[str, int, str | None], code: ErrorCode
) -> None:
    change = dict(zip(("name", "config_operation", "value"), config, strict=True))
    asked = [{"resource_type": kind, "resource_name": name, "configs": [change]}]
    fields = {"resources": asked, "validate_only": False}
    assert refusal(node, "incremental_alter_configs", 1, **fields) == code


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"endpoint_type": 2}, ErrorCode.mismatched_endpoint_type),
        ({"endpoint_type": 7}, ErrorCode.unsupported_endpoint_type),
    ],
)
def test_describe_cluster(node: Node, fields: dict[str, int], code: ErrorCode) -> None:
    asked = {"include_cluster_authorized_operations": False, **fields}
    assert refusal(node, "describe_cluster", 1, **asked) == code


@pytest.mark.parametrize(("kind", "version"), [(3, 4), (-1, 4), (2, 4)])
def test_an_unknown_type_of_coordinator_is_refused(node: Node, kind: int, version: int) -> None:
    fields = {"key_type": kind, "coordinator_keys": ["k"]}
    assert refusal(node, "find_coordinator", version, **fields) == ErrorCode.invalid_request


@pytest.mark.parametrize(
    ("feature", "level"), [("no.such", 1), ("metadata.version", 99), ("group.version", -1)]
)
def test_update_features(node: Node, feature: str, level: int) -> None:
    update = {"feature": feature, "max_version_level": level, "upgrade_type": 1}
    fields = {"feature_updates": [update], "validate_only": True, "timeout": SECOND}
    assert refusal(node, "update_features", 1, **fields) == ErrorCode.invalid_update_version


def test_an_unknown_broker_cannot_be_unregistered(node: Node) -> None:
    code = refusal(node, "unregister_broker", 0, broker_id=99)
    assert code == ErrorCode.broker_id_not_registered


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"transactional_id": ""}, ErrorCode.invalid_request),
        ({"transactional_id": None, "producer_id": 5}, ErrorCode.invalid_request),
    ],
)
def test_init_producer_id(node: Node, fields: dict[str, Any], code: ErrorCode) -> None:
    asked = {"transaction_timeout": SECOND, **fields}
    assert refusal(node, "init_producer_id", 4, **asked) == code


FETCHED = {
    "beyond the end": ({"fetch_offset": 4}, ErrorCode.offset_out_of_range),
    "before the start": ({"fetch_offset": -1}, ErrorCode.offset_out_of_range),
    "an epoch to come": ({"current_leader_epoch": 5}, ErrorCode.unknown_leader_epoch),
    "no epoch at all": ({"current_leader_epoch": -2}, None),
    "this epoch": ({"current_leader_epoch": 0}, None),
    "no such partition": ({"partition": 9}, ErrorCode.unknown_topic_or_partition),
    "read an epoch to come": ({"last_fetched_epoch": 7}, ErrorCode.offset_out_of_range),
    "read this epoch, then beyond the start": (
        {"last_fetched_epoch": 0, "fetch_offset": -1},
        ErrorCode.offset_out_of_range,
    ),
    "read this epoch": ({"last_fetched_epoch": 0, "fetch_offset": 3}, None),
    "read no epoch at all": ({"last_fetched_epoch": -2}, None),
}


@pytest.mark.parametrize(("asked", "code"), FETCHED.values(), ids=FETCHED.keys())
def test_fetch(node: Node, topic: str, asked: dict[str, int], code: ErrorCode | None) -> None:
    fields = fetch_fields([(topic, 0, 0)])
    fields["topics"][0]["partitions"][0].update(asked)
    with Connection(node.port) as connection:
        for _ in range(3):
            connection.produce(topic, batch(Sent(b"v")))
        answer = connection.call("fetch", 12, **fields).responses[0].partitions[0]
    assert answer.error_code == (code or ErrorCode.none)
    assert answer.high_watermark == answer.last_stable_offset == (3 if code is None else -1)


def test_a_fetch_returns_the_offset_where_the_logs_diverged(node: Node, topic: str) -> None:
    """It has read five records in the epoch in which we have three."""
    fields = fetch_fields([(topic, 0, 5)], max_wait_ms=20_000, min_bytes=1_000_000)
    fields["topics"][0]["partitions"][0]["last_fetched_epoch"] = 0
    with Connection(node.port) as connection:
        for _ in range(3):
            connection.produce(topic, batch(Sent(b"v")))
        answer = connection.call("fetch", 12, **fields).responses[0].partitions[0]
    assert answer.error_code == ErrorCode.none
    assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (0, 3)
    assert answer.records == b""


class Identities(NamedTuple):
    """Producer ids and epochs: of two transactional ids, and one without."""

    one: Any
    other: Any
    plain: Any


@pytest.fixture(scope="module")
def identities(shared_node: Node) -> Identities:
    with Connection(shared_node.port) as connection:

        def claim(transactional_id: str | None) -> Any:
            fields = {"transactional_id": transactional_id, "transaction_timeout": SECOND * 60}
            return eventually(
                lambda: connection.call("init_producer_id", 4, **fields),
                expect=lambda answer: answer.error_code == ErrorCode.none,
            )

        keys = {"key_type": 1, "coordinator_keys": ["one"]}
        eventually(
            lambda: codes(connection.call("find_coordinator", 4, **keys)),
            expect=lambda found: found == {ErrorCode.none},
        )
        return Identities(claim("one"), claim("other"), claim(None))


class Odd(NamedTuple):
    """A batch in a Produce request that no producer sends, and Kafka's answer to it."""

    sender: str | None
    attributes: int
    transactional_id: str | None
    v9: ErrorCode
    v11: ErrorCode
    epoch_delta: int = 0


NONE = ErrorCode.none
NO_ID = ErrorCode.transactional_id_authorization_failed
NOT_OPEN = ErrorCode.invalid_txn_state, ErrorCode.transaction_abortable
NOT_ITS_ID = ErrorCode.invalid_producer_id_mapping, ErrorCode.invalid_producer_id_mapping
OLD = ErrorCode.invalid_producer_epoch, ErrorCode.invalid_producer_epoch
REFUSED = ErrorCode.invalid_record, ErrorCode.invalid_record
ODD_BATCHES = {
    "of a transaction, without its id": Odd("one", TRANSACTIONAL, None, NO_ID, NO_ID),
    "of a transaction that was not begun": Odd("one", TRANSACTIONAL, "one", *NOT_OPEN),
    "of a transaction of another": Odd("other", TRANSACTIONAL, "one", *NOT_ITS_ID),
    "of an unknown transaction": Odd("one", TRANSACTIONAL, "unknown", *NOT_ITS_ID),
    "of a transaction of one who has none": Odd("plain", TRANSACTIONAL, "one", *NOT_ITS_ID),
    "of a transaction, of no producer": Odd(None, TRANSACTIONAL, "one", NONE, NONE),
    "of no producer, without an id": Odd(None, TRANSACTIONAL, None, NO_ID, NO_ID),
    "of an epoch to come": Odd("one", TRANSACTIONAL, "one", *OLD, epoch_delta=5),
    "of no transaction, with an id": Odd("plain", 0, "one", NONE, NONE),
    "of its producer, outside a transaction": Odd("one", 0, "one", NONE, NONE),
    "a marker": Odd(None, CONTROL, None, *REFUSED),
    "a marker of a producer": Odd("plain", CONTROL, None, *REFUSED),
    "a marker of a transaction": Odd("one", CONTROL | TRANSACTIONAL, "one", *NOT_OPEN),
    "a marker without an id": Odd("one", CONTROL | TRANSACTIONAL, None, NO_ID, NO_ID),
}


@pytest.mark.parametrize("version", [9, 11])
@pytest.mark.parametrize("odd", ODD_BATCHES.values(), ids=ODD_BATCHES.keys())
def test_produce(node: Node, topic: str, identities: Identities, odd: Odd, version: int) -> None:
    """And readers of what is committed are never held up by it."""
    identity = {}
    if odd.sender is not None:
        sender = getattr(identities, odd.sender)
        epoch = sender.producer_epoch + odd.epoch_delta
        identity = {"producer_id": sender.producer_id, "producer_epoch": epoch, "base_sequence": 0}
    records = batch(Sent(b"v", b"k"), attributes=odd.attributes, **identity)
    fields = {**produce_fields(topic, records), "transactional_id": odd.transactional_id}
    with Connection(node.port) as connection:
        (answer,) = codes(connection.call("produce", version, **fields))
        ends = [end_of(connection, topic, isolation) for isolation in (0, 1)]
    assert answer == (odd.v9 if version == 9 else odd.v11)
    assert ends == [int(answer == ErrorCode.none)] * 2


def end_of(connection: Connection, topic: str, isolation_level: int) -> int:
    """The end offset for readers of this isolation level."""
    topics = [{"name": topic, "partitions": [{"partition_index": 0, "timestamp": -1}]}]
    fields = {"replica_id": -1, "isolation_level": isolation_level, "topics": topics}
    (found,) = connection.call("list_offsets", 7, **fields).topics
    return int(found.partitions[0].offset)
