"""Real clients that log in by each mechanism, and floods of those that cannot."""

import contextlib
import json
import os
import random
import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider as AsyncTokenProvider
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from joserfc import jwk, jwt
from kafka import KafkaConsumer, KafkaProducer
from kafka.net.sasl.oauth import AbstractTokenProvider

from headrace.protocol.framing import encode_request
from headrace.protocol.schemas.api_versions import ApiVersionsRequest
from headrace.protocol.schemas.heartbeat import HeartbeatRequest
from headrace.protocol.schemas.sasl_authenticate import SaslAuthenticateRequest
from headrace.protocol.schemas.sasl_handshake import SaslHandshakeRequest
from headrace.security.sasl.oauthbearer import unsecured_token
from tests.builders.certificates import Authority
from tests.processes.kafka import KafkaRelease
from tests.processes.nodes import HOST, eventually
from tests.processes.sasl_nodes import OAUTH_MODULE, PLAIN_MODULE, SCRAM_MODULE, SaslNode

SECONDS_MAX = 30
USER, PASSWORD = "ada", "secret"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
SETTINGS = {
    "sasl.enabled.mechanisms": ",".join(MECHANISMS),
    "listener.name.sasl.plain.sasl.jaas.config": (
        f'{PLAIN_MODULE} required user_{USER}="{PASSWORD}";'
    ),
    "listener.name.sasl.oauthbearer.sasl.jaas.config": (
        f'{OAUTH_MODULE} required unsecuredValidatorPrincipalClaimName="sub";'
    ),
    "group.initial.rebalance.delay.ms": "0",
}


def add_scram_user(node: SaslNode) -> None:
    admin = AdminClient({"bootstrap.servers": node.address})
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        added = UserScramCredentialUpsertion(
            USER, ScramCredentialInfo(mechanism, 4096), PASSWORD.encode()
        )
        admin.alter_user_scram_credentials([added])[USER].result(SECONDS_MAX)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SaslNode]:
    started = SaslNode(tmp_path_factory.mktemp("sasl"), SETTINGS)
    started.start()
    add_scram_user(started)
    yield started
    log = started.log
    started.kill()
    assert PASSWORD not in log


@pytest.fixture(scope="module")
def renewing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SaslNode]:
    """A node whose sessions last a second and a half."""
    settings = {
        **SETTINGS,
        "connections.max.reauth.ms": "1500",
        "headrace.log.level": "INFO,security=DEBUG",
    }
    started = SaslNode(tmp_path_factory.mktemp("renewing"), settings)
    started.start()
    add_scram_user(started)
    yield started
    started.kill()


@pytest.fixture
def topic() -> str:
    return f"t-{uuid4().hex}"


def token() -> str:
    return unsecured_token(USER, time.time())


def librdkafka(node: SaslNode, mechanism: str) -> dict[str, Any]:
    if mechanism == "OAUTHBEARER":
        return node.client(
            mechanism,
            enable_sasl_oauthbearer_unsecure_jwt="true",
            sasl_oauthbearer_config=f"principal={USER}",
        )
    return node.client(mechanism, sasl_username=USER, sasl_password=PASSWORD)


def round_trip(settings: dict[str, Any], topic: str, pause_s: float = 0) -> list[bytes | None]:
    """Write three records and read them, with pauses in which sessions may end."""
    failures: list[Any] = []
    producer = Producer(settings)
    for number in range(3):
        producer.produce(
            topic,
            str(number).encode(),
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
        assert producer.flush(SECONDS_MAX) == 0
        time.sleep(pause_s)
    assert not failures
    consumer = Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found: list[bytes | None] = []

    def read() -> int:
        message = consumer.poll(0.2)
        if message is not None and not message.error():
            found.append(message.value())
        return len(found)

    eventually(read, seconds=SECONDS_MAX, expect=lambda count: count == 3)
    consumer.close()
    return found


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka(node: SaslNode, topic: str, mechanism: str) -> None:
    """SEC-4, SEC-5"""
    assert round_trip(librdkafka(node, mechanism), topic) == [b"0", b"1", b"2"]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_renews_its_sessions(renewing: SaslNode, topic: str, mechanism: str) -> None:
    """SEC-4, SEC-5"""
    assert round_trip(librdkafka(renewing, mechanism), topic, 1) == [b"0", b"1", b"2"]


@pytest.mark.parametrize("mechanism", MECHANISMS[:3])
@pytest.mark.parametrize("wrong", [{"sasl.password": "wrong"}, {"sasl.username": "eve"}])
def test_wrong_credentials_are_rejected(
    node: SaslNode, mechanism: str, wrong: dict[str, str]
) -> None:
    """SEC-4, SEC-5"""
    errors: list[Any] = []
    settings: dict[str, Any] = {**librdkafka(node, mechanism), **wrong, "log_level": 0}
    settings["error_cb"] = errors.append
    admin = AdminClient(settings)
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=1)
    eventually(lambda: [admin.poll(0.1), errors][1])
    assert "uthentication failed" in str(errors[0])


