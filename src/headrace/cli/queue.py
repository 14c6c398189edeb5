"""`headrace queue`: a topic as a work queue on share groups: each task goes to one worker."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import click

from headrace.cli.line_shapes import LineShape
from headrace.cli.options import ClusterOptions, admin_options, cluster_options
from headrace.cli.output import counted, print_json, print_line, warn
from headrace.cli.produce import INTERRUPTED, produce
from headrace.cli.progress import OutageNotice
from headrace.cli.queue_stats import print_stats, queue_stats
from headrace.cli.queue_trials import (
    Outcome,
    TaskOutcomes,
    cannot_run,
    failure_text,
    is_last,
    outcome_of,
    pause_s,
)
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
    Outcome.DONE: AcknowledgeType.ACCEPT,
    Outcome.REJECTED: AcknowledgeType.REJECT,
    Outcome.GIVEN_BACK: AcknowledgeType.RELEASE,
    Outcome.GIVEN_UP: AcknowledgeType.RELEASE,
}

Show = Callable[[Task], object]
"""Function that formats tasks for standard output."""


group_option = click.option(
    "--group",
    "-g",
    show_default="TOPIC",
    help="Share group of the workers.",
)


@click.group(
    "queue", short_help="Use a topic as a work queue: put and take tasks, show statistics."
)
def command() -> None:
    """Use a topic as a work queue: each task goes to one worker and is redelivered if it fails.

    Works with every Kafka that has share groups (4.1 and newer).
    """


@command.command("put")
@click.argument("topic")
@click.argument("tasks", nargs=-1)
@admin_options
def put(topic: str, tasks: tuple[str, ...], as_json: bool, cluster: ClusterOptions) -> int:
    """Put TASKS into the queue, or one task per line of standard input.

    \b
    headrace queue put mails 'to ada' 'to bob'
    cat tasks.txt | headrace queue put mails
    """
    settings = {"acks": "all", **cluster.settings()}
    lines = None if not tasks else [task.encode() for task in tasks]
    produced = produce(cluster.bootstrap, topic, settings, LineShape(), cluster.timeout, lines)
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
@click.option("--count", "-n", type=click.IntRange(min=1), help="Stop after this many tasks.")
@group_option
@click.option(
    "--release",
    "fate",
    flag_value="release",
    help="Release tasks after showing them. Each release counts as a delivery; after the last that"
    " the group allows (share.delivery.count.limit), the task is given up.",
)
@click.option(
    "--reject", "fate", flag_value="reject", help="Reject tasks: they are not redelivered."
)
@click.option(
    "--exec",
    "program",
    metavar="COMMAND",
    help="Run this for each task, passed as standard input. Exit code 0 accepts the task, 65"
    " rejects it, any other releases it for a retry after a pause. With 126 and 127, a"
    " shell reports that it cannot run COMMAND: the task is released and the command ends."
    " A long run keeps its task, unless the group forbids renewals or the broker is older than"
    " Kafka 4.2.",
)
@click.option(
    "--wait",
    "wait_s",
    type=click.FloatRange(min=0),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="Stop when no task arrives for this long.",
)
@click.option("--format", "-f", "template", help="Template of a task, as in consume.")
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
    cluster: ClusterOptions,
) -> int:
    """Take tasks, write them to standard output and accept them.

    A new group starts with the oldest task. Exits with 1 if a task
    failed, was rejected by --exec or given up. To take such tasks again, with all others that
    the topic still contains, run: headrace groups reset GROUP --topic TOPIC --to-earliest

    \b
    headrace queue take mails -n 1
    headrace queue take mails --exec ./send-mail
    headrace queue take mails -n 10 --release --json
    """
    if program is not None and fate is not None:
        raise click.UsageError(
            "--exec settles tasks by exit code: leave out --release and --reject"
        )
    if template is not None and as_json:
        raise click.UsageError("--format and --json exclude each other")
    show = _shown(program, template, as_json=as_json)
    name = group or topic
    with cluster.admin() as client:
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
    """One run of the command: a number of tasks, or all until none arrive for a while."""

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
        """Take tasks and settle each in the same way; return 1 if one could not be settled."""
        failed = 0
        for task in self._tasks(AT_ONCE):
            self._show(task)
            failed |= not self._settled(task, verdict)
        return self._end() or failed

    def execute(self, program: str, limit: int | None, rescue: str) -> int:
        """Run a command for each task; return 1 if one failed and no retry succeeded."""
        tally = TaskOutcomes()
        try:
            for task in self._tasks(1):
                self._show(task)
                self._try(program, task, limit, tally)
        finally:
            warn(tally.summary())
            if tally.count(Outcome.GIVEN_UP) or tally.count(Outcome.REJECTED):
                warn(f"to take them again, with all other tasks still in the topic: {rescue}")
        return self._end() or int(tally.has_failures())

    def look(self, limit: int | None) -> int:
        """Take tasks and release them at the end; released earlier, they would return at once."""
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

    def _try(self, program: str, task: Task, limit: int | None, tally: TaskOutcomes) -> None:
        place = (task.partition(), task.offset())
        code = run(program, task, self._worker)
        outcome = outcome_of(code, task.delivery_count(), limit)
        if outcome is not Outcome.DONE:
            warn(f"{_named(task)}: {failure_text(code, outcome, task.delivery_count(), limit)}")
        reason = cannot_run(code)
        if outcome is Outcome.GIVEN_BACK and reason is None:
            time.sleep(pause_s(task.delivery_count()))
        settled = self._settled(task, _ACKNOWLEDGED[outcome])
        tally.note(place, outcome if settled else Outcome.NOT_SETTLED)
        if reason is not None:
            raise HeadraceError(f"{program!r} {reason}, so nothing was done (exit code {code})")

    def _settled(self, task: Task, verdict: AcknowledgeType) -> bool:
        """Settle a task with the broker; a task that could not be settled is redelivered."""
        try:
            self._worker.settle(task, verdict)
        except HeadraceError as error:
            warn(f"{_named(task)} will be redelivered: {error}")
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
        """Wait for tasks, also across a restart of the broker."""
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
        warn(f"{self._taken:,} of {self._count:,} tasks arrived")
        return 1


def run(program: str, task: Task, worker: Worker) -> int:
    """Run a command for a task and keep the task acquired; the exit code decides its outcome."""
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
    """Write the task to the command's input and wait for its end, renewing the acquisition.

    If the acquisition is lost, the command still runs to its end: half done is worse than done
    twice. Unsettled tasks are reported at the end.
    """
    given: bytes | None = task.value() or b""
    is_held = True
    while True:
        try:
            child.communicate(given, timeout=worker.hold_interval_s if is_held else None)
            return child.returncode
        except subprocess.TimeoutExpired:
            given = None  # The input is already being written; continue with the rest.
        try:
            worker.hold(task)
        except HeadraceError as error:
            warn(f"{_named(task)} may go to another worker meanwhile: {error}")
            is_held = False


def delivery_limit(client: Admin, group: str) -> int | None:
    """Return the limit of deliveries per task; older brokers do not report it."""
    entries = {entry.name: entry.value for entry in client.configs.describe("group", group)}
    value = entries.get(_LIMIT)
    return None if value is None else int(value)


def _named(task: Task) -> str:
    return f"{task.topic()}-{task.partition()} offset {task.offset()}"


def begin_with_the_oldest(client: Admin, group: str) -> None:
    """Set the offsets of a new group to the oldest task, so that the queue skips none.

    Share groups start at the end by default. A group with committed state or with its own setting
    is left unchanged.
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
    """Return the format of tasks; with --exec, the command writes its own output."""
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
@admin_options
def stats(topic: str, group: str | None, as_json: bool, cluster: ClusterOptions) -> None:
    """Show open tasks, the age of the oldest, active workers, and tasks given up.

    \b
    state          state of the group; `no worker yet` before the first one joins
    workers        members that take from this topic now
    open           tasks ready or with a worker: brokers do not distinguish the two
    settled ahead  finished tasks behind an open one
    oldest s       age of the oldest open task in seconds
    dead letters   records in the group's dead letter topic, from all its queues

    Brokers count given up tasks only as dead letters. Without a dead letter topic
    (errors.deadletterqueue.topic.name of the group; a feature of Headrace, not of Kafka 4.3)
    the number is unknown.
    """
    with cluster.admin() as client:
        found = queue_stats(client, topic, group or topic)
    if as_json:
        print_json(found)
    else:
        print_stats(found)
