"""Passwords and keys stay secret: no output, log, plan or table shows them."""

import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.http.users import PasswordHash
from headrace.lake.catalog import Lake
from headrace.testing.process import BrokerProcess
from tests.processes.process_trees import descendants
from tests.processes.registries import RegistryProcess
from tests.spark.conftest import MakeTopic
from tests.spark.pipeline_folders import send

WORDS = {
    "KAFKA_WORD": "zebra-of-kafka",
    "JAAS_WORD": "lynx-of-jaas",
    "LOGIN_WORD": "otter-of-login",
    "ADDRESS_WORD": "heron-of-address",
    "STORE_WORD": "gecko-of-store",
    "ACCOUNT_WORD": "moose-of-account",
    "WRONG_WORD": "tapir-of-no-user",
}
"""Secrets that pipelines read from the environment, and that must appear in no other place."""
SCHEMA = '{"type": "record", "name": "o", "fields": [{"name": "id", "type": "long"}]}'
SETTINGS = """
[pipeline]
name = "{name}"
bootstrap = "{bootstrap}"
lake = "{place}/lake-{name}"
master = "local[2]"

[client]
"sasl.username" = "ada"
"sasl.password" = "${{KAFKA_WORD}}"

[spark]
"spark.log.level" = "INFO"
"spark.logConf" = true
"spark.driver.memory" = "1g"
"spark.local.dir" = "{place}/local"
"spark.eventLog.enabled" = true
"spark.eventLog.dir" = "file://{place}/events"
"spark.eventLog.compress" = false
"spark.sql.ui.explainMode" = "extended"
"spark.hadoop.fs.s3a.secret.key" = "${{STORE_WORD}}"
"spark.hadoop.fs.azure.account.key.lake" = "${{ACCOUNT_WORD}}"

[sources.orders]
topic = "{topic}"
format = "avro"
[sources.orders.options]
"schema.registry.url" = "{registry}"
"schema.registry.basic.auth.user.info" = "ada:${{LOGIN_WORD}}"
"kafka.sasl.jaas.config" = "org.apache.kafka.common.security.plain.PlainLoginModule required \
username=ada password=${{JAAS_WORD}};"

[sources.again]
topic = "{topic}"
format = "avro"
[sources.again.options]
"schema.registry.url" = "{registry_of_bob}"
"""
TABLES = """
CREATE STREAMING TABLE raw.orders AS SELECT id, topic, offset FROM STREAM(sources.orders);
CREATE STREAMING TABLE raw.again AS SELECT id, topic, offset FROM STREAM(sources.again);
"""
FAILING = TABLES.replace(
    "raw.orders AS", "raw.orders (CONSTRAINT low EXPECT (id < 0) ON VIOLATION FAIL UPDATE) AS"
)
SINK = """
import os

from headrace import pipelines as dp

dp.create_sink(
    "copies",
    topic="{copies}",
    format="kafka",
    options={{
        "value.format": "avro",
        "schema": '{schema}',
        "schema.registry.url": "{registry}",
        "schema.registry.basic.auth.user.info": "ada:" + os.environ["LOGIN_WORD"],
    }},
)


@dp.append_flow(target="copies")
def copied():
    return dp.read_stream("raw.orders").select("id")
"""
JOB = """
import logging, shlex, sys

logging.basicConfig()
logging.getLogger("headrace").setLevel(logging.DEBUG)
from headrace.cli.main import main

for line in sys.argv[1:]:
    print("ended with", main(shlex.split(line)), flush=True)
"""


@pytest.fixture
def registry(broker: BrokerProcess, tmp_path: Path) -> Iterator[RegistryProcess]:
    """A registry with the users ada and bob; bob's password is in the address."""
    logins = {"ada": WORDS["LOGIN_WORD"], "bob": WORDS["ADDRESS_WORD"]}
    users = tmp_path / "users"
    users.write_text("".join(f"{name}:{PasswordHash.of(word)}\n" for name, word in logins.items()))
    users.chmod(0o600)
    started = RegistryProcess(
        broker.bootstrap_servers,
        tmp_path / "registry.log",
        {"kafkastore.topic": "_schemas-secrets", "schema.registry.group.id": "secrets"},
        ["--user-file", str(users)],
        auth=("ada", logins["ada"]),
    )
    yield started
    started.end()


