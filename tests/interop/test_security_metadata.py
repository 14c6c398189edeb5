"""Users, quotas and delegation tokens: Kafka's tools on our broker, and one directory for both."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from headrace.client.admin import Admin
from headrace.client.quotas import ClientQuota
from headrace.client.users import ScramUser
from headrace.metadata.log.first_users import parse_first_user
from headrace.metadata.records import decode_batches
from headrace.protocol.schemas.records.metadata import UserScramCredentialRecord
from headrace.security.sasl.scram import Mechanism
from tests.conftest import watch
from tests.interop.conftest import PATIENT
from tests.processes.kafka import KafkaRelease
from tests.processes.kafka_tools import KafkaTools, running_tools
from tests.processes.nodes import HOST, Headrace, Kafka, Node, free_port

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
KEY = "the secret of the tests"
OF_ADA = ("--describe", "--owner-principal", "User:ada")
LIFE = ("--max-life-time-period", "-1")


class Guarded(NamedTuple):
    """A node with a plaintext listener, and one for logins by SCRAM."""

    node: Node
    port: int

    @property
    def login_address(self) -> str:
        return f"{HOST}:{self.port}"


class Both(NamedTuple):
    """Headrace and Kafka by turns on one directory."""

    ours: Guarded
    theirs: Guarded
    directory: Path


def guarded(node: Node) -> Guarded:
    port = free_port()
    listeners = {"PLAINTEXT": node.port, "LOGIN": port}
    protocols = {"PLAINTEXT": "PLAINTEXT", "LOGIN": "SASL_PLAINTEXT"}
    if node.flavour.name == "kafka":
        listeners["CONTROLLER"] = node.controller_port
        protocols["CONTROLLER"] = "PLAINTEXT"
    node.settings |= {
        "listeners": ",".join(f"{name}://{HOST}:{one}" for name, one in listeners.items()),
        "listener.security.protocol.map": ",".join(map(":".join, protocols.items())),
        "sasl.enabled.mechanisms": ",".join(Mechanism),
        "delegation.token.secret.key": KEY,
    }
    for mechanism in Mechanism:
        name = f"listener.name.login.{mechanism.lower()}.sasl.jaas.config"
        node.settings[name] = f"{SCRAM} required;"
    return Guarded(node, port)


@pytest.fixture(scope="module")
def tools(kafka_release: KafkaRelease) -> Iterator[KafkaTools]:
    with running_tools(kafka_release) as running:
        yield running


@pytest.fixture
def both(
    kafka_release: KafkaRelease, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Both]:
    nodes = [Node(flavour, tmp_path, PATIENT) for flavour in (Headrace(), Kafka())]
    for node in nodes:
        watch(request, node)
    yield Both(guarded(nodes[0]), guarded(nodes[1]), tmp_path)
    for node in nodes:
        if node.is_running:
            node.kill()


def login(directory: Path, user: str, password: str, *, by_token: bool = False) -> str:
    """Write client settings for Kafka's tools; return their path."""
    module = f'{SCRAM} required username="{user}" password="{password}"'
    module += ' tokenauth="true";' if by_token else ";"
    path = directory / f"{user}.properties"
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
        f"sasl.jaas.config={module}\nrequest.timeout.ms=5000\ndefault.api.timeout.ms=8000\n"
    )
    return str(path)