class Tokens(AbstractTokenProvider):  # type: ignore[misc]
    def token(self) -> str:
        return token()


class AsyncTokens(AsyncTokenProvider):  # type: ignore[misc]
    async def token(self) -> str:
        return token()


def python_options(node: SaslNode, mechanism: str, tokens: Any) -> dict[str, Any]:
    options = {
        "bootstrap_servers": node.sasl_address,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
    }
    if mechanism == "OAUTHBEARER":
        return {**options, "sasl_oauth_token_provider": tokens}
    return {**options, "sasl_plain_username": USER, "sasl_plain_password": PASSWORD}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python(node: SaslNode, topic: str, mechanism: str) -> None:
    """SEC-4, SEC-5"""
    options = python_options(node, mechanism, Tokens())
    producer = KafkaProducer(**options)
    producer.send(topic, b"value").get(SECONDS_MAX)
    producer.close()
    consumer = KafkaConsumer(
        topic, **options, auto_offset_reset="earliest", consumer_timeout_ms=SECONDS_MAX * 1000
    )
    assert next(consumer).value == b"value"
    consumer.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_aiokafka(node: SaslNode, topic: str, mechanism: str) -> None:
    """SEC-4, SEC-5"""
    options = python_options(node, mechanism, AsyncTokens())
    async with AIOKafkaProducer(**options) as producer:
        await producer.send_and_wait(topic, b"value")
    async with AIOKafkaConsumer(topic, **options, auto_offset_reset="earliest") as consumer:
        assert (await consumer.getone()).value == b"value"


