"""The administration of an Apache Kafka that requires logins: every mechanism, over TCP and TLS."""

import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import httpx2
import pytest
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from headrace import Consumer, Producer, profile
from headrace.cli.main import main
from headrace.client.addresses import Address
from headrace.client.admin import Admin
from headrace.client.connection import Connection
from headrace.client.connection_profiles import Given, settings_for, write
from headrace.client.security import Security, TlsFailed
from headrace.errors import IllegalSaslState, SaslAuthenticationFailed
from headrace.protocol.schemas.metadata import MetadataRequest, MetadataResponse
from tests.integration.cli.commands import Done, run
from tests.processes.kafka import KafkaRelease
from tests.processes.nodes import HOST, Kafka, Node, eventually, free_port
from tests.processes.rest_proxies import proxy, registry

SESSION_MS = 2000
PASSWORD = "a, b=c \u00e4"
UNSECURED = {
    "sasl.mechanism": "OAUTHBEARER",
    "enable.sasl.oauthbearer.unsecure.jwt": "true",
    "sasl.oauthbearer.config": "principal=ada",
}
LOGINS = {
    "PLAIN": {"sasl.mechanism": "PLAIN"},
    "SCRAM-SHA-256": {"sasl.mechanism": "SCRAM-SHA-256"},
    "SCRAM-SHA-512": {"sasl.mechanism": "SCRAM-SHA-512"},
    "OAUTHBEARER": UNSECURED,
}
CONNECTION = "Endpoint=sb://shop.example/;SharedAccessKeyName=a;SharedAccessKey=s="
PERSON = {"sasl.username": "ada", "sasl.password": PASSWORD}


class Guarded(NamedTuple):
    """A Kafka with a listener of each protocol."""

    node: Node
    ports: Mapping[str, int]
    tls: Path

    def address(self, protocol: str) -> str:
        return f"{HOST}:{self.ports[protocol]}"

    def settings(self, protocol: str, mechanism: str | None = None) -> dict[str, str]:
        given = {"security.protocol": protocol}
        if protocol.endswith("SSL"):
            given["ssl.ca.location"] = str(self.tls / "ca.crt")
        if mechanism is not None:
            given |= LOGINS[mechanism] | PERSON
        return given

    def admin(self, protocol: str, **settings: str) -> Admin:
        given = {name.replace("_", "."): value for name, value in settings.items()}
        return Admin(self.address(protocol), {**self.settings(protocol), **given}, timeout_s=20)


@pytest.fixture(scope="module")
def guarded(
    kafka_release: KafkaRelease, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Guarded]:
    directory = tmp_path_factory.mktemp("guarded")
    tls = directory / "tls"
    make_certificates(tls)
    ports = {name: free_port() for name in ("SASL_PLAINTEXT", "SASL_SSL", "SSL")}
    node = Node(Kafka(), directory, {})
    node.settings |= guarded_settings(node, ports, tls)
    try:
        node.start()
        add_scram_user(node)
        yield Guarded(node, ports, tls)
    finally:
        if node.is_running:
            node.kill()


