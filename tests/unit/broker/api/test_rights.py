"""Every API with a client that has no right, and with one that has the stated rights."""

from typing import Any

import pytest

from headrace.broker import authorized_operations
from headrace.broker.api.registry import APIS, Entry, registration_of
from headrace.errors import (
    ClusterAuthorizationFailed,
    DelegationTokenAuthorizationFailed,
    GroupAuthorizationFailed,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
)
from headrace.protocol.api_keys import ApiKey
from headrace.security.acls import CLUSTER_NAME, Operation, ResourceType
from headrace.security.rights import Right, Rights
from tests.builders import authorizers
from tests.builders.api_requests import (
    CHANGELOG,
    GROUP,
    NEW_TOPIC,
    SHARE_GROUP,
    STREAMS_GROUP,
    TOPIC,
    TRANSACTION,
    requests_for,
)
from tests.builders.guarded_nodes import GuardedNode, codes_in, request_type_of

ENTRIES = sorted(APIS.values(), key=lambda entry: entry.key)
TOPIC_CODE, GROUP_CODE = TopicAuthorizationFailed.code, GroupAuthorizationFailed.code
CLUSTER_CODE = ClusterAuthorizationFailed.code
TRANSACTION_CODE = TransactionalIdAuthorizationFailed.code
REFUSALS = {
    TOPIC_CODE,
    GROUP_CODE,
    CLUSTER_CODE,
    TRANSACTION_CODE,
    DelegationTokenAuthorizationFailed.code,
}
NAMES = {
    ResourceType.TOPIC: (TOPIC, NEW_TOPIC, CHANGELOG),
    ResourceType.GROUP: (GROUP, SHARE_GROUP, STREAMS_GROUP),
    ResourceType.TRANSACTIONAL_ID: (TRANSACTION,),
    ResourceType.CLUSTER: (CLUSTER_NAME,),
    ResourceType.DELEGATION_TOKEN: (),
    ResourceType.USER: (),
}
KAFKAS_REFUSALS = {
    "PRODUCE": {TOPIC_CODE, TRANSACTION_CODE},
    "FETCH": {TOPIC_CODE},
    "LIST_OFFSETS": {TOPIC_CODE},
    "METADATA": {TOPIC_CODE},
    "OFFSET_COMMIT": {GROUP_CODE},
    "OFFSET_FETCH": {GROUP_CODE},
    "FIND_COORDINATOR": {GROUP_CODE, TRANSACTION_CODE, CLUSTER_CODE},
    "JOIN_GROUP": {GROUP_CODE},
    "HEARTBEAT": {GROUP_CODE},
    "LEAVE_GROUP": {GROUP_CODE},
    "SYNC_GROUP": {GROUP_CODE},
    "DESCRIBE_GROUPS": {GROUP_CODE},
    "CREATE_TOPICS": {TOPIC_CODE},
    "DELETE_TOPICS": {TOPIC_CODE},
    "DELETE_RECORDS": {TOPIC_CODE},
    "INIT_PRODUCER_ID": {CLUSTER_CODE, TRANSACTION_CODE},
    "OFFSET_FOR_LEADER_EPOCH": {TOPIC_CODE},
    "ADD_PARTITIONS_TO_TXN": {CLUSTER_CODE, TRANSACTION_CODE},
    "ADD_OFFSETS_TO_TXN": {TRANSACTION_CODE},
    "END_TXN": {TRANSACTION_CODE},
    "WRITE_TXN_MARKERS": {CLUSTER_CODE},
    "TXN_OFFSET_COMMIT": {TRANSACTION_CODE},
    "DESCRIBE_ACLS": {CLUSTER_CODE},
    "CREATE_ACLS": {CLUSTER_CODE},
    "DELETE_ACLS": {CLUSTER_CODE},
    "DESCRIBE_CONFIGS": {TOPIC_CODE, GROUP_CODE, CLUSTER_CODE},
    "ALTER_CONFIGS": {TOPIC_CODE, GROUP_CODE, CLUSTER_CODE},
    "DESCRIBE_LOG_DIRS": {CLUSTER_CODE},
    "CREATE_PARTITIONS": {TOPIC_CODE},
    "DELETE_GROUPS": {GROUP_CODE},
    "ELECT_LEADERS": {CLUSTER_CODE},
    "INCREMENTAL_ALTER_CONFIGS": {TOPIC_CODE, GROUP_CODE, CLUSTER_CODE},
    "LIST_PARTITION_REASSIGNMENTS": {CLUSTER_CODE},
    "OFFSET_DELETE": {GROUP_CODE},
    "DESCRIBE_CLIENT_QUOTAS": {CLUSTER_CODE},
    "ALTER_CLIENT_QUOTAS": {CLUSTER_CODE},
    "DESCRIBE_USER_SCRAM_CREDENTIALS": {CLUSTER_CODE},
    "ALTER_USER_SCRAM_CREDENTIALS": {CLUSTER_CODE},
    "DESCRIBE_QUORUM": {CLUSTER_CODE},
    "UPDATE_FEATURES": {CLUSTER_CODE},
    "DESCRIBE_PRODUCERS": {TOPIC_CODE},
    "UNREGISTER_BROKER": {CLUSTER_CODE},
    "DESCRIBE_TRANSACTIONS": {TRANSACTION_CODE},
    "CONSUMER_GROUP_HEARTBEAT": {GROUP_CODE},
    "CONSUMER_GROUP_DESCRIBE": {GROUP_CODE},
    "LIST_CONFIG_RESOURCES": {CLUSTER_CODE},
    "DESCRIBE_TOPIC_PARTITIONS": {TOPIC_CODE},
    "SHARE_GROUP_HEARTBEAT": {GROUP_CODE},
    "SHARE_GROUP_DESCRIBE": {GROUP_CODE},
    "SHARE_FETCH": {GROUP_CODE},
    "SHARE_ACKNOWLEDGE": {GROUP_CODE},
    "ADD_RAFT_VOTER": {CLUSTER_CODE},
    "REMOVE_RAFT_VOTER": {CLUSTER_CODE},
    "INITIALIZE_SHARE_GROUP_STATE": {CLUSTER_CODE},
    "READ_SHARE_GROUP_STATE": {CLUSTER_CODE},
    "WRITE_SHARE_GROUP_STATE": {CLUSTER_CODE},
    "DELETE_SHARE_GROUP_STATE": {CLUSTER_CODE},
    "READ_SHARE_GROUP_STATE_SUMMARY": {CLUSTER_CODE},
    "STREAMS_GROUP_HEARTBEAT": {GROUP_CODE},
    "STREAMS_GROUP_DESCRIBE": {GROUP_CODE},
    "DESCRIBE_SHARE_GROUP_OFFSETS": {GROUP_CODE},
    "ALTER_SHARE_GROUP_OFFSETS": {GROUP_CODE},
    "DELETE_SHARE_GROUP_OFFSETS": {GROUP_CODE},
}
"""The codes for a client without any right; all other APIs refuse nothing."""

