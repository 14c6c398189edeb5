"""`headrace queue`: a topic as a work queue, where each task goes to one worker (share groups)."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import click

from headrace.cli.line_shapes import Shape
from headrace.cli.options import (
    admin,
    client_properties,
    cluster_options,
    json_option,
)
from headrace.cli.output import counted, print_json, print_line, warn
from headrace.cli.produce import INTERRUPTED, produce
from headrace.cli.progress import OutageNotice
from headrace.cli.queue_stats import print_stats, queue_stats
from headrace.cli.queue_trials import Fate, Tally, cannot_run, fate_of, is_last, pause_s, told
from headrace.cli.record_text import formatter, record_json
from headrace.client.addresses import BrokerUnreachable
from headrace.client.admin import Admin
from headrace.client.descriptions import ConfigChange
from headrace.client.work_queue import Task, Worker
from headrace.errors import GroupIdNotFound, HeadraceError
from headrace.protocol.acknowledge_types import AcknowledgeType

AT_ONCE = 100
_RESET = "share.auto.offset.reset"
_LIMIT = "share.delivery.count.limit"
_RECONNECT_S = 0.5
_ACKNOWLEDGED = {
    Fate.DONE: AcknowledgeType.ACCEPT,
    Fate.REJECTED: AcknowledgeType.REJECT,
    Fate.GIVEN_BACK: AcknowledgeType.RELEASE,
    Fate.GIVEN_UP: AcknowledgeType.RELEASE,
}

Show = Callable[[Task], object]
"""Writes a task to standard output."""


group_option = click.option(
    "--group",
    "-g",
    help="The share group whose workers share the tasks; else the one of the topic's name.",
)


@click.group("queue", short_help="Put tasks into a topic, take them, see how they stand.")
def command() -> None:
    """A topic as a work queue: each task goes to one worker, and comes back if it fails.

    Works with every Kafka that has share groups (4.1 and newer).
    """


@command.command("put")
@click.argument("topic")
@click.argument("tasks", nargs=-1)
@cluster_options
@json_option
def put(
    topic: str,
    tasks: tuple[str, ...],
    bootstrap: str,
    command_config: str | None,
    timeout: float,
    properties: tuple[tuple[str, str], ...],
    as_json: bool,
) -> int:
    """Put TASKS into the queue, or a task per line of standard input.

    \b
    headrace queue put mails 'to ada' 'to bob'
    cat tasks.txt | headrace queue put mails
    """
    settings: dict[str, str] = {"acks": "all", **client_properties(command_config, properties)}
    lines = None if not tasks else [task.encode() for task in tasks]
    produced = produce(bootstrap, topic, settings, Shape(), timeout, lines)
    for message, count in produced.errors.items():
        warn(f"{count:,} not delivered: {message}")
    if as_json:
        print_json(produced)
    else:
        print_line(f"{counted(produced.records, 'task')} put into {topic}")
    if produced.is_interrupted:
        return INTERRUPTED
    return 1 if produced.failed else 0


@command.command("take")
@click.argument("topic")
@click.option("--count", "-n", type=click.IntRange(min=1), help="Stop after so many tasks.")
@group_option
@click.option(
    "--release",
    "fate",
    flag_value="release",
    help="Give tasks back after a look at them. Every look counts as a delivery, and the last that"
    " the group allows (share.delivery.count.limit) gives a task up.",
)
@click.option("--reject", "fate", flag_value="reject", help="Give tasks up.")
@click.option(
    "--exec",
    "program",
    metavar="COMMAND",
    help="Run this for each task, which is its standard input. Exit code 0 accepts the task, 65"
    " rejects it, any other gives it back to be tried again, after a pause. 126 and 127, by which"
    " a shell says that it cannot run COMMAND, give it back and end the work. However long it"
    " takes, the task stays its own, unless the group forbids renewals or the broker is older than"
    " Kafka 4.2.",
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
    group: str | None,
    fate: str | None,
    program: str | None,
    wait_s: float,
    template: str | None,
    as_json: bool,
    **cluster: Any,
) -> int:
    """Take tasks, write them to standard output, and accept them.

    A group that takes for the first time begins with the oldest task. Ends with 1 when a task
    failed, was rejected by --exec or given up. Such tasks can be taken again, with all others that
    the topic still holds, after: headrace groups reset GROUP --topic TOPIC --to-earliest

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
    name = group or topic
    with admin(**cluster) as client:
        client.cluster.topic(topic)
        begin_with_the_oldest(client, name)
        limit = delivery_limit(client, name)
        with Worker(client, name, topic) as worker:
            shift = Shift(worker, show, count, wait_s, client.cluster.timeout_s)
            if program is not None:
                rescue = f"headrace groups reset {name} --topic {topic} --to-earliest"
                return shift.execute(program, limit, rescue)
            if fate == "release":
                return shift.look(limit)
            verdict = AcknowledgeType.REJECT if fate == "reject" else AcknowledgeType.ACCEPT
            return shift.work(verdict)


