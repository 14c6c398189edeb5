"""A cluster of three nodes: nothing acknowledged is lost, whichever process dies."""

import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

import headrace
from headrace.client.health import Health, problems_of
from headrace.runtime.ports import free_port
from headrace.testing.cluster import ClusterProcess

PARTITIONS = 3
SECONDS_MAX = 60

quick_to_shrink = pytest.mark.headrace(settings={"replica.lag.time.max.ms": 3000})


class Load:
    """A producer that writes numbered records without a pause until it is stopped.

    Each partition has its own numbers, so that losses, repetitions and changes of order show.
    """

    def __init__(self, cluster: ClusterProcess, topic: str, per_second: int = 500) -> None:
        self.topic = topic
        self.acknowledged: list[list[int]] = [[] for _ in range(PARTITIONS)]
        self.failures: list[str] = []
        self._pause_s = 1 / per_second
        self._producer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "enable.idempotence": True,
                "message.timeout.ms": 120_000,
                "linger.ms": 5,
            }
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        assert self._producer.flush(120) == 0

    @property
    def count(self) -> int:
        return sum(map(len, self.acknowledged))

    def wait_for_more(self, count: int = 200) -> None:
        """Wait until further records are acknowledged: producing goes on."""
        goal = self.count + count
        eventually(lambda: self.count >= goal, "more records are acknowledged")

    def _run(self) -> None:
        for number in itertools.count():
            if self._stopping.is_set():
                return
            partition = number % PARTITIONS
            self._producer.produce(
                self.topic, str(number), partition=partition, on_delivery=self._delivered
            )
            self._producer.poll(self._pause_s)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(error.str())
            return
        partition = message.partition()
        assert partition is not None
        self.acknowledged[partition].append(int(message.value() or b""))


def eventually(is_so: Callable[[], bool], what: str, seconds_max: float = SECONDS_MAX) -> None:
    deadline = time.monotonic() + seconds_max
    while not is_so():
        assert time.monotonic() < deadline, f"not within {seconds_max} s: {what}"
        time.sleep(0.05)


def create_topic(cluster: ClusterProcess, name: str, partitions: int = PARTITIONS) -> str:
    with headrace.Admin(cluster.bootstrap_servers) as admin:
        (created,) = admin.topics.create([headrace.NewTopic(name=name, partitions=partitions)])
    assert created.error is None, created
    cluster.wait_until_in_sync()
    return name


def stored(cluster: ClusterProcess, topic: str) -> list[list[int]]:
    """All committed numbers in a topic, by partition, in order of their offsets."""
    found: list[list[int]] = []
    for partition in range(PARTITIONS):
        consumer = reader(cluster)
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
        numbers: list[int] = []
        while True:
            messages = consumer.consume(1, timeout=30)
            assert messages, f"{topic}-{partition} cannot be read to its end"
            error = messages[0].error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                break
            if error is None:
                numbers.append(int(messages[0].value() or b""))
        consumer.close()
        found.append(numbers)
    return found


def reader(cluster: ClusterProcess, group: str = "unused") -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": group,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
        }
    )


def assert_nothing_lost(cluster: ClusterProcess, load: Load) -> None:
    assert load.failures == []
    assert stored(cluster, load.topic) == load.acknowledged


def test_every_topic_has_three_replicas_and_the_cluster_is_healthy(
    headrace_cluster: ClusterProcess,
) -> None:
    """REP-1, REP-3, REP-14, REP-17: leaders are spread, and any address leads to all of them."""
    create_topic(headrace_cluster, "orders")
    part = headrace_cluster.partition("orders")
    assert part is not None
    assert sorted(part.replicas) == sorted(part.isr) == [1, 2, 3]
    leaders = [headrace_cluster.leader_of("orders", index).id for index in range(PARTITIONS)]
    assert sorted(leaders) == [1, 2, 3]
    with headrace.Admin(headrace_cluster.bootstrap_servers) as admin:
        assert problems_of(Health.read(admin)) == []
        described = admin.nodes.describe()
    levels = {one.name: one.finalized for one in described.features}
    assert levels["metadata.version"] == 25
    assert levels["eligible.leader.replicas.version"] == 1
    assert described.quorum is not None
    assert [one.id for one in described.quorum.replicas if one.role == "voter"] == [1, 2, 3]


