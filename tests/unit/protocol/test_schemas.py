"""The definition modules: complete, consistent, and with Kafka 4.3's versions."""

import subprocess
import sys
from inspect import getmembers
from types import ModuleType

import pytest

from headrace.protocol.api_keys import FLEXIBLE_FROM, ApiKey
from headrace.protocol.fields import FIXED_CODES, AnyStructure, fields_of
from headrace.protocol.message import NEVER, FrozenStructure, Message, Structure
from headrace.protocol.schemas.records import control, metadata
from tests.builders.messages import APIS, METADATA_RECORDS, REQUESTS, RESPONSES

# The versions in the ApiVersions answer of a Kafka 4.3.1 broker. Produce begins at version 0 for
# the sake of old librdkafka, but takes none below 3; the two of telemetry need a plugin there.
ADVERTISED = {
    ApiKey.PRODUCE: range(3, 14),
    ApiKey.FETCH: range(4, 19),
    ApiKey.LIST_OFFSETS: range(1, 12),
    ApiKey.METADATA: range(14),
    ApiKey.FIND_COORDINATOR: range(7),
    ApiKey.SASL_HANDSHAKE: range(2),
    ApiKey.API_VERSIONS: range(5),
    ApiKey.CREATE_TOPICS: range(2, 8),
    ApiKey.DELETE_TOPICS: range(1, 7),
    ApiKey.DELETE_RECORDS: range(3),
    ApiKey.INIT_PRODUCER_ID: range(6),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: range(2, 5),
    ApiKey.DESCRIBE_CONFIGS: range(1, 5),
    ApiKey.ALTER_CONFIGS: range(3),
    ApiKey.DESCRIBE_LOG_DIRS: range(1, 6),
    ApiKey.SASL_AUTHENTICATE: range(3),
    ApiKey.CREATE_PARTITIONS: range(4),
    ApiKey.ELECT_LEADERS: range(3),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: range(2),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: range(2),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: range(1),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: range(2),
    ApiKey.ALTER_CLIENT_QUOTAS: range(2),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: range(1),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: range(1),
    ApiKey.CREATE_DELEGATION_TOKEN: range(1, 4),
    ApiKey.RENEW_DELEGATION_TOKEN: range(1, 3),
    ApiKey.EXPIRE_DELEGATION_TOKEN: range(1, 3),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: range(1, 4),
    ApiKey.DESCRIBE_QUORUM: range(3),
    ApiKey.UPDATE_FEATURES: range(3),
    ApiKey.DESCRIBE_CLUSTER: range(3),
    ApiKey.DESCRIBE_PRODUCERS: range(1),
    ApiKey.UNREGISTER_BROKER: range(1),
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: range(1),
    ApiKey.PUSH_TELEMETRY: range(1),
    ApiKey.LIST_CONFIG_RESOURCES: range(2),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: range(1),
    ApiKey.OFFSET_COMMIT: range(2, 11),
    ApiKey.OFFSET_FETCH: range(1, 11),
    ApiKey.JOIN_GROUP: range(10),
    ApiKey.HEARTBEAT: range(5),
    ApiKey.LEAVE_GROUP: range(6),
    ApiKey.SYNC_GROUP: range(6),
    ApiKey.DESCRIBE_GROUPS: range(7),
    ApiKey.LIST_GROUPS: range(6),
    ApiKey.ADD_PARTITIONS_TO_TXN: range(6),
    ApiKey.ADD_OFFSETS_TO_TXN: range(5),
    ApiKey.END_TXN: range(6),
    ApiKey.WRITE_TXN_MARKERS: range(1, 3),
    ApiKey.TXN_OFFSET_COMMIT: range(6),
    ApiKey.DESCRIBE_ACLS: range(1, 4),
    ApiKey.CREATE_ACLS: range(1, 4),
    ApiKey.DELETE_ACLS: range(1, 4),
    ApiKey.DELETE_GROUPS: range(3),
    ApiKey.OFFSET_DELETE: range(1),
    ApiKey.DESCRIBE_TRANSACTIONS: range(1),
    ApiKey.LIST_TRANSACTIONS: range(3),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: range(2),
    ApiKey.CONSUMER_GROUP_DESCRIBE: range(2),
    ApiKey.SHARE_GROUP_HEARTBEAT: range(1, 2),
    ApiKey.SHARE_GROUP_DESCRIBE: range(1, 2),
    ApiKey.SHARE_FETCH: range(1, 3),
    ApiKey.SHARE_ACKNOWLEDGE: range(1, 3),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: range(1),
    ApiKey.READ_SHARE_GROUP_STATE: range(1),
    ApiKey.WRITE_SHARE_GROUP_STATE: range(2),
    ApiKey.DELETE_SHARE_GROUP_STATE: range(1),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: range(2),
    ApiKey.STREAMS_GROUP_HEARTBEAT: range(1),
    ApiKey.STREAMS_GROUP_DESCRIBE: range(1),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: range(2),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: range(1),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: range(1),
}

