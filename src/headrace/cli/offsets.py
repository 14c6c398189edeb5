"""`headrace offsets`: where the partitions of a topic start and end, or stood at a time."""

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
from headrace.client.descriptions import PartitionOffset
from headrace.client.partitions import EARLIEST, LATEST, MAX_TIMESTAMP


class PartitionRange(msgspec.Struct, frozen=True, kw_only=True):
    """What one partition holds."""

    partition: int
    earliest: int
    latest: int
    offsets: int
    """How many lie between; compaction and the ends of transactions leave fewer records."""


@click.command("offsets", short_help="Show where each partition starts and ends.")
@click.argument("topic")
@partitions_option("Only this partition; may be repeated.")
@click.option(
    "--time", "-t", "timestamp", type=moment, metavar="TIME", help="The first record at this time."
)
@click.option("--newest", is_flag=True, help="The record with the largest timestamp.")
@cluster_options
@json_option
def command(
    topic: str,
    partitions: tuple[int, ...],
    timestamp: int | None,
    newest: bool,
    as_json: bool,
    **cluster: Any,
) -> None:
    """Show the first offset of each partition, the one after its last, and their distance.

    The distance is the number of records where nothing was compacted and no transaction ended;
    else there are fewer.

    \b
    headrace offsets orders
    headrace offsets orders --time 2026-03-01T12:00:00Z
    """
    if newest and timestamp is not None:
        raise click.UsageError("--time and --newest exclude each other")
    wanted = sorted(set(partitions)) or None
    with admin(**cluster) as client:
        if newest or timestamp is not None:
            asked = MAX_TIMESTAMP if timestamp is None else timestamp
            _print_moments(client.partitions.offsets(topic, asked, wanted), as_json=as_json)
        else:
            _print_ranges(ranges(client, topic, wanted), as_json=as_json)


def ranges(client: Admin, topic: str, partitions: list[int] | None) -> list[PartitionRange]:
    """Start, end and their distance."""
    earliest = client.partitions.offsets(topic, EARLIEST, partitions)
    latest = client.partitions.offsets(topic, LATEST, partitions)
    return [
        PartitionRange(
            partition=first.partition,
            earliest=first.offset,
            latest=end.offset,
            offsets=end.offset - first.offset,
        )
        for first, end in zip(earliest, latest, strict=True)
    ]


def _print_ranges(found: list[PartitionRange], *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    print_table(
        ("partition", "earliest", "latest", "offsets"),
        [(one.partition, one.earliest, one.latest, one.offsets) for one in found],
    )


def _print_moments(found: list[PartitionOffset], *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    print_table(
        ("partition", "offset", "time", "leader epoch"),
        [
            (
                one.partition,
                one.offset if one.offset >= 0 else None,
                time_text(one.timestamp),
                one.leader_epoch if one.leader_epoch >= 0 else None,
            )
            for one in found
        ],
    )