def test_acknowledged_records_survive_the_death_of_every_leader(
    headrace_cluster: ClusterProcess,
) -> None:
    """REP-5, REP-7, REP-10, RMQ-8: leaders are killed one after the other, under load."""
    topic = create_topic(headrace_cluster, "orders")
    with Load(headrace_cluster, topic) as load:
        for partition in range(PARTITIONS):
            load.wait_for_more()
            leader = headrace_cluster.leader_of(topic, partition)
            leader.kill()
            load.wait_for_more()
            leader.start()
            headrace_cluster.wait_until_in_sync()
    assert_nothing_lost(headrace_cluster, load)


def test_a_dead_follower_holds_producers_up_only_until_it_is_fenced(
    headrace_cluster: ClusterProcess,
) -> None:
    topic = create_topic(headrace_cluster, "orders")
    with Load(headrace_cluster, topic) as load:
        load.wait_for_more()
        follower = headrace_cluster.followers_of(topic)[0]
        follower.kill()
        load.wait_for_more()
        follower.start()
        headrace_cluster.wait_until_in_sync()
    assert_nothing_lost(headrace_cluster, load)


def test_records_survive_the_death_of_all_nodes_at_once(headrace_cluster: ClusterProcess) -> None:
    """The page cache outlives processes: a crash of all of them loses nothing."""
    topic = create_topic(headrace_cluster, "orders")
    with Load(headrace_cluster, topic) as load:
        load.wait_for_more(500)
        headrace_cluster.kill()
        headrace_cluster.start()
        load.wait_for_more()
    headrace_cluster.wait_until_in_sync()
    assert_nothing_lost(headrace_cluster, load)


@pytest.mark.headrace(settings={"broker.session.timeout.ms": 60_000})
def test_a_node_that_dies_right_after_its_start_starts_again_at_once(
    headrace_cluster: ClusterProcess,
) -> None:
    """Its death is noticed without the end of its session, however short it lived."""
    for node in headrace_cluster.nodes:
        node.restart()
        node.kill()
        node.start()  # Gives up after half of a session.
    headrace_cluster.wait_until_in_sync()


@pytest.mark.headrace(settings={"log.flush.offset.checkpoint.interval.ms": 200})
def test_a_node_whose_only_disk_fails_stops_and_its_leaders_move(
    headrace_cluster: ClusterProcess,
) -> None:
    topic = create_topic(headrace_cluster, "orders")
    node = headrace_cluster.leader_of(topic)
    checkpoint = node.data_dir / "recovery-point-offset-checkpoint.tmp"
    with Load(headrace_cluster, topic) as load:
        load.wait_for_more()
        checkpoint.mkdir()  # A file that cannot be written.
        with headrace.Admin(headrace_cluster.bootstrap_servers) as admin:
            admin.topics.create([headrace.NewTopic(name="more")])  # Changes the checkpoint.
        eventually(lambda: not node.is_running, "the node stops")
        load.wait_for_more()
        checkpoint.rmdir()
        node.start()
        headrace_cluster.wait_until_in_sync()
    assert_nothing_lost(headrace_cluster, load)


def test_a_rolling_restart_is_not_noticed_by_producers(headrace_cluster: ClusterProcess) -> None:
    """OPS-8: leaders move before a node stops."""
    topic = create_topic(headrace_cluster, "orders")
    with Load(headrace_cluster, topic) as load:
        for node in headrace_cluster.nodes:
            load.wait_for_more()
            node.restart()
            headrace_cluster.wait_until_in_sync()
    assert_nothing_lost(headrace_cluster, load)


