"""`headrace queue`: a topic as a work queue, where each task goes to one worker (share groups)."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import click
import msgspec

from headrace.cli.line_shapes import Shape
from headrace.cli.options import (
    admin,
    bootstrap_option,
    client_properties,
    cluster_options,
    command_config_option,
    json_option,
)
from headrace.cli.output import print_json, print_line, print_table, warn
from headrace.cli.produce import produce
from headrace.cli.record_text import formatter, record_json
from headrace.client.admin import Admin
from headrace.client.bulk import RecordProducer
from headrace.client.descriptions import ConfigChange
from headrace.client.partitions import EARLIEST, LATEST
from headrace.client.work_queue import Task, Verdict, Worker
from headrace.errors import GroupIdNotFound, HeadraceError, KafkaError

DEFAULT_GROUP = "queue"
FLUSH_S = 60.0
AT_ONCE = 100
EX_DATAERR = 65  # As in sysexits.h: the input is wrong, and will be next time.
_RESET = "share.auto.offset.reset"
_LETTERS = "errors.deadletterqueue.topic.name"


class QueueStats(msgspec.Struct, frozen=True, kw_only=True):
    """How a queue stands; None where the cluster does not tell."""

    topic: str
    group: str
    state: str
    workers: int
    open: int
    """Tasks that are not done with: ready, or with a worker just now."""
    settled_ahead: int
    """Tasks that are done with, behind one that is not."""
    oldest_seconds: float
    dead_letter_topic: str
    dead_letters: int | None


group_option = click.option(
    "--group",
    "-g",
    default=DEFAULT_GROUP,
    show_default=True,
    help="The share group whose workers share the tasks.",
)


@click.group("queue", short_help="Put tasks into a topic, take them, see how they stand.")
def command() -> None:
    """A topic as a work queue: each task goes to one worker, and comes back if it fails.

    Works with every Kafka that has share groups (4.1 and newer).
    """


@command.command("put")
@click.argument("topic")
@click.argument("tasks", nargs=-1)
@bootstrap_option
@command_config_option
def put(topic: str, tasks: tuple[str, ...], bootstrap: str, command_config: str | None) -> int:
    """Put TASKS into the queue, or a task per line of standard input.

    \b
    headrace queue put mails 'to ada' 'to bob'
    cat tasks.txt | headrace queue put mails
    """
    settings: dict[str, str] = {"acks": "all", **client_properties(command_config)}
    if not tasks:
        produced = produce(bootstrap, topic, settings, Shape(), FLUSH_S)
        for message, count in produced.errors.items():
            warn(f"{count:,} not delivered: {message}")
        print_line(f"{produced.records:,} tasks put into {topic}")
        return 1 if produced.failed else 0
    producer = RecordProducer(bootstrap, topic, settings)
    producer.require_topic()
    producer.send_values([task.encode() for task in tasks])
    late = producer.flush(FLUSH_S)
    for message, count in producer.failures.items():
        warn(f"{count:,} not delivered: {message}")
    print_line(f"{len(tasks) - late - producer.failed:,} tasks put into {topic}")
    return 1 if late or producer.failed else 0


@command.command("take")
@click.argument("topic")
@click.option("--count", "-n", type=click.IntRange(min=1), help="Stop after so many tasks.")
@group_option
@click.option("--release", "fate", flag_value="release", help="Give tasks back: only look at them.")
@click.option("--reject", "fate", flag_value="reject", help="Give tasks up.")
@click.option(
    "--exec",
    "program",
    metavar="COMMAND",
    help="Run this for each task, which is its standard input. Exit code 0 accepts the task, 65"
    " rejects it, any other gives it back to be tried again.",
)
@click.option(
    "--wait",
    "wait_s",
    type=click.FloatRange(min=0),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="Stop when no task came for this long.",
)
@click.option("--format", "-f", "template", help="How a task is written, as in consume.")
@click.option("--json", "as_json", is_flag=True, help="Write a JSON line per task.")
@cluster_options
def take(
    topic: str,
    count: int | None,
    group: str,
    fate: str | None,
    program: str | None,
    wait_s: float,
    template: str | None,
    as_json: bool,
    **cluster: Any,
) -> int:
    """Take tasks, write them to standard output, and accept them.

    A group that takes for the first time begins with the oldest task.

    \b
    headrace queue take mails -n 1
    headrace queue take mails --exec ./send-mail
    headrace queue take mails -n 10 --release --json
    """
    if program is not None and fate is not None:
        raise click.UsageError("--exec decides by itself: leave --release and --reject away")
    if template is not None and as_json:
        raise click.UsageError("--format and --json exclude each other")
    show = _shown(program, template, as_json=as_json)
    with admin(**cluster) as client:
        client.cluster.topic(topic)
        begin_with_the_oldest(client, group)
        with Worker(client, group, topic) as worker:
            shift = Shift(worker, show, count, wait_s)
            if program is not None:
                return shift.work(lambda task: run(program, task), at_once=1)
            if fate == "release":
                return shift.look()
            verdict = Verdict.REJECT if fate == "reject" else Verdict.ACCEPT
            return shift.work(lambda task: verdict, at_once=AT_ONCE)


class Shift:
    """What one run of the command does: so many tasks, or all until none came for a while."""

    def __init__(
        self, worker: Worker, show: Callable[[Task], None], count: int | None, wait_s: float
    ) -> None:
        self._worker = worker
        self._show = show
        self._count = count
        self._wait_s = wait_s
        self._taken = 0

    def work(self, judge: Callable[[Task], Verdict], *, at_once: int) -> int:
        """Take tasks and settle each by what `judge` says of it; 1 if one could not be."""
        failed = 0
        for task in self._tasks(at_once):
            self._show(task)
            try:
                self._worker.settle(task, judge(task))
            except KafkaError as error:
                warn(str(error))
                failed = 1
        return self._end() or failed

    def look(self) -> int:
        """Take tasks and give them back, but not before the end: they would come at once again."""
        held = []
        for task in self._tasks(AT_ONCE):
            self._show(task)
            held.append(task)
        for task in held:
            self._worker.settle(task, Verdict.RELEASE)
        return self._end()

    def _tasks(self, at_once: int) -> Iterator[Task]:
        while self._count is None or self._taken < self._count:
            left = at_once if self._count is None else min(at_once, self._count - self._taken)
            tasks = self._worker.take(left, self._wait_s)
            if not tasks:
                return
            for task in tasks:
                self._taken += 1
                yield task

    def _end(self) -> int:
        sys.stdout.flush()
        if self._count is None or self._taken >= self._count:
            return 0
        warn(f"{self._taken:,} of {self._count:,} tasks were there")
        return 1


def run(program: str, task: Task) -> Verdict:
    """Let a command do a task; its exit code says how that went."""
    facts = {
        "HEADRACE_TOPIC": task.topic(),
        "HEADRACE_PARTITION": str(task.partition()),
        "HEADRACE_OFFSET": str(task.offset()),
        "HEADRACE_KEY": (task.key() or b"").decode(errors="replace"),
        "HEADRACE_DELIVERY_COUNT": str(task.delivery_count()),
    }
    done = subprocess.run(
        program, shell=True, input=task.value() or b"", env={**os.environ, **facts}, check=False
    )
    if done.returncode == 0:
        return Verdict.ACCEPT
    verdict = Verdict.REJECT if done.returncode == EX_DATAERR else Verdict.RELEASE
    fate = "rejected" if verdict is Verdict.REJECT else "given back"
    warn(
        f"{task.topic()}-{task.partition()} offset {task.offset()}: "
        f"exit code {done.returncode}, {fate}"
    )
    return verdict


def begin_with_the_oldest(client: Admin, group: str) -> None:
    """A work queue that forgets what was put before its first worker came would be none.

    Share groups begin at the end unless told, so a new group is told; one that has worked already,
    or was told something itself, is left as it is.
    """
    try:
        client.groups.describe(group)
    except GroupIdNotFound:
        entries = {entry.name: entry for entry in client.configs.describe("group", group)}
        if not entries[_RESET].is_default:
            return
        change = ConfigChange(name=_RESET, operation="set", value="earliest")
        outcome = client.configs.alter("group", group, [change])
        if outcome.error is not None:
            raise HeadraceError(f"group {group!r}: {outcome.message or outcome.error}") from None


def _shown(program: str | None, template: str | None, *, as_json: bool) -> Callable[[Task], None]:
    """How tasks are written; a program that does them writes what it likes itself."""
    out = sys.stdout.buffer
    if as_json:
        return lambda task: _write(out.write, record_json(task) + b"\n")
    if template is not None:
        form = formatter(template)
        return lambda task: _write(out.write, form(task))
    if program is not None:
        return lambda task: None
    return lambda task: _write(out.write, (task.value() or b"") + b"\n")


def _write(write: Callable[[bytes], Any], data: bytes) -> None:
    write(data)


@command.command("stats")
@click.argument("topic")
@group_option
@cluster_options
@json_option
def stats(topic: str, group: str, as_json: bool, **cluster: Any) -> None:
    """Show how many tasks are open, how old the oldest is, who works, and how many were given up.

    Open tasks are ready or with a worker: brokers do not tell these two apart.
    """
    with admin(**cluster) as client:
        found = queue_stats(client, topic, group)
    if as_json:
        print_json(found)
        return
    print_table(
        ("topic", "group", "state", "workers", "open", "settled ahead", "oldest s", "dead letters"),
        [
            (
                found.topic,
                found.group,
                found.state,
                found.workers,
                found.open,
                found.settled_ahead,
                found.oldest_seconds,
                found.dead_letters,
            )
        ],
    )


def queue_stats(client: Admin, topic: str, group: str) -> QueueStats:
    """All that a cluster tells of a queue."""
    client.cluster.topic(topic)
    described = client.groups.describe(group)
    if described.type != "share":
        raise HeadraceError(f"group {group!r} is a {described.type} group and no queue")
    now_ms = time.time_ns() // 1_000_000
    rows = [row for row in client.groups.lag(group, now_ms) if row.topic == topic]
    behind = sum((row.end or 0) - (row.committed or 0) for row in rows)
    still_open = sum(row.lag or 0 for row in rows)
    target, letters = _dead_letters(client, group)
    return QueueStats(
        topic=topic,
        group=group,
        state=described.state,
        workers=sum(topic in member.assignment for member in described.members),
        open=still_open,
        settled_ahead=behind - still_open,
        oldest_seconds=max((row.lag_seconds or 0.0 for row in rows), default=0.0),
        dead_letter_topic=target,
        dead_letters=letters,
    )


def _dead_letters(client: Admin, group: str) -> tuple[str, int | None]:
    """The group's dead letter topic, and how many letters are in it; from all its queues."""
    entries = {entry.name: entry.value for entry in client.configs.describe("group", group)}
    target = entries.get(_LETTERS) or ""
    if not target:
        return "", None
    if target not in client.cluster.topic_names():
        return target, 0
    ends = sum(one.offset for one in client.partitions.offsets(target, LATEST))
    starts = sum(one.offset for one in client.partitions.offsets(target, EARLIEST))
    return target, ends - starts
