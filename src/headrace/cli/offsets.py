"""`headrace offsets`: where the partitions of a topic start and end, or stood at a time."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import click
import msgspec

from headrace.cli.options import (
    admin,
    cluster_options,
    json_option,
    moment,
    partitions_option,
)
from headrace.cli.output import print_json, print_table, time_text
from headrace.client.admin import Admin
from headrace.client.partitions import EARLIEST, LATEST, MAX_TIMESTAMP


class PartitionRange(msgspec.Struct, frozen=True, kw_only=True):
    """What one partition holds."""

    topic: str
    partition: int
    earliest: int
    latest: int
    offsets: int
    """How many lie between; compaction and the ends of transactions leave fewer records."""


class PartitionMoment(msgspec.Struct, frozen=True, kw_only=True):
    """Where one partition stood at a time; -1 where no record answers that."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    leader_epoch: int


@click.command("offsets", short_help="Show where each partition starts and ends.")
@click.argument("topics", nargs=-1, metavar="[TOPIC]...")
@partitions_option("Only this partition; may be repeated.")
@click.option(
    "--time", "-t", "timestamp", type=moment, metavar="TIME", help="The first record at this time."
)
@click.option("--newest", is_flag=True, help="The record with the largest timestamp.")
@cluster_options
@json_option
def command(
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    timestamp: int | None,
    newest: bool,
    as_json: bool,
    **cluster: Any,
) -> None:
    """Show the first offset of each partition, the one after its last, and their distance.

    The distance is the number of records where nothing was compacted and no transaction ended;
    else there are fewer. TOPIC may be a pattern such as 'orders-*'; none names all topics.

    \b
    headrace offsets orders
    headrace offsets orders --time 2026-03-01T12:00:00Z
    """
    if newest and timestamp is not None:
        raise click.UsageError("--time and --newest exclude each other")
    wanted = sorted(set(partitions)) or None
    with admin(**cluster) as client:
        names = chosen_topics(client, topics)
        if newest or timestamp is not None:
            asked = MAX_TIMESTAMP if timestamp is None else timestamp
            found = [one for name in names for one in moments(client, name, asked, wanted)]
            _print_moments(found, as_json=as_json)
        else:
            held = [one for name in names for one in ranges(client, name, wanted)]
            _print_ranges(held, as_json=as_json)


def chosen_topics(client: Admin, patterns: Sequence[str]) -> list[str]:
    """The topics that are named or matched; a name is kept even if there is no such topic."""
    if all(not set(pattern) & set("*?[") for pattern in patterns) and patterns:
        return list(patterns)
    present = [topic.name for topic in client.topics.all() if not topic.is_internal]
    return [name for name in present if any(fnmatchcase(name, one) for one in patterns or "*")]


def ranges(client: Admin, topic: str, partitions: list[int] | None) -> list[PartitionRange]:
    """Start, end and their distance."""
    earliest = client.partitions.offsets(topic, EARLIEST, partitions)
    latest = client.partitions.offsets(topic, LATEST, partitions)
    return [
        PartitionRange(
            topic=topic,
            partition=first.partition,
            earliest=first.offset,
            latest=end.offset,
            offsets=end.offset - first.offset,
        )
        for first, end in zip(earliest, latest, strict=True)
    ]


def moments(
    client: Admin, topic: str, timestamp: int, partitions: list[int] | None
) -> list[PartitionMoment]:
    """Where a topic's partitions stood at a time."""
    return [
        PartitionMoment(
            topic=topic,
            partition=one.partition,
            offset=one.offset,
            timestamp=one.timestamp,
            leader_epoch=one.leader_epoch,
        )
        for one in client.partitions.offsets(topic, timestamp, partitions)
    ]


def _print_ranges(found: list[PartitionRange], *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    print_table(
        ("topic", "partition", "earliest", "latest", "offsets"),
        [(one.topic, one.partition, one.earliest, one.latest, one.offsets) for one in found],
    )


def _print_moments(found: list[PartitionMoment], *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    print_table(
        ("topic", "partition", "offset", "time", "leader epoch"),
        [
            (
                one.topic,
                one.partition,
                one.offset if one.offset >= 0 else None,
                time_text(one.timestamp),
                one.leader_epoch if one.leader_epoch >= 0 else None,
            )
            for one in found
        ],
    )