ON_TOPIC = {(one, ResourceType.TOPIC) for one in authorized_operations.ON_TOPIC}
ON_GROUP = {(one, ResourceType.GROUP) for one in authorized_operations.ON_GROUP}
ON_CLUSTER = {(one, ResourceType.CLUSTER) for one in authorized_operations.ON_CLUSTER}
SHOWN = {
    ApiKey.METADATA: ON_TOPIC | ON_CLUSTER,
    ApiKey.DESCRIBE_CLUSTER: ON_CLUSTER,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: ON_TOPIC,
    ApiKey.DESCRIBE_GROUPS: ON_GROUP,
    ApiKey.CONSUMER_GROUP_DESCRIBE: ON_GROUP,
    ApiKey.SHARE_GROUP_DESCRIBE: ON_GROUP,
    ApiKey.STREAMS_GROUP_DESCRIBE: ON_GROUP,
}
"""The operations whose permission a response shows."""

FOR_AUTHENTICATED_CLIENTS = {ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.DESCRIBE_DELEGATION_TOKEN}
"""The APIs that refuse a client without a login before they ask for rights."""


def stated(entry: Entry) -> Rights:
    rights = registration_of(entry.function()).rights
    assert rights is not None, f"{entry.key.name} does not declare its rights"
    return rights


def grants(rights: Rights) -> list[authorizers.Right]:
    """Grant rights on everything that the requests name."""
    return [(one.operation, one.resource, name) for one in rights for name in NAMES[one.resource]]


def alternatives(right: Right) -> set[tuple[Operation, ResourceType]]:
    others = {(one.operation, one.resource) for one in right.instead}
    return {(right.operation, right.resource), *others}


async def answers(node: GuardedNode, entry: Entry) -> list[Any]:
    """Return the answers to all requests of an API, in all of its versions."""
    found = []
    for version in entry.versions:
        await node.create_topic()
        topic_id = node.broker.image.topics[TOPIC].id
        requests = requests_for(entry.key, request_type_of(entry), version, topic_id)
        found += [await node.ask(entry.key, request, version) for request in requests]
    return found


async def refusals(node: GuardedNode, entry: Entry) -> set[int]:
    codes = [code for answer in await answers(node, entry) for code in codes_in(answer)]
    return REFUSALS.intersection(codes)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.key.name)
def test_every_api_declares_its_rights(entry: Entry) -> None:
    stated(entry)


async def test_a_client_without_rights_is_refused_by_every_api(guarded: GuardedNode) -> None:
    """SEC-7: with Kafka's codes, and without a change of anything."""
    before = guarded.state
    found = {entry.key.name: await refusals(guarded, entry) for entry in ENTRIES}
    assert {name: codes for name, codes in found.items() if codes} == KAFKAS_REFUSALS
    assert guarded.state == before


async def test_a_client_with_the_stated_rights_is_served_by_every_api(guarded: GuardedNode) -> None:
    """SEC-7: the rights of the reference are enough."""
    refused = {}
    for entry in ENTRIES:
        guarded.grant(*grants(stated(entry)))
        if found := await refusals(guarded, entry):
            refused[entry.key.name] = found
    assert refused == {}


async def test_apis_ask_for_the_rights_that_they_state_and_no_others(guarded: GuardedNode) -> None:
    """SEC-7: a request may fail before it asks for the second one, so all are granted as well."""
    missing, unknown = {}, {}
    for entry in ENTRIES:
        if entry.key is ApiKey.DESCRIBE_TRANSACTIONS:
            await guarded.begin_transaction()
        rights = stated(entry)
        guarded.rights.asked.clear()
        for granted in ([], grants(rights)):
            guarded.grant(*granted)
            await answers(guarded, entry)
        asked = {(operation, kind) for operation, kind, _ in guarded.rights.asked}
        known = set().union(SHOWN.get(entry.key, ()), *map(alternatives, rights))
        unknown[entry.key.name] = asked - known
        if entry.key not in FOR_AUTHENTICATED_CLIENTS:
            missing[entry.key.name] = [one for one in rights if not asked & alternatives(one)]
    assert {name: found for name, found in unknown.items() if found} == {}
    assert {name: found for name, found in missing.items() if found} == {}