def test_the_next_controller_takes_over_when_the_active_one_dies(
    headrace_cluster: ClusterProcess,
) -> None:
    """REP-12, REP-15."""
    first = headrace_cluster.active_controller()
    first.kill()
    second = headrace_cluster.active_controller()
    assert second is not first
    with headrace.Admin(second.bootstrap_servers) as admin:
        new = headrace.NewTopic(name="made-later", partitions=1, replication_factor=2)
        (created,) = admin.topics.create([new])
    assert created.error is None
    first.start()
    headrace_cluster.wait_until_in_sync()


def test_a_cluster_without_a_majority_changes_nothing(headrace_cluster: ClusterProcess) -> None:
    first, second, third = headrace_cluster.nodes
    first.kill()
    second.kill()
    with (
        headrace.Admin(third.bootstrap_servers, timeout_s=5) as admin,
        pytest.raises(headrace.HeadraceError),
    ):
        admin.topics.create([headrace.NewTopic(name="never")])
    first.start()
    second.start()
    headrace_cluster.wait_until_in_sync()


def test_too_few_replicas_refuse_acks_all(headrace_cluster: ClusterProcess) -> None:
    """REP-6, REP-8: min.insync.replicas is 2."""
    topic = create_topic(headrace_cluster, "orders")
    leader = headrace_cluster.leader_of(topic)
    others = headrace_cluster.followers_of(topic)
    others[0].kill()
    others[1].pause()
    producer = Producer(
        {"bootstrap.servers": leader.bootstrap_servers, "message.timeout.ms": 3000, "acks": "all"}
    )
    reports: list[KafkaError | None] = []
    producer.produce(topic, "0", partition=0, on_delivery=lambda error, _: reports.append(error))
    producer.flush(30)
    assert reports[0] is not None
    others[1].resume()
    others[0].start()
    headrace_cluster.wait_until_in_sync()


@quick_to_shrink
def test_a_paused_follower_leaves_the_replicas_in_sync_and_returns(
    headrace_cluster: ClusterProcess,
) -> None:
    """REP-4."""
    topic = create_topic(headrace_cluster, "orders")
    follower = headrace_cluster.followers_of(topic)[0]
    with Load(headrace_cluster, topic) as load:
        load.wait_for_more()
        follower.pause()
        eventually(lambda: follower.id not in in_sync(headrace_cluster, topic), "the ISR shrinks")
        load.wait_for_more()
        follower.resume()
        headrace_cluster.wait_until_in_sync()
    assert_nothing_lost(headrace_cluster, load)


def in_sync(cluster: ClusterProcess, topic: str) -> list[int]:
    part = cluster.partition(topic)
    return part.isr if part is not None else []


