"""TLS of the data port with real clients, and certificates that both sides refuse."""

import asyncio
import socket
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, ConfigResource

from headrace.client.admin import Admin
from tests.builders.certificates import LOCAL, Authority, Owned
from tests.processes.kafka import KafkaRelease
from tests.processes.nodes import HOST, eventually, free_port
from tests.processes.tls_nodes import TlsNode

PAYLOAD = b"the-secret-payload-of-a-record"
TOPIC = "orders"
HEADRACE = str(Path(sys.executable).with_name("headrace"))


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsNode]:
    """A node that requires certificates of clients."""
    found = TlsNode(
        tmp_path_factory.mktemp("tls"),
        ssl_client_auth="required",
        headrace_ssl_reload_interval_ms=20,
    )
    found.start()
    yield found
    found.stop()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., TlsNode]]:
    nodes: list[TlsNode] = []

    def start(**settings: str) -> TlsNode:
        nodes.append(TlsNode(tmp_path / "node", None, **settings))
        nodes[-1].start()
        return nodes[-1]

    yield start
    for one in nodes:
        one.kill()


def quiet(settings: dict[str, Any]) -> dict[str, Any]:
    return {**settings, "log_level": 0, "message.timeout.ms": 30_000}


def produce(settings: dict[str, Any], count: int = 100) -> None:
    producer = Producer(quiet(settings))
    failures: list[Any] = []
    for number in range(count):
        producer.produce(
            TOPIC, PAYLOAD + b"%d" % number, on_delivery=lambda error, _: failures.append(error)
        )
    assert producer.flush(30) == 0
    assert failures == [None] * count


def consume(settings: dict[str, Any], count: int = 100) -> set[bytes]:
    consumer = Consumer(
        {**settings, "group.id": "readers", "auto.offset.reset": "earliest", "log_level": 0}
    )
    consumer.subscribe([TOPIC])
    found: set[bytes] = set()

    def is_complete() -> bool:
        found.update(message.value() or b"" for message in consumer.consume(count, 0.2))
        return len(found) >= count

    eventually(is_complete)
    consumer.close()
    return found


def test_librdkafka_produces_and_consumes_with_certificates_of_both_sides(node: TlsNode) -> None:
    """SEC-2, SEC-3."""
    settings = node.librdkafka(node.authority.issue("ada", hosts=()))
    produce(settings, 1_000)
    assert len(consume(settings, 1_000)) >= 1_000


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_a_node_serves_one_version_of_tls(start: Callable[..., TlsNode], version: str) -> None:
    """SEC-2: without certificates of clients, as most nodes do it."""
    node = start(ssl_enabled_protocols=version)
    produce(node.librdkafka())
    with connected(node) as secured:
        assert secured.version() == version


def test_logins_are_encrypted(start: Callable[..., TlsNode]) -> None:
    """SEC-2, SEC-4: SASL over TLS, where a listener's own property requests certificates too."""
    node = start(
        listener_security_protocol_map="SSL:SASL_SSL",
        sasl_enabled_mechanisms="PLAIN",
        listener_name_ssl_plain_sasl_jaas_config=(
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            'user_ada="hunter2-of-ada";'
        ),
        listener_name_ssl_ssl_client_auth="requested",
    )
    login = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "ada",
        "sasl.password": "hunter2-of-ada",
    }
    produce(node.librdkafka(node.authority.issue("other", hosts=())) | login)
    assert len(consume(node.librdkafka() | login)) == 100
    wrong = node.librdkafka() | login | {"sasl.password": "wrong"}
    with pytest.raises(KafkaException):
        AdminClient(quiet(wrong)).list_topics(timeout=2)
    assert "hunter2-of-ada" not in node.log


def test_kafka_python_and_aiokafka_reach_a_tls_listener(node: TlsNode) -> None:
    """SEC-2."""
    import kafka
    from aiokafka import AIOKafkaProducer

    ada = node.authority.issue("ada", hosts=())
    context = client_context(node, ada)
    producer = kafka.KafkaProducer(
        bootstrap_servers=node.address, security_protocol="SSL", ssl_context=context
    )
    assert producer.send("of-kafka-python", PAYLOAD).get(30).offset == 0
    producer.close()

    async def send() -> int:
        client = AIOKafkaProducer(
            bootstrap_servers=node.address, security_protocol="SSL", ssl_context=context
        )
        await client.start()
        try:
            return int((await client.send_and_wait("of-aiokafka", PAYLOAD)).offset)
        finally:
            await client.stop()

    assert asyncio.run(send()) == 0