def own_login(token_id: str, secret: str) -> dict[str, str]:
    """The settings of our own client for a login by a token."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": token_id,
        "sasl.password": secret,
        "sasl.tokenauth": "true",
    }


def can_log_in(tools: KafkaTools, guarded: Guarded, config: str) -> bool:
    words = ("--bootstrap-server", guarded.login_address, "--list", "--command-config", config)
    return tools.try_run("kafka-topics", *words).code == 0


def configs(tools: KafkaTools, guarded: Guarded, *words: str) -> str:
    return tools.run("kafka-configs", "--bootstrap-server", guarded.node.address, *words)


def tokens(tools: KafkaTools, guarded: Guarded, config: str, *words: str) -> str:
    at = ("--bootstrap-server", guarded.login_address, "--command-config", config)
    return tools.run("kafka-delegation-tokens", *at, *words)


def token_in(shown: str, owner: str) -> tuple[str, str]:
    """The id and the HMAC of an owner's token in the table that Kafka's tool prints."""
    found = re.findall(rf"^(\S+)\s+(\S+)\s+User:{owner}\s", shown, re.MULTILINE)
    (pair,) = found
    return pair[0], pair[1]


def users(guarded: Guarded) -> list[ScramUser]:
    with Admin(guarded.node.address, timeout_s=20) as admin:
        return admin.users.describe()


def quotas(guarded: Guarded) -> list[ClientQuota]:
    with Admin(guarded.node.address, timeout_s=20) as admin:
        found = admin.quotas.describe()
    return sorted(found, key=str)


def add_user(guarded: Guarded, name: str, password: str) -> None:
    with Admin(guarded.node.address, timeout_s=20) as admin:
        outcome = admin.users.set_password(name, password, Mechanism.SHA_256)
    assert outcome.error is None, outcome


def test_kafka_configs_sets_and_removes_scram_users(both: Both, tools: KafkaTools) -> None:
    """SEC-5"""
    ours = both.ours
    ours.node.start()
    of_ada = ("--entity-type", "users", "--entity-name", "ada")
    configs(
        tools, ours, "--alter", *of_ada, "--add-config",
        "SCRAM-SHA-256=[iterations=8192,password=pencil]",
    )  # fmt: skip
    configs(tools, ours, "--alter", *of_ada, "--add-config", "SCRAM-SHA-512=[password=pen]")
    assert users(ours) == [ScramUser("ada", {"SCRAM-SHA-256": 8192, "SCRAM-SHA-512": 4096})]
    shown = configs(tools, ours, "--describe", *of_ada)
    assert "SCRAM-SHA-256=iterations=8192, SCRAM-SHA-512=iterations=4096" in shown

    config = login(both.directory, "ada", "pencil")
    assert can_log_in(tools, ours, config)
    assert not can_log_in(tools, ours, login(both.directory, "ada", "rubber"))

    configs(tools, ours, "--alter", *of_ada, "--delete-config", "SCRAM-SHA-256")
    assert users(ours) == [ScramUser("ada", {"SCRAM-SHA-512": 4096})]
    again = tools.try_run(
        "kafka-configs", "--bootstrap-server", ours.node.address, "--alter", *of_ada,
        "--delete-config", "SCRAM-SHA-256",
    )  # fmt: skip
    assert "ResourceNotFoundException" in again.text


def test_kafka_configs_sets_and_removes_quotas(both: Both, tools: KafkaTools) -> None:
    """QUO-1"""
    ours = both.ours
    ours.node.start()
    produce = ("--alter", "--add-config", "producer_byte_rate=1024,request_percentage=12.5")
    entities: list[tuple[tuple[str, ...], dict[str, str | None]]] = [
        (("--entity-type", "users", "--entity-name", "ada"), {"user": "ada"}),
        (("--entity-type", "users", "--entity-default"), {"user": None}),
        (("--entity-type", "clients", "--entity-name", "app"), {"client-id": "app"}),
        (
            ("--user", "ada", "--client-defaults"),
            {"client-id": None, "user": "ada"},
        ),
    ]
    for words, _ in entities:
        configs(tools, ours, *produce, *words)
    address = ("--entity-type", "ips", "--entity-name", "10.0.0.7")
    configs(tools, ours, "--alter", "--add-config", "connection_creation_rate=5", *address)
    values = {"producer_byte_rate": 1024.0, "request_percentage": 12.5}
    expected = [ClientQuota(entity, values) for _, entity in entities]
    expected.append(ClientQuota({"ip": "10.0.0.7"}, {"connection_creation_rate": 5.0}))
    assert quotas(ours) == sorted(expected, key=str)
    for words, _ in entities:
        assert "producer_byte_rate=1024.0" in configs(tools, ours, "--describe", *words)
    assert "connection_creation_rate=5.0" in configs(tools, ours, "--describe", *address)
    every = configs(tools, ours, "--describe", "--entity-type", "users")
    assert every.count("producer_byte_rate=1024.0") == 2

    for words, _ in entities:
        names = "producer_byte_rate,request_percentage"
        configs(tools, ours, "--alter", "--delete-config", names, *words)
    configs(tools, ours, "--alter", "--delete-config", "connection_creation_rate", *address)
    assert quotas(ours) == []
    wrong = tools.try_run(
        "kafka-configs", "--bootstrap-server", ours.node.address, "--alter", "--add-config",
        "producer_byte_rate=0", "--entity-type", "users", "--entity-name", "ada",
    )  # fmt: skip
    assert "must be more than 0" in wrong.text


def test_kafka_delegation_tokens_manages_tokens(both: Both, tools: KafkaTools) -> None:
    """SEC-8: KIP-48 from the creation of a token to a login with it, and its end."""
    ours, directory = both.ours, both.directory
    ours.node.start()
    for name in ("ada", "bob"):
        add_user(ours, name, "pw")
    ada, bob = (login(directory, name, "pw") for name in ("ada", "bob"))
    create = ("--create", "--max-life-time-period", "3600000", "--renewer-principal", "User:bob")
    token_id, secret = token_in(tokens(tools, ours, ada, *create), "ada")
    for config in (ada, bob):
        assert token_in(tokens(tools, ours, config, *OF_ADA), "ada") == (token_id, secret)

    by_token = login(directory, token_id, secret, by_token=True)
    assert can_log_in(tools, ours, by_token)
    with Admin(ours.login_address, own_login(token_id, secret)) as admin:
        assert admin.nodes.describe().brokers
    at = ("--bootstrap-server", ours.login_address, "--command-config", by_token)
    refused = tools.try_run("kafka-delegation-tokens", *at, *create)
    assert "UnsupportedByAuthenticationException" in refused.text

    renew = ("--renew", "--renew-time-period", "60000", "--hmac", secret)
    assert "renew" in tokens(tools, ours, bob, *renew)
    tokens(tools, ours, ada, "--expire", "--expiry-time-period", "-1", "--hmac", secret)
    assert token_id not in tokens(tools, ours, ada, *OF_ADA)
    assert not can_log_in(tools, ours, by_token)


def test_a_plaintext_connection_has_no_tokens(both: Both, tools: KafkaTools) -> None:
    ours = both.ours
    ours.node.start()
    config = both.directory / "plain.properties"
    config.write_text("security.protocol=PLAINTEXT\n")
    at = ("--bootstrap-server", ours.node.address, "--command-config", str(config))
    refused = tools.try_run("kafka-delegation-tokens", *at, "--describe")
    assert "UnsupportedByAuthenticationException" in refused.text


def test_a_directory_that_kafka_formats_with_a_user_lets_that_user_log_in_here(
    both: Both, tools: KafkaTools, kafka_release: KafkaRelease
) -> None:
    """SEC-5"""
    ours, theirs, directory = both
    theirs.node.flavour.command(theirs.node)  # Writes the properties, and formats.
    data = theirs.node.data
    for path in data.rglob("*"):
        if path.is_file():
            path.unlink()
    kafka_release.run(
        "kafka-storage", "format", "--standalone", "-t", "AnchorClusterAAAAAAAAA", "-c",
        str(directory / "server.properties"), "--add-scram",
        "SCRAM-SHA-256=[name=ada,iterations=4097,password=pencil]",
    )  # fmt: skip
    ours.node.start()
    assert users(ours) == [ScramUser("ada", {"SCRAM-SHA-256": 4097})]
    assert can_log_in(tools, ours, login(directory, "ada", "pencil"))


SALT = "MDEyMzQ1Njc4OWFiY2RlZg=="


@pytest.mark.parametrize(
    "user",
    [
        f"SCRAM-SHA-256=[name=ada,iterations=5000,salt={SALT},password=pencil]",
        f'SCRAM-SHA-512=[name="ada",salt="{SALT}",password="p = encil"]',
        f"SCRAM-SHA-256=[name=ada,saltedpassword={SALT},salt={SALT}]",
        f"SCRAM-SHA-512=[saltedpassword={SALT},iterations=16384,salt={SALT},name=a b]",
    ],
)
def test_every_form_of_a_first_user_gives_kafkas_record(
    kafka_release: KafkaRelease, tmp_path: Path, user: str
) -> None:
    """SEC-5"""
    properties = tmp_path / "server.properties"
    properties.write_text(
        f"process.roles=controller\nnode.id=1\nlog.dirs={tmp_path / 'data'}\n"
        "listeners=CONTROLLER://127.0.0.1:1\ncontroller.listener.names=CONTROLLER\n"
        "controller.quorum.bootstrap.servers=127.0.0.1:1\n"
    )
    options = ("--standalone", "-t", "AnchorClusterAAAAAAAAA", "-c", str(properties))
    kafka_release.run("kafka-storage", "format", *options, "--add-scram", user)
    content = (tmp_path / "data" / "bootstrap.checkpoint").read_bytes()
    records = [record for batch in decode_batches(content) for record in batch.records]
    (theirs,) = [one for one in records if isinstance(one, UserScramCredentialRecord)]
    assert parse_first_user(user) == theirs


def test_a_directory_that_we_format_with_a_user_lets_that_user_log_in_to_kafka(
    both: Both, tools: KafkaTools
) -> None:
    """SEC-5"""
    from headrace.cli.main import main

    ours, theirs, directory = both
    user = "SCRAM-SHA-256=[name=ada,iterations=4097,password=pencil]"
    assert main(["format", "--data", str(ours.node.data), "--add-scram", user]) == 0
    theirs.node.start()
    assert users(theirs) == [ScramUser("ada", {"SCRAM-SHA-256": 4097})]
    assert can_log_in(tools, theirs, login(directory, "ada", "pencil"))


def test_users_quotas_and_tokens_of_each_are_in_force_in_the_other(
    both: Both, tools: KafkaTools
) -> None:
    """SEC-5, SEC-8, QUO-1"""
    ours, theirs, directory = both
    ours.node.start()
    add_user(ours, "ada", "pw")
    of_ada = ("--entity-type", "users", "--entity-name", "ada")
    configs(tools, ours, "--alter", "--add-config", "consumer_byte_rate=4096", *of_ada)
    ada = login(directory, "ada", "pw")
    token_id, secret = token_in(tokens(tools, ours, ada, "--create", *LIFE), "ada")
    by_token = login(directory, token_id, secret, by_token=True)
    listed = users(ours), quotas(ours)
    ours.node.stop()

    theirs.node.start()
    assert (users(theirs), quotas(theirs)) == listed
    assert can_log_in(tools, theirs, ada)
    assert can_log_in(tools, theirs, by_token)
    with Admin(theirs.login_address, own_login(token_id, secret)) as admin:
        assert admin.nodes.describe().brokers
    assert token_in(tokens(tools, theirs, ada, *OF_ADA), "ada") == (token_id, secret)
    add_user(theirs, "bob", "pw2")
    configs(tools, theirs, "--alter", "--add-config", "producer_byte_rate=7", *of_ada)
    bob = login(directory, "bob", "pw2")
    second = token_in(tokens(tools, theirs, bob, "--create", *LIFE), "bob")
    listed = users(theirs), quotas(theirs)
    theirs.node.stop()

    ours.node.start()
    assert (users(ours), quotas(ours)) == listed
    for config in (ada, bob, by_token, login(directory, *second, by_token=True)):
        assert can_log_in(tools, ours, config)