def test_a_group_continues_from_its_commits_when_its_coordinator_dies(
    headrace_cluster: ClusterProcess,
) -> None:
    topic = create_topic(headrace_cluster, "orders")
    with Load(headrace_cluster, topic) as load:
        load.wait_for_more(600)
    consumer = reader(headrace_cluster, "workers")
    consumer.subscribe([topic])
    before = read_some(consumer, load.count // 2)
    consumer.commit(asynchronous=False)
    with headrace.Admin(headrace_cluster.bootstrap_servers) as admin:
        coordinator = admin.groups.coordinator_of("workers")
    headrace_cluster.node(coordinator).kill()
    after = read_some(consumer, load.count - len(before))
    consumer.commit(asynchronous=False)
    consumer.close()
    assert sorted(before + after) == sorted(itertools.chain(*load.acknowledged))


def read_some(consumer: Consumer, count: int) -> list[int]:
    deadline = time.monotonic() + SECONDS_MAX
    numbers: list[int] = []
    while len(numbers) < count:
        assert time.monotonic() < deadline, f"{len(numbers)} of {count} records"
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            numbers.append(int(message.value() or b""))
    return numbers


def test_transactions_are_whole_when_their_coordinator_dies(
    headrace_cluster: ClusterProcess,
) -> None:
    topic = create_topic(headrace_cluster, "orders")
    producer = Producer(
        {
            "bootstrap.servers": headrace_cluster.bootstrap_servers,
            "transactional.id": "till",
            "transaction.timeout.ms": 60_000,
        }
    )
    producer.init_transactions(SECONDS_MAX)
    committed: list[int] = []
    for number in range(6):
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            producer.produce(topic, str(number), partition=partition)
        if number in (2, 4):
            headrace_cluster.leader_of("__transaction_state", coordinator_partition("till")).kill()
        if number % 2:
            retried(lambda: producer.abort_transaction(SECONDS_MAX))
        elif has_committed(producer):
            committed.append(number)
        headrace_cluster.start()
        headrace_cluster.wait_until_in_sync()
    assert stored(headrace_cluster, topic) == [committed] * PARTITIONS
    assert len(committed) >= 1


def has_committed(producer: Producer) -> bool:
    """Commit; abort if the failover took so long that the transaction cannot be committed."""
    try:
        retried(lambda: producer.commit_transaction(SECONDS_MAX))
    except KafkaException as error:
        if not error.args[0].txn_requires_abort():
            raise
        retried(lambda: producer.abort_transaction(SECONDS_MAX))
        return False
    return True


def coordinator_partition(transactional_id: str) -> int:
    """The partition of __transaction_state by Java's hash of a string."""
    value = 0
    for character in transactional_id:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    signed = value - (1 << 32) if value >= 1 << 31 else value
    return abs(signed) % 50


def retried(step: Callable[[], None]) -> None:
    """Repeat a step of a transaction as long as librdkafka calls its error retriable."""
    for _ in range(10):
        try:
            step()
            return
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
    pytest.fail("still retriable after ten attempts")


def test_health_is_an_exit_code(headrace_cluster: ClusterProcess) -> None:
    """OPS-8: the command names a dead node and the partitions that miss it."""
    create_topic(headrace_cluster, "orders")
    assert health(headrace_cluster)[0] == 0
    dead = headrace_cluster.node(3)
    dead.kill()
    eventually(lambda: health(headrace_cluster)[0] == 1, "health reports the dead node")
    eventually(lambda: "broker 3" in health(headrace_cluster)[1], "the node is fenced")
    dead.start()
    headrace_cluster.wait_until_in_sync()
    assert health(headrace_cluster)[0] == 0


def health(cluster: ClusterProcess) -> tuple[int, str]:
    addresses = ",".join(node.bootstrap_servers for node in cluster.serving)
    done = headrace_program("cluster", "health", "--bootstrap", addresses, "--json")
    problems = json.loads(done.stdout)["problems"]
    return done.returncode, " ".join(one["subject"] for one in problems)


def headrace_program(*words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "headrace.cli.main", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


# headrace up --nodes


class Up:
    """`headrace up --nodes 3` with its output."""

    def __init__(self, data: Path, port: int, *options: str) -> None:
        words = ["up", "--nodes", "3", "--data", str(data), "--listen", f"127.0.0.1:{port}"]
        self.log_path = data.with_suffix(".log")
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "headrace.cli.main", *words, *options],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self.bootstrap = ""

    def wait_until_ready(self) -> None:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("Headrace is ready on "), self.log_path.read_text()
        self.bootstrap = line.removeprefix("Headrace is ready on ").strip()

    def children(self) -> list[int]:
        listed = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self.process.pid)],
            capture_output=True,
            text=True,
            check=False,
        )
        return [int(pid) for pid in listed.stdout.split()]

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(120)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Callable[..., Up]]:
    """Start clusters by the command; none outlives the test."""
    begun: list[Up] = []
    port = three_free_ports()

    def start(*options: str) -> Up:
        begun.append(Up(tmp_path / "data", port, *options))
        begun[-1].wait_until_ready()
        return begun[-1]

    yield start
    for one in begun:
        if one.process.poll() is None:
            one.process.kill()  # Its nodes end with it.
            one.process.wait()
        if one.process.stdout is not None:
            one.process.stdout.close()


