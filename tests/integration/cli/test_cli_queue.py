"""`headrace queue`: a topic as a work queue, from the command line."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import headrace as client
from headrace.client.descriptions import ConfigChange
from tests.clients.librdkafka import create_topic, unique_name
from tests.clients.share_members import SETTINGS
from tests.integration.cli.commands import Done, headrace, ok
from tests.processes.nodes import Flavour, Node, eventually


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, flavour: Flavour) -> Iterator[Node]:
    letters = {"errors.deadletterqueue.auto.create.topics.enable": "true"}
    more = letters if flavour.name == "headrace" else {}
    own = Node(flavour, tmp_path_factory.mktemp("queue"), SETTINGS | more)
    own.start()
    yield own
    if own.is_running:
        own.stop()


@pytest.fixture
def group() -> str:
    return unique_name("queue")


def put(node: Node, topic: str, count: int) -> None:
    lines = "".join(f"task {number}\n" for number in range(count))
    reported = ok(node, "queue", "put", topic, stdin=lines.encode())
    noun = "task" if count == 1 else "tasks"
    assert f"{count:,} {noun} put into {topic}" in reported.out


def take(node: Node, topic: str, group: str, *options: str) -> Done:
    return headrace(node, "queue", "take", topic, "--group", group, "--wait", "3", *options)


def stats(node: Node, topic: str, group: str) -> dict[str, object]:
    document: dict[str, object] = ok(
        node, "queue", "stats", topic, "--group", group, "--json"
    ).document
    return document


def test_a_task_is_taken_once(node: Node, group: str) -> None:
    """RMQ-1, OPS-1: also what was put before the first worker came."""
    topic = create_topic(node)
    put(node, topic, 3)
    assert take(node, topic, group, "-n", "1").out == "task 0\n"
    assert take(node, topic, group, "-n", "2").out == "task 1\ntask 2\n"
    late = take(node, topic, group, "-n", "1")
    assert (late.code, late.out) == (1, "")
    assert "0 of 1 tasks arrived" in late.err


def test_taking_few_of_many_tasks_uses_no_deliveries_of_others(node: Node, group: str) -> None:
    """PUL-6: a batch of tasks taken one by one, by more runs than the delivery limit allows."""
    topic = create_topic(node)
    put(node, topic, 10)
    seen = [take(node, topic, group, "-n", "1").out for _ in range(8)]
    assert seen == [f"task {number}\n" for number in range(8)]


def test_tasks_given_back_come_again(node: Node, group: str) -> None:
    """PUL-5"""
    topic = create_topic(node)
    put(node, topic, 2)
    looked = take(node, topic, group, "--release", "-n", "2", "--json").documents
    assert [one["value"] for one in looked] == ["task 0", "task 1"]
    assert take(node, topic, group, "-n", "2").out == "task 0\ntask 1\n"


def test_the_exit_code_of_a_command_decides_on_its_task(node: Node, group: str) -> None:
    """RMQ-1: 0 accepts, 65 gives up, anything else tries again."""
    topic = create_topic(node)
    put(node, topic, 3)
    program = (
        'read task; case "$task $HEADRACE_DELIVERY_COUNT" in "task 0 "*) exit 65;; '
        '"task 1 1") exit 1;; esac; test "$HEADRACE_OFFSET" -lt 3'
    )
    done = take(node, topic, group, "--exec", program)
    assert done.code == 1  # One was rejected; the other was done in the end.
    assert "2 done, 1 rejected" in done.err
    assert f"headrace groups reset {group} --topic {topic} --to-earliest" in done.err
    assert "offset 0: exit code 65, rejected" in done.err
    assert "offset 1: exit code 1, given back (try 1 of 5)" in done.err
    assert stats(node, topic, group)["open"] == 0


@pytest.mark.parametrize("program", ["./nonexist", "/dev/null"])
def test_a_command_that_cannot_run_loses_no_task(node: Node, group: str, program: str) -> None:
    """RMQ-1: the first task ends the work, and is there for the next worker."""
    topic = create_topic(node)
    put(node, topic, 2)
    done = take(node, topic, group, "--exec", program)
    assert done.code == 1
    assert f"'{program}' is not " in done.err
    assert "0 done, 1 given back" in done.err
    assert take(node, topic, group, "-n", "2").out == "task 0\ntask 1\n"


def test_a_task_that_fails_too_often_is_given_up_and_reported(node: Node, group: str) -> None:
    """PUL-6, RMQ-1"""
    topic = create_topic(node)
    change = ConfigChange(name="share.delivery.count.limit", operation="set", value="2")
    with client.Admin(node.address) as admin:
        assert admin.configs.alter("group", group, [change]).error is None
    put(node, topic, 1)
    done = take(node, topic, group, "--exec", "exit 3")
    assert done.code == 1
    assert "exit code 3, given back (try 1 of 2)" in done.err
    assert "exit code 3, given up after 2 tries" in done.err
    assert "0 done, 1 given up" in done.err


def test_a_peek_warns_before_it_uses_up_a_task(node: Node, group: str) -> None:
    """PUL-5, PUL-6"""
    topic = create_topic(node)
    change = ConfigChange(name="share.delivery.count.limit", operation="set", value="2")
    with client.Admin(node.address) as admin:
        assert admin.configs.alter("group", group, [change]).error is None
    put(node, topic, 1)
    first, last = (take(node, topic, group, "--release", "-n", "1") for _ in range(2))
    assert (first.code, last.code) == (0, 1)
    assert "another look gives it up" in first.err
    assert "this was its last delivery of 2; it is given up" in last.err


def test_the_group_has_the_topics_name_by_default(node: Node) -> None:
    """OPS-1: as in the Python client's page, where topic and group are both `jobs`."""
    topic = create_topic(node)
    put(node, topic, 2)
    assert headrace(node, "queue", "take", topic, "-n", "1").code == 0
    assert stats(node, topic, topic)["open"] == 1
    assert ok(node, "queue", "stats", topic, "--json").document["group"] == topic


