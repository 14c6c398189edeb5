"""Apache Kafka itself, as the judge: fetched through Maven once, then kept in the user's cache.

`KAFKA_HOME` may name a directory that holds Kafka's jars in `libs` already.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

VERSION = "4.3.1"
POM = Path(__file__).with_name("pom.xml")

# Kafka's scripts and the classes behind them.
MAIN_CLASSES = {
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-replica-verification": "org.apache.kafka.tools.ReplicaVerificationTool",
    "kafka-server-start": "kafka.Kafka",
    "kafka-share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "kafka-verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
}
# A tool lives for a second: a small heap and no optimising compiler make it start sooner.
TOOL_FLAGS = ("-Xmx256M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class KafkaMissing(Exception):
    """Kafka cannot be had here; the message names the missing part."""


class KafkaRelease(NamedTuple):
    """Kafka's jars on this machine."""

    libs: Path

    @property
    def classes(self) -> Path:
        """The archive of Kafka's classes, which halves the start of each later JVM."""
        place = hashlib.sha256(str(self.libs).encode()).hexdigest()[:8]
        return cache_directory() / f"kafka-classes-{place}.jsa"

    @property
    def sooner(self) -> tuple[str, ...]:
        """Flags that let a JVM use them; one that cannot, as another Java wrote them, does not."""
        if not self.classes.exists():
            return ()
        return (f"-XX:SharedArchiveFile={self.classes}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")

    def command(self, script: str, *arguments: str, flags: Sequence[str] = TOOL_FLAGS) -> list[str]:
        """The command line that runs one of Kafka's scripts."""
        classpath = f"{self.libs}/*"
        return ["java", *flags, "-cp", classpath, MAIN_CLASSES[script], *arguments]

    def run(self, script: str, *arguments: str, stdin: str = "") -> str:
        """Run one of Kafka's tools to its end and return what it printed."""
        finished = subprocess.run(
            self.command(script, *arguments, flags=(*TOOL_FLAGS, *self.sooner)),
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        if finished.returncode != 0:
            raise AssertionError(f"{script} failed:\n{finished.stdout}\n{finished.stderr}")
        return finished.stdout


@cache
def find_kafka() -> KafkaRelease:
    """Kafka's jars, fetched through Maven when this is the first time."""
    if shutil.which("java") is None:
        raise KafkaMissing("no `java` on the path: install a Java 17 runtime to test with Kafka")
    if home := os.environ.get("KAFKA_HOME"):
        return KafkaRelease(Path(home) / "libs")
    return KafkaRelease(jars_of(POM, f"kafka-{VERSION}"))


def jars_of(pom: Path, name: str) -> Path:
    """The folder with the jars that a POM lists, fetched through Maven when this is the first time.

    Its name changes with the list, so that an older download is not enough.
    """
    listed = hashlib.sha256(pom.read_bytes()).hexdigest()[:8]
    libs = cache_directory() / f"{name}-{listed}"
    with only_one(libs.with_name(f"{libs.name}.lock")):
        if not libs.exists():
            download(pom, libs)
    return libs


def cache_directory() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "headrace"


def download(pom: Path, libs: Path) -> None:
    """All jars or none: they move to their place when Maven has them all."""
    if shutil.which("mvn") is None:
        raise KafkaMissing("no `mvn` on the path: install Maven, or set KAFKA_HOME")
    partial = libs.with_name(f"{libs.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime"]
    finished = subprocess.run(
        ["mvn", "-B", "-q", "-f", pom, *goal, f"-DoutputDirectory={partial}"],
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode != 0:
        raise KafkaMissing(
            f"Maven could not fetch what {pom.name} lists:\n{finished.stdout[-2000:]}"
        )
    partial.rename(libs)


@contextmanager
def only_one(lock: Path) -> Iterator[None]:
    """One process at a time, so that parallel test workers download once."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
