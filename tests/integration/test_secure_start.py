"""`headrace up --secure` as a user meets it: the printed settings, restarts, services, clusters."""

import os
import pty
import re
import shlex
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from confluent_kafka import Consumer, Producer

from headrace.client.admin import Admin
from headrace.client.descriptions import NewTopic
from headrace.client.reader import RecordReader, Start
from headrace.client.security import TlsFailed
from headrace.errors import SaslAuthenticationFailed
from headrace.security.acls import AclBinding, Operation, PatternType, Permission, ResourceType
from headrace.settings.properties import parse
from headrace.testing.cluster import ClusterProcess
from headrace.testing.process import BrokerProcess
from tests.integration.cli.commands import run
from tests.processes.kafka import KafkaRelease
from tests.processes.nodes import HOST, eventually, free_port

pytestmark = pytest.mark.usefixtures("only_headrace")
START = ("-m", "headrace.cli.main", "up", "--secure")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("secure"), secure=True) as running:
        yield running


@contextmanager
def started(*options: str, folder: Path) -> Iterator[list[str]]:
    """Start a node on a terminal; the lines grow as they are printed."""
    ours, theirs = pty.openpty()
    lines: list[str] = []
    log = (folder / "log").open("ab")
    process = subprocess.Popen(
        [sys.executable, *START, *options], cwd=folder, stdout=theirs, stderr=log
    )
    os.close(theirs)
    try:
        with os.fdopen(ours, encoding="utf-8") as terminal:
            for line in terminal:
                lines.append(line.rstrip())
                if "stop      Ctrl-C" in line:
                    break
            yield lines
    finally:
        process.terminate()
        process.wait(30)
        log.close()


def block(lines: Sequence[str], title: str) -> dict[str, str]:
    """Return the settings that are printed below a title."""
    start = next(number for number, line in enumerate(lines) if line.strip() == title)
    found = [line.strip() for line in lines[start + 1 :]]
    end = next(number for number, line in enumerate(found) if "=" not in line.partition(" ")[0])
    return parse("\n".join(found[:end]))


def command(lines: Sequence[str], name: str) -> str:
    """Return a printed command."""
    return next(line.split(maxsplit=1)[1] for line in lines if line.startswith(f"  {name}  "))


