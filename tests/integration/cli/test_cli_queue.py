"""`headrace queue`: a topic as a work queue, from the command line."""

from collections.abc import Iterator

import pytest

import headrace as client
from headrace.client.descriptions import ConfigChange
from tests.clients import create_topic, unique_name
from tests.integration.cli.commands import Done, headrace, ok
from tests.nodes import Flavour, Node
from tests.share_members import SETTINGS


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
    told = ok(node, "queue", "put", topic, stdin=lines.encode())
    assert f"{count:,} tasks put into {topic}" in told.out


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
    assert "0 of 1 tasks were there" in late.err


def test_taking_few_of_many_wears_none_out(node: Node, group: str) -> None:
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


def test_an_exit_code_decides(node: Node, group: str) -> None:
    """RMQ-1: 0 accepts, 65 gives up, anything else tries again."""
    topic = create_topic(node)
    put(node, topic, 3)
    program = (
        'read task; case "$task $HEADRACE_DELIVERY_COUNT" in "task 0 "*) exit 65;; '
        '"task 1 1") exit 1;; esac; test "$HEADRACE_OFFSET" -lt 3'
    )
    done = take(node, topic, group, "--exec", program)
    assert done.code == 0
    assert "offset 0: exit code 65, rejected" in done.err
    assert "offset 1: exit code 1, given back" in done.err
    assert stats(node, topic, group)["open"] == 0


def test_stats_tell_what_is_open(node: Node, group: str) -> None:
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


def test_a_consumer_group_is_no_queue(node: Node) -> None:
    topic = create_topic(node)
    done = headrace(node, "queue", "stats", topic, "--group", "nobody")
    assert done.code == 1
