"""The commands about rights, users, quotas and tokens on an Apache Kafka with an authorizer."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.integration.cli.commands import Done, run
from tests.processes.kafka import KafkaRelease
from tests.processes.kafka_tools import KafkaTools, running_tools
from tests.processes.nodes import HOST, Kafka, Node, eventually, free_port

PASSWORD = "a, b=c \u00e4"


class Guarded(NamedTuple):
    """A Kafka with an authorizer, Kafka's tools, and a listener for logins by SCRAM."""

    node: Node
    login_address: str
    tools: KafkaTools

    def ok(self, *words: str, stdin: bytes = b"") -> Done:
        """Run a command as the super user; it must succeed."""
        done = run(self.node.address, *words, stdin=stdin)
        assert done.code == 0, done.err
        return done

    def kafka(self, script: str, *words: str) -> str:
        return self.tools.run(script, "--bootstrap-server", self.node.address, *words)

    def as_user(self, user: str, password: str, *words: str, stdin: bytes = b"") -> Done:
        """Run a command with a login by SCRAM."""
        login = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": user,
            "sasl.password": password,
        }
        options = [f"-X{name}={value}" for name, value in login.items()]
        return run(self.login_address, words[0], *words[1:2], *options, *words[2:], stdin=stdin)


@pytest.fixture(scope="module")
def guarded(
    kafka_release: KafkaRelease, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Guarded]:
    node = Node(Kafka(), tmp_path_factory.mktemp("ruled"), {})
    port = free_port()
    listeners = {"PLAINTEXT": node.port, "SASL_PLAINTEXT": port, "CONTROLLER": node.controller_port}
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    login = "listener.name.sasl_plaintext"
    node.settings |= {
        "listeners": ",".join(f"{name}://{HOST}:{at}" for name, at in listeners.items()),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,"
        "CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
        f"{login}.scram-sha-256.sasl.jaas.config": f"{module} required;",
        f"{login}.scram-sha-512.sasl.jaas.config": f"{module} required;",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "delegation.token.secret.key": "secret-of-tests",
        "group.initial.rebalance.delay.ms": "0",
    }
    try:
        node.start()
        with running_tools(kafka_release) as tools:
            yield Guarded(node, f"{HOST}:{port}", tools)
    finally:
        if node.is_running:
            node.kill()


def test_rules_are_added_listed_and_removed(guarded: Guarded) -> None:
    """SEC-7: the rules are those that kafka-acls shows."""
    added = guarded.ok(
        *("acls", "add", "--allow-principal", "ada", "--producer", "--topic", "bills")
    )
    assert "allows User:ada Write on topic bills from every host" in added.out
    shown = guarded.kafka("kafka-acls", "--list", "--topic", "bills")
    for operation in ("WRITE", "CREATE", "DESCRIBE"):
        expected = f"principal=User:ada, host=*, operation={operation}, permissionType=ALLOW"
        assert expected in shown
    listed = guarded.ok("acls", "list", "--topic", "bills", "--json").document
    assert {rule["operation"] for rule in listed} == {"Write", "Create", "Describe"}
    guarded.ok(
        *("acls", "remove", "--allow-principal", "ada", "--operation", "write"),
        *("--topic", "bills", "--yes"),
    )
    assert "WRITE" not in guarded.kafka("kafka-acls", "--list", "--topic", "bills")
    guarded.ok("acls", "remove", "--topic", "bills", "--yes")
    assert guarded.ok("acls", "list", "--topic", "bills", "--json").document == []


def test_rules_of_kafka_acls_are_listed_and_removed(guarded: Guarded) -> None:
    guarded.kafka(
        *("kafka-acls", "--add", "--deny-principal", "User:eve", "--deny-host", "10.0.0.7"),
        *("--operation", "DescribeConfigs", "--topic", "pay", "--resource-pattern-type"),
        "prefixed",
    )
    (rule,) = guarded.ok(
        "acls", "list", "--topic", "payments", "--pattern", "match", "--json"
    ).document
    assert rule == {
        "resource_type": "topic",
        "resource_name": "pay",
        "pattern_type": "prefixed",
        "principal": "User:eve",
        "host": "10.0.0.7",
        "operation": "DescribeConfigs",
        "permission": "deny",
    }
    removed = guarded.ok(
        "acls", "remove", "--deny-principal", "eve", "--topic", "pay", "--prefixed", "--yes"
    )
    assert removed.out.startswith("removed: denies User:eve DescribeConfigs")
    assert guarded.ok("acls", "remove", "--topic", "pay", "--prefixed").out == "no such rule\n"


def test_every_type_of_resource_takes_rules(guarded: Guarded) -> None:
    for resource, operation in (
        (("--group", "billing"), "read"),
        (("--cluster",), "idempotent-write"),
        (("--transactional-id", "copier"), "two-phase-commit"),
        (("--delegation-token", "abc"), "describe"),
        (("--user-principal", "bob"), "create-tokens"),
    ):
        guarded.ok("acls", "add", "--allow-principal", "ada", "--operation", operation, *resource)
        (rule,) = guarded.ok("acls", "list", *resource, "--json").document
        assert rule["operation"].lower() == operation.replace("-", "")
        guarded.ok("acls", "remove", *resource, "--yes")


