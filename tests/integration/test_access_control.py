"""Users with limited rights, as clients meet them, and the audit log of what they do."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.client.admin import Admin
from headrace.security.acls import AclBinding, AclFilter, Operation, Permission, ResourceType
from headrace.security.acls import PatternType as Pattern
from tests.clients.librdkafka import SECONDS_MAX, read_values
from tests.conftest import watch
from tests.integration.cli.commands import run
from tests.processes.nodes import HOST, Headrace, Node, eventually, free_port

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
PASSWORD = "not a secret"


class Guarded(NamedTuple):
    """A node whose first listener is for super users, and the second for users with a password."""

    node: Node
    login_address: str

    def admin(self, user: str, password: str = PASSWORD) -> AdminClient:
        return AdminClient(
            {
                "bootstrap.servers": self.login_address,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": user,
                "sasl.password": password,
                "log_level": 0,
            }
        )

    def allow(self, principal: str, operation: Operation, name: str) -> None:
        rule = AclBinding(
            ResourceType.TOPIC, name, Pattern.PREFIXED, principal, "*", operation, Permission.ALLOW
        )
        with Admin(self.node.address, timeout_s=20) as admin:
            (outcome,) = admin.acls.create([rule])
            assert outcome.error is None

    def events(self) -> list[dict[str, Any]]:
        text = (self.node.directory / "audit.log").read_text()
        return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def guarded(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Guarded]:
    node = Node(Headrace(), tmp_path_factory.mktemp("guarded"), {})
    port = free_port()
    users = " ".join(f'user_{name}="{PASSWORD}"' for name in ("ada", "eve"))
    node.settings |= {
        "listeners": f"PLAINTEXT://{node.address},SASL://{HOST}:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl.plain.sasl.jaas.config": f"{PLAIN} required {users};",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "headrace.audit.file": str(node.directory / "audit.log"),
        "headrace.audit.topic": "audit",
        "headrace.audit.events": "denied,allowed,logins",
    }
    watch(request, node)
    node.start()
    yield Guarded(node, f"{HOST}:{port}")
    if node.is_running:
        node.kill()


def created(client: AdminClient, name: str) -> int:
    """Return the error of creating a topic, or 0."""
    try:
        client.create_topics([NewTopic(name, 1, 1)])[name].result(SECONDS_MAX)
    except KafkaException as error:
        code: int = error.args[0].code()
        return code
    return 0


def test_a_rule_counts_from_the_next_request_on(guarded: Guarded) -> None:
    """SEC-7"""
    ada, eve = guarded.admin("ada"), guarded.admin("eve")
    denied = KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert created(ada, "orders-1") == denied

    guarded.allow("User:ada", Operation.CREATE, "orders-")

    assert created(ada, "orders-1") == 0
    assert (created(ada, "bills"), created(eve, "orders-2")) == (denied, denied)
    with Admin(guarded.node.address, timeout_s=20) as admin:
        admin.acls.delete(AclFilter())
    assert created(ada, "orders-2") == denied


def test_rules_are_in_force_after_a_crash(guarded: Guarded) -> None:
    """SEC-7, SEC-8"""
    guarded.allow("User:ada", Operation.CREATE, "orders-")
    guarded.node.kill()
    guarded.node.start()
    assert created(guarded.admin("ada"), "orders-1") == 0
    assert created(guarded.admin("eve"), "orders-2") == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_requests_and_logins_of_users_are_in_the_audit_log(guarded: Guarded) -> None:
    """SEC-9"""
    guarded.allow("User:ada", Operation.CREATE, "orders-")
    assert created(guarded.admin("ada"), "orders-1") == 0
    created(guarded.admin("eve"), "orders-2")
    with pytest.raises(KafkaException):
        guarded.admin("eve", "wrong").list_topics(timeout=1)

    def seen() -> set[tuple[Any, ...]]:
        return {
            (one["event"], one["principal"], one.get("allowed", one.get("succeeded")))
            for one in guarded.events()
        }

    expected: set[tuple[Any, ...]] = {
        ("authentication", "User:ada", True),
        ("authentication", None, False),
        ("authorization", "User:ada", True),
        ("authorization", "User:eve", False),
    }
    eventually(seen, expect=expected.__le__)
    by_rule = [one["rule"] for one in guarded.events() if "rule" in one]
    assert {"permission": "ALLOW", "resource": "orders-"}.items() <= by_rule[0].items()
    events = [json.loads(value or b"") for value in read_values(guarded.node, "audit")]
    assert {one["principal"] for one in events} >= {"User:ada", "User:eve", None}
    assert PASSWORD not in (guarded.node.directory / "audit.log").read_text()


def test_a_role_is_granted_used_listed_and_revoked(guarded: Guarded) -> None:
    """SEC-9"""

    def roles(*words: str) -> Any:
        done = run(guarded.node.address, "roles", *words, "--json")
        assert done.code == 0, done.err
        return done.document

    operator = guarded.admin("ada")
    assert created(operator, "orders") == KafkaError.TOPIC_AUTHORIZATION_FAILED
    roles("grant", "operator", "ada", "--everywhere")
    assert created(operator, "orders") == 0
    roles("grant", "viewer", "Group:staff", "--everywhere")

    members = {(one["role"], one["principal"]) for one in roles("members")}
    assert members == {
        ("operator", "User:ada"),
        ("viewer", "User:ada"),
        ("viewer", "Group:staff"),
    }
    roles("revoke", "operator", "ada", "--everywhere", "--yes")
    assert created(operator, "bills") == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert [one["principal"] for one in roles("members")] == ["Group:staff"]


def test_an_audit_file_that_cannot_be_written_is_reported(guarded: Guarded) -> None:
    """SEC-9"""
    node = guarded.node
    node.stop()
    node.settings["headrace.audit.file"] = str(node.directory / "missing" / "audit.log")
    node.start()
    created(guarded.admin("eve"), "orders")
    eventually(lambda: "audit log not written, its events are lost" in node.log)
    assert created(guarded.admin("ada"), "orders") == KafkaError.TOPIC_AUTHORIZATION_FAILED
