"""`headrace offsets`: first and end offsets of partitions, or offsets by time."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

import click
import msgspec

from headrace.cli.options import ClusterOptions, admin_options, moment, partitions_option
from headrace.cli.output import print_rows, time_text
from headrace.client.admin import Admin
from headrace.client.partitions import EARLIEST, LATEST, MAX_TIMESTAMP


class PartitionRange(msgspec.Struct, frozen=True, kw_only=True):
    """Offset range of one partition."""

    topic: str
    partition: int
    earliest: int
    latest: int
    offsets: int
    """Distance of the offsets; compaction and transaction markers leave fewer records."""


class PartitionMoment(msgspec.Struct, frozen=True, kw_only=True):
    """Offset of one partition at a time; -1 if no record qualifies."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    leader_epoch: int


@click.command("offsets", short_help="Show the first and end offsets of partitions.")
@click.argument("topics", nargs=-1, metavar="[TOPIC]...")
@partitions_option("Only this partition; may be repeated.")
@click.option(
    "--time", "-t", "timestamp", type=moment, metavar="TIME", help="The first record at this time."
)
@click.option("--newest", is_flag=True, help="The record with the largest timestamp.")
@admin_options
def command(
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    timestamp: int | None,
    newest: bool,
    as_json: bool,
    cluster: ClusterOptions,
) -> None:
    """Show the first offset of each partition, its end offset, and their distance.

    The distance is the number of records if nothing was compacted and no transaction ended;
    otherwise it is an upper bound. TOPIC may be a pattern such as 'orders-*'; without TOPIC,
    all topics are shown.

    \b
    headrace offsets orders
    headrace offsets orders --time 2026-03-01T12:00:00Z
    """
    if newest and timestamp is not None:
        raise click.UsageError("--time and --newest exclude each other")
    wanted = sorted(set(partitions)) or None
    with cluster.admin() as client:
        names = chosen_topics(client, topics)
        if newest or timestamp is not None:
            asked = MAX_TIMESTAMP if timestamp is None else timestamp
            found = [one for name in names for one in moments(client, name, asked, wanted)]
            print_rows(
                found,
                {
                    "topic": lambda one: one.topic,
                    "partition": lambda one: one.partition,
                    "offset": lambda one: one.offset if one.offset >= 0 else None,
                    "time": lambda one: time_text(one.timestamp),
                    "leader epoch": lambda one: one.leader_epoch if one.leader_epoch >= 0 else None,
                },
                as_json=as_json,
            )
        else:
            print_rows(
                [one for name in names for one in ranges(client, name, wanted)],
                {
                    "topic": lambda one: one.topic,
                    "partition": lambda one: one.partition,
                    "earliest": lambda one: one.earliest,
                    "latest": lambda one: one.latest,
                    "offsets": lambda one: one.offsets,
                },
                as_json=as_json,
            )


def chosen_topics(client: Admin, patterns: Sequence[str]) -> list[str]:
    """Return the named or matching topics; unknown names are kept."""
    if all(not set(pattern) & set("*?[") for pattern in patterns) and patterns:
        return list(patterns)
    present = [topic.name for topic in client.topics.all() if not topic.is_internal]
    return [name for name in present if any(fnmatchcase(name, one) for one in patterns or "*")]


def ranges(client: Admin, topic: str, partitions: list[int] | None) -> list[PartitionRange]:
    """Read the first and end offsets of partitions."""
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
    """Read the offsets of a topic's partitions at a time."""
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