def librdkafka_of_kcat() -> tuple[int, ...]:
    """Return the version; older ones than 2.6.1 cannot log in to Kafka 4 by SCRAM either."""
    if shutil.which("kcat") is None:
        return ()
    shown = subprocess.run(["kcat", "-V"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"librdkafka (\d+)\.(\d+)\.(\d+)", shown)
    return tuple(map(int, found.groups())) if found is not None else ()


def test_the_printed_settings_work_when_pasted(tmp_path: Path, kafka_release: KafkaRelease) -> None:
    """SEC-2, SEC-5: librdkafka, kcat and Java log in by the settings on the terminal."""
    with started("--listen", f"{HOST}:{free_port()}", folder=tmp_path) as lines:
        settings = block(lines, "settings of librdkafka:")
        producer = Producer(settings)
        producer.produce("orders", b"one cup")
        assert producer.flush(20) == 0
        java = tmp_path / "pasted.properties"
        pasted = block(lines, "settings of Java's clients:")
        java.write_text("".join(f"{name}={value}\n" for name, value in pasted.items()))
        address = ("--bootstrap-server", pasted["bootstrap.servers"])
        listed = kafka_release.run(
            "kafka-topics", *address, "--command-config", str(java), "--list"
        )
        assert "orders" in listed.split()
        words = shlex.split(command(lines, "java"))
        file = tmp_path / words[words.index("--command-config") + 1]
        listed = kafka_release.run(
            "kafka-topics", *address, "--command-config", str(file), "--list"
        )
        assert "orders" in listed.split()
        if librdkafka_of_kcat() >= (2, 6, 1):
            words = shlex.split(command(lines, "kcat"), comments=True)
            shown = subprocess.run(words, cwd=tmp_path, capture_output=True, check=True)
            assert b'topic "orders"' in shown.stdout
        variable, _, path = command(lines, "headrace").removeprefix("export ").partition("=")
        done = subprocess.run(
            [sys.executable, "-m", "headrace.cli.main", "topics", "list"],
            cwd=tmp_path,
            env={**os.environ, variable: path},
            capture_output=True,
            check=True,
        )
        assert b"orders" in done.stdout


def test_the_next_start_has_the_same_cluster_and_credentials(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, secure=True) as broker:
        before = broker.client_config()
        with Admin(before) as admin:
            cluster_id = admin.nodes.describe().cluster_id
        broker.restart()
        assert broker.client_config() == before
        with Admin(before) as admin:
            assert admin.nodes.describe().cluster_id == cluster_id
        assert before["sasl.password"] not in broker.log


def test_a_forgotten_option_does_not_open_a_secured_node(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, secure=True):
        pass
    options = ("--data", str(tmp_path / "data"), "--listen", f"{HOST}:0")
    command = [sys.executable, "-m", "headrace.cli.main", "up", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, "start it with --secure" in done.stderr) == (1, True)


def test_no_client_gets_in_without_a_login(broker: BrokerProcess) -> None:
    """SEC-1, SEC-5: neither plaintext, nor another authority, nor a wrong password."""
    good = broker.client_config()
    with pytest.raises(SaslAuthenticationFailed):
        Admin({**good, "sasl.password": "guess"}, timeout_s=10).topics.all()
    with pytest.raises(SaslAuthenticationFailed):
        Admin(broker.client_config("eve", "guess"), timeout_s=10).topics.all()
    stranger = {name: value for name, value in good.items() if name != "ssl.ca.location"}
    with pytest.raises(TlsFailed, match="is not trusted"):
        Admin(stranger, timeout_s=10).topics.all()
    plain = run(broker.bootstrap_servers, "topics", "list", "--timeout", "3")
    assert plain.code == 1


def test_users_get_rights_step_by_step(broker: BrokerProcess, tmp_path: Path) -> None:
    """SEC-7: a new user may do nothing until a rule allows it."""
    config = ("--command-config", str(broker.security_dir / "client.properties"))

    def ok(*words: str, stdin: bytes = b"") -> str:
        done = run(broker.bootstrap_servers, *words, *config, stdin=stdin)
        assert done.code == 0, done.err
        return done.out

    ok("topics", "create", "bills")
    ok("users", "add", "ada", "--password-stdin", stdin=b"ada-secret\n")
    login = ("-Xsasl.username=ada", "-Xsasl.password=ada-secret")
    write = ("produce", "bills", *config, *login)
    denied = run(broker.bootstrap_servers, *write, stdin=b"tea\n")
    assert (denied.code, "authorization failed" in denied.err.lower()) == (1, True)
    ok("acls", "add", "--allow-principal", "ada", "--producer", "--topic", "bills")
    allowed = run(broker.bootstrap_servers, *write, stdin=b"tea\n")
    assert allowed.code == 0, allowed.err
    question = ("acls", "explain", "--principal", "ada", "--operation", "write", "--topic", "bills")
    assert "User:ada may Write on topic bills from 127.0.0.1: a rule" in ok(*question)
    admin = ("acls", "explain", "--principal", "admin", "--operation", "read", "--topic", "bills")
    assert "it is one of super.users" in ok(*admin)
    ok("quotas", "set", "--user", "ada", "producer_byte_rate=10MB")
    assert "user ada" in ok("quotas", "list")
    token = re.search(r"token +(\S+)", ok("tokens", "create", "--max-lifetime", "1h"))
    assert token is not None
    assert token[1] in ok("tokens", "list")
    ok("tokens", "expire", token[1])


def test_registry_and_rest_proxy_are_secured_with_the_node(tmp_path: Path) -> None:
    """REST-1: the services act as the admin, so they require a login themselves."""
    registry, rest = (f"{HOST}:{free_port()}" for _ in range(2))
    services = ("--registry", registry, "--rest", rest)
    with started("--listen", f"{HOST}:{free_port()}", *services, folder=tmp_path) as lines:
        settings = block(lines, "settings of librdkafka:")
        trust = ssl.create_default_context(cafile=settings["ssl.ca.location"])
        login = (settings["sasl.username"], settings["sasl.password"])
        with httpx2.Client(verify=trust, auth=login, timeout=30) as client:

            def answers() -> list[int]:
                try:
                    return [client.get(url).status_code for url in urls]
                except httpx2.TransportError:
                    return []

            urls = (f"https://{registry}/subjects", f"https://{rest}/topics")
            eventually(answers, expect=lambda codes: codes == [200, 200])
            assert [httpx2.get(url, verify=trust).status_code for url in urls] == [401, 401]
            body = {
                "value_schema": '{"type":"record","name":"Cup","fields":[]}',
                "records": [{"value": {}}],
            }
            sent = client.post(
                f"https://{rest}/topics/cups",
                headers={"Content-Type": "application/vnd.kafka.avro.v2+json"},
                json=body,
            )
            assert sent.status_code == 200, sent.text
            assert client.get(f"https://{registry}/subjects").json() == ["cups-value"]


def test_a_cluster_is_secured_between_its_nodes_as_well(tmp_path: Path) -> None:
    """SEC-3: nodes and controllers show each other certificates, and failover works."""
    with ClusterProcess(tmp_path, secure=True) as cluster:
        producer = Producer({**cluster.client_config(), "acks": "all"})
        producer.produce("orders", b"one cup")
        assert producer.flush(30) == 0
        leader = cluster.leader_of("orders")
        leader.kill()
        producer.produce("orders", b"two cups")
        assert producer.flush(60) == 0
        consumer = Consumer(
            {**cluster.client_config(), "group.id": "readers", "auto.offset.reset": "earliest"}
        )
        consumer.subscribe(["orders"])
        read = [message.value() for message in consumer.consume(2, timeout=60)]
        consumer.close()
        assert read == [b"one cup", b"two cups"]
        leader.start()
        cluster.wait_until_in_sync()


def test_a_reader_without_a_group_needs_no_right_to_one(broker: BrokerProcess) -> None:
    """SEC-6: librdkafka looks for the coordinator of a group in any case."""
    with Admin(broker.client_config()) as admin:
        admin.topics.create([NewTopic(name="readable")])
        admin.users.set_password("reader", "reader-secret")
        named = (ResourceType.TOPIC, "readable", PatternType.LITERAL)
        allowed = AclBinding(*named, "User:reader", "*", Operation.READ, Permission.ALLOW)
        admin.acls.create([allowed])
    producer = Producer(broker.client_config())
    producer.produce("readable", b"one cup")
    assert producer.flush(20) == 0
    settings = broker.client_config("reader", "reader-secret")
    reader = RecordReader(settings["bootstrap.servers"], "readable", settings)
    try:
        reader.assign(Start(from_beginning=True), [0])
        found = eventually(reader.read)
        assert [message.value() for message in found] == [b"one cup"]
    finally:
        reader.close()