def test_stats_before_the_first_worker_count_the_open_records(node: Node, group: str) -> None:
    """OPS-1"""
    topic = create_topic(node)
    put(node, topic, 3)
    found = stats(node, topic, group)
    assert (found["open"], found["workers"], found["state"]) == (3, 0, None)
    assert "no worker yet" in ok(node, "queue", "stats", topic, "--group", group).out


def test_a_missing_dead_letter_topic_is_reported(
    node: Node, group: str, only_headrace: None
) -> None:
    """PUL-6"""
    topic, target = create_topic(node), f"dlq.{unique_name()}"
    change = ConfigChange(name="errors.deadletterqueue.topic.name", operation="set", value=target)
    with client.Admin(node.address) as admin:
        assert admin.configs.alter("group", group, [change]).error is None
    assert stats(node, topic, group)["is_dead_letter_topic_missing"] is True
    reported = ok(node, "queue", "stats", topic, "--group", group)
    assert f"topic {target} does not exist" in reported.err


def test_put_accepts_the_options_of_every_command(node: Node) -> None:
    topic = create_topic(node)
    options = ("-X", "linger.ms=0", "--timeout", "20", "--json")
    document = ok(node, "queue", "put", topic, "one", "two", *options).document
    assert (document["records"], document["failed"]) == (2, 0)


def test_a_worker_outlives_a_restart_of_the_broker(node: Node, group: str, tmp_path: Path) -> None:
    """RMQ-1: the broker is away while the command works on the first task."""
    topic = create_topic(node)
    put(node, topic, 2)
    begun, go_on = tmp_path / "begun", tmp_path / "go-on"
    program = f"cat; touch {begun}; while [ ! -e {go_on} ]; do sleep 0.1; done"
    with ThreadPoolExecutor() as pool:
        work = pool.submit(take, node, topic, group, "--exec", program)
        eventually(begun.exists)
        node.stop()
        go_on.touch()
        node.start()
        done = work.result()
    assert "task 1" in done.out
    assert stats(node, topic, group)["open"] == 0


def test_a_task_may_take_longer_than_its_lock(node: Node, group: str) -> None:
    """RMQ-1: meanwhile no other worker gets it, and the worker stays a member."""
    topic = create_topic(node)
    changes = {"share.record.lock.duration.ms": "1000", "share.session.timeout.ms": "45000"}
    with client.Admin(node.address) as admin:
        wanted = [
            ConfigChange(name=name, operation="set", value=value)
            for name, value in {**changes, "share.auto.offset.reset": "earliest"}.items()
        ]
        assert admin.configs.alter("group", group, wanted).error is None
    put(node, topic, 1)
    slow = 'read task; sleep 3; test "$HEADRACE_DELIVERY_COUNT" = 1'
    done = take(node, topic, group, "-n", "1", "--exec", slow)
    assert (done.code, done.err.strip()) == (0, "headrace: 1 done")
    assert stats(node, topic, group)["open"] == 0


def test_stats_count_open_and_acquired_records(node: Node, group: str) -> None:
    """OPS-1"""
    topic = create_topic(node, partitions=2)
    put(node, topic, 6)
    take(node, topic, group, "-n", "2")
    found = stats(node, topic, group)
    assert (found["open"], found["workers"], found["state"]) == (4, 0, "Empty")
    assert "dead letters" in ok(node, "queue", "stats", topic, "--group", group).out


def test_stats_count_dead_letters(node: Node, group: str, only_headrace: None) -> None:
    """PUL-6"""
    topic, target = create_topic(node), f"dlq.{unique_name()}"
    change = ConfigChange(name="errors.deadletterqueue.topic.name", operation="set", value=target)
    with client.Admin(node.address) as admin:
        assert admin.configs.alter("group", group, [change]).error is None
    put(node, topic, 2)
    take(node, topic, group, "--reject", "-n", "2")
    found = stats(node, topic, group)
    assert (found["dead_letter_topic"], found["open"]) == (target, 0)
    assert found["dead_letters"] == 2


def test_a_topic_that_is_missing_is_named(node: Node, group: str) -> None:
    for arguments in (("take", "nowhere"), ("stats", "nowhere")):
        done = headrace(node, "queue", *arguments, "--group", group)
        assert done.code == 1
        assert "'nowhere' does not exist" in done.err


def test_a_consumer_group_is_no_queue(node: Node, group: str) -> None:
    topic = create_topic(node)
    ok(node, "groups", "reset", group, "--topic", topic, "--to-latest")
    done = headrace(node, "queue", "stats", topic, "--group", group)
    assert done.code == 1
    assert "is a classic group, not a share group" in done.err