class Shift:
    """What one run of the command does: so many tasks, or all until none came for a while."""

    def __init__(
        self,
        worker: Worker,
        show: Show,
        count: int | None,
        wait_s: float,
        outage_s_max: float,
    ) -> None:
        self._worker = worker
        self._show = show
        self._count = count
        self._wait_s = wait_s
        self._outage_s_max = outage_s_max
        self._outage = OutageNotice()
        self._taken = 0

    def work(self, verdict: AcknowledgeType) -> int:
        """Take tasks and settle each alike; 1 if one could not be."""
        failed = 0
        for task in self._tasks(AT_ONCE):
            self._show(task)
            failed |= not self._settled(task, verdict)
        return self._end() or failed

    def execute(self, program: str, limit: int | None, rescue: str) -> int:
        """Let a command do each task; 1 if one failed and was not done later."""
        tally = Tally()
        try:
            for task in self._tasks(1):
                self._show(task)
                self._try(program, task, limit, tally)
        finally:
            warn(tally.summary())
            if tally.count(Fate.GIVEN_UP) or tally.count(Fate.REJECTED):
                warn(f"to take them again, with all else that the topic still holds: {rescue}")
        return self._end() or int(tally.has_failures())

    def look(self, limit: int | None) -> int:
        """Take tasks and give them back, but not before the end: they would come at once again."""
        held = []
        worn_out = 0
        for task in self._tasks(AT_ONCE):
            self._show(task)
            held.append(task)
            if is_last(task.delivery_count(), limit):
                worn_out = 1
                warn(f"{_named(task)}: this was its last delivery of {limit}; it is given up")
            elif is_last(task.delivery_count() + 1, limit):
                warn(f"{_named(task)}: one more delivery is allowed; another look gives it up")
        failed = [task for task in held if not self._settled(task, AcknowledgeType.RELEASE)]
        return self._end() or worn_out or int(bool(failed))

    def _try(self, program: str, task: Task, limit: int | None, tally: Tally) -> None:
        place = (task.partition(), task.offset())
        code = run(program, task, self._worker)
        fate = fate_of(code, task.delivery_count(), limit)
        if fate is not Fate.DONE:
            warn(f"{_named(task)}: {told(code, fate, task.delivery_count(), limit)}")
        reason = cannot_run(code)
        if fate is Fate.GIVEN_BACK and reason is None:
            time.sleep(pause_s(task.delivery_count()))
        settled = self._settled(task, _ACKNOWLEDGED[fate])
        tally.note(place, fate if settled else Fate.NOT_SETTLED)
        if reason is not None:
            raise HeadraceError(f"{program!r} {reason}, so nothing was done (exit code {code})")

    def _settled(self, task: Task, verdict: AcknowledgeType) -> bool:
        """Tell the broker; what it does not hear or does not take comes again."""
        try:
            self._worker.settle(task, verdict)
        except HeadraceError as error:
            warn(f"{_named(task)} comes again: {error}")
            return False
        return True

    def _tasks(self, at_once: int) -> Iterator[Task]:
        while self._count is None or self._taken < self._count:
            left = at_once if self._count is None else min(at_once, self._count - self._taken)
            tasks = self._some(left)
            if not tasks:
                return
            for task in tasks:
                self._taken += 1
                yield task

    def _some(self, count: int) -> list[Task]:
        """Tasks as soon as there are any, over a broker's restart as well."""
        deadline = time.monotonic() + self._outage_s_max
        while True:
            try:
                tasks = self._worker.take(count, self._wait_s)
            except BrokerUnreachable as error:
                if time.monotonic() > deadline:
                    raise
                self._outage.look(str(error), "waiting for one", lambda: None)
                time.sleep(_RECONNECT_S)
            else:
                self._outage.look(None, "", lambda: None)
                return tasks

    def _end(self) -> int:
        sys.stdout.flush()
        if self._count is None or self._taken >= self._count:
            return 0
        warn(f"{self._taken:,} of {self._count:,} tasks were there")
        return 1