@pytest.mark.timeout(300)
def test_secrets_appear_nowhere_after_success_or_failure(
    broker: BrokerProcess, make_topic: MakeTopic, registry: RegistryProcess, tmp_path: Path
) -> None:
    topic, copies = make_topic(), make_topic("copies")
    registry.wait_until_ready()
    number = registry.register(f"{topic}-value", SCHEMA).json()["id"]
    send(broker, topic, [struct.pack(">bI", 0, number) + b"\x02"])
    for folder, tables in (("good", TABLES), ("failing", FAILING), ("refused", TABLES)):
        write(tmp_path / folder, tables, registry, broker, topic, copies)
    settings = tmp_path / "refused" / "pipeline.toml"
    settings.write_text(settings.read_text().replace("LOGIN_WORD", "WRONG_WORD"))
    (tmp_path / "events").mkdir()
    lake = tmp_path / "lake-good"
    code, seen = watched(
        tmp_path,
        "pipelines check refused",
        "pipelines run good failing --once",
        "pipelines check refused --no-spark -X security.protocol=SASL_PLAINTEXT"
        " -X sasl.mechanism=PLAIN",
        "pipelines status good failing --json",
        "pipelines graph good",
        f"tables history raw.orders --lake {lake}",
        f"tables lineage raw.orders --lake {lake}",
    )
    output = (tmp_path / "output").read_text()
    assert code == 0, output
    assert output.count("ended with 0") == 4, output
    assert "the schema registry rejected the request" in output, output
    assert "'low'" in output, output
    assert "topics were not checked" in output, output
    assert Lake(lake).table("raw.orders").rows()["id"].to_pylist() == [1]
    assert any("SparkSubmit" in line for line in seen)
    events = "".join(
        path.read_text() for path in (tmp_path / "events").rglob("*") if path.is_file()
    )
    assert "(redacted)" in events, "plans and settings were looked at"
    assert leaks(tmp_path, seen) == []


def write(
    folder: Path,
    tables: str,
    registry: RegistryProcess,
    broker: BrokerProcess,
    topic: str,
    copies: str,
) -> None:
    """A pipeline that needs every kind of secret."""
    folder.mkdir()
    settings = SETTINGS.format(
        name=folder.name,
        bootstrap=broker.bootstrap_servers,
        place=folder.parent,
        topic=topic,
        registry=registry.url,
        registry_of_bob=registry.url.replace("http://", "http://bob:${ADDRESS_WORD}@"),
    )
    (folder / "pipeline.toml").write_text(settings)
    (folder / "tables.sql").write_text(tables)
    sink = SINK.format(copies=copies, schema=SCHEMA, registry=registry.url)
    (folder / "copies.py").write_text(sink)


def watched(place: Path, *lines: str) -> tuple[int, set[str]]:
    """Run commands in one process and one session; all command lines that were seen meanwhile.

    What they print goes to the file `output`.
    """
    seen: set[str] = set()
    environment = {**os.environ, **WORDS}
    with (place / "output").open("w") as output:
        job = subprocess.Popen(
            [sys.executable, "-c", JOB, *lines],
            cwd=place,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        while True:
            seen.update(descendants(job.pid).values())
            try:
                return job.wait(0.2), seen
            except subprocess.TimeoutExpired:
                continue
    finally:
        job.kill()
        job.wait()


def leaks(place: Path, command_lines: set[str]) -> list[str]:
    """Return the secrets that a text contains."""
    texts = {f"process {line[:80]}": line.encode() for line in command_lines}
    texts |= {str(path): path.read_bytes() for path in place.rglob("*") if path.is_file()}
    return [
        f"{word} in {name}: {text[max(0, text.find(word.encode()) - 120) :][:240]!r}"
        for name, text in texts.items()
        for word in WORDS.values()
        if word.encode() in text
    ]