def guarded_settings(node: Node, ports: Mapping[str, int], tls: Path) -> dict[str, str]:
    listeners = {"PLAINTEXT": node.port, **ports, "CONTROLLER": node.controller_port}
    security = "org.apache.kafka.common.security"
    settings = {
        "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in listeners.items()),
        "listener.security.protocol.map": ",".join(
            f"{name}:{'PLAINTEXT' if name == 'CONTROLLER' else name}" for name in listeners
        ),
        "sasl.enabled.mechanisms": ",".join(LOGINS),
        "connections.max.reauth.ms": str(SESSION_MS),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(tls / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(tls / "ca.crt"),
        "listener.name.ssl.ssl.client.auth": "required",
    }
    for listener in ("sasl_plaintext", "sasl_ssl"):
        login = f"listener.name.{listener}"
        settings |= {
            # Backslashes in a properties file are escapes, as in Java.
            f"{login}.plain.sasl.jaas.config": f"{security}.plain.PlainLoginModule required"
            f' user_ada="{PASSWORD.encode("ascii", "backslashreplace").decode()}"'.replace(
                "\\xe4", "\\u00e4"
            )
            + f' user_$ConnectionString="{CONNECTION}";',
            f"{login}.scram-sha-256.sasl.jaas.config": f"{security}.scram.ScramLoginModule"
            " required;",
            f"{login}.scram-sha-512.sasl.jaas.config": f"{security}.scram.ScramLoginModule"
            " required;",
            f"{login}.oauthbearer.sasl.jaas.config": f"{security}.oauthbearer"
            '.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";',
        }
    return settings


def make_certificates(directory: Path) -> None:
    """An authority, and certificates by it for the broker and for a client."""
    directory.mkdir()
    openssl(
        directory, "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=tests -keyout ca.key",
        "-out ca.crt",
    )  # fmt: skip
    (directory / "san").write_text(f"subjectAltName=IP:{HOST}\n")
    for name in ("broker", "client"):
        openssl(
            directory, f"req -newkey rsa:2048 -nodes -subj /CN={name} -keyout {name}.key",
            f"-out {name}.csr",
        )  # fmt: skip
        openssl(
            directory, f"x509 -req -in {name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial",
            f"-days 2 -extfile san -out {name}.crt",
        )  # fmt: skip
        both = (directory / f"{name}.key").read_text() + (directory / f"{name}.crt").read_text()
        (directory / f"{name}.pem").write_text(both)


def openssl(directory: Path, *words: str) -> None:
    subprocess.run(
        ["openssl", *" ".join(words).split()], cwd=directory, check=True, capture_output=True
    )


def add_scram_user(node: Node) -> None:
    admin = AdminClient({"bootstrap.servers": node.address})
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        info = ScramCredentialInfo(mechanism, 4096)
        upsertion = UserScramCredentialUpsertion("ada", info, PASSWORD.encode())
        for future in admin.alter_user_scram_credentials([upsertion]).values():
            future.result(30)


@pytest.mark.parametrize("mechanism", LOGINS)
@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_every_login_is_taken(guarded: Guarded, protocol: str, mechanism: str) -> None:
    """OPS-1: administration of a cluster that requires a login."""
    with Admin(guarded.address(protocol), guarded.settings(protocol, mechanism)) as admin:
        brokers = admin.nodes.describe().brokers
    assert [broker.port for broker in brokers] == [guarded.ports[protocol]]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_wrong_password_is_an_error_at_once(guarded: Guarded, mechanism: str) -> None:
    settings = guarded.settings("SASL_PLAINTEXT", mechanism) | {"sasl.password": "guess"}
    admin = Admin(guarded.address("SASL_PLAINTEXT"), settings)
    with pytest.raises(SaslAuthenticationFailed, match=f"the {mechanism} login of 'ada'"):
        admin.topics.all()


def test_a_token_that_is_refused_is_an_error_at_once(guarded: Guarded) -> None:
    admin = guarded.admin(
        "SASL_PLAINTEXT", sasl_mechanism="OAUTHBEARER", sasl_oauthbearer_token="nonsense"
    )
    with pytest.raises(SaslAuthenticationFailed, match=r"the OAUTHBEARER login: .*invalid"):
        admin.topics.all()


def test_mechanisms_that_are_not_offered_are_reported_with_the_offered_ones(
    guarded: Guarded,
) -> None:
    settings = guarded.settings("SASL_PLAINTEXT", "PLAIN")
    with pytest.raises(IllegalSaslState, match="does not accept SASL logins"):
        Admin(guarded.node.address, settings).topics.all()


def test_a_session_outlives_its_lifetime(guarded: Guarded) -> None:
    """KIP-368: without a renewal Kafka would end the connection."""
    address = Address(HOST, guarded.ports["SASL_PLAINTEXT"])
    security = Security.of(guarded.settings("SASL_PLAINTEXT", "SCRAM-SHA-256"))
    connection = Connection.open(address, security, 20)
    started = time.monotonic()

    def outlived() -> bool:
        connection.call(MetadataRequest(topics=[]), MetadataResponse)
        return time.monotonic() - started > 2.5 * SESSION_MS / 1000

    try:
        eventually(outlived)
    finally:
        connection.close()


def test_tls_shows_a_certificate_and_asks_for_one(guarded: Guarded) -> None:
    crt, key = str(guarded.tls / "client.crt"), str(guarded.tls / "client.key")
    with guarded.admin("SSL", ssl_certificate_location=crt, ssl_key_location=key) as admin:
        assert admin.nodes.describe().cluster_id
    pem = {
        "ssl_certificate_pem": Path(crt).read_text(),
        "ssl_key_pem": Path(key).read_text(),
    }
    with guarded.admin("SSL", **pem) as admin:
        assert admin.nodes.describe().cluster_id


def test_an_untrusted_broker_is_reported(guarded: Guarded) -> None:
    stranger = str(guarded.tls / "client.crt")
    with pytest.raises(TlsFailed, match="is not trusted"):
        guarded.admin("SSL", ssl_ca_location=stranger).topics.all()
    with pytest.raises(TlsFailed, match="no TLS connection"):
        Admin(guarded.node.address, guarded.settings("SSL")).topics.all()


def command(guarded: Guarded, protocol: str, *arguments: str, stdin: bytes = b"") -> Done:
    return run(guarded.address(protocol), *arguments, stdin=stdin)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "OAUTHBEARER"])