def librdkafka_of_kcat() -> tuple[int, ...]:
    shown = subprocess.run(["kcat", "-V"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"librdkafka (\d+)\.(\d+)\.(\d+)", shown)
    assert found is not None, shown
    return tuple(map(int, found.groups()))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kcat(node: SaslNode, topic: str, mechanism: str) -> None:
    """SEC-4, SEC-5"""
    if shutil.which("kcat") is None:
        pytest.skip("kcat is not installed")
    if mechanism.startswith("SCRAM") and librdkafka_of_kcat() < (2, 6, 1):
        pytest.skip("its librdkafka repeats its nonce in a way that Kafka 4 rejects, too")
    settings = librdkafka(node, mechanism)
    options = [f"-X{name}={value}" for name, value in settings.items()]
    subprocess.run(["kcat", *options, "-P", "-t", topic], input=b"value", check=True, timeout=60)
    shown = subprocess.run(
        ["kcat", *options, "-C", "-t", topic, "-o", "beginning", "-e", "-q"],
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert shown.stdout == b"value\n"


def java_properties(directory: Path, mechanism: str) -> Path:
    if mechanism == "OAUTHBEARER":
        jaas = f'{OAUTH_MODULE} required unsecuredLoginStringClaim_sub="{USER}";'
    else:
        module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
        jaas = f'{module} required username="{USER}" password="{PASSWORD}";'
    path = directory / "client.properties"
    lines = ("security.protocol=SASL_PLAINTEXT", f"sasl.mechanism={mechanism}")
    path.write_text("\n".join((*lines, f"sasl.jaas.config={jaas}", "")))
    return path


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafkas_tools(
    node: SaslNode, topic: str, mechanism: str, kafka_release: KafkaRelease, tmp_path: Path
) -> None:
    """SEC-4, SEC-5"""
    config = str(java_properties(tmp_path, mechanism))
    options = ("--bootstrap-server", node.sasl_address, "--command-config", config)
    kafka_release.run("kafka-topics", *options, "--create", "--topic", topic)
    assert topic in kafka_release.run("kafka-topics", *options, "--list").split()


@pytest.fixture(scope="module")
def franz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of franz-go, or a skip that names the missing part."""
    if shutil.which("go") is None:
        pytest.skip("go is not installed")
    program = tmp_path_factory.mktemp("go") / "franz"
    source = Path(__file__).parent / "go" / "franz"
    built = subprocess.run(
        ["go", "build", "-o", str(program), "."],
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
    )
    if built.returncode:
        pytest.skip(f"franz-go cannot be built here: {built.stderr[-200:]}")
    return program


def run_franz(franz: Path, node: SaslNode, mechanism: str, topic: str, pause_s: float) -> list[str]:
    secret = token() if mechanism == "OAUTHBEARER" else PASSWORD
    finished = subprocess.run(
        [str(franz), node.sasl_address, mechanism, USER, secret, topic, str(pause_s)],
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.split()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_franz_go(franz: Path, node: SaslNode, topic: str, mechanism: str) -> None:
    """SEC-4, SEC-5"""
    assert run_franz(franz, node, mechanism, topic, 0) == ["0", "1", "2"]


def test_franz_go_renews_its_sessions(franz: Path, renewing: SaslNode, topic: str) -> None:
    """SEC-5"""
    assert run_franz(franz, renewing, "SCRAM-SHA-256", topic, 1) == ["0", "1", "2"]


def test_a_flood_of_failed_logins_does_not_stop_other_clients(node: SaslNode, topic: str) -> None:
    """SEC-4: other clients are served meanwhile, and the log does not grow with the flood."""
    stopping = threading.Event()
    failed = [0, 0]
    threads = [
        threading.Thread(target=fail_to_log_in, args=(node.sasl_port, stopping, failed, number))
        for number in range(2)
    ]
    before = len(node.log.splitlines())
    for thread in threads:
        thread.start()
    try:
        eventually(lambda: sum(failed), seconds=SECONDS_MAX, expect=lambda count: count > 500)
        assert round_trip(librdkafka(node, "SCRAM-SHA-256"), topic) == [b"0", b"1", b"2"]
    finally:
        stopping.set()
        for thread in threads:
            thread.join()
    assert len(node.log.splitlines()) - before < sum(failed)


def fail_to_log_in(port: int, stopping: threading.Event, failed: list[int], number: int) -> None:
    """Open connections with a wrong password, hundreds at a time, without reading answers."""
    frames = encode_request(SaslHandshakeRequest("PLAIN"), 1, 1, "flood") + encode_request(
        SaslAuthenticateRequest(b"\0ada\0wrong"), 2, 2, "flood"
    )
    opened: list[socket.socket] = []
    while not stopping.is_set():
        with contextlib.suppress(OSError):
            client = socket.create_connection((HOST, port), timeout=SECONDS_MAX)
            client.sendall(frames)
            opened.append(client)
            failed[number] += 1
        if len(opened) > 300:
            for one in opened:
                one.close()
            opened.clear()
    for one in opened:
        one.close()


class KeyServer:
    """A server of public keys that a test can rotate or take away."""

    def __init__(self) -> None:
        self.key = jwk.RSAKey.generate_key(2048, {"kid": "first"})
        self.is_away = False
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                content = json.dumps({"keys": [outer.key.as_dict(private=False)]}).encode()
                self.send_response(503 if outer.is_away else 200)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None: ...

        self.server = HTTPServer((HOST, 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server.server_port}/keys"

    def token(self, lifetime_s: float = 300, **claims: object) -> str:
        now = int(time.time())
        content = {"sub": USER, "iat": now, "exp": now + lifetime_s, "aud": "headrace", **claims}
        return jwt.encode({"alg": "RS256", "kid": self.key.kid}, content, self.key)


@pytest.fixture
def keys() -> Iterator[KeyServer]:
    server = KeyServer()
    yield server
    server.server.shutdown()
    server.server.server_close()


@pytest.fixture
def verifying(tmp_path: Path, keys: KeyServer) -> Iterator[SaslNode]:
    """A node that accepts tokens signed by the key server."""
    started = SaslNode(
        tmp_path,
        {
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": keys.url,
            "sasl.oauthbearer.expected.audience": "headrace",
            "sasl.oauthbearer.clock.skew.seconds": "0",
        },
    )
    started.start()
    yield started
    started.kill()


def can_log_in(node: SaslNode, make_token: Callable[[], str]) -> bool:
    """Return whether a token is accepted."""

    def oauth_cb(_: str) -> tuple[str, float]:
        return make_token(), time.time() + 300

    settings: dict[str, Any] = {**node.client("OAUTHBEARER"), "log_level": 0}
    settings["oauth_cb"] = oauth_cb
    admin = AdminClient(settings)
    admin.poll(0.1)
    try:
        return bool(admin.list_topics(timeout=2).brokers)
    except KafkaException:
        return False


def test_signed_tokens_are_verified(verifying: SaslNode, keys: KeyServer) -> None:
    """SEC-4"""
    assert eventually(lambda: can_log_in(verifying, keys.token))
    assert not can_log_in(verifying, lambda: keys.token(aud="other"))
    assert not can_log_in(verifying, token)


def test_rotated_keys_are_fetched_when_a_token_needs_them(
    verifying: SaslNode, keys: KeyServer
) -> None:
    """SEC-4"""
    assert eventually(lambda: can_log_in(verifying, keys.token))
    keys.key = jwk.RSAKey.generate_key(2048, {"kid": "second"})
    assert eventually(lambda: can_log_in(verifying, keys.token))


def test_the_last_keys_serve_while_the_server_is_away(verifying: SaslNode, keys: KeyServer) -> None:
    """SEC-4"""
    assert eventually(lambda: can_log_in(verifying, keys.token))
    keys.is_away = True
    other = jwk.RSAKey.generate_key(2048, {"kid": "unknown"})
    forged = jwt.encode({"alg": "RS256", "kid": "unknown"}, {"sub": "eve"}, other)
    assert not can_log_in(verifying, lambda: forged)
    eventually(lambda: "keys of tokens not fetched" in verifying.log)
    assert can_log_in(verifying, keys.token)


def test_users_of_a_file_change_while_the_node_runs(tmp_path: Path) -> None:
    """SEC-4"""
    users = tmp_path / "users"
    users.write_text("ada=first\n")
    node = SaslNode(
        tmp_path / "node",
        {"sasl.enabled.mechanisms": "PLAIN", "headrace.sasl.plain.users.file": str(users)},
    )
    node.start()

    def can_log_in_with(password: str) -> bool:
        settings = node.client("PLAIN", sasl_username="ada", sasl_password=password)
        try:
            return bool(AdminClient({**settings, "log_level": 0}).list_topics(timeout=1).brokers)
        except KafkaException:
            return False

    try:
        assert can_log_in_with("first")
        users.write_text("ada=second\n")
        assert eventually(lambda: can_log_in_with("second"))
        assert not can_log_in_with("first")
        users.write_text("broken")
        eventually(lambda: "file of users not usable" in node.log)
        assert can_log_in_with("second")
    finally:
        node.kill()


def test_hostile_bytes_before_a_login_end_their_connection(node: SaslNode, topic: str) -> None:
    """SEC-4: random frames, truncated and reordered logins; `HEADRACE_FUZZ_SEEDS=500` for more."""
    for seed in range(int(os.environ.get("HEADRACE_FUZZ_SEEDS", "40"))):
        rng = random.Random(seed)
        address = (HOST, node.sasl_port)
        with (
            socket.create_connection(address, timeout=SECONDS_MAX) as client,
            contextlib.suppress(OSError),
        ):
            client.sendall(hostile_bytes(rng))
            client.shutdown(socket.SHUT_WR)
            while client.recv(1 << 16):
                pass
    assert round_trip(librdkafka(node, "PLAIN"), topic) == [b"0", b"1", b"2"]
    assert "Traceback" not in node.log


def hostile_bytes(rng: random.Random) -> bytes:
    """Bytes of a login in another order, with changes, and cut off."""
    frames = [
        encode_request(ApiVersionsRequest("fuzz", "1"), 3, 1, "fuzz"),
        encode_request(SaslHandshakeRequest(rng.choice(MECHANISMS)), rng.randrange(2), 2, "fuzz"),
        encode_request(SaslAuthenticateRequest(rng.randbytes(rng.randrange(60))), 2, 3, "fuzz"),
        encode_request(HeartbeatRequest("g", 1, "m"), 4, 4, "fuzz"),
        (noise := rng.randbytes(rng.randrange(200))) and len(noise).to_bytes(4) + noise,
    ]
    rng.shuffle(frames)
    content = bytearray(b"".join(frames))
    for _ in range(rng.randrange(4)):
        content[rng.randrange(len(content))] = rng.randrange(256)
    return bytes(content[: rng.randrange(1, len(content) + 1)])


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_logins_over_tls(tmp_path: Path, topic: str, mechanism: str) -> None:
    """SEC-2, SEC-4, SEC-5"""
    authority = Authority()
    keystore = authority.issue().write(tmp_path / "node.pem")
    authorities = authority.write(tmp_path / "authority.pem")
    node = SaslNode(
        tmp_path / "node",
        {**SETTINGS, "ssl.keystore.location": str(keystore), "ssl.keystore.type": "PEM"},
    )
    node.settings["listener.security.protocol.map"] = "PLAINTEXT:PLAINTEXT,SASL:SASL_SSL"
    node.start()
    try:
        add_scram_user(node)
        tls = {"security.protocol": "SASL_SSL", "ssl.ca.location": str(authorities)}
        settings = {**librdkafka(node, mechanism), **tls}
        assert round_trip(settings, topic) == [b"0", b"1", b"2"]
    finally:
        node.kill()


@pytest.mark.parametrize("mechanism", ["PLAIN", "OAUTHBEARER"])
def test_a_java_producer_renews_its_sessions(
    renewing: SaslNode, topic: str, mechanism: str, kafka_release: KafkaRelease, tmp_path: Path
) -> None:
    """SEC-4: it writes for three seconds, which is twice the life of a session."""
    config = str(java_properties(tmp_path, mechanism))
    seen = len(renewing.log)
    shown = kafka_release.run(
        "kafka-producer-perf-test",
        *("--bootstrap-server", renewing.sasl_address, "--command-config", config),
        *("--topic", topic, "--num-records", "300", "--throughput", "100", "--record-size", "10"),
    )
    assert "300 records sent" in shown
    assert "session expired" not in renewing.log[seen:]
