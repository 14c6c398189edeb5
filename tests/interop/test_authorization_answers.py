"""The same requests of a client with few rights to Headrace and to Kafka get the same codes."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import NamedTuple

import pytest

from headrace.broker.api.registry import APIS, Entry
from headrace.client.admin import Admin
from headrace.client.descriptions import NewTopic
from headrace.errors import error_for
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.message import Message
from headrace.protocol.uuids import from_text
from headrace.security.acls import (
    CLUSTER_NAME,
    WILDCARD,
    AclBinding,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from tests.builders.api_requests import TOPIC, requests_for
from tests.builders.guarded_nodes import codes_in, request_type_of, response_type_of
from tests.clients.logged_in import LoggedIn
from tests.processes.kafka import KafkaRelease
from tests.processes.nodes import HOST, Flavour, Headrace, Kafka, Node, eventually, free_port

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
PASSWORD = "not a secret"
USER = "ada"
Rule = tuple[Operation, ResourceType]

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


class Guarded(NamedTuple):
    """A node with a listener for its super user, and one for a user without rights."""

    node: Node
    port: int
    admin: Admin
    topic_id: bytes

    def allow(self, rules: list[Rule]) -> None:
        """Replace all rules of the user."""
        self.admin.acls.delete(AclFilter())
        bindings = [
            AclBinding(
                kind,
                CLUSTER_NAME if kind is ResourceType.CLUSTER else WILDCARD,
                PatternType.LITERAL,
                f"User:{USER}",
                "*",
                operation,
                Permission.ALLOW,
            )
            for operation, kind in rules
        ]
        assert [one.error for one in self.admin.acls.create(bindings) if one.error] == []
        expected = set(bindings)
        eventually(lambda: set(self.admin.acls.find(AclFilter())), expect=expected.__eq__)

    def codes(self, entry: Entry, version: int) -> list[str]:
        """The error codes of the answers to all requests of an API."""
        requests = requests_for(entry.key, request_type_of(entry), version, self.topic_id)
        response_type = response_type_of(entry)
        return [self.answer(request, response_type, version) for request in requests]

    def answer(self, request: Message, response_type: type[Message], version: int) -> str:
        try:
            with LoggedIn(self.port, USER, PASSWORD) as client:
                return ", ".join(names_in(client.ask(request, response_type, version)))
        except ConnectionResetError:
            return "closed"


def names_in(answer: Message) -> list[str]:
    return sorted({error_for(code).name if code else "NONE" for code in codes_in(answer)})


@pytest.fixture(scope="module")
def nodes(
    kafka_release: KafkaRelease,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[list[Guarded]]:
    flavours: list[Flavour] = [Headrace(), Kafka()]
    with ExitStack() as stack:
        started = [Node(one, tmp_path_factory.mktemp(one.name), {}) for one in flavours]
        for node in started:
            stack.callback(end, node)
        yield [guarded(node, stack) for node in started]


def end(node: Node) -> None:
    if node.is_running:
        node.kill()


def guarded(node: Node, stack: ExitStack) -> Guarded:
    port = free_port()
    listeners = [f"PLAINTEXT://{node.address}", f"SASL://{HOST}:{port}"]
    if node.flavour.name == "kafka":
        listeners.append(f"CONTROLLER://{HOST}:{node.controller_port}")
    node.settings |= {
        "listeners": ",".join(listeners),
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"
        ),
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl.plain.sasl.jaas.config": f'{PLAIN} required user_{USER}="{PASSWORD}";',
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "group.initial.rebalance.delay.ms": "0",
        "share.coordinator.state.topic.num.partitions": "1",
    }
    node.start()
    admin = stack.enter_context(Admin(node.address, timeout_s=20))
    admin.topics.create([NewTopic(name=TOPIC, partitions=1, replication_factor=1)])
    (topic,), _ = admin.topics.describe([TOPIC])
    assert topic.topic_id is not None
    return Guarded(node, port, admin, from_text(topic.topic_id))


def differing(nodes: list[Guarded], part: Callable[[list[str]], object]) -> dict[str, object]:
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


def test_without_rights_all_codes_are_the_same(nodes: list[Guarded]) -> None:
    """SEC-7"""
    for one in nodes:
        one.allow([])
    assert differing(nodes, lambda answers: answers) == {}


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES.keys())
def test_with_some_rights_the_same_ones_are_missing(
    nodes: list[Guarded], rules: list[Rule]
) -> None:
    """SEC-7"""
    for one in nodes:
        one.allow(rules)
    assert differing(nodes, refusals) == {}