def test_one_file_serves_every_command(guarded: Guarded, tmp_path: Path, mechanism: str) -> None:
    settings = guarded.settings("SASL_SSL", mechanism)
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    config = ("--command-config", str(file))
    topic = f"orders-{mechanism}"
    for words, stdin in (
        (("topics", "create", topic), b""),
        (("produce", topic), b"hello\n"),
        (("offsets", topic), b""),
    ):
        done = command(guarded, "SASL_SSL", *words, *config, stdin=stdin)
        assert done.code == 0, done.err
    read = command(guarded, "SASL_SSL", "consume", topic, "-o", "0", "-e", *config)
    assert (read.code, read.out) == (0, "hello\n")


def test_a_login_for_javas_tools_serves_ours(guarded: Guarded, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
        f'sasl.jaas.config={module} required username="ada" password="{PASSWORD}";\n'
    )
    for words in (("topics", "list"), ("groups", "list"), ("cluster",), ("transactions", "list")):
        done = command(guarded, "SASL_PLAINTEXT", *words, "--command-config", str(file))
        assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("topics", "list"), "a listener that requires TLS or a login"),
        (("produce", "t"), "a listener that requires TLS or a login"),
        (("topics", "list", "-X", "security.protocol=SASL_PLAINTEXT"), "GSSAPI is not supported"),
    ],
)
def test_a_missing_login_is_reported_and_nothing_hangs(
    guarded: Guarded, words: tuple[str, ...], told: str
) -> None:
    done = command(guarded, "SASL_PLAINTEXT", *words)
    assert done.code == 1
    assert told in done.err


@pytest.mark.parametrize("words", [("topics", "list"), ("produce", "t"), ("consume", "t")])
def test_a_wrong_password_ends_every_command(guarded: Guarded, words: tuple[str, ...]) -> None:
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256"}
    login |= {"sasl.username": "ada", "sasl.password": "guess"}
    options = [f"-X{name}={value}" for name, value in login.items()]
    done = command(guarded, "SASL_PLAINTEXT", *words, *options)
    assert done.code == 1
    assert "login of 'ada'" in done.err


@pytest.mark.parametrize(
    ("kind", "protocol", "options", "secret"),
    [
        ("event-hubs", "SASL_SSL", (), CONNECTION),
        ("confluent-cloud", "SASL_SSL", ("--username", "ada"), PASSWORD),
        ("msk-scram", "SASL_SSL", ("--username", "ada"), PASSWORD),
        ("redpanda-cloud", "SASL_SSL", ("--username", "ada"), PASSWORD),
        ("aiven", "SASL_SSL", ("--username", "ada"), PASSWORD),
        ("aiven", "SSL", ("--certificate", "client.crt", "--key", "client.key"), ""),
        ("hdinsight", "PLAINTEXT", (), ""),
    ],
)
def test_profiles_of_services_log_in_to_listeners_like_theirs(
    guarded: Guarded,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    protocol: str,
    options: tuple[str, ...],
    secret: str,
) -> None:
    """CLD-4, CLD-6: commands and clients, with the address in the profile."""
    monkeypatch.setenv("HEADRACE_PROFILES", str(tmp_path))
    monkeypatch.setenv("SERVICE_SECRET", secret)
    is_plain = protocol == "PLAINTEXT"
    address = guarded.node.address if is_plain else guarded.address(protocol)
    given = [str(guarded.tls / one) if one.startswith("client.") else one for one in options]
    given += [] if is_plain else ["--ca", str(guarded.tls / "ca.crt")]
    given += ["--password-env", "SERVICE_SECRET"] if secret else []
    added = main(["profile", "add", "it", "--kind", kind, "--bootstrap", address, *given])
    assert added == 0
    topic = f"{kind}-{protocol}".lower()
    config = ["--command-config", str(tmp_path / "it.properties")]
    assert main(["topics", "create", topic, *config]) == 0
    with Producer(profile("it")) as producer:
        producer.send(topic, "hello")
    with Consumer({**profile("it"), "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign(topic)
        assert [record.value() for record in consumer.poll(30)] == [b"hello"]


def test_a_profile_serves_the_rest_proxy_and_the_registry(
    guarded: Guarded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CLD-4"""
    monkeypatch.setenv("HEADRACE_PROFILES", str(tmp_path))
    address = guarded.address("SASL_SSL")
    given = Given(address, "ada", PASSWORD, ca=str(guarded.tls / "ca.crt"))
    path = write("it", "redpanda-cloud", settings_for("redpanda-cloud", given))
    monkeypatch.setenv("HEADRACE_COMMAND_CONFIG", str(path))
    with proxy(address, tmp_path / "proxy.log") as rest:
        assert httpx2.get(f"{rest.url}/topics", timeout=60).status_code == 200
    with registry(address, tmp_path / "registry.log") as schemas:
        assert httpx2.get(f"{schemas.url}/subjects", timeout=60).json() == []