def run(program: str, task: Task, worker: Worker) -> int:
    """Let a command do a task, and hold the task meanwhile; the exit code says how that went."""
    facts = {
        "HEADRACE_TOPIC": task.topic(),
        "HEADRACE_PARTITION": str(task.partition()),
        "HEADRACE_OFFSET": str(task.offset()),
        "HEADRACE_KEY": (task.key() or b"").decode(errors="replace"),
        "HEADRACE_DELIVERY_COUNT": str(task.delivery_count()),
    }
    with subprocess.Popen(
        program, shell=True, stdin=subprocess.PIPE, env={**os.environ, **facts}
    ) as child:
        return _exit_code(child, task, worker)


def _exit_code(child: subprocess.Popen[bytes], task: Task, worker: Worker) -> int:
    """Feed a command its task and wait for its end, without losing the task meanwhile.

    A task that is lost all the same is not taken from the command: half done is worse than
    done twice, and what could not be settled is told at the end.
    """
    given: bytes | None = task.value() or b""
    is_held = True
    while True:
        try:
            child.communicate(given, timeout=worker.hold_interval_s if is_held else None)
            return child.returncode
        except subprocess.TimeoutExpired:
            given = None  # It is being fed already, and goes on with what is left.
        try:
            worker.hold(task)
        except HeadraceError as error:
            warn(f"{_named(task)} may go to another worker meanwhile: {error}")
            is_held = False


def delivery_limit(client: Admin, group: str) -> int | None:
    """How often a task is delivered before it is given up; older brokers do not tell."""
    entries = {entry.name: entry.value for entry in client.configs.describe("group", group)}
    value = entries.get(_LIMIT)
    return None if value is None else int(value)


def _named(task: Task) -> str:
    return f"{task.topic()}-{task.partition()} offset {task.offset()}"


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


def _shown(program: str | None, template: str | None, *, as_json: bool) -> Show:
    """How tasks are written; a program that does them writes what it likes itself."""
    out = sys.stdout.buffer
    if as_json:
        return lambda task: out.write(record_json(task) + b"\n")
    if template is not None:
        form = formatter(template)
        return lambda task: out.write(form(task))
    if program is not None:
        return lambda task: None
    return lambda task: out.write((task.value() or b"") + b"\n")


@command.command("stats")
@click.argument("topic")
@group_option
@cluster_options
@json_option
def stats(topic: str, group: str | None, as_json: bool, **cluster: Any) -> None:
    """Show how many tasks are open, how old the oldest is, who works, and how many were given up.

    \b
    state          of the group; `no worker yet` before the first came
    workers        members that take from this topic now
    open           tasks ready or with a worker: brokers do not tell these two apart
    settled ahead  tasks done with, behind one that is not
    oldest s       age of the oldest open task in seconds
    dead letters   what the group's dead letter topic holds, from all its queues

    Brokers count given up tasks only as dead letters: without a dead letter topic
    (errors.deadletterqueue.topic.name of the group; Headrace has them, Kafka 4.3 does not) nobody
    knows how many there were.
    """
    with admin(**cluster) as client:
        found = queue_stats(client, topic, group or topic)
    if as_json:
        print_json(found)
    else:
        print_stats(found)
