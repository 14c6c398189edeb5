"""`headrace groups`: members and lag of groups, in records and in seconds; offset resets."""

import fnmatch
import re
import time
from collections.abc import Sequence
from typing import Any

import click
import msgspec

from headrace.cli.options import (
    ClusterOptions,
    admin_options,
    confirm,
    duration_ms,
    moment,
    yes_option,
)
from headrace.cli.output import counted, print_json, print_line, print_rows, report, warn
from headrace.client.admin import Admin
from headrace.client.cluster import near_names
from headrace.client.group_descriptions import GroupDescription, PartitionLag
from headrace.client.groups import Offsets
from headrace.client.partitions import EARLIEST, LATEST
from headrace.errors import GroupIdNotFound, HeadraceError

STATES = (
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Assigning",
    "Reconciling",
    "NotReady",
)
_UUID_END = re.compile(r"(-[0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")

TYPES = ("classic", "consumer", "share", "streams")


class GroupWithLag(msgspec.Struct, frozen=True, kw_only=True):
    """A group with its members and the lag of each partition."""

    group: GroupDescription
    partitions: list[PartitionLag]


class OffsetMove(msgspec.Struct, frozen=True, kw_only=True):
    """A committed offset before and after a reset."""

    topic: str
    partition: int
    before: int | None
    after: int


@click.group("groups", short_help="List, describe, reset and delete groups.")
def command() -> None:
    """List, describe, reset and delete groups of all kinds, with lag in records and in seconds."""


@command.command("list")
@click.argument("pattern", default="*")
@click.option(
    "--state",
    "states",
    type=click.Choice(STATES, case_sensitive=False),
    multiple=True,
    help="Only groups in this state; may be repeated.",
)
@click.option(
    "--type",
    "types",
    type=click.Choice(TYPES, case_sensitive=False),
    multiple=True,
    help="Only groups of this type; may be repeated.",
)
@admin_options
def list_groups(
    pattern: str,
    states: tuple[str, ...],
    types: tuple[str, ...],
    as_json: bool,
    cluster: ClusterOptions,
) -> None:
    """List groups, all or those whose name matches PATTERN (as in 'billing-*')."""
    with cluster.admin() as client:
        found = [
            one
            for one in client.groups.all(states, types)
            if fnmatch.fnmatchcase(one.group, pattern)
        ]
    print_rows(
        found,
        {
            "group": lambda one: one.group,
            "type": lambda one: one.type,
            "state": lambda one: one.state,
            "protocol": lambda one: one.protocol_type,
            "coordinator": lambda one: one.coordinator,
        },
        as_json=as_json,
    )


@command.command("describe")
@click.argument("names", nargs=-1, metavar="GROUP...")
@click.option("--all", "all_groups", is_flag=True, help="Describe every group.")
@click.option("--members", is_flag=True, help="Show the members instead of the partitions.")
@admin_options
def describe_groups(
    names: tuple[str, ...], all_groups: bool, members: bool, as_json: bool, cluster: ClusterOptions
) -> None:
    """Show the lag of groups, and the member that reads each partition.

    Lag in seconds is the age of the next record to read; for a share group, the age of the oldest
    unfinished record.

    \b
    headrace groups describe billing
    """
    if bool(names) == all_groups:
        raise click.UsageError("name groups, or give --all")
    with cluster.admin() as client:
        if all_groups:
            listed = client.groups.all()
            names = tuple(one.group for one in listed if one.type in ("", "classic", "consumer"))
        found = [_describe(client, name) for name in names]
    if as_json:
        print_json(found)
        return
    for one in found:
        _print_group(one, members=members)


def _describe(client: Admin, name: str) -> GroupWithLag:
    group = client.groups.describe(name)
    assigned: dict[str, list[int]] = {}
    for member in group.members:
        for topic, partitions in member.assignment.items():
            assigned.setdefault(topic, []).extend(partitions)
    now_ms = time.time_ns() // 1_000_000
    return GroupWithLag(group=group, partitions=client.groups.lag(name, now_ms, assigned))