def test_decisions_are_explained_by_the_rules_of_the_cluster(guarded: Guarded) -> None:
    guarded.ok(
        "acls", "add", "--allow-principal", "ada", "--operation", "write", "--topic", "bills"
    )

    def explained(*words: str) -> Done:
        question = ("acls", "--explain", "--operation", "write", "--topic", "bills")
        return run(guarded.node.address, *question, *words)

    allowed = explained("--principal", "ada", "--host", "10.0.0.7")
    rule = "a rule allows User:ada Write on topic bills from every host"
    assert allowed.out == f"User:ada may Write on topic bills from 10.0.0.7: {rule}\n"
    denied = explained("--principal", "bob")
    assert (denied.code, "no rule allows it" in denied.out) == (1, True)
    assert "--super-user" in denied.err
    assert explained("--principal", "bob", "--super-user", "bob", "--json").document["is_allowed"]
    guarded.ok("acls", "remove", "--topic", "bills", "--yes")


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_users_log_in_with_the_passwords_that_they_got(guarded: Guarded, mechanism: str) -> None:
    """SEC-5: a password of any characters works with Kafka's check."""
    user, option = f"ada-{mechanism}", ("--mechanism", mechanism)
    guarded.ok("users", "add", user, *option, "--password-stdin", stdin=f"{PASSWORD}\n".encode())
    listed = guarded.ok("users", "list", user, "--json").document
    assert listed == [{"name": user, "credentials": {mechanism: 4096}}]
    login = (f"-Xsasl.mechanism={mechanism}",)
    assert guarded.as_user(user, PASSWORD, "topics", "list", *login).code == 0
    again = run(guarded.node.address, "users", "add", user, *option, "--password-stdin", stdin=b"x")
    assert (again.code, "set-password" in again.err) == (1, True)
    guarded.ok("users", "set-password", user, "--password-stdin", stdin=b"other\n")
    assert guarded.as_user(user, "other", "topics", "list", *login).code == 0
    assert "login of" in guarded.as_user(user, PASSWORD, "topics", "list", *login).err
    guarded.ok("users", "remove", user, "--yes")
    assert guarded.ok("users", "list", user, "--json").document == []
    assert guarded.as_user(user, "other", "topics", "list", *login).code == 1


def test_tokens_live_from_create_to_expire(guarded: Guarded, tmp_path: Path) -> None:
    """SEC-5: a token logs in as its owner, with Java's clients, until it expires."""
    guarded.ok("users", "add", "tom", "--password-stdin", stdin=b"pw\n")
    guarded.ok("acls", "add", "--allow-principal", "tom", "--producer", "--topic", "tasks")
    guarded.ok("topics", "create", "tasks")
    file = tmp_path / "token.properties"
    words = ("create", "--renewer", "bob", "--max-lifetime", "1h", "--to", str(file), "--json")
    made = guarded.as_user("tom", "pw", "tokens", *words)
    assert made.code == 0, made.err
    token = made.document["id"]
    assert "secret" not in made.document
    assert file.stat().st_mode & 0o777 == 0o600

    def listing() -> list[dict[str, Any]]:
        """Kafka's brokers learn of a token a moment after the controller."""
        found: list[dict[str, Any]] = guarded.as_user(
            "tom", "pw", "tokens", "list", "--json"
        ).document
        return found

    (listed,) = eventually(listing)
    assert (listed["owner"], listed["renewers"]) == ("User:tom", ["User:bob"])
    file.write_text(f"{file.read_text()}security.protocol=SASL_PLAINTEXT\n")
    options = ("--bootstrap-server", guarded.login_address, "--command-config", str(file))
    assert "tasks" in guarded.tools.run("kafka-topics", *options, "--list")
    renewed = guarded.as_user("tom", "pw", "tokens", "renew", token, "--period", "10m")
    assert renewed.out.startswith(f"token {token} expires at ")
    expired = guarded.as_user("tom", "pw", "tokens", "expire", token)
    assert expired.out.startswith(f"token {token} expired at ")
    eventually(listing, expect=lambda found: found == [])
    missing = guarded.as_user("tom", "pw", "tokens", "renew", token)
    assert "headrace tokens list" in missing.err


def test_quotas_are_set_listed_and_removed(guarded: Guarded) -> None:
    """QUO-2: the quotas are those that kafka-configs shows."""
    guarded.ok(
        *("quotas", "set", "--user", "ada", "--client-id", "loader"),
        *("producer_byte_rate=1MB", "request_percentage=12.5"),
    )
    guarded.ok("quotas", "set", "--default-user", "consumer_byte_rate=2MB")
    guarded.ok("quotas", "set", "--ip", "10.0.0.7", "connection_creation_rate=20")
    shown = guarded.kafka(
        *("kafka-configs", "--describe", "--entity-type", "users", "--entity-name", "ada"),
        *("--entity-type", "clients", "--entity-name", "loader"),
    )
    assert "producer_byte_rate=1000000.0" in shown
    assert "request_percentage=12.5" in shown
    listed = guarded.ok("quotas", "list", "--json").document
    assert {"entity": {"user": None}, "values": {"consumer_byte_rate": 2e6}} in listed
    assert {"entity": {"ip": "10.0.0.7"}, "values": {"connection_creation_rate": 20.0}} in listed
    assert "user ada, client-id loader" in guarded.ok("quotas", "list").out
    guarded.ok("quotas", "remove", "--user", "ada", "--client-id", "loader", "request_percentage")
    (left,) = guarded.ok("quotas", "list", "--user", "ada", "--json").document
    assert left["values"] == {"producer_byte_rate": 1e6}
    for owner in (
        ("--user", "ada", "--client-id", "loader"),
        ("--default-user",),
        ("--ip", "10.0.0.7"),
    ):
        guarded.ok("quotas", "remove", *owner)
    assert guarded.ok("quotas", "list", "--json").document == []
    assert "has no quota" in guarded.ok("quotas", "remove", "--user", "ada").out
