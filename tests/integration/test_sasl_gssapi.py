"""Logins by Kerberos tickets, with a real key distribution centre."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from kafka import KafkaConsumer, KafkaProducer

from tests.processes.kafka import KafkaRelease
from tests.processes.kdc import REALM, Kdc, missing_program
from tests.processes.sasl_nodes import GSSAPI_MODULE, SaslNode

pytest.importorskip("gssapi", reason="the extra kerberos is not installed", exc_type=ImportError)
if (missing := missing_program()) is not None:
    pytest.skip(f"{missing} is not installed", allow_module_level=True)

SECONDS_MAX = 30


class Realm:
    """A centre, a node of its realm, and a client's keys."""

    def __init__(self, kdc: Kdc, node: SaslNode, keytab: Path) -> None:
        self.kdc = kdc
        self.node = node
        self.keytab = keytab


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    directory = tmp_path_factory.mktemp("kdc")
    kdc = Kdc(directory)
    patch = pytest.MonkeyPatch()
    for name, value in kdc.environment.items():
        patch.setenv(name, value)
    kdc.start()
    services = kdc.keytab("kafka/127.0.0.1", "kafka/localhost")
    node = SaslNode(
        directory / "node",
        {
            "sasl.enabled.mechanisms": "GSSAPI",
            "sasl.kerberos.principal.to.local.rules": "RULE:[1:$1](ada)s/ada/lovelace/,DEFAULT",
            "headrace.log.level": "INFO,security=DEBUG",
            "listener.name.sasl.gssapi.sasl.jaas.config": (
                f'{GSSAPI_MODULE} required useKeyTab=true storeKey=true keyTab="{services}";'
            ),
        },
    )
    keytab = kdc.keytab("ada")
    try:
        node.start()
        kdc.log_in(keytab, "ada")
        yield Realm(kdc, node, keytab)
    finally:
        if node.is_running:
            node.kill()
        kdc.stop()
        patch.undo()


def options(realm: Realm) -> dict[str, Any]:
    return {
        "bootstrap_servers": realm.node.sasl_address,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "GSSAPI",
        "sasl_kerberos_service_name": "kafka",
    }


def test_kafka_python(realm: Realm) -> None:
    """SEC-6"""
    producer = KafkaProducer(**options(realm))
    producer.send("python", b"value").get(SECONDS_MAX)
    producer.close()
    consumer = KafkaConsumer(
        "python",
        **options(realm),
        auto_offset_reset="earliest",
        consumer_timeout_ms=SECONDS_MAX * 1000,
    )
    assert next(consumer).value == b"value"
    consumer.close()
    assert re.search("client logged in .*principal=User:lovelace", realm.node.log)


async def test_aiokafka(realm: Realm) -> None:
    """SEC-6"""
    settings = {**options(realm), "sasl_kerberos_domain_name": "127.0.0.1"}
    async with AIOKafkaProducer(**settings) as producer:
        await producer.send_and_wait("asyncio", b"value")
    async with AIOKafkaConsumer("asyncio", **settings, auto_offset_reset="earliest") as consumer:
        assert (await consumer.getone()).value == b"value"


def test_kcat(realm: Realm) -> None:
    """SEC-6"""
    if shutil.which("kcat") is None:
        pytest.skip("kcat is not installed")
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.principal": f"ada@{REALM}",
        "sasl.kerberos.keytab": str(realm.keytab),
    }
    given = [f"-X{name}={value}" for name, value in settings.items()]
    shown = subprocess.run(
        ["kcat", "-b", realm.node.sasl_address, *given, "-L"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if "No worthy mechs" in shown.stderr:
        pytest.skip("libsasl2-modules-gssapi-mit is not installed")
    assert shown.returncode == 0, shown.stderr
    assert realm.node.sasl_address in shown.stdout


def test_kafkas_tools(realm: Realm, kafka_release: KafkaRelease, tmp_path: Path) -> None:
    """SEC-6"""
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\n"
        "sasl.kerberos.service.name=kafka\n"
        f"sasl.jaas.config={GSSAPI_MODULE} required useKeyTab=true storeKey=true "
        f'keyTab="{realm.keytab}" principal="ada@{REALM}";\n'
    )
    command = kafka_release.command(
        "kafka-topics",
        *("--bootstrap-server", realm.node.sasl_address, "--command-config", str(config)),
        *("--create", "--topic", "java"),
        flags=[f"-Djava.security.krb5.conf={realm.kdc.config}"],
    )
    finished = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert finished.returncode == 0, finished.stdout + finished.stderr