def _print_group(described: GroupWithLag, *, members: bool) -> None:
    group, rows = described.group, described.partitions
    records = sum(row.lag or 0 for row in rows)
    seconds = max((row.lag_seconds or 0.0 for row in rows), default=0.0)
    assignor = f", {group.assignor}" if group.assignor else ""
    print_line(
        f"{group.group}: {group.state} ({group.type}{assignor}),"
        f" {counted(len(group.members), 'member')},"
        f" {counted(records, 'record')} and {seconds:.1f} s behind, coordinator {group.coordinator}"
    )
    if members:
        print_rows(
            group.members,
            {
                "member": lambda one: one.member_id,
                "instance": lambda one: one.instance_id,
                "client": lambda one: one.client_id,
                "host": lambda one: one.host,
                "partitions": lambda one: _owned(one.assignment),
            },
        )
        return
    print_rows(
        rows,
        {
            "topic": lambda row: row.topic,
            "partition": lambda row: row.partition,
            "committed": lambda row: row.committed,
            "end": lambda row: row.end,
            "lag": lambda row: row.lag,
            "lag (s)": lambda row: row.lag_seconds,
            "member": lambda row: _owner(group, row),
        },
    )


def _owned(assignment: dict[str, list[int]]) -> str:
    return " ".join(
        f"{topic}[{','.join(map(str, partitions))}]"
        for topic, partitions in sorted(assignment.items())
    )


def _owner(group: GroupDescription, row: PartitionLag) -> str | None:
    """Return the members that read a partition; a share group may have several."""
    owners = [short_member(one.member_id) for one in group.owners_of(row.topic, row.partition)]
    return " ".join(owners) if owners else None


def short_member(member_id: str) -> str:
    """Shorten a member id to the client's name and the start of its UUID, unique in a group."""
    return _UUID_END.sub(r"\1", member_id)


@command.command("reset")
@click.argument("group")
@click.option(
    "--topic",
    "-t",
    "topics",
    multiple=True,
    metavar="TOPIC[:P,...]",
    help="These partitions; may be repeated. By default all with committed offsets.",
)
@click.option("--to-earliest", is_flag=True, help="To the oldest record.")
@click.option("--to-latest", is_flag=True, help="To the end: skip all existing records.")
@click.option("--to-offset", type=click.IntRange(min=0), help="To this offset.")
@click.option("--to-time", type=moment, metavar="TIME", help="To the first record at this time.")
@click.option(
    "--by-duration",
    type=duration_ms,
    metavar="DURATION",
    help="To the first record of this long ago.",
)
@click.option(
    "--shift-by", type=int, metavar="N", help="By this many offsets; backwards if negative."
)
@click.option(
    "--to-current", is_flag=True, help="Keep the committed offsets; with --dry-run, show them."
)
@click.option("--dry-run", is_flag=True, help="Print the changes without applying them.")
@yes_option
@admin_options
def reset(
    group: str,
    topics: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    as_json: bool,
    cluster: ClusterOptions,
    **target: Any,
) -> int:
    """Set the offsets at which a group without members continues.

    \b
    headrace groups reset billing --topic orders --to-earliest --dry-run
    headrace groups reset billing --to-time 2026-03-01T12:00:00Z
    """
    given = {name: value for name, value in target.items() if value not in (None, False)}
    if len(given) != 1:
        raise click.UsageError("give exactly one of the options --to-..., --by-..., --shift-...")
    with cluster.admin() as client:
        moves = plan(client, group, topics, *next(iter(given.items())))
        _warn_of_new_group(client, group)
        if dry_run:
            _print_moves(moves, as_json=as_json)
            return 0
        confirm(f"Change {counted(len(moves), 'offset')} of {group}?", yes=yes)
        outcomes = client.groups.reset(
            group, {(one.topic, one.partition): one.after for one in moves}
        )
    failed = [one for one in outcomes if one.error is not None]
    if failed:
        return report(failed, done="", as_json=as_json)
    _print_moves(moves, as_json=as_json)
    return 0


def _warn_of_new_group(client: Admin, group: str) -> None:
    """Warn that the first offsets create a group: the name may be misspelt."""
    try:
        client.groups.describe(group)
    except GroupIdNotFound:
        near = near_names(group, [one.group for one in client.groups.all()])
        warn(f"group {group!r} does not exist{near}; its first offsets create it")