def three_free_ports() -> int:
    while True:
        first = free_port("127.0.0.1")
        if all(is_free(first + more) for more in (1, 2)):
            return first


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def test_a_second_start_is_the_same_cluster(up: Callable[..., Up], tmp_path: Path) -> None:
    first = up()
    with headrace.Admin(first.bootstrap) as admin:
        cluster_id = admin.nodes.describe().cluster_id
        admin.topics.create([headrace.NewTopic(name="orders")])
    assert first.stop() == 0
    second = up()
    assert second.bootstrap == first.bootstrap
    with headrace.Admin(second.bootstrap) as admin:
        assert admin.nodes.describe().cluster_id == cluster_id
        (orders,) = [topic for topic in admin.topics.all() if topic.name == "orders"]
    assert orders.replication_factor == 3
    assert second.stop() == 0
    refused = headrace_program("up", "--nodes", "5", "--data", str(tmp_path / "data"))
    assert refused.returncode == 1
    assert "start it with --nodes 3" in refused.stderr


def test_a_node_that_dies_is_started_again(up: Callable[..., Up]) -> None:
    """REP-13: the death is noticed, and the next process registers under the same id."""
    cluster = up()
    before = cluster.children()
    os.kill(before[-1], signal.SIGKILL)
    eventually(lambda: len(set(cluster.children()) - set(before)) == 1, "another process runs")
    eventually(lambda: is_healthy(cluster.bootstrap), "the cluster is healthy")
    assert cluster.stop() == 0


def is_healthy(bootstrap: str) -> bool:
    return headrace_program("cluster", "health", "--bootstrap", bootstrap).returncode == 0


def test_nodes_end_with_their_parent(up: Callable[..., Up]) -> None:
    cluster = up()
    nodes = cluster.children()
    cluster.process.kill()
    eventually(lambda: not any(map(is_alive, nodes)), "the nodes end")


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


# The drill of docs/guides/cluster.md

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "cluster.md"


def drill_commands() -> Sequence[str]:
    """The commands of the page's drill, in order, without those that start and kill."""
    section = PAGE.read_text().partition("## Drill: kill a leader")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```sh\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def test_the_drill_of_the_page_works(headrace_cluster: ClusterProcess) -> None:
    """USE-11."""
    killed = None
    for line in drill_commands():
        match line.split():
            case ["headrace", "up", "--nodes", *_] | ["export", *_]:
                pass  # The fixture has done that.
            case ["kill", *_]:
                killed = headrace_cluster.leader_of("orders")
                killed.kill()
            case ["headrace", "up", *_]:
                assert killed is not None
                killed.start()
                headrace_cluster.wait_until_in_sync()
            case ["headrace", "cluster", "health"]:
                is_whole = killed is None or killed.is_running
                wait_for_text(line, "healthy" if is_whole else "fenced", headrace_cluster)
            case ["headrace", "consume", *_]:
                wait_for_text(line, "one\ntwo\n", headrace_cluster)
            case _:
                assert run_shell(line, headrace_cluster).returncode == 0
    assert killed is not None
    assert killed.is_running


def wait_for_text(line: str, text: str, cluster: ClusterProcess) -> None:
    eventually(lambda: text in run_shell(line, cluster).stdout, f"{line} prints {text!r}")


def run_shell(line: str, cluster: ClusterProcess) -> "subprocess.CompletedProcess[str]":
    bootstrap = ",".join(node.bootstrap_servers for node in cluster.serving)
    program = f"{sys.executable} -m headrace.cli.main"
    return subprocess.run(
        line.replace("headrace ", f"{program} "),
        shell=True,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "HEADRACE_BOOTSTRAP": bootstrap},
    )