def test_kafkas_tools_reach_a_tls_listener(node: TlsNode, kafka_release: KafkaRelease) -> None:
    """SEC-2, SEC-3: Java's TLS, with a certificate of the client."""
    properties = node.java(node.authority.issue("ada", hosts=()))
    server = ("--bootstrap-server", node.address)
    config = ("--command-config", str(properties))
    kafka_release.run("kafka-topics", *server, *config, "--create", "--topic", "by-java")
    assert "by-java" in kafka_release.run("kafka-topics", *server, *config, "--list")


def test_our_own_client_reaches_a_tls_listener(node: TlsNode) -> None:
    """SEC-2."""
    with Admin(node.librdkafka(node.authority.issue("ada", hosts=()))) as admin:
        assert "by-our-client" not in [one.name for one in admin.topics.all()]


def test_commands_reach_a_tls_listener(node: TlsNode) -> None:
    """SEC-2: by a file of client settings."""
    assert command(node, "topics", "create", "by-a-command") is not None
    assert "by-a-command" in command(node, "topics", "list")


def command(node: TlsNode, *arguments: str) -> str:
    options = ["--bootstrap", node.address, "--command-config", str(command_config(node))]
    finished = subprocess.run(
        [HEADRACE, *arguments, *options], check=True, capture_output=True, text=True, timeout=60
    )
    return finished.stdout


def command_config(node: TlsNode) -> Path:
    """Write the settings of a client with a certificate into a file."""
    keys = node.authority.issue("ada", hosts=()).write(node.directory / "command.pem")
    config = node.directory / "command.properties"
    config.write_text(
        f"security.protocol=SSL\nssl.ca.location={node.trusted}\n"
        f"ssl.certificate.location={keys}\nssl.key.location={keys}\n"
    )
    return config


@pytest.mark.parametrize(
    ("product", "path", "content"),
    [("registry", "/subjects", "[]"), ("rest", "/topics", "by-a-product")],
)
def test_products_reach_a_tls_listener(
    node: TlsNode, product: str, path: str, content: str
) -> None:
    """SEC-2: by the same settings as commands."""
    if product == "rest":
        command(node, "topics", "create", content)
    port = free_port()
    options = ["--bootstrap", node.address, "--listen", f"{HOST}:{port}"]
    log = (node.directory / f"{product}.log").open("wb")
    with subprocess.Popen(
        [HEADRACE, product, *options, "--command-config", str(command_config(node))],
        stdout=log,
        stderr=log,
    ) as process:
        try:
            eventually(lambda: content in answer_of(port, path))
        finally:
            process.terminate()
            log.close()


def answer_of(port: int, path: str) -> str:
    try:
        with urllib.request.urlopen(f"http://{HOST}:{port}{path}", timeout=5) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


@pytest.mark.parametrize("kind", ["none", "foreign", "expired"])
def test_a_client_without_a_valid_certificate_is_refused(node: TlsNode, kind: str) -> None:
    """SEC-3."""
    owned = None
    if kind != "none":
        authority = Authority("foreign") if kind == "foreign" else node.authority
        owned = authority.issue("eve", expired=kind == "expired")
    with pytest.raises(KafkaException):
        AdminClient(quiet(node.librdkafka(owned))).list_topics(timeout=2)
    eventually(lambda: "TLS handshake failed, connection closed" in node.log)


@pytest.mark.parametrize("kind", ["foreign", "expired", "wrong host"])
def test_clients_refuse_a_node_without_a_valid_certificate(tmp_path: Path, kind: str) -> None:
    """SEC-2."""
    node = TlsNode(tmp_path / "node")
    authority = Authority("foreign") if kind == "foreign" else node.authority
    hosts = ["elsewhere"] if kind == "wrong host" else LOCAL
    authority.issue(hosts=hosts, expired=kind == "expired").write(node.certificate)
    node.start()
    try:
        with pytest.raises(ssl.SSLCertVerificationError), connected(node):
            pass
        with pytest.raises(KafkaException):
            AdminClient(quiet(node.librdkafka())).list_topics(timeout=2)
    finally:
        node.kill()


