"""Statistics of a work queue, from its group, topic and dead letter topic."""

import time

import msgspec

from headrace.cli.output import print_table, warn
from headrace.client.admin import Admin
from headrace.client.group_descriptions import GroupDescription
from headrace.client.partitions import EARLIEST, LATEST
from headrace.errors import GroupIdNotFound, HeadraceError

_LETTERS = "errors.deadletterqueue.topic.name"


class QueueStats(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of a queue; None where the cluster does not report a value."""

    topic: str
    group: str
    state: str | None
    """None before the first worker joins, which creates the group."""
    workers: int
    open: int
    """Unfinished tasks: ready, or acquired by a worker."""
    settled_ahead: int
    """Finished tasks behind an unfinished one."""
    oldest_seconds: float | None
    dead_letter_topic: str
    is_dead_letter_topic_missing: bool
    dead_letters: int | None


def queue_stats(client: Admin, topic: str, group: str) -> QueueStats:
    """Collect the statistics of a queue from a cluster."""
    client.cluster.topic(topic)
    described = _described(client, group)
    now_ms = time.time_ns() // 1_000_000
    lag = client.groups.lag(group, now_ms) if described is not None else []
    rows = [row for row in lag if row.topic == topic]
    behind = sum((row.end or 0) - (row.committed or 0) for row in rows)
    # A group without offsets for the topic starts with the oldest task.
    still_open = sum(row.lag or 0 for row in rows) if rows else records_in(client, topic)
    members = described.members if described is not None else []
    target, is_missing, letters = _dead_letters(client, group)
    return QueueStats(
        topic=topic,
        group=group,
        state=described.state if described is not None else None,
        workers=sum(topic in member.assignment for member in members),
        open=still_open,
        settled_ahead=behind - still_open if rows else 0,
        oldest_seconds=max((row.lag_seconds or 0.0 for row in rows), default=None),
        dead_letter_topic=target,
        is_dead_letter_topic_missing=is_missing,
        dead_letters=letters,
    )


def print_stats(found: QueueStats) -> None:
    """Print the table for people, with notes."""
    print_table(
        ("topic", "group", "state", "workers", "open", "settled ahead", "oldest s", "dead letters"),
        [
            (
                found.topic,
                found.group,
                "no worker yet" if found.state is None else found.state,
                found.workers,
                found.open,
                found.settled_ahead,
                found.oldest_seconds,
                found.dead_letters,
            )
        ],
    )
    if found.is_dead_letter_topic_missing:
        warn(
            f"the dead letter topic {found.dead_letter_topic} does not exist: tasks that are"
            f" given up are lost until it does. Create it with: headrace topics create"
            f" {found.dead_letter_topic} --set errors.deadletterqueue.group.enable=true"
        )


def records_in(client: Admin, topic: str) -> int:
    """Return the number of offsets in a topic."""
    ends = sum(one.offset for one in client.partitions.offsets(topic, LATEST))
    starts = sum(one.offset for one in client.partitions.offsets(topic, EARLIEST))
    return ends - starts


def _described(client: Admin, group: str) -> GroupDescription | None:
    """Return the queue's group, or None before the first worker joins."""
    try:
        described = client.groups.describe(group)
    except GroupIdNotFound:
        return None
    if described.type != "share":
        raise HeadraceError(
            f"group {group!r} is a {described.type} group, not a share group; choose one by --group"
        )
    return described


def _dead_letters(client: Admin, group: str) -> tuple[str, bool, int | None]:
    """Return the group's dead letter topic, whether it is missing, and its number of records."""
    entries = {entry.name: entry.value for entry in client.configs.describe("group", group)}
    target = entries.get(_LETTERS) or ""
    if not target:
        return "", False, None
    if target not in client.cluster.topic_names():
        return target, True, None
    return target, False, records_in(client, target)