def plan(
    client: Admin, group: str, topics: Sequence[str], kind: str, value: Any
) -> list[OffsetMove]:
    """Return the new offset of each partition, limited to the range of the log."""
    committed = {key: one[0] for key, one in client.groups.committed(group).items()}
    chosen = _chosen(client, topics) if topics else sorted(committed)
    if not chosen:
        raise HeadraceError(
            f"group {group!r} has no committed offsets; name the topics to reset with --topic"
        )
    wanted: Offsets = {}
    for topic in dict.fromkeys(topic for topic, _ in chosen):
        partitions = [number for name, number in chosen if name == topic]
        wanted.update(_targets(client, topic, partitions, committed, kind, value))
    return [
        OffsetMove(
            topic=topic, partition=number, before=committed.get((topic, number)), after=after
        )
        for (topic, number), after in sorted(wanted.items())
    ]


def _chosen(client: Admin, topics: Sequence[str]) -> list[tuple[str, int]]:
    chosen: list[tuple[str, int]] = []
    for text in topics:
        name, _, numbers = text.partition(":")
        try:
            given = [int(one) for one in numbers.split(",")] if numbers else None
        except ValueError as error:
            raise click.UsageError(f"{text!r} is not of the form TOPIC or TOPIC:0,1") from error
        there = client.partitions.of(name)
        missing = set(given or ()) - set(there)
        if missing:
            raise HeadraceError(f"{name} has no partition {min(missing)}")
        chosen.extend((name, number) for number in given or there)
    return chosen


def _targets(
    client: Admin, topic: str, partitions: list[int], committed: Offsets, kind: str, value: Any
) -> Offsets:
    first = _offsets(client, topic, EARLIEST, partitions)
    last = _offsets(client, topic, LATEST, partitions)
    found: dict[int, int] = {}
    if kind in ("to_time", "by_duration"):
        now_ms = time.time_ns() // 1_000_000
        found = _offsets(client, topic, value if kind == "to_time" else now_ms - value, partitions)
    targets: Offsets = {}
    for number in partitions:
        now = committed.get((topic, number))
        match kind:
            case "to_earliest":
                after = first[number]
            case "to_latest":
                after = last[number]
            case "to_offset":
                after = int(value)
            case "to_time" | "by_duration":
                after = found[number] if found[number] >= 0 else last[number]
            case _:
                if now is None:
                    raise HeadraceError(f"{topic}-{number} has no committed offset to start from")
                after = now + int(value) if kind == "shift_by" else now
        targets[topic, number] = min(max(after, first[number]), last[number])
    return targets


def _offsets(
    client: Admin, topic: str, timestamp: int, partitions: Sequence[int]
) -> dict[int, int]:
    return {
        one.partition: one.offset for one in client.partitions.offsets(topic, timestamp, partitions)
    }


def _print_moves(moves: list[OffsetMove], *, as_json: bool) -> None:
    print_rows(
        moves,
        {
            "topic": lambda one: one.topic,
            "partition": lambda one: one.partition,
            "before": lambda one: one.before,
            "after": lambda one: one.after,
        },
        as_json=as_json,
    )


@command.command("delete")
@click.argument("names", nargs=-1, required=True, metavar="GROUP...")
@yes_option
@admin_options
def delete(names: tuple[str, ...], yes: bool, as_json: bool, cluster: ClusterOptions) -> int:
    """Delete groups without members, and their committed offsets."""
    confirm(f"Delete group {', '.join(names)}?", yes=yes)
    with cluster.admin() as client:
        outcomes = client.groups.delete(names)
    return report(outcomes, done="deleted", as_json=as_json)


@command.command("delete-offsets")
@click.argument("group")
@click.option(
    "--topic",
    "-t",
    "topics",
    multiple=True,
    required=True,
    metavar="TOPIC[:P,...]",
    help="Delete the offsets of these partitions; may be repeated.",
)
@yes_option
@admin_options
def delete_offsets(
    group: str, topics: tuple[str, ...], yes: bool, as_json: bool, cluster: ClusterOptions
) -> int:
    """Delete a group's committed offsets of topics that it no longer reads."""
    confirm(f"Delete offsets of {group} for {', '.join(topics)}?", yes=yes)
    with cluster.admin() as client:
        outcomes = client.groups.delete_offsets(group, _chosen(client, topics))
    return report(outcomes, done="deleted", as_json=as_json)