def test_plaintext_on_a_tls_port_gets_a_log_line(node: TlsNode) -> None:
    """SEC-2."""
    with pytest.raises(KafkaException):
        AdminClient(quiet({"bootstrap.servers": node.address})).list_topics(timeout=2)
    eventually(lambda: "it speaks no TLS, and the listener accepts only TLS" in node.log)


def test_renegotiation_is_refused(start: Callable[..., TlsNode]) -> None:
    """SEC-2: a client could make the node compute again and again."""
    node = start(ssl_enabled_protocols="TLSv1.2")
    command = ["openssl", "s_client", "-connect", node.address, "-CAfile", str(node.trusted)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as client:
        shown, _ = client.communicate(b"R\n", timeout=30)
    assert b"RENEGOTIATING" in shown
    assert b"no renegotiation" in shown or b"handshake failure" in shown


def test_a_new_certificate_is_used_without_a_restart(node: TlsNode) -> None:
    """SEC-2: a broken one changes nothing, and is reported once."""
    old = node.certificate.read_text()
    ada = node.authority.issue("ada", hosts=())
    broken = node.directory / "broken.pem"
    broken.write_text("-----BEGIN PRIVATE KEY-----\nbroken")
    broken.replace(node.certificate)
    eventually(lambda: "new certificates rejected, the old ones stay" in node.log)
    assert certificate_of(node, ada) == ssl.PEM_cert_to_DER_cert(
        old[old.index("-----BEGIN CERT") :]
    )
    new = node.authority.issue()
    new.write(node.directory / "new.pem").replace(node.certificate)
    eventually(lambda: certificate_of(node, ada) == new.der)
    assert node.log.count("new certificates rejected, the old ones stay") == 1


def test_a_keystore_is_changed_by_alter_configs(node: TlsNode, tmp_path: Path) -> None:
    """SEC-2: as with kafka-configs."""
    ada = node.authority.issue("ada", hosts=())
    name = "listener.name.ssl.ssl.keystore.location"
    admin = AdminClient(quiet(node.librdkafka(ada)))
    other = node.authority.issue("another-subject")
    with pytest.raises(KafkaException, match=r"set ssl\.allow\.dn\.changes=true"):
        alter(admin, name, other.write(tmp_path / "other.pem"))
    new = node.authority.issue()
    alter(admin, name, new.write(tmp_path / "new.pem"))
    eventually(lambda: certificate_of(node, ada) == new.der)


def alter(admin: AdminClient, name: str, value: Path) -> None:
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry

    entry = ConfigEntry(name, str(value), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=[entry])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(30)


def test_a_recording_relay_sees_no_payload(node: TlsNode) -> None:
    """SEC-2: neither keys nor records cross the wire in the clear."""
    import tests.processes.recording_relay as relays

    with relays.RecordingRelay(node.port) as relay:
        ada = node.authority.issue("ada", hosts=())
        with client_context(node, ada).wrap_socket(
            socket.create_connection((HOST, relay.port)), server_hostname=HOST
        ) as secured:
            secured.sendall(b"\0\0\0\x40\0\x12\0\0\0\0\0\1\0\x04" + PAYLOAD.ljust(54, b"."))
            assert secured.recv(1)
        assert len(relay.recorded) > 1_000
        assert PAYLOAD not in relay.recorded


def client_context(node: TlsNode, owned: Owned | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(node.trusted))
    if owned is not None:
        context.load_cert_chain(owned.write(node.directory / "client.pem"))
    return context


def connected(node: TlsNode, owned: Owned | None = None) -> ssl.SSLSocket:
    plain = socket.create_connection((HOST, node.port))
    try:
        return client_context(node, owned).wrap_socket(plain, server_hostname=HOST)
    except OSError:
        plain.close()
        raise


def certificate_of(node: TlsNode, owned: Owned) -> bytes | None:
    with connected(node, owned) as secured:
        return secured.getpeercert(binary_form=True)