# Further APIs between the nodes of a cluster, as a Kafka 4.3.1 controller lists them.
BETWEEN_NODES = {
    ApiKey.VOTE: range(3),
    ApiKey.BEGIN_QUORUM_EPOCH: range(2),
    ApiKey.END_QUORUM_EPOCH: range(2),
    ApiKey.ALTER_PARTITION: range(2, 4),
    ApiKey.ENVELOPE: range(1),
    ApiKey.FETCH_SNAPSHOT: range(2),
    ApiKey.BROKER_REGISTRATION: range(5),
    ApiKey.BROKER_HEARTBEAT: range(3),
    ApiKey.ALLOCATE_PRODUCER_IDS: range(1),
    ApiKey.CONTROLLER_REGISTRATION: range(1),
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: range(1),
    ApiKey.ADD_RAFT_VOTER: range(2),
    ApiKey.REMOVE_RAFT_VOTER: range(1),
    ApiKey.UPDATE_RAFT_VOTER: range(1),
}


def structures() -> list[AnyStructure]:
    modules: list[ModuleType] = [sys.modules[one.__module__] for one in REQUESTS]
    return [
        one
        for module in [*modules, metadata, control]
        for _, one in getmembers(module, lambda one: isinstance(one, type))
        if issubclass(one, Structure | FrozenStructure) and one.__module__ == module.__name__
    ]


def test_versions_are_those_that_kafka_advertises() -> None:
    assert {ApiKey(one.API_KEY): one.VERSIONS for one in REQUESTS} == ADVERTISED | BETWEEN_NODES
    assert {ApiKey(one.API_KEY): one.VERSIONS for one in RESPONSES} == ADVERTISED | BETWEEN_NODES


def test_the_metadata_records_are_complete() -> None:
    assert len(METADATA_RECORDS) == len({one.API_KEY for one in METADATA_RECORDS}) == 26


@pytest.mark.parametrize("structure", structures(), ids=lambda one: str(one.__name__))
def test_a_table_lists_the_attributes_in_order(structure: AnyStructure) -> None:
    fields = fields_of(structure)
    assert [field.name for field in fields] == list(structure.__struct_fields__)
    for field in fields:
        is_primitive = field.kind in FIXED_CODES or field.kind in ("string", "bytes", "records")
        assert is_primitive != (field.structure is not None)
        assert field.default is not None or field.nullable.first == field.versions.first


@pytest.mark.parametrize("message", REQUESTS, ids=lambda one: str(one.__name__))
def test_headers_and_bodies_become_flexible_together(message: type[Message]) -> None:
    assert FLEXIBLE_FROM.get(message.API_KEY, NEVER) == message.FLEXIBLE_FROM


def test_an_api_is_not_imported_before_it_is_met() -> None:
    """A node's memory and its start stay small."""
    program = (
        "import sys, headrace.protocol.framing, headrace.protocol.schemas;"
        "print(*(name for name in sys.modules if name.startswith('headrace.protocol.schemas.')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.split() == []
    assert len(APIS) == 88
