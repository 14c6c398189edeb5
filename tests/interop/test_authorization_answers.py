"""The same requests of a client with few rights to Headrace and to Kafka get the same codes."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from headrace.broker.api.registry import APIS, Entry
from headrace.client.admin import Admin
from headrace.client.descriptions import NewTopic
from headrace.errors import error_for
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.message import Message
from headrace.protocol.uuids import from_text
from headrace.security.acls import Operation, ResourceType
from tests.builders.api_requests import TOPIC, requests_for
from tests.builders.guarded_nodes import codes_in, request_type_of, response_type_of
from tests.clients.logged_in import LoggedIn
from tests.processes.guarded_nodes import PASSWORD, USER, GuardedNode, Rule
from tests.processes.kafka import KafkaRelease
from tests.processes.nodes import Flavour, Headrace, Kafka

RULES: dict[str, list[Rule]] = {
    "groups": [
        (Operation.READ, ResourceType.GROUP),
        (Operation.DELETE, ResourceType.GROUP),
        (Operation.WRITE, ResourceType.TRANSACTIONAL_ID),
    ],
    "visible topics": [
        (Operation.READ, ResourceType.GROUP),
        (Operation.WRITE, ResourceType.TRANSACTIONAL_ID),
        (Operation.DESCRIBE, ResourceType.TOPIC),
    ],
    "records": [
        (Operation.READ, ResourceType.TOPIC),
        (Operation.WRITE, ResourceType.TOPIC),
        (Operation.DESCRIBE, ResourceType.GROUP),
    ],
    "configs": [
        (Operation.ALTER_CONFIGS, ResourceType.TOPIC),
        (Operation.DESCRIBE_CONFIGS, ResourceType.GROUP),
    ],
    "administration": [
        (Operation.CREATE, ResourceType.TOPIC),
        (Operation.DESCRIBE, ResourceType.CLUSTER),
        (Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER),
        (Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER),
    ],
    "brokers": [(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)],
}
LEFT_OUT = {
    ApiKey.SASL_HANDSHAKE: "the connection has a login",
    ApiKey.SASL_AUTHENTICATE: "the connection has a login",
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: "Kafka serves it with a plug-in only",
    ApiKey.PUSH_TELEMETRY: "Kafka serves it with a plug-in only",
}
ENTRIES = [one for one in sorted(APIS.values(), key=lambda one: one.key) if one.key not in LEFT_OUT]


class Compared(NamedTuple):
    """A node, and the id of its topic."""

    node: GuardedNode
    topic_id: bytes

    def codes(self, entry: Entry, version: int) -> list[str]:
        """The error codes of the answers to all requests of an API."""
        requests = requests_for(entry.key, request_type_of(entry), version, self.topic_id)
        response_type = response_type_of(entry)
        return [self.answer(request, response_type, version) for request in requests]

    def answer(self, request: Message, response_type: type[Message], version: int) -> str:
        try:
            with LoggedIn(self.node.login_port, USER, PASSWORD) as client:
                return ", ".join(names_in(client.ask(request, response_type, version)))
        except ConnectionResetError:
            return "closed"


def names_in(answer: Message) -> list[str]:
    return sorted({error_for(code).name if code else "NONE" for code in codes_in(answer)})


@pytest.fixture(scope="module")
def nodes(
    kafka_release: KafkaRelease, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Compared]]:
    flavours: list[Flavour] = [Headrace(), Kafka()]
    started = [GuardedNode(one, tmp_path_factory.mktemp(one.name)) for one in flavours]
    try:
        yield [compared(node) for node in started]
    finally:
        for node in started:
            if node.is_running:
                node.kill()


def compared(node: GuardedNode) -> Compared:
    node.start()
    with Admin(node.address, timeout_s=20) as admin:
        admin.topics.create([NewTopic(name=TOPIC, partitions=1, replication_factor=1)])
        (topic,), _ = admin.topics.describe([TOPIC])
    assert topic.topic_id is not None
    return Compared(node, from_text(topic.topic_id))


def differing(nodes: list[Compared], part: Callable[[list[str]], object]) -> dict[str, object]:
    """Return the APIs whose answers differ, with both answers."""
    found: dict[str, object] = {}
    for entry in ENTRIES:
        for version in entry.versions:
            ours, theirs = (part(one.codes(entry, version)) for one in nodes)
            if ours != theirs:
                found[f"{entry.key.name} v{version}"] = ours, theirs
    return found


def refusals(answers: list[str]) -> list[list[str]]:
    """The codes of missing rights in the answers; other codes depend on the time of day."""
    return [re.findall(r"\w+_AUTHORIZATION_FAILED", one) for one in answers]


def test_without_rights_all_codes_are_the_same(nodes: list[Compared]) -> None:
    """SEC-7"""
    for one in nodes:
        one.node.allow([])
    assert differing(nodes, lambda answers: answers) == {}


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES.keys())
def test_with_some_rights_the_same_ones_are_missing(
    nodes: list[Compared], rules: list[Rule]
) -> None:
    """SEC-7"""
    for one in nodes:
        one.node.allow(rules)
    assert differing(nodes, refusals) == {}
